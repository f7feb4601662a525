# SPDX-License-Identifier: Apache-2.0
"""`raftlog dump-log --dialect V` prints what release V of Kafka's own dump tool prints, byte for byte.

The oracle is the tool itself, on the whole corpus and on every edge case. A call the tool dies of has no output to
compare: there raftlog has to answer without an exception. `NOT_REPRODUCED` names what raftlog leaves to Kafka.
"""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from raftlog.tools import command_line
from tests.kafka import corpus, dump_tool, make_edge_files
from tests.kafka.dump_tool import DIALECTS, Dump

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(
        bool(dump_tool.missing_programs()),
        reason=f"Kafka's dump tool needs {', '.join(dump_tool.missing_programs())} (Java 17 and Maven)",
    ),
]
Call = tuple[str, ...]
SHOWN = 20  # of the calls that differ, in a failure's message
NOT_REPRODUCED = {
    "--version": "the release's own number",
    "--help": "the option library's table",
    "--key-decoder-class": "classes of Kafka's, in Java; raftlog takes functions in Python",
    "--value-decoder-class": "as above",
}
DIFFERENT_ON_PURPOSE = {
    "metadata-json-1e23": "Java before 19 does not always print a double's shortest digits; raftlog does",
    "size-48": "raftlog goes on at the next batch whose CRC holds",
    "size-2147483636": "as above",
    "size-2147483647": "as above",
}  # edge cases by their names
READ_BY_RAFTLOG_ALONE = (".deleted",)  # Kafka ignores a segment that was renamed before its deletion


@attrs.frozen
class Stage:
    """A working directory, and the calls to make in it."""

    folder: Path
    calls: tuple[Call, ...]


@pytest.fixture(scope="module")
def corpus_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The corpus, copied."""
    folder = tmp_path_factory.mktemp("corpus")
    corpus.stage(folder)
    return Stage(folder, tuple(tuple(argv) for argv in corpus.calls()))


@pytest.fixture(scope="module")
def edge_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The edge cases' files, written."""
    folder = tmp_path_factory.mktemp("damaged")
    make_edge_files.write_files(folder)
    return Stage(folder, tuple(tuple(case.argv(call)) for case in make_edge_files.all_cases() for call in case.calls))


@pytest.fixture(scope="module")
def background() -> Iterator[ThreadPoolExecutor]:
    """Two threads: the JVMs run ahead while this process compares."""
    with ThreadPoolExecutor(2) as executor:
        yield executor


Answers = Callable[[], list[Dump]]


def ask_all(background: ThreadPoolExecutor, stage: Stage, fresh: Callable[[], Path]) -> dict[str, Answers]:
    """Starts every release on the calls, each in a folder of its own: the tool writes where it reads."""

    def ask(dialect: str) -> list[Dump]:
        return dump_tool.dump_many(dialect, stage.calls, fresh())

    running: dict[str, Future[list[Dump]]] = {dialect: background.submit(ask, dialect) for dialect in DIALECTS}
    return {dialect: future.result for dialect, future in running.items()}


@pytest.fixture(scope="module")
def corpus_answers(background: ThreadPoolExecutor, corpus_stage: Stage) -> dict[str, Answers]:
    """What each release prints for the corpus, where no call makes a file."""
    return ask_all(background, corpus_stage, lambda: corpus_stage.folder)


@pytest.fixture(scope="module")
def edge_answers(
    background: ThreadPoolExecutor, edge_stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Answers]:
    """What each release prints for the edge cases."""

    def fresh() -> Path:
        folder = tmp_path_factory.mktemp("kafka")
        make_edge_files.write_files(folder)
        return folder

    return ask_all(background, edge_stage, fresh)


def raftlog_dump(arguments: Call, folder: Path) -> bytes:
    """What `raftlog dump-log` prints on standard output."""
    captured = io.BytesIO()
    out = io.TextIOWrapper(captured, encoding="utf-8", write_through=True)
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        command_line.main(["dump-log", *arguments])
        sys.stdout.flush()
    return captured.getvalue()


