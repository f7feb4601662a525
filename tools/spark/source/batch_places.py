# SPDX-License-Identifier: Apache-2.0
"""Where batches stand in logs that grow: a search begins where an earlier one ended, if that batch is there still.

Nothing is trusted for having been seen: each time the header, CRC included, is read again and compared.
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
"""Batches of a segment: the last one, and those around which a stream is."""


@attrs.frozen
class SeenBatch:
    """A batch whose CRC held when it was read.

    Attributes:
        base_offset: of its first record.
        next_offset: after its last one.
        epoch: of its leader, ``NO_EPOCH`` before magic 2.
        position: byte position in its segment.
        next_position: the one after its last byte.
        head: its header's bytes, by which it is known again.
    """

    base_offset: int
    next_offset: int
    epoch: int
    position: int
    next_position: int
    head: bytes

    @classmethod
    def of(cls, batch: RecordBatch | LegacyBatch) -> "SeenBatch":
        """Note a batch."""
        epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else NO_EPOCH
        head = bytes(batch.buffer[: limits.BATCH_OVERHEAD])
        next_position = batch.position + batch.size_bytes
        return cls(batch.base_offset, batch.last_offset + 1, epoch, batch.position, next_position, head)

    def is_still_in(self, source: ByteSource) -> bool:
        """Whether the header stands where it stood."""
        return source.read_at(self.position, len(self.head)) == self.head


class BatchPlaces:
    """Finds batches, and remembers some by their segment's path. Damage is passed over: who reads it complains."""

    def __init__(self) -> None:
        self._seen: dict[str, list[SeenBatch]] = {}

    def keep_only(self, paths: Collection[str]) -> None:
        """Forget all other segments."""
        self._seen = {path: seen for path, seen in self._seen.items() if path in paths}

    def first(self, segments: Sequence[SurveyTask], offset: int) -> SeenBatch | None:
        """Return the first batch that ends behind an offset; None if there is none.

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
        """Return the last batch that starts before an offset, or of all; None if there is none.

        Where compaction took the batch that held the offset before, it is one that ends earlier.

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
        """Yield the batches of a segment from one on that starts at an offset or before it, if there is such a one.

        Args:
            segment: where to look.
            offset: any, or None for the end of the log.
            last_of_run: of batches that stand end to end the last one is enough.
        """
        with open_source(segment.path) as source:
            for piece in split_runs(source, start=self._start(segment, source, offset)):
                if isinstance(piece, BatchRun):
                    batches = [piece.batch(len(piece) - 1)] if last_of_run else piece.batches()
                    yield from map(SeenBatch.of, batches)
                elif isinstance(piece, LegacyBatch):
                    yield SeenBatch.of(piece)

    def _start(self, segment: SurveyTask, source: ByteSource, offset: int | None) -> int:
        """Return the byte position of a batch from which it is not far: one that was seen, or one that is indexed."""
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
