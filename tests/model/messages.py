# SPDX-License-Identifier: Apache-2.0
"""The messages of the model. The network is a set of them: in no order, and any of them may never arrive.

Requests for votes and votes stay until they can have no effect: they may arrive twice. So do fetches, if a run has
duplicates. What no replica would heed any more is removed; that changes no behaviour, and saves states.
"""

from typing import NamedTuple

from tests.model.logs import DIVERGING, Log, last_epoch, log_text
from tests.model.replica import CANDIDATE, FOLLOWER, LEADER, PROSPECTIVE, UNATTACHED, Replica, Rules


class VoteRequest(NamedTuple):
    """A candidate, or with ``is_pre_vote`` a replica that would be one, asks all others."""

    epoch: int
    candidate: int
    last_epoch: int
    end: int
    is_pre_vote: bool


class VoteGrant(NamedTuple):
    """A replica's vote, on its way to the candidate."""

    epoch: int
    voter: int
    candidate: int
    is_pre_vote: bool


class Fetch(NamedTuple):
    """A follower asks its leader for what is after its end: all before is durable."""

    epoch: int
    sender: int
    leader: int
    offset: int
    last_epoch: int
    high_watermark: int


class Answer(NamedTuple):
    """The answer to the fetch of an offset and last epoch: records, a divergence, or a snapshot."""

    epoch: int
    follower: int
    offset: int
    last_epoch: int
    kind: str
    entries: Log
    diverging_epoch: int
    diverging_end: int
    high_watermark: int


Message = VoteRequest | VoteGrant | Fetch | Answer


def addressee(message: Message) -> int | None:
    """Return the replica whom a message can have an effect on, or None for all but the candidate."""
    match message:
        case VoteGrant():
            return message.candidate
        case Fetch():
            return message.leader
        case Answer():
            return message.follower
        case _:
            return None


def answers_its_fetch(answer: Answer, follower: Replica, broken: Rules) -> bool:
    """Return whether a follower waits for this answer: it is to what the follower has now."""
    if follower.role != FOLLOWER or follower.epoch != answer.epoch:
        return False
    is_at_its_place = (len(follower.log), last_epoch(follower.log)) == (answer.offset, answer.last_epoch)
    if "a late diverging answer is taken" in broken:
        return is_at_its_place or answer.kind == DIVERGING
    return follower.is_fetching and is_at_its_place


def may_matter(message: Message, replica: Replica, broken: Rules) -> bool:
    """Return whether a replica would heed a message, now or later."""
    match message:
        case VoteRequest(is_pre_vote=True):
            return replica.me != message.candidate and replica.epoch <= message.epoch
        case VoteRequest():
            if replica.me == message.candidate or replica.epoch > message.epoch:
                return False
            if replica.epoch < message.epoch:
                return True
            may_vote = replica.role in (UNATTACHED, PROSPECTIVE) and replica.vote in (-1, message.candidate)
            # In these a crash forgets a vote.
            return may_vote or bool(broken & {"a vote is not durable", "a leader forgets its vote in a restart"})
        case VoteGrant():
            if "leadership is not durable" in broken and not message.is_pre_vote:
                return replica.epoch <= message.epoch  # The leader may be a candidate again.
            role = PROSPECTIVE if message.is_pre_vote else CANDIDATE
            return replica.role == role and replica.epoch == message.epoch
        case Fetch():
            return replica.role == LEADER and replica.epoch == message.epoch
        case Answer():
            if "a late diverging answer is taken" in broken:
                return replica.epoch <= message.epoch
            return answers_its_fetch(message, replica, broken)


def message_text(message: Message) -> str:
    """Return a message in words."""
    match message:
        case VoteRequest():
            kind = "pre-vote" if message.is_pre_vote else "vote"
            log = f"with a log to {message.end}@{message.last_epoch}"
            return f"{kind} for {message.candidate} in epoch {message.epoch}, {log}"
        case VoteGrant():
            kind = "pre-vote" if message.is_pre_vote else "vote"
            return f"{kind} of {message.voter} for {message.candidate} in epoch {message.epoch}"
        case Fetch():
            return f"fetch of {message.sender} from {message.offset}@{message.last_epoch} in epoch {message.epoch}"
        case Answer():
            content = log_text(message.entries, 0, -1)
            if message.kind == DIVERGING:
                content = f"epoch {message.diverging_epoch} ends at {message.diverging_end}"
            to = f"to {message.follower} from {message.offset}@{message.last_epoch} in epoch {message.epoch}"
            return f"{message.kind} {to}: {content}, high watermark {message.high_watermark}"
