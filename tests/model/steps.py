# SPDX-License-Identifier: Apache-2.0
"""What a replica may do by itself: stand, lead, append, flush, fetch, change voters, crash."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.bounds import BUDGETS, Bounds
from tests.model.logs import VOTERS, entry, last_change_offset, last_epoch, log_text, members, voters_in_force
from tests.model.messages import Fetch, Message, VoteRequest
from tests.model.replica import (
    CANDIDATE,
    FOLLOWER,
    GONE,
    LEADER,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    UNKNOWN,
    Replica,
    Rules,
    advances,
    appends,
    begins_epoch,
    begins_leading,
    enters,
    initial_replica,
    votes_needed,
    written,
)

VALUES, CHANGES, CRASHES, WIPES, SNAPSHOTS, TIMEOUTS, RESIGNATIONS = range(len(BUDGETS))
FREE = -1


class Step(NamedTuple):
    """A step of one replica.

    Attributes:
        label: in words.
        replica: what it is after it.
        sends: messages that are in the network after it.
        cost: the index of the budget that it draws on, or FREE.
        is_consumed: whether the message that led to it is gone.
    """

    label: str
    replica: Replica
    sends: tuple[Message, ...] = ()
    cost: int = FREE
    is_consumed: bool = True


def own_steps(replica: Replica, used: tuple[int, ...], bounds: Bounds, broken: Rules) -> Iterator[Step]:
    """Yield what a replica may do without a message, within what is left of the bounds."""
    if replica.role == GONE:
        return
    left = [limit - count for limit, count in zip(bounds.limits, used, strict=True)]
    yield from _stands(replica, bounds, broken)
    if replica.writing is not None:
        done = written(replica, bounds)
        yield Step("writes its log", advances(done, bounds, broken) if replica.role == LEADER else done)
    if replica.flushed < len(replica.log):
        flushed = replica._replace(flushed=len(replica.log))
        yield Step("flushes", advances(flushed, bounds, broken) if replica.role == LEADER else flushed)
    if replica.role == LEADER:
        yield from _leads(replica, used, left, bounds, broken)
    elif replica.role == FOLLOWER:
        yield from _follows(replica, left, bounds, broken)
    if left[CRASHES]:
        yield from _crashes(replica, broken)
    if left[WIPES]:
        yield from _wipes(replica, broken)
    if left[SNAPSHOTS]:
        yield from _freezes_snapshots(replica, broken)


def _stands(replica: Replica, bounds: Bounds, broken: Rules) -> Iterator[Step]:
    """A voter of its own log may stand at any time: its timers are not modelled. A pre-vote only limits that.

    What it says of its log must survive a crash, because a candidate goes on after one, and votes may come late.
    """
    is_durable = replica.is_at_rest or "a candidate claims what is not flushed" in broken
    is_voter = voters_in_force(replica.log, bounds.initial_voters) >> replica.me & 1
    if replica.role == LEADER or not is_voter or not is_durable:
        return
    log = last_epoch(replica.log), len(replica.log)
    if bounds.has_pre_vote and replica.role != PROSPECTIVE:
        if replica.role == RESIGNED and bounds.may_stand(replica.me, replica.epoch + 2):
            yield Step("leaves its epoch", enters(replica, replica.epoch + 1))
        elif replica.role != RESIGNED and bounds.may_stand(replica.me, replica.epoch + 1):
            prospective = enters(replica, replica.epoch, PROSPECTIVE)
            asks = VoteRequest(replica.epoch, replica.me, *log, is_pre_vote=True)
            yield Step("asks for pre-votes", prospective, (asks,))
    elif bounds.has_pre_vote and replica.role == PROSPECTIVE:
        yield Step("gives up its pre-votes", enters(replica, replica.epoch))
    elif not bounds.has_pre_vote and bounds.may_stand(replica.me, replica.epoch + 1):
        yield stands(replica)


def stands(replica: Replica) -> Step:
    """Return the candidacy in the next epoch, with a durable vote for itself."""
    log = last_epoch(replica.log), len(replica.log)
    candidate = enters(replica, replica.epoch + 1, CANDIDATE, replica.me)
    return Step(
        f"stands in epoch {replica.epoch + 1}",
        candidate,
        (VoteRequest(candidate.epoch, replica.me, *log, is_pre_vote=False),),
    )


def tally(replica: Replica, granted: int, bounds: Bounds, broken: Rules) -> Step | None:
    """Return what the grants in the network, as bits, make of a candidate: they count once for each voter.

    That grants are taken together, and not one by one, changes no behaviour: only the candidate sees its tally.
    """
    voters = voters_in_force(replica.log, bounds.initial_voters)
    if ((granted | 1 << replica.me) & voters).bit_count() < votes_needed(replica, bounds, broken):
        return None
    if replica.role == PROSPECTIVE:
        return stands(replica)
    return Step(f"leads epoch {replica.epoch}", begins_leading(replica, bounds, broken))


def follows(replica: Replica, epoch: int, leader: int) -> Step | None:
    """Return the replica as a follower, if it may learn of an epoch's leader: by any message, at any time after it."""
    if replica.role == GONE or replica.me == leader or epoch < replica.epoch:
        return None
    if epoch == replica.epoch and replica.role not in (UNATTACHED, PROSPECTIVE, CANDIDATE):
        return None
    return Step(f"follows {leader} in epoch {epoch}", enters(replica, epoch, FOLLOWER))


