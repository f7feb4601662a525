# SPDX-License-Identifier: Apache-2.0
"""Rules about the records inside batches, checked on summaries per batch.

Source: DefaultRecord, DefaultRecordBatch, RecordsIterator, LogValidator.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import CONTROL_FLAG
from raftlog.records.batches.raft_frames import length_problem
from raftlog.records.columns.record_summaries import (
    HAS_HEADERS,
    HAS_KEY,
    HAS_TIME_DELTA,
    LACKS_VALUE,
    MAX_TIMESTAMP_DIFFERS,
    OFFSETS_GO_BACK,
    OFFSETS_GO_BEYOND,
    OFFSETS_HAVE_GAPS,
    RecordSummaries,
)
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.auditing.batches.batch_rules import report_rows
from raftlog.tools.auditing.batches.batch_table import COUNTS_DIFFER, BatchTable
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags

_CODEC: Final = 7


class RecordRules:
    """Checks the records of one segment's batches.

    Args:
        task: the segment.
        limit: receives the findings.
    """

    def __init__(self, task: SurveyTask, limit: FindingLimit) -> None:
        self._is_raft = task.is_raft
        self._is_metadata = task.place.topic == METADATA_TOPIC
        self._limit = limit
        self._last_span: Finding | None = None
        self._unread: dict[str, int] = {}

    def take(self, table: BatchTable, summaries: RecordSummaries) -> None:
        """Check the records of the next batches."""
        if summaries.errors:
            self._report_errors(summaries)
        if summaries.trailing:
            self._report_trailing(table, summaries)
        found = summaries.all_traits
        if found & (OFFSETS_GO_BACK | OFFSETS_GO_BEYOND):
            flags = self._flags(table, summaries, OFFSETS_GO_BACK | OFFSETS_GO_BEYOND) & table.have_offsets
            self._report("record-offset", table, flags, lambda row: _offsets_text(table, summaries, row))
        if found & MAX_TIMESTAMP_DIFFERS:
            flags = self._flags(table, summaries, MAX_TIMESTAMP_DIFFERS)
            if self._is_raft:  # A record with a timestamp delta is reported as raft-batch or raft-record.
                flags &= ~self._flags(table, summaries, HAS_TIME_DELTA)
            self._report("timestamp-max", table, flags, lambda row: _timestamp_text(table, summaries, row))
        if self._is_raft:
            self._judge_raft(table, summaries)
        else:
            self._last_span = self._span_problem(table, summaries) if table.disorder & COUNTS_DIFFER else None

    def _span_problem(self, table: BatchTable, summaries: RecordSummaries) -> Finding | None:
        """Return a finding if the last batch has too few records for its offsets, and none with a key.

        If the last offset of any other batch is too high, the next batch shows it.
        """
        row = len(table) - 1
        batch = table.run.batch(row)
        traits = summaries.traits[row] & (HAS_KEY | OFFSETS_GO_BACK | OFFSETS_GO_BEYOND)
        was_read = all(unread != row for unread, _ in summaries.errors)
        if batch.is_control or traits or not was_read or not 0 < batch.record_count <= batch.last_offset_delta:
            return None
        reason, epoch = _span_text(table, row), batch.partition_leader_epoch
        return Finding(self._limit.path, "batch-span", reason, batch.position, offset=batch.base_offset, epoch=epoch)

    def _judge_raft(self, table: BatchTable, summaries: RecordSummaries) -> None:
        found = summaries.all_traits
        if found & OFFSETS_HAVE_GAPS or table.disorder & COUNTS_DIFFER:
            flags = table.record_counts != table.last_offset_deltas + 1
            flags |= self._flags(table, summaries, OFFSETS_HAVE_GAPS)
            flags &= ~self._flags(table, summaries, OFFSETS_GO_BACK | OFFSETS_GO_BEYOND)
            flags &= table.have_offsets & _were_read(table, summaries)
            self._report("raft-batch", table, flags, lambda row: _span_text(table, row))
        if found & (HAS_TIME_DELTA | HAS_HEADERS):
            flags = self._flags(table, summaries, HAS_TIME_DELTA | HAS_HEADERS)
            reason = "a record has a time of its own, or headers"
            if table.all_attributes & CONTROL_FLAG:
                self._report("raft-batch", table, flags & table.are_control, lambda row: reason)
                flags &= ~table.are_control
            self._report("raft-record", table, flags, lambda row: reason)
        if table.may_be_compressed:
            self._judge_lengths(table, summaries)
        if self._is_metadata and found & (HAS_KEY | LACKS_VALUE):
            flags = self._flags(table, summaries, HAS_KEY | LACKS_VALUE) & ~table.are_control
            self._report("frame-empty", table, flags, lambda row: "a record has a key, or no value")

    def _judge_lengths(self, table: BatchTable, summaries: RecordSummaries) -> None:
        """Check that no record of a compressed batch is longer than its batch; uncompressed ones cannot be."""
        compressed = (table.attributes & _CODEC) != 0
        for row in (compressed & _were_read(table, summaries)).nonzero()[0]:
            batch = table.run.batch(int(row))
            problem = length_problem(batch)
            if problem is not None:
                path, position, epoch = self._limit.path, int(table.positions[row]), batch.partition_leader_epoch
                found = Finding(path, "raft-frame", problem, position, offset=batch.base_offset, epoch=epoch)
                self._limit.add(found)

    def _flags(self, table: BatchTable, summaries: RecordSummaries, traits: int) -> "Flags":
        """Return which batches have at least one of some traits."""
        flags: Flags = (np.frombuffer(summaries.traits, dtype=np.int64) & traits) != 0
        return flags & _were_read(table, summaries) if summaries.errors else flags

    def finish(self) -> None:
        """Report the last batch, if only now it is known to be that, and batches whose records could not be read."""
        if self._last_span is not None:
            self._limit.add(self._last_span)
        for reason, count in self._unread.items():
            self._limit.add(Finding(self._limit.path, "file-unreadable", f"records of {count} batches: {reason}"))

    def _report_errors(self, summaries: RecordSummaries) -> None:
        for _, error in summaries.errors:
            if isinstance(error, DecodeError):
                self._limit.add(Finding.of_error(error, self._limit.path))
            else:
                self.note_unread(error)

    def _report_trailing(self, table: BatchTable, summaries: RecordSummaries) -> None:
        unread = {row for row, _ in summaries.errors}
        rests = {row: rest for row, rest in summaries.trailing if row not in unread}
        flags = np.zeros(len(table), dtype=np.bool_)
        flags[list(rests)] = True
        self._report(
            "codec-trailing", table, flags, lambda row: f"{rests[row]} bytes after the end of the compressed stream"
        )

    def note_unread(self, error: Exception) -> None:
        """Count a batch whose records cannot be read here, whether or not they are sound."""
        self._unread[str(error)] = self._unread.get(str(error), 0) + 1

    def _report(self, rule: str, table: BatchTable, flags: "Flags", reason: Callable[[int], str]) -> None:
        report_rows(self._limit, rule, table, flags, reason)


def _were_read(table: BatchTable, summaries: RecordSummaries) -> "Flags":
    """Return which batches have sound records."""
    flags = np.ones(len(table), dtype=np.bool_)
    flags[[row for row, _ in summaries.errors]] = False
    return flags


def _offsets_text(table: BatchTable, summaries: RecordSummaries, row: int) -> str:
    found = f"records from offset {summaries.first_offsets[row]} to {summaries.last_offsets[row]}"
    return f"{found}, not increasing within {table.base_offsets[row]} to {table.last_offsets[row]}"


def _timestamp_text(table: BatchTable, summaries: RecordSummaries, row: int) -> str:
    return f"max timestamp {table.max_timestamps[row]}, the latest record is of {summaries.max_timestamps[row]}"


def _span_text(table: BatchTable, row: int) -> str:
    return f"{table.record_counts[row]} records for offsets {table.base_offsets[row]} to {table.last_offsets[row]}"
