# SPDX-License-Identifier: Apache-2.0
"""The operator of the simulator leaves enough sound voters for an election."""

import random

import attrs
import pytest

from raftlog.quorum.roles.roles import Leader
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.fault_plan import Storage, draw_fault_plan
from raftlog.testing.simulator.operating.membership import Membership
from raftlog.testing.simulator.runs.schedule import SWITCHES, ScheduleOptions, Token, plan_of, run_seed
from raftlog.testing.simulator.simulation import Simulation, replica_key


def quorum(voters: int, observers: int = 0) -> tuple[Simulation, Membership]:
    """Return a quorum that has not begun, and its operator."""
    plan = attrs.evolve(draw_fault_plan(random.Random(0)), voters=voters, observers=observers, kraft_version=1)
    choices = SeededChoices(random.Random(0))
    simulation = Simulation(choices, plan)
    return simulation, Membership(simulation.machines, choices, simulation._new_directory)


@pytest.mark.parametrize(("voters", "may_damage"), [(1, False), (2, False), (3, True), (5, True)])
def test_two_other_voters_are_needed(voters: int, may_damage: bool) -> None:
    """A disk loses nothing if fewer than two other voters are left, in any set that may be in force."""
    simulation, operator = quorum(voters)
    assert operator.may_damage(simulation.machines[1], 0, 0) == may_damage


def test_a_change_that_is_not_committed() -> None:
    """While one is under way, no disk loses anything; its record is committed with the offset after it."""
    simulation, operator = quorum(5)
    ledger = simulation.machines[2].directory.ledger
    ledger.voter_sets.append(NamedVoters(7, frozenset(map(replica_key, (1, 2, 3, 4)))))
    assert not operator.may_damage(simulation.machines[1], 7, 0)
    assert operator.may_damage(simulation.machines[1], 8, 0)
    assert operator.may_damage(simulation.machines[5], 8, 0)


def test_one_disk_at_a_time() -> None:
    """While a replica is in quarantine, no other disk loses anything, and it none any more."""
    simulation, operator = quorum(5)
    simulation.machines[2].directory.ledger.quarantine_end = 1
    assert not any(operator.may_damage(each, 0, 0) for each in simulation.machines.values())


@pytest.mark.parametrize(
    ("voters", "damaged", "is_lost"), [(1, 1, True), (3, 1, False), (3, 2, True), (4, 1, False), (4, 2, True)]
)
def test_a_lost_majority(voters: int, damaged: int, is_lost: bool) -> None:
    """Damage to so many voters that the others are no majority; observers do not count, with or without voters."""
    simulation, operator = quorum(voters, observers=2)
    ledgers = [each.directory.ledger for each in simulation.machines.values()]
    ledgers[-1].quarantine_end = 1
    ledgers[-2].voter_sets.append(NamedVoters(1, frozenset()))
    assert not operator.is_majority_lost
    for ledger in ledgers[:damaged]:
        ledger.is_vote_lost = True
    assert operator.is_majority_lost == is_lost


def test_marks_of_schedules_beyond_the_atlas() -> None:
    """They count, and so does each time that a majority is damaged; within the atlas neither is ever seen."""
    options = ScheduleOptions(2, frozenset({"crashes", "misreads", "rot", "beyond-atlas"}), Storage.FILES)
    within = attrs.evolve(options, faults=options.faults - {"beyond-atlas"})
    for seed, is_lost in ((14, True), (29, False)):
        beyond = run_seed(Token(seed, options), end_ms=15_000)
        assert (beyond.beyond_atlas, beyond.lost_majorities > 0) == (1, is_lost)
        outcome = run_seed(Token(seed, within), end_ms=15_000)
        assert (outcome.beyond_atlas, outcome.lost_majorities) == (0, 0)


def test_a_replica_that_is_no_voter() -> None:
    """Its disk may lose records in a quorum of any size."""
    simulation, operator = quorum(2, observers=1)
    assert operator.may_damage(simulation.machines[3], 0, 0)


def started(voters: int, observers: int = 0) -> tuple[Simulation, Membership]:
    """Return a quorum whose processes run, and its operator."""
    simulation, operator = quorum(voters, observers)
    for machine in simulation.machines.values():
        machine.start()
    return simulation, operator


@pytest.mark.parametrize(("voters", "is_lost"), [(1, False), (2, False), (3, True), (4, True)])
def test_a_voter_loses_its_disk_where_the_others_suffice(voters: int, is_lost: bool) -> None:
    """It starts on an empty one, with another directory id; while its voter is in force, no other disk is damaged."""
    simulation, operator = started(voters, observers=1)
    machine = operator.lose_disk(0, 0)
    assert (machine is not None) == is_lost
    if machine is not None:
        assert machine.id <= voters
        assert machine.directory.identity.key == replica_key(machine.id, 1)
        assert machine.process is not None
        assert not any(operator.may_damage(each, 0, 0) for each in simulation.machines.values())
        assert operator.lose_disk(0, 0) is None


def test_the_operator_removes_a_voter_whose_disk_is_gone() -> None:
    """It and no other, until none is left that is on no machine; then disks may be lost again."""
    simulation, operator = started(3)
    simulation.timeline.run(3_000)
    leader = next(each for each in simulation.running if isinstance(each.raft.role, Leader))
    lost = operator.lose_disk(simulation.history.end_offset, 3_000)
    assert lost is not None
    assert lost.process is not leader  # It can still be asked.
    requests = [operator.change(leader, 3_000) for _ in range(20)]
    removed = {each.voter_id for each in requests if isinstance(each, RemoveRaftVoterRequest)}
    assert removed == {lost.id}
    assert {each.voter_id for each in requests if isinstance(each, AddRaftVoterRequest)} <= {lost.id}


def test_the_operator_removes_a_voter_that_has_lost_its_vote() -> None:
    """It votes no more on this directory; none that votes is removed meanwhile."""
    simulation, operator = started(3)
    simulation.timeline.run(3_000)
    leader = next(each for each in simulation.running if isinstance(each.raft.role, Leader))
    other = next(each for each in simulation.machines.values() if each.process is not leader)
    other.directory.ledger.is_vote_lost = True
    requests = [operator.change(leader, 3_000) for _ in range(20)]
    assert {each.voter_id for each in requests if isinstance(each, RemoveRaftVoterRequest)} == {other.id}


def test_schedules_lose_disks() -> None:
    """A tenth of them may, all with an operator, at kraft.version 1, and without autopilots; some do."""
    tokens = [Token(seed) for seed in range(200)]
    plans = {token: plan for token in tokens if (plan := plan_of(token)).disk_loss_interval_ms}
    assert 0.05 * len(tokens) <= len(plans) <= 0.2 * len(tokens)
    for plan in plans.values():
        assert plan.change_interval_ms
        assert plan.kraft_version == 1
        assert not plan.autopilot_look_ms
    assert any(run_seed(token).injected["lost-disk"] for token in list(plans)[:3])
    without = [ScheduleOptions(faults=frozenset(SWITCHES) - {off}) for off in ("lost-disks", "voter-changes")]
    assert not any(plan_of(Token(token.seed, options)).disk_loss_interval_ms for token in plans for options in without)
