# SPDX-License-Identifier: Apache-2.0
"""A survey of a segment: damage and what is lost to it, every byte's account, live files, and the real Kafka's logs."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Severity
from raftlog.storage.reading.file_source import FileSource
from raftlog.storage.reading.readable_bytes import BLOCK_SIZE
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.finding_limit import MOST_OF_A_RULE
from raftlog.tools.auditing.survey.segment_survey import survey_segment
from raftlog.tools.auditing.survey.tasks import find_tasks
from tests.golden_files import GOLDEN
from tests.strategies import legacy_batches, legacy_message, logs, mutated
from tests.tools.auditing.made_segments import TINY_CHUNK, data_batch, finding, places, raft_log, survey

_CLEAN = [
    GOLDEN / scenario / "data"
    for scenario in ("dynamic-quorum", "static-upgrade", "wire", "data-topics", "groups", "mirror", "killed")
]


def _segments(root: Path) -> list[SurveyTask]:
    directories = sorted({str(path.parent) for path in root.rglob("*.log")})
    found = find_tasks(directories)
    return [task for task in found if isinstance(task, SurveyTask) and task.kind is FileKind.LOG]


def _survey_file(task: SurveyTask) -> FileEvidence:
    indexes = {kind: Path(path).read_bytes() for kind, path in task.indexes.items()}
    with FileSource(task.path) as source:
        return survey_segment(task, source, indexes)


@pytest.mark.parametrize("root", _CLEAN, ids=lambda root: root.parent.name)
def test_real_logs_have_nothing_wrong(root: Path) -> None:
    """No segment that a real Kafka wrote has a finding above harmless; evidence survives its own text."""
    tasks = _segments(root)
    assert tasks
    for task in tasks:
        evidence = _survey_file(task)
        assert [str(found) for found in evidence.findings if found.severity is not Severity.HARMLESS] == []
        assert FileEvidence.from_json(evidence.to_json()) == evidence


def test_logs_that_were_damaged_on_purpose() -> None:
    """Each golden log that is broken is surveyed to its end, with every byte accounted for."""
    for task in _segments(GOLDEN / "damaged"):
        coverage = _survey_file(task).coverage
        assert coverage is not None
        counted = coverage.explained_bytes + coverage.damaged_bytes + coverage.padding_bytes
        assert counted == Path(task.path).stat().st_size


@settings(max_examples=60, deadline=None)
@given(logs(), st.data(), st.booleans(), st.sampled_from([TINY_CHUNK, None]))
def test_any_bytes_are_surveyed(
    batches: list[bytes], data: st.DataObject, is_raft: bool, chunk_size: int | None
) -> None:
    """Whatever a log holds, nothing is raised, every byte is accounted for, and damage has a rule and a place."""
    log = b"".join(batches)
    log = data.draw(mutated(log)) if data.draw(st.booleans()) else log
    log += data.draw(st.sampled_from([b"", b"\0" * 20]) | legacy_batches())
    evidence = survey(log, is_raft=is_raft, chunk_size=chunk_size)
    coverage = evidence.coverage
    assert coverage is not None
    assert coverage.explained_bytes + coverage.damaged_bytes + coverage.padding_bytes == len(log)
    sized = [found for found in evidence.findings if found.size_bytes]
    assert sum(found.size_bytes for found in sized) == coverage.damaged_bytes + coverage.padding_bytes
    assert all(found.position is not None for found in sized)
    assert FileEvidence.from_json(evidence.to_json()) == evidence


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=3, max_size=8), st.data(), st.sampled_from([TINY_CHUNK, None]))
def test_damage_reports_the_lost_records(counts: list[int], data: st.DataObject, chunk_size: int | None) -> None:
    """A flipped bit under a CRC is one finding: its batch's bytes, and its offsets. There is no gap in addition."""
    batches = raft_log(counts, batches_per_epoch=100)
    index = data.draw(st.integers(1, len(batches) - 2))
    damaged = bytearray(batches[index])
    damaged[data.draw(st.integers(21, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    position, offset = sum(map(len, batches[:index])), int.from_bytes(damaged[:8], "big")
    size = len(damaged)
    batches[index] = bytes(damaged)
    evidence = survey(b"".join(batches), chunk_size=chunk_size)
    assert places(evidence) == [("batch-crc", position, offset)]
    last = offset + counts[index] - 1
    lost = f"offset {offset} is lost" if counts[index] == 1 else f"offsets {offset} to {last} are lost"
    assert evidence.findings[0].reason == f"the stored CRC is not that of the bytes; {lost}"
    assert evidence.findings[0].size_bytes == size


def test_damage_at_the_end_and_in_a_row() -> None:
    """Records after the last sound batch are lost with damage there; consecutive damage is reported as such."""
    batches = raft_log([1, 2, 2, 2, 2], batches_per_epoch=100)
    for index in (2, 3):
        batches[index] = batches[index][:-1] + b"\x55"
    reasons = [found.reason for found in survey(b"".join(batches)).findings]
    assert (
        reasons == ["the stored CRC is not that of the bytes; offsets 3 to 6 are lost, with 1 more faults in a row"] * 2
    )
    reasons = [found.reason for found in survey(b"".join(batches[:3])).findings]
    assert reasons == ["the stored CRC is not that of the bytes; what was from offset 3 on is lost with it"]
    compacted = [data_batch(0), data_batch(5), data_batch(6), data_batch(7)]
    compacted[2] = compacted[2][:-1] + b"\x55"
    found = finding(survey(b"".join(compacted), is_raft=False), "batch-crc")
    assert found.reason.endswith("; offset 6 is lost, unless compaction removed them")


def test_bytes_put_between_batches_lose_nothing() -> None:
    """Damage between batches with consecutive offsets has lost none."""
    log = data_batch(0) + b"\x77" * 30 + data_batch(1)
    found = finding(survey(log), "batch-overrun")
    assert (found.position, found.size_bytes, found.offset) == (len(data_batch(0)), 30, 1)
    assert found.reason.endswith("; no offset is lost")


@pytest.mark.parametrize(("tail", "rule"), [(data_batch(2)[:-5], "tail-torn"), (b"\0" * 4096, "tail-zero")])
def test_the_end_of_a_file(tail: bytes, rule: str) -> None:
    """A torn tail and zero padding are what they are, with their bytes; the log before them is whole."""
    log = data_batch(0) + data_batch(1)
    evidence = survey(log + tail)
    assert [(found.rule, found.position, found.size_bytes) for found in evidence.findings] == [
        (rule, len(log), len(tail))
    ]
    assert evidence.extent is not None
    assert evidence.extent.end_offset == 2


def test_an_empty_segment_has_no_findings() -> None:
    """An empty file has no extent, and nothing is wrong with it."""
    evidence = survey(b"")
    assert (evidence.findings, evidence.extent, evidence.epochs, evidence.blocks) == ((), None, (), ())


def test_findings_stay_few() -> None:
    """A log of nothing but damage has so many findings as there may be of a rule, and the number of the others."""
    bad = data_batch(0)[:-1] + b"\x55"
    evidence = survey(bad * 500)
    assert len(evidence.findings) == MOST_OF_A_RULE + 1
    assert evidence.findings[-1].reason == f"there are {500 - MOST_OF_A_RULE} more of these"


def test_old_messages_are_walked() -> None:
    """Messages of magic 0 and 1 are read, inner ones too; a log of raft has none."""
    log = legacy_message(1, 0, b"k", b"v")
    assert survey(log, is_raft=False).findings == ()
    assert [found.rule for found in survey(log).findings] == ["batch-magic"]
    inner = bytearray(legacy_message(1, 0, b"k", b"v"))
    inner[-1] ^= 1
    wrapped = legacy_message(1, 0, None, bytes(inner), attributes=1)
    assert [found.rule for found in survey(wrapped, is_raft=False).findings] == ["codec-stream"]


class _BadDisk(BufferSource):
    """Does not give its second block back."""

    def read_at(self, position: int, size: int) -> memoryview:
        if position < 2 * BLOCK_SIZE and position + size > BLOCK_SIZE:
            raise StorageError("a.log", f"read at position {position}", "Input/output error")
        return super().read_at(position, size)


class _LostDisk(BufferSource):
    """A file that is missing when its size is read again."""

    def size(self) -> int:
        raise StorageError("a.log", "stat", "Stale file handle")


def test_a_block_that_the_disk_does_not_give_back() -> None:
    """Batches around unreadable bytes are judged; the bytes are one finding, with the offsets that they held."""
    log = b"".join(data_batch(offset) for offset in range(300))
    evidence = survey(_BadDisk(memoryview(log)))
    found = finding(evidence, "file-unreadable")
    size = len(data_batch(0))
    first, last = BLOCK_SIZE // size, (2 * BLOCK_SIZE - 1) // size
    assert (found.position, found.size_bytes) == (first * size, (last - first + 1) * size)
    assert f"offsets {first} to {last} are lost" in found.reason
    assert len(evidence.findings) == 1
    assert evidence.extent is not None
    assert (evidence.extent.start_offset, evidence.extent.end_offset) == (0, 300)


def test_a_file_that_is_deleted_meanwhile() -> None:
    """A source that fails altogether is a finding; nothing is raised."""
    evidence = survey(_LostDisk(memoryview(data_batch(0))))
    assert [(found.rule, found.reason) for found in evidence.findings] == [
        ("file-unreadable", "stat failed: Stale file handle")
    ]


class _Growing(BufferSource):
    """Has more bytes whenever it is asked."""

    shown = 0

    def size(self) -> int:
        self.__class__.shown += 50
        return min(len(self.buffer), self.__class__.shown)

    def read_at(self, position: int, size: int) -> memoryview:
        return self.buffer[position : min(position + size, self.__class__.shown)]


def test_a_log_that_is_being_written() -> None:
    """Of a file that grows, whole batches are judged, and what is not whole yet is a torn tail at most."""
    _Growing.shown = 0
    evidence = survey(_Growing(memoryview(b"".join(data_batch(offset) for offset in range(9)))))
    assert {found.rule for found in evidence.findings} <= {"tail-torn"}
    assert evidence.extent is not None
