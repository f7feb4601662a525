# SPDX-License-Identifier: Apache-2.0
"""``raftlog dump-log --dialect V`` prints what Kafka's release V printed, on real files and on damaged ones.

The outputs were kept by ``python -m tests.kafka.record_goldens``; ``tests/kafka`` compares with Kafka itself, on more.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden_files import GOLDEN
from tests.kafka.comparison import EDGE_CASES, FILE_NAMES, Answer, differences, is_compared
from tests.tools.console import dump

DAMAGED = GOLDEN / "damaged"
COMPARED_ON_DAMAGED_FILES = {"3.9": 454, "4.0": 458, "4.1": 467, "4.2": 467, "4.3": 470}
"""How many outputs of each release are compared; of the others, the release died, or they are left to Kafka."""
COMPARED_ON_REAL_FILES = {"3.9": 135, "4.0": 136, "4.1": 136, "4.2": 136}
"""Those of 4.3 are in ``tests/tools/dump/test_kafka_text.py``."""


def damaged_answers(dialect: str) -> list[Answer]:
    """The output of a release for the edge cases' files."""
    entries = json.loads((DAMAGED / "manifest.json").read_text("utf-8"))
    return [answer(entry, DAMAGED / "expected") for entry in entries if dialect in entry["dialects"]]


def real_answers(dialect: str) -> Iterator[tuple[Path, list[Answer]]]:
    """The output of a release for files of a real Kafka, by the folder in which it was called."""
    expected = GOLDEN / "dialects" / dialect
    entries = json.loads((expected / "manifest.json").read_text("utf-8"))
    for folder in sorted({entry["cwd"] for entry in entries}):
        yield GOLDEN / folder, [answer(entry, expected) for entry in entries if entry["cwd"] == folder]


def answer(entry: dict[str, object], expected: Path) -> Answer:
    """A call of a manifest, with what was printed."""
    arguments = entry["argv"]
    assert isinstance(arguments, list)
    return tuple(arguments), (expected / str(entry["out"])).read_bytes() if entry["exit"] == 0 else None


@pytest.mark.parametrize(("dialect", "compared"), COMPARED_ON_DAMAGED_FILES.items())
def test_damaged_files_are_printed_as_by_the_release(dialect: str, compared: int) -> None:
    """Every odd or damaged file that the release survived is printed the same; raftlog survives the others too."""
    answers = damaged_answers(dialect)
    assert list(differences(dialect, DAMAGED, answers)) == []
    assert sum(map(is_compared, answers)) == compared


@pytest.mark.parametrize(("dialect", "compared"), COMPARED_ON_REAL_FILES.items())
def test_real_files_are_printed_as_by_the_release(dialect: str, compared: int) -> None:
    """Every file of the selection is printed the same."""
    answers = dict(real_answers(dialect))
    assert [line for folder in answers for line in differences(dialect, folder, answers[folder])] == []
    assert sum(is_compared(each) for folder in answers for each in answers[folder]) == compared


def test_every_exception_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edge case and each file name that is left to Kafka is printed otherwise by raftlog, in one call at least."""
    monkeypatch.chdir(DAMAGED)
    needed = set()
    for call, theirs in damaged_answers("4.3"):
        name = call[-1] if call else ""
        if theirs is not None and dump("--decode-corrupt", *call).output != theirs:
            needed |= {name, Path(name).parent.name}
    assert EDGE_CASES.keys() | FILE_NAMES.keys() <= needed
