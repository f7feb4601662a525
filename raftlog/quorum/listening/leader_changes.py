# SPDX-License-Identifier: Apache-2.0
"""Tells listeners of leaders: of each epoch, and once its leader is known.

A listener on the leader itself is told when it has read past the start of the epoch. Its state machine then has all
that earlier leaders have committed, so it may act as the leader (KAFKA-17333). A resigned leader tells nothing: it is
still the leader of its epoch by name, but accepts no appends.

Source: KafkaRaftClient#maybeFireLeaderChange, #pollListeners.
"""

from raftlog.quorum.listener_context import ListenerContext
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Leader, Resigned
from raftlog.quorum.seam.effects import NotifyLeaderChange


def tell_leader(replica: LocalReplica) -> None:
    """Tell the listeners of the epoch and its leader, if that is news to them."""
    if isinstance(replica.role, Resigned):
        return
    epoch, leader = replica.epoch, replica.leader_id
    for listener in replica.listeners.values():
        if listener.is_registered and _is_news(listener, epoch, leader) and _may_be_told(replica, listener):
            listener.told_epoch, listener.told_leader_id = epoch, leader
            told = NotifyLeaderChange(replica.outbox.new_number(), listener.number, epoch, leader)
            replica.outbox.tell_when_stored(told)


def _is_news(listener: ListenerContext, epoch: int, leader: int | None) -> bool:
    """Whether the epoch is a later one, or the listener does not know its leader yet."""
    is_known = listener.told_leader_id is not None or leader is None
    return epoch > listener.told_epoch or (epoch == listener.told_epoch and not is_known)


def _may_be_told(replica: LocalReplica, listener: ListenerContext) -> bool:
    """Whether a listener has read past the start of the epoch, if this replica leads it."""
    if not isinstance(replica.role, Leader):
        return True
    start = None if replica.leadership is None else replica.leadership.epoch_start_offset
    return start is not None and listener.next_offset > start
