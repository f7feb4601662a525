# SPDX-License-Identifier: Apache-2.0
"""Logs with the same records at the same offsets, against a model that compares offset by offset."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing import same_offsets
from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.comparing.same_offsets import compare_same_offsets
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, made_source

SEEDS = st.integers(0, 1 << 32)


@pytest.fixture(autouse=True, scope="module", params=[0, 2, 14])
def window_bits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Windows of one, of four, and of as many offsets as there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(same_offsets, "WINDOW_BITS", request.param)
        yield


def compared(source: MemoryLog, target: MemoryLog) -> PairResult:
    found = compare_same_offsets(source, target)
    counts = found.counts
    assert counts.compared + counts.unverifiable + counts.lag == len(source.entries)
    assert (counts.aborted, found.equal_anchors, found.wrong_anchors, found.lifetimes) == (0, 0, 0, 0)
    return found


@given(SEEDS, st.integers(1, 60), st.integers(1, 9), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_what_both_logs_have_is_equal(
    seed: int, size: int, at_once: int, start: int, other_start: int, end: int
) -> None:
    """Wherever retention has cut either log, and as far as the target has come, nothing is found."""
    whole = made_source(random.Random(seed), size, 5).entries
    first, later = whole[min(start, size - 1) :], whole[min(other_start, size - 1) : max(end, 1)]
    source = MemoryLog(first, first[0].offset, whole[-1].offset + 1, at_once)
    target_start = later[0].offset if later else 0
    target = MemoryLog(later, target_start, later[-1].offset + 1 if later else 0, at_once + 2)
    found = compared(source, target)
    both = {each.offset for each in first} & {each.offset for each in later}
    assert found.differences == ()
    assert found.counts.compared == len(both)
    pairs = [(run.source.at(index), run.target.at(index)) for run in found.places for index in range(run.count)]
    assert {offset for offset, _ in pairs} == both
    assert all(ours == theirs for ours, theirs in pairs)


@given(SEEDS, st.integers(3, 60), st.integers(1, 9), st.data())
def test_each_change_is_named(seed: int, size: int, at_once: int, data: st.DataObject) -> None:
    """Of all records between the first and the last one, any may have another content: these are told, one by one."""
    source = made_source(random.Random(seed), size, 10**9)
    inner = range(1, len(source.entries) - 1)
    changed = data.draw(st.sets(st.sampled_from(inner), max_size=len(inner)))
    entries = [Entry(each.offset, each.content + (at in changed)) for at, each in enumerate(source.entries)]
    found = compared(source, MemoryLog(entries, 0, source.end_offset, at_once))
    offsets = [source.entries[at].offset for at in sorted(changed)]
    assert [(each.kind, each.source, each.target) for each in found.differences] == [
        (Kind.CHANGED, OffsetRange(offset, offset + 1), OffsetRange(offset, offset + 1)) for offset in offsets
    ]


@given(SEEDS, st.integers(3, 60), st.booleans(), st.data())
def test_a_record_on_one_side_is_named(seed: int, size: int, is_lost: bool, data: st.DataObject) -> None:
    """It is lost, or foreign."""
    source = made_source(random.Random(seed), size, 10**9)
    at = data.draw(st.integers(1, len(source.entries) - 2))
    left = MemoryLog([*source.entries[:at], *source.entries[at + 1 :]], 0, source.end_offset)
    found = compared(source, left) if is_lost else compared(left, source)
    (told,) = found.differences
    place = OffsetRange(source.entries[at].offset, source.entries[at].offset + 1)
    assert (told.kind, told.source if is_lost else told.target) == (Kind.LOST if is_lost else Kind.FOREIGN, place)


@given(SEEDS, st.integers(2, 40), st.integers(1, 39), st.integers(1, 10))
def test_a_fail_over_cuts_at_the_last_stable_offset(seed: int, size: int, stable: int, more: int) -> None:
    """What the source has after that is not mirrored; what the target has there was written since."""
    source = made_source(random.Random(seed), size, 10**9)
    kept = source.entries[: min(stable, len(source.entries) - 1)]
    start = kept[-1].offset + 2  # An abort marker ends the transaction that was open.
    written = [Entry(start + at, 10**12 + at) for at in range(more)]
    found = compared(source, MemoryLog([*kept, *written], 0, start + more))
    (told,) = found.differences
    assert (told.kind, told.target, told.count) == (Kind.WRITTEN_TO, OffsetRange(start, start + more), more)
    assert (found.counts.compared, found.counts.lag) == (len(kept), len(source.entries) - len(kept))


def test_what_cannot_be_read_is_unverifiable() -> None:
    """On either side; what is around it is compared."""
    entries = [Entry(offset, 100 + offset) for offset in range(9)]
    broken = [Entry(4, UNREADABLE) if each.offset == 4 else each for each in entries]
    for source, target in ((entries, broken), (broken, entries)):
        found = compared(MemoryLog(source, 0, 9), MemoryLog(target, 0, 9))
        assert (found.differences, found.counts.compared, found.counts.unverifiable) == ((), 8, 1)


def test_logs_without_an_equal_record_are_one_difference() -> None:
    """They are of two topics; two logs without a common offset are not compared."""
    source = MemoryLog([Entry(offset, offset) for offset in range(5, 9)], 5, 9)
    other = MemoryLog([Entry(offset, 50 + offset) for offset in range(9)], 0, 9)
    (told,) = compared(source, other).differences
    assert (told.kind, told.source, told.is_exact) == (Kind.CHANGED, OffsetRange(5, 9), False)
    for before, is_lag in ((MemoryLog(other.entries[:5], 0, 5), True), (MemoryLog([Entry(9, 1)], 9, 10), False)):
        found = compared(source, before)
        assert (found.differences, found.counts.lag, found.counts.unverifiable) == ((), 4 * is_lag, 4 * (not is_lag))


def test_after_too_many_runs_one_difference_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of equal records that are told apart are limited: what follows them is one difference."""
    source = MemoryLog([Entry(offset, offset) for offset in range(1500)], 0, 1500)
    target = MemoryLog([Entry(offset, offset + 10**6 * (offset % 2)) for offset in range(1500)], 0, 1500)
    assert len(compared(source, target).differences) == 750
    monkeypatch.setattr(same_offsets, "MOST_RUNS", 10)
    found = compared(source, target)
    assert [each.is_exact for each in found.differences] == [True] * (len(found.differences) - 1) + [False]
