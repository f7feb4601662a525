# SPDX-License-Identifier: Apache-2.0
"""Logs with the same records at the same offsets, against a model that compares offset by offset."""

import random
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing import same_offsets
from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange, united
from raftlog.tools.mirrors.comparing.log_view import SummedLog
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.comparing.rows import MARKER, UNKNOWN, DigestRows
from raftlog.tools.mirrors.comparing.same_offsets import compare_same_offsets, window_edges
from tests.tools.mirrors.comparing.summed_logs import sums_by_reading

SEEDS = st.integers(0, 1 << 32)
EPOCH, PRODUCER, TIME = 3, 40, 1_000
ONE_WRITE = EPOCH, PRODUCER, TIME


@attrs.frozen
class Placed:
    """What is at one offset.

    Attributes:
        content: stands for the record; None for an offset without one.
        is_marker: whether it is a control record.
        origin: leader epoch, producer id and timestamp.
    """

    content: int | None
    is_marker: bool = False
    origin: tuple[int, int, int] = ONE_WRITE


@attrs.frozen
class PlacedLog:
    """A log from an offset on; reads rows a few at a time."""

    start_offset: int
    places: Sequence[Placed]
    at_once: int = 7
    has_aborted: bool = False

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.places)

    def at(self, offset: int) -> Placed | None:
        """What is at an offset; None if it is out of range, or there is no record."""
        is_inside = self.start_offset <= offset < self.end_offset
        found = self.places[offset - self.start_offset] if is_inside else None
        return None if found is None or found.content is None else found

    def data_count(self, start: int, end: int) -> int:
        """How many data records a range has, or may have had."""
        inside = range(max(start, self.start_offset), min(end, self.end_offset))
        return sum(not self.places[each - self.start_offset].is_marker for each in inside)

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        first, last = max(start, self.start_offset), min(end, self.end_offset)
        for at in range(first, last, self.at_once):
            offsets = np.arange(at, min(at + self.at_once, last))
            found = [self.places[each - self.start_offset] for each in offsets.tolist()]
            contents = np.array([(each.content or 0, (each.content or 0) * 7) for each in found], np.uint64)
            flags = [UNKNOWN * (each.content is None) + MARKER * each.is_marker for each in found]
            origins = np.array([each.origin for each in found], np.int64)
            yield DigestRows(offsets, contents.reshape(-1, 2), np.array(flags, np.uint8), origins).with_offsets()


@pytest.fixture(autouse=True, scope="module", params=[0, 2, 14])
def window_bits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Windows of one, of four, and of as many offsets as there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(same_offsets, "WINDOW_BITS", request.param)
        patch.setattr(same_offsets, "LONG_GAP", 2)
        yield


def compared(source: PlacedLog, target: PlacedLog) -> PairResult:
    """What is found; each record of the source counts once."""
    edges = window_edges(source, target)
    found = compare_same_offsets(*(SummedLog(each, sums_by_reading(each, edges)) for each in (source, target)))
    counts = found.counts
    total = source.data_count(source.start_offset, source.end_offset)
    assert counts.compared + counts.unverifiable + counts.lag == total
    assert (counts.aborted, found.equal_anchors, found.wrong_anchors, found.lifetimes) == (0, 0, 0, 0)
    return found


def told(result: PairResult) -> dict[Kind, list[OffsetRange]]:
    """Where each kind is in the target; what was passed over, in the source."""
    found: dict[Kind, list[OffsetRange]] = {}
    for each in result.differences:
        found.setdefault(each.kind, []).append(each.source if each.kind is Kind.PASSED_OVER else each.target)
    return found


