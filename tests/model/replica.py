# SPDX-License-Identifier: Apache-2.0
"""The state of one replica in the model, and the small steps that the rules are made of.

A step that must be durable before it is answered is one step here, with the answer: a crash between the two loses a
state that no other replica has seen, so it is the behaviour in which the step did not happen.
"""

from typing import Final, NamedTuple

from tests.model.bounds import Bounds
from tests.model.logs import (
    LEADER_CHANGE,
    Log,
    entry,
    last_change_offset,
    last_epoch,
    majority,
    members,
    voters_in_force,
)

UNATTACHED: Final = 0
PROSPECTIVE: Final = 1
CANDIDATE: Final = 2
LEADER: Final = 3
FOLLOWER: Final = 4
RESIGNED: Final = 5
GONE: Final = 6
"""Its disk was wiped: the identity does nothing any more."""
ROLES: Final = ("Unattached", "Prospective", "Candidate", "Leader", "Follower", "Resigned", "Gone")

UNKNOWN: Final = -1

Rules = frozenset[str]
"""Names of the rules that are broken in a run; none, if the protocol is as it should be."""


class Writing(NamedTuple):
    """What a replica has decided to do to its log, and its disk has not done.

    Attributes:
        end: where the log is cut.
        entries: which are then appended.
        high_watermark: that a follower learns after it; UNKNOWN for none.
    """

    end: int
    entries: Log
    high_watermark: int


class Replica(NamedTuple):
    """One replica.

    Attributes:
        me: its index.
        role: one of ROLES.
        epoch: durable.
        vote: durable: for whom it voted in the epoch, or UNKNOWN.
        log: all entries, those before the start too.
        flushed: end of what is durable, exclusive.
        start: of the log: the end offset of its snapshot.
        high_watermark: exclusive.
        is_fetching: whether a Fetch waits for its answer.
        epoch_start: of a leader: the offset of its LeaderChange; else 0.
        acks: of a leader: the offset of each replica's last valid fetch, or UNKNOWN; else empty.
        writing: what waits to be done to the log; None if nothing does.
    """

    me: int
    role: int
    epoch: int
    vote: int
    log: Log
    flushed: int
    start: int
    high_watermark: int
    is_fetching: bool
    epoch_start: int
    acks: tuple[int, ...]
    writing: Writing | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether all that was decided is in the log, and durable."""
        return self.flushed == len(self.log) and self.writing is None

    @property
    def has_begun(self) -> bool:
        """Whether a leader's log has the entry that begins its epoch."""
        return len(self.log) > self.epoch_start


def initial_replica(me: int) -> Replica:
    return Replica(me, UNATTACHED, 0, UNKNOWN, (), 0, 0, 0, False, 0, ())


def enters(replica: Replica, epoch: int, role: int = UNATTACHED, vote: int = UNKNOWN) -> Replica:
    """Return the replica in another role, or a later epoch: what only a leader or a fetcher has is gone.

    Its log is still written as it had decided before.
    """
    if epoch == replica.epoch and vote == UNKNOWN:
        vote = replica.vote
    writing = replica.writing and replica.writing._replace(high_watermark=UNKNOWN)
    return replica._replace(
        role=role, epoch=epoch, vote=vote, is_fetching=False, epoch_start=0, acks=(), writing=writing
    )


def appends(replica: Replica, entries: Log, bounds: Bounds, high_watermark: int = UNKNOWN) -> Replica:
    """Return the replica with more entries at the end of its log, now or once its disk has done it."""
    return _changes_log(replica, Writing(len(replica.log), entries, high_watermark), bounds)


def truncates(replica: Replica, end: int, bounds: Bounds) -> Replica:
    """Return the replica without the entries from an offset on, now or once its disk has done it."""
    return _changes_log(replica, Writing(end, (), UNKNOWN), bounds)


def _changes_log(replica: Replica, writing: Writing, bounds: Bounds) -> Replica:
    if bounds.has_queue:
        assert replica.writing is None, "one thing at a time"
        return replica._replace(writing=writing)
    return written(replica._replace(writing=writing), bounds)


