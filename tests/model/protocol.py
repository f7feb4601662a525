# SPDX-License-Identifier: Apache-2.0
"""The whole model: states as tuples of small ints, and the steps between them.

A state is the numbers of its replicas, then that of its history, then those of its messages in ascending order. Each
replica, history and message that occurs has one number, so that each rule is applied once to each of them: there are
millions of states, but a few thousand states of a replica.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from tests.model.bounds import Bounds
from tests.model.deliveries import delivery
from tests.model.logs import members
from tests.model.messages import Message, VoteGrant, addressee, may_matter
from tests.model.properties import (
    ONE_LEADER,
    History,
    commit_faults,
    pair_faults,
    replica_faults,
    step_faults,
)
from tests.model.replica import CANDIDATE, LEADER, PROSPECTIVE, Replica, Rules, initial_replica
from tests.model.steps import CRASHES, FETCHES, WIPES, Step, fetch_of, follows, own_steps, tally

State = tuple[int, ...]
Faults = tuple[str, ...]

V = TypeVar("V", bound=Hashable)


class Numbered(Generic[V]):
    """Values by number, and numbers by value."""

    def __init__(self) -> None:
        self.values: list[V] = []
        self._numbers: dict[V, int] = {}

    def number(self, value: V) -> int:
        """Return the number of a value, a new one if it has not occurred."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class Move(NamedTuple):
    """A step by numbers: see ``Step``."""

    label: str
    replica: int
    sends: tuple[int, ...]
    cost: int
    is_consumed: bool


class Transition(NamedTuple):
    """A step between two states, and the invariants that it breaks."""

    label: str
    mover: int
    state: State
    faults: Faults


