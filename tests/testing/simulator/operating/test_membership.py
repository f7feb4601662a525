# SPDX-License-Identifier: Apache-2.0
"""The operator of the simulator leaves enough sound voters for an election."""

import random

import attrs
import pytest

from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.operating.membership import Membership
from raftlog.testing.simulator.simulation import Simulation, replica_key


def quorum(voters: int, observers: int = 0) -> tuple[Simulation, Membership]:
    """Return a quorum that has not begun, and its operator."""
    plan = attrs.evolve(draw_fault_plan(random.Random(0)), voters=voters, observers=observers, kraft_version=1)
    choices = SeededChoices(random.Random(0))
    simulation = Simulation(choices, plan)
    return simulation, Membership(simulation.machines, choices, lambda _: pytest.fail("no disk is replaced"))


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


def test_a_replica_that_is_no_voter() -> None:
    """Its disk may lose records in a quorum of any size."""
    simulation, operator = quorum(2, observers=1)
    assert operator.may_damage(simulation.machines[3], 0, 0)