def written(replica: Replica, bounds: Bounds) -> Replica:
    """Return the replica whose disk has done what it was to do."""
    writing = replica.writing
    assert writing is not None
    log = replica.log[: writing.end] + writing.entries
    flushed = min(replica.flushed, writing.end) if bounds.has_flush else len(log)
    return learns(replica._replace(log=log, flushed=flushed, writing=None), writing.high_watermark)


def learns(follower: Replica, high_watermark: int, broken: Rules = frozenset()) -> Replica:
    """Return the follower that was told a high watermark: it takes what of it is in its log."""
    is_limited = "a high watermark beyond the log is taken" not in broken
    reached = min(len(follower.log), high_watermark) if is_limited else high_watermark
    return follower._replace(high_watermark=max(follower.high_watermark, reached))


def is_up_to_date(replica: Replica, epoch: int, offset: int) -> bool:
    """Return whether a candidate's log, by its last epoch and end, has at least what this one has."""
    return (epoch, offset) >= (last_epoch(replica.log), len(replica.log))


def votes_needed(replica: Replica, bounds: Bounds, broken: Rules) -> int:
    voters = voters_in_force(replica.log, bounds.initial_voters)
    return voters.bit_count() // 2 if "half of the voters elect" in broken else majority(voters)


def begins_leading(replica: Replica, bounds: Bounds, broken: Rules) -> Replica:
    """Return the replica as the leader of its epoch, with the entry that begins it, unless its disk must wait."""
    leader = replica._replace(
        role=LEADER, is_fetching=False, epoch_start=len(replica.log), acks=(UNKNOWN,) * bounds.replicas
    )
    return leader if bounds.has_queue else advances(begins_epoch(leader, bounds), bounds, broken)


def begins_epoch(leader: Replica, bounds: Bounds) -> Replica:
    """Return the leader that appends the entry that begins its epoch."""
    return appends(leader, (entry(leader.epoch, LEADER_CHANGE),), bounds)


def offsets_that_count(leader: Replica, voters: int, broken: Rules) -> list[int]:
    """Return up to where each voter's disk has the leader's log, as far as the leader knows."""
    own = len(leader.log) if "the leader counts what is not flushed" in broken else leader.flushed
    offsets = [own if each == leader.me else leader.acks[each] for each in members(voters)]
    if "a removed leader counts itself" in broken and not voters >> leader.me & 1:
        offsets.append(own)
    if "replicas that are no voters count" in broken:
        offsets += [ack for each, ack in enumerate(leader.acks) if each != leader.me and not voters >> each & 1]
    return offsets


def advances(leader: Replica, bounds: Bounds, broken: Rules) -> Replica:
    """Return the leader with the high watermark that follows; if that removes it, it resigns."""
    voters = voters_in_force(leader.log, bounds.initial_voters)
    offsets = sorted(offsets_that_count(leader, voters, broken), reverse=True)
    reached = offsets[majority(voters) - 1] if len(offsets) >= majority(voters) else UNKNOWN
    least = 0 if "entries of earlier epochs are committed by count" in broken else leader.epoch_start
    if reached <= least:
        reached = UNKNOWN
    if "the high watermark may fall" not in broken:
        reached = max(leader.high_watermark, reached)
    elif reached == UNKNOWN:
        reached = leader.high_watermark
    leader = leader._replace(high_watermark=reached)
    if not voters >> leader.me & 1 and reached > last_change_offset(leader.log):
        return enters(leader, leader.epoch, RESIGNED)
    return leader


def replica_text(replica: Replica, log: str) -> str:
    """Return what a replica is, in one line."""
    vote = "" if replica.vote == UNKNOWN else f", voted for {replica.vote}"
    acks = "".join(f" {each}@{ack}" for each, ack in enumerate(replica.acks) if ack != UNKNOWN)
    return (
        f"replica {replica.me}: {ROLES[replica.role]}, epoch {replica.epoch}{vote}, log {log}, "
        f"high watermark {replica.high_watermark}{', fetching' if replica.is_fetching else ''}"
        f"{', acknowledged' + acks if acks else ''}{writing_text(replica.writing)}"
    )


def writing_text(writing: Writing | None) -> str:
    """Return what waits to be done to a log, in words."""
    if writing is None:
        return ""
    return f", its log is to be cut at {writing.end} and get {len(writing.entries)} entries"
