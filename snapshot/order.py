# SPDX-License-Identifier: Apache-2.0
"""What may stand where in a snapshot.

::

    batch 1      SnapshotHeaderRecord [KRaftVersionRecord [VotersRecord]]      control
    batch 2 ...  the records of the state machine                              data
    last batch   SnapshotFooterRecord                                          control

Offsets count from 0, without gaps, and have nothing to do with those of the log. Every batch has the epoch of the
snapshot's id.

Source: RecordsSnapshotReader. Differs: Kafka checks the header and the CRCs alone; here the footer, offsets, epochs and
the place of control records count too, so that a snapshot that was cut off between two batches is not taken for whole.
"""

import enum
from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import CorruptFileError, DecodeError, IncompleteSnapshotError, without_frames
from raftlog.records import limits
from raftlog.records.batches.batch import CONTROL_FLAG, RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.columns.columns import BatchColumns
from raftlog.records.messages.control import (
    ControlRecord,
    ControlRecordType,
    KRaftVersionRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    read_control_record,
)
from raftlog.records.messages.voters import voter_set
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

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


def read_header(first: ControlBatch) -> SnapshotHeader:
    """Return what the first batch of a snapshot says.

    Raises:
        DecodeError: its voters are none that can be.
        UnsupportedVersionError: its ``kraft.version`` is not known.
    """
    timestamp, kraft_version, voters = 0, KRaftVersion.KRAFT_VERSION_0, None
    try:
        for record in first.records:
            match record.value:
                case SnapshotHeaderRecord():
                    timestamp = record.value.last_contained_log_timestamp
                case KRaftVersionRecord():
                    kraft_version = KRaftVersion.from_level(record.value.kraft_version)
                case VotersRecord():
                    voters = voter_set(record.value)
    except DecodeError as error:
        raise _placed(error, first.batch) from None
    return SnapshotHeader(timestamp, kraft_version, voters)


@attrs.frozen
class JudgedRun:
    """What is known of batches that stand end to end.

    Attributes:
        control_batches: those of control records that read and are in their place, by their index.
        record_count: of the data batches among them.
    """

    control_batches: dict[int, ControlBatch]
    record_count: int


class _Part(enum.Enum):
    """What was read last."""

    NOTHING = enum.auto()
    HEADER_OR_DATA = enum.auto()
    FOOTER = enum.auto()
    WHAT_FOLLOWS_THE_FOOTER = enum.auto()


