# SPDX-License-Identifier: Apache-2.0
"""What a consumer group reads twice, and what it misses, if it moves to the target now, and if it comes back later.

On the way out it has read the source up to what it has committed there. On the way back it has also read the target,
from where it went on there up to the target's end.

Source: KafkaConsumer for where a consumer begins, RemoteClusterUtils#translateOffsets for checkpoints.
"""

import enum
from typing import Literal, Protocol, Self

import attrs

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following.group_offsets import (
    GroupEvidence,
    MirroredRecords,
    commits_in_force,
    newest_checkpoints,
)

OffsetReset = Literal["earliest", "latest"]
"""Where a consumer begins that has no offset, or one outside of the log (``auto.offset.reset``)."""


class PositionOrigin(enum.Enum):
    """Why a group goes on where it does."""

    COMMIT = "commit"
    """It has committed that offset on the cluster that it moves to, or MirrorMaker has for it."""
    CHECKPOINT = "checkpoint"
    """Its newest checkpoint says so."""
    RESET = "reset"
    """Nothing says where, or the log does not have that offset, so that ``auto.offset.reset`` decides."""
    SET = "set"
    """The operator has set it."""


class MirrorCounts(MirroredRecords, Protocol):
    """Counts the records of a source and its target, as both logs are now.

    A copy is a record of the target that was mirrored from the source, whether or not the source still has that record.
    """

    def mirrored_count(self, upstream: int, downstream: int) -> int:
        """Count the records at an offset of the source or after it whose last copy is at one of the target or after."""
        ...

    def copy_count(self, downstream: int) -> int:
        """Count the copies at an offset of the target or after it; each copy of one record counts."""
        ...

    def foreign_count(self, downstream: int) -> int:
        """Count the records at an offset of the target or after it that are no copies."""
        ...

    def unmirrored_count(self, start: int, end: int) -> int:
        """Count the records of the source from an offset (inclusive) to another (exclusive) without any copy."""
        ...


@attrs.frozen
class GroupMove:
    """A group that moves from one cluster to the other, for one partition.

    Attributes:
        group: the consumer group.
        committed: where it stands on the cluster that it leaves: the first offset that it has not read; None if
            nothing says.
        translated: the offset that the other cluster has for it; None if it has none.
        position: where it goes on there.
        origin: why there.
        read_again: how many records it reads that it had read; None if it is not known where it stands.
        skipped: how many records before the position, and in the other cluster, it has not read; likewise None. Where
            offsets are those of the source, records that others wrote to the target since are among them.
        missing: how many records the other cluster does not have: on the way out, those that the group has not read;
            on the way back, those of the target that it has read and that never were in the source; likewise None.
        newest_source_ms: the time of the newest record of the source; None if it has none.
        newest_target_ms: likewise, of the target.
    """

    group: str
    committed: int | None
    translated: int | None
    position: int
    origin: PositionOrigin
    read_again: int | None
    skipped: int | None
    missing: int | None
    newest_source_ms: int | None
    newest_target_ms: int | None


@attrs.frozen
class _Position:
    translated: int | None
    offset: int
    origin: PositionOrigin

    @classmethod
    def of(cls, translated: int | None, origin: PositionOrigin, log: OffsetRange, reset: OffsetReset) -> Self:
        """Return where a consumer goes on in a log: at an offset, if the log has it or ends there."""
        if translated is not None and log.start <= translated <= log.end:
            return cls(translated, translated, origin)
        return cls(translated, log.start if reset == "earliest" else log.end, PositionOrigin.RESET)


def fail_over(evidence: GroupEvidence, counts: MirrorCounts, reset: OffsetReset = "latest") -> tuple[GroupMove, ...]:
    """Return how each group goes on if it moves to the target, by group.

    A group's own commit on the target decides. Without one, the newest checkpoint does, as for an operator who asks
    for it.

    Args:
        evidence: what both clusters say.
        counts: of the partition.
        reset: as the group's consumers are configured; the default is Kafka's.
    """
    return tuple(_move_out(evidence, counts, group, reset) for group in evidence.groups)


