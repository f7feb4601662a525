# SPDX-License-Identifier: Apache-2.0
"""Reads the log of a topic's partition as runs: sound batches of one epoch that follow each other, byte by byte.

Unlike a raft log, such a log may be compacted: records and whole batches are gone, and offsets have gaps. A gap between
two batches that follow each other byte by byte is of compaction, not of damage: nothing was there. So a run of a
compacted log covers all offsets from its start to its end.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, RepairRefusedError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.salvage.runs import NamedSegment, Run, next_bases

_LAST_OFFSET: Final = (1 << 63) - 1
_MOST_RELATIVE: Final = (1 << 31) - 1


@attrs.frozen
class TopicRun(Run):
    """Sound batches of one epoch in one segment, each of which begins where the one before it ends, or after a gap.

    Attributes:
        covers_from: the offset from which on it is known that there is nothing but the run, inclusive. Below the start
            only in a compacted log.
    """

    covers_from: int = 0


class RunReader:
    """Reads the runs of one replica's log.

    Args:
        is_compacted: whether offsets may be missing between batches.

    Attributes:
        has_cleaned: whether a sound batch has fewer records than offsets, so that the log was compacted.
    """

    def __init__(self, *, is_compacted: bool) -> None:
        self._is_compacted = is_compacted
        self._end: int | None = None
        self.has_cleaned = False

    def runs(self, directory: str, segments: Sequence[NamedSegment]) -> Iterator[TopicRun]:
        """Yield the runs, in the order of files and bytes. Memory use is that of two batches.

        Args:
            directory: of the log.
            segments: by ascending base offset.

        Raises:
            RepairRefusedError: a batch is of message format 0 or 1.
            StorageError: a file cannot be read.
            MissingExtraError: a batch is compressed, and the codec's package is not installed.
        """
        for segment, next_base_offset in next_bases(segments):
            path = f"{directory}/{segment.file}"
            with FileSource(path) as source:
                yield from self._segment_runs(source, path, segment, next_base_offset)

    def _segment_runs(
        self, source: ByteSource, path: str, segment: NamedSegment, next_base_offset: int | None
    ) -> Iterator[TopicRun]:
        growing: TopicRun | None = None
        before: int | None = segment.base_offset
        from_before = self._end if self._is_compacted and self._end is not None else segment.base_offset
        self._end = None
        for batch, following in _with_following(self._batches(source, path, segment, next_base_offset)):
            if batch is None:
                before = None
                continue
            is_linked = self._links(before, batch, _start(following, next_base_offset))
            before = batch.next_offset
            if growing is not None and is_linked and batch.partition_leader_epoch == growing.epoch:
                growing = attrs.evolve(
                    growing,
                    end_position=batch.position + batch.size_bytes,
                    end_offset=before,
                    batch_count=growing.batch_count + 1,
                )
                continue
            covers_from = batch.base_offset
            if is_linked:
                covers_from = from_before if growing is None else growing.end_offset
            if growing is not None:
                yield attrs.evolve(growing, is_linked_after=is_linked)
            growing = _run(segment.file, batch, covers_from, is_linked_before=is_linked)
        if growing is not None:
            self._end = before
            is_followed = next_base_offset is not None and before is not None and before <= next_base_offset
            is_linked = is_followed and (before == next_base_offset or self._is_compacted)
            yield attrs.evolve(growing, is_linked_after=is_linked)
        elif before is not None:
            self._end = from_before  # An empty segment, as compaction leaves it.

    def _links(self, before: int | None, batch: RecordBatch, following: int | None) -> bool:
        """Whether what is directly beside a batch says where it starts: for one after a gap, on both sides."""
        start: int = batch.base_offset
        if before is None or start <= before:
            return start == before
        return self._is_compacted and following is not None and following >= batch.next_offset

    def _batches(
        self, source: ByteSource, path: str, segment: NamedSegment, next_base_offset: int | None
    ) -> Iterator[RecordBatch | None]:
        """Yield the sound batches of a segment in which their offsets can be, and None for bytes that are damaged."""
        for piece in split(source):
            if isinstance(piece, LegacyBatch):
                raise RepairRefusedError(
                    f"{path}: position {piece.position}: a batch of message format {piece.magic}, from before Kafka"
                    " 0.11: such logs are not salvaged"
                )
            if not isinstance(piece, RecordBatch) or not _is_sound(piece, segment.base_offset, next_base_offset):
                yield None
                continue
            self.has_cleaned = self.has_cleaned or piece.record_count <= piece.last_offset_delta
            yield piece


def _with_following(
    batches: Iterator[RecordBatch | None],
) -> Iterator[tuple[RecordBatch | None, tuple[RecordBatch | None] | None]]:
    """Yield each batch with the one after it, in a tuple; None at the end."""
    last: tuple[RecordBatch | None] | None = None
    for batch in batches:
        if last is not None:
            yield last[0], (batch,)
        last = (batch,)
    if last is not None:
        yield last[0], None


def _start(following: tuple[RecordBatch | None] | None, next_base_offset: int | None) -> int | None:
    """Return where what follows starts: a batch, or the next file; None if it is damage or nothing."""
    if following is None:
        return next_base_offset
    return None if following[0] is None else following[0].base_offset


def _run(file: str, batch: RecordBatch, covers_from: int, *, is_linked_before: bool) -> TopicRun:
    return TopicRun(
        file,
        batch.position,
        batch.position + batch.size_bytes,
        batch.base_offset,
        batch.next_offset,
        batch.partition_leader_epoch,
        is_linked_before=is_linked_before,
        crc=batch.crc,
        covers_from=covers_from,
    )


def _is_sound(batch: RecordBatch, base_offset: int, next_base_offset: int | None) -> bool:
    """Whether a batch whose CRC holds can be one that a leader has written, or the cleaner has left, in its file."""
    if min(batch.base_offset, batch.partition_leader_epoch, batch.last_offset_delta, batch.record_count) < 0:
        return False
    if batch.base_offset < base_offset or batch.base_offset > _LAST_OFFSET - 1 - batch.last_offset_delta:
        return False
    if batch.last_offset - base_offset > _MOST_RELATIVE or batch.record_count > batch.last_offset_delta + 1:
        return False
    if next_base_offset is not None and batch.next_offset > next_base_offset:
        return False
    before = batch.base_offset - 1
    try:
        for record in batch.records(check_crc=False):
            if not before < record.offset <= batch.last_offset:
                return False
            before = record.offset
    except DecodeError:
        return False
    return True
