# SPDX-License-Identifier: Apache-2.0
"""Linearizable reads: a read is answered when a majority has confirmed, after it arrived, that this replica leads.

::

    read ──> waits for the first commit of the epoch ──> waits for a majority ──> CONFIRMED
                              │                                  │
                              └── timeout: TIMED_OUT             ├── timeout: TIMED_OUT
                                                                 └── leadership ends: FAILED

No later leader had then committed anything when the read arrived: it needs the votes of a majority of the voters in
force, and one of those would have confirmed in an earlier epoch than its own. Reads that arrive while voters are being
asked share the next round.

Source: Raft (Ongaro) 6.4; Kafka has no such reads. DECISIONS.md 59.
"""

from typing import Final

from raftlog.errors import NotLeaderError, QueueFullError, UnsafeReadError
from raftlog.quorum.high_watermark import majority_offset
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.pending_reads import PendingRead
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.effects import EndRead, ReadOutcome, ReadPolicy

MAX_PENDING_READS: Final = 1000
"""How many reads may wait. One more is refused."""

_NO_LEASES: Final = (
    "a lease would need every voter to refuse votes until it is over, also after a restart; Kafka's voters grant them, "
    "and no message tells which voters are Kafka's"
)


def begin_read(replica: LocalReplica, policy: ReadPolicy, timeout_ms: int) -> int:
    """Begin a read, and return its number.

    Raises:
        UnsafeReadError: of a read by a lease.
        NotLeaderError: this replica does not lead, or has halted.
        QueueFullError: there are ``MAX_PENDING_READS`` already.
        ValueError: the timeout is negative.
    """
    leadership = replica.leadership
    if policy is ReadPolicy.LEASE:
        raise UnsafeReadError(_NO_LEASES)
    if timeout_ms < 0:
        raise ValueError(f"a timeout of {timeout_ms} ms")
    if leadership is None or replica.halt_reason is not None:
        raise NotLeaderError(f"this replica is {type(replica.role).__name__} in epoch {replica.epoch}")
    reads = leadership.reads
    if len(reads.pending) >= MAX_PENDING_READS:
        raise QueueFullError(f"{MAX_PENDING_READS} reads wait already")
    number = replica.outbox.new_number()
    reads.add(PendingRead(number, replica.now_ms + timeout_ms))
    return number


def advance_reads(replica: LocalReplica, leadership: Leadership) -> None:
    """End the reads that are confirmed, and those whose time is over; begin those that may begin."""
    reads = leadership.reads
    if not reads.pending:
        return
    _begin(replica, leadership)
    confirmed = _confirmed_by_majority(replica, leadership)
    while confirmed is not None and reads.pending:
        first = reads.pending[0]
        if first.begun is None or first.begun > confirmed:
            break
        reads.pending.popleft()
        replica.outbox.tell(EndRead(first.number, ReadOutcome.CONFIRMED, first.offset))
    for each in reads.take_timed_out(replica.now_ms):
        replica.outbox.tell(EndRead(each.number, ReadOutcome.TIMED_OUT))
    if not reads.pending:
        reads.clear()


def _begin(replica: LocalReplica, leadership: Leadership) -> None:
    """Let the reads begin, once a record of this epoch is committed: all that was committed before is known then."""
    known, pending = replica.high_watermark, leadership.reads.pending
    if known is None or pending[-1].begun is not None:
        return
    begun, end = replica.outbox.new_number(), max(replica.log.state.end_offset, leadership.handed_end_offset)
    for index in range(len(pending) - 1, -1, -1):
        if pending[index].begun is not None:
            break
        pending[index] = pending[index]._replace(begun=begun, offset=known, log_end_offset=end)


def _confirmed_by_majority(replica: LocalReplica, leadership: Leadership) -> int | None:
    """Return the highest number such that a majority of the voters in force has confirmed the reads up to it.

    The leader counts only if it is a voter.
    """
    reads, newest = leadership.reads, leadership.reads.newest
    if newest is None:
        return None
    numbers = [
        newest if node.is_voter(replica.identity.key) else reads.confirmed.get(node.voter_key, 0)
        for node in replica.voters.voters.values()
    ]
    return majority_offset(numbers, replica.voters.majority_size)


def end_reads(replica: LocalReplica, leadership: Leadership) -> None:
    """End all reads, because this replica leads no more."""
    pending = leadership.reads.pending
    while pending:
        replica.outbox.tell(EndRead(pending.popleft().number, ReadOutcome.FAILED))
