# SPDX-License-Identifier: Apache-2.0
"""Resigns on request, in favour of a voter if one is named.

Source: KafkaRaftClient#resign. Kafka cannot name a voter.
"""

from raftlog.errors import NotLeaderError, TransferTargetError, UnknownEpochError
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.replica import LocalReplica
from raftlog.voters.voter_set import ReplicaKey


def request_resignation(replica: LocalReplica, epoch: int, preferred: ReplicaKey | None) -> None:
    """Have the leader resign the next time it acts. A leadership that is over already is not resigned.

    Raises:
        ValueError: the epoch is negative.
        UnknownEpochError: the epoch is a later one than this replica knows.
        NotLeaderError: another replica leads the epoch, or none, or this replica has halted.
        TransferTargetError: as for ``check_target``.
    """
    if epoch < 0:
        raise ValueError(f"epoch {epoch}")
    if epoch > replica.epoch:
        raise UnknownEpochError(f"epoch {epoch} is not known: it is {replica.epoch}")
    if epoch < replica.epoch:
        return
    if replica.leader_id != replica.identity.key.id or replica.halt_reason is not None:
        raise NotLeaderError(f"this replica is {type(replica.role).__name__} in epoch {replica.epoch}")
    leadership = replica.leadership
    if leadership is None:
        return
    if preferred is not None:
        check_target(replica, leadership, preferred)
    leadership.preferred_successor = preferred
    leadership.is_resignation_due = True


def check_target(replica: LocalReplica, leadership: Leadership, preferred: ReplicaKey) -> None:
    """Check that a replica could be elected: it is another voter, and has all committed records.

    Raises:
        TransferTargetError: it could not.
    """
    node = replica.voters.voters.get(preferred.id)
    if node is None or node.voter_key != preferred or node.is_voter(replica.identity.key):
        voters = ", ".join(map(str, sorted(replica.voters.voter_keys)))
        raise TransferTargetError(f"{preferred} is not another voter; the voters are {voters}")
    known = leadership.progress_of(node)
    if known is None or known.end_offset < replica.committed_offset:
        reached = "has not fetched yet" if known is None else f"has fetched up to {known.end_offset}"
        raise TransferTargetError(f"{preferred} {reached}, and {replica.committed_offset} is committed")
