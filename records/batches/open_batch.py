# SPDX-License-Identifier: Apache-2.0
"""The batches of an accumulator: the open one, which takes records, and completed ones, ready to be written."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast

import attrs

from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.memory_pool import MemoryLease
from raftlog.records.batches.raft_frames import too_long_for_raft

if TYPE_CHECKING:
    from raftlog.records.kernel import Row


_ANY_SIZE: Final = limits.MAX_STORED_BATCH_SIZE
"""No limit: these bytes were just compressed here, so decompressing them again is safe."""


class KeyedRecord(NamedTuple):
    """A record to append; the accumulator assigns its offset and timestamp."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


@attrs.frozen
class CompletedBatch:
    """A batch that is ready to be written. Release it when its bytes are no longer needed.

    Attributes:
        base_offset: offset of its first record.
        record_count: how many records it has, 1 or more.
        append_timestamp: the batch's max timestamp in ms, which is the time of the append that opened it.
        data: the batch's bytes, as a log stores them.
    """

    base_offset: int
    record_count: int
    append_timestamp: int
    data: bytes = attrs.field(repr=False)
    _memory: MemoryLease = attrs.field(repr=False, eq=False)

    @property
    def last_offset(self) -> int:
        """Offset of its last record, inclusive."""
        return self.base_offset + self.record_count - 1

    @property
    def batch(self) -> RecordBatch:
        """A view of the batch, for its header fields and records."""
        return RecordBatch(self.data)

    def release(self) -> None:
        """Return the batch's memory to the pool. A second call has no effect."""
        self._memory.release()


class DrainedBatches(list[CompletedBatch]):
    """Batches that an accumulator has handed over, in order; leaving a ``with`` block releases them all.

    >>> with accumulator.drain() as batches:  # doctest: +SKIP
    ...     for batch in batches:
    ...         log.append_as_leader(batch.data, accumulator.epoch)

    Do not use the block if a batch must outlive it, for example until another thread has written it; call ``release``
    of each batch instead.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Return the memory of all of them to the pool. A second call has no effect."""
        for batch in self:
            batch.release()


@attrs.define(eq=False)
class OpenBatch:
    """The batch that takes appended records. All get the timestamp of the append that opened it.

    Attributes:
        builder: encodes the records.
        timestamp: in ms.
        memory: the lease for the batch's uncompressed size.
        opened_ms: when it was opened, by the clock that says how long it lingers.

    Source: BatchBuilder.
    """

    builder: RecordBatchBuilder
    timestamp: int
    memory: MemoryLease
    opened_ms: int

    @property
    def record_count(self) -> int:
        """How many records it has so far."""
        return self.builder.record_count

    def stage(self, rows: "Sequence[Row]") -> int:
        """Encode one or more further records, all of one time, and return the uncompressed size of the batch with them.

        They get the batch's time, and are added by ``add_staged``.
        """
        if rows[0][0] != self.timestamp:
            rows = cast("list[Row]", [(self.timestamp, *row[1:]) for row in rows])
        return self.builder.stage(rows)

    def add_staged(self) -> None:
        """Add the records that were staged last. The caller has already leased the memory for them."""
        self.builder.add_staged()

    def complete(self) -> CompletedBatch:
        """Encode the batch, compressed only if that makes it smaller and Kafka's raft readers can still read it."""
        data = self.builder.build()
        if len(data) > self.memory.size_bytes or too_long_for_raft(RecordBatch(data), _ANY_SIZE) is not None:
            self.builder.compression_type = CompressionType.NONE
            data = self.builder.build()
        self.memory.resize(len(data))
        return CompletedBatch(self.builder.base_offset, self.record_count, self.timestamp, data, self.memory)
