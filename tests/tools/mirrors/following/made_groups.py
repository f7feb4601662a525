# SPDX-License-Identifier: Apache-2.0
"""Groups that read a source while it is mirrored, in memory, with checkpoints as MirrorCheckpointTask writes them."""

import random
from typing import Final

import attrs

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.following.group_offsets import GroupCheckpoint, GroupCommit, GroupEvidence, MirroredRecord
from tests.tools.mirrors.comparing.made_mirrors import Entry, MemoryLog, Task, made_source
from tests.tools.mirrors.following.offset_sync_store import ThinnedSyncs

FOREIGN: Final = -2
"""The content of a record that only the target has."""
GROUPS: Final = ("readers", "writers")


@attrs.frozen
class NaiveMirror:
    """A source and its target as they are: the naive counts. The content of a copy is its offset on the source.

    Attributes:
        source: the data records of the source.
        target: those of the target.
    """

    source: tuple[Entry, ...]
    target: tuple[Entry, ...]

    def last_copies(self) -> dict[int, int]:
        return {each.content: each.offset for each in self.target if each.content != FOREIGN}

    def first_mirrored_from(self, upstream: int) -> MirroredRecord | None:
        last = self.last_copies()
        found = [offset for offset in last if offset >= upstream]
        return MirroredRecord(min(found), last[min(found)]) if found else None

    def mirrored_count(self, upstream: int, downstream: int) -> int:
        return sum(offset >= upstream and copy >= downstream for offset, copy in self.last_copies().items())

    def copy_count(self, downstream: int) -> int:
        return sum(each.offset >= downstream and each.content != FOREIGN for each in self.target)

    def foreign_count(self, downstream: int) -> int:
        return sum(each.offset >= downstream and each.content == FOREIGN for each in self.target)

    def unmirrored_count(self, start: int, end: int) -> int:
        last = self.last_copies()
        return sum(start <= each.offset < end and each.offset not in last for each in self.source)


