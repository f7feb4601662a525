# SPDX-License-Identifier: Apache-2.0
"""Delivers committed records to listeners, in the order of their offsets.

A listener begins with the newest snapshot, and gets it instead of records that the log has deleted. A snapshot that was
fetched is delivered when the log starts at it. A listener is given one thing at a time, and the next one when it has
closed that. A delivery names offsets, and the driver reads them from the
log, so the core holds no records. Only committed records are delivered: no truncation can take them back.

Source: KafkaRaftClient#updateListenersProgress, KafkaRaftClient.ListenerContext.
"""

from typing import Final

from raftlog.errors import QueueFullError
from raftlog.invariants import invariant
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.listener_context import START, Delivery, ListenerContext
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.effects import DeliverBatches, DeliverBootstrap, DeliverSnapshot
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID

MAX_LISTENERS: Final = 100
"""How many listeners a replica has at most, including unregistered ones that are still reading."""


def register(replica: LocalReplica) -> int:
    """Add a listener, and return its number.

    Raises:
        QueueFullError: there are ``MAX_LISTENERS`` already.
    """
    if len(replica.listeners) >= MAX_LISTENERS:
        raise QueueFullError(f"there are {MAX_LISTENERS} listeners already")
    number = replica.outbox.new_number()
    replica.listeners[number] = ListenerContext(number)
    return number


def unregister(replica: LocalReplica, number: int) -> None:
    """Give a listener nothing more. It is forgotten when it has closed what it is reading."""
    listener = replica.listeners.get(number)
    if listener is not None:
        listener.is_registered = False
        _forget_if_done(replica, listener)


def deliver(replica: LocalReplica) -> None:
    """Give each listener that waits what it needs next, if that is committed."""
    known = replica.high_watermark
    for listener in replica.listeners.values():
        is_pausing = listener.resume_ms is not None and replica.now_ms < listener.resume_ms
        if known is not None and listener.is_registered and listener.delivery is None and not is_pausing:
            _deliver_next(replica, listener, known)


def _deliver_next(replica: LocalReplica, listener: ListenerContext, high_watermark: int) -> None:
    """Begin a delivery: of a snapshot to a new listener, and to one that needs records that the log has deleted."""
    log, offset = replica.log.state, listener.next_offset
    latest, first = log.latest_snapshot_id, max(offset, 0)
    if latest is not None and latest.offset > high_watermark:
        return  # It was fetched, and the log is about to restart at it.
    if latest is not None and (offset == START or offset < log.start_offset):
        number = replica.outbox.new_number()
        kind = DeliverBootstrap if latest == BOOTSTRAP_SNAPSHOT_ID else DeliverSnapshot
        replica.outbox.tell(kind(number, listener.number, latest))
        listener.delivery = Delivery(number, offset, latest.offset, latest)
    elif first < high_watermark:
        invariant(first >= log.start_offset, "listener at {}, log start {}, no snapshot", first, log.start_offset)
        number = replica.outbox.new_number()
        replica.outbox.tell(DeliverBatches(number, listener.number, first, high_watermark))
        listener.delivery = Delivery(number, offset, high_watermark)


def close_delivery(replica: LocalReplica, number: int, next_offset: int | None) -> None:
    """Note that a listener has closed what it was given, and how far it has read.

    A listener that has taken nothing is given it again, after a pause: otherwise it could occupy the replica.

    Raises:
        ValueError: the listener was not given that offset. Nothing has changed.
    """
    listener = next((each for each in replica.listeners.values() if _reads(each, number)), None)
    delivery = None if listener is None else listener.delivery
    if listener is None or delivery is None:
        return
    if next_offset is None or next_offset == delivery.offset:
        listener.delivery, listener.resume_ms = None, replica.now_ms + replica.config.retry_backoff_ms
    elif _is_possible(delivery, next_offset):
        listener.close(delivery, next_offset)
        listener.resume_ms = None
    else:
        raise ValueError(f"listener {listener.number} was given {delivery}, but has read up to {next_offset}")
    _forget_if_done(replica, listener)


def _reads(listener: ListenerContext, number: int) -> bool:
    return listener.delivery is not None and listener.delivery.number == number


def _is_possible(delivery: Delivery, next_offset: int) -> bool:
    """Whether a listener can be at an offset after a delivery. It takes a whole snapshot, or nothing of it."""
    first = delivery.offset if delivery.snapshot_id is None else delivery.end_offset
    return max(first, 0) <= next_offset <= delivery.end_offset


def _forget_if_done(replica: LocalReplica, listener: ListenerContext) -> None:
    if not listener.is_registered and listener.delivery is None:
        del replica.listeners[listener.number]


def snapshots_being_read(replica: LocalReplica) -> set[OffsetAndEpoch]:
    """Return the ids of the snapshots that listeners are reading: their files must stay."""
    reading = [each.delivery.snapshot_id for each in replica.listeners.values() if each.delivery is not None]
    return {each for each in reading if each is not None}


def next_resumption_ms(replica: LocalReplica) -> int | None:
    """Return when the pause of a listener ends next; None if none pauses."""
    now_ms, next_ms = replica.now_ms, None
    for each in replica.listeners.values():
        resume_ms = each.resume_ms
        if resume_ms is not None and resume_ms > now_ms and (next_ms is None or resume_ms < next_ms):
            next_ms = resume_ms
    return next_ms
