# SPDX-License-Identifier: Apache-2.0
"""Surveys a KRaft snapshot."""

import attrs

from raftlog.errors import DecodeError
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import Chunk, read_columns
from raftlog.records.columns.record_summaries import summarize_records
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.snapshot.order import ControlBatch, SnapshotOrder
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.batches.batch_rules import BatchRules
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.batches.message_rules import MessageRules
from raftlog.tools.auditing.batches.record_rules import RecordRules
from raftlog.tools.auditing.evidence import ControlSeen, FileEvidence, LogExtent, SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.auditing.survey.blocks import Blocks
from raftlog.tools.auditing.survey.version_rules import VersionSearch, may_set_version
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage


def survey_snapshot(task: SurveyTask, source: ByteSource) -> FileEvidence:
    """Read all of a snapshot, after damage too, and check every CRC and every record.

    ``bootstrap.checkpoint`` is judged as a snapshot of epoch 0. Offsets in the extent and of control records are
    relative to the snapshot, starting at 0. A snapshot that has lost its end breaks ``snapshot-footer``.

    Args:
        task: the file.
        source: its bytes.

    Raises:
        MissingExtraError: control records are compressed, and the codec's package is not installed.
        StorageError: the disk failed.
    """
    survey = _SnapshotSurvey(task)
    for piece in read_columns(source, (), data_only=False):
        survey.take(piece)
    return survey.end()


class _SnapshotSurvey:
    def __init__(self, task: SurveyTask) -> None:
        self._task = task
        self._order = SnapshotOrder((task.snapshot_id or BOOTSTRAP_SNAPSHOT_ID).epoch, self._report)
        self._findings = FindingLimit(task.path)
        # A misplaced batch is not reported by other rules again.
        self._other_findings = FindingLimit(task.path)
        as_raft = attrs.evolve(task, is_raft=True, place=attrs.evolve(task.place, topic=METADATA_TOPIC))
        self._batch_rules = BatchRules(as_raft, self._other_findings)
        self._record_rules = RecordRules(as_raft, self._other_findings)
        reads_messages = task.reads_messages and task.place.topic in {"", METADATA_TOPIC}
        self._message_rules = MessageRules(self._other_findings) if reads_messages else None
        self._coverage = Coverage()
        self._blocks = Blocks()
        self._controls: list[ControlSeen] = []
        self._extent: LogExtent | None = None
        self._version = VersionSearch() if may_set_version(task) else None
        self._end_position = 0
        self._is_cut_off = False

    def take(self, piece: Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption) -> None:
        """Check the next piece."""
        self._coverage.add(piece)
        self._end_position = piece.position + piece.size_bytes
        match piece:
            case Chunk():
                self._take_batches(piece)
            case LegacyBatch():
                self._skip("batch-magic", f"magic {piece.magic}, but a snapshot has 2", piece)
            case Corruption():
                self._skip(piece.rule, piece.reason, piece)
            case TornTail():
                self._take_tail(piece, piece.reason)
            case ZeroPadding():
                self._take_tail(piece, "zeros up to the end")
        self._is_cut_off = not isinstance(piece, Chunk)

    def end(self) -> FileEvidence:
        """Return the evidence."""
        if not self._is_cut_off:
            self._order.end(self._end_position)
        self._batch_rules.finish()
        self._record_rules.finish()
        findings = self._findings.findings()
        offsets = {finding.offset for finding in findings if finding.offset is not None}
        others = [finding for finding in self._other_findings.findings() if finding.offset not in offsets]
        return FileEvidence(
            self._task,
            (*findings, *others),
            coverage=self._coverage,
            extent=self._extent,
            controls=tuple(self._controls),
            blocks=self._blocks.blocks(),
            sets_metadata_version=None if self._version is None else self._version.found,
            controllers=() if self._message_rules is None else tuple(self._message_rules.controllers),
        )

    def _take_tail(self, piece: TornTail | ZeroPadding, reason: str) -> None:
        if self._order.has_footer:
            self._skip(piece.rule, f"after the footer: {reason}", piece)
        elif not self._is_cut_off:  # Otherwise it is the rest of damage that is reported already.
            self._skip("snapshot-footer", f"the snapshot is cut off before its footer: {reason}", piece)

    def _skip(self, rule: str, reason: str, piece: LegacyBatch | Corruption | TornTail | ZeroPadding) -> None:
        self._findings.add(Finding(self._task.path, rule, reason, piece.position, piece.size_bytes))
        self._order.skip()

    def _report(self, error: DecodeError) -> None:
        self._findings.add(Finding.of_error(error, self._task.path))

    def _take_batches(self, chunk: Chunk) -> None:
        judged = self._order.follow(chunk.batches.run)
        for control in judged.control_batches.values():
            self._controls += _controls(control)
        table = BatchTable(chunk.batches)
        self._batch_rules.take(table)
        if self._version is not None:
            self._version.take(table)
        self._blocks.take(table)
        summaries = summarize_records(table.run)
        self._record_rules.take(table, summaries)
        if self._message_rules is not None:
            self._message_rules.take(table, summaries)
        self._extend(table)

    def _extend(self, table: BatchTable) -> None:
        before = self._extent
        self._extent = LogExtent(
            start_offset=int(table.base_offsets[0]) if before is None else before.start_offset,
            end_offset=int(table.last_offsets[-1]) + 1,
            first_epoch=int(table.epochs[0]) if before is None else before.first_epoch,
            last_epoch=int(table.epochs[-1]),
            max_timestamp=max(int(table.max_timestamps.max()), -1 if before is None else before.max_timestamp),
            batch_count=len(table) + (0 if before is None else before.batch_count),
            record_count=int(table.record_counts.clip(min=0).sum()) + (0 if before is None else before.record_count),
        )


def _controls(control: ControlBatch) -> list[ControlSeen]:
    batch = control.batch
    return [
        ControlSeen(
            offset=batch.base_offset + index,
            epoch=batch.partition_leader_epoch,
            timestamp=batch.max_timestamp,
            batch_offset=batch.base_offset,
            position=batch.position,
            key=record.raw_key,
            value=record.raw_value or b"",
        )
        for index, record in enumerate(control.records)
    ]
