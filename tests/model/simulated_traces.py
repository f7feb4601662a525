# SPDX-License-Identifier: Apache-2.0
"""Traces of simulated replicas, as the refinement check reads them.

A view has what is durable. The core moves at once and its messages wait for the disk (DECISIONS.md, 53), so a role is
in the trace from the moment on at which the election state that it needs is stored: nothing can depend on it before.
Each election state that becomes durable is in the trace, also if the core has left its role by then. It has asked for
votes as a candidate then, for instance, and the requests leave as the state is stored.

What a log gets while an election state waits for the disk is in the trace after that state: the core decided on the
state, such as a vote, without it. A directory that replaces a lost one is another replica. A log of the model starts at
the end of its newest snapshot; the one of the simulator may have records from before that, which followers may fetch.
"""

import random
from typing import Final

import attrs

from raftlog.quorum.roles.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    leader_id,
    voted_key,
)
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.simulation import Simulation
from raftlog.voters.voter_set import ReplicaKey
from tests.model.logs import LEADER_CHANGE, VOTERS, Log, entry, epoch_of, last_epoch
from tests.model.refinement import Event, View, view_of
from tests.model.replica import (
    CANDIDATE,
    FOLLOWER,
    GONE,
    LEADER,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    UNKNOWN,
    initial_replica,
)

_ROLES: Final = {
    Unattached: UNATTACHED,
    Prospective: PROSPECTIVE,
    Candidate: CANDIDATE,
    Leader: LEADER,
    Follower: FOLLOWER,
    Resigned: RESIGNED,
}
_RESTARTED: Final = {LEADER: RESIGNED, FOLLOWER: UNATTACHED, PROSPECTIVE: UNATTACHED}
"""What a restart makes of a role until the first election state is stored after it; others stay."""
_VALUE: Final = 1


@attrs.define
class _Seen:
    """What the trace says of a directory last.

    Attributes:
        ledger: of the directory.
        index: of the replica in the trace.
        view: the last one.
        state: the election state that the view is of.
        is_down: whether no process runs.
        has_run: whether one has.
        log: its start, its batches, and its entries with those before the start.
    """

    ledger: Ledger
    index: int
    view: View
    state: QuorumStateData | None = None
    is_down: bool = True
    has_run: bool = False
    log: tuple[int, list[StoredBatch], Log] = attrs.field(factory=lambda: (0, [], ()))


