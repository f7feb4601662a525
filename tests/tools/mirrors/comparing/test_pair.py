# SPDX-License-Identifier: Apache-2.0
"""A partition and its mirror: sound ones, and every kind of fault at every place."""

import random
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.differences import DifferenceKind as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.pair import PairResult, compare_pair
from tests.tools.mirrors.comparing.made_mirrors import Entry, MemoryLog, Task, made_source

settings.register_profile("many", max_examples=1000, deadline=None)
settings.load_profile("many")
SEEDS = st.integers(0, 1 << 32)


def compared(
    source: MemoryLog, task: Task, mirrored_end: int = 0, *, reads_committed: bool | None = False
) -> PairResult:
    found = compare_pair(source, task.log(), task.syncs, mirrored_end, reads_committed=reads_committed)
    counts = found.counts
    assert counts.compared + counts.unverifiable + counts.lag + counts.aborted == len(source.entries)
    assert found.equal_anchors + found.unverifiable_anchors + found.wrong_anchors == len(task.syncs)
    return found


def kinds(found: PairResult) -> list[Kind]:
    return [each.kind for each in found.differences]


@given(SEEDS, st.integers(1, 60), st.sampled_from([1, 2, 5, 10**9]), st.integers(0, 70), st.booleans())
def test_a_sound_mirror_has_no_difference(seed: int, size: int, contents: int, mirrored: int, committed: bool) -> None:
    source = made_source(random.Random(seed), size, contents)
    task = Task(reads_committed=committed)
    task.mirror(source.entries[:mirrored])
    found = compared(source, task, reads_committed=None)
    assert compared(source, task, reads_committed=committed) == found or committed
    assert found.differences == ()
    assert found.wrong_anchors == 0
    if task.target:
        last = max(at for at, each in enumerate(source.entries[:mirrored]) if not (committed and each.is_aborted))
        least = sum(not each.is_aborted for each in source.entries[mirrored:])
        assert least <= found.counts.lag <= len(source.entries) - last - 1