class Protocol:
    """The model within bounds, with some of its rules broken. It keeps what it has computed."""

    def __init__(self, bounds: Bounds, broken: Rules = frozenset()) -> None:
        self.bounds, self.broken, self.size = bounds, broken, bounds.replicas
        self.replicas: Numbered[Replica] = Numbered()
        self.histories: Numbered[History] = Numbered()
        self.messages: Numbered[Message] = Numbered()
        self._addressees: list[int | None] = []
        self._own: dict[tuple[int, int], list[Move]] = {}
        self._deliveries: dict[tuple[int, int], Move | None] = {}
        self._tallies: dict[tuple[int, int], Move | None] = {}
        self._followings: dict[tuple[int, int], list[Move]] = {}
        self._matters: defaultdict[int, set[int]] = defaultdict(set)
        self._matters_not: defaultdict[int, set[int]] = defaultdict(set)
        self._of_others: list[set[int]] = [set() for _ in range(self.size)]
        self._settled: dict[tuple[int, int, int, int], tuple[int, Faults, bool]] = {}
        self._replica_faults: dict[tuple[int, int], Faults] = {}
        self._pair_faults: dict[tuple[int, int], Faults] = {}
        self._initial = self.initial()

    def initial(self) -> State:
        """Return the state in which nothing has happened."""
        replicas = [self.replicas.number(initial_replica(each)) for each in range(self.size)]
        history = History((), (0,) * (self.bounds.epochs + 1), (0,) * len(self.bounds.limits))
        return (*replicas, self.histories.number(history))

    def expand(self, state: State) -> Iterator[Transition]:
        """Yield all steps from a state; a step that changes nothing is none."""
        size, history, present = self.size, state[self.size], state[self.size + 1 :]
        # The voters are alike at first: of the behaviours that differ by their names, one is enough.
        is_first = state == self._initial and not self.bounds.candidates
        for mover in range(1 if is_first else size):
            replica = state[mover]
            moves = self._own.get((replica, history))
            if moves is None:
                moves = self._own[replica, history] = self._own_moves(replica, history)
            for move in moves:
                yield self._after(state, mover, move, None)
        for message in present:
            to = self._addressees[message]
            for mover in range(size) if to is None else (to,):
                key = (message, state[mover])
                if key not in self._deliveries:
                    self._deliveries[key] = self._delivered(*key)
                delivered = self._deliveries[key]
                if delivered is not None:
                    yield self._after(state, mover, delivered, message)
        yield from self._elections(state, present)

    def _own_moves(self, replica: int, history: int) -> list[Move]:
        """The steps that need no message, and those of learning of a leader."""
        known, before = self.histories.values[history], self.replicas.values[replica]
        moves = []
        for step in own_steps(before, known.used, self.bounds, self.broken):
            sends = step.sends
            if step.sends is FETCHES:
                sends = (fetch_of(before, members(known.leaders[before.epoch])[0]),)
            moves += self._moves(before, step._replace(sends=sends))
        for epoch, leaders in enumerate(known.leaders):
            for leader in members(leaders):
                following = follows(before, epoch, leader)
                moves += self._moves(before, following) if following else []
        return moves

    def _moves(self, before: Replica, step: Step) -> list[Move]:
        """The step by numbers, if it changes anything."""
        sends = tuple(self._message(each) for each in step.sends)
        if step.replica == before and not sends:
            return []
        return [Move(step.label, self.replicas.number(step.replica), sends, step.cost, step.is_consumed)]

    def _message(self, message: Message) -> int:
        number = self.messages.number(message)
        if number == len(self._addressees):
            to = addressee(message)
            self._addressees.append(to)
            for replica, of_others in enumerate(self._of_others):
                if to is not None and to != replica:
                    of_others.add(number)
        return number

    def _delivered(self, message: int, replica: int) -> Move | None:
        before = self.replicas.values[replica]
        step = delivery(before, self.messages.values[message], self.bounds, self.broken)
        moves = self._moves(before, step) if step else []
        return moves[0] if moves else None

    def _elections(self, state: State, present: State) -> Iterator[Transition]:
        for mover in range(self.size):
            before = self.replicas.values[state[mover]]
            if before.role in (CANDIDATE, PROSPECTIVE):
                granted = self._granted(mover, state[mover], present)
                key = (state[mover], granted)
                if key not in self._tallies:
                    step = tally(before, granted, self.bounds, self.broken)
                    self._tallies[key] = self._moves(before, step)[0] if step else None
                elected = self._tallies[key]
                if elected is not None:
                    yield self._after(state, mover, elected, None)

    def _granted(self, candidate: int, replica: int, present: State) -> int:
        """Return whose votes are in the network, as bits."""
        granted = 0
        for message in present:
            grant = self.messages.values[message]
            if isinstance(grant, VoteGrant) and grant.candidate == candidate and self._matter(message, replica):
                granted |= 1 << grant.voter
        return granted

    def _matter(self, message: int, replica: int) -> bool:
        if message in self._matters[replica]:
            return True
        if message in self._matters_not[replica]:
            return False
        found = may_matter(self.messages.values[message], self.replicas.values[replica], self.broken)
        (self._matters if found else self._matters_not)[replica].add(message)
        return found

    def _after(self, state: State, mover: int, move: Move, message: int | None) -> Transition:
        """Return the state after a move, without the messages that no longer matter."""
        size = self.size
        key = (state[size], state[mover], move.replica, move.cost)
        settled = self._settled.get(key)
        if settled is None:
            settled = self._settled[key] = self._settle(*key)
        history, faults, has_committed = settled
        replicas = [*state[:size]]
        replicas[mover] = move.replica
        messages = state[size + 1 :]
        if move.replica != state[mover]:
            matter, of_others = self._matters[move.replica], self._of_others[mover]
            messages = tuple(
                [
                    each
                    for each in messages
                    if each in of_others or each in matter or self._is_alive(each, mover, replicas)
                ]
            )
        if message is not None and move.is_consumed:
            messages = tuple([each for each in messages if each != message])
        if move.sends:
            sent = [each for each in move.sends if self._is_alive(each, None, replicas)]
            messages = tuple(sorted({*messages, *sent}))
        if has_committed:
            values = [self.replicas.values[each] for each in replicas]
            faults += tuple(commit_faults(values[mover], values, self.bounds.initial_voters))
        return Transition(move.label, mover, (*replicas, history, *messages), faults)

    def _is_alive(self, message: int, mover: int | None, replicas: list[int]) -> bool:
        """Whether a message may matter to someone, given that it did before one replica moved."""
        to = self._addressees[message]
        if to is None:
            return any(self._matter(message, each) for each in replicas)
        return (mover is not None and to != mover) or self._matter(message, replicas[to])

    def _settle(self, history: int, before: int, after: int, cost: int) -> tuple[int, Faults, bool]:
        """Return the history after a step, the invariants that the step breaks, and whether a leader has committed."""
        old, new = self.replicas.values[before], self.replicas.values[after]
        committed, leaders, used = self.histories.values[history]
        faults = step_faults(old, new, committed, is_crash=cost in (CRASHES, WIPES))
        if new.high_watermark > len(committed):
            committed = new.log[: new.high_watermark]
        if new.role == LEADER:
            leaders = (*leaders[: new.epoch], leaders[new.epoch] | 1 << new.me, *leaders[new.epoch + 1 :])
        if cost >= 0:
            used = (*used[:cost], used[cost] + 1, *used[cost + 1 :])
        has_committed = old.role in (LEADER, CANDIDATE) and new.high_watermark > old.high_watermark
        return self.histories.number(History(committed, leaders, used)), tuple(faults), has_committed

    def faults(self, state: State, mover: int) -> Faults:
        """Return the invariants that a state breaks, given that it is sound but for what one replica has done."""
        size, history = self.size, state[self.size]
        found: Faults = ()
        for each in range(size):
            key = (state[each], history)
            known = self._replica_faults.get(key)
            if known is None:
                known = self._replica_faults[key] = self._faults_of(*key)
            found += known
            if each != mover:
                pair = (state[mover], state[each])
                known = self._pair_faults.get(pair)
                if known is None:
                    one, other = (self.replicas.values[part] for part in pair)
                    known = self._pair_faults[pair] = tuple(pair_faults(one, other))
                found += known
        return found

    def _faults_of(self, replica: int, history: int) -> Faults:
        known = self.histories.values[history]
        found = replica_faults(self.replicas.values[replica], known, self.bounds.initial_voters)
        several = any(leaders.bit_count() > 1 for leaders in known.leaders)
        return (*found, *((ONE_LEADER,) if several else ()))