class TracedSimulation:
    """A simulation of which a trace is written.

    Args:
        seed: of all random choices.
        change_interval_ms: how often an operator asks for another voter set, on average; None as the schedule has it.

    Attributes:
        simulation: the quorum.
        events: the trace.
    """

    def __init__(self, seed: int, change_interval_ms: int | None = None) -> None:
        chance = random.Random(seed)
        plan = attrs.evolve(draw_fault_plan(chance), kraft_version=1, upgrade_ms=0, rot=0.0)
        if change_interval_ms is not None:
            plan = attrs.evolve(plan, change_interval_ms=change_interval_ms, observers=max(plan.observers, 1))
        self.simulation = Simulation(SeededChoices(chance), plan)
        self.events: list[Event] = []
        self._committed: Log = ()
        self._indexes: dict[ReplicaKey, int] = {}
        self._seen: dict[int, _Seen] = {}
        for machine in self.simulation.machines.values():
            self._begin(machine)
        self.simulation.witness.watch = self._note_stored
        timeline = self.simulation.timeline
        timeline_note = timeline.note

        def note(*numbers: int) -> None:
            timeline_note(*numbers)
            self._note(self.simulation.machines[numbers[0]])

        timeline.note = note  # type: ignore[method-assign]

    @property
    def count(self) -> int:
        """How many directories there have been."""
        return len(self._indexes)

    @property
    def first_voters(self) -> int:
        """The first voter set, as bits."""
        return (1 << self.simulation.plan.voters) - 1

    def run(self, duration_ms: int) -> list[Event]:
        """Let the quorum run with its faults for a while, and return the trace."""
        simulation = self.simulation
        for machine in simulation.machines.values():
            machine.start()
        simulation._begin_faults()
        simulation.timeline.run(duration_ms)
        return self.events

    def _begin(self, machine: Machine) -> _Seen:
        """Begin the trace of a directory in which nothing has happened."""
        ledger = machine.directory.ledger
        index = self._index(ledger.key)
        seen = self._seen[machine.id] = _Seen(ledger, index, view_of(initial_replica(index)))
        return seen

    def _index(self, key: ReplicaKey | None) -> int:
        assert key is not None
        return self._indexes.setdefault(key, len(self._indexes))

    # What happens

    def _note(self, machine: Machine) -> None:
        """Note what a machine is after an event."""
        seen = self._seen[machine.id]
        if machine.process is None:
            if not seen.is_down:
                self._note_kept(seen)
            seen.is_down = True
            return
        if machine.directory.ledger is not seen.ledger:
            self._add(seen, seen.view._replace(role=GONE))
            seen = self._begin(machine)
        if seen.is_down:
            if seen.has_run:
                self._add(seen, self._view(machine, seen), is_crash=True)
            seen.is_down, seen.has_run = False, True
        self._add(seen, self._view(machine, seen))

    def _note_kept(self, seen: _Seen) -> None:
        """Note what the disk has kept in a crash of what is not in the trace yet."""
        log, view, start = self._log(seen), seen.view, seen.ledger.start_offset
        if start > view.high_watermark:  # It has begun its log with a snapshot that it had fetched.
            self._add(seen, view._replace(log=log, flushed=len(log), start=start, high_watermark=start))
        elif start > view.flushed:  # It has lost records that its own snapshot has.
            self._add(seen, view._replace(flushed=start, start=start))
        elif log[: len(view.log)] == view.log:
            self._add(seen, view._replace(log=log))

    def _note_stored(self, ledger: Ledger) -> None:
        """Note an election state or a truncation that is durable now. The replica learns of it next, or crashes."""
        machine = self.simulation.machines[ledger.key.id]
        seen, state = self._seen[machine.id], ledger.state
        view = seen.view
        if state is not None and state != seen.state:
            role = None if machine.process is None else machine.process.raft.role
            shown, vote = self._named(machine.id, role, state), self._vote(seen, state)
            view = view._replace(role=shown, epoch=state.leader_epoch, vote=vote)
            seen.state = state
        log = self._log(seen)
        if len(log) < len(view.log):
            view = view._replace(log=log, flushed=min(view.flushed, len(log)))
        self._add(seen, view)

    def _add(self, seen: _Seen, view: View, *, is_crash: bool = False) -> None:
        if is_crash or view != seen.view:
            self.events.append(Event(seen.index, view, is_crash, seen.ledger.start_offset))
            seen.view = view
            if view.high_watermark > len(self._committed):
                self._committed = view.log[: view.high_watermark]

    # What a replica is

    def _view(self, machine: Machine, seen: _Seen) -> View:
        """Return the view of a replica that runs."""
        assert machine.process is not None
        raft, ledger, view = machine.process.raft, seen.ledger, seen.view
        is_stored = _needs(raft.role, ledger.state)
        if seen.is_down and seen.has_run:
            view = view._replace(role=_RESTARTED.get(view.role, view.role))
        if is_stored:
            view = view._replace(role=_ROLES[type(raft.role)])
        told = raft.status.committed_offset  # Its peers are told before its log, also if it resigns with that.
        if is_stored or seen.is_down:
            durable = min(told, ledger.durable_end)  # A snapshot may have records that this log has not flushed yet.
            start = max([ledger.start_offset, *(each.offset for each in ledger.snapshots if each.offset <= durable)])
            view = view._replace(log=self._log(seen), flushed=ledger.durable_end, start=start)
        return view._replace(high_watermark=told)

    def _named(self, replica_id: int, role: Role | None, state: QuorumStateData) -> int:
        """Return the role that an election state is of, which a replica may have left by now."""
        if state.leader_id == replica_id:
            return LEADER
        if state.leader_id != UNKNOWN_ID:  # It follows, or it knows a leader, but not its address.
            knows_no_address = role is not None and not isinstance(role, Follower) and _needs(role, state)
            return UNATTACHED if knows_no_address else FOLLOWER
        return CANDIDATE if state.voted_id == replica_id else UNATTACHED

    def _vote(self, seen: _Seen, state: QuorumStateData) -> int:
        if state.leader_id == seen.ledger.key.id:
            return seen.index
        return UNKNOWN if state.voted_id == UNKNOWN_ID else self._index(state.voted_key)

    def _log(self, seen: _Seen) -> Log:
        """Return the entries of a log: the first of an epoch is its LeaderChange; voter sets are those that differ.

        Before the log start are those that are committed. What a snapshot has of them, the simulator checks.
        """
        ledger = seen.ledger
        start, batches, known = seen.log
        if start == ledger.start_offset and batches == ledger.batches:
            return known
        entries = list(self._committed[: ledger.start_offset])
        assert len(entries) == ledger.start_offset, "a log starts where it is known to be committed"
        last = last_epoch(self._committed[: ledger.start_offset])
        for batch in ledger.batches:
            for offset in range(batch.base_offset, batch.next_offset):
                first = batch.epoch != last and offset == batch.base_offset
                entries.append(entry(batch.epoch, LEADER_CHANGE if first else _VALUE))
            last = batch.epoch
        for before, named in zip(ledger.voter_sets, ledger.voter_sets[1:], strict=False):
            if named.keys != before.keys:
                bits = sum(1 << self._index(key) for key in named.keys)
                entries[named.offset] = entry(epoch_of(entries[named.offset]), VOTERS | bits)
        seen.log = ledger.start_offset, list(ledger.batches), tuple(entries)
        return seen.log[2]


def _needs(role: Role, state: QuorumStateData | None) -> bool:
    """Whether an election state is the one that a role needs: no later one waits for the disk."""
    if state is None:
        return role.epoch == 0 and leader_id(role) is None and voted_key(role) is None
    leader, voted = leader_id(role), voted_key(role)
    return (role.epoch, UNKNOWN_ID if leader is None else leader, UNKNOWN_ID if voted is None else voted.id) == (
        state.leader_epoch,
        state.leader_id,
        state.voted_id,
    )
