# SPDX-License-Identifier: Apache-2.0
"""Reading a snapshot, and finding out whether it is whole.

``raftlog.snapshot.order`` says what may stand where.
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
    """What a snapshot that was verified holds.

    Attributes:
        snapshot_id: end offset (exclusive) and epoch.
        header: what its first batch says.
        size_bytes: all of it.
        batch_count: header and footer included.
        record_count: of the data batches.
    """

    snapshot_id: OffsetAndEpoch
    header: SnapshotHeader
    size_bytes: int
    batch_count: int
    record_count: int


class RecordsSnapshotReader:
    """The batches of a snapshot, in order, each time that one iterates over it.

    A data batch comes as a ``RecordBatch``, any other as a ``ControlBatch``. What is wrong is found before it is given:
    who must not act on half of a snapshot calls ``verify_snapshot`` first. Memory is that of the largest batch, or
    16 MiB if that is more. The source stays the caller's to close.

    Args:
        source: the snapshot's bytes.
        snapshot_id: end offset (exclusive) and epoch.
        path: for errors; the name that the id gives, if it is left out.

    Raises:
        InvalidSnapshotIdError: no snapshot has such an id.

    Iterating, and asking for what the header says, raises:
        IncompleteSnapshotError: the header or footer is missing, or the last batch is cut off.
        CorruptBatchError: a batch does not check.
        DecodeError: a control record does not read or is not in its place, an offset or epoch is not what it must be,
            or there is something that is no batch of magic 2.
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
        """Return the reader of a raw snapshot, which stays the caller's to close."""
        return cls(raw, raw.snapshot_id)

    @property
    def last_contained_log_offset(self) -> int:
        """The offset of the last record that the snapshot stands for, inclusive; -1 if there is none."""
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
        """The voters at that record, None where no VotersRecord has named them; read from the first batch."""
        return self.header.voter_set

    @functools.cached_property
    def header(self) -> SnapshotHeader:
        """What the first batch says; read once."""
        return next(self.verified_runs()).header

    def __iter__(self) -> Iterator[ControlBatch | RecordBatch]:
        for run in self.verified_runs():
            for index in range(len(run.batches)):
                yield run.control_batches.get(index) or run.batches.batch(index)

    def verified_runs(self) -> "Iterator[VerifiedRun]":
        """Yield the batches many at a time: the fast way, as long as data batches need not be looked at."""
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
    """Read all of a snapshot and say what it holds: what to do before it is listed, installed or trusted.

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
    """Batches of a snapshot that stand end to end, each in its place.

    Attributes:
        batches: all of them.
        control_batches: those of control records, by their index.
        header: what the first batch of the snapshot says.
        record_count: of the data batches among them.
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
