# SPDX-License-Identifier: Apache-2.0
"""Where a leader collects records into batches before it writes them.

A batch goes from open to completed to drained::

    append ──> open ──(full, drained, or a control batch follows)──> completed ──drain──> CompletedBatch ──> release

Source: BatchAccumulator, BatchBuilder.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from raftlog.errors import (
    BatchTooLargeError,
    BufferExhaustedError,
    InvalidControlBatchError,
    InvariantViolation,
    NonContiguousAppendError,
    NotLeaderError,
    OffsetOutOfRangeError,
    UnknownEpochError,
    VoterSetError,
)
from raftlog.invariants import invariant
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.control_batch import named_voters, read_control_batch, write_control_batch
from raftlog.records.batches.memory_pool import MemoryPool
from raftlog.records.batches.open_batch import CompletedBatch, DrainedBatches, KeyedRecord, OpenBatch
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import check_voter_set_change

if TYPE_CHECKING:
    from raftlog.records.kernel import Row

DEFAULT_LINGER_MS: Final = 25
"""How long Kafka's leader waits for more records (controller.quorum.append.linger.ms)."""

MAX_UNDRAINED_BATCHES: Final = 10
"""How many batches a raft leader lets wait to be drained (KafkaRaftClient.MAX_NUMBER_OF_BATCHES)."""

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1

ControlBatchCreator = Callable[[int, int], bytes]
"""Writes a control batch, given its base offset and its timestamp in ms."""


