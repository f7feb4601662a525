# SPDX-License-Identifier: Apache-2.0
"""Divides logs into parts that tasks read, and parts among tasks."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.file_paths import join_path, split_path
from raftlog.records.files.file_names import FileKind
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.mirrors.reading.log_reading import LogPart, SumsRequest
from raftlog.tools.mirrors.reading.log_rows import SegmentPlace
from raftlog.tools.spark.source.boundaries import Boundaries

_COST_OF_A_PART: Final = 64 * 1024
"""The approximate cost of opening a file, as the number of bytes read in the same time."""


@attrs.frozen
class PlannedPart:
    """A part of a log, and where it is.

    Attributes:
        part: the part.
        first_offset: the lowest offset that it may have.
        end_offset: the lowest offset that is after it.
        size_bytes: its size.
    """

    part: LogPart
    first_offset: int
    end_offset: int
    size_bytes: int

    def request(self, whole: SumsRequest) -> SumsRequest:
        """Return a request for the part alone: it has what concerns its offsets."""
        first, last = whole.edges.searchsorted((self.first_offset, self.end_offset))
        log = whole.log.within(self.part.segment, self.first_offset, self.end_offset)
        return SumsRequest(log, whole.edges[first : last + 1], whole.wants_holes)


def parts_of(request: SumsRequest, size_bytes: int) -> list[PlannedPart]:
    """Divide a log into parts of about a size, each of which begins with a sound batch.

    A segment whose batches have offsets that fall is one part.

    Raises:
        StorageError: a segment cannot be read.
    """
    log = request.log
    segments = log.segments_here()
    ends = [*(each.base_offset for each in segments[1:]), log.end_offset]
    return [part for each, end in zip(segments, ends, strict=True) for part in _parts_of_segment(each, end, size_bytes)]


def _parts_of_segment(segment: SegmentPlace, end_offset: int, size_bytes: int) -> Iterator[PlannedPart]:
    directory, name = split_path(segment.path)
    index = join_path(directory, name.removesuffix(FileKind.LOG.value) + FileKind.OFFSET_INDEX.value)
    with open_source(segment.path) as source:
        size = source.size()
        cuts = list(Boundaries(source, segment.base_offset, index).cuts(0, size, size_bytes, None))
    offsets = [segment.base_offset, *(cut.offset for cut in cuts), end_offset]
    if any(left > right for left, right in itertools.pairwise(offsets)):
        cuts, offsets = [], [segment.base_offset, max(segment.base_offset, end_offset)]
    positions = [0, *(cut.position for cut in cuts), size]
    for number, (start, stop) in enumerate(itertools.pairwise(positions)):
        part = LogPart(segment, start, stop if number < len(cuts) else None)
        yield PlannedPart(part, offsets[number], offsets[number + 1], stop - start)


def whole_segment(parts: Sequence[PlannedPart]) -> PlannedPart:
    """Return the parts of one segment as a single one."""
    first, last = parts[0], parts[-1]
    size = sum(each.size_bytes for each in parts)
    return PlannedPart(LogPart(first.part.segment), first.first_offset, last.end_offset, size)


def packed(sizes: Iterable[int], size_bytes: int) -> Iterator[range]:
    """Divide adjacent parts among tasks, each of about a size; yield the indices of each task's parts.

    Args:
        sizes: of the parts, in bytes.
        size_bytes: of a task.
    """
    first = end = total = 0
    for end, size in enumerate(sizes, 1):
        total += size + _COST_OF_A_PART
        if total >= size_bytes:
            yield range(first, end)
            first, total = end, 0
    if first < end:
        yield range(first, end)
