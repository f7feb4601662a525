# SPDX-License-Identifier: Apache-2.0
"""Whether a group that moves to the target goes on no later than it should.

MirrorMaker translates what a group has committed by the newest sync that it still holds at or before that: to the
sync's downstream offset if it is exactly there, else to one more. That may be far too low, which only means that
records are read again. Too high is a loss.

Source: OffsetSyncStore#translateDownstream, MirrorCheckpointTask#checkpointsForGroup and #syncGroupOffset.
"""

from collections.abc import Iterator
from typing import Final

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following.group_offsets import (
    GroupCheckpoint,
    GroupEvidence,
    MirroredRecords,
    commits_in_force,
    newest_checkpoints,
)
from raftlog.tools.mirrors.following.mirror_findings import MirrorFinding

_AHEAD: Final = "mirror.checkpoint-ahead"
_ODD: Final = "mirror.checkpoint-odd"


def check_checkpoints(evidence: GroupEvidence, mirrored: MirroredRecords) -> tuple[MirrorFinding, ...]:
    """Return what is wrong with the checkpoints of a partition, and with its groups' offsets on the target.

    Findings are in the order of the checkpoints; those about offsets without a checkpoint follow, by group. A
    checkpoint that is ahead is not called odd as well for the same offset.

    Args:
        evidence: what both clusters say.
        mirrored: knows the copies of the source's records.
    """
    return (*_of_checkpoints(evidence, mirrored), *_without_checkpoint(evidence))


def check_positions(evidence: GroupEvidence) -> tuple[MirrorFinding, ...]:
    """Return which groups would pass over records of a target with the offsets of its source, or begin after its end.

    There are no checkpoints: a group goes on where it stands, unless it has committed another offset on the target.

    Args:
        evidence: what both clusters say; checkpoints are what groups have committed on the source.
    """
    own_start, end = evidence.own_start, evidence.target.end
    own = commits_in_force(evidence.target_commits)
    found = []
    for group, each in sorted(newest_checkpoints(evidence.checkpoints).items()):
        reason = f"it goes on at offset {each.downstream} of the target"
        has_gone_on = group in own and own[group].committed != each.downstream
        if has_gone_on or each.downstream <= min(end, end if own_start is None else own_start):
            continue
        start = end if own_start is None else own_start
        if own_start is not None:
            reason += f", and has not read what others wrote there from offset {own_start} on"
        if each.downstream > end:
            reason += f", and the target ends at {end} (exclusive)"
        source, target = OffsetRange(each.upstream, each.upstream), OffsetRange(start, each.downstream)
        found.append(MirrorFinding(_AHEAD, group, reason, source, target, each.offset))
    return tuple(found)


def _of_checkpoints(evidence: GroupEvidence, mirrored: MirroredRecords) -> Iterator[MirrorFinding]:
    newest = newest_checkpoints(evidence.checkpoints)
    committed = {(each.group, each.committed) for each in evidence.source_commits}
    translations = {each.downstream + step for each in evidence.syncs for step in (0, 1)}
    for each in evidence.checkpoints:
        is_former = evidence.since_ms is not None and each.timestamp_ms < evidence.since_ms
        if is_former and newest[each.group] is not each:
            continue
        ahead = _ahead(each, evidence, mirrored)
        if ahead is not None:
            yield ahead
        elif evidence.has_all_syncs and each.downstream not in translations:
            reason = f"no offset sync is at offset {each.downstream} of the target, or at {each.downstream - 1}"
            yield _odd(each, reason)
        if each.group not in evidence.groups_with_gaps and (each.group, each.upstream) not in committed:
            yield _odd(each, f"the group has never committed offset {each.upstream} of the source")


def _ahead(each: GroupCheckpoint, evidence: GroupEvidence, mirrored: MirroredRecords) -> MirrorFinding | None:
    """Return the finding about a checkpoint after which a record is not read, or that the target does not reach."""
    first, end = mirrored.first_mirrored_from(each.upstream), evidence.target.end
    reason = f"it goes on at offset {each.downstream} of the target"
    if first is not None and first.last_copy < each.downstream:
        source = OffsetRange(each.upstream, first.upstream + 1)
        target = OffsetRange(first.last_copy, each.downstream)
        reason += f", and offset {first.upstream} of the source, which it has not read, is at {first.last_copy}"
    elif each.downstream > end:
        source, target = OffsetRange(each.upstream, each.upstream), OffsetRange(end, each.downstream)
    else:
        return None
    if each.downstream > end:
        reason += f", and the target ends at {end} (exclusive)"
    return MirrorFinding(_AHEAD, each.group, reason, source, target, each.offset)


def _odd(each: GroupCheckpoint, reason: str) -> MirrorFinding:
    source, target = OffsetRange(each.upstream, each.upstream), OffsetRange(each.downstream, each.downstream)
    return MirrorFinding(_ODD, each.group, reason, source, target, each.offset)


def _without_checkpoint(evidence: GroupEvidence) -> Iterator[MirrorFinding]:
    """Yield the groups that have an offset on the target, and never had a checkpoint."""
    known = newest_checkpoints(evidence.checkpoints)
    commits = commits_in_force(evidence.target_commits) if evidence.has_checkpoints else {}
    for group, each in sorted(commits.items()):
        if group not in known and each.committed is not None:
            target = OffsetRange(each.committed, each.committed)
            reason = f"it has committed offset {each.committed} of the target, and has no checkpoint"
            yield MirrorFinding(_ODD, group, reason, None, target, each.offset)
