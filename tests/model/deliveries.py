# SPDX-License-Identifier: Apache-2.0
"""What a replica does with a message that arrives."""

from tests.model.bounds import Bounds
from tests.model.logs import DIVERGING, SNAPSHOT, VALID, truncation_offset, validate
from tests.model.messages import Answer, Fetch, Message, VoteGrant, VoteRequest, answers_its_fetch
from tests.model.replica import (
    GONE,
    LEADER,
    PROSPECTIVE,
    UNATTACHED,
    UNKNOWN,
    Replica,
    Rules,
    advances,
    appends,
    enters,
    is_up_to_date,
    learns,
    truncates,
)
from tests.model.steps import Step


def delivery(replica: Replica, message: Message, bounds: Bounds, broken: Rules) -> Step | None:
    """Return what a message does, or None if nothing."""
    if replica.role == GONE:
        return None
    match message:
        case VoteRequest():
            return _votes(replica, message, broken)
        case Fetch():
            return _serves(replica, message, bounds, broken)
        case Answer():
            return _takes(replica, message, bounds, broken)
        case VoteGrant():
            return None


def _votes(replica: Replica, request: VoteRequest, broken: Rules) -> Step | None:
    """A later epoch is entered, whatever the answer. A vote is durable before it is sent."""
    if replica.epoch > request.epoch or replica.me == request.candidate:
        return None
    voter = enters(replica, request.epoch) if request.epoch > replica.epoch else replica
    is_up_to_date_enough = is_up_to_date(voter, request.last_epoch, request.end)
    if "votes do not compare logs" in broken:
        is_up_to_date_enough = True
    grant = VoteGrant(request.epoch, replica.me, request.candidate, request.is_pre_vote)
    if request.is_pre_vote:
        if voter.role != LEADER and is_up_to_date_enough:
            return Step(f"grants {request.candidate} a pre-vote", voter, (grant,), is_consumed=False)
    elif voter.role in (UNATTACHED, PROSPECTIVE) and voter.vote == UNKNOWN and is_up_to_date_enough:
        voted = voter._replace(role=UNATTACHED, vote=request.candidate)
        return Step(f"votes for {request.candidate}", voted, (grant,), is_consumed=False)
    elif voter.role in (UNATTACHED, PROSPECTIVE) and voter.vote == request.candidate:
        return Step(f"votes for {request.candidate} again", voter, (grant,), is_consumed=False)
    return Step(f"enters epoch {request.epoch}", voter, is_consumed=False)


def _serves(leader: Replica, fetch: Fetch, bounds: Bounds, broken: Rules) -> Step | None:
    """A leader compares (epoch, offset) with its log. Only a valid fetch counts. One that finds nothing new waits."""
    if leader.role != LEADER or leader.epoch != fetch.epoch:
        return None
    kind, epoch, end = validate(leader.log, leader.start, fetch.offset, fetch.last_epoch)
    if "a fetch is served without comparing epochs" in broken and kind == DIVERGING and fetch.offset <= len(leader.log):
        kind = VALID
    if "a fetch before the log start gets records" in broken and kind == SNAPSHOT:
        kind = VALID
    answer = Answer(fetch.epoch, fetch.sender, fetch.offset, fetch.last_epoch, kind, (), 0, 0, leader.high_watermark)
    is_consumed = not bounds.has_duplicates
    if kind != VALID:
        if "a diverging fetch counts" in broken:
            leader = _acknowledged(leader, fetch, bounds, broken)
        snapshot = leader.log[: leader.start] if kind == SNAPSHOT else ()
        answer = answer._replace(entries=snapshot, diverging_epoch=epoch, diverging_end=end)
        return Step(f"answers {fetch.sender}: {kind}", leader, (answer,), is_consumed=is_consumed)
    leader = _acknowledged(leader, fetch, bounds, broken)
    first = max(fetch.offset, leader.start) if "a fetch before the log start gets records" in broken else fetch.offset
    entries = leader.log[first : first + bounds.entries_per_fetch]
    answer = answer._replace(entries=entries, high_watermark=leader.high_watermark)
    if not entries and leader.high_watermark <= fetch.high_watermark:
        return Step(f"notes the fetch of {fetch.sender}", leader, is_consumed=False)
    return Step(f"answers {fetch.sender}: {len(entries)} entries", leader, (answer,), is_consumed=is_consumed)


def _acknowledged(leader: Replica, fetch: Fetch, bounds: Bounds, broken: Rules) -> Replica:
    """Return the leader that knows what the sender of a fetch has flushed. An older fetch may arrive after a newer."""
    acks = list(leader.acks)
    acks[fetch.sender] = fetch.offset
    return advances(leader._replace(acks=tuple(acks)), bounds, broken)


def _takes(follower: Replica, answer: Answer, bounds: Bounds, broken: Rules) -> Step | None:
    """A follower appends, cuts its log, or begins again with a snapshot; then it may fetch again."""
    if not answers_its_fetch(answer, follower, broken):
        return None
    follower, is_consumed = follower._replace(is_fetching=False), not bounds.has_duplicates
    if answer.kind == DIVERGING:
        end = truncation_offset(follower.log, follower.start, answer.diverging_epoch, answer.diverging_end)
        if "the high watermark is taken from a diverging answer" in broken:
            follower = learns(follower, answer.high_watermark, broken)
        return Step(f"cuts its log at {end}", truncates(follower, end, bounds), is_consumed=is_consumed)
    if answer.kind == SNAPSHOT:
        label = f"begins with a snapshot to {len(answer.entries)}"
        return Step(label, _installs(follower, answer.entries, broken), is_consumed=is_consumed)
    if bounds.has_queue:
        longer = appends(follower, answer.entries, bounds, answer.high_watermark)
    else:
        longer = learns(appends(follower, answer.entries, bounds), answer.high_watermark, broken)
    label = f"takes {len(answer.entries)} entries, high watermark {answer.high_watermark}"
    return Step(label, longer, is_consumed=is_consumed)


def _installs(follower: Replica, entries: tuple[int, ...], broken: Rules) -> Replica:
    """A snapshot replaces the whole log. It is durable before it counts."""
    end = len(entries)
    if "a log after an installed snapshot is kept" in broken:
        entries += follower.log[end:]
    return follower._replace(
        log=entries, flushed=len(entries), start=end, high_watermark=max(follower.high_watermark, end)
    )
