# SPDX-License-Identifier: Apache-2.0
"""Shuts a replica down without a pause for its quorum: a leader resigns first, and waits for its successor.

A replica that is shutting down begins no election, and sends no Fetch. It votes, and ends an election that is under
way: if it wins, it resigns. It is done when the quorum does not need it: as a follower, as an observer, or as the only
voter; otherwise when its time is over.

Source: KafkaRaftClient#shutdown, #maybeCompleteShutdown. Differs: DECISIONS.md 54.
"""

from raftlog.quorum.replica import LocalReplica, Shutdown
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import EndShutdown, NotifyShutdown


def begin_shutdown(replica: LocalReplica, timeout_ms: int) -> int:
    """Begin to shut down, and return the number of the shutdown; that of the first one, if one has begun already.

    That holds too if this replica has halted, before or since.

    Raises:
        ValueError: the timeout is negative.
    """
    if timeout_ms < 0:
        raise ValueError(f"a timeout of {timeout_ms} ms")
    if replica.shutdown is not None:
        return replica.shutdown.number
    number = replica.outbox.new_number()
    replica.shutdown = Shutdown(number, replica.now_ms + timeout_ms)
    for listener in replica.listeners.values():
        if listener.is_registered:
            replica.outbox.tell(NotifyShutdown(replica.outbox.new_number(), listener.number))
    return number


def complete_shutdown(replica: LocalReplica) -> bool:
    """Stop for good, if the quorum does not need this replica and all peers were answered, or its time is over.

    Return whether it has stopped. A leader must resign before.
    """
    shutdown = replica.shutdown
    if shutdown is None or isinstance(replica.role, Leader):
        return False
    has_timed_out = shutdown.deadline_ms <= replica.now_ms
    is_over = has_timed_out or (_may_go(replica) and not replica.outbox.is_holding)
    if is_over:
        replica.halt("it was shut down")
        replica.shutdown = shutdown.completed()
        replica.outbox.tell(EndShutdown(shutdown.number, has_timed_out))
    return is_over


def abandon_shutdown(replica: LocalReplica) -> None:
    """End the shutdown of a replica that has halted. Unlike one that was shut down, it does not refuse requests."""
    shutdown = replica.shutdown
    if shutdown is not None and not (shutdown.is_complete or shutdown.is_abandoned):
        replica.shutdown = shutdown.abandoned()
        replica.outbox.tell(EndShutdown(shutdown.number, has_timed_out=False))


def _may_go(replica: LocalReplica) -> bool:
    """Whether the quorum does not need this replica: another one leads, or it is an observer, or there is no other."""
    is_needed = replica.is_voter and not replica.voters.is_only_voter(replica.identity.key)
    return not is_needed or replica.leader_id not in (None, replica.identity.key.id)
