# SPDX-License-Identifier: Apache-2.0
"""A task whose offset was out of range, and topics of which metadata say that they were made anew."""

import itertools
import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import MadeAnew, _PairComparison
from tests.tools.mirrors.comparing.made_mirrors import MemoryLog, Task, made_source
from tests.tools.mirrors.comparing.summed_logs import compare_logs

SEEDS = st.integers(0, 1 << 32)


@given(SEEDS, st.integers(1, 30), st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_what_a_task_passed_over_is_told(seed: int, mirrored: int, passed: int, rest: int, committed: bool) -> None:
    """Retention has removed records before they were mirrored, so that syncs are all that shows it.

    As many offsets as records were mirrored may be those of control records: then nothing is said.
    """
    source = made_source(random.Random(seed), mirrored + passed + rest, 10**9)
    task = Task(reads_committed=committed)
    task.mirror(source.entries[:mirrored])
    task.mirror(source.entries[mirrored + passed :])
    kept = source.entries[mirrored + passed :]
    now = MemoryLog(kept, kept[0].offset, source.end_offset)
    found = compare_logs(now, task.log(), task.syncs, reads_committed=committed)
    told = [each for each in found.differences if each.kind is Kind.PASSED_OVER]
    assert found.differences == tuple(told)
    expected = []
    for before, after in itertools.pairwise(task.syncs):
        count = after.downstream - before.downstream
        offsets = after.upstream - before.upstream - count
        if before.upstream < kept[0].offset and offsets > count:
            source_place = OffsetRange(after.upstream - offsets, after.upstream)
            expected.append((source_place, OffsetRange(after.downstream, after.downstream), offsets))
    assert [(each.source, each.target, each.count) for each in told] == expected
    if not committed:
        assert all(after.end == kept[0].offset for after, *_ in expected)


@given(SEEDS, st.integers(20, 60), st.integers(0, 15))
def test_a_task_that_went_back_mirrors_again(seed: int, size: int, back: int) -> None:
    """It is one task, not another one: its offset was out of range. A restart is told as that."""
    source = made_source(random.Random(seed), size, 10**9)
    for is_restart in (False, True):
        task = Task(lag_max=2)
        task.mirror(source.entries[:-1])
        if is_restart:
            task.restart()
        task.mirror(source.entries[back:])
        found = compare_logs(source, task.log(), task.syncs, reads_committed=False)
        (again,) = found.differences
        assert (again.kind, again.by_one_task, again.count) == (
            Kind.COPIED_AGAIN,
            not is_restart,
            len(source.entries) - 1 - back,
        )
        assert again.source.start == source.entries[back].offset


@given(SEEDS, st.integers(1, 40), st.integers(1, 40), st.booleans(), st.booleans())
def test_a_source_that_the_metadata_say_was_made_anew_is_told(
    seed: int, former: int, size: int, went_on: bool, restarts: bool
) -> None:
    """All that was synced from the former topic is one difference, whether or not the task went on."""
    chance = random.Random(seed)
    old, source = made_source(chance, former, 10**9), made_source(chance, size, 10**9)
    task = Task()
    task.mirror(old.entries)
    syncs = [attrs.evolve(each, timestamp_ms=1000) for each in task.syncs]
    if went_on:
        task.restart() if restarts else setattr(task, "_last", None)
        task.mirror(source.entries)
        syncs += [attrs.evolve(each, timestamp_ms=2001) for each in task.syncs[len(syncs) :]]
    found = compare_logs(source, task.log(), syncs, reads_committed=False, made_anew=MadeAnew(source_ms=2000))
    (told,) = found.differences
    last = [each for each in syncs if each.timestamp_ms == 1000][-1]
    assert told.kind is Kind.SOURCE_RECREATED
    assert told.source == OffsetRange(syncs[0].upstream, last.upstream + 1)
    assert told.target == OffsetRange(0, last.downstream + 1)
    counts = found.counts.compared, found.counts.lag
    assert counts == ((len(source.entries), 0) if went_on else (0, len(source.entries)))


@given(SEEDS, st.integers(1, 40), st.integers(0, 2))
def test_syncs_that_hold_are_of_the_topic_that_is_there(seed: int, size: int, since: int) -> None:
    """Clocks differ: a sync that looks older than the topic, and is true, was written for it."""
    source = made_source(random.Random(seed), size, 10**9)
    task = Task()
    task.mirror(source.entries)
    syncs = [attrs.evolve(each, timestamp_ms=1) for each in task.syncs]
    made_anew = MadeAnew(source_ms=since, target_ms=since)
    found = compare_logs(source, task.log(), syncs, reads_committed=False, made_anew=made_anew)
    assert (found.differences, found.equal_anchors) == ((), len(syncs))


@given(SEEDS, st.integers(1, 40), st.integers(1, 40))
def test_a_target_that_the_metadata_say_was_made_anew_is_told(seed: int, former: int, size: int) -> None:
    """The syncs of the former one are one difference, though the target may end before all of their offsets."""
    source = made_source(random.Random(seed), former + size, 10**9)
    task = Task(lag_max=3)
    task.mirror(source.entries[:former])
    last = task.syncs[-1]
    old = [attrs.evolve(each, timestamp_ms=1000) for each in task.syncs]
    task.target.clear()
    task.syncs.clear()
    task.next_offset, task._last = 0, None
    task.mirror(source.entries[former:])
    syncs = [*old, *(attrs.evolve(each, timestamp_ms=2000) for each in task.syncs)]
    found = compare_logs(source, task.log(), syncs, reads_committed=False, made_anew=MadeAnew(target_ms=2000))
    (shrunk,) = found.differences
    assert shrunk.kind is Kind.TARGET_SHRUNK
    assert shrunk.target == OffsetRange(0, last.downstream + 1)
    assert found.counts.compared == len(source.entries) - former


@given(SEEDS, st.integers(1, 40), st.integers(2, 40), st.integers(0, 30), st.booleans())
def test_records_of_a_former_source_are_told_though_none_of_its_syncs_is_left(
    seed: int, former: int, size: int, removed: int, has_older: bool
) -> None:
    """Compaction has left the newest sync, and retention has removed the first records, maybe its own, too."""
    chance = random.Random(seed)
    old, source = made_source(chance, former, 10**9), made_source(chance, size, 10**9)
    task = Task()
    task.mirror(old.entries)
    end = task.next_offset
    task.restart()
    task.mirror(source.entries)
    kept = source.entries[min(removed, size - 1) :]
    now = MemoryLog(kept, kept[0].offset, source.end_offset)
    sync = task.syncs[-1]
    found = compare_logs(now, task.log(), [sync], reads_committed=False, has_older=has_older)
    told = [each for each in found.differences if each.kind is Kind.SOURCE_RECREATED]
    before = sum(each.offset < sync.upstream for each in kept)
    more = sync.downstream - before - min(sync.upstream, now.start_offset)
    assert [(each.target.start, each.count) for each in told] == ([(0, more)] if has_older and more > 0 else [])
    for each in told:
        assert each.target.end <= end
        assert found.differences == (each,)


@pytest.mark.parametrize("true", [0, 1, 3])
def test_many_syncs_of_a_former_source_cost_few_reads(true: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample shows that they do not hold; those that hold at their end are kept, though clocks made them look old."""
    chance = random.Random(1)
    old, source = made_source(chance, 600, 10**9), made_source(chance, 600, 10**9)
    task = Task(lag_max=0)
    task.mirror(old.entries)
    count = len(task.syncs)
    task.restart()
    task.mirror(source.entries)
    assert count > 200
    syncs = [attrs.evolve(each, timestamp_ms=1000 if n < count + true else 3000) for n, each in enumerate(task.syncs)]
    asked: list[object] = []
    right = _PairComparison._holds

    def noted(comparison: _PairComparison, sync: Sync) -> bool:
        asked.append(sync)
        return right(comparison, sync)

    monkeypatch.setattr(_PairComparison, "_holds", noted)
    found = compare_logs(source, task.log(), syncs, reads_committed=False, made_anew=MadeAnew(source_ms=2000))
    assert [each.kind for each in found.differences] == [Kind.SOURCE_RECREATED]
    assert found.equal_anchors == len(syncs) - count
    assert len(asked) < 60
