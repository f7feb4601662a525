# SPDX-License-Identifier: Apache-2.0
"""Reads the log of a topic's partition as runs: sound batches of one epoch that follow each other, byte by byte.

Unlike a raft log, such a log may be compacted: records and whole batches are gone, and offsets have gaps. A gap between
two batches that follow each other byte by byte is of compaction, not of damage: nothing was there. So a run of a
compacted log covers all offsets from its start to its end.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from raftlog.errors import DecodeError, RepairRefusedError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.salvage.merging import read_usable
from raftlog.tools.salvage.runs import NamedSegment, Run, next_bases

_LAST_OFFSET: Final = (1 << 63) - 1
_MOST_RELATIVE: Final = (1 << 31) - 1


@attrs.frozen
class TopicRun(Run):
    """Sound batches of one epoch in one segment, each of which begins where the one before it ends, or after a gap.

    Attributes:
        covers_from: the offset from which on it is known that there is nothing but the run, inclusive. Below the start
            only in a compacted log.
        perhaps_from: the offset from which on there was nothing but the run if no file is missing before it, inclusive.
    """

    covers_from: int = 0
    perhaps_from: int = _LAST_OFFSET


class RunReader:
    """Reads the runs of one replica's log.

    Args:
        compacted_below: offsets below this one may be missing between batches; 0 in a log that was never compacted.
        cleaned_to: up to where the cleaner of this disk went, exclusive; None if no file says it.
        log_end: up to where the log is known to have gone, exclusive: what comes after the last batch; 0 if nothing
            says it.

    Attributes:
        odd_end: the end of the last sound batch that has fewer records than offsets, exclusive; 0 without one.
    """

    def __init__(self, compacted_below: int = 0, cleaned_to: int | None = None, log_end: int = 0) -> None:
        self._compacted_below = compacted_below
        self._files_below = compacted_below if cleaned_to is None else min(compacted_below, cleaned_to)
        self._log_end = log_end
        self._end: int | None = None
        self.odd_end = 0

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
        perhaps_from = _LAST_OFFSET
        if self._end is not None and self._end < segment.base_offset <= self._files_below:
            perhaps_from = self._end
        self._end = None
        for batch, following in _with_following(self._batches(source, path, segment, next_base_offset)):
            if batch is None:
                before = None
                continue
            after = _start(following, self._after(next_base_offset, batch.next_offset))
            is_linked = self._links(before, batch, after)
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
                covers_from = segment.base_offset if growing is None else growing.end_offset
            if growing is not None:
                yield attrs.evolve(growing, is_linked_after=is_linked)
            growing = _run(segment.file, batch, covers_from, is_linked_before=is_linked)
            if covers_from == segment.base_offset and is_linked:
                growing = attrs.evolve(growing, perhaps_from=perhaps_from)
        if growing is not None:
            self._end = before
            yield attrs.evolve(growing, is_linked_after=self._links_files(before, next_base_offset))
        elif before is not None:
            self._end = min(perhaps_from, before)  # An empty segment, as compaction leaves it.

    def _links_files(self, end: int | None, next_base_offset: int | None) -> bool:
        """Whether the end of a file can be beside the next one: there, or before it, with nothing known between.

        The end of the last file is beside that of the log, if that is known.
        """
        if end is None or next_base_offset is None or end >= next_base_offset:
            return end is not None and end == self._after(next_base_offset, end)
        return next_base_offset <= self._files_below

    def _after(self, next_base_offset: int | None, end: int) -> int | None:
        """Return what comes after a file that ends at an offset: the next one, or the end of the log, if it is that."""
        if next_base_offset is None and end == self._log_end:
            return end
        return next_base_offset

    def _links(self, before: int | None, batch: RecordBatch, following: int | None) -> bool:
        """Whether what is directly beside a batch says where it starts: for one after a gap, on both sides."""
        start: int = batch.base_offset
        if before is None or start <= before:
            return start == before
        return start <= self._compacted_below and following is not None and following >= batch.next_offset

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
            if piece.record_count <= piece.last_offset_delta:
                self.odd_end = max(self.odd_end, piece.next_offset)
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


def _start(following: tuple[RecordBatch | None] | None, after: int | None) -> int | None:
    """Return where what follows starts: a batch, or what is after the file; None if it is damage or nothing."""
    if following is None:
        return after
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
    before, last = batch.base_offset - 1, batch.last_offset
    try:
        for record in batch.records(check_crc=False):
            if not before < record.offset <= last:
                return False
            before = record.offset
    except DecodeError:
        return False
    return True


@attrs.frozen
class Seen:
    """A batch of a copy.

    Attributes:
        file: name of its segment.
        batch: the batch.
        covers_from: the offset from which on it is known that there is nothing but the batch, inclusive.
        perhaps_from: the offset from which on there may have been nothing but it: as ``TopicRun.perhaps_from``.
    """

    file: str
    batch: RecordBatch
    covers_from: int
    perhaps_from: int = _LAST_OFFSET

    @property
    def start(self) -> int:
        """Its base offset."""
        start: int = self.batch.base_offset
        return start

    @property
    def end(self) -> int:
        """The offset after its last one."""
        end: int = self.batch.next_offset
        return end

    @property
    def epoch(self) -> int:
        """Its leader epoch."""
        epoch: int = self.batch.partition_leader_epoch
        return epoch


Reader: TypeAlias = Callable[[int], Iterator[Seen]]
"""Yields the batches of a copy that may be used, by ascending offset."""


def read_covered(directory: str, runs: Sequence[TopicRun], end_offset: int) -> Iterator[Seen]:
    """Yield the batches of some runs of a log, up to an offset.

    Args:
        directory: of the log.
        runs: by ascending offset.
        end_offset: exclusive: batches that end after it are left out.

    Raises:
        StorageError: a file cannot be read.
    """
    for run in runs:
        covers_from, perhaps_from = run.covers_from, run.perhaps_from
        for file, batch in read_usable(directory, (run,), end_offset):
            yield Seen(file, batch, covers_from, perhaps_from)
            covers_from, perhaps_from = batch.next_offset, _LAST_OFFSET
