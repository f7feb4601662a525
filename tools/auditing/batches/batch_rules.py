# SPDX-License-Identifier: Apache-2.0
"""Rules about each batch's header, and about timestamps of consecutive batches.

Whole columns are checked at once; single batches are examined only if a check fails.

Source: DefaultRecordBatch, LogValidator, BatchBuilder.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from raftlog.records.batches.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from raftlog.records.kernel_choice import kernel
from raftlog.tools.auditing.batches.batch_table import OFFSETS_CANNOT_BE, TIMESTAMPS_GO_BACK, BatchTable
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags

_UNUSED_ATTRIBUTES: Final = ~0x7F
_NOT_OF_RAFT: Final = TRANSACTIONAL_FLAG | LOG_APPEND_TIME_FLAG | DELETE_HORIZON_FLAG


class BatchRules:
    """Checks the headers of one segment's batches.

    Args:
        task: the segment.
        limit: receives the findings.
    """

    def __init__(self, task: SurveyTask, limit: FindingLimit) -> None:
        self._is_raft = task.is_raft
        self._limit = limit
        self._greatest_timestamp = -1
        self._steps_back, self._longest_step_ms = 0, 0
        self._first_step: tuple[int, int] = (0, 0)

    def take(self, table: BatchTable) -> None:
        """Check the next batches of the segment."""
        self._judge_offsets(table)
        if table.all_attributes & _UNUSED_ATTRIBUTES:
            flags = (table.attributes & _UNUSED_ATTRIBUTES) != 0
            self._report("batch-attributes", table, flags, lambda row: f"attributes {_hex(table, row)}")
        if self._is_raft:
            self._judge_raft(table)
        else:
            self._judge_producers(table)
        self._judge_timestamps(table)

    def finish(self) -> None:
        """Report timestamps that go back, which are counted over the whole segment."""
        if self._steps_back:
            position, offset = self._first_step
            reason = f"max timestamps go back at {self._steps_back} batches, by {self._longest_step_ms} ms at most"
            self._limit.add(Finding(self._limit.path, "timestamp-back", reason, position, offset=offset))

    def _judge_offsets(self, table: BatchTable) -> None:
        if table.disorder & OFFSETS_CANNOT_BE:
            self._report("offset-negative", table, ~table.have_offsets, lambda row: _offsets_text(table, row))

    def _judge_raft(self, table: BatchTable) -> None:
        if table.least_epoch < 0:
            self._report("epoch-negative", table, table.epochs < 0, lambda row: f"a batch of epoch {table.epochs[row]}")
        if table.all_attributes & _NOT_OF_RAFT or table.have_producers:
            producers = table.producer_ids & table.producer_epochs & table.base_sequences
            flags = (producers != -1) | ((table.attributes & _NOT_OF_RAFT) != 0)
            self._report("batch-bare", table, flags, lambda row: _producer_text(table, row))

    def _judge_producers(self, table: BatchTable) -> None:
        """Check which parts of a producer's state a batch has, and that a marker is alone in its batch."""
        if table.all_attributes & TRANSACTIONAL_FLAG or table.have_producers:
            have_producers = table.producer_ids >= 0
            flags = table.are_transactional & ~have_producers
            flags |= have_producers & (table.base_sequences < 0) & ~table.are_control
            self._report("batch-producer", table, flags, lambda row: _producer_text(table, row))
        if table.all_attributes & CONTROL_FLAG:
            flags = table.are_control & (table.record_counts > 1)
            self._report("control-alone", table, flags, lambda row: f"{table.record_counts[row]} records")

    def _judge_timestamps(self, table: BatchTable) -> None:
        if table.least_timestamp < -1:
            flags = (table.max_timestamps < -1) | (table.base_timestamps < -1)
            self._report("timestamp-negative", table, flags, lambda row: _timestamps_text(table, row))
        before = self._greatest_timestamp
        self._greatest_timestamp = max(before, table.greatest_timestamp)
        if table.disorder & TIMESTAMPS_GO_BACK or table.run.batch(0).max_timestamp < before:
            self._note_steps(table, before)

    def _note_steps(self, table: BatchTable, before: int) -> None:
        run = table.run
        count, longest_ms, first = kernel.timestamp_steps(run.data, run.positions, before)
        if count and not self._steps_back:
            batch = run.batch(first)
            self._first_step = batch.position, batch.base_offset
        self._steps_back += count
        self._longest_step_ms = max(self._longest_step_ms, longest_ms)

    def _report(self, rule: str, table: BatchTable, flags: "Flags", reason: Callable[[int], str]) -> None:
        report_rows(self._limit, rule, table, flags, reason)


def report_rows(
    limit: FindingLimit, rule: str, table: BatchTable, flags: "Flags", reason: Callable[[int], str]
) -> None:
    """Report a broken rule for each flagged batch.

    Args:
        limit: receives the findings.
        rule: the rule that the flagged batches break.
        table: the batches.
        flags: which batches of the table are flagged.
        reason: returns the reason for a row.
    """

    def explain(row: int) -> Finding:
        position, offset, epoch = int(table.positions[row]), int(table.base_offsets[row]), int(table.epochs[row])
        return Finding(limit.path, rule, reason(row), position, offset=offset, epoch=epoch)

    limit.add_rows(rule, flags.nonzero()[0], explain)


def _hex(table: BatchTable, row: int) -> str:
    return f"0x{int(table.attributes[row]) & 0xFFFF:04x}"


def _offsets_text(table: BatchTable, row: int) -> str:
    return f"base offset {table.base_offsets[row]}, last offset delta {table.last_offset_deltas[row]}"


def _producer_text(table: BatchTable, row: int) -> str:
    return (
        f"attributes {_hex(table, row)}, producer id {table.producer_ids[row]}, "
        f"producer epoch {table.producer_epochs[row]}, base sequence {table.base_sequences[row]}"
    )


def _timestamps_text(table: BatchTable, row: int) -> str:
    return f"base timestamp {table.base_timestamps[row]}, max timestamp {table.max_timestamps[row]}"