class SnapshotOrder:
    """Judges the batches of a snapshot in turn.

    Args:
        epoch: of the snapshot's id.
        report: is given what is wrong, at most one thing a batch. Where it raises, that is the end; otherwise what
            follows is judged by what is there, so that a batch that is lost, doubled, swapped or wrong is reported
            once.
    """

    def __init__(self, epoch: int, report: Callable[[DecodeError], None]) -> None:
        self._epoch = epoch
        self._report = report
        self._last_epoch = epoch
        self._next_offset: int | None = 0
        self._skipped_offset: int | None = None
        self._offset_instead: int | None = None
        self._part = _Part.NOTHING
        self.header_batch: ControlBatch | None = None
        """The first batch, once it has been read."""

    def follow(self, run: BatchRun) -> JudgedRun:
        """Judge the batches that come next."""
        control_batches = {}
        record_count = 0
        columns = BatchColumns(run)
        rows = zip(*map(columns.column, _COLUMNS), strict=True)
        for index, (base_offset, epoch, attributes, last_offset_delta, count) in enumerate(rows):
            is_data = not attributes & CONTROL_FLAG
            is_whole = count >= 1 and last_offset_delta == count - 1 and epoch == self._epoch
            if is_data and is_whole and self._part is _Part.HEADER_OR_DATA and base_offset == self._next_offset:
                self._next_offset += count
            elif (control := self._judge(run.batch(index))) is not None:
                control_batches[index] = control
            record_count += count if is_data else 0
        return JudgedRun(control_batches, record_count)

    def skip(self) -> None:
        """Note that something stands here which is no batch, and which was reported: anything may have been lost."""
        self._next_offset = None
        if self._part is _Part.NOTHING:
            self._part = _Part.HEADER_OR_DATA

    def end(self, position: int) -> None:
        """Judge the end of the snapshot, which is at this byte position."""
        if self._part in (_Part.NOTHING, _Part.HEADER_OR_DATA):
            missing = "header" if self._part is _Part.NOTHING else "footer"
            reason = f"the snapshot has no {missing}"
            self._report(IncompleteSnapshotError(reason, f"snapshot-{missing}", position=position))

    @property
    def has_footer(self) -> bool:
        """Whether the footer has been read."""
        return self._part in (_Part.FOOTER, _Part.WHAT_FOLLOWS_THE_FOOTER)

    def _judge(self, batch: RecordBatch) -> ControlBatch | None:
        """Judge a batch by all rules; what it is matters more than where it stands."""
        control, fault = None, None
        try:
            control = self._take(batch)
        except DecodeError as error:
            fault = without_frames(error)
        fault_of_place = self._fault_of_place(batch)
        if (reported := fault or fault_of_place) is not None:
            self._report(reported)
        return control

    def _take(self, batch: RecordBatch) -> ControlBatch | None:
        if self._part is _Part.FOOTER and batch.base_offset != self._skipped_offset:
            self._part = _Part.WHAT_FOLLOWS_THE_FOOTER
            raise _error_at(batch, "a batch follows the footer", "snapshot-footer")
        is_first = self._part is _Part.NOTHING
        if is_first:
            self._part = _Part.HEADER_OR_DATA
        if batch.is_control:
            return self._take_control(batch, is_first=is_first)
        if is_first:
            raise _without_header(batch, "data")
        return None

    def _take_control(self, batch: RecordBatch, *, is_first: bool) -> ControlBatch | None:
        if self._part is _Part.WHAT_FOLLOWS_THE_FOOTER:
            return None
        records = _control_records(batch)
        types = tuple(record.type for record in records)
        control = ControlBatch(batch, records)
        if self.header_batch is None and types and types == _HEADER_TYPES[: len(types)]:
            self.header_batch = control
        elif is_first:
            raise _without_header(batch, _names(types))
        elif types == _FOOTER_TYPES:
            self._part = _Part.FOOTER
        else:
            raise _error_at(batch, f"{_names(types)} between header and footer", "snapshot-control")
        return control

    def _fault_of_place(self, batch: RecordBatch) -> DecodeError | None:
        before = self._next_offset
        is_expected = self._is_expected(batch.base_offset, batch.record_count)
        last_epoch, self._last_epoch = self._last_epoch, batch.partition_leader_epoch
        if not is_expected or batch.record_count < 1 or batch.last_offset_delta != batch.record_count - 1:
            return _out_of_place(batch, before)
        if batch.partition_leader_epoch not in (self._epoch, last_epoch):
            return _of_another_epoch(batch, self._epoch)
        return None

    def _is_expected(self, base_offset: int, count: int) -> bool:
        """Whether a batch may start at an offset; what may be next is then known, whatever the answer."""
        skipped, instead = self._skipped_offset, self._offset_instead
        self._skipped_offset = self._offset_instead = None
        next_offset = self._next_offset
        if base_offset == skipped and next_offset is not None:
            return True  # It was swapped with the one before it.
        self._next_offset = base_offset + count
        if next_offset is None or base_offset in (next_offset, instead):
            return True
        self._skipped_offset, self._offset_instead = next_offset, next_offset + count
        return False


def _control_records(batch: RecordBatch) -> tuple[ControlRecord, ...]:
    if batch.record_count > len(_HEADER_TYPES):
        raise _error_at(batch, f"a control batch of {batch.record_count} records", "snapshot-control")
    records = list(batch.records(max_size=limits.MAX_BATCH_SIZE))
    try:
        return tuple(read_control_record(record.key, record.value) for record in records)
    except DecodeError as error:
        raise _placed(error, batch) from None


def _names(types: tuple[ControlRecordType | int, ...]) -> str:
    names = (type_.name if isinstance(type_, ControlRecordType) else f"type {type_}" for type_ in types)
    return " and ".join(names) or "no record"


def _placed(error: DecodeError, batch: RecordBatch) -> DecodeError:
    """Give an error of a control record's value the place of its batch."""
    error.position = None  # It was one in the value.
    return error.located(position=batch.position, base_offset=batch.base_offset)


def _error_at(batch: RecordBatch, reason: str, rule: str) -> DecodeError:
    return CorruptFileError(reason, rule, position=batch.position, base_offset=batch.base_offset)


def _without_header(batch: RecordBatch, found: str) -> DecodeError:
    reason = f"the first batch has {found}, where the header must be"
    return IncompleteSnapshotError(reason, "snapshot-header", position=batch.position, base_offset=batch.base_offset)


def _out_of_place(batch: RecordBatch, next_offset: int | None) -> DecodeError:
    last = batch.last_offset
    reason = f"a batch of {batch.record_count} records from offset {batch.base_offset} to {last}"
    if next_offset is not None:
        reason += f", after {next_offset - 1}"
    return _error_at(batch, reason, "snapshot-offset")


def _of_another_epoch(batch: RecordBatch, epoch: int) -> DecodeError:
    reason = f"a batch of epoch {batch.partition_leader_epoch} in a snapshot of epoch {epoch}"
    return _error_at(batch, reason, "snapshot-epoch")
