# SPDX-License-Identifier: Apache-2.0
"""Mirrors after restarts, retention on both sides and compaction of their syncs, of which the truth is known."""

import random
from collections.abc import Sequence
from typing import Any

import attrs

from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult
from tests.tools.mirrors.comparing.made_mirrors import Entry, MemoryLog, Task, made_source
from tests.tools.mirrors.comparing.summed_logs import compare_logs

UNIQUE = 10**9
"""So many contents make equal records unlikely."""


@attrs.frozen
class History:
    """A mirror as it is at the end.

    Attributes:
        source: what retention has left of the source.
        target: what it has left of the target.
        syncs: those that compaction has left.
        origins: the offset in the source of each record that was ever in the target.
        reads_committed: whether aborted records were left out.
        mirrored_end: what Connect has stored; 0 if that is not here.
    """

    source: MemoryLog
    target: MemoryLog
    syncs: Sequence[Sync]
    origins: Sequence[int]
    reads_committed: bool
    mirrored_end: int = 0

    def compared(self, **options: Any) -> PairResult:
        """What is found, with counts that add up."""
        options = {"reads_committed": self.reads_committed} | options
        result = compare_logs(self.source, self.target, self.syncs, self.mirrored_end, **options)
        assert min(attrs.astuple(result.counts)) >= 0
        assert result.counts.total == len(self.source.entries)
        assert result.anchors == len(self.syncs)
        return result

    def changed(self, index: int) -> "History":
        """Return it with another content of a record of the target, by its index among those that are there."""
        entries = list(self.target.entries)
        entries[index] = attrs.evolve(entries[index], content=10 * UNIQUE)
        return attrs.evolve(self, target=attrs.evolve(self.target, entries=tuple(entries)))


def cut(log: MemoryLog, start: int) -> MemoryLog:
    """What retention has left of a log."""
    return attrs.evolve(log, entries=tuple(each for each in log.entries if each.offset >= start), start_offset=start)


def numbered_source(size: int) -> MemoryLog:
    """A log of records without any between that is no data, each with a content of its own."""
    return MemoryLog(tuple(Entry(offset, 1000 + offset) for offset in range(size)), 0, size, at_once=1000)


def made_history(chance: random.Random, *, contents: int = UNIQUE, most_restarts: int = 2) -> History:
    """Return a sound mirror: each task goes on where Connect has stored that the one before it was, or earlier."""
    source = made_source(chance, chance.randrange(5, 80), contents)
    task = Task(lag_max=chance.choice((0, 2, 10, 100)), reads_committed=chance.random() < 0.4)
    origins: list[int] = []
    at = 0
    for number in range(chance.randrange(most_restarts + 1) + 1):
        if number:
            task.restart()
            at -= chance.choice((0, chance.randrange(min(at, 30) + 1)))
        end = chance.randrange(at, len(source.entries) + 1)
        task.mirror(source.entries[at:end])
        taken = source.entries[at:end]
        origins += [each.offset for each in taken if not (task.reads_committed and each.is_aborted)]
        at = end
    is_compacted = chance.random() < 0.4
    starts = [chance.choice((0, 0, chance.randrange(end + 1))) for end in (source.end_offset, task.next_offset)]
    syncs = task.syncs[-1:] if is_compacted else task.syncs
    return History(cut(source, starts[0]), cut(task.log(), starts[1]), syncs, origins, task.reads_committed)
