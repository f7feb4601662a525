# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/dump-log.md describes what kafka-dump-log and raftlog do.

The oracle is the tool of five releases. Raftlog's behaviour, and a case for each row, are tested without Kafka too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.kafka import dump_tool
from tests.kafka.damage_cases import CRC_BELIEVED, DEEP, Damage, Look, cases
from tests.kafka.dump_tool import DIALECTS, Dump
from tests.tools.console import dump
from tests.tools.made_logs import LOG_NAME

DOCUMENT = ROOT / "docs/dump-log.md"
CASES = {f"{case.row}: {case.name}": case for case in cases()}
LINE = re.compile(
    r"(?P<kind>baseOffset: |offset: |\| offset: |Found )(?P<number>-?\d+)"
    r"(?:.* size: (?P<size>\d+) .* isvalid: (?P<valid>true|false)$)?"
)
KINDS = {"baseOffset: ": "", "offset: ": "m", "| offset: ": "|", "Found ": ""}
JAVA_MISSING = pytest.mark.skipif(
    bool(dump_tool.missing_programs()),
    reason=f"Kafka's dump tool needs {', '.join(dump_tool.missing_programs())} (Java 17 and Maven)",
)
Key = tuple[str, tuple[str, ...]]
"""A case's name, and the options that are given."""


def rows() -> list[str]:
    """The first column of the document's first table."""
    damage, _, _ = DOCUMENT.read_text().partition("\n## ")
    lines = [line for line in damage.splitlines() if line.startswith("|")]
    return [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]]


def stem(line: str) -> str:
    """Name a line by its kind and its offset, or by the number of invalid bytes."""
    found = LINE.match(line)
    assert found is not None, line
    return f"{KINDS[found['kind']]}{found['number']}{'-invalid' if found['kind'] == 'Found ' else ''}"


def token(line: str, *, is_cut: bool) -> str:
    """Make a line's word of an outline."""
    found = LINE.match(line)
    if is_cut or found is None or found["valid"] is None:
        return stem(line) + (":cut" if is_cut else "")
    return stem(line) + (":true" if found["valid"] == "true" else f":{found['size']}:false")


def lines_of(output: bytes) -> list[str]:
    """The lines after the file's name and its first offset; the last one is empty if the output ends in a newline."""
    return output.decode().split("\n")[2:]


def outline(output: bytes, exception: str | None = None) -> str:
    """Name the lines of a dump, in order, and the class of the exception that ended it."""
    *whole, cut = lines_of(output)
    words = [token(line, is_cut=False) for line in whole]
    words += [token(cut, is_cut=True)] if cut else []
    words += [exception.split(":")[0].split(".")[-1]] if exception is not None else []
    return " ".join(words)


def assert_shared_lines_are_equal(theirs: bytes, ours: bytes) -> None:
    """A line that both have is the same in every byte, as far as Kafka came."""
    *whole, cut = lines_of(theirs)
    kept = {stem(line): line for line in lines_of(ours) if line}
    for line in whole:
        if kept.get(stem(line), line) != line:
            pytest.fail(f"{line}\n{kept[stem(line)]}")
    if cut:
        assert kept.get(stem(cut), cut).startswith(cut)


def write(folder: Path, case: Damage) -> Path:
    """Write a case's file."""
    path = folder / LOG_NAME
    path.write_bytes(case.data)
    return path


def looks_of(dialect: str) -> Iterator[tuple[str, Damage, Look]]:
    """The cases of a release line."""
    for name, case in CASES.items():
        for look in case.looks:
            if dialect in look.dialects:
                yield name, case, look


@pytest.fixture(scope="module", params=DIALECTS)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[Key, Dump]]:
    """A release line, and what its tool makes of every case."""
    folder = tmp_path_factory.mktemp("kafka")
    dialect: str = request.param
    calls = {}
    for number, (name, case, look) in enumerate(looks_of(dialect)):
        (folder / f"{number}").mkdir()
        write(folder / f"{number}", case)
        calls[name, look.options] = [*look.options, "--files", f"{number}/{LOG_NAME}"]
    return dialect, dict(zip(calls, dump_tool.dump_many(dialect, list(calls.values()), folder), strict=True))


def test_each_row_of_the_document_has_a_case() -> None:
    """The rows of the table are those of the cases; a row that is added or reworded needs a case."""
    assert sorted(rows()) == sorted({case.row for case in CASES.values()})


def test_no_two_cases_have_one_name() -> None:
    """Each case is run."""
    assert len(CASES) == len(list(cases()))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", CASES)
def test_raftlog_does_what_the_row_says(name: str, dialect: str, tmp_path: Path) -> None:
    """Its lines, its exit code and the rule that is named are the case's."""
    case = CASES[name]
    path = write(tmp_path, case)
    for look in case.looks:
        if dialect not in look.dialects:
            continue
        outcome = dump("--dialect", dialect, *look.options, path)
        assert outline(outcome.output) == look.ours
        assert outcome.exit_code == look.exit_code, outcome.messages
        assert (f"[{case.rule}]" in outcome.messages) == (look.exit_code != 0), outcome.messages
        assert look.says in outcome.text


@JAVA_MISSING
@pytest.mark.kafka
@pytest.mark.parametrize("name", CASES)
def test_kafka_does_what_the_row_says(name: str, kafka: tuple[str, dict[Key, Dump]], tmp_path: Path) -> None:
    """Its lines and its exception are the case's, and a line that raftlog prints too is the same byte for byte."""
    dialect, dumps = kafka
    case = CASES[name]
    path = write(tmp_path, case)
    for look in case.looks:
        if dialect not in look.dialects:
            continue
        theirs = dumps[name, look.options]
        assert outline(theirs.out, theirs.exception) == look.kafka
        assert theirs.exit == (0 if theirs.exception is None else 1)
        assert_shared_lines_are_equal(theirs.out, dump("--dialect", dialect, *look.options, path).output)


@JAVA_MISSING
@pytest.mark.kafka
def test_decode_corrupt_gives_the_records_that_kafka_gives(kafka: tuple[str, dict[Key, Dump]], tmp_path: Path) -> None:
    """With `--decode-corrupt`, a batch whose length is trusted is printed with its records, if Kafka reads them."""
    dialect, dumps = kafka
    compared = 0
    for name, case in CASES.items():
        theirs = dumps.get((name, DEEP))
        if case.row == CRC_BELIEVED and theirs is not None and theirs.exception is None:
            ours = dump("--dialect", dialect, *DEEP, "--decode-corrupt", write(tmp_path, case)).output
            assert lines_of(ours) == lines_of(theirs.out), name
            compared += 1
    assert compared > 5
