# SPDX-License-Identifier: Apache-2.0
"""Writes a snapshot from records. ``raftlog.snapshot.order`` shows its layout.

Source: RecordsSnapshotWriter.
"""

from collections.abc import Sequence

import attrs

from raftlog.disk_work import DiskWork
from raftlog.errors import InvariantViolation, SnapshotError, SnapshotFrozenError, StorageError
from raftlog.invariants import invariant
from raftlog.offsets import OffsetAndEpoch
from raftlog.records import limits
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.memory_pool import MemoryPool
from raftlog.records.batches.open_batch import CompletedBatch, KeyedRecord
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet


class RecordsSnapshotWriter(Closing):
    """Writes a snapshot: header, records, footer. Leaving a ``with`` block before ``freeze`` removes it.

    ::

        with RecordsSnapshotWriter(raw, now_ms, ...) as writer:
            writer.append([b"...", b"..."], now_ms)
            writer.freeze(now_ms)

    It takes over the raw writer, and closes it when it is closed. A ``StorageError`` closes it; any other error means
    that nothing has changed. It holds at most two batches in memory.

    Args:
        raw: an empty raw writer.
        now_ms: the time, in ms since the epoch; it becomes the timestamp of the first batch.
        last_contained_log_timestamp: when the last log record that the snapshot covers was appended, in ms.
        kraft_version: the level of ``kraft.version`` at that record.
        voter_set: the voters at that record, as named by a VotersRecord; never the static voters.
        compression_type: as for ``BatchAccumulator``. Kafka does not compress its snapshots.
        max_batch_size_bytes: the largest batch, header included and before compression.

    Raises:
        SnapshotError: the raw writer is not empty.
        UnsupportedVersionError: there is a voter set, and this level has no VotersRecord.
        EmptyVoterSetError: the voter set is empty.
        BatchTooLargeError: the voters do not fit in a batch.
        InvalidRecordError: a field of a voter does not fit its type.
        ValueError: a time, or the size of batches, is out of range.
        MissingExtraError: the codec's package is not installed.

    Source: RecordsSnapshotWriter.Builder.
    """

    def __init__(
        self,
        raw: RawSnapshotWriter,
        now_ms: int,
        *,
        last_contained_log_timestamp: int,
        kraft_version: KRaftVersion,
        voter_set: VoterSet | None = None,
        compression_type: CompressionType = CompressionType.NONE,
        max_batch_size_bytes: int = limits.MAX_BATCH_SIZE,
    ) -> None:
        if raw.size_bytes:
            raise SnapshotError(f"a new snapshot needs an empty raw writer, and this one has {raw.size_bytes} bytes")
        self._raw = raw
        self._is_finished = False
        self._next_offset = 0
        self._accumulator = BatchAccumulator(
            raw.snapshot_id.epoch,
            0,
            linger_ms=None,
            max_batch_size_bytes=max_batch_size_bytes,
            compression_type=compression_type,
            memory=MemoryPool(2 * max_batch_size_bytes),  # A completed batch and an open one.
            voters_in_force=VoterSet(),  # A snapshot has only one voter set.
        )
        header = _header(last_contained_log_timestamp, kraft_version, voter_set)
        self._accumulator.append_control_records(header, now_ms)

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch."""
        return self._raw.snapshot_id

    @property
    def last_contained_log_offset(self) -> int:
        """The offset of the last log record that the snapshot covers, inclusive; -1 if there is none."""
        return self.snapshot_id.offset - 1

    @property
    def last_contained_log_epoch(self) -> int:
        """The epoch of that record."""
        return self.snapshot_id.epoch

    @property
    def is_frozen(self) -> bool:
        """Whether ``freeze`` has succeeded."""
        return self._raw.is_frozen

    def append(self, values: Sequence[bytes], now_ms: int) -> None:
        """Add records without keys, as a metadata log has them.

        All of them go into one batch, perhaps together with those of other calls. Given the same lists, Kafka would
        write the same batches.

        Args:
            values: one per record, none of them empty.
            now_ms: the current time; it becomes the timestamp of a batch that this call opens.

        Raises:
            BatchTooLargeError: the records do not fit in one batch.
            SnapshotFrozenError: it is frozen, or closed.
            ValueError: there are no records, a value is empty, or the time is negative.
            TypeError: a value is not bytes.
            StorageError: the disk failed. From now on the snapshot can only be closed.
        """
        self._check_open()
        self._accumulator.append(self.snapshot_id.epoch, values, now_ms)
        self._write_completed(now_ms)

    def append_records(self, records: Sequence[KeyedRecord], now_ms: int) -> None:
        """Add records with keys and headers, for state machines other than Kafka's; otherwise as ``append``."""
        self._check_open()
        self._accumulator.append_records(self.snapshot_id.epoch, records, now_ms)
        self._write_completed(now_ms)

    def freeze(self, now_ms: int) -> int:
        """Write the footer and make the snapshot durable, all of it or nothing; return its size in bytes.

        Args:
            now_ms: the current time; it becomes the timestamp of the last batch.

        Raises:
            SnapshotFrozenError: it is frozen already, or closed.
            ValueError: the time is negative.
            StorageError: the disk failed; see ``RawSnapshotWriter.freeze``. From now on the snapshot can only be
                closed.
        """
        return self.prepare_freeze(now_ms).complete()

    def prepare_freeze(self, now_ms: int) -> DiskWork[int]:
        """Write the footer, which needs no sync, and prepare the rest of ``freeze``.

        Raises:
            SnapshotFrozenError, ValueError: as for ``freeze``.
            StorageError: the footer could not be written. From now on the snapshot can only be closed.
        """
        self._check_open()
        self._accumulator.append_snapshot_footer(SnapshotFooterRecord(), now_ms)
        self._is_finished = True
        self._drain()
        size_bytes = self._raw.size_bytes
        return self._raw.prepare_freeze().then(lambda _: size_bytes)

    def close(self) -> None:
        """Close it. A snapshot that was not frozen is removed. Closing twice is harmless."""
        self._is_finished = True
        self._raw.close()

    def _check_open(self) -> None:
        if self._is_finished:
            raise SnapshotFrozenError(f"snapshot {self.snapshot_id} is {'frozen' if self.is_frozen else 'closed'}")

    def _write_completed(self, now_ms: int) -> None:
        if self._accumulator.needs_drain(now_ms):
            self._drain()

    def _drain(self) -> None:
        try:
            for batch in self._accumulator.drain():
                self._write(batch)
                batch.release()
        except (StorageError, InvariantViolation):
            self.close()
            raise

    def _write(self, batch: CompletedBatch) -> None:
        position, name = self._raw.size_bytes, self.snapshot_id
        invariant(batch.base_offset == self._next_offset, "{}: {}, next offset {}", name, batch, self._next_offset)
        self._raw.append(batch.data)
        end, size = self._raw.size_bytes, len(batch.data)
        invariant(end == position + size, "{}: {} bytes at {} end at {}", name, size, position, end)
        self._next_offset += batch.record_count


def _header(timestamp: int, kraft_version: KRaftVersion, voters: VoterSet | None) -> list[ControlValue]:
    """Return the records of the first batch. At level 0 it has no records of version or voters."""
    header: list[ControlValue] = [SnapshotHeaderRecord(timestamp)]
    if kraft_version.is_reconfiguration_supported:
        header.append(KRaftVersionRecord(kraft_version, version=kraft_version.kraft_version_record_version))
    if voters is not None:
        header.append(attrs.evolve(voters_record(voters), version=kraft_version.voters_record_version))
    return header