def _leads(leader: Replica, used: tuple[int, ...], left: list[int], bounds: Bounds, broken: Rules) -> Iterator[Step]:
    has_begun = leader.has_begun or not bounds.has_queue
    if not has_begun and leader.writing is None:
        yield Step("begins its epoch", begins_epoch(leader, bounds))
    may_append = has_begun and leader.writing is None
    if left[VALUES] and may_append:
        value = entry(leader.epoch, used[VALUES] + 1)
        yield Step(
            f"appends value {used[VALUES] + 1}", advances(appends(leader, (value,), bounds), bounds, broken), (), VALUES
        )
    if left[CHANGES] and may_append:
        for voters in changed_voters(leader, bounds, broken):
            longer = appends(leader, (entry(leader.epoch, VOTERS | voters),), bounds)
            yield Step(f"changes voters to {members(voters)}", advances(longer, bounds, broken), (), CHANGES)
    if left[RESIGNATIONS]:
        yield Step("resigns", enters(leader, leader.epoch, RESIGNED), (), RESIGNATIONS)


def changed_voters(leader: Replica, bounds: Bounds, broken: Rules) -> list[int]:
    """Return the voter sets that a leader may append: one voter more or less than the set in force."""
    voters = voters_in_force(leader.log, bounds.initial_voters)
    has_committed = leader.high_watermark > leader.epoch_start
    if not has_committed and "voters are changed before an entry of the epoch is committed" not in broken:
        return []
    is_pending = last_change_offset(leader.log) >= leader.high_watermark
    if is_pending and "voters are changed while a change is uncommitted" not in broken:
        return []
    everyone = range(bounds.replicas)
    changed = [voters ^ 1 << each for each in everyone if voters ^ 1 << each]
    if "a voter is swapped for another in one entry" in broken:
        changed += [
            voters ^ 1 << one ^ 1 << other for one in members(voters) for other in everyone if not voters >> other & 1
        ]
    return changed


def _follows(follower: Replica, left: list[int], bounds: Bounds, broken: Rules) -> Iterator[Step]:
    is_durable = follower.is_at_rest or "a follower fetches before it has flushed" in broken
    if not follower.is_fetching and is_durable:
        yield Step("fetches", follower._replace(is_fetching=True), FETCHES)
    elif follower.is_fetching and left[TIMEOUTS]:
        yield Step("gives up its fetch", follower._replace(is_fetching=False), (), TIMEOUTS)


FETCHES: tuple[Message, ...] = (Fetch(0, 0, 0, 0, 0, 0),)
"""Stands for the fetch of the follower to the leader of its epoch, whom the state knows."""


def fetch_of(follower: Replica, leader: int) -> Fetch:
    return Fetch(
        follower.epoch,
        follower.me,
        leader,
        len(follower.log),
        last_epoch(follower.log),
        follower.high_watermark,
    )


def _crashes(replica: Replica, broken: Rules) -> Iterator[Step]:
    """A crash loses any part of what is not flushed; the restart takes what is left as durable."""
    for end in range(max(replica.flushed, replica.start), len(replica.log) + 1):
        for restarted in restarts(survivor(replica, end), broken):
            yield Step(f"crashes, and restarts with a log to {end}", restarted, (), CRASHES)


def survivor(replica: Replica, end: int) -> Replica:
    """Return what a crash leaves of a replica whose log is then cut at an offset: what its disk was to do is lost."""
    return replica._replace(log=replica.log[:end], flushed=end, high_watermark=replica.start, writing=None)


def restarts(replica: Replica, broken: Rules) -> Iterator[Replica]:
    """Yield the roles after a restart: a leader is Resigned, a candidate goes on, others know no leader.

    A replica that followed may learn of its leader again at once. One that has voted for itself, and has stopped to
    ask for votes, is a candidate again, unless it has learned of a leader meanwhile; that is not in the model's state.
    """
    if replica.role in (LEADER, RESIGNED):
        if "a leader goes on leading after a restart" in broken and replica.role == LEADER:
            yield replica._replace(acks=(UNKNOWN,) * len(replica.acks), high_watermark=replica.start)
        elif "leadership is not durable" in broken and replica.role == LEADER:
            yield enters(replica, replica.epoch, CANDIDATE)
        elif "a leader forgets its vote in a restart" in broken:
            yield replica._replace(role=UNATTACHED, vote=UNKNOWN, acks=(), epoch_start=0)
        else:
            yield enters(replica, replica.epoch, RESIGNED)
        return
    if replica.vote == replica.me and replica.role != FOLLOWER:
        yield enters(replica, replica.epoch, CANDIDATE)
    if replica.role != CANDIDATE:
        restarted = enters(replica, replica.epoch)
        yield restarted._replace(vote=UNKNOWN) if "a vote is not durable" in broken else restarted


def _wipes(replica: Replica, broken: Rules) -> Iterator[Step]:
    """The disk is lost. The node that comes back has another directory id: it is another replica of the model.

    The log of the one that is gone remains in the state, for the invariants: it tells what its disk had flushed.
    """
    if "a wiped disk keeps its identity" in broken:
        yield Step("loses its disk, and keeps its identity", initial_replica(replica.me), (), WIPES)
    else:
        yield Step("loses its disk", enters(replica, replica.epoch, GONE), (), WIPES)


def _freezes_snapshots(replica: Replica, broken: Rules) -> Iterator[Step]:
    """A snapshot of what is committed and flushed; the log then begins at its end."""
    committed = min(replica.high_watermark, replica.flushed)
    if "a snapshot has what is not committed" in broken:
        committed = replica.flushed
    if committed > replica.start:
        raised = max(replica.high_watermark, committed)
        snapshot = replica._replace(start=committed, high_watermark=raised)
        yield Step(f"freezes a snapshot to {committed}", snapshot, (), SNAPSHOTS)


def text_of(replica: Replica) -> str:
    """Return the replica's log in words."""
    return log_text(replica.log, replica.start, replica.flushed)
