# SPDX-License-Identifier: Apache-2.0
"""Any sequence of operations, restarts, crashes and rot leaves a log in files as it leaves a list of batches."""

import random

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from raftlog.errors import TruncationBelowHighWatermarkError
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import DIRECTORY, flip, install_snapshot, make_snapshot, open_log

counts = st.lists(st.integers(1, 3), min_size=1, max_size=4)
seeds = st.integers(0, 2**32)


@attrs.frozen
class ListedBatch:
    """A batch of the model."""

    base_offset: int
    epoch: int
    count: int

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.base_offset + self.count

    @property
    def data(self) -> bytes:
        """Its bytes; some are larger than a sector."""
        value = b"v" * (600 if self.base_offset % 4 == 1 else 5)
        return raft_batch(self.base_offset, self.epoch, self.count, value)


class FileLogAgainstList(RuleBasedStateMachine):
    """A log beside a list of all its batches, including those that a snapshot covers."""

    def __init__(self) -> None:
        super().__init__()
        self.file_system = MemoryFileSystem()
        self.log = open_log(self.file_system)
        self.batches: list[ListedBatch] = []
        self.start = self.flushed = self.high_watermark = 0
        self.snapshot = OffsetAndEpoch(0, 0)

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    @property
    def epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.snapshot.epoch

    @rule(counts=counts, more_epochs=st.integers(0, 2), as_leader=st.booleans())
    def append(self, counts: list[int], more_epochs: int, as_leader: bool) -> None:
        added: list[ListedBatch] = []
        epoch = max(1, self.epoch + more_epochs)
        for count in counts:
            added.append(ListedBatch(added[-1].next_offset if added else self.end, epoch, count))
        append = self.log.append_as_leader if as_leader else self.log.append_as_follower
        append(b"".join(batch.data for batch in added), epoch)
        self.batches += added
        self.flushed = self.log.flushed_offset

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from([batch.next_offset for batch in self.batches]))
        self.log.update_high_watermark(offset)
        self.high_watermark = max(self.high_watermark, offset)

    @precondition(lambda self: max(self.start, self.snapshot.offset) < self.high_watermark)
    @rule(deletes=st.booleans())
    def make_snapshot(self, deletes: bool) -> None:
        last = next(batch for batch in self.batches if batch.next_offset >= self.high_watermark)
        if last.next_offset != self.high_watermark:
            return
        self.snapshot = make_snapshot(self.log, self.high_watermark, last.epoch)
        if deletes:
            assert self.log.delete_before_snapshot(self.snapshot)
            self.start, self.flushed = self.snapshot.offset, self.end
            self.batches = [batch for batch in self.batches if batch.base_offset >= self.start]

    @rule(ahead=st.integers(1, 4))
    def install_snapshot(self, ahead: int) -> None:
        self.snapshot = install_snapshot(self.log, self.end + ahead, max(1, self.epoch))
        assert self.log.truncate_to_latest_snapshot()
        self.restart_at_snapshot()

    def restart_at_snapshot(self) -> None:
        self.batches = []
        self.start = self.flushed = self.high_watermark = self.snapshot.offset

    @precondition(lambda self: self.start < max(self.high_watermark, self.snapshot.offset) <= self.end)
    @rule()
    def truncate_too_much(self) -> None:
        """Records that a snapshot or the consensus proved committed are not truncated, not even one."""
        with pytest.raises(TruncationBelowHighWatermarkError):
            self.log.truncate_to(max(self.high_watermark, self.snapshot.offset) - 1)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(max(self.high_watermark, self.snapshot.offset), self.end))
        base_offsets = [batch.base_offset for batch in self.batches if batch.next_offset > offset]
        if base_offsets and base_offsets[0] < max(self.high_watermark, self.snapshot.offset):
            return
        self.log.truncate_to(offset)
        self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
        self.flushed = min(self.flushed, self.end)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = open_log(self.file_system)
        assert not self.log.recovery.actions
        self.flushed = self.end
        self.high_watermark = max(self.start, self.snapshot.offset)

    @rule(seed=seeds)
    def crash(self, seed: int) -> None:
        """Flushed records exist, unflushed ones may, and no others; damage is only possible among those in doubt."""
        self.file_system = self.file_system.crash(random.Random(seed).randrange)
        self.log = open_log(self.file_system)
        self.learn_high_watermark()
        if self.log.start_offset > self.start:
            assert self.log.start_offset == self.log.end_offset.offset == self.snapshot.offset
            self.restart_at_snapshot()
            return
        end_offset = self.log.end_offset.offset
        assert self.flushed <= end_offset
        if self.log.quarantine is not None:
            assert self.log.quarantine.durable_end_offset <= self.end
            self.repair()
            return
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.flushed = self.end

    def learn_high_watermark(self) -> None:
        """The snapshot says it, as far as the log goes; where it lacks the end of an epoch, the snapshot says less."""
        self.high_watermark = self.log.high_watermark.offset
        least = self.snapshot.offset if self.snapshot.offset <= self.log.end_offset.offset else self.log.start_offset
        assert least <= self.high_watermark <= max(self.snapshot.offset, self.log.start_offset)

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), at=seeds)
    def rot(self, data: st.DataObject, at: int) -> None:
        """A bit flips in a segment, which is then read again."""
        self.log.close()
        bad = data.draw(st.sampled_from([p for p in sorted(self.file_system.contents()) if p.endswith(".log")]))
        size = len(self.file_system.contents()[bad])
        if size:
            flip(self.file_system, bad, at % size)
        data_of_bad = self.file_system.contents()[bad]
        self.log = open_log(self.file_system)
        self.flushed = self.end
        self.learn_high_watermark()
        if bad in [each.path for each in self.log.recovery.actions if each.kind is ActionKind.REMOVED]:
            return  # A truncation to the log start, and a new segment there, have left it wholly below the start.
        if size and self.log.quarantine is None:
            # Nothing sound is left that the snapshot does not stand for; what has rotted is told, and kept.
            assert self.log.start_offset == self.log.end_offset.offset == self.snapshot.offset >= self.end
            assert bad in [each.path for each in self.log.recovery.actions if each.kind is ActionKind.LOST]
            assert data_of_bad in self.file_system.contents().values()
            self.restart_at_snapshot()
        elif size:
            self.repair()

    def repair(self) -> None:
        """Let a leader that has all send again what is damaged, also what was below the start."""
        assert self.log.quarantine is not None
        self.check_records()
        if self.log.end_offset.offset < self.start:
            # What is damaged lies below the start: a snapshot may take its place at once.
            self.snapshot = install_snapshot(self.log, self.end + 1, max(1, self.epoch))
            assert self.log.truncate_to_latest_snapshot()
            assert self.log.quarantine is None
            self.restart_at_snapshot()
            return
        for batch in self.batches:
            if batch.base_offset >= self.log.end_offset.offset:
                self.log.append_as_follower(batch.data, batch.epoch)
        self.log.flush()
        self.flushed = self.end
        assert self.log.quarantine is None

    def check_records(self) -> None:
        for batch in self.batches:
            if max(self.log.start_offset, batch.base_offset) < self.log.end_offset.offset:
                found = self.log.read(batch.next_offset - 1, Isolation.UNCOMMITTED, 0).records
                assert bytes(found) == batch.data

    @invariant()
    def log_is_the_list(self) -> None:
        log = self.log
        assert (log.start_offset, log.end_offset.offset) == (self.start, self.end)
        assert log.high_watermark.offset == self.high_watermark
        assert log.last_fetched_epoch == self.epoch
        assert log.quarantine is None
        assert log.flushed_offset >= self.flushed
        self.check_records()

    def teardown(self) -> None:
        assert ActionKind.IGNORED not in {action.kind for action in self.log.recovery.actions}
        assert all(path.startswith(DIRECTORY) for path in self.file_system.contents())


def test_a_log_in_files_is_a_list_of_batches() -> None:
    """After any steps, restarts, crashes and flipped bits the log holds what was promised, and nothing else."""
    run_state_machine_as_test(
        FileLogAgainstList, settings=settings(max_examples=40, stateful_step_count=20, deadline=None)
    )