@attrs.define(eq=False)
class BatchAccumulator:
    """Collects the records that the leader of one epoch appends, and gives them as batches to write.

    Records get offsets in the order of the appends, without gaps; batches are drained in that order. It knows no clock
    and no lock: times come in, and its owner calls one method at a time. A ``now_ms`` is in ms since the epoch; it need
    not grow.

    An error, of whatever method, means that nothing was changed. The memory that batches hold is counted in a pool,
    from the append until the drained batch is released.

    Attributes:
        epoch: of the leader; every batch has it.
        base_offset: offset of the first record that is appended: the log end offset.
        linger_ms: how long the first record of a batch may wait for others; None is until the batch is full.
        max_batch_size_bytes: what a batch may take, header included: one of data before compression, one of control
            records as it is stored.
        max_batch_records: how many records a batch may have.
        max_undrained_batches: with this many completed batches, appends are refused until they are drained.
        compression_type: how to compress batches that get smaller by it, and in which no record is longer than the
            whole batch as it is stored: Kafka's raft readers stop there. A raft leader of Kafka does not compress.
        memory: the pool; share it among the accumulators of successive epochs.
        voters_in_force: the voter set that records have named up to the base offset, as
            ``KRaftControlRecordStateMachine.voters_in_force`` says it; empty where none has. A VotersRecord must follow
            it, and is in force from then on. None where it is not known: then no VotersRecord is taken.

    Raises:
        ValueError: an argument is out of its range, or the pool has no place for the largest batch.
        MissingExtraError: the codec's package is not installed.

    Differs: Kafka starts to drain before it knows whether a control batch is sound; here an error changes nothing. A
    clock that goes back ends the linger instead of making it longer.
    """

    epoch: int
    base_offset: int
    linger_ms: int | None = attrs.field(default=DEFAULT_LINGER_MS, kw_only=True)
    max_batch_size_bytes: int = attrs.field(default=limits.MAX_BATCH_SIZE, kw_only=True)
    max_batch_records: int = attrs.field(default=_INT32_MAX, kw_only=True)
    max_undrained_batches: int = attrs.field(default=MAX_UNDRAINED_BATCHES, kw_only=True)
    compression_type: CompressionType = attrs.field(default=CompressionType.NONE, kw_only=True)
    memory: MemoryPool = attrs.field(factory=MemoryPool, kw_only=True)
    voters_in_force: VoterSet | None = attrs.field(default=None, kw_only=True)
    _next_offset: int = attrs.field(init=False)
    _open: OpenBatch | None = attrs.field(default=None, init=False)
    _completed: deque[CompletedBatch] = attrs.field(factory=deque, init=False)
    _drain_offset: int | None = attrs.field(default=None, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        _check_range("epoch", self.epoch, 0, _INT32_MAX)
        _check_range("base offset", self.base_offset, 0, _INT64_MAX)
        _check_range("linger", self.linger_ms or 0, 0, _INT64_MAX)
        smallest = limits.BATCH_OVERHEAD + limits.MIN_RECORD_SIZE
        largest = min(limits.MAX_STORED_BATCH_SIZE, self.memory.limit_bytes)
        _check_range("batch size", self.max_batch_size_bytes, smallest, largest)
        _check_range("number of records", self.max_batch_records, 1, _INT32_MAX)
        _check_range("number of undrained batches", self.max_undrained_batches, 1, _INT32_MAX)
        compress(self.compression_type, b"")
        self._next_offset = self.base_offset

    # Appending data

    def append(
        self,
        epoch: int,
        values: Sequence[bytes],
        now_ms: int,
        *,
        required_base_offset: int | None = None,
        delay_drain: bool = False,
    ) -> int:
        """Append records without keys, as a metadata log has them, and return the offset of the last one.

        All of them go into one batch, together with those of other calls as long as they fit.

        Args:
            epoch: the epoch in which the caller takes this replica for the leader.
            values: one a record, none of them empty: Kafka's raft readers stop at an empty value.
            now_ms: the time; it becomes the timestamp of a batch that this call opens.
            required_base_offset: refuse the append unless the first record gets this offset.
            delay_drain: drain nothing from here on until ``allow_drain`` is called.

        Raises:
            NotLeaderError: the epoch is over, or the accumulator is closed.
            UnknownEpochError: the epoch is a later one.
            NonContiguousAppendError: the first record would get another offset than the required one.
            BatchTooLargeError: the records do not fit in one batch.
            BufferExhaustedError: too many batches, or bytes, are held already: drain, write and release some.
            OffsetOutOfRangeError: the last offset would be above 2**63 - 1.
            ValueError: there are no records, a value is empty, or the time is negative.
            TypeError: a value is not bytes.

        Source: BatchAccumulator#append.
        """
        if not all(values):
            raise ValueError("a record without a key needs a value that is not empty")
        timestamp = self._timestamp(now_ms)
        rows: list[Row] = [(timestamp, None, value) for value in values]
        return self._append(epoch, rows, now_ms, required_base_offset, delay_drain)

    def append_records(
        self,
        epoch: int,
        records: Sequence[KeyedRecord],
        now_ms: int,
        *,
        required_base_offset: int | None = None,
        delay_drain: bool = False,
    ) -> int:
        """Append records with keys and headers, for any other log than Kafka's metadata, otherwise as ``append``.

        Raises:
            ValueError: there are no records, or the time is negative.
            TypeError: a key or value is neither bytes nor None.
        """
        timestamp = self._timestamp(now_ms)
        rows: list[Row] = [(timestamp, key, value, tuple(headers)) for key, value, headers in records]
        return self._append(epoch, rows, now_ms, required_base_offset, delay_drain)

    def _timestamp(self, now_ms: int) -> int:
        """Give the time of the open batch, since most records go there."""
        return now_ms if self._open is None else self._open.timestamp

    def _append(
        self,
        epoch: int,
        rows: "list[Row]",
        now_ms: int,
        required_base_offset: int | None,
        delay_drain: bool,
    ) -> int:
        self._check_epoch(epoch)
        if len(self._completed) >= self.max_undrained_batches:
            raise BufferExhaustedError(f"{len(self._completed)} batches have not been drained")
        if not rows:
            raise ValueError("an append needs a record")
        if required_base_offset not in (None, self._next_offset):
            raise NonContiguousAppendError(f"the next offset is {self._next_offset}, not {required_base_offset}")
        self._check_place(len(rows), now_ms)
        batch, size_bytes = self._batch_for(rows, now_ms)
        batch.memory.resize(size_bytes)
        # What may fail has not: from here on, things change.
        if batch is not self._open:
            self.force_drain()
            self._open = batch
        if delay_drain and self._drain_offset is None:
            self._drain_offset = self._next_offset
        batch.add(rows)
        if not 0 < size_bytes <= self.max_batch_size_bytes:
            raise InvariantViolation(f"epoch {self.epoch}: {size_bytes} bytes in a batch at {self._next_offset}")
        self._next_offset += len(rows)
        return self._next_offset - 1

    def _batch_for(self, rows: "list[Row]", now_ms: int) -> tuple[OpenBatch, int]:
        """Give the open batch if the records fit in it, else a new one, and the size that it will have with them."""
        count = len(rows)
        if count > self.max_batch_records:
            raise BatchTooLargeError(f"{count} records are more than the {self.max_batch_records} of a batch")
        if self._open is not None and self._open.record_count + count <= self.max_batch_records:
            size_bytes = self._open.size_with(rows)
            if size_bytes <= self.max_batch_size_bytes:
                return self._open, size_bytes
        builder = RecordBatchBuilder(
            self._next_offset, partition_leader_epoch=self.epoch, compression_type=self.compression_type
        )
        batch = OpenBatch(builder, now_ms, self.memory.lease())
        size_bytes = batch.size_with(rows)
        self._check_size(size_bytes)
        return batch, size_bytes

    # Appending control records

    def append_control_messages(self, create: ControlBatchCreator, now_ms: int) -> int:
        """Append a control batch that the caller writes, and return the offset of its last record.

        The open batch is completed, and the control batch stands alone behind it, due to be drained.

        Args:
            create: is given the offset and the time that the batch must have, and returns its bytes. It must not call
                this accumulator. ``epoch`` and ``compression_type`` are there for it to use.
            now_ms: the time that ``create`` is given.

        Raises:
            NotLeaderError: the accumulator is closed.
            InvalidControlBatchError: the bytes are not exactly one batch, or it is no control batch, has another base
                offset or epoch, no records, or what a raft reader would stop at: a record, or more than 8 MiB of them.
            EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: a VotersRecord of it must not
                follow the voters in force (``check_voter_set_change``).
            VoterSetError: it has a VotersRecord, and ``voters_in_force`` is None.
            BatchTooLargeError: the batch is larger than batches may be.
            BufferExhaustedError: too many bytes are held already. The number of batches does not matter here.
            OffsetOutOfRangeError: there is no offset after 2**63 - 1.
            ValueError: the time is negative.

        Source: BatchAccumulator#appendControlMessages.
        """
        self._check_open()
        self._check_place(1, now_ms)
        data = bytes(create(self._next_offset, now_ms))
        self._check_size(len(data))
        batch = read_control_batch(data, base_offset=self._next_offset, epoch=self.epoch)
        voters = self._voters_after(batch)
        memory = self.memory.lease()
        memory.resize(len(data))
        self.force_drain()
        self.voters_in_force = voters
        completed = CompletedBatch(batch.base_offset, batch.record_count, batch.max_timestamp, data, memory)
        self._complete(completed)
        self._next_offset += batch.record_count
        invariant(completed.last_offset + 1 == self._next_offset, "{}, and {} is next", completed, self._next_offset)
        return completed.last_offset

    def _complete(self, batch: CompletedBatch) -> None:
        """Let a batch wait to be drained behind the others."""
        before = self._completed[-1].last_offset + 1 if self._completed else batch.base_offset
        invariant(before == batch.base_offset, "{} is completed after offset {}", batch, before)
        invariant(batch.record_count > 0, "{} is completed, and is empty", batch)
        self._completed.append(batch)

    def _voters_after(self, batch: RecordBatch) -> VoterSet | None:
        """Give the voters in force behind a control batch, after a check of each set in it."""
        voters = self.voters_in_force
        for named in named_voters(batch):
            if voters is None:
                raise VoterSetError(f"voters {named} after voters that are not known: voters_in_force was not given")
            check_voter_set_change(voters, named)
            voters = named
        return voters

    def append_control_records(self, values: Sequence[ControlValue], now_ms: int) -> int:
        """Append control records as one batch of their own, and return the offset of the last one.

        An epoch starts with a LeaderChangeMessage, and a KRaftVersionRecord and a VotersRecord behind it where they are
        due; a snapshot with a SnapshotHeaderRecord, and those two behind it.

        Raises:
            UnsupportedVersionError: a voter of a LeaderChangeMessage has a directory id.
            InvalidRecordError: a field does not fit its type.
            InvalidControlBatchError: there are no records, or one that no raft log has. The rest is as for
                ``append_control_messages``.
        """
        if not values:
            raise InvalidControlBatchError("no control records to append")

        def create(base_offset: int, timestamp: int) -> bytes:
            return write_control_batch(
                values,
                base_offset=base_offset,
                epoch=self.epoch,
                timestamp=timestamp,
                compression_type=self.compression_type,
            )

        return self.append_control_messages(create, now_ms)

    def append_leader_change(self, message: LeaderChangeMessage, now_ms: int) -> int:
        """Append the record that starts an epoch, alone in its batch; raises as ``append_control_records``."""
        return self.append_control_records((message,), now_ms)

    def append_voters(self, record: VotersRecord, now_ms: int) -> int:
        """Append a change of the voter set, alone in its batch; raises as ``append_control_records``."""
        return self.append_control_records((record,), now_ms)

    def append_kraft_version(self, record: KRaftVersionRecord, now_ms: int) -> int:
        """Append a change of kraft.version, alone in its batch; raises as ``append_control_records``."""
        return self.append_control_records((record,), now_ms)

    def append_snapshot_header(self, record: SnapshotHeaderRecord, now_ms: int) -> int:
        """Append the first record of a snapshot, alone in its batch; raises as ``append_control_records``."""
        return self.append_control_records((record,), now_ms)

    def append_snapshot_footer(self, record: SnapshotFooterRecord, now_ms: int) -> int:
        """Append the last record of a snapshot, alone in its batch; raises as ``append_control_records``."""
        return self.append_control_records((record,), now_ms)

    # Draining

    def needs_drain(self, now_ms: int) -> bool:
        """Say whether a batch is due: one is completed and may be drained, or the open one has lingered long enough."""
        return self.time_until_drain_ms(now_ms) == 0

    def time_until_drain_ms(self, now_ms: int) -> int | None:
        """Say how long to wait until a batch is due: 0 is now, None as long as nothing is appended or drained."""
        if self._completed and self._may_leave(self._completed[0]):
            return 0
        if self._open is None or self.linger_ms is None:
            return None
        elapsed = now_ms - self._open.timestamp
        return self.linger_ms - elapsed if 0 <= elapsed < self.linger_ms else 0

    def force_drain(self) -> None:
        """Complete the open batch, so that it is due now: later appends go into another one."""
        if self._open is not None:
            batch, next_offset = self._open.complete(), self._next_offset
            invariant(batch.last_offset + 1 == next_offset, "{} is completed, and {} is next", batch, next_offset)
            self._complete(batch)
            self._open = None

    def drain(self) -> DrainedBatches:
        """Complete the open batch, and hand over all batches in order, up to where draining is delayed.

        What is handed over belongs to the caller, who writes and releases it; until then its memory is held. A ``with``
        block around what is returned releases all of it at its end, also after an error.

        Source: BatchAccumulator#drain.
        """
        self.force_drain()
        drained = DrainedBatches()
        while self._completed and self._may_leave(self._completed[0]):
            drained.append(self._completed.popleft())
        left, next_offset = self._completed, self._next_offset
        end_offset = left[-1].last_offset + 1 if left else next_offset
        invariant(
            end_offset == next_offset, "{} batches are left, to offset {} of {}", len(left), end_offset, next_offset
        )
        is_due = self._drain_offset is None or not drained or drained[-1].last_offset < self._drain_offset
        invariant(is_due, "{} is drained, which waits for offset {}", drained[-1:], self._drain_offset)
        return drained

    def allow_drain(self) -> None:
        """End what ``delay_drain`` of an append began.

        Source: BatchAccumulator#allowDrain.
        """
        self._drain_offset = None

    def close(self) -> None:
        """Drop what was not drained and give its memory back; appends are refused from here on.

        Batches that were drained stay as they are, and are still to be released.
        """
        if self._open is not None:
            self._open.memory.release()
            self._open = None
        while self._completed:
            self._completed.pop().release()
        self._is_closed = True

    @property
    def next_offset(self) -> int:
        """The offset that the next record gets."""
        return self._next_offset

    @property
    def is_empty(self) -> bool:
        """Whether every record was drained."""
        return self._open is None and not self._completed

    def _may_leave(self, batch: CompletedBatch) -> bool:
        return self._drain_offset is None or batch.last_offset < self._drain_offset

    # Refusals

    def _check_open(self) -> None:
        if self._is_closed:
            raise NotLeaderError(f"the leadership of epoch {self.epoch} is over")

    def _check_epoch(self, epoch: int) -> None:
        self._check_open()
        if epoch < self.epoch:
            raise NotLeaderError(f"epoch {epoch} is over: it is {self.epoch}")
        if epoch > self.epoch:
            raise UnknownEpochError(f"epoch {epoch} is not known: it is {self.epoch}")

    def _check_place(self, count: int, now_ms: int) -> None:
        _check_range("time", now_ms, 0, _INT64_MAX)
        if self._next_offset + count - 1 > _INT64_MAX:
            raise OffsetOutOfRangeError(f"there are no {count} offsets from {self._next_offset} on")

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self.max_batch_size_bytes:
            raise BatchTooLargeError(f"a batch of {size_bytes} bytes, and {self.max_batch_size_bytes} are allowed")


def _check_range(what: str, value: int, smallest: int, largest: int) -> None:
    if not smallest <= value <= largest:
        raise ValueError(f"not a {what}: {value}, which is not in {smallest}..{largest}")
