# SPDX-License-Identifier: Apache-2.0
"""A partition and its mirror: sound ones, and every kind of fault at every place."""

import random
from collections.abc import Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, Task, made_source
from tests.tools.mirrors.comparing.summed_logs import compare_logs

SEEDS = st.integers(0, 1 << 32)


def compared(
    source: MemoryLog, task: Task, mirrored_end: int = 0, *, reads_committed: bool | None = False
) -> PairResult:
    found = compare_logs(source, task.log(), task.syncs, mirrored_end, reads_committed=reads_committed)
    counts = found.counts
    assert counts.compared + counts.unverifiable + counts.lag + counts.aborted == len(source.entries)
    assert found.equal_anchors + found.unverifiable_anchors + found.wrong_anchors == len(task.syncs)
    return found


def kinds(found: PairResult) -> list[Kind]:
    return [each.kind for each in found.differences]


@given(SEEDS, st.integers(1, 60), st.sampled_from([1, 2, 5, 10**9]), st.integers(0, 70), st.booleans())
def test_a_sound_mirror_has_no_difference(seed: int, size: int, contents: int, mirrored: int, committed: bool) -> None:
    """Whatever the contents, batches of transactions and lag are, nothing is found."""
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


@given(SEEDS, st.integers(1, 60), st.sampled_from([1, 2, 5, 10**9]), st.floats(0, 1), st.floats(0, 1))
def test_what_was_compacted_away_is_no_fault(seed: int, size: int, contents: int, before: float, since: float) -> None:
    """Records of the source that are gone before they were mirrored, or since; syncs follow each former gap."""
    chance = random.Random(seed)
    source = made_source(chance, size, contents)
    is_mirrored = [chance.random() >= before for _ in source.entries]
    task = Task()
    task.mirror([each for each, is_kept in zip(source.entries, is_mirrored, strict=True) if is_kept])
    left = [
        each if is_kept and chance.random() >= since else attrs.evolve(each, content=UNREADABLE)
        for each, is_kept in zip(source.entries, is_mirrored, strict=True)
    ]
    found = compared(attrs.evolve(source, entries=left), task)
    assert found.differences == ()
    assert found.wrong_anchors == 0
    assert found.counts.lag <= sum(each.content == UNREADABLE for each in left)


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
    if back in (end, size):
        assert found.differences == ()
    else:
        (again,) = found.differences
        assert again.kind is Kind.COPIED_AGAIN
        assert again.count == end - back
        assert again.source.start == source.entries[back].offset
        assert again.target.start == end
        assert again.target.offset_count == end - back


@given(SEEDS, st.integers(2, 60), st.data())
def test_a_restart_whose_first_syncs_are_missing_is_known(seed: int, size: int, data: st.DataObject) -> None:
    """MirrorMaker leaves out syncs under load, at a kill all of them: what it has copied again is told all the same."""
    source = made_source(random.Random(seed), size, 10**9)
    end = data.draw(st.integers(1, size))
    back = data.draw(st.integers(0, end - 1))
    task = Task()
    task.mirror(source.entries[:end])
    former = len(task.syncs)
    task.restart()
    task.mirror(source.entries[back:size])
    dropped = data.draw(st.integers(0, len(task.syncs) - former - 1))
    del task.syncs[former : former + dropped]
    if data.draw(st.booleans()):
        del task.syncs[:former]
    (again,) = compared(source, task).differences
    assert (again.kind, again.count) == (Kind.COPIED_AGAIN, end - back)
    assert again.source.start == source.entries[back].offset
    assert again.target == OffsetRange(end, end + end - back)


