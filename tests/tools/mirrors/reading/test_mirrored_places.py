# SPDX-License-Identifier: Apache-2.0
"""What groups are told of mirrored records is what all places, one by one, say."""

import random

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.lifetimes import edges_of
from raftlog.tools.mirrors.comparing.log_view import SummedLog
from raftlog.tools.mirrors.comparing.pair import compare_pair
from raftlog.tools.mirrors.following import MirroredRecord
from raftlog.tools.mirrors.reading.mirrored_places import MirroredPlaces
from tests.tools.mirrors.comparing.made_mirrors import Entry, MemoryLog, Task, made_source
from tests.tools.mirrors.comparing.summed_logs import sums_by_reading


def summed(source: MemoryLog, task: Task) -> tuple[SummedLog, SummedLog]:
    """Both logs, summed."""
    logs = source, task.log()
    edges = edges_of(task.syncs)
    return (
        SummedLog(logs[0], sums_by_reading(logs[0], edges[0])),
        SummedLog(logs[1], sums_by_reading(logs[1], edges[1])),
    )


@given(st.integers(0, 1 << 32))
def test_counts_are_those_of_all_places(seed: int) -> None:
    """Of mirrors by several tasks, with copies, losses, changes, and aborted records that some tasks leave out."""
    chance = random.Random(seed)
    source = made_source(chance, chance.randrange(1, 50), chance.choice([2, 10**9]))
    task = Task(chance.choice([1, 5, 10]))
    for _ in range(chance.randrange(1, 4)):
        first = chance.randrange(len(source.entries))
        last = chance.randrange(first, len(source.entries)) + 1
        task.reads_committed = chance.random() < 0.3
        task.mirror([each for each in source.entries[first:last] if chance.random() < 0.95])
        task.restart()
    if task.target and chance.random() < 0.5:
        at = chance.randrange(len(task.target))
        task.target[at] = Entry(at, 12345)
    ours, theirs = summed(source, task)
    runs = compare_pair(ours, theirs, task.syncs).places
    pairs = [(run.source.at(at), run.target.at(at)) for run in runs for at in range(run.count)]
    last_copies = dict(sorted(pairs))
    places = MirroredPlaces(ours.all, ours.committed, theirs.all, runs)
    offsets = {each.offset for each in source.entries}
    for start in range(0, source.end_offset + 2, 3):
        later = sorted(each for each in last_copies if each >= start)
        expected = MirroredRecord(later[0], last_copies[later[0]]) if later else None
        assert places.first_mirrored_from(start) == expected
        for at in (0, start, task.next_offset // 2, task.next_offset):
            following = [copy for upstream, copy in last_copies.items() if upstream >= start]
            assert places.mirrored_count(start, at) == sum(copy >= at for copy in following)
            copies = sum(copy >= at for _, copy in pairs)
            assert places.copy_count(at) == copies
            assert places.foreign_count(at) == sum(each.offset >= at for each in task.target) - copies
            inside = {each for each in offsets if start <= each < start + at}
            assert places.unmirrored_count(start, start + at) == len(inside - last_copies.keys())
