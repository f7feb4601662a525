# SPDX-License-Identifier: Apache-2.0
"""How much waits in a replica, and how much may: each queue has a limit, and an answer for what exceeds it.

Messages that wait for a slow disk are not among them: further requests are refused (``seam.outbox.MAX_HELD_MESSAGES``).
"""

from collections.abc import Iterator

import attrs

from raftlog.quorum.leading.reading import MAX_PENDING_READS
from raftlog.quorum.leading.serving import MAX_WAITING_FETCHES
from raftlog.quorum.leading.serving_snapshots import MAX_SNAPSHOT_READS
from raftlog.quorum.listening.delivering import MAX_LISTENERS
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.snapshot_work import MAX_PINS


@attrs.frozen
class QueueStatus:
    """One queue at one moment.

    Attributes:
        name: ``appends`` of the application that are not committed; ``reads`` that no majority has confirmed;
            ``fetches`` that are not answered; ``snapshot-reads``, chunks that are being read; ``listeners``; and
            ``snapshot-fetches``, the replicas for which a snapshot is kept.
        length: how many wait.
        limit: how many may. One more append, read or listener is refused with an error; a Fetch is answered at once,
            without records; one more FetchSnapshot gets BROKER_NOT_AVAILABLE; and the snapshot of the replica that has
            fetched for the longest time is no longer kept for it.
    """

    name: str
    length: int
    limit: int


def queues_of(replica: LocalReplica) -> tuple[QueueStatus, ...]:
    """Return the queues of a replica; those of a leader only if it leads."""
    return tuple(_queues(replica))


def _queues(replica: LocalReplica) -> Iterator[QueueStatus]:
    leadership = replica.leadership
    if leadership is not None:
        fetches = len(leadership.parked) + len(leadership.reading)
        yield QueueStatus("appends", len(leadership.pending), replica.config.max_uncommitted_appends)
        yield QueueStatus("reads", len(leadership.reads.pending), MAX_PENDING_READS)
        yield QueueStatus("fetches", fetches, 2 * MAX_WAITING_FETCHES)
        yield QueueStatus("snapshot-reads", len(leadership.reading_snapshots), MAX_SNAPSHOT_READS)
    yield QueueStatus("listeners", len(replica.listeners), MAX_LISTENERS)
    yield QueueStatus("snapshot-fetches", len(replica.snapshots.pins), MAX_PINS)
