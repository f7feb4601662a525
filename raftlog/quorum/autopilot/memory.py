# SPDX-License-Identifier: Apache-2.0
"""What an autopilot remembers from one plan to the next: windows of this epoch, and replicas an operator removed.

It is a value that the embedder keeps, on each node. Without it windows start anew, and an operator's removal is known
only as far as the voter set shows it (``removed_by_voters``).
"""

import enum

import attrs

from raftlog.quorum.autopilot.spec import AutopilotSpec, BaseRole
from raftlog.quorum.describing.raft_status import FetcherStatus, RaftStatus
from raftlog.voters.voter_set import ReplicaKey, VoterSet


class VoterStepKind(enum.Enum):
    """What a step does."""

    ADD = "add"
    REMOVE = "remove"


@attrs.frozen
class AutopilotStep:
    """One change of the voters.

    Attributes:
        kind: whether the replica is added or removed.
        key: of the replica.
        expected_voters_offset: of the VotersRecord that must still be the last one, for
            ``ReceivedRequest.expected_voters_offset``; -1 if a bootstrap snapshot has it.
    """

    kind: VoterStepKind
    key: ReplicaKey
    expected_voters_offset: int


@attrs.frozen
class SyncWindow:
    """Since when a replica has been in sync, or out of sync, at every look; in ms since the Unix epoch."""

    key: ReplicaKey
    is_in_sync: bool
    since_ms: int


@attrs.frozen(kw_only=True)
class AutopilotMemory:
    """The memory of one node.

    Attributes:
        epoch: in which the windows began; None if this node did not lead when it looked last.
        looked_ms: when it looked last, in ms since the Unix epoch; None if it never led.
        windows: one per replica, in the order of the keys.
        voter_ids: of the committed voters at the last look, in this epoch.
        removed: ids of replicas that an operator removed from the voters. The autopilot does not add them again.
        steps: that were given out for the voters at the last look, in this epoch, each once; none in a dry run. Any of
            them may be under way.
    """

    epoch: int | None = None
    looked_ms: int | None = None
    windows: tuple[SyncWindow, ...] = ()
    voter_ids: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()
    steps: tuple[AutopilotStep, ...] = ()

    def forget_removal(self, replica_id: int) -> "AutopilotMemory":
        """Return the memory without an operator's removal, so that the replica may be added again."""
        return attrs.evolve(self, removed=self.removed - {replica_id})


def is_in_sync(spec: AutopilotSpec, status: RaftStatus, fetcher: FetcherStatus, now_ms: int) -> bool:
    """Whether another replica keeps to all limits, and has the last VotersRecord. A time in the future is none."""
    fetched_ms, caught_up_ms, offset = (
        fetcher.fetched_wall_ms,
        fetcher.caught_up_wall_ms,
        status.committed_voters.offset,
    )
    if fetcher.lag is None or fetcher.end_offset is None or fetched_ms is None or caught_up_ms is None:
        return False
    return (
        0 <= now_ms - fetched_ms <= spec.last_contact_ms
        and 0 <= now_ms - caught_up_ms <= spec.max_age_ms
        and fetcher.lag <= spec.max_lag
        and (offset is None or fetcher.end_offset > offset)
    )


def expected_offset(status: RaftStatus) -> int:
    """Return the offset that a step expects the committed voters to have; -1 if no record has them."""
    return -1 if status.committed_voters.offset is None else status.committed_voters.offset


def look(spec: AutopilotSpec, status: RaftStatus, memory: AutopilotMemory, now_ms: int) -> AutopilotMemory:
    """Return the memory of a leader after a look at its status."""
    voters, offset = status.committed_voters.voters, expected_offset(status)
    steps = memory.steps if memory.epoch == status.epoch else ()
    removed = memory.removed - voters.voter_ids
    if memory.epoch == status.epoch:
        own = {each.key.id for each in steps if each.kind is VoterStepKind.REMOVE}
        removed |= memory.voter_ids - voters.voter_ids - own
    else:
        removed = removed_by_voters(spec, voters, removed)
    return AutopilotMemory(
        epoch=status.epoch,
        looked_ms=now_ms,
        windows=_windows(spec, status, memory, now_ms),
        voter_ids=voters.voter_ids,
        removed=removed,
        steps=tuple(each for each in steps if each.expected_voters_offset == offset),
    )


def removed_by_voters(spec: AutopilotSpec, voters: VoterSet, removed: frozenset[int]) -> frozenset[int]:
    """Return which replicas an operator has removed, as far as the voters show it.

    The autopilot removes a configured voter only while a promoted observer stands in for it. If more configured voters
    are missing than observers are voters, an operator has removed some: none of them is added.
    """
    missing = spec.configured - voters.voter_ids - removed
    stand_ins = [each for each in spec.replicas if each.role is BaseRole.OBSERVER and each.id in voters.voter_ids]
    return removed | missing if len(missing) > len(stand_ins) else removed


def _windows(spec: AutopilotSpec, status: RaftStatus, memory: AutopilotMemory, now_ms: int) -> tuple[SyncWindow, ...]:
    looked_ms = memory.looked_ms
    is_continued = (
        memory.epoch == status.epoch and looked_ms is not None and 0 <= now_ms - looked_ms <= spec.last_contact_ms
    )
    before = {each.key: each for each in memory.windows} if is_continued else {}
    in_sync = {each.key: is_in_sync(spec, status, each, now_ms) for each in status.fetchers}
    for node in status.committed_voters.voters.voters.values():
        if node.voter_key.id == status.leader_id:
            in_sync[node.voter_key] = True
        else:
            in_sync.setdefault(node.voter_key, False)
    found = []
    for key in sorted(in_sync):
        known = before.get(key)
        is_same = known is not None and known.is_in_sync == in_sync[key]
        found.append(known if known is not None and is_same else SyncWindow(key, in_sync[key], now_ms))
    return tuple(found)
