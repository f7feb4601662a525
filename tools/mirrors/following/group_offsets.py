# SPDX-License-Identifier: Apache-2.0
"""Where consumer groups stand in a partition and its mirror: checkpoints, commits, and what both clusters know."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import attrs

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync


@attrs.frozen
class GroupCheckpoint:
    """A checkpoint of a group in one partition.

    Attributes:
        group: the consumer group.
        upstream: what the group has committed on the source: the first offset that it has not read.
        downstream: the first offset that it reads on the target.
        offset: of the checkpoint, in its own topic.
        timestamp_ms: when it was written, in ms since the Unix epoch.
    """

    group: str
    upstream: int
    downstream: int
    offset: int
    timestamp_ms: int


@attrs.frozen
class GroupCommit:
    """An offset that a group has committed for one partition of one cluster.

    Attributes:
        group: the consumer group.
        committed: the first offset that it has not read; None if the commit was deleted, or has expired.
        offset: of the record that says so, in ``__consumer_offsets``.
    """

    group: str
    committed: int | None
    offset: int


@attrs.frozen
class GroupEvidence:
    """What both clusters say of the groups that read one partition, or its mirror.

    Attributes:
        source: the offsets of the source's log, from its start to its end.
        target: those of the target's.
        syncs: of the partition, in the order of their topic.
        checkpoints: of the partition, in the order of their topic.
        source_commits: for the partition, on the source, in the order of their topic.
        target_commits: for its mirror, on the target, in the order of their topic.
        has_all_syncs: whether all syncs that were written are there. Otherwise nothing is said of offsets that follow
            from none.
        has_checkpoints: whether the topic of the checkpoints could be read. Its compaction leaves one of each group.
        groups_with_gaps: those of whose commits on the source some may be missing, by compaction or because their
            topic is not there. Nothing is said of offsets that they have not committed.
        since_ms: since when source and target are the topics that they are now. Older checkpoints are of former
            topics; only a group's newest one counts whatever its time, because consumers would use it.
        newest_source_ms: the time of the newest record of the source; None if it has none.
        newest_target_ms: likewise, of the target.
        own_start: of a target with the offsets of its source, the first record that others wrote to it since; None if
            there is none.
    """

    source: OffsetRange
    target: OffsetRange
    syncs: Sequence[Sync] = ()
    checkpoints: tuple[GroupCheckpoint, ...] = ()
    source_commits: tuple[GroupCommit, ...] = ()
    target_commits: tuple[GroupCommit, ...] = ()
    has_all_syncs: bool = True
    has_checkpoints: bool = True
    groups_with_gaps: frozenset[str] = frozenset()
    since_ms: int | None = None
    newest_source_ms: int | None = None
    newest_target_ms: int | None = None
    own_start: int | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups that are named anywhere, in order."""
        committed = {each.group for each in (*self.source_commits, *self.target_commits)}
        return tuple(sorted(committed.union(each.group for each in self.checkpoints)))


class MirroredRecord(NamedTuple):
    """A record of the source that the target has.

    Attributes:
        upstream: its offset on the source.
        last_copy: the offset of its last copy on the target.
    """

    upstream: int
    last_copy: int


class MirroredRecords(Protocol):
    """Knows which records of a source its target has now, and where."""

    def first_mirrored_from(self, upstream: int) -> MirroredRecord | None:
        """Return the first record at an offset of the source or after it that the target has; None if it has none."""
        ...


def newest_checkpoints(checkpoints: Iterable[GroupCheckpoint]) -> dict[str, GroupCheckpoint]:
    """Return the last checkpoint of each group."""
    return {each.group: each for each in checkpoints}


def commits_in_force(commits: Iterable[GroupCommit]) -> dict[str, GroupCommit]:
    """Return the last commit of each group, unless that is deleted."""
    last = {each.group: each for each in commits}
    return {group: each for group, each in last.items() if each.committed is not None}
