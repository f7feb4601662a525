# SPDX-License-Identifier: Apache-2.0
"""Reading a snapshot, and finding out whether it is whole.

::

    batch 1      SnapshotHeaderRecord [KRaftVersionRecord [VotersRecord]]      control
    batch 2 ...  the records of the state machine                              data
    last batch   SnapshotFooterRecord                                          control

Offsets count from 0, without gaps, and have nothing to do with those of the log. Every batch has the epoch of the
snapshot's id.

Source: RecordsSnapshotReader. Differs: Kafka checks the header and the CRCs alone; here the footer, offsets, epochs and
the place of control records count too, so that a snapshot that was cut off between two batches is not taken for whole.
"""

import functools
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.errors import (
    CorruptBatchError,
    CorruptFileError,
    DecodeError,
    IncompleteSnapshotError,
    UnsupportedMagicError,
)
from raftlog.kraft_version import KRaftVersion
from raftlog.offsets import OffsetAndEpoch
from raftlog.records import limits
from raftlog.records.batch import CONTROL_FLAG, RecordBatch
from raftlog.records.batch_run import BatchRun
from raftlog.records.columns import BatchColumns
from raftlog.records.control import (
    ControlRecord,
    ControlRecordType,
    KRaftVersionRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    read_control_record,
)
from raftlog.records.iterator import ByteSource, Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.legacy import LegacyBatch
from raftlog.records.voters import voter_set
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.raw import RawSnapshotReader
from raftlog.voter_set import VoterSet

_HEADER_TYPES: Final = (
    ControlRecordType.SNAPSHOT_HEADER,
    ControlRecordType.KRAFT_VERSION,
    ControlRecordType.KRAFT_VOTERS,
)
"""What the first batch has: all of these, or the first one or two."""
_FOOTER_TYPES: Final = (ControlRecordType.SNAPSHOT_FOOTER,)
_COLUMNS: Final = ("base_offset", "partition_leader_epoch", "attributes", "last_offset_delta", "record_count")


@attrs.frozen
class ControlBatch:
    """A batch of control records.

    Attributes:
        batch: as it is stored.
        records: what it holds.
    """

    batch: RecordBatch
    records: tuple[ControlRecord, ...]


@attrs.frozen
class SnapshotHeader:
    """What the first batch of a snapshot says.

    Attributes:
        last_contained_log_timestamp: when the last record that it stands for was appended, in ms.
        kraft_version: the level of ``kraft.version`` at that record.
        voter_set: the voters at that record; None where no VotersRecord has named them.
    """

    last_contained_log_timestamp: int
    kraft_version: KRaftVersion
    voter_set: VoterSet | None


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
        order = _Order(self.snapshot_id.epoch)
        try:
            for piece in split_runs(self._source):
                if not isinstance(piece, BatchRun):
                    raise _error_of(piece)
                yield order.follow(piece)
            order.end()
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
    assert header is not None  # Or it had been incomplete.
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


class _Order:
    """What has been read, and so what may follow."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._next_offset = 0
        self._end_position = 0
        self._header: SnapshotHeader | None = None
        self._has_footer = False

    def follow(self, run: BatchRun) -> VerifiedRun:
        """Judge the batches that come next."""
        control_batches = {}
        record_count = 0
        columns = BatchColumns(run)
        rows = zip(*map(columns.column, _COLUMNS), strict=True)
        for index, (base_offset, epoch, attributes, last_offset_delta, count) in enumerate(rows):
            if base_offset != self._next_offset or count < 1 or last_offset_delta != count - 1:
                raise _out_of_place(run.batch(index), self._next_offset)
            if epoch != self._epoch:
                raise _of_another_epoch(run.batch(index), self._epoch)
            self._next_offset += count
            if self._has_footer:
                raise _error_at(run.batch(index), "a batch follows the footer", "snapshot-footer")
            if attributes & CONTROL_FLAG:
                control_batches[index] = self._follow_control(run.batch(index))
            elif self._header is None:
                raise _without_header(run.batch(index), "data")
            else:
                record_count += count
        self._end_position = run.end
        assert self._header is not None  # The first batch has it.
        return VerifiedRun(run, control_batches, self._header, record_count)

    def _follow_control(self, batch: RecordBatch) -> ControlBatch:
        records = _control_records(batch)
        types = tuple(record.type for record in records)
        if self._header is None:
            if types != _HEADER_TYPES[: len(types)]:
                raise _without_header(batch, _names(types))
            self._header = _header(batch, records)
        elif types == _FOOTER_TYPES:
            self._has_footer = True
        else:
            raise _error_at(batch, f"{_names(types)} between header and footer", "snapshot-control")
        return ControlBatch(batch, records)

    def end(self) -> None:
        """Judge the end of the snapshot."""
        missing = "header" if self._header is None else "footer"
        if not self._has_footer:
            reason = f"the snapshot has no {missing}"
            raise IncompleteSnapshotError(reason, f"snapshot-{missing}", position=self._end_position)


def _control_records(batch: RecordBatch) -> tuple[ControlRecord, ...]:
    if batch.record_count > len(_HEADER_TYPES):
        raise _error_at(batch, f"a control batch of {batch.record_count} records", "snapshot-control")
    records = list(batch.records(max_size=limits.MAX_BATCH_SIZE))
    try:
        return tuple(read_control_record(record.key, record.value) for record in records)
    except DecodeError as error:
        raise _placed(error, batch) from None


def _header(batch: RecordBatch, records: tuple[ControlRecord, ...]) -> SnapshotHeader:
    """Take the values of the records of the first batch, whose types are in order."""
    timestamp, kraft_version, voters = 0, KRaftVersion.KRAFT_VERSION_0, None
    try:
        for record in records:
            match record.value:
                case SnapshotHeaderRecord():
                    timestamp = record.value.last_contained_log_timestamp
                case KRaftVersionRecord():
                    kraft_version = KRaftVersion.from_level(record.value.kraft_version)
                case VotersRecord():
                    voters = voter_set(record.value)
    except DecodeError as error:
        raise _placed(error, batch) from None
    return SnapshotHeader(timestamp, kraft_version, voters)


def _names(types: tuple[ControlRecordType | int, ...]) -> str:
    return " and ".join(type_.name if isinstance(type_, ControlRecordType) else f"type {type_}" for type_ in types)


def _placed(error: DecodeError, batch: RecordBatch) -> DecodeError:
    """Give an error of a control record's value the place of its batch."""
    error.position = None  # It was one in the value.
    return error.located(position=batch.position, base_offset=batch.base_offset)


def _error_at(batch: RecordBatch, reason: str, rule: str) -> DecodeError:
    return CorruptFileError(reason, rule, position=batch.position, base_offset=batch.base_offset)


def _without_header(batch: RecordBatch, found: str) -> DecodeError:
    reason = f"the first batch has {found}, where the header must be"
    return IncompleteSnapshotError(reason, "snapshot-header", position=batch.position, base_offset=batch.base_offset)


def _out_of_place(batch: RecordBatch, next_offset: int) -> DecodeError:
    last = batch.last_offset
    reason = (
        f"a batch of {batch.record_count} records from offset {batch.base_offset} to {last}, after {next_offset - 1}"
    )
    return _error_at(batch, reason, "snapshot-offset")


def _of_another_epoch(batch: RecordBatch, epoch: int) -> DecodeError:
    reason = f"a batch of epoch {batch.partition_leader_epoch} in a snapshot of epoch {epoch}"
    return _error_at(batch, reason, "snapshot-epoch")


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
