# SPDX-License-Identifier: Apache-2.0
"""Finds batches in growing logs: a search starts where an earlier one ended, if that batch is still there.

Remembered batches are not trusted: each time, the header is read again and compared, including its CRC.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import ByteSource, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.source.stream_checks import NO_EPOCH

_MOST_REMEMBERED: Final = 4
"""The most batches remembered per segment: the last one, and those around the position of the stream."""


@attrs.frozen
class SeenBatch:
    """A batch whose CRC matched when it was read.

    Attributes:
        base_offset: of its first record.
        next_offset: after its last record.
        epoch: of its leader, ``NO_EPOCH`` before magic 2.
        position: byte position in its segment.
        next_position: byte position after it.
        head: the bytes of its header, which identify it.
    """

    base_offset: int
    next_offset: int
    epoch: int
    position: int
    next_position: int
    head: bytes

    @classmethod
    def of(cls, batch: RecordBatch | LegacyBatch) -> "SeenBatch":
        """Return the facts to remember about a batch."""
        epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else NO_EPOCH
        head = bytes(batch.buffer[: limits.BATCH_OVERHEAD])
        next_position = batch.position + batch.size_bytes
        return cls(batch.base_offset, batch.last_offset + 1, epoch, batch.position, next_position, head)

    def is_still_in(self, source: ByteSource) -> bool:
        """Whether the same header is still at its position."""
        return source.read_at(self.position, len(self.head)) == self.head


class BatchPlaces:
    """Finds batches, and remembers some per segment. It skips damage, which is reported when the rows are read."""

    def __init__(self) -> None:
        self._seen: dict[str, list[SeenBatch]] = {}

    def keep_only(self, paths: Collection[str]) -> None:
        """Forget the batches of all other segments."""
        self._seen = {path: seen for path, seen in self._seen.items() if path in paths}

    def first(self, segments: Sequence[SurveyTask], offset: int) -> SeenBatch | None:
        """Return the first batch with a next offset above ``offset``; None if there is none.

        Raises:
            StorageError: a segment cannot be read.
        """
        for segment in segments:
            if segment.next_base_offset is None or segment.next_base_offset > offset:
                for batch in self._from(segment, offset):
                    if batch.next_offset > offset:
                        return self._remembered(segment, batch)
        return None

    def last(self, segments: Sequence[SurveyTask], end: int | None = None) -> SeenBatch | None:
        """Return the last batch that starts before ``end``, or the last of all; None if there is none.

        If compaction removed the batch with the offset before ``end``, the result ends earlier.

        Raises:
            StorageError: a segment cannot be read.
        """
        for segment in reversed(segments):
            if end is None or segment.base_offset is None or segment.base_offset < end:
                found = _last_before(
                    self._from(segment, None if end is None else end - 1, last_of_run=end is None), end
                )
                if found is not None:
                    return self._remembered(segment, found)
        return None

    def _remembered(self, segment: SurveyTask, batch: SeenBatch) -> SeenBatch:
        seen = [each for each in self._seen.get(segment.path, ()) if each != batch]
        self._seen[segment.path] = [*seen, batch][-_MOST_REMEMBERED:]
        return batch

    def _from(self, segment: SurveyTask, offset: int | None, *, last_of_run: bool = False) -> Iterator[SeenBatch]:
        """Yield the batches of a segment, starting at one that is not after an offset, if there is one.

        Args:
            segment: the segment to read.
            offset: the offset, or None for the end of the log.
            last_of_run: whether to yield only the last one of adjacent batches.
        """
        with open_source(segment.path) as source:
            for piece in split_runs(source, start=self._start(segment, source, offset)):
                if isinstance(piece, BatchRun):
                    batches = [piece.batch(len(piece) - 1)] if last_of_run else piece.batches()
                    yield from map(SeenBatch.of, batches)
                elif isinstance(piece, LegacyBatch):
                    yield SeenBatch.of(piece)

    def _start(self, segment: SurveyTask, source: ByteSource, offset: int | None) -> int:
        """Return the byte position of a batch shortly before an offset, remembered or from the index."""
        wanted = _BEYOND_ALL if offset is None else offset
        seen = [each for each in self._seen.get(segment.path, ()) if each.base_offset <= wanted]
        for batch in sorted(seen, key=_position, reverse=True):
            if batch.is_still_in(source):
                return batch.position
        return IndexSeek(segment.path, segment.base_offset).position_before(source, wanted)


_BEYOND_ALL: Final = (1 << 63) - 1


def _position(batch: SeenBatch) -> int:
    return batch.position


def _last_before(batches: Iterable[SeenBatch], end: int | None) -> SeenBatch | None:
    found = None
    for batch in batches:
        if end is not None and batch.base_offset >= end:
            break
        found = batch
    return found
