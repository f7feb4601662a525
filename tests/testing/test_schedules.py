# SPDX-License-Identifier: Apache-2.0
"""A state machine of a user's runs on simulated quorums: a right one passes, and what is wrong with others is said."""

import re
from collections.abc import Sequence

import pytest

from raftlog.errors import OptionError
from raftlog.testing.schedules import run_schedules
from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import CommandChoices, StateMachine
from tests.testing.bank import Bank
from tests.testing.simulator.known_schedules import outcome_of
from tests.testing.wrong_banks import WRONG, Interrupting, Wrong


class Journal(StateMachine):
    """Has applied these commands: a state that is large, or empty."""

    def __init__(self) -> None:
        self.commands: list[tuple[int, bytes]] = []

    def command(self, choices: CommandChoices) -> bytes:
        """Return nothing, or much."""
        return b"x" * choices.pick((0, 0, 1, 60))

    def apply(self, offset: int, command: bytes) -> None:
        """Note it."""
        self.commands.append((offset, command))

    def snapshot(self) -> Sequence[bytes]:
        """Return a record for each."""
        return [b"%d %s" % each for each in self.commands]

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace all."""
        pairs = [each.split(b" ") for each in records]
        self.commands = [(int(offset), command) for offset, command in pairs]

    def check(self) -> None:
        """Offsets rise."""
        offsets = [offset for offset, _ in self.commands]
        assert offsets == sorted(set(offsets))


def test_a_bank_passes_some_schedules() -> None:
    """Its snapshots are written and loaded, and equal seeds are equal schedules."""
    totals = run_schedules(Bank, range(2, 4))
    assert totals.schedules == 2
    assert not totals.violations
    assert totals.sums["snapshots"] > 20
    again = run_schedules(Bank, range(2, 4))
    assert (again.sums, again.events) == (totals.sums, totals.events)


@pytest.mark.slow
@pytest.mark.parametrize("storage", [Storage.MODEL, Storage.FILES])
def test_a_bank_passes_many_schedules(storage: Storage) -> None:
    """With the log in memory, and in files; logs are replaced by snapshots meanwhile."""
    totals = run_schedules(Bank, range(10), storage=storage)
    assert totals.counting >= 7
    assert totals.sums["restarts"] > 0


def test_states_of_any_size() -> None:
    """Empty commands, empty states, and snapshots that followers fetch in parts."""
    assert run_schedules(Journal, range(2, 4)).sums["acknowledged"] > 100


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.invariant + "-" + each.machine.__name__)
def test_a_wrong_bank_is_found(wrong: Wrong) -> None:
    """Within a few schedules, and what is wrong is one line that names the machine and the offset."""
    with pytest.raises(ViolationError) as caught:
        run_schedules(wrong.machine, range(12))
    assert caught.value.invariant == wrong.invariant
    assert re.search(wrong.words, caught.value.description.splitlines()[0]), caught.value.description


def test_an_interrupt_is_no_violation() -> None:
    """Here, nobody knows whether the user or the machine has raised it."""
    with pytest.raises(KeyboardInterrupt):
        run_schedules(Interrupting, [0])


def test_a_violation_is_told_with_its_command() -> None:
    """It names the schedule; the command is there if the machine can be imported."""
    raising = next(each for each in WRONG if each.words.startswith("Raising"))
    with pytest.raises(ViolationError) as caught:
        run_schedules(raising.machine, [3], voters=3, faults=["loss"])
    where, command = caught.value.description.splitlines()[1:]
    assert where.strip() == "in schedule s1-3-v3-loss"
    place = "tests.testing.wrong_banks:Raising"
    assert command.strip() == f"raftlog simulate --machine {place} --replay s1-3-v3-loss --shrink"

    class Local(raising.machine):  # type: ignore[misc,name-defined]
        pass

    with pytest.raises(ViolationError) as caught:
        run_schedules(Local, [3])
    assert "raftlog simulate" not in str(caught.value)


def test_options_that_are_refused() -> None:
    """They are those of a schedule."""
    with pytest.raises(OptionError, match="8 is not from 1 to 7"):
        run_schedules(Bank, [0], voters=8)
    with pytest.raises(OptionError, match="no fire"):
        run_schedules(Bank, [0], faults=["fire"])


def test_no_seeds() -> None:
    """Nothing happens; the machine is looked at nevertheless."""
    assert run_schedules(Bank, []).schedules == 0
    with pytest.raises(ViolationError, match="machine-fails"):
        run_schedules(dict, [])  # type: ignore[arg-type]


def test_seeds_of_the_built_in_machine_are_not_those_of_another() -> None:
    """A token names a schedule for one state machine."""
    assert outcome_of(0).trace != 0
    assert run_schedules(Bank, [0]).events != outcome_of(0).events