def first_difference(theirs: bytes, ours: bytes) -> str:
    """The first line at which two outputs part, from a little before the byte that differs."""
    for number, (expected, found) in enumerate(zip(theirs.split(b"\n"), ours.split(b"\n"), strict=False), 1):
        if expected != found:
            at = next(
                (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), len(expected)
            )
            start = max(0, min(at, len(found)) - 60)
            return f"line {number}: Kafka …{expected[start : at + 80]!r}, raftlog …{found[start : at + 80]!r}"
    return f"Kafka {len(theirs)} bytes, raftlog {len(ours)} bytes: {theirs[-80:]!r}, {ours[-80:]!r}"


def left_to_kafka(arguments: Call) -> bool:
    """Whether raftlog does not set out to print what the release prints."""
    file = Path(arguments[-1]) if arguments else Path()
    different = file.suffix in READ_BY_RAFTLOG_ALONE or file.parent.name in DIFFERENT_ON_PURPOSE
    return different or not NOT_REPRODUCED.keys().isdisjoint(arguments)


def differences(dialect: str, stage: Stage, dumps: list[Dump]) -> list[str]:
    """Every call that raftlog answers otherwise than the release does; where the release died, only asks."""
    found = []
    for arguments, dump in zip(stage.calls, dumps, strict=True):
        if left_to_kafka(arguments):
            continue
        ours = raftlog_dump(("--dialect", dialect, "--decode-corrupt", *arguments), stage.folder)
        if dump.exit == 0 and ours != dump.out:
            found.append(f"{' '.join(arguments)}\n    {first_difference(dump.out, ours)}")
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_corpus_is_printed_as_by_the_release(
    dialect: str, corpus_stage: Stage, corpus_answers: dict[str, Answers]
) -> None:
    """Every file a real Kafka wrote, in every shape of output that makes sense for it."""
    found = differences(dialect, corpus_stage, corpus_answers[dialect]())

    assert not found, f"{len(found)} of {len(corpus_stage.calls)} differ:\n" + "\n".join(found[:SHOWN])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_edge_cases_are_printed_as_by_the_release(
    dialect: str, edge_stage: Stage, edge_answers: dict[str, Answers]
) -> None:
    """Every odd or damaged file that the release survives; raftlog survives the others too."""
    found = differences(dialect, edge_stage, edge_answers[dialect]())

    assert not found, f"{len(found)} of {len(edge_stage.calls)} differ:\n" + "\n".join(found[:SHOWN])


def test_the_goldens_are_what_the_releases_print(edge_stage: Stage, edge_answers: dict[str, Answers]) -> None:
    """The committed outputs of the edge cases are those of the five releases, died or not."""
    golden = make_edge_files.DAMAGED
    entries = json.loads((golden / "manifest.json").read_text(encoding="utf-8"))
    kept = {(tuple(e["argv"]), dialect): e for e in entries for dialect in e["dialects"]}
    for dialect in DIALECTS:
        for arguments, dump in zip(edge_stage.calls, edge_answers[dialect](), strict=True):
            entry = kept[arguments, dialect]
            assert (golden / "expected" / entry["out"]).read_bytes() == dump.out, arguments
            assert entry["exit"] == dump.exit, arguments


@pytest.mark.parametrize("folder", corpus.FOLDERS)
def test_the_corpus_was_dumped_by_this_tool(folder: str, corpus_stage: Stage) -> None:
    """4.3.1, run here, repeats the outputs that came with the corpus."""
    expected = json.loads((corpus.GOLDEN / folder / "manifest.json").read_text(encoding="utf-8"))["expected"]
    dumped = [entry for entry in expected if entry["argv"][0] == "kafka-dump-log"]
    answers = dump_tool.dump_many("4.3", [entry["argv"][1:] for entry in dumped], corpus_stage.folder / folder)

    for entry, dump in zip(dumped, answers, strict=True):
        assert dump.out == (corpus.GOLDEN / folder / "expected" / entry["out"]).read_bytes(), entry["out"]
        assert dump.exit == entry["exit"], entry["out"]
