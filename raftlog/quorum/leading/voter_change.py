# SPDX-License-Identifier: Apache-2.0
"""What every change of the voters needs: no other change under way, and a voter set that is safe to follow.

A voter set is in force as soon as its record is in the leader's log, committed or not. So two uncommitted sets could
have majorities without a common voter; there is at most one. A record counts from the moment at which the leader has
written it: in the accumulator, in the log, and after its request has expired (KAFKA-20661).

Source: LeaderState#isOperationPending, #appendVotersRecord; KIP-853. Differs: DECISIONS.md 57.
"""

from typing import NamedTuple

from raftlog.errors import BatchTooLargeError, BufferExhaustedError, InvalidRecordError
from raftlog.invariants import invariant
from raftlog.quorum.leadership import Leadership, PendingVoterChange
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import AddRaftVoterResponse, RemoveRaftVoterResponse
from raftlog.records.messages.voters import voters_problem, voters_record
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import change_text, voter_set_change_problems


class Refusal(NamedTuple):
    """Why voters are not changed.

    Attributes:
        error: REQUEST_TIMED_OUT means: not now.
        reason: for the operator.
    """

    error: ErrorCode
    reason: str


def not_now(reason: str) -> Refusal:
    """Return a refusal after which the same request may succeed later."""
    return Refusal(ErrorCode.REQUEST_TIMED_OUT, reason)


def change_refusal(replica: LocalReplica, leadership: Leadership, received: ReceivedRequest) -> Refusal | None:
    """Refuse if voters cannot be added or removed now."""
    refusal = pending_refusal(leadership)
    if refusal is None:
        refusal = leader_refusal(replica, leadership)
    return voters_refusal(replica, leadership, received) if refusal is None else refusal


def pending_refusal(leadership: Leadership) -> Refusal | None:
    """Refuse if a request to add or remove a voter is under way."""
    return None if leadership.voter_change is None else not_now("another change of voters is under way")


def leader_refusal(replica: LocalReplica, leadership: Leadership) -> Refusal | None:
    """Refuse unless this leader has committed a record of its epoch.

    Without that, an earlier leader's change may still become committed (Ongaro, raft-dev 2015).
    """
    if replica.high_watermark is None:
        return not_now(f"the leader has committed nothing in epoch {leadership.epoch} yet")
    return None


def voters_refusal(replica: LocalReplica, leadership: Leadership, received: ReceivedRequest) -> Refusal | None:
    """Refuse if voters are fixed, if the last voter set is not committed, or if it is not the one that is expected."""
    known, committed = replica.log.control_records, replica.committed_offset
    if not known.kraft_version.is_reconfiguration_supported:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"voters are fixed by kraft.version {known.kraft_version:d}")
    offset, written = known.last_voter_set_offset, leadership.voters_offset
    if offset is None or max(offset, -1 if written is None else written) >= committed:
        return not_now(f"the voters at offset {offset}, or {written}, are not committed: {committed} is")
    expected = received.expected_voters_offset
    if expected not in (None, offset):
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"the voters are those at offset {offset}, not {expected}")
    return None


def write_voters(replica: LocalReplica, leadership: Leadership, after: VoterSet) -> int | Refusal:
    """Write a voter set that follows the one in force, and return the offset of its record.

    Source: LeaderState#appendVotersRecord.
    """
    before, record = replica.voters, voters_record(after)
    problems = voter_set_change_problems(before, after)
    if problems:
        return not_now(change_text(before, after, problems))
    problem = voters_problem(record)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    batches = leadership.batches
    if batches is None:
        return not_now("the leader has not begun its epoch yet")
    try:
        offset = batches.append_voters(record, replica.wall_ms)
    except BufferExhaustedError as error:
        return not_now(str(error))
    except (InvalidRecordError, BatchTooLargeError) as error:
        return Refusal(ErrorCode.INVALID_REQUEST, str(error))
    note_written_voters(leadership, offset, batches.next_offset)
    return offset


def note_written_voters(leadership: Leadership, offset: int, next_offset: int) -> None:
    """Note the offset of a VotersRecord that was given to the accumulator, which is at ``next_offset`` then."""
    before = leadership.voters_offset
    invariant(before is None or before < offset, "voters at offset {}, now at {}", before, offset)
    leadership.voters_offset = offset
    invariant(offset < next_offset, "voters at offset {}, but the next offset is {}", offset, next_offset)


def end_change(replica: LocalReplica, leadership: Leadership, refusal: Refusal | None = None) -> None:
    """End the change that is under way, if there is one, and answer its request unless that has been done."""
    change, leadership.voter_change = leadership.voter_change, None
    if change is not None:
        answer_change(replica, change, refusal)


def answer_change(replica: LocalReplica, change: PendingVoterChange, refusal: Refusal | None = None) -> None:
    """Answer the request of a change, once."""
    if not change.is_answered:
        answer = remove_voter_response(refusal) if change.joiner is None else add_voter_response(refusal)
        replica.outbox.respond(change.received.token, answer)


def add_voter_response(refusal: Refusal | None) -> AddRaftVoterResponse:
    """Return the answer to a request to add a voter."""
    error, reason = (ErrorCode.NONE, None) if refusal is None else refusal
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=error, error_message=reason)


def remove_voter_response(refusal: Refusal | None) -> RemoveRaftVoterResponse:
    """Return the answer to a request to remove a voter."""
    error, reason = (ErrorCode.NONE, None) if refusal is None else refusal
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=error, error_message=reason)


def expire_change(replica: LocalReplica, leadership: Leadership) -> None:
    """Answer the change that is under way if its time is over. A voter set that was written may still be committed.

    Source: LeaderState#maybeExpirePendingOperation.
    """
    change = leadership.voter_change
    if change is not None and change.deadline_ms <= replica.now_ms:
        end_change(replica, leadership, not_now("the change was not committed in time, and may be committed later"))


def note_committed_voters(replica: LocalReplica, leadership: Leadership) -> None:
    """Answer the change whose record is committed. A leader that is no voter any more resigns.

    Source: AddVoterHandler#highWatermarkUpdated, RemoveVoterHandler#highWatermarkUpdated. Differs: a leader resigns too
    if the request to remove it has expired before (DECISIONS.md 57).
    """
    known, change = replica.high_watermark or 0, leadership.voter_change
    if change is not None and change.offset is not None and change.offset < known:
        end_change(replica, leadership)
    offset = replica.log.control_records.last_voter_set_offset
    if offset is not None and offset < known and not replica.is_voter:
        leadership.is_resignation_due = True
