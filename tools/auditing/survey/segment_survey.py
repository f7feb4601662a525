# SPDX-License-Identifier: Apache-2.0
"""Surveys a segment with its indexes in one pass: checks every CRC, every record and every rule about a segment.

A chunk of batches goes through all rules as columns while it is in the processor's cache. The state that is kept
between chunks does not grow with the number of batches.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from raftlog.errors import DecodeError, MissingExtraError, StorageError
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import Chunk, read_columns
from raftlog.records.columns.record_summaries import summarize_records
from raftlog.records.files.file_names import METADATA_TOPIC, FileKind
from raftlog.storage.reading.readable_bytes import ReadableBytes
from raftlog.tools.auditing.batches.batch_order import BatchOrder
from raftlog.tools.auditing.batches.batch_rules import BatchRules
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.batches.record_rules import RecordRules
from raftlog.tools.auditing.evidence import ControlSeen, FileEvidence, LogExtent, ProducerSpan, SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.auditing.survey.blocks import Blocks
from raftlog.tools.auditing.survey.snapshot_ends import SnapshotEnds
from raftlog.tools.auditing.survey.zeroed_tail import join_zeroed_tail
from raftlog.tools.catalogue.audit_rules import RELATIVE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.control_rules import ControlRules
    from raftlog.tools.auditing.batches.message_rules import MessageRules
    from raftlog.tools.auditing.indexes.index_rules import IndexSurveys
    from raftlog.tools.auditing.producers.producer_rules import ProducerSurvey
    from raftlog.tools.auditing.survey.version_rules import VersionSearch


def survey_segment(task: SurveyTask, log: ByteSource, indexes: Mapping[FileKind, bytes]) -> FileEvidence:
    """Read all of a segment, and check every rule that one segment can break.

    Bytes that the disk cannot read are a finding, and the bytes around them are checked. A file that grows or shrinks
    meanwhile is judged by the bytes that were read. The contents of files never raise an error.

    Args:
        task: the segment.
        log: the bytes of its ``.log``.
        indexes: the bytes of its existing indexes.
    """
    survey = _SegmentSurvey(task, indexes)
    readable = ReadableBytes(log)
    try:
        for piece in join_zeroed_tail(read_columns(readable, (), data_only=False), readable):
            survey.take(piece, readable)
    except StorageError as error:
        survey.fail(error)
    return survey.finish()


# Modules for contents that many segments lack are imported on first use: a command over one file starts sooner.


def _control_rules(limit: FindingLimit) -> "ControlRules":
    from raftlog.tools.auditing.batches.control_rules import ControlRules

    return ControlRules(limit)


def _message_rules(limit: FindingLimit) -> "MessageRules":
    from raftlog.tools.auditing.batches.message_rules import MessageRules

    return MessageRules(limit)


def _version_search(task: SurveyTask) -> "VersionSearch | None":
    if not task.is_raft:
        return None
    from raftlog.tools.auditing.survey.version_rules import VersionSearch, may_set_version

    return VersionSearch() if may_set_version(task) else None


def _producer_survey(task: SurveyTask) -> "ProducerSurvey":
    from raftlog.tools.auditing.producers.producer_rules import ProducerSurvey

    return ProducerSurvey(task)


def _index_surveys(task: SurveyTask, indexes: Mapping[FileKind, bytes]) -> "IndexSurveys":
    from raftlog.tools.auditing.indexes.index_rules import IndexSurveys

    return IndexSurveys(task, indexes)


@attrs.define
class _Totals:
    """Counts over all batches whose CRC holds."""

    batch_count: int = 0
    record_count: int = 0
    max_timestamp: int = -1

    def take(self, table: BatchTable) -> None:
        """Count batches."""
        self.batch_count += len(table)
        self.record_count += table.total_records
        self.max_timestamp = max(self.max_timestamp, table.greatest_timestamp)


class _SegmentSurvey:
    """The state of a segment's survey."""

    def __init__(self, task: SurveyTask, indexes: Mapping[FileKind, bytes]) -> None:
        self._task = task
        self._limit = FindingLimit(task.path)
        self._coverage = Coverage()
        self._totals = _Totals()
        self._batches = BatchRules(task, self._limit)
        self._records = RecordRules(task, self._limit)
        reads_messages = task.reads_messages and task.place.topic == METADATA_TOPIC
        self._messages = _message_rules(self._limit) if reads_messages else None
        self._controls = _control_rules(self._limit) if task.is_raft else None
        self._order = BatchOrder(task, self._limit, self._controls.openings if self._controls else frozenset())
        self._blocks = Blocks()
        self._snapshot_ends = SnapshotEnds(task.snapshot_offsets)
        self._producers: ProducerSurvey | None = None
        self._shows_compaction = False
        self._version = _version_search(task)
        self._indexes = _index_surveys(task, indexes) if indexes else None
        self._has_entries = any(indexes.values())

    def take(self, piece: Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption, source: ReadableBytes) -> None:
        """Check the next piece."""
        self._coverage.add(piece)
        match piece:
            case Chunk():
                self._take_batches(BatchTable(piece.batches))
            case LegacyBatch():
                self._take_legacy(piece)
            case _:
                self._take_damage(piece, source)

    def fail(self, error: StorageError) -> None:
        """Record that the rest cannot be read."""
        self._limit.add(Finding(self._task.path, "file-unreadable", f"{error.operation} failed: {error.cause}"))

    def finish(self) -> FileEvidence:
        """Return the evidence."""
        self._order.finish()
        self._batches.finish()
        self._records.finish()
        extent = self._extent()
        aborted = () if self._producers is None else self._producers.aborted()
        if self._indexes is not None:
            self._limit.extend(self._index_findings(self._indexes.end(extent, aborted)))
        return FileEvidence(
            self._task,
            self._limit.findings(),
            self._coverage,
            extent,
            tuple(self._order.epochs),
            tuple(self._controls_seen()),
            self._blocks.blocks(),
            self._producer_spans(),
            tuple(self._snapshot_ends.batches()),
            holes=self._order.holes,
            shows_compaction=self._shows_compaction,
            stray_offsets=self._order.stray_offsets,
            sets_metadata_version=None if self._version is None else self._version.found,
            stable_offsets=() if self._indexes is None else self._indexes.stable_offsets,
            misplaced_from=self._order.misplaced_from,
            controllers=() if self._messages is None else tuple(self._messages.controllers),
        )

    def _index_findings(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """Yield findings of indexes, except those that follow from a wrong name: entries are relative to its offset."""
        is_misnamed = self._order.starts_too_low
        return (finding for finding in found if not (is_misnamed and finding.rule in RELATIVE_RULES))

    def _take_batches(self, table: BatchTable) -> None:
        summaries = summarize_records(table.run, may_be_compressed=table.may_be_compressed)
        self._totals.take(table)
        self._shows_compaction |= table.shows_compaction
        self._batches.take(table)
        self._records.take(table, summaries)
        if self._messages is not None:
            self._messages.take(table, summaries)
        if self._version is not None:
            self._version.take(table)
        if self._controls is not None:
            self._controls.take(table, {row for row, _ in summaries.errors})
        elif self._producers is not None or table.have_producers:
            self._take_producers(table)
        self._order.take(table)
        self._blocks.take(table)
        self._snapshot_ends.take(table)
        if self._indexes is not None and self._has_entries:
            self._indexes.take(table)

    def _take_producers(self, table: BatchTable) -> None:
        if self._producers is None:
            self._producers = _producer_survey(self._task)
            # Without aborted transactions, no transaction index is needed.
            self._indexes = self._indexes or _index_surveys(self._task, {})
        self._limit.extend(self._producers.take(table))

    def _take_legacy(self, batch: LegacyBatch) -> None:
        """Check a message of magic 0 or 1, by the rules of its format and of order."""
        if self._task.is_raft:
            reason = f"a batch of magic {batch.magic} in a raft log"
            self._limit.add(self._finding("batch-magic", reason, batch))
        first_offset, count = batch.base_offset, 0
        try:
            for record in batch.records(check_crc=False):
                first_offset, count = min(first_offset, record.offset), count + 1
                if not record.crc_holds:
                    reason = f"the CRC of the inner message at offset {record.offset} does not match"
                    self._limit.add(self._finding("batch-crc", reason, batch))
        except DecodeError as error:
            self._limit.add(Finding.of_error(error, self._task.path))
        except MissingExtraError as error:
            self._records.note_unread(error)
        if batch.base_offset < 0:
            self._limit.add(self._finding("offset-negative", f"offset {batch.base_offset}", batch))
        self._totals.batch_count += 1
        self._totals.record_count += count
        self._totals.max_timestamp = max(self._totals.max_timestamp, batch.max_timestamp)
        self._order.take_legacy(batch, first_offset)

    def _take_damage(self, piece: TornTail | ZeroPadding | Corruption, source: ReadableBytes) -> None:
        rule, reason = piece.rule, "zeros up to the end" if isinstance(piece, ZeroPadding) else piece.reason
        if source.has_gap(piece.position, piece.size_bytes):
            rule, reason = "file-unreadable", f"the disk cannot read these bytes ({source.failure})"
        elif not isinstance(piece, Corruption) and self._task.next_base_offset is not None:
            reason += f"; the next segment starts at offset {self._task.next_base_offset}"
        finding = Finding(self._task.path, rule, reason, piece.position, piece.size_bytes)
        if isinstance(piece, Corruption) or rule == "file-unreadable":
            self._order.note_damage(finding)
        else:
            self._limit.add(finding)

    def _finding(self, rule: str, reason: str, batch: LegacyBatch) -> Finding:
        return Finding(self._task.path, rule, reason, batch.position, offset=batch.base_offset)

    def _controls_seen(self) -> list[ControlSeen]:
        """The control records; those of a batch with an impossible epoch have the epoch that it should have."""
        controls = [] if self._controls is None else self._controls.seen
        return [attrs.evolve(seen, epoch=self._order.epoch_at(seen.position, seen.epoch)) for seen in controls]

    def _producer_spans(self) -> tuple[ProducerSpan, ...]:
        if self._producers is None or self._indexes is None:
            return ()
        return self._producers.spans(self._indexes.first_offsets)

    def _extent(self) -> LogExtent | None:
        if self._order.span is None:
            return None
        start_offset, end_offset = self._order.span
        epochs = [seen.epoch for seen in self._order.epochs] or [-1]
        return LogExtent(
            start_offset,
            end_offset,
            epochs[0],
            epochs[-1],
            self._totals.max_timestamp,
            self._totals.batch_count,
            self._totals.record_count,
        )
