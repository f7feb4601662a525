# SPDX-License-Identifier: Apache-2.0
"""Decides which election state may follow which, so that no replica votes twice in an epoch.

Source: QuorumState, FileQuorumStateStore. Differs: DECISIONS.md 18.
"""

import attrs

from raftlog.errors import FencedEpochError, IllegalTransitionError
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData


def keeps_promises(state: QuorumStateData, before: QuorumStateData) -> bool:
    """Whether a state keeps the promises of the previous one of the same epoch: its leader, or else its vote.

    A vote may be dropped once a leader is known. A vote without a directory id is for any directory of its replica.
    """
    if before.leader_id not in (UNKNOWN_ID, state.leader_id):
        return False
    here, there = state.voted_key, before.voted_key
    if here is None or there is None:
        return there is None or state.leader_id != UNKNOWN_ID
    return here.id == there.id and (
        None in (here.directory_id, there.directory_id) or here.directory_id == there.directory_id
    )


def contradict(one: QuorumStateData, other: QuorumStateData, node_id: int) -> bool:
    """Whether a replica cannot have had both states, of one epoch, in any order.

    A leader has voted for itself, also if its state no longer says so.

    Args:
        one: a state of it.
        other: another one.
        node_id: of the replica.
    """
    if one.leader_epoch != other.leader_epoch:
        return False
    one, other = (_with_own_vote(each, node_id) for each in (one, other))
    return not keeps_promises(one, other) and not keeps_promises(other, one)


def _with_own_vote(state: QuorumStateData, node_id: int) -> QuorumStateData:
    if state.leader_id == node_id and state.voted_id == UNKNOWN_ID:
        return attrs.evolve(state, voted_id=node_id)
    return state


def is_undecided(state: QuorumStateData) -> bool:
    """Whether a state has neither a leader nor a vote."""
    return state.leader_id == UNKNOWN_ID and state.voted_id == UNKNOWN_ID


def check_transition(state: QuorumStateData, before: QuorumStateData | None, *, may_vote: bool) -> None:
    """Check that a replica may enter an election state.

    Args:
        state: the new state, which is about to be made durable.
        before: the previous state; None if there is none.
        may_vote: False if the replica may have forgotten a vote.

    Raises:
        FencedEpochError: the epoch is negative, or below that of the previous state.
        IllegalTransitionError: the epoch is that of the previous state, but leader or vote were replaced or removed; or
            there is a new vote, and the replica may not vote.
    """
    least = 0 if before is None else before.leader_epoch
    if state.leader_epoch < least:
        raise FencedEpochError(f"epoch {state.leader_epoch} after epoch {least}")
    in_epoch = before if state.leader_epoch == least else None
    if in_epoch is not None and not keeps_promises(state, in_epoch):
        raise IllegalTransitionError(f"in epoch {least} there was {in_epoch}, and now {state}")
    has_voted_before = in_epoch is not None and in_epoch.voted_key is not None
    if not may_vote and state.voted_key is not None and not has_voted_before:
        raise IllegalTransitionError(f"a vote for {state.voted_key}, but another one may have been forgotten")


def was_elected(state: QuorumStateData, before: QuorumStateData | None) -> bool:
    """Whether the previous state, of the same epoch, already has a state's leader as its vote or its leader."""
    return (
        before is not None
        and before.leader_epoch == state.leader_epoch
        and state.leader_id in (before.voted_id, before.leader_id)
    )
