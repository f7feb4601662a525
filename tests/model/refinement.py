# SPDX-License-Identifier: Apache-2.0
"""Says whether a trace of replicas is a behaviour of the model: a refinement check.

A trace has, for each event, the view of the one replica that it changed: role, epoch, vote, log, what is flushed, and
the high watermark. Messages are not in it. So the check keeps the facts that follow from the views so far (who has
asked for votes with which log, who has voted, who leads, what leaders' logs had, what followers may have fetched) and
takes each message that they allow as one that is in the network: none is ever lost, and each may arrive again.

Work on a log that was in line for the disk when its replica left a role is done later, and is in the trace then: it is
accepted if the replica could have decided on it in that role. To all others, it has not happened before.

An event is accepted if some few steps of the model, taken by the same functions that the explorer uses, lead from the
replica's state to its new view. What only the leader knows, its acknowledgements, is chosen from the facts. So what is
checked is: no vote, candidacy, leadership, entry, truncation, flush, high watermark, voter set or restart but one that
the model allows at that moment. Not checked: the order in which messages really came, pre-votes, and progress.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from tests.model.bounds import Bounds
from tests.model.deliveries import delivery
from tests.model.logs import (
    DIVERGING,
    LEADER_CHANGE,
    SNAPSHOT,
    VALID,
    VOTERS,
    Log,
    entry,
    epoch_of,
    is_voters,
    last_epoch,
    log_text,
    validate,
    voters_in_force,
)
from tests.model.messages import Answer, VoteGrant, VoteRequest
from tests.model.protocol import Protocol, Transition
from tests.model.replica import (
    CANDIDATE,
    FOLLOWER,
    GONE,
    LEADER,
    PROSPECTIVE,
    RESIGNED,
    ROLES,
    UNATTACHED,
    UNKNOWN,
    Replica,
    Rules,
    advances,
    appends,
    begins_epoch,
    enters,
    initial_replica,
)
from tests.model.steps import changed_voters, follows, restarts, stands, survivor, tally

SOUND: Final[Rules] = frozenset()
MOST_STEPS: Final = 7
"""How many steps of the model an event may be: a follower that finds it is the only voter stands, wins and commits."""


class View(NamedTuple):
    """What can be seen of a replica from outside.

    Attributes:
        role: one of ROLES, as far as the election state that it needs is durable.
        epoch: durable.
        vote: durable; a leader and a resigned one have voted for themselves.
        log: all entries from offset 0 on.
        flushed: end of what is durable, exclusive.
        start: of the log.
        high_watermark: exclusive.
    """

    role: int
    epoch: int
    vote: int
    log: Log
    flushed: int
    start: int
    high_watermark: int


class Event(NamedTuple):
    """An event of a trace.

    Attributes:
        mover: the replica.
        view: what can be seen of it afterwards.
        is_crash: whether it has crashed, and is restarted.
        first: the offset of the first entry that it can serve, if it keeps some from before the start of its log.
    """

    mover: int
    view: View
    is_crash: bool = False
    first: int | None = None


class NotInTheModelError(Exception):
    """An event that no steps of the model explain."""


def view_of(replica: Replica) -> View:
    """Return what can be seen of a replica of the model."""
    return View(
        replica.role,
        replica.epoch,
        replica.vote,
        replica.log,
        replica.flushed,
        replica.start,
        replica.high_watermark,
    )


def view_text(view: View) -> str:
    """Return a view in one line."""
    vote = "" if view.vote == UNKNOWN else f", voted for {view.vote}"
    log = log_text(view.log, view.start, view.flushed)
    return f"{ROLES[view.role]}, epoch {view.epoch}{vote}, log {log}, high watermark {view.high_watermark}"


@attrs.define
class _Epoch:
    """The facts of an epoch.

    Attributes:
        requests: what each candidate has asked for votes with.
        votes: who has voted for a candidate, as bits.
        leader: the leader; None if there is none yet.
        log: what the leader's log had at some time: it only grows.
        starts: where the leader's log has begun at some time.
        high_watermark: the highest of the leader.
        fetched: the offsets from which each follower may have fetched, with the last epoch before them.
    """

    requests: dict[int, VoteRequest] = attrs.field(factory=dict)
    votes: dict[int, int] = attrs.field(factory=lambda: defaultdict(int))
    leader: int | None = None
    log: Log = ()
    starts: set[int] = attrs.field(factory=set)
    high_watermark: int = 0
    fetched: dict[int, list[tuple[int, int]]] = attrs.field(factory=lambda: defaultdict(list))


class RefinementCheck:
    """Replays a trace in the model.

    Args:
        count: number of replicas.
        initial_voters: the voters that are in force without an entry, as bits.
    """

    def __init__(self, count: int, initial_voters: int) -> None:
        self._bounds = attrs.evolve(
            Bounds("trace", count, 0, 1 << 30, has_flush=True, has_pre_vote=True), voters=initial_voters.bit_length()
        )
        self._queued = attrs.evolve(self._bounds, has_queue=True)
        assert self._bounds.initial_voters == initial_voters, "the first replicas are the voters"
        self.replicas = [initial_replica(each) for each in range(count)]
        self._left: list[list[Replica]] = [[] for _ in range(count)]
        self._epochs: dict[int, _Epoch] = defaultdict(_Epoch)
        self.steps = 0

    def take(self, event: Event) -> None:
        """Replay an event.

        Raises:
            NotInTheModelError: no few steps of the model lead to it.
        """
        before = self.replicas[event.mover]
        found = self._explain(before, event)
        if found is None:
            raise NotInTheModelError(
                f"replica {event.mover}{' restarts' if event.is_crash else ''}: "
                f"from {view_text(view_of(before))} to {view_text(event.view)}"
            )
        self.replicas[event.mover] = found
        self._note_left(before, found, is_crash=event.is_crash)
        self._note(found, found.start if event.first is None else event.first)

    def _explain(self, before: Replica, event: Event) -> Replica | None:
        level = list(self._restarted(before, event.view)) if event.is_crash else [before]
        seen = set(level)
        for _ in range(MOST_STEPS + 1):
            following = []
            for replica in level:
                if view_of(replica) == event.view:
                    return replica
                for after in self._steps(replica, event.view):
                    if after not in seen:
                        seen.add(after)
                        following.append(after)
            self.steps += len(following)
            level = following
        return None

    def _restarted(self, before: Replica, view: View) -> Iterator[Replica]:
        """The restart that leaves as much of the log as can be left of it, given what it is then."""
        for end in range(max(before.flushed, before.start), len(before.log) + 1):
            if view.log[:end] == before.log[:end]:
                yield from restarts(survivor(before, end), SOUND)

    def _steps(self, replica: Replica, view: View) -> Iterator[Replica]:
        """Yield what one step may make of a replica that is on its way to a view."""
        if replica.epoch > view.epoch:
            return
        yield from self._flushes(replica, view)
        yield from self._elections(replica, view)
        if replica.role == LEADER:
            yield from self._leads(replica, view)
        elif replica.role == FOLLOWER:
            yield from self._fetches(replica, view)
        if view.log != replica.log:
            yield from self._late_writes(replica, view)
        if view.role == GONE:
            yield enters(replica, replica.epoch, GONE)
        if view.start > replica.start and view.start <= min(replica.high_watermark, replica.flushed):
            yield replica._replace(start=view.start)

    def _flushes(self, replica: Replica, view: View) -> Iterator[Replica]:
        if replica.flushed < view.flushed <= len(replica.log):
            flushed = replica._replace(flushed=view.flushed)
            yield flushed
            if replica.role == LEADER:
                yield advances(flushed, self._bounds, SOUND)

    def _elections(self, replica: Replica, view: View) -> Iterator[Replica]:
        yield from self._candidacies(replica)
        if replica.role == LEADER and view.role == RESIGNED:
            yield enters(replica, replica.epoch, RESIGNED)
        facts = self._epochs.get(view.epoch, _Epoch())
        if view.epoch > replica.epoch and view.epoch in self._epochs:
            yield enters(replica, view.epoch)
        for request in facts.requests.values():
            step = delivery(replica, request, self._bounds, SOUND)
            if step is not None and any(isinstance(each, VoteGrant) for each in step.sends):
                yield step.replica
        if facts.leader is not None and (following := follows(replica, view.epoch, facts.leader)):
            yield following.replica
        if replica.role == CANDIDATE and replica.epoch == view.epoch:
            elected = tally(replica, facts.votes[replica.me], self._queued, SOUND)
            if elected is not None:
                yield elected.replica

    def _candidacies(self, replica: Replica) -> Iterator[Replica]:
        """Yield what a replica becomes that stands, or asks if it could, or gives that up."""
        is_voter = voters_in_force(replica.log, self._bounds.initial_voters) >> replica.me & 1
        is_durable = replica.flushed == len(replica.log)
        if is_voter and is_durable and replica.role != LEADER:
            yield stands(replica).replica
            if replica.role != RESIGNED:
                yield enters(replica, replica.epoch, PROSPECTIVE)
        if replica.role == PROSPECTIVE:
            yield enters(replica, replica.epoch)
        if replica.role == RESIGNED:
            yield enters(replica, replica.epoch + 1)

    def _leads(self, leader: Replica, view: View) -> Iterator[Replica]:
        length = len(leader.log)
        if view.log[:length] == leader.log and len(view.log) > length:
            longer = self._appended(leader, view.log)
            if longer is not None:
                yield longer
        if view.high_watermark > leader.high_watermark:
            yield from self._acknowledged(leader, view.high_watermark)

    def _appended(self, leader: Replica, log: Log) -> Replica | None:
        """Append the next entries of its own epoch: the first one, values up to a voter set, or one voter set."""
        end = len(leader.log)
        if not leader.has_begun:
            is_first = log[end] == entry(leader.epoch, LEADER_CHANGE)
            return advances(begins_epoch(leader, self._bounds), self._bounds, SOUND) if is_first else None
        if is_voters(log[end]):
            if epoch_of(log[end]) != leader.epoch or (log[end] & (VOTERS - 1)) not in changed_voters(
                leader, self._bounds, SOUND
            ):
                return None
            return advances(appends(leader, log[end : end + 1], self._bounds), self._bounds, SOUND)
        while end < len(log) and not is_voters(log[end]):
            if log[end] == entry(leader.epoch, LEADER_CHANGE) or epoch_of(log[end]) != leader.epoch:
                return None
            end += 1
        return advances(appends(leader, log[len(leader.log) : end], self._bounds), self._bounds, SOUND)

    def _acknowledged(self, leader: Replica, high_watermark: int) -> Iterator[Replica]:
        """Yield the leader with that high watermark, if some of the fetches that it may have got lead to it."""
        facts = self._epochs[leader.epoch]
        choices = []
        for each in range(len(self.replicas)):
            valid = [
                offset
                for offset, epoch in facts.fetched[each]
                if validate(leader.log, leader.start, offset, epoch)[0] == VALID
            ]
            above = [offset for offset in valid if offset >= high_watermark]
            below = [offset for offset in valid if offset < high_watermark]
            choices.append([*([min(above)] if above else []), max(below, default=UNKNOWN)])
        for acks in itertools.product(*choices):
            advanced = advances(leader._replace(acks=acks), self._bounds, SOUND)
            if advanced.high_watermark == high_watermark:
                forgotten = (UNKNOWN,) * len(advanced.acks)  # Next time any may be chosen again.
                yield advanced._replace(acks=forgotten)
                return

    def _fetches(self, follower: Replica, view: View) -> Iterator[Replica]:
        """Take an answer that the leader may have given, at some time, to what the follower has."""
        facts = self._epochs.get(follower.epoch)
        if facts is None or facts.leader is None or follower.flushed < len(follower.log):
            return
        position = len(follower.log), last_epoch(follower.log)
        asking = follower._replace(is_fetching=True)
        for start in sorted(facts.starts):
            kind, epoch, end = validate(facts.log, start, *position)
            answer = Answer(follower.epoch, follower.me, *position, kind, (), epoch, end, 0)
            if kind == VALID:
                entries = facts.log[position[0] : len(view.log)]
                reached = min(view.high_watermark, facts.high_watermark)
                answer = answer._replace(entries=entries, high_watermark=reached)
            elif kind == SNAPSHOT:
                answer = answer._replace(entries=facts.log[:start])
            assert kind in (VALID, SNAPSHOT, DIVERGING)
            step = delivery(asking, answer, self._bounds, SOUND)
            if step is not None:
                yield step.replica

    def _late_writes(self, replica: Replica, view: View) -> Iterator[Replica]:
        """Yield what becomes of the log by work that was in line when the replica was something else."""
        for left in self._left[replica.me]:
            if left.log == replica.log:
                decided = self._leads(left, view) if left.role == LEADER else self._fetches(left, view)
                for after in decided:
                    if after.log != left.log and after.start == left.start:
                        yield replica._replace(log=after.log, flushed=min(replica.flushed, len(after.log)))

    def _note_left(self, before: Replica, now: Replica, *, is_crash: bool) -> None:
        """Note what a replica was, as long as work may be in line for its disk on which it has decided then."""
        left = self._left[now.me]
        if is_crash or now.log != before.log or now.role == CANDIDATE:
            left.clear()
        elif before.role in (LEADER, FOLLOWER) and (now.role, now.epoch) != (before.role, before.epoch):
            left.append(before)

    def _note(self, replica: Replica, first: int) -> None:
        """Note the facts that follow from what a replica is now, and from the first entry that it can serve."""
        facts = self._epochs[replica.epoch]
        if replica.role == CANDIDATE and replica.me not in facts.requests:
            facts.requests[replica.me] = VoteRequest(
                replica.epoch, replica.me, last_epoch(replica.log), len(replica.log), is_pre_vote=False
            )
        if replica.vote != UNKNOWN:
            facts.votes[replica.vote] |= 1 << replica.me
        if replica.role == LEADER:
            facts.leader = replica.me
            if len(replica.log) > len(facts.log):
                facts.log = replica.log
            facts.starts |= {first, replica.start}
        if facts.leader == replica.me and replica.role in (LEADER, RESIGNED):  # It resigns as its removal is committed.
            facts.high_watermark = max(facts.high_watermark, replica.high_watermark)
        position = len(replica.log), last_epoch(replica.log)
        # A replica that knows its epoch, but not where the leader is, fetches from any server; the leader counts it.
        if replica.role in (FOLLOWER, UNATTACHED) and replica.flushed == len(replica.log):
            fetched = facts.fetched[replica.me]
            if position not in fetched[-3:]:
                fetched.append(position)


def replay(events: Sequence[Event], count: int, initial_voters: int) -> RefinementCheck:
    """Replay a trace from a state in which nothing has happened.

    Raises:
        NotInTheModelError: an event is none of the model.
    """
    check = RefinementCheck(count, initial_voters)
    for event in events:
        check.take(event)
    return check


def behaviour_events(protocol: Protocol, path: Iterable[Transition]) -> list[Event]:
    """Return the trace of a behaviour of the model."""
    last, events = protocol.initial(), []
    for step in path:
        if step.state[step.mover] != last[step.mover]:
            view = view_of(protocol.replicas.values[step.state[step.mover]])
            events.append(Event(step.mover, view, "crashes" in step.label))
        last = step.state
    return events