def expected(source: PlacedLog, target: PlacedLog) -> tuple[dict[Kind, list[OffsetRange]], int, int]:
    """The model, offset by offset: what is told, how many records are compared, and where both logs part."""
    both = range(max(source.start_offset, target.start_offset), min(source.end_offset, target.end_offset))
    pairs = [(each, source.at(each), target.at(each)) for each in both]
    same = [offset for offset, ours, theirs in pairs if ours and theirs and is_same(ours, theirs)]
    fork = min(source.end_offset, target.end_offset)
    for offset, ours, theirs in reversed(pairs):
        if same and offset > same[-1] and ours and theirs:
            agreeing = sum(left == right for left, right in zip(ours.origin, theirs.origin, strict=True))
            fork = offset if agreeing < 2 else fork
    found: dict[Kind, list[OffsetRange]] = {}
    for offset, ours, theirs in pairs:
        if offset >= fork or not (ours or theirs) or (ours and theirs and is_same(ours, theirs)):
            continue
        kind = Kind.CHANGED if ours and theirs else Kind.HOLE if ours else Kind.FOREIGN
        found.setdefault(kind, []).append(OffsetRange(offset, offset + 1))
    found = {kind: united(places) for kind, places in found.items()}
    own = [
        each
        for each in range(max(fork, target.start_offset), target.end_offset)
        if each >= min(fork, source.end_offset) and not target.places[each - target.start_offset].is_marker
    ]
    if source.end_offset < target.start_offset:
        found[Kind.WRITTEN_TO] = [OffsetRange(source.end_offset, target.end_offset)]
    elif own and (fork in both or fork == source.end_offset):
        found[Kind.WRITTEN_TO] = [OffsetRange(own[0], target.end_offset)]
    if 0 < target.end_offset < source.start_offset:
        found[Kind.PASSED_OVER] = [OffsetRange(target.end_offset, source.start_offset)]
    is_data = [ours is not None and theirs is not None and not ours.is_marker for _, ours, theirs in pairs]
    return found, sum(is_data[: max(0, fork - both.start)]), fork


def is_same(ours: Placed, theirs: Placed) -> bool:
    return (ours.content, ours.is_marker) == (theirs.content, theirs.is_marker)


def made(chance: random.Random, size: int) -> list[Placed]:
    """Records, markers and offsets without either."""
    kinds = [Placed(None), Placed(1, is_marker=True), Placed(1), Placed(1), Placed(2)]
    return [chance.choice(kinds) for _ in range(size)]


def damaged(chance: random.Random, places: Sequence[Placed], share: float) -> list[Placed]:
    """The same, of which some are otherwise: by one write, or by several."""
    found = list(places)
    for at in range(len(found)):
        if chance.random() < share:
            origin = [each + chance.choice([0, 0, 1]) for each in ONE_WRITE]
            other = chance.choice([Placed(None), Placed(1), Placed(2), Placed(1, is_marker=True)])
            found[at] = attrs.evolve(other, origin=(origin[0], origin[1], origin[2]))
    return found


@given(SEEDS, st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.integers(1, 9))
def test_the_model_tells_the_same(seed: int, share: float, at_once: int) -> None:
    """Any two logs, cut anywhere: what differs, what is compared, and from where on the target has its own records."""
    chance = random.Random(seed)
    places = made(chance, chance.randrange(1, 40))
    others = damaged(chance, places, share)
    if chance.random() < 0.4:
        cut = chance.randrange(len(others) + 1)
        origin = chance.choice([ONE_WRITE, (EPOCH + 1, PRODUCER, TIME), (EPOCH + 1, PRODUCER + 1, TIME + 1)])
        others[cut:] = [Placed(3, origin=origin) for _ in range(chance.randrange(9))]
    start, other_start = (chance.choice([0, 0, chance.randrange(45)]) for _ in range(2))
    end, other_end = (chance.choice([99, 99, chance.randrange(45)]) for _ in range(2))
    source = PlacedLog(start, places[start : max(start, end)], at_once)
    target = PlacedLog(other_start, others[other_start : max(other_start, other_end)], at_once + 2)
    result = compared(source, target)
    kinds, count, fork = expected(source, target)
    assert told(result) == kinds
    assert result.counts.compared == count
    assert result.counts.lag == source.data_count(fork, source.end_offset) * (source.end_offset >= target.start_offset)
    pairs = [(run.source.at(at), run.target.at(at)) for run in result.places for at in range(run.count)]
    assert [ours for ours, _ in pairs] == [theirs for _, theirs in pairs]
    records = [offset for offset, _ in pairs if source.at(offset) or target.at(offset)]
    place = range(max(start, other_start), fork)
    known = [(each, source.at(each), target.at(each)) for each in place]
    assert records == [
        offset for offset, ours, theirs in known if ours and theirs and is_same(ours, theirs) and not ours.is_marker
    ]


@given(SEEDS, st.sampled_from([0.05, 0.5, 1.0]))
def test_what_follows_the_same_records_is_compared_as_in_the_whole_logs(seed: int, share: float) -> None:
    """The ends of two logs show the same differences as the logs, if these have the same records before."""
    chance = random.Random(seed)
    same, places = [Placed(5), *made(chance, chance.randrange(9))], made(chance, chance.randrange(1, 20))
    others = damaged(chance, places, share)[: chance.randrange(1, 25)]
    logs = [PlacedLog(0, [*same, *each]) for each in (places, others)]
    ends = [PlacedLog(len(same), each) for each in (places, others)]
    edges = window_edges(*ends)
    sums = [SummedLog(each, sums_by_reading(each, edges)) for each in ends]
    result, whole = compare_same_offsets(*sums, follows_same=True), compared(*logs)
    assert result.differences == whole.differences
    assert result.counts.lag == whole.counts.lag


