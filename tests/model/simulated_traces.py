# SPDX-License-Identifier: Apache-2.0
"""Traces of simulated replicas, as the refinement check reads them.

A view has what is durable. The core moves at once and its messages wait for the disk (DECISIONS.md, 53), so a new role
is in the trace when the election state that it needs is stored: nothing can depend on it before. A leader announces
itself as it writes its LeaderChange, so the trace has that from the beginning of its leadership.
"""

import random

import attrs

from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.simulation import Simulation
from raftlog.voters.voter_set import ReplicaKey
from tests.model.logs import LEADER_CHANGE, VOTERS, Log, entry
from tests.model.refinement import Event, View
from tests.model.replica import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    UNKNOWN,
    initial_replica,
)

_ROLES = {
    Unattached: UNATTACHED,
    Prospective: PROSPECTIVE,
    Candidate: CANDIDATE,
    Leader: LEADER,
    Follower: FOLLOWER,
    Resigned: RESIGNED,
}
_VALUE = 1


@attrs.define
class _Seen:
    """What the trace says of a machine last."""

    view: View
    is_down: bool = True
    has_run: bool = False
    forgotten_mark: int = 0
    log: tuple[list[StoredBatch], Log] = attrs.field(factory=lambda: ([], ()))


def _has_begun(log: Log, epoch: int) -> bool:
    """Whether a log has an entry of an epoch at its end."""
    return bool(log) and log[-1] >> 8 == epoch


