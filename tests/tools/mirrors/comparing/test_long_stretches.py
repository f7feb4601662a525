# SPDX-License-Identifier: Apache-2.0
"""What differs in a stretch that is too long to be told apart at a time is told as if it were not."""

import random
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing import course, long_stretches
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog
from tests.tools.mirrors.comparing.summed_logs import compare_logs

SIZE = 400
APART = 60
SYNCS = {"at the start": 0, "within": 210, "at the end": SIZE - 1}


def faulty(chance: random.Random, sync: int) -> tuple[MemoryLog, MemoryLog, tuple[Sync, ...]]:
    """A log of different records, its copy with some faults far from each other and from the only sync, and that."""
    source = [Entry(each, each + 10) for each in range(SIZE)]
    places = [each for each in range(30, SIZE - 30, APART) if abs(each - sync) > 30 and chance.random() < 0.7]
    target: list[Entry] = []
    downstream = 0
    for each in source:
        fault = chance.choice(("lost", "changed", "foreign", "unreadable")) if each.offset in places else ""
        if each.offset == sync:
            downstream = len(target)
        if fault == "lost":
            continue
        if fault == "foreign":
            target.append(Entry(len(target), 10**6 + each.offset))
        content = {"changed": 10**6 + each.offset, "unreadable": UNREADABLE}.get(fault, each.content)
        target.append(Entry(len(target), content))
    return (
        MemoryLog(source, 0, SIZE, 50),
        MemoryLog(target, 0, len(target), 50),
        (Sync(sync, downstream, 0, 0),),
    )


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch)


def short(patch: pytest.MonkeyPatch) -> None:
    """Take stretches for long from 100 records on."""
    patch.setattr(course, "MOST_ROWS", 100)
    patch.setattr(long_stretches, "MOST_ROWS", 100)
    patch.setattr(long_stretches, "_WINDOW", 50)
    patch.setattr(long_stretches, "_RUN", 5)


def facts(result: PairResult) -> PairResult:
    """What is found, but for the number of parts."""
    return attrs.evolve(result, places=())


def places(result: PairResult) -> Iterator[tuple[int, int]]:
    """All places, one by one."""
    for run in result.places:
        yield from ((run.source.at(index), run.target.at(index)) for index in range(run.count))


@pytest.mark.parametrize("sync", SYNCS.values(), ids=SYNCS)
@given(seed=st.integers(0, 1 << 32))
def test_long_stretches_are_told_like_short_ones(seed: int, sync: int) -> None:
    """With the only sync at the start, within, or at the end: the same faults, counts and places."""
    given_logs = faulty(random.Random(seed), sync)
    whole = compare_logs(*given_logs, SIZE)
    with pytest.MonkeyPatch.context() as patch:
        short(patch)
        divided = compare_logs(*given_logs, SIZE)
    assert facts(divided) == facts(whole)
    assert sorted(places(divided)) == sorted(places(whole))
    assert all(each.is_exact for each in divided.differences)


@given(seed=st.integers(0, 1 << 32))
def test_syncs_that_held_before_are_told_like_those_of_short_stretches(seed: int) -> None:
    """Syncs every ten records, of before the faults: the same findings, and as many of them are wrong."""
    source, target, _ = faulty(random.Random(seed), -100)
    syncs = tuple(Sync(at, at, 0, at) for at in range(0, min(SIZE, target.end_offset), 10))
    whole = compare_logs(source, target, syncs, SIZE)
    with pytest.MonkeyPatch.context() as patch:
        short(patch)
        divided = compare_logs(source, target, syncs, SIZE)
    assert facts(divided) == facts(whole)


@pytest.mark.usefixtures("_short")
def test_what_others_have_written_at_length_is_counted() -> None:
    """More records after the mirrored ones than are told apart at a time: one finding, with their number."""
    source = [Entry(each, each + 10) for each in range(200)]
    others = [Entry(each, 10**6 + each) for each in range(200, 450)]
    logs = MemoryLog(source, 0, 200), MemoryLog([*source, *others], 0, 450)
    (found,) = compare_logs(*logs, (Sync(0, 0, 0, 0),)).differences
    assert (found.kind.value, found.target.start, found.count) == ("written-to", 200, 250)


@pytest.mark.usefixtures("_short")
def test_too_much_that_differs_is_a_range() -> None:
    """Records that have nothing in common are told as a range, and none of them is left out of the counts."""
    source = [Entry(each, each + 10) for each in range(300)]
    middle = [attrs.evolve(each, content=10**6 + each.offset) for each in source[20:280]]
    logs = MemoryLog(source, 0, 300), MemoryLog([*source[:20], *middle, *source[280:]], 0, 300)
    result = compare_logs(*logs, (Sync(0, 0, 0, 0), Sync(299, 299, 0, 1)))
    (found,) = result.differences
    assert (found.is_exact, found.source.start <= 20, found.source.end >= 280) == (False, True, True)
    counts = result.counts
    assert counts.compared + counts.unverifiable + counts.lag == 300
