# SPDX-License-Identifier: Apache-2.0
"""Reads a snapshot, and checks whether it is complete.

``raftlog.snapshot.order`` has the rules for the order of its batches.
"""

import functools
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.errors import (
    CorruptBatchError,
    DecodeError,
    IncompleteSnapshotError,
    UnsupportedMagicError,
    fresh_copy,
)
from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.snapshot.order import ControlBatch, SnapshotHeader, SnapshotOrder, read_header
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.raw import RawSnapshotReader
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

__all__ = [
    "ControlBatch",
    "RecordsSnapshotReader",
    "SnapshotHeader",
    "SnapshotSummary",
    "VerifiedRun",
    "verify_snapshot",
]


@attrs.frozen
class SnapshotSummary:
    """A summary of a verified snapshot.

    Attributes:
        snapshot_id: end offset (exclusive) and epoch.
        header: the contents of its first batch.
        size_bytes: size of the whole snapshot.
        batch_count: number of batches, header and footer included.
        record_count: number of records in data batches.
    """

    snapshot_id: OffsetAndEpoch
    header: SnapshotHeader
    size_bytes: int
    batch_count: int
    record_count: int


class RecordsSnapshotReader:
    """Iterates over the batches of a snapshot, in order; may be iterated repeatedly.

    A data batch is yielded as a ``RecordBatch``, any other as a ``ControlBatch``. Each batch is checked just before it
    is yielded, so call ``verify_snapshot`` first if you must not act on a partial snapshot. Memory use is that of the
    largest batch, or 16 MiB if that is more. The caller closes the source.

    Args:
        source: the snapshot's bytes.
        snapshot_id: end offset (exclusive) and epoch.
        path: for errors; the default is the name of a snapshot with this id.

    Raises:
        InvalidSnapshotIdError: no snapshot has such an id.

    Iteration, and reading properties of the header, raises:
        IncompleteSnapshotError: the header or footer is missing, or the last batch is cut off.
        CorruptBatchError: a batch is damaged.
        DecodeError: a control record does not decode or is not in its place, an offset or epoch is wrong, or bytes are
            not a batch of magic 2.
        MissingExtraError: a control batch is compressed, and the codec's package is not installed.
        StorageError: the disk failed.
    """

    def __init__(self, source: ByteSource, snapshot_id: OffsetAndEpoch, *, path: str | None = None) -> None:
        name = snapshot_name(snapshot_id)
        self._source = source
        self._path = name if path is None else path
        self.snapshot_id: Final = snapshot_id

    @classmethod
    def of(cls, raw: RawSnapshotReader) -> "RecordsSnapshotReader":
        """Return the reader of a raw snapshot, which the caller must close."""
        return cls(raw, raw.snapshot_id)

    @property
    def last_contained_log_offset(self) -> int:
        """The offset of the last log record that the snapshot covers, inclusive; -1 if there is none."""
        return self.snapshot_id.offset - 1

    @property
    def last_contained_log_epoch(self) -> int:
        """The epoch of that record."""
        return self.snapshot_id.epoch

    @property
    def last_contained_log_timestamp(self) -> int:
        """When that record was appended, in ms; read from the first batch."""
        return self.header.last_contained_log_timestamp

    @property
    def kraft_version(self) -> KRaftVersion:
        """The level of ``kraft.version`` at that record; read from the first batch."""
        return self.header.kraft_version

    @property
    def voter_set(self) -> VoterSet | None:
        """The voters at that record, None if no VotersRecord has named them; read from the first batch."""
        return self.header.voter_set

    @functools.cached_property
    def header(self) -> SnapshotHeader:
        """The contents of the first batch; read once."""
        return next(self.verified_runs()).header

    def __iter__(self) -> Iterator[ControlBatch | RecordBatch]:
        for run in self.verified_runs():
            for index in range(len(run.batches)):
                yield run.control_batches.get(index) or run.batches.batch(index)

    def verified_runs(self) -> "Iterator[VerifiedRun]":
        """Yield the batches many at a time, which is faster if data batches need not be decoded one by one."""
        order = SnapshotOrder(self.snapshot_id.epoch, _raise)
        header = None
        position = 0
        try:
            for piece in split_runs(self._source):
                if not isinstance(piece, BatchRun):
                    raise _error_of(piece)
                judged = order.follow(piece)
                header = header or read_header(present(order.header_batch, "the header, which was not reported,"))
                yield VerifiedRun(piece, judged.control_batches, header, judged.record_count)
                position = piece.end
            order.end(position)
        except DecodeError as error:
            error.located(path=self._path)
            raise


def verify_snapshot(source: ByteSource, snapshot_id: OffsetAndEpoch, *, path: str | None = None) -> SnapshotSummary:
    """Read and verify all of a snapshot, and return a summary. Do this before it is listed, installed or trusted.

    Data batches are verified by their headers and CRCs, and are not decoded.

    Raises:
        InvalidSnapshotIdError: no snapshot has such an id.
        IncompleteSnapshotError, CorruptBatchError, DecodeError, MissingExtraError, StorageError: as for
            ``RecordsSnapshotReader``.
    """
    batch_count = record_count = size_bytes = 0
    header = None
    for run in RecordsSnapshotReader(source, snapshot_id, path=path).verified_runs():
        header = run.header
        batch_count += len(run.batches)
        record_count += run.record_count
        size_bytes = run.batches.end
    header = present(header, "the header of a complete snapshot")
    return SnapshotSummary(snapshot_id, header, size_bytes, batch_count, record_count)


@attrs.frozen
class VerifiedRun:
    """Adjacent batches of a snapshot, each in its place.

    Attributes:
        batches: all of them.
        control_batches: the control batches, by their index.
        header: the contents of the snapshot's first batch.
        record_count: number of records in the data batches.
    """

    batches: BatchRun
    control_batches: dict[int, ControlBatch]
    header: SnapshotHeader
    record_count: int


def _raise(error: DecodeError) -> None:
    raise fresh_copy(error)


def _error_of(piece: LegacyBatch | TornTail | ZeroPadding | Corruption) -> DecodeError:
    match piece:
        case LegacyBatch():
            return UnsupportedMagicError(f"magic {piece.magic}", "batch-magic", position=piece.position)
        case TornTail():
            return IncompleteSnapshotError(piece.reason, piece.rule, position=piece.position)
        case ZeroPadding():
            return IncompleteSnapshotError("only zeros follow", piece.rule, position=piece.position)
        case Corruption():
            return CorruptBatchError(piece.reason, piece.rule, position=piece.position)
