# SPDX-License-Identifier: Apache-2.0
"""Verbs that take files read a pipe as they read the file, or refuse it; and an index is not its segment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.made_logs import batch, write_log

READING: Final[dict[str, tuple[str, ...]]] = {
    "dump-log": ("dump-log", "--format", "jsonl"),
    "explain": ("explain", "--format", "jsonl", "--offset", "2"),
    "stats": ("stats", "--format", "json"),
    "verify": ("verify", "-j1", "--format", "jsonl"),
}
"""The verbs that read pipes."""
REFUSING: Final[dict[str, tuple[str, ...]]] = {
    "query": ("query", "FROM records"),
    "free": ("free",),
    "topics": ("topics",),
    "follow": ("follow", "--until-idle", "0.01"),
    "log info": ("log", "info"),
}
"""The verbs that do not: they read files again, or need what is beside them."""
RAFT: Final = ("state", "quorum", "voters", "epochs")
INDEX: Final = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0/00000000000000000000.index"


@contextmanager
def piped(data: bytes, *, as_standard_input: bool) -> Iterator[str]:
    """Give some bytes, fewer than a pipe takes at once, as a pipe: a path, as ``<(…)`` of a shell, or ``-``."""
    reader, writer = os.pipe()
    before = os.dup(0)
    try:
        os.write(writer, data)
        os.close(writer)
        if as_standard_input:
            os.dup2(reader, 0)
        yield "-" if as_standard_input else f"/dev/fd/{reader}"
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reader)


def without_place(outcome: Outcome) -> list[dict[str, Any]]:
    """What was found, without where, and without the line about the file itself."""
    places = {"file", "path", "directory", "topic", "partition"}
    lines = (line for line in outcome.objects if line["kind"] != "file")
    return [{name: each for name, each in line.items() if name not in places} for line in lines]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A segment of five records; its directory has no name of Kafka's, as a pipe has none."""
    return write_log(tmp_path / "logs", batch(0, (b"a", b"b", b"c")), batch(3, (b"d", b"e"), key=b"other"))


@pytest.mark.parametrize("as_standard_input", [False, True])
@pytest.mark.parametrize("verb", READING)
def test_a_pipe_has_what_its_file_has(verb: str, as_standard_input: bool, log: Path) -> None:
    """Every line is that of the file, but for the name."""
    expected = run(*READING[verb], log)
    with piped(log.read_bytes(), as_standard_input=as_standard_input) as path:
        outcome = run(*READING[verb], path)
    assert (outcome.exit_code, expected.exit_code) == (0, 0)
    if verb == "verify":  # A file has a name, too, which is judged.
        assert outcome.objects[-1]["explained_bytes"] == expected.objects[-1]["explained_bytes"] == log.stat().st_size
    else:
        assert without_place(outcome) == without_place(expected)
        assert len(outcome.objects) > 1


@pytest.mark.parametrize("as_standard_input", [False, True])
@pytest.mark.parametrize("verb", REFUSING)
def test_a_pipe_is_refused_in_one_line(verb: str, as_standard_input: bool, log: Path) -> None:
    """It is no empty answer."""
    with piped(log.read_bytes(), as_standard_input=as_standard_input) as path:
        outcome = run(*REFUSING[verb], path)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)


@pytest.mark.parametrize("verb", [*RAFT, "stats"])
def test_an_index_is_not_its_segment(verb: str) -> None:
    """Only verify and audit look at indexes; others name what to give. Beside its segment it is no error."""
    outcome = run(verb, INDEX)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert f"{INDEX}: read failed: an index has no batches" in outcome.messages
    assert run(verb, INDEX, INDEX.with_suffix(".log")).output == run(verb, INDEX.with_suffix(".log")).output


def test_an_index_of_a_coordinators_topic() -> None:
    """Likewise."""
    outcome = run("state", GOLDEN / "groups/data/n1/__consumer_offsets-0/00000000000000000000.index")
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert "an index has no batches" in outcome.messages
