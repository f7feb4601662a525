# SPDX-License-Identifier: Apache-2.0
"""Collects a leader's records into batches before they are written.

A batch goes from open to completed to drained::

    append ──> open ──(full, drained, or a control batch follows)──> completed ──drain──> CompletedBatch ──> release

Source: BatchAccumulator, BatchBuilder.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

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

    Records get offsets in the order of the appends, without gaps; batches are drained in that order. It has no clock
    and no lock: callers pass the time, and call one method at a time. A ``now_ms`` is in ms since the Unix epoch and
    may go back.

    If any method raises an error, nothing has changed. A pool counts the memory that batches hold, from the append
    until the drained batch is released.

    Attributes:
        epoch: the leader's epoch, which every batch carries.
        base_offset: offset of the first record that is appended; pass the log end offset.
        linger_ms: how long the first record of a batch may wait for more records; None means until the batch is full.
        max_batch_size_bytes: the largest batch, header included: measured before compression for data batches, and as
            stored for control batches.
        max_batch_records: the most records in one batch.
        max_undrained_batches: with this many completed batches, appends are refused until they are drained.
        compression_type: the codec. A batch is stored uncompressed if compression does not make it smaller, or if one
            of its records would be longer than the whole compressed batch, which Kafka's raft readers refuse. Kafka's
            own raft leader does not compress.
        memory: the pool; share one pool among the accumulators of successive epochs.
        voters_in_force: the voter set in force at the base offset according to the records before it, as
            ``KRaftControlRecordStateMachine.voters_in_force`` returns it; empty if no record has named one. A
            VotersRecord must be a valid successor, and is in force once appended. None means that the set is unknown:
            VotersRecords are then refused.

    Raises:
        ValueError: an argument is out of range, or the pool's limit is below the largest batch.
        MissingExtraError: the codec's package is not installed.

    Differs: Kafka starts to drain before it has validated a control batch; here an error changes nothing. A clock that
    goes back ends the linger instead of extending it.
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
        clock_ms: int | None = None,
    ) -> int:
        """Append records without keys, as a metadata log has them, and return the offset of the last one.

        All of them go into one batch, together with those of other calls as long as they fit.

        Args:
            epoch: the epoch in which the caller believes this replica to be the leader.
            values: one per record. None may be empty, since Kafka's raft readers refuse an empty value.
            now_ms: the current time; it becomes the timestamp of a batch that this call opens.
            required_base_offset: refuse the append unless the first record gets this offset.
            delay_drain: hold back these records and all later ones until ``allow_drain`` is called.
            clock_ms: the time by the clock that ``needs_drain`` is asked with, such as a monotonic one; None if
                that is the clock of ``now_ms``.

        Raises:
            NotLeaderError: the epoch is over, or the accumulator is closed.
            UnknownEpochError: the epoch is a later one.
            NonContiguousAppendError: the first record would not get the required offset.
            BatchTooLargeError: the records do not fit in one batch.
            BufferExhaustedError: too many batches or bytes are held already: drain, write and release some.
            OffsetOutOfRangeError: the last offset would be above 2**63 - 1.
            ValueError: there are no records, a value is empty, or the time is negative.
            TypeError: a value is not bytes.

        Source: BatchAccumulator#append.
        """
        if not all(values):
            raise ValueError("a record without a key needs a value that is not empty")
        timestamp = self._timestamp(now_ms)
        rows: list[Row] = [(timestamp, None, value) for value in values]
        opened_ms = now_ms if clock_ms is None else clock_ms
        return self._append(epoch, rows, now_ms, opened_ms, required_base_offset, delay_drain)

    def append_records(
        self,
        epoch: int,
        records: Sequence[KeyedRecord],
        now_ms: int,
        *,
        required_base_offset: int | None = None,
        delay_drain: bool = False,
        clock_ms: int | None = None,
    ) -> int:
        """Append records with keys and headers, as ``append`` does; Kafka's metadata log has no such records.

        Raises:
            ValueError: there are no records, or the time is negative.
            TypeError: a key or value is neither bytes nor None.
        """
        timestamp = self._timestamp(now_ms)
        rows: list[Row] = [(timestamp, key, value, tuple(headers)) for key, value, headers in records]
        opened_ms = now_ms if clock_ms is None else clock_ms
        return self._append(epoch, rows, now_ms, opened_ms, required_base_offset, delay_drain)

    def _timestamp(self, now_ms: int) -> int:
        """Return the open batch's time, since most records go into that batch."""
        return now_ms if self._open is None else self._open.timestamp

    def _append(
        self,
        epoch: int,
        rows: "list[Row]",
        now_ms: int,
        opened_ms: int,
        required_base_offset: int | None,
        delay_drain: bool,
    ) -> int:
        if self._is_closed or epoch != self.epoch:
            self._refuse_epoch(epoch)
        if len(self._completed) >= self.max_undrained_batches:
            raise BufferExhaustedError(f"{len(self._completed)} batches have not been drained")
        if not rows:
            raise ValueError("an append needs a record")
        if required_base_offset is not None and required_base_offset != self._next_offset:
            raise NonContiguousAppendError(f"the next offset is {self._next_offset}, not {required_base_offset}")
        self._check_place(len(rows), now_ms)
        batch, size_bytes = self._batch_for(rows, now_ms, opened_ms)
        batch.memory.resize(size_bytes)
        # All checks have passed. State changes from here on.
        if batch is not self._open:
            self.force_drain()
            self._open = batch
        if delay_drain and self._drain_offset is None:
            self._drain_offset = self._next_offset
        batch.add_staged()
        if not 0 < size_bytes <= self.max_batch_size_bytes:
            raise InvariantViolation(f"epoch {self.epoch}: {size_bytes} bytes in a batch at {self._next_offset}")
        self._next_offset += len(rows)
        return self._next_offset - 1

    def _batch_for(self, rows: "list[Row]", now_ms: int, opened_ms: int) -> tuple[OpenBatch, int]:
        """Stage the records in the open batch if they fit in it, else in a new one; return it, and its size then."""
        count = len(rows)
        if count > self.max_batch_records:
            raise BatchTooLargeError(f"{count} records are more than the {self.max_batch_records} of a batch")
        if self._open is not None and self._open.record_count + count <= self.max_batch_records:
            size_bytes = self._open.stage(rows)
            if size_bytes <= self.max_batch_size_bytes:
                return self._open, size_bytes
        builder = RecordBatchBuilder(
            self._next_offset, partition_leader_epoch=self.epoch, compression_type=self.compression_type
        )
        batch = OpenBatch(builder, now_ms, self.memory.lease(), opened_ms)
        size_bytes = batch.stage(rows)
        self._check_size(size_bytes)
        return batch, size_bytes

    # Appending control records

    def append_control_messages(self, create: ControlBatchCreator, now_ms: int) -> int:
        """Append a control batch that the caller writes, and return the offset of its last record.

        Completes the open batch. The control batch follows it, and is due to be drained.

        Args:
            create: gets the base offset and the timestamp that the batch must have, and returns its bytes. It may read
                ``epoch`` and ``compression_type``, but must not call this accumulator's methods.
            now_ms: the time that is passed to ``create``.

        Raises:
            NotLeaderError: the accumulator is closed.
            InvalidControlBatchError: the bytes are not exactly one batch; or the batch is not a control batch, has the
                wrong base offset or epoch, or has no records; or raft readers would refuse one of its records, or its
                size of more than 8 MiB.
            EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: one of its VotersRecords is not a
                valid successor of the voters in force (``check_voter_set_change``).
            VoterSetError: it has a VotersRecord, and ``voters_in_force`` is None.
            BatchTooLargeError: the batch is larger than batches may be.
            BufferExhaustedError: too many bytes are held already. The limit on the number of batches does not apply.
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
        invariant(completed.last_offset + 1 == self._next_offset, "{}, next offset {}", completed, self._next_offset)
        return completed.last_offset

    def _complete(self, batch: CompletedBatch) -> None:
        """Queue a batch to be drained after the others."""
        before = self._completed[-1].last_offset + 1 if self._completed else batch.base_offset
        invariant(before == batch.base_offset, "completed {}, expected offset {}", batch, before)
        invariant(batch.record_count > 0, "completed, but empty: {}", batch)
        self._completed.append(batch)

    def _voters_after(self, batch: RecordBatch) -> VoterSet | None:
        """Check each voter set in a control batch, and return the set in force after the batch."""
        voters = self.voters_in_force
        for named in named_voters(batch):
            if voters is None:
                raise VoterSetError(f"voters {named} after voters that are not known: voters_in_force was not given")
            check_voter_set_change(voters, named)
            voters = named
        return voters

    def append_control_records(self, values: Sequence[ControlValue], now_ms: int) -> int:
        """Append control records as a separate batch, and return the offset of the last one.

        An epoch starts with a LeaderChangeMessage, followed by a KRaftVersionRecord and a VotersRecord if they are due.
        A snapshot starts with a SnapshotHeaderRecord, followed by those two.

        Raises:
            UnsupportedVersionError: a voter of a LeaderChangeMessage has a directory id.
            InvalidRecordError: a field does not fit its type.
            InvalidControlBatchError: there are no records, or one of a type that raft logs do not have. All other
                errors are those of ``append_control_messages``.
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
        """Return whether a batch is due: one is completed and may be drained, or the open one has lingered enough.

        Args:
            now_ms: the time by the clock of ``clock_ms``, if the records were appended with that.
        """
        return self.time_until_drain_ms(now_ms) == 0

    def time_until_drain_ms(self, now_ms: int) -> int | None:
        """Return how long until a batch is due: 0 for now, None if nothing becomes due without a further append."""
        if self._completed and self._may_leave(self._completed[0]):
            return 0
        if self._open is None or self.linger_ms is None:
            return None
        elapsed = now_ms - self._open.opened_ms
        return self.linger_ms - elapsed if 0 <= elapsed < self.linger_ms else 0

    def force_drain(self) -> None:
        """Complete the open batch, so that it is due now. Later appends go into another batch."""
        if self._open is not None:
            batch, next_offset = self._open.complete(), self._next_offset
            invariant(batch.last_offset + 1 == next_offset, "completed {}, next offset {}", batch, next_offset)
            self._complete(batch)
            self._open = None

    def drain(self) -> DrainedBatches:
        """Complete the open batch and return all batches in order, up to the point from which draining is delayed.

        The caller owns the returned batches, and must write and release them; their memory is held until then. A
        ``with`` block around the returned list releases all of them at its end, also after an error.

        Source: BatchAccumulator#drain.
        """
        self.force_drain()
        drained = DrainedBatches()
        while self._completed and self._may_leave(self._completed[0]):
            drained.append(self._completed.popleft())
        left, next_offset = self._completed, self._next_offset
        end_offset = left[-1].last_offset + 1 if left else next_offset
        invariant(end_offset == next_offset, "{} batches remain, to {} of {}", len(left), end_offset, next_offset)
        is_due = self._drain_offset is None or not drained or drained[-1].last_offset < self._drain_offset
        invariant(is_due, "drained {}, delayed from offset {}", drained[-1:], self._drain_offset)
        return drained

    def allow_drain(self) -> None:
        """Let records drain again that an append with ``delay_drain`` held back.

        Source: BatchAccumulator#allowDrain.
        """
        self._drain_offset = None

    def close(self) -> None:
        """Drop the batches that were not drained and release their memory; later appends are refused.

        Batches that were drained are unaffected; the caller must still release them.
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

    def _refuse_epoch(self, epoch: int) -> NoReturn:
        self._check_open()
        if epoch < self.epoch:
            raise NotLeaderError(f"epoch {epoch} is over: it is {self.epoch}")
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