@given(SEEDS, st.integers(2, 60), st.sampled_from([1, 2, 5, 10**9]), st.data())
def test_a_restart_copies_again(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """It is told which records of the source, and where."""
    source = made_source(random.Random(seed), size, contents)
    end = data.draw(st.integers(1, size))
    back = data.draw(st.integers(0, end))
    task = Task()
    task.mirror(source.entries[:end])
    task.restart()
    task.mirror(source.entries[back:size])
    found = compared(source, task)
    if back == end or back == size:
        assert found.differences == ()
    else:
        (again,) = found.differences
        assert again.kind is Kind.COPIED_AGAIN
        assert again.count == end - back
        assert again.source.start == source.entries[back].offset
        assert again.target.start == end
        assert again.target.size == end - back


@given(SEEDS, st.integers(3, 60), st.sampled_from([2, 5, 10**9]), st.data())
def test_a_restart_that_skips_loses(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    source = made_source(random.Random(seed), size, contents)
    end = data.draw(st.integers(1, size - 2))
    later = data.draw(st.integers(end + 1, size - 1))
    task = Task()
    task.mirror(source.entries[:end])
    task.restart()
    task.mirror(source.entries[later:size])
    found = compared(source, task)
    (lost,) = found.differences
    assert (lost.kind, lost.count) == (Kind.LOST, later - end)
    assert lost.source == OffsetRange(source.entries[end].offset, source.entries[later].offset)
    assert lost.target == OffsetRange(end, end)


def faulty(seed: int, size: int, contents: int, mirrored_so: bool) -> tuple[MemoryLog, Task, random.Random]:
    chance = random.Random(seed)
    source = made_source(chance, size, contents)
    return source, Task(lag_max=chance.choice([1, 3, 10])), chance


@given(SEEDS, st.integers(3, 60), st.sampled_from([3, 10**9]), st.data())
def test_a_lost_record_is_found(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """One that the task has passed over, within a lifetime: later syncs agree with what is there."""
    source, task, _ = faulty(seed, size, contents, True)
    at = data.draw(st.integers(1, size - 2))
    task.mirror(source.entries[:at])
    task._upstream = source.entries[at].offset
    task.mirror(source.entries[at + 1 : size])
    found = compared(source, task)
    tail = [each.content for each in source.entries[at:size]]
    if tail[1:] == tail[:-1]:
        return  # All that follow are equal: it may be lag.
    (lost,) = found.differences
    assert (lost.kind, lost.count) == (Kind.LOST, 1)
    assert lost.source.start <= source.entries[at].offset < lost.source.end
    contents_ = {each.content for each in source.entries if lost.source.start <= each.offset < lost.source.end}
    assert contents_ == {source.entries[at].content}
    assert lost.target.start <= at <= lost.target.end


@given(SEEDS, st.integers(1, 60), st.sampled_from([3, 10**9]), st.data())
def test_a_changed_record_is_found(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    source, task, _ = faulty(seed, size, contents, True)
    at = data.draw(st.integers(0, size - 1))
    task.mirror(source.entries[:size])
    task.target[at] = attrs.evolve(task.target[at], content=10**10)
    found = compared(source, task, source.entries[size - 1].offset + 1)
    (changed,) = found.differences
    assert changed.kind is Kind.CHANGED
    assert changed.source == OffsetRange(source.entries[at].offset, source.entries[at].offset + 1)
    assert changed.target == OffsetRange(at, at + 1)


@given(SEEDS, st.integers(2, 60), st.data())
def test_swapped_records_are_found(seed: int, size: int, data: st.DataObject) -> None:
    source, task, _ = faulty(seed, size, 10**9, True)
    at = data.draw(st.integers(0, size - 2))
    task.mirror(source.entries[:size])
    one, other = task.target[at], task.target[at + 1]
    task.target[at : at + 2] = [attrs.evolve(one, content=other.content), attrs.evolve(other, content=one.content)]
    found = compared(source, task, source.entries[size - 1].offset + 1)
    (moved,) = found.differences
    assert moved.kind is Kind.REORDERED
    assert moved.source.start in {source.entries[at].offset, source.entries[at + 1].offset}
    assert moved.target.start in {at, at + 1}


@given(SEEDS, st.integers(2, 60), st.booleans(), st.data())
def test_a_record_too_many_is_found(seed: int, size: int, is_copy: bool, data: st.DataObject) -> None:
    source, task, _ = faulty(seed, size, 10**9, True)
    at = data.draw(st.integers(1, size - 1))
    content = source.entries[at - 1].content if is_copy else 10**10
    task.mirror(source.entries[:at])
    task.target.append(Entry(task.next_offset, content))
    task.next_offset += 1
    task.mirror(source.entries[at:size])
    found = compared(source, task, source.entries[size - 1].offset + 1)
    (more,) = found.differences
    assert more.kind is (Kind.DUPLICATE if is_copy else Kind.FOREIGN)
    assert more.target.start <= at < more.target.end


@given(SEEDS, st.integers(1, 40), st.integers(1, 30))
def test_others_have_written_behind_the_mirror(seed: int, size: int, more: int) -> None:
    source, task, _ = faulty(seed, size + 5, 10**9, True)
    task.mirror(source.entries[:size])
    for number in range(more):
        task.target.append(Entry(task.next_offset, 10**10 + number))
        task.next_offset += 1
    (written,) = compared(source, task).differences
    assert (written.kind, written.count) == (Kind.WRITTEN_TO, more)
    assert written.target == OffsetRange(size, size + more)


@given(SEEDS, st.integers(20, 60), st.sampled_from([100, 10**9]), st.data())
def test_a_wrong_sync_is_found(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """With all records right, the sync is the one that is wrong."""
    source, task, chance = faulty(seed, size, contents, True)
    task.mirror(source.entries[:size])
    at = data.draw(st.integers(0, len(task.syncs) - 1))
    right = task.syncs[at]
    if data.draw(st.booleans()):
        other = data.draw(st.integers(-3, source.end_offset + 3))
        wrong = attrs.evolve(right, upstream=other)
    else:
        other = data.draw(st.integers(-3, task.next_offset + 3))
        wrong = attrs.evolve(right, downstream=other)
    task.syncs[at] = wrong
    found = compared(source, task, source.entries[size - 1].offset + 1)
    if wrong == right:
        assert found.differences == ()
        return
    is_late = len(task.syncs) == 1 and wrong.upstream > right.upstream
    assert is_late or {each.kind for each in found.differences} <= {Kind.WRONG_ANCHOR, Kind.BAD_SYNC}
    assert is_late or [each.sync for each in found.differences] == [at]
