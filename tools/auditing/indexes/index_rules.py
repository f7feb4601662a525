# SPDX-License-Identifier: Apache-2.0
"""The indexes of a segment against its batches: ``.index`` and ``.timeindex``, in time linear in the segment.

An entry is compared when the batches that it is about come by, with the headers of a chunk at a time. In an offset
index it names the last offset of the batch at its position; in a time index a timestamp, and the last offset of the
batch that has it as its max timestamp. What is also right:

* Older brokers make an entry an append, not a batch: one for several batches names the last offset of the last,
  at the position of the first. Compaction appended so too, and named the last record that it kept. A reader that
  starts there finds all it looks for; so these are harmless, as long as the next entry is behind that offset.
* Leaders of some older releases put the offset of the record itself into the time index.

One fault is one finding. What an entry points at within damaged bytes, or behind the last sound batch of a file that
goes on behind it, is not judged: Kafka cuts the log there when it starts, and makes the index anew. Where batches were
lost or doubled, each entry behind them is as far from its batch as the next; that is what was found in the log.
A broker's own check of an index at its start sees less than these rules, so it is not made here (``index-sanity``).

Source: OffsetIndex, TimeIndex, LogSegment#append, LogSegment#recover.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import LogExtent, SurveyTask
from raftlog.tools.auditing.indexes.index_file import SegmentShape
from raftlog.tools.auditing.indexes.offset_index_rules import OffsetIndexSurvey
from raftlog.tools.auditing.indexes.time_index_rules import TimeIndexSurvey
from raftlog.tools.auditing.indexes.transaction_index_rules import TransactionIndexSurvey
from raftlog.tools.auditing.producers.transaction_rules import AbortMarker
from raftlog.tools.catalogue.findings import Finding

_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class IndexSurveys:
    """Compares the indexes of a segment with its batches.

    Where there is no transaction index, the segment must abort nothing. Other indexes Kafka makes anew.

    Args:
        task: the segment.
        indexes: all of each index that is there.
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
        """Yield what is wrong with the indexes, once all batches have come by.

        A log that lost its end has entries beyond it in several indexes; the first one says it.

        Args:
            extent: of the segment's batches; None where there is none.
            aborted: its ABORT markers.
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
    def first_offsets(self) -> dict[int, int]:
        """Where the transaction index says that transactions begin, by the offsets of their markers."""
        return self._transactions.first_offsets
