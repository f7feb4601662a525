# SPDX-License-Identifier: Apache-2.0
"""Compares the indexes of a segment with its batches, in time linear in the segment.

The headers of a segment are read once, in chunks, and each entry is compared when the batches that it refers to are
read. An entry of an offset index (``.index``) names the last offset of the batch at its position. An entry of a time
index (``.timeindex``) names a timestamp, and the last offset of the batch whose max timestamp that is. Two variants are
accepted:

* Older brokers write one entry per append, not per batch. An entry for several batches names the last offset of the
  last one, at the position of the first. Compaction once appended in this way too, and named the last record that it
  kept. A reader that starts at such an entry misses nothing, so these entries are harmless if the next entry comes
  after that offset.
* Leaders of some older releases wrote the offset of the record itself to the time index.

One fault gives one finding. Entries that point into damaged bytes, or past the last sound batch of a file that
continues after it, are not judged: Kafka truncates the log there at startup, and rebuilds the index. If batches were
lost or doubled, all later entries are off by the same distance; the survey of the log reports that fault. The check
that a broker makes of an index at startup finds less than these rules, so the audit does not repeat it
(``index-sanity``).

Source: OffsetIndex, TimeIndex, LogSegment#append, LogSegment#recover.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import LogExtent, StableOffset, SurveyTask
from raftlog.tools.auditing.indexes.index_file import SegmentShape
from raftlog.tools.auditing.indexes.offset_index_rules import OffsetIndexSurvey
from raftlog.tools.auditing.indexes.time_index_rules import TimeIndexSurvey
from raftlog.tools.auditing.indexes.transaction_index_rules import TransactionIndexSurvey
from raftlog.tools.auditing.producers.transaction_rules import AbortMarker
from raftlog.tools.catalogue.findings import Finding

_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class IndexSurveys:
    """Compares the indexes of a segment with its batches.

    A segment without a transaction index must not have aborted transactions. A missing index of another kind is not
    compared: Kafka rebuilds it.

    Args:
        task: the segment.
        indexes: the whole contents of each index that exists, by kind.
    """

    def __init__(self, task: SurveyTask, indexes: Mapping[FileKind, bytes]) -> None:
        self._shape = shape = SegmentShape(task.base_offset or 0)
        paths = {kind: task.indexes.get(kind, task.path) for kind in _KINDS}
        data = indexes.get(FileKind.TRANSACTION_INDEX, b"")
        self._transactions = TransactionIndexSurvey(task, paths[FileKind.TRANSACTION_INDEX], data, shape)
        self._surveys: list[OffsetIndexSurvey | TimeIndexSurvey | TransactionIndexSurvey] = [self._transactions]
        if (entries := indexes.get(FileKind.OFFSET_INDEX)) is not None:
            self._surveys.append(OffsetIndexSurvey(task, paths[FileKind.OFFSET_INDEX], entries, shape))
        if (entries := indexes.get(FileKind.TIME_INDEX)) is not None:
            self._surveys.append(TimeIndexSurvey(task, paths[FileKind.TIME_INDEX], entries, shape))

    def take(self, table: BatchTable) -> None:
        """Compare entries with the next batches of the segment."""
        if len(table):
            self._shape.take(table)
            for survey in self._surveys:
                survey.take(table)

    def end(self, extent: LogExtent | None, aborted: Sequence[AbortMarker] = ()) -> Iterator[Finding]:
        """Yield the findings about the indexes, after all batches were taken.

        If a log lost its end, several indexes have entries beyond it; only those of the first index are reported.

        Args:
            extent: extent of the segment's batches; None if there are none.
            aborted: the ABORT markers of the segment.
        """
        lost_end_in = None
        for survey in self._surveys:
            for finding in survey.end(extent, aborted):
                if finding.rule == "index-beyond":
                    lost_end_in = lost_end_in or finding.path
                    if finding.path != lost_end_in:
                        continue
                yield finding

    @property
    def stable_offsets(self) -> tuple[StableOffset, ...]:
        """Last stable offsets of the transaction index that other segments decide, as in ``FileEvidence``."""
        return tuple(self._transactions.stable_offsets)

    @property
    def first_offsets(self) -> dict[int, int]:
        """First offsets of aborted transactions according to the transaction index, by the offset of their marker."""
        return self._transactions.first_offsets