@attrs.define
class History:
    """A pair of clusters while time goes on.

    Attributes:
        chance: decides what happens.
        source: the log; all of it is there from the beginning.
        task: mirrors it.
        mirrored: its data records before this one are mirrored, or skipped.
    """

    chance: random.Random
    source: MemoryLog
    task: Task
    mirrored: int
    source_commits: list[GroupCommit] = attrs.field(factory=list)
    target_commits: list[GroupCommit] = attrs.field(factory=list)
    checkpoints: list[GroupCheckpoint] = attrs.field(factory=list)
    store: ThinnedSyncs = attrs.field(factory=ThinnedSyncs)
    synced: int = 0

    def step(self) -> None:
        """Let one thing happen."""
        often = (self.mirror, self.commit, self.checkpoint)
        self.chance.choice((*often, *often, *often, self.restart_some, self.restart_some, self.skip))()

    def mirror(self) -> None:
        """Mirror some more records."""
        end = min(self.mirrored + self.chance.randrange(1, 30), len(self.source.entries))
        self.mirror_between(self.mirrored, end)
        self.mirrored = end

    def mirror_between(self, start: int, end: int) -> None:
        """Mirror records from one (inclusive) to another (exclusive).

        Syncs may be overtaken by later ones before they are sent, and Connect's commit may write one more.
        """
        syncs, former = self.task.syncs, len(self.task.syncs)
        self.task.mirror(self.source.entries[start:end])
        syncs[former:] = [each for each in syncs[former:] if self.chance.random() < 0.8]
        if self.task.target and self.chance.random() < 0.2:
            last = self.task.target[-1]
            syncs.append(Sync(last.content, last.offset, self.task.producer_id, len(syncs)))

    def skip(self) -> None:
        """Go on after some records that are not mirrored, as after a reset to the latest offset."""
        self.mirrored = min(self.mirrored + self.chance.randrange(9), len(self.source.entries))

    def restart_some(self) -> None:
        """Restart one of the tasks."""
        if self.chance.random() < 0.6:
            self.load()
        else:
            self.restart(self.chance.randrange(self.mirrored + 1))

    def load(self) -> None:
        """Start another checkpoint task."""
        self.synced = len(self.task.syncs)
        self.store = ThinnedSyncs.loaded(self.task.syncs, has_checkpoints=self.chance.random() < 0.5)

    def restart(self, back: int) -> None:
        """Go on as another task from a record on that may be mirrored; it mirrors all that was mirrored before."""
        self.task.restart()
        between = self.chance.randrange(back, self.mirrored + 1)
        self.mirror_between(back, between)
        self.checkpoint()
        self.mirror_between(between, self.mirrored)

    def commit(self) -> None:
        """Let a group commit any offset, mostly a later one."""
        group = self.chance.choice(GROUPS)
        before = [each.committed for each in self.source_commits if each.group == group]
        start = before[-1] if before and before[-1] is not None and self.chance.random() < 0.8 else 0
        offset = self.chance.randrange(start, self.source.end_offset + 1)
        if self.chance.random() < 0.05:
            self.source_commits.append(GroupCommit(group, None, len(self.source_commits)))
        else:
            self.source_commits.append(GroupCommit(group, offset, len(self.source_commits)))

    def checkpoint(self) -> None:
        """Read some of the syncs, and write the checkpoints that are due."""
        end = self.chance.randrange(self.synced, len(self.task.syncs) + 1)
        for each in self.task.syncs[self.synced : end]:
            self.store.add(each)
        self.synced = end
        for group in GROUPS:
            commits = [each.committed for each in self.source_commits if each.group == group]
            if not commits or commits[-1] is None:
                continue
            upstream, downstream = commits[-1], self.store.translated(commits[-1])
            last = next((each for each in reversed(self.checkpoints) if each.group == group), None)
            if downstream is None or downstream < 0:
                continue
            if last is None or upstream < last.upstream or downstream > last.downstream:
                number = len(self.checkpoints)
                self.checkpoints.append(GroupCheckpoint(group, upstream, downstream, number, 1000 + number))
                if self.chance.random() < 0.5:
                    self.target_commits.append(GroupCommit(group, downstream, len(self.target_commits)))

    def write_foreign(self) -> None:
        """Let others write to the target."""
        for _ in range(self.chance.randrange(4)):
            self.task.target.append(Entry(self.task.next_offset, FOREIGN))
            self.task.next_offset += 1

    def cut_front(self) -> tuple[int, int]:
        """Return log starts after a retention on both sides, at random."""
        if self.chance.random() < 0.5:
            return 0, 0
        return self.chance.randrange(self.source.end_offset + 1), self.chance.randrange(self.task.next_offset + 1)

    def evidence(self, source_start: int = 0, target_start: int = 0) -> tuple[GroupEvidence, NaiveMirror]:
        """Return what is there in the end, and the naive counts."""
        evidence = GroupEvidence(
            OffsetRange(source_start, self.source.end_offset),
            OffsetRange(target_start, self.task.next_offset),
            tuple(self.task.syncs),
            tuple(self.checkpoints),
            tuple(self.source_commits),
            tuple(self.target_commits),
        )
        source = tuple(each for each in self.source.entries if each.offset >= source_start)
        target = tuple(each for each in self.task.target if each.offset >= target_start)
        return evidence, NaiveMirror(source, target)


def made_history(seed: int) -> History:
    """Return a history at its end."""
    chance = random.Random(seed)
    made = made_source(chance, chance.randrange(1, 150), 1)
    entries = [attrs.evolve(each, content=each.offset) for each in made.entries]
    source = MemoryLog(entries, made.start_offset, made.end_offset)
    start = chance.choice((0, 0, chance.randrange(len(entries))))
    history = History(chance, source, Task(chance.choice((2, 10)), chance.random() < 0.3), start)
    for _ in range(chance.randrange(1, 40)):
        history.step()
    return history
