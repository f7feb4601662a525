# SPDX-License-Identifier: Apache-2.0
"""A snapshot that is begun of a log says what the log said at its last offset."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import BatchTooLargeError, InvalidSnapshotIdError, OffsetOutOfRangeError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.log.snapshots import begin_snapshot
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.reader import RecordsSnapshotReader, verify_snapshot
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from tests.log.control_batches import LEADER_CHANGE, TIMESTAMP, Change, control_bytes, data_bytes, states_at, voters

STATIC = voters(8, 9)
CHANGES: list[tuple[ControlValue, Change]] = [
    (KRaftVersionRecord(1), (0, KRaftVersion.KRAFT_VERSION_1)),
    *((voters_record(voters(*ids)), (0, voters(*ids))) for ids in ((1, 2), (1, 2, 3), (1, 2, 3, 4))),
]
LOGS = {"memory": MemoryLog, "file": lambda: FileLog.open(MemoryFileSystem(), "log")}


def read_log(
    steps: list[int], make: Callable[[], MemoryLog | FileLog] = MemoryLog
) -> tuple[MemoryLog | FileLog, KRaftControlRecordStateMachine, list[Change]]:
    """Make a committed log of a batch a step, each of its own epoch, and what has read it, and what it says.

    Args:
        steps: a number of ``CHANGES``, or another one for a batch of two data records.
        make: an empty log.
    """
    log, changes = make(), []
    for epoch, step in enumerate([0, *steps], start=1):
        offset = log.end_offset.offset
        if step < len(CHANGES):
            value, (_, change) = CHANGES[step]
            log.append_as_leader(control_bytes(offset, [LEADER_CHANGE, value], epoch=epoch), epoch)
            changes.append((offset + 1, change))
        else:
            log.append_as_leader(data_bytes(offset, 2, epoch=epoch), epoch)
    log.flush()
    log.update_high_watermark(log.end_offset.offset)
    machine = KRaftControlRecordStateMachine(STATIC)
    update_state(machine, log)
    return log, machine, changes


@given(st.lists(st.integers(0, 5), max_size=6), st.data())
def test_a_snapshot_agrees_with_its_log(steps: list[int], data: st.DataObject) -> None:
    """Wherever a batch ends: id, kraft.version and voters are those of the last offset, and never the static ones."""
    log, machine, changes = read_log(steps)
    end_offset = 2 * data.draw(st.integers(1, len(steps) + 1))
    known = states_at(changes, 0, log.end_offset.offset)
    writer = begin_snapshot(log, machine, end_offset, now_ms=TIMESTAMP + 5)
    assert writer is not None
    assert log.latest_snapshot_id is None
    with writer:
        writer.append([b"state"], TIMESTAMP + 5)
        writer.freeze(TIMESTAMP + 5)
    snapshot_id = OffsetAndEpoch(end_offset, end_offset // 2)
    assert log.snapshot_ids == (snapshot_id,)
    raw = log.read_snapshot(snapshot_id)
    assert raw is not None
    header = RecordsSnapshotReader.of(raw).header
    assert (header.voter_set, header.kraft_version) == known[end_offset - 1]
    assert header.last_contained_log_timestamp == TIMESTAMP
    verify_snapshot(raw, snapshot_id)
    assert machine.start_offset == end_offset - 1
    for offset in range(end_offset - 1, log.end_offset.offset):
        assert (machine.voter_set_at_offset(offset), machine.kraft_version_at_offset(offset)) == known[offset]
    with pytest.raises(OffsetOutOfRangeError):
        machine.voter_set_at_offset(end_offset - 2)
    assert begin_snapshot(log, machine, end_offset, now_ms=TIMESTAMP) is None


@pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)
def test_unfrozen_snapshots_are_forgotten(make: Callable[[], MemoryLog | FileLog]) -> None:
    """Until the freeze nothing is listed and nothing trimmed; the next snapshot may be of the same id."""
    log, machine, _ = read_log([1, 5], make)
    for time in (TIMESTAMP, None):
        writer = begin_snapshot(log, machine, 4, now_ms=TIMESTAMP, last_contained_log_timestamp=time)
        assert writer is not None
        writer.append([b"state"], TIMESTAMP)
        writer.close()
        assert (log.snapshot_ids, machine.start_offset) == ((), -1)


def test_where_no_snapshot_can_be() -> None:
    """It is refused beyond log, high watermark or what was read, and inside a batch; below the log start it is None."""
    log, machine, _ = read_log([1, 5, 5])
    log.append_as_leader(data_bytes(8, 2, epoch=4), 4)
    for end_offset, error in (
        (11, OffsetOutOfRangeError),
        (10, OffsetOutOfRangeError),
        (3, InvalidSnapshotIdError),
    ):
        with pytest.raises(error):
            begin_snapshot(log, machine, end_offset, now_ms=TIMESTAMP)
    update_state(machine, log)
    with pytest.raises(InvalidSnapshotIdError):
        begin_snapshot(log, machine, 10, now_ms=TIMESTAMP)
    writer = begin_snapshot(log, machine, 6, now_ms=TIMESTAMP)
    assert writer is not None
    with writer:
        writer.freeze(TIMESTAMP)
    with pytest.raises(OffsetOutOfRangeError):
        begin_snapshot(log, machine, 4, now_ms=TIMESTAMP)
    assert log.delete_before_snapshot(OffsetAndEpoch(6, 3))
    for end_offset in (-1, 0, 2, 6):
        assert begin_snapshot(log, machine, end_offset, now_ms=TIMESTAMP) is None


def test_voters_that_do_not_fit_leave_nothing() -> None:
    """If the first batch cannot be written, the raw snapshot is closed."""
    file_system = MemoryFileSystem()
    log, machine, _ = read_log([1], lambda: FileLog.open(file_system, "log"))
    before = file_system.contents().keys()
    with pytest.raises(BatchTooLargeError):
        begin_snapshot(log, machine, 4, now_ms=TIMESTAMP, max_batch_size_bytes=100)
    assert file_system.contents().keys() == before
