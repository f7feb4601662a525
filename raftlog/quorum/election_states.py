# SPDX-License-Identifier: Apache-2.0
"""Which election state may follow which: what keeps a replica from voting twice in an epoch.

Source: QuorumState, FileQuorumStateStore. Differs: DECISIONS.md 18.
"""

from raftlog.errors import FencedEpochError, IllegalTransitionError
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData


def keeps_promises(state: QuorumStateData, before: QuorumStateData) -> bool:
    """Whether a state keeps what one before it, of the same epoch, has promised: its leader, or else its vote.

    A vote may be dropped once a leader is known. A vote without a directory id is one for any directory of its replica.
    """
    if before.leader_id not in (UNKNOWN_ID, state.leader_id):
        return False
    here, there = state.voted_key, before.voted_key
    if here is None or there is None:
        return there is None or state.leader_id != UNKNOWN_ID
    return here.id == there.id and (
        None in (here.directory_id, there.directory_id) or here.directory_id == there.directory_id
    )


def is_undecided(state: QuorumStateData) -> bool:
    """Whether a state knows neither a leader nor a vote of its epoch."""
    return state.leader_id == UNKNOWN_ID and state.voted_id == UNKNOWN_ID


def check_transition(state: QuorumStateData, before: QuorumStateData | None, *, may_vote: bool) -> None:
    """Check that a replica may enter an election state.

    Args:
        state: that it is about to make durable.
        before: the one before; None for a replica that has none.
        may_vote: False where the replica may have forgotten a vote.

    Raises:
        FencedEpochError: the epoch is negative, or below that of the state before.
        IllegalTransitionError: in the epoch of the state before it has another leader or another vote, or knows of
            neither any more; or it has a new vote, and the replica may not vote.
    """
    least = 0 if before is None else before.leader_epoch
    if state.leader_epoch < least:
        raise FencedEpochError(f"epoch {state.leader_epoch} after epoch {least}")
    in_epoch = before if state.leader_epoch == least else None
    if in_epoch is not None and not keeps_promises(state, in_epoch):
        raise IllegalTransitionError(f"in epoch {least} there was {in_epoch}, and now {state}")
    has_voted_before = in_epoch is not None and in_epoch.voted_key is not None
    if not may_vote and state.voted_key is not None and not has_voted_before:
        raise IllegalTransitionError(f"a vote for {state.voted_key}, where another one may have been forgotten")


def was_elected(state: QuorumStateData, before: QuorumStateData | None) -> bool:
    """Whether the leader that a state names is, by the state before, the replica's own vote or leader in that epoch."""
    return (
        before is not None
        and before.leader_epoch == state.leader_epoch
        and state.leader_id in (before.voted_id, before.leader_id)
    )