def _move_out(evidence: GroupEvidence, counts: MirrorCounts, group: str, reset: OffsetReset) -> GroupMove:
    committed, at = _committed_on_source(evidence, group), _on_target(evidence, group, reset)
    read_again = skipped = missing = None
    if committed is not None:
        read_first = counts.mirrored_count(committed, at.offset)
        read_again = counts.copy_count(at.offset) - read_first
        skipped = counts.mirrored_count(committed, evidence.target.start) - read_first
        has_read = at.origin is PositionOrigin.COMMIT and at.translated != committed  # Else the commit was copied.
        if evidence.own_start is not None and not has_read:
            own_start = min(evidence.own_start, at.offset)
            skipped += counts.foreign_count(own_start) - counts.foreign_count(at.offset)
        missing = counts.unmirrored_count(committed, evidence.source.end)
    return _move(evidence, group, committed, at, (read_again, skipped, missing))


def fail_back(
    evidence: GroupEvidence, counts: MirrorCounts, reset: OffsetReset = "latest", position: int | None = None
) -> tuple[GroupMove, ...]:
    """Return how each group goes on if it has moved to the target, has read that up to its end, and comes back.

    Nothing translates offsets for the way back, so that what a group had committed on the source decides. To set the
    offset after the last mirrored record (``PairResult.next_source``) avoids that everything is read again.

    Args:
        evidence: what both clusters say.
        counts: of the partition.
        reset: as the group's consumers are configured; the default is Kafka's.
        position: the offset that the operator sets on the source; None if none is set.
    """
    return tuple(_move_back(evidence, counts, group, reset, position) for group in evidence.groups)


def _move_back(
    evidence: GroupEvidence, counts: MirrorCounts, group: str, reset: OffsetReset, position: int | None
) -> GroupMove:
    committed, came = _committed_on_source(evidence, group), _on_target(evidence, group, reset).offset
    translated, origin = (committed, PositionOrigin.COMMIT) if position is None else (position, PositionOrigin.SET)
    at = _Position.of(translated, origin, evidence.source, reset)
    read_again = skipped = missing = None
    if committed is not None:
        read_again = _read_before(counts, evidence, committed, came, at.offset)
        skipped = _not_read_before(counts, evidence, committed, came, at.offset)
        missing = counts.foreign_count(came)
    return _move(evidence, group, evidence.target.end, at, (read_again, skipped, missing))


def _move(
    evidence: GroupEvidence,
    group: str,
    committed: int | None,
    at: _Position,
    counts: tuple[int | None, int | None, int | None],
) -> GroupMove:
    times = evidence.newest_source_ms, evidence.newest_target_ms
    return GroupMove(group, committed, at.translated, at.offset, at.origin, *counts, *times)


def _read_before(counts: MirrorCounts, evidence: GroupEvidence, committed: int, came: int, position: int) -> int:
    """Count the records of the source from a position on that a group has read, on the source or on the target."""
    on_source = 0
    if position < committed:
        start = evidence.target.start
        on_source = counts.mirrored_count(position, start) - counts.mirrored_count(committed, start)
        on_source += counts.unmirrored_count(position, committed)
    return on_source + counts.mirrored_count(max(position, committed), came)


def _not_read_before(counts: MirrorCounts, evidence: GroupEvidence, committed: int, came: int, position: int) -> int:
    """Count the records of the source before a position that a group has read neither there nor on the target."""
    if position <= committed:
        return 0
    start = evidence.target.start
    mirrored = counts.mirrored_count(committed, start) - counts.mirrored_count(position, start)
    read = counts.mirrored_count(committed, came) - counts.mirrored_count(position, came)
    return mirrored - read + counts.unmirrored_count(committed, position)


def _committed_on_source(evidence: GroupEvidence, group: str) -> int | None:
    commit = commits_in_force(evidence.source_commits).get(group)
    return None if commit is None else commit.committed


def _on_target(evidence: GroupEvidence, group: str, reset: OffsetReset) -> _Position:
    commit = commits_in_force(evidence.target_commits).get(group)
    checkpoint = newest_checkpoints(evidence.checkpoints).get(group)
    if commit is not None:
        return _Position.of(commit.committed, PositionOrigin.COMMIT, evidence.target, reset)
    translated = None if checkpoint is None else checkpoint.downstream
    return _Position.of(translated, PositionOrigin.CHECKPOINT, evidence.target, reset)