class TracedSimulation:
    """A simulation of which a trace is written.

    Attributes:
        simulation: the quorum.
        events: the trace.
    """

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(random.Random(seed), changes_voters=False)
        self.events: list[Event] = []
        machines = self.simulation.machines
        keys = [machine.directory.identity.key for machine in machines.values()]
        self._indexes = {key: index for index, key in enumerate(keys)}
        start = initial_replica(0)
        first = View(start.role, start.epoch, start.vote, start.log, start.flushed, start.start, start.high_watermark)
        self._seen = {each: _Seen(first) for each in machines}
        timeline = self.simulation.timeline
        timeline_note = timeline.note

        def note(*numbers: int) -> None:
            timeline_note(*numbers)
            self._note(machines[numbers[0]])

        timeline.note = note  # type: ignore[method-assign]

    @property
    def count(self) -> int:
        """How many replicas there are."""
        return len(self._indexes)

    def run(self, duration_ms: int) -> list[Event]:
        """Let the quorum run with its faults for a while, and return the trace."""
        simulation = self.simulation
        for machine in simulation.machines.values():
            machine.start()
        simulation._begin_faults()
        simulation.timeline.run(duration_ms)
        return self.events

    def _note(self, machine: Machine) -> None:
        seen, ledger = self._seen[machine.id], machine.directory.ledger
        if machine.process is None:
            if not seen.is_down:
                self._note_unseen(machine, seen)
            seen.is_down, seen.forgotten_mark = True, 0
            return
        view = self._view(machine, seen, ledger)
        if not seen.is_down and seen.view.role == LEADER and view.role != LEADER:
            self._note_unwritten(machine, seen)
            view = self._view(machine, seen, ledger)
        if seen.is_down and seen.has_run:
            self.events.append(Event(self._indexes[ledger.key], view, is_crash=True))
        elif view != seen.view:
            self.events.append(Event(self._indexes[ledger.key], view))
        seen.view, seen.is_down, seen.has_run = view, False, True

    def _note_unwritten(self, machine: Machine, seen: _Seen) -> None:
        """Note that a leader has lost its epoch before it wrote its LeaderChange, which the trace has already.

        To all others that is a leader which has crashed before its first flush.
        """
        log, view = self._log(seen, machine.directory.ledger), seen.view
        if not _has_begun(log, view.epoch):
            seen.forgotten_mark = view.high_watermark  # Until it rises, which the model can follow.
            seen.view = view._replace(role=RESIGNED, log=log, flushed=len(log), high_watermark=0)
            self.events.append(Event(self._index(machine.directory.ledger.key), seen.view, is_crash=True))

    def _note_unseen(self, machine: Machine, seen: _Seen) -> None:
        """Note what became durable at the last moment, before the process was told: it shapes the restart."""
        ledger, view = machine.directory.ledger, seen.view
        log, state = self._log(seen, ledger), ledger.state
        if len(log) < view.flushed:
            view = view._replace(log=log, flushed=len(log))
        if state is not None:
            vote = UNKNOWN if state.voted_id < 0 else self._index(state.voted_key)
            if state.leader_id == machine.id:
                is_new = view.epoch != state.leader_epoch or view.role not in (LEADER, RESIGNED)
                if is_new:
                    longer = (*view.log, entry(state.leader_epoch, LEADER_CHANGE))
                    view = view._replace(
                        role=LEADER, epoch=state.leader_epoch, vote=self._index(ledger.key), log=longer
                    )
            elif (state.leader_epoch, vote) != (view.epoch, view.vote):
                role = CANDIDATE if vote == self._index(ledger.key) else UNATTACHED
                role = FOLLOWER if state.leader_id >= 0 else role
                view = view._replace(role=role, epoch=state.leader_epoch, vote=vote)
        if view != seen.view:
            self.events.append(Event(self._index(ledger.key), view))
            seen.view = view

    def _view(self, machine: Machine, seen: _Seen, ledger: Ledger) -> View:
        process, state = machine.process, ledger.state
        assert process is not None
        log, role = self._log(seen, ledger), process.raft.role
        is_stored = process.last_state in (None, state)
        epoch, vote, shown = seen.view.epoch, seen.view.vote, seen.view.role
        if seen.is_down and seen.has_run:  # Until its first state is stored, it is what a restart makes of the old one.
            has_stood = shown == FOLLOWER and vote == self._index(ledger.key)
            shown = {LEADER: RESIGNED, FOLLOWER: CANDIDATE if has_stood else UNATTACHED}.get(shown, shown)
            shown = UNATTACHED if shown == PROSPECTIVE else shown
        if is_stored and state is not None:
            epoch, shown = state.leader_epoch, _ROLES[type(role)]
            vote = UNKNOWN if state.voted_id < 0 else self._index(state.voted_key)
            if shown in (LEADER, RESIGNED):
                vote = self._indexes[ledger.key]
        if shown == LEADER and not _has_begun(log, epoch):
            log = (*log, entry(epoch, LEADER_CHANGE))  # It is about to write it, and announces itself already.
        # The core tells its peers before the log is told.
        told = max(ledger.high_watermark, process.raft.high_watermark or 0)
        told = 0 if told <= seen.forgotten_mark else told
        high_watermark = told if seen.is_down else max(told, seen.view.high_watermark)
        return View(shown, epoch, vote, log, ledger.durable_end, 0, high_watermark)

    def _index(self, key: ReplicaKey | None) -> int:
        assert key is not None
        return self._indexes[key]

    def _log(self, seen: _Seen, ledger: Ledger) -> Log:
        """Return the entries of a log: the first of an epoch is its LeaderChange; voter sets are those that differ."""
        batches, known = seen.log
        if batches == ledger.batches:
            return known
        entries, last = [], 0
        for batch in ledger.batches:
            for offset in range(batch.base_offset, batch.next_offset):
                first = batch.epoch != last and offset == batch.base_offset
                entries.append(entry(batch.epoch, LEADER_CHANGE if first else _VALUE))
            last = batch.epoch
        for before, named in zip(ledger.voter_sets, ledger.voter_sets[1:], strict=False):
            if named.keys != before.keys:
                bits = sum(1 << self._indexes[key] for key in named.keys)
                entries[named.offset] = entry(entries[named.offset] >> 8, VOTERS | bits)
        seen.log = list(ledger.batches), tuple(entries)
        return seen.log[1]
