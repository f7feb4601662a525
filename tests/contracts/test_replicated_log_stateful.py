# SPDX-License-Identifier: Apache-2.0
"""Any sequence of operations leaves a log as it leaves a plain list of records."""

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from raftlog.errors import (
    InvalidRecordError,
    InvalidSnapshotIdError,
    NonContiguousAppendError,
    OffsetOutOfRangeError,
    TruncationBelowHighWatermarkError,
)
from raftlog.log.replicated_log import Isolation
from raftlog.log.state import LogState
from raftlog.offsets import OffsetAndEpoch, ValidationKind
from raftlog.testing.contracts.log_harness import KEEP_ALL
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.contracts.log_harnesses import HARNESSES

MAX_EPOCH = 9
counts = st.lists(st.integers(1, 3), min_size=1, max_size=3)
small = st.integers(0, 3)
anywhere = st.integers(-1, 60)


@attrs.frozen
class ListedRecord:
    """One record of the model: the epoch it was written in, and its batch's first offset and size in records."""

    epoch: int
    base_offset: int
    count: int

    @property
    def batch(self) -> bytes:
        """The whole batch that the record is in."""
        return raft_batch(self.base_offset, self.epoch, self.count)


class LogAgainstList(RuleBasedStateMachine):
    """A log beside a list, in which a record's index is its offset; what lies below the log's start stays in it."""

    implementation = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.harness = HARNESSES[self.implementation](KEEP_ALL)
        self.records: list[ListedRecord | None] = []
        self.start = self.high_watermark = self.flushed = 0
        self.entered_epoch = 0
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.states: list[tuple[LogState, str]] = []

    @property
    def log(self):  # type: ignore[no-untyped-def]
        return self.harness.log

    @property
    def end(self) -> int:
        return len(self.records)

    def record_epoch(self, offset: int) -> int:
        """The epoch of the record at an offset, or that of the snapshot that covers it."""
        record = self.records[offset] if 0 <= offset < self.end else None
        if record is not None:
            return record.epoch
        return max((each.epoch for each in self.snapshots if each.offset == offset + 1), default=0)

    @property
    def last_epoch(self) -> int:
        return max(self.entered_epoch, self.record_epoch(self.end - 1))

    def batch_start(self, offset: int) -> int:
        record = self.records[offset] if 0 <= offset < self.end else None
        return offset if record is None else record.base_offset

    def add(self, epoch: int, count: int) -> bytes:
        """Add a batch to the list, and return its bytes."""
        records = [ListedRecord(epoch, self.end, count)] * count
        self.records += records
        return records[0].batch

    def cut(self, end: int) -> None:
        del self.records[end:]
        self.entered_epoch = 0
        self.flushed = min(self.flushed, end)

    @rule(counts=counts, more_epochs=small)
    def append_as_leader(self, counts: list[int], more_epochs: int) -> None:
        epoch = min(MAX_EPOCH, max(1, self.last_epoch + more_epochs))
        first = self.end
        data = b"".join(self.add(epoch, count) for count in counts)
        info = self.log.append_as_leader(data, epoch)
        assert (info.first_offset, info.last_offset) == (first, self.end - 1)
        self.entered_epoch = 0

    @rule(counts=counts, more_epochs=small, cut=st.integers(0, 60))
    def append_as_follower(self, counts: list[int], more_epochs: int, cut: int) -> None:
        least = self.last_epoch if self.end else 0  # An epoch without records gives way in an empty log.
        epoch = min(MAX_EPOCH, max(1, least + more_epochs))
        first = self.end
        data = b"".join(self.add(epoch, count) for count in counts)
        too_new = raft_batch(self.end, epoch + 1)
        torn = raft_batch(self.end, epoch)[:cut]
        assert self.log.append_as_follower(data + (too_new if cut % 2 else torn), epoch).first_offset == first
        self.entered_epoch = 0

    @rule(gap=st.integers(-3, 3), fewer_epochs=small)
    def append_what_does_not_fit(self, gap: int, fewer_epochs: int) -> None:
        epoch = self.last_epoch - fewer_epochs
        if (gap == 0 and (fewer_epochs == 0 or self.end == 0)) or epoch < 0 or self.end + gap < 0:
            return
        with pytest.raises((NonContiguousAppendError, InvalidRecordError)):
            self.log.append_as_follower(raft_batch(self.end + gap, epoch), MAX_EPOCH)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule(offset=anywhere)
    def update_high_watermark(self, offset: int) -> None:
        self.log.update_high_watermark(offset)
        self.high_watermark = max(self.high_watermark, min(offset, self.end))

    @rule(more_epochs=small)
    def initialize_leader_epoch(self, more_epochs: int) -> None:
        epoch = min(MAX_EPOCH, self.last_epoch + more_epochs)
        is_known = epoch == self.last_epoch
        self.log.initialize_leader_epoch(epoch)
        if not is_known:
            self.entered_epoch = epoch

    @rule(offset=anywhere)
    def truncate_to(self, offset: int) -> None:
        end = self.batch_start(offset) if offset < self.end else self.end
        if min(offset, end) < self.high_watermark:
            with pytest.raises(TruncationBelowHighWatermarkError):
                self.log.truncate_to(offset)
            return
        self.log.truncate_to(offset)
        self.cut(end)

    @rule(offset=anywhere, epoch=st.integers(1, MAX_EPOCH))
    def truncate_to_end_offset(self, offset: int, epoch: int) -> None:
        common = self.log.end_offset_for_epoch(epoch)  # Checked against the list after each step.
        asked = min(offset, common.offset) if common.epoch == epoch else common.offset
        end = self.batch_start(asked) if asked < self.end else self.end
        if min(asked, end) < self.high_watermark:
            with pytest.raises(TruncationBelowHighWatermarkError):
                self.log.truncate_to_end_offset(OffsetAndEpoch(offset, epoch))
            return
        assert self.log.truncate_to_end_offset(OffsetAndEpoch(offset, epoch)) == end
        self.cut(end)

    @rule(offset=anywhere, other_epoch=small)
    def create_snapshot(self, offset: int, other_epoch: int) -> None:
        snapshot_id = OffsetAndEpoch(offset, self.record_epoch(offset - 1) + (other_epoch == 3))
        latest = max(self.snapshots, default=OffsetAndEpoch(-1, -1))
        if offset < self.start or snapshot_id in self.snapshots:
            assert self.log.create_snapshot(snapshot_id) is None
        elif (
            offset > self.high_watermark
            or self.batch_start(offset) != offset
            or snapshot_id.epoch != self.record_epoch(offset - 1)
            or offset < latest.offset
        ):
            with pytest.raises(InvalidSnapshotIdError):
                self.log.create_snapshot(snapshot_id)
        else:
            self.freeze(self.log.create_snapshot(snapshot_id))

    @rule(data=st.data())
    def create_a_snapshot_of_what_is_committed(self, data: st.DataObject) -> None:
        latest = max((each.offset for each in self.snapshots), default=0)
        ends = [
            each
            for each in range(max(latest, self.start) + 1, self.high_watermark + 1)
            if self.batch_start(each) == each
        ]
        if ends:
            offset = data.draw(st.sampled_from(ends))
            self.freeze(self.log.create_snapshot(OffsetAndEpoch(offset, self.record_epoch(offset - 1))))

    def freeze(self, writer) -> None:  # type: ignore[no-untyped-def]
        data = snapshot_bytes(writer.snapshot_id)
        with writer:
            writer.append(data)
            writer.freeze()
        self.snapshots[writer.snapshot_id] = data
        self.high_watermark = max(self.high_watermark, self.proven)

    @property
    def proven(self) -> int:
        """Up to where snapshots of this very log go."""
        ends = [self.start]
        for snapshot_id in self.snapshots:
            offsets = range(self.start, min(snapshot_id.offset, self.end))
            ends += [each + 1 for each in offsets if self.record_epoch(each) == snapshot_id.epoch]
        return max(ends)

    @rule(ahead=small, more_epochs=small, restarts=st.booleans())
    def install_snapshot(self, ahead: int, more_epochs: int, restarts: bool) -> None:
        snapshot_id = OffsetAndEpoch(self.end + ahead, min(MAX_EPOCH, max(1, self.last_epoch + more_epochs)))
        diverges = self.end > self.start and snapshot_id.epoch > self.last_epoch
        if ahead == 0 and not diverges:
            return
        self.freeze(self.log.create_snapshot_unchecked(snapshot_id))
        if restarts:
            assert self.log.truncate_to_latest_snapshot()
        else:
            self.harness.crash()
        self.restart_at_snapshot(snapshot_id)

    def restart_at_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self.records = [None] * snapshot_id.offset
        self.entered_epoch = 0
        self.start = self.high_watermark = self.flushed = snapshot_id.offset
        self.snapshots = {each: data for each, data in self.snapshots.items() if each >= snapshot_id}

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def delete_before_snapshot(self, data: st.DataObject) -> None:
        snapshot_id = data.draw(st.sampled_from(sorted(self.snapshots)))
        moves = self.start < snapshot_id.offset <= self.high_watermark
        assert self.log.delete_before_snapshot(snapshot_id) == moves
        if moves:
            self.start = snapshot_id.offset
            self.flushed = max(self.flushed, self.start)
            self.snapshots = {each: data for each, data in self.snapshots.items() if each >= snapshot_id}

    @rule()
    def reopen(self) -> None:
        self.harness.reopen()
        self.opened()
        assert self.log.end_offset.offset == self.end

    @rule()
    def crash(self) -> None:
        self.harness.crash()
        latest = max(self.snapshots, default=OffsetAndEpoch(0, 0))
        if latest.offset > max(self.flushed, self.start) and self.log.start_offset == latest.offset:
            # What it stands for was committed, and not flushed here.
            self.restart_at_snapshot(latest)
            return
        end = self.log.end_offset.offset
        assert self.flushed <= end <= self.end
        assert self.batch_start(end) == end
        del self.records[end:]
        self.opened()

    def opened(self) -> None:
        self.entered_epoch = 0
        self.flushed = self.end
        self.high_watermark = self.proven

    @rule(offset=anywhere, isolation=st.sampled_from(Isolation), max_size_bytes=st.integers(-1, 400))
    def read(self, offset: int, isolation: Isolation, max_size_bytes: int) -> None:
        if not self.start <= offset <= self.end:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, isolation, max_size_bytes)
            return
        limit = self.high_watermark if isolation is Isolation.COMMITTED else self.end
        fetched = self.log.read(offset, isolation, max_size_bytes)
        expected = self.batches(self.batch_start(offset), limit)
        if not expected:
            assert (len(fetched.records), fetched.start_offset_metadata.offset) == (0, limit)
            return
        size = max(max_size_bytes, len(expected[0]))
        # Fewer bytes than that may come only where a segment ends, which is where a batch ends.
        whole = b"".join(expected)
        found = bytes(fetched.records)
        assert found == whole[: len(found)]
        assert len(expected[0]) <= len(found) <= size
        ends = [sum(map(len, expected[:count])) for count in range(len(expected) + 1)]
        assert len(found) in (size, *ends)
        assert fetched.start_offset_metadata.offset == self.batch_start(offset)

    def batches(self, offset: int, limit: int) -> list[bytes]:
        """The batches from an offset on that end at or below a limit."""
        found = []
        while offset < limit and (record := self.records[offset]) is not None and offset + record.count <= limit:
            found.append(record.batch)
            offset += record.count
        return found

    @invariant()
    def pointers_are_the_lists(self) -> None:
        log = self.log
        assert log.start_offset == self.start
        assert log.end_offset.offset == self.end
        assert log.high_watermark.offset == self.high_watermark
        assert self.flushed <= log.flushed_offset <= self.end
        assert log.last_fetched_epoch == self.last_epoch
        assert log.snapshot_ids == tuple(sorted(self.snapshots))

    @invariant()
    def states_are_values(self) -> None:
        """A state has the log's properties at that moment, and does not change with the log."""
        state = self.log.state
        assert (state.start_offset, state.end_offset, state.high_watermark) == (
            self.start,
            self.end,
            self.high_watermark,
        )
        assert (state.last_fetched_epoch, state.snapshot_ids) == (self.last_epoch, tuple(sorted(self.snapshots)))
        self.states.append((state, repr(state)))
        assert all(repr(earlier) == said for earlier, said in self.states)

    @invariant()
    def contents_are_the_lists(self) -> None:
        offset, found = self.start, b""
        while offset < self.end:
            fetched = self.log.read(offset, Isolation.UNCOMMITTED, 0)
            assert bytes(fetched.records) == self.records[offset].batch  # type: ignore[union-attr]
            found += fetched.records
            offset = self.records[offset].base_offset + self.records[offset].count  # type: ignore[union-attr]

    @invariant()
    def epochs_are_the_lists(self) -> None:
        starts: dict[int, int] = {}
        for offset in range(self.start, self.end):
            starts.setdefault(self.record_epoch(offset), offset)
        if self.entered_epoch:
            starts.setdefault(self.entered_epoch, self.end)
        earliest = min(self.snapshots, default=None)
        for epoch in range(MAX_EPOCH + 2):
            above = [start for each, start in starts.items() if each > epoch]
            known = [each for each in starts if each <= epoch]
            if not above:
                expected = OffsetAndEpoch(self.end, self.last_epoch)
            else:
                expected = OffsetAndEpoch(min(above), max(known, default=epoch))
            if earliest and earliest.offset == expected.offset and expected.epoch == epoch:
                expected = earliest
            assert self.log.end_offset_for_epoch(epoch) == expected

    @invariant()
    def own_positions_are_valid(self) -> None:
        """Whoever has this very log may fetch on from any offset in it, or is sent a snapshot of a later epoch."""
        earliest = min(self.snapshots, default=OffsetAndEpoch(0, 0))
        for offset in range(self.start, self.end + 1):
            epoch = self.record_epoch(offset - 1)
            verdict = self.log.validate_offset_and_epoch(offset, epoch)
            assert verdict.kind is (
                ValidationKind.SNAPSHOT if offset > 0 and epoch < earliest.epoch else ValidationKind.VALID
            )


def run(implementation: str, max_examples: int, step_count: int) -> None:
    """Run the machine on an implementation."""
    machine = type("Machine", (LogAgainstList,), {"implementation": implementation})
    steps = settings(max_examples=max_examples, stateful_step_count=step_count, deadline=None)
    run_state_machine_as_test(machine, settings=steps)


@pytest.mark.parametrize("implementation", HARNESSES)
def test_a_log_is_a_list_of_records(implementation: str) -> None:
    """After any steps, crashes among them, the log holds and answers what a list of records would."""
    run(implementation, max_examples=25, step_count=20)


@pytest.mark.parametrize(
    "examples", [pytest.param(60, marks=pytest.mark.slow), pytest.param(600, marks=pytest.mark.volume)]
)
@pytest.mark.parametrize("implementation", HARNESSES)
def test_a_log_is_a_list_of_records_for_long(implementation: str, examples: int) -> None:
    """After many more steps the log still holds and answers what a list of records would."""
    run(implementation, max_examples=examples, step_count=40)
