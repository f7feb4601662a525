# SPDX-License-Identifier: Apache-2.0
"""Data records of snapshots, compared as a set."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import MissingFileError
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.tools.auditing.agreement.snapshot_contents import (
    StoredValue,
    by_contents,
    first_difference,
    read_contents,
    record_name,
)
from raftlog.tools.auditing.evidence import Block, FileEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.survey import survey
from tests.golden_files import GOLDEN

_values = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=6)


def snapshot(name: str, number: int = 0) -> FileEvidence:
    """Return evidence with a digest of its own."""
    task = SurveyTask(Place("n1"), name, FileKind.SNAPSHOT)
    return FileEvidence(task, blocks=(Block(0, 1, hash(name) % 1000 + number, 0, 1, 0),))


def reader(contents: dict[str, list[bytes]]) -> object:
    """Return what reads snapshots of such values."""

    def read(file: FileEvidence) -> Iterable[StoredValue]:
        return (StoredValue(offset, None, value) for offset, value in enumerate(contents[file.task.path]))

    return read


@given(_values, _values)
def test_snapshots_are_equal_as_multisets(mine: list[bytes], theirs: list[bytes]) -> None:
    """The order does not matter, and the number does."""
    one, other = snapshot("one"), snapshot("other", 1000)
    found = first_difference(one, other, reader({"one": mine, "other": theirs}))  # type: ignore[arg-type]
    assert (found is None) == (sorted(mine) == sorted(theirs))
    groups = by_contents([one, other], reader({"one": mine, "other": theirs}))  # type: ignore[arg-type]
    assert len(groups) == (1 if found is None else 2)


def test_the_first_record_is_named() -> None:
    """That which the other lacks, with its offset here; or else that one is missing here."""
    read = reader({"one": [b"a", b"b", b"x"], "other": [b"b", b"a", b"a"], "less": [b"a"]})
    one, other, less = snapshot("one"), snapshot("other", 1000), snapshot("less", 2000)
    assert first_difference(one, other, read) == "the record at offset 2 is not in"  # type: ignore[arg-type]
    assert first_difference(less, other, read) == "it lacks a record of"  # type: ignore[arg-type]


def test_equal_digests_need_no_reading() -> None:
    """Snapshots of the same batches are not read again, and those that cannot be are not compared."""

    def fail(file: FileEvidence) -> Iterable[StoredValue]:
        raise MissingFileError(file.task.path, "open", "gone")

    assert first_difference(snapshot("one"), snapshot("one"), fail) is None
    assert first_difference(snapshot("one"), snapshot("other", 1000), fail) is None


def test_snapshots_of_a_real_quorum_are_equal() -> None:
    """Snapshots of one id, and bootstrap checkpoints, have the same records; others do not."""
    paths = sorted((GOLDEN / "dynamic-quorum/data").glob("*/*/*81-0000000003.checkpoint"))
    twins = [survey(SurveyTask(Place("n"), str(path), FileKind.SNAPSHOT)) for path in paths]
    assert len(twins) == 3
    assert len(by_contents(twins, read_contents)) == 1
    assert len({twin.batches_digest for twin in twins}) >= 1
    (other,) = (GOLDEN / "dynamic-quorum/data").glob("n2/*/*163-0000000004.checkpoint")
    later = survey(SurveyTask(Place("n"), str(other), FileKind.SNAPSHOT))
    found = first_difference(later, twins[0], read_contents)
    assert found is not None
    assert found.startswith("the ")


def test_metadata_records_have_a_name() -> None:
    """A reason names the type of a record and what it is about, and no secret."""
    level = b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    assert record_name(level) == "FEATURE_LEVEL_RECORD of metadata.version 30"
    fields = {"resourceType": 2, "resourceName": "t", "name": "sasl.jaas.config", "value": "sEcReT"}
    config = write_metadata_record(metadata_record("ConfigRecord", fields))
    assert record_name(config) == "CONFIG_RECORD of sasl.jaas.config of topic t"
    assert record_name(write_metadata_record(metadata_record("NoOpRecord", {}))) == "NO_OP_RECORD"
    assert record_name(b"\xff") == record_name(None) == "record"


@pytest.mark.parametrize("name", ["nowhere.checkpoint"])
def test_a_file_that_is_gone_is_not_compared(name: str, tmp_path: Path) -> None:
    """A snapshot that was deleted after its survey says nothing."""
    one, other = snapshot(str(tmp_path / name)), snapshot(str(tmp_path / "other"), 1000)
    assert first_difference(one, other, read_contents) is None