@pytest.mark.parametrize("at", [0, 1, 8, 9])
@pytest.mark.parametrize("start", [0, 200])
def test_a_change_is_told_wherever_it_is(start: int, at: int) -> None:
    """At the start of a log, whether or not retention has cut it, inside, and at its end."""
    places = [Placed(each) for each in range(10)]
    other = [*places[:at], Placed(99), *places[at + 1 :]]
    result = compared(PlacedLog(start, places), PlacedLog(start, other))
    assert told(result) == {Kind.CHANGED: [OffsetRange(start + at, start + at + 1)]}
    assert (result.counts.compared, result.counts.lag) == (10, 0)


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (ONE_WRITE, Kind.CHANGED),
        ((EPOCH, PRODUCER, TIME + 1), Kind.CHANGED),
        ((EPOCH, PRODUCER + 1, TIME), Kind.CHANGED),
        ((EPOCH + 1, PRODUCER, TIME), Kind.CHANGED),
        ((EPOCH, PRODUCER + 1, TIME + 1), Kind.WRITTEN_TO),
        ((EPOCH + 1, PRODUCER, TIME + 1), Kind.WRITTEN_TO),
        ((EPOCH + 1, PRODUCER + 1, TIME), Kind.WRITTEN_TO),
    ],
)
def test_two_of_three_show_one_write(origin: tuple[int, int, int], kind: Kind) -> None:
    """At the end of a log: leader epoch, producer and timestamp tell a changed record from one that others wrote."""
    places = [Placed(each) for each in range(9)]
    result = compared(PlacedLog(0, places), PlacedLog(0, [*places[:6], *[Placed(50, origin=origin)] * 3]))
    assert told(result) == {kind: [OffsetRange(6, 9)]}
    assert (result.counts.lag, result.next_source) == ((3, 6) if kind is Kind.WRITTEN_TO else (0, 9))


def test_logs_without_an_equal_record_do_not_part() -> None:
    """Nothing shows that one was made of the other: all is changed, whoever wrote it."""
    source = PlacedLog(0, [Placed(each) for each in range(9)])
    target = PlacedLog(0, [Placed(each + 50, origin=(7, 7, 7)) for each in range(9)])
    assert told(compared(source, target)) == {Kind.CHANGED: [OffsetRange(0, 9)]}


@pytest.mark.parametrize("count", [9, 10, 11, 30])
def test_what_follows_many_ranges_is_one_difference(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many are told; the others are counted. For groups, so many runs of equal records are kept."""
    monkeypatch.setattr(same_offsets, "MOST_TOLD", 10)
    monkeypatch.setattr(same_offsets, "MOST_RUNS", 10)
    places = [Placed(each) for each in range(2 * count + 1)]
    other = [Placed(each + 99 * (each % 2)) for each in range(2 * count + 1)]
    result = compared(PlacedLog(0, places), PlacedLog(0, other))
    exact = [each for each in result.differences if each.is_exact]
    assert len(exact) == min(count, 10)
    assert sum(each.count for each in result.differences) == count
    rest = [each.target for each in result.differences if not each.is_exact]
    assert rest == ([OffsetRange(21, 2 * count)] if count > 10 else [])
    assert len(result.places) == min(count + 1, 10)
    assert result.places[-1].source.at(result.places[-1].count - 1) == 2 * count


def test_the_number_of_windows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far offsets reach; both logs have the same edges, from the first common offset to the last one."""
    monkeypatch.setattr(same_offsets, "WINDOW_BITS", 14)
    long, other = (PlacedLog(start, range(1 << 45)) for start in (5, 9))  # type: ignore[arg-type]
    edges = window_edges(long, other)
    assert 1 << 19 <= len(edges) <= (1 << 20) + 2
    assert (edges[0], edges[-1]) == (9, 5 + (1 << 45))
    assert not len(window_edges(PlacedLog(0, [Placed(1)]), PlacedLog(1, [Placed(1)])))


def test_a_record_and_a_marker_that_change_places_are_told() -> None:
    """Both logs have the same records in the same order, and the same markers: only their offsets differ."""
    marker, record = Placed(1, is_marker=True), Placed(2)
    result = compared(PlacedLog(0, [record, marker, record]), PlacedLog(0, [marker, record, record]))
    assert told(result) == {Kind.CHANGED: [OffsetRange(0, 2)]}
