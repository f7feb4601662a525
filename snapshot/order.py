# SPDX-License-Identifier: Apache-2.0
"""Checks the order of batches in a snapshot.

::

    batch 1      SnapshotHeaderRecord [KRaftVersionRecord [VotersRecord]]      control
    batch 2 ...  the records of the state machine                              data
    last batch   SnapshotFooterRecord                                          control

Offsets count from 0, without gaps, and are unrelated to those of the log. Every batch has the epoch of the snapshot's
id.

Source: RecordsSnapshotReader. Differs: Kafka checks only the header and the CRCs. Here the footer, offsets, epochs and
the positions of control records are checked too, so that a snapshot that was cut off between two batches is found
incomplete.
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
"""The records of the first batch: all of these, or the first one or two."""
_FOOTER_TYPES: Final = (ControlRecordType.SNAPSHOT_FOOTER,)
_COLUMNS: Final = ("base_offset", "partition_leader_epoch", "attributes", "last_offset_delta", "record_count")


@attrs.frozen
class ControlBatch:
    """A batch of control records.

    Attributes:
        batch: the batch as stored.
        records: its records.
    """

    batch: RecordBatch
    records: tuple[ControlRecord, ...]


@attrs.frozen
class SnapshotHeader:
    """The contents of a snapshot's first batch.

    Attributes:
        last_contained_log_timestamp: when the last log record that the snapshot covers was appended, in ms.
        kraft_version: the level of ``kraft.version`` at that record.
        voter_set: the voters at that record; None if no VotersRecord has named them.
    """

    last_contained_log_timestamp: int
    kraft_version: KRaftVersion
    voter_set: VoterSet | None


def read_header(first: ControlBatch) -> SnapshotHeader:
    """Return the contents of a snapshot's first batch.

    Raises:
        DecodeError: its voters are not a valid voter set.
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
    """The result of checking adjacent batches.

    Attributes:
        control_batches: the control batches that decode and are in their place, by their index.
        record_count: the number of records in the data batches.
    """

    control_batches: dict[int, ControlBatch]
    record_count: int


class _Part(enum.Enum):
    """The part of the snapshot that was read last."""

    NOTHING = enum.auto()
    HEADER_OR_DATA = enum.auto()
    FOOTER = enum.auto()
    WHAT_FOLLOWS_THE_FOOTER = enum.auto()


class SnapshotOrder:
    """Checks the batches of a snapshot in turn.

    Args:
        epoch: the epoch of the snapshot's id.
        report: called with each error, at most one per batch. If it raises, checking ends. Otherwise later batches are
            checked against those that are present, so that a batch that is lost, doubled, swapped or wrong is reported
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
        """The first batch; None until it has been read."""

    def follow(self, run: BatchRun) -> JudgedRun:
        """Check the batches that come next."""
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
        """Record that bytes here are not a batch, which was reported: any number of batches may be missing."""
        self._next_offset = None
        if self._part is _Part.NOTHING:
            self._part = _Part.HEADER_OR_DATA

    def end(self, position: int) -> None:
        """Check the end of the snapshot, which is at this byte position."""
        if self._part in (_Part.NOTHING, _Part.HEADER_OR_DATA):
            missing = "header" if self._part is _Part.NOTHING else "footer"
            reason = f"the snapshot has no {missing}"
            self._report(IncompleteSnapshotError(reason, f"snapshot-{missing}", position=position))

    @property
    def has_footer(self) -> bool:
        """Whether the footer has been read."""
        return self._part in (_Part.FOOTER, _Part.WHAT_FOLLOWS_THE_FOOTER)

    def _judge(self, batch: RecordBatch) -> ControlBatch | None:
        """Check a batch by all rules; errors of its contents take precedence over errors of its place."""
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
        """Whether a batch may start at an offset. In any case, expect the next batch after this one."""
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
    """Set the position of an error in a control record's value to that of its batch."""
    error.position = None  # It was a position in the value.
    return error.located(position=batch.position, base_offset=batch.base_offset)


def _error_at(batch: RecordBatch, reason: str, rule: str) -> DecodeError:
    return CorruptFileError(reason, rule, position=batch.position, base_offset=batch.base_offset)


def _without_header(batch: RecordBatch, found: str) -> DecodeError:
    reason = f"the first batch has {found}, and not the header"
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