@given(SEEDS, st.integers(3, 60), st.sampled_from([2, 5, 10**9]), st.data())
def test_a_restart_that_skips_loses(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """What is between the last mirrored record and the first one after a restart is lost."""
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


def faulty(seed: int, size: int, contents: int) -> tuple[MemoryLog, Task]:
    chance = random.Random(seed)
    source = made_source(chance, size, contents)
    return source, Task(lag_max=chance.choice([1, 3, 10]))


@given(SEEDS, st.integers(3, 60), st.sampled_from([3, 10**9]), st.data())
def test_a_lost_record_is_found(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """One that the task has passed over, within a lifetime: later syncs agree with what is there."""
    source, task = faulty(seed, size, contents)
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
    """It is named on both sides, and nothing else is."""
    source, task = faulty(seed, size, contents)
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
    """Two neighbours that changed places are one difference."""
    source, task = faulty(seed, size, 10**9)
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
    """It is a copy if the source has an equal record before it, and foreign otherwise."""
    source, task = faulty(seed, size, 10**9)
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
    """All that they wrote is one difference, from their first record to the end."""
    source, task = faulty(seed, size + 5, 10**9)
    task.mirror(source.entries[:size])
    for number in range(more):
        task.target.append(Entry(task.next_offset, 10**10 + number))
        task.next_offset += 1
    (written,) = compared(source, task).differences
    assert (written.kind, written.count) == (Kind.WRITTEN_TO, more)
    assert written.target == OffsetRange(size, size + more)


@given(SEEDS, st.integers(20, 60), st.data())
def test_a_wrong_sync_is_found(seed: int, size: int, data: st.DataObject) -> None:
    """With all records right, the sync is the one that is wrong."""
    source, task = faulty(seed, size, 10**9)
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


def cut(log: MemoryLog, start: int) -> MemoryLog:
    """What retention has left of a log."""
    return MemoryLog(tuple(each for each in log.entries if each.offset >= start), start, log.end_offset)


def compared_logs(source: MemoryLog, target: MemoryLog, task: Task, mirrored_end: int = 0) -> PairResult:
    found = compare_logs(source, target, task.syncs, mirrored_end, reads_committed=task.reads_committed)
    counts = found.counts
    assert counts.compared + counts.unverifiable + counts.lag + counts.aborted == len(source.entries)
    assert found.equal_anchors + found.unverifiable_anchors + found.wrong_anchors == len(task.syncs)
    return found


@given(SEEDS, st.integers(1, 60), st.sampled_from([1, 3, 10**9]), st.booleans(), st.data())
def test_retention_on_both_sides_is_no_difference(
    seed: int, size: int, contents: int, committed: bool, data: st.DataObject
) -> None:
    """Nor is it that syncs stay whose records are gone."""
    source = made_source(random.Random(seed), size, contents)
    task = Task(reads_committed=committed)
    task.mirror(source.entries)
    start, other = data.draw(st.integers(0, source.end_offset)), data.draw(st.integers(0, task.next_offset))
    found = compared_logs(cut(source, start), cut(task.log(), other), task)
    # Aborted records that a task left out look like some that it passed over: that is only suspicious.
    told = [each for each in found.differences if not (committed and each.kind is Kind.PASSED_OVER)]
    assert told == [] or (start == other == 0)
    assert found.wrong_anchors == 0


@given(SEEDS, st.integers(5, 60), st.sampled_from([10**9]), st.data())
def test_faults_after_the_log_start_are_found(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """Retention on both sides does not hide a fault behind it."""
    source, task = faulty(seed, size, contents)
    at = data.draw(st.integers(2, size - 1))
    task.mirror(source.entries[:size])
    task.target[at] = attrs.evolve(task.target[at], content=10**10)
    start = source.entries[data.draw(st.integers(0, at - 1))].offset
    other = data.draw(st.integers(0, at - 1))
    found = compared_logs(cut(source, start), cut(task.log(), other), task, source.entries[size - 1].offset + 1)
    if found.equal_anchors + found.wrong_anchors == 0:
        assert found.differences == () or [each.target.start for each in found.differences] == [at]
        return
    (changed,) = found.differences
    assert (changed.kind, changed.target) == (Kind.CHANGED, OffsetRange(at, at + 1))


@given(SEEDS, st.integers(3, 60), st.sampled_from([2, 10**9]), st.data())
def test_what_cannot_be_read_is_unverifiable(seed: int, size: int, contents: int, data: st.DataObject) -> None:
    """Nothing else is said of it: neither of a hole in the target, nor of one in the source."""
    source, task = faulty(seed, size, contents)
    task.mirror(source.entries)
    target = task.log()
    spoiled = data.draw(st.sets(st.integers(0, len(source.entries) - 1), max_size=4))
    other = data.draw(st.sets(st.integers(0, len(task.target) - 1), max_size=4))
    source = attrs.evolve(source, entries=unreadable(source.entries, spoiled))
    found = compared_logs(source, attrs.evolve(target, entries=unreadable(target.entries, other)), task)
    assert found.differences == ()
    assert found.wrong_anchors == 0
    assert found.counts.unverifiable == len(spoiled | other)


def unreadable(entries: Sequence[Entry], spoiled: set[int]) -> tuple[Entry, ...]:
    return tuple(attrs.evolve(each, content=UNREADABLE) if at in spoiled else each for at, each in enumerate(entries))


@given(SEEDS, st.integers(4, 60), st.data())
def test_what_was_compacted_away_at_the_source_is_not_foreign(seed: int, size: int, data: st.DataObject) -> None:
    """Its offset is known, and an unknown record is there; that it has none is as good."""
    source, task = faulty(seed, size, 10**9)
    task.mirror(source.entries)
    gone = data.draw(st.sets(st.integers(1, len(source.entries) - 2), max_size=5))
    holes = data.draw(st.integers(0, 3))
    entries = list(unreadable(source.entries, gone))
    for _ in range(holes):  # Offsets that have had no record of the source when it was mirrored.
        free = sorted(set(range(source.end_offset)) - {each.offset for each in entries})
        if free:
            offset = data.draw(st.sampled_from(free))
            entries = sorted([*entries, Entry(offset, UNREADABLE)], key=lambda each: each.offset)
    found = compared_logs(attrs.evolve(source, entries=tuple(entries)), task.log(), task)
    assert found.differences == ()


@given(SEEDS, st.integers(2, 40), st.integers(2, 40), st.booleans())
def test_a_topic_that_was_made_anew_at_the_source_is_told(seed: int, former: int, size: int, restarts: bool) -> None:
    """What was mirrored from the former topic is one range of the target."""
    chance = random.Random(seed)
    old, source = made_source(chance, former, 10**9), made_source(chance, size, 10**9)
    task = Task()
    task.mirror(old.entries)
    if restarts:
        task.restart()
    else:
        task.syncs.append(Sync(source.entries[0].offset, task.next_offset, 0, len(task.syncs)))
    start = task.next_offset
    task.mirror(source.entries)
    syncs = [attrs.evolve(each, offset=at) for at, each in enumerate(dict.fromkeys(task.syncs))]
    found = compare_logs(source, task.log(), syncs, reads_committed=False)
    told = [each for each in found.differences if each.kind is Kind.SOURCE_RECREATED]
    if old.end_offset <= source.end_offset or all(each.upstream < source.end_offset for each in syncs):
        assert [each.target for each in told] == [OffsetRange(0, start)]


@given(SEEDS, st.integers(20, 40), st.integers(10, 40))
def test_a_target_that_was_made_anew_is_told(seed: int, former: int, size: int) -> None:
    """What it holds since is compared, and what it held before is not missing."""
    source = made_source(random.Random(seed), former + size, 10**9)
    task = Task(lag_max=3)
    task.mirror(source.entries[:former])
    last = task.syncs[-1].downstream
    task.target.clear()
    task.next_offset, task._last = 0, None
    task.mirror(source.entries[former:])
    found = compare_logs(source, task.log(), task.syncs, reads_committed=False)
    assert {each.kind for each in found.differences} <= {Kind.TARGET_SHRUNK, Kind.BAD_SYNC}
    if task.next_offset > last:
        (shrunk,) = found.differences
        assert shrunk.target == OffsetRange(0, last + 1)
        assert shrunk.source.start == source.entries[former].offset
    assert found.next_source == source.end_offset or source.entries[-1].offset < found.next_source
