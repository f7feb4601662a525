# SPDX-License-Identifier: Apache-2.0
"""Which records of two replicas differ, by the comparison of mirrors that have the offsets of their sources.

Both logs are read once more, from the first offset on at which their batches differ.
"""

import enum
import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

import attrs

from raftlog.records.batches.record import RecordView
from raftlog.records.columns.transactions import Transactions
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.mirrors.comparing.differences import MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.comparing.same_offsets import compare_same_offsets, window_edges
from raftlog.tools.mirrors.one_sided_offsets import without_explained
from raftlog.tools.mirrors.pair_findings import differing_parts
from raftlog.tools.mirrors.reading.log_reading import LocalSummer, SumsRequest
from raftlog.tools.mirrors.reading.log_rows import LogRows, LogTransactions, SegmentPlace

CONTROL: Final = "control"
"""The part in which records differ if at least one of them is a control record."""
MOST_READ_AGAIN: Final = 10_000
"""So many changed records are read again to tell which parts have changed."""


class RecordFault(enum.Enum):
    """How replicas differ at an offset."""

    CHANGED = "changed"
    LEFT_ONLY = "left-only"
    RIGHT_ONLY = "right-only"


_FAULTS: Final = {
    MirrorFault.CHANGED: RecordFault.CHANGED,
    MirrorFault.HOLE: RecordFault.LEFT_ONLY,
    MirrorFault.FOREIGN: RecordFault.RIGHT_ONLY,
    MirrorFault.WRITTEN_TO: RecordFault.RIGHT_ONLY,
}


@attrs.frozen
class RecordDifference:
    """Records that differ in one way.

    Attributes:
        fault: how.
        place: their offsets.
        count: how many there are.
        is_exact: whether each offset of the place is meant. Otherwise there are so many differences of this kind that
            this one stands for all that are not told one by one.
        parts: of the first changed one: which of key, value, headers and timestamp, or ``control``; empty if it was not
            read again.
    """

    fault: RecordFault
    place: OffsetRange
    count: int
    is_exact: bool = True
    parts: tuple[str, ...] = ()


@attrs.frozen
class RecordComparison:
    """Which records of two replicas differ.

    Attributes:
        start_offset: the first offset that was compared, inclusive.
        compared: how many records both have, the same or changed.
        unverifiable: how many records of the left one cannot be compared, since one side is gone or damaged.
        differences: by place.
        read_again: how many changed records were read again.
        parts: of these, in how many each part differs.
    """

    start_offset: int
    compared: int
    unverifiable: int
    differences: tuple[RecordDifference, ...]
    read_again: int
    parts: Mapping[str, int]

    def count(self, fault: RecordFault) -> int:
        """Return how many records differ in one way."""
        return sum(each.count for each in self.differences if each.fault is fault)


def compare_records(left: PartitionEvidence, right: PartitionEvidence, start_offset: int) -> RecordComparison:
    """Compare the records of two replicas.

    Args:
        left: a replica.
        right: another one.
        start_offset: where to begin, inclusive; it is in both logs, or at the end of one, and their batches before are
            the same.

    Raises:
        StorageError: a segment cannot be read.
        MissingExtraError: a codec's package is not installed.
    """
    logs = _rows(left, start_offset), _rows(right, start_offset)
    edges = window_edges(*logs)
    readings = list(LocalSummer().summed(SumsRequest(each, edges) for each in logs))
    follows_same = start_offset > max(left.start_offset, right.start_offset)
    result = compare_same_offsets(*(each.summed for each in readings), follows_same=follows_same)
    result, _ = without_explained(result, (None, None), (readings[0].damage, readings[1].damage))
    parts, most = Counter[str](), MOST_READ_AGAIN
    found = []
    for each in _differences(result, logs[0].end_offset):
        told: list[tuple[str, ...]] = []
        if each.fault is RecordFault.CHANGED and each.is_exact:
            place = OffsetRange(each.place.start, min(each.place.end, each.place.start + most))
            told = list(_parts_at(logs, place))
            most -= len(told)
            parts.update(itertools.chain.from_iterable(told))
        found.append(attrs.evolve(each, parts=told[0] if told else ()))
    counts = result.counts
    read_again = MOST_READ_AGAIN - most
    return RecordComparison(start_offset, counts.compared, counts.unverifiable, tuple(found), read_again, parts)


def _rows(replica: PartitionEvidence, start_offset: int) -> LogRows:
    segments = [SegmentPlace(each.task.path, each.task.base_offset or 0) for each in replica.segments]
    start = max(start_offset, replica.start_offset)
    return LogRows(segments, start, replica.end_offset, LogTransactions(Transactions()), with_places=True)


def _differences(result: PairResult, left_end: int) -> Iterator[RecordDifference]:
    """Yield the differences, and what only the left log has at its end."""
    for each in result.differences:
        if each.kind in _FAULTS:
            yield RecordDifference(_FAULTS[each.kind], each.target, each.count, each.is_exact)
    if result.counts.lag:
        place = OffsetRange(result.next_source, left_end)
        yield RecordDifference(RecordFault.LEFT_ONLY, place, result.counts.lag)


def _parts_at(logs: Sequence[LogRows], place: OffsetRange) -> Iterator[tuple[str, ...]]:
    """Yield in which parts the records at each offset of a range differ, where both logs have another one."""
    records = heapq.merge(*(_with_side(log, side, place) for side, log in enumerate(logs)), key=itemgetter(0))
    at = place.start
    for offset, found in itertools.groupby(records, key=itemgetter(0)):
        yield from itertools.repeat((CONTROL,), offset - at)
        sides: dict[int, RecordView] = {}
        for _, side, record in found:
            sides.setdefault(side, record)
        yield differing_parts(sides[0], sides[1]) if len(sides) == len(logs) else (CONTROL,)
        at = offset + 1
    yield from itertools.repeat((CONTROL,), place.end - at)


def _with_side(log: LogRows, side: int, place: OffsetRange) -> Iterator[tuple[int, int, RecordView]]:
    return ((each.offset, side, each) for each in log.records(place.start, place.end))
