# SPDX-License-Identifier: Apache-2.0
"""Appends of an application: each is told once what became of it.

::

    append ──> collected ──(drained)──> handed to the log ──(high watermark)──> COMMITTED
                   │                          │
                   └── leadership ends: FAILED ├── leadership ends: UNKNOWN
                                              └── the disk is full: FAILED

Records that were handed to the log may be committed by the next leader, or truncated. Those that were not, or that it
has refused, are lost for certain.

Source: KafkaRaftClient#prepareAppend, #schedulePreparedAppend.
"""

from collections.abc import Sequence

from raftlog.errors import NotLeaderError
from raftlog.invariants import invariant
from raftlog.quorum.leadership import Leadership, PendingAppend
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.effects import AppendOutcome, EndAppend


def append(
    replica: LocalReplica, values: Sequence[bytes], epoch: int, required_base_offset: int | None
) -> PendingAppend:
    """Collect records, to be written in one batch with others.

    Raises:
        NotLeaderError: this replica does not lead, has halted, or has not begun its epoch in the log yet.
        BufferExhaustedError: ``max_uncommitted_appends`` wait to be committed already.
        RaftLogError: as for ``BatchAccumulator.append``.
    """
    leadership = replica.leadership
    batches = None if leadership is None else leadership.batches
    if leadership is None or batches is None or replica.halt_reason is not None:
        role, refused = type(replica.role).__name__, replica.refusals.reason
        why = "" if refused is None else f"; its log has refused records: {refused}"
        raise NotLeaderError(f"epoch {epoch}: this replica is {role} in epoch {replica.epoch}{why}")
    leadership.check_room(replica.config.max_uncommitted_appends)
    last_offset = batches.append(
        epoch, values, replica.wall_ms, required_base_offset=required_base_offset, clock_ms=replica.now_ms
    )
    appended = PendingAppend(replica.outbox.new_number(), last_offset)
    leadership.pending.append(appended)
    return appended


def end_committed(replica: LocalReplica, leadership: Leadership) -> None:
    """Tell the appends that are committed."""
    known, pending = replica.high_watermark, leadership.pending
    while known is not None and pending and pending[0].last_offset < known:
        appended = pending.popleft()
        replica.outbox.tell(EndAppend(appended.number, appended.last_offset, AppendOutcome.COMMITTED))


def withdraw_refused(replica: LocalReplica, leadership: Leadership) -> None:
    """Note that the log has not taken the records that it was given last: they are lost for certain.

    They were given to it at once, after all before them were flushed, and no part of them is in the log.
    """
    start, end, before = leadership.epoch_start_offset, replica.log.state.end_offset, leadership.handed_end_offset
    invariant(start is None or start <= end, "epoch {} starts at {}, log end {}", leadership.epoch, start, end)
    leadership.handed_end_offset = min(before, end)
    invariant(leadership.handed_end_offset <= end, "handed to the log up to {}, log end {}", before, end)


def end_uncommitted(replica: LocalReplica, leadership: Leadership) -> None:
    """Tell the appends that are left when the leadership ends."""
    while leadership.pending:
        appended = leadership.pending.popleft()
        is_lost = appended.last_offset >= leadership.handed_end_offset
        outcome = AppendOutcome.FAILED if is_lost else AppendOutcome.UNKNOWN
        replica.outbox.tell(EndAppend(appended.number, appended.last_offset, outcome))
