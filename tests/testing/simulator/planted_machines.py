# SPDX-License-Identifier: Apache-2.0
"""Bugs to plant in the built-in state machine: mistakes that users' state machines may have, too."""

from collections.abc import Sequence
from typing import Any, Final

from raftlog.testing.simulator.applications.registers import Registers
from raftlog.testing.state_machine import StateMachine
from tests.mutants.planting import Mutant, Wrong, instead, swapped

_LATE: Final = 100


def _raising_late(right: Wrong) -> Wrong:
    def apply(machine: Any, offset: int, command: bytes) -> None:
        if offset > _LATE:
            raise LookupError("no such register")
        right(machine, offset, command)

    return apply


def _by_its_address(right: Wrong) -> Wrong:
    def apply(machine: Any, offset: int, command: bytes) -> None:
        right(machine, offset, command[:-1] + bytes([id(machine) >> 8 & 0xFF]) if offset > _LATE else command)

    return apply


def _over_the_old_state(right: Wrong) -> Wrong:
    def restore(machine: Any, records: Sequence[bytes]) -> None:
        before = dict(machine._values)
        right(machine, records)
        machine._values |= before

    return restore


def _without_the_last(right: Wrong) -> Wrong:
    return lambda machine, records: right(machine, records[:-1])


def _no_two_registers(machine: Any) -> None:
    if len(machine.snapshot()) > 1:
        raise AssertionError("there are two registers")


def _bug(name: str, rule: str, plant: Any) -> Mutant:
    return Mutant(name, rule, "", plant, ())


MACHINES: Final = (
    _bug("machine-raises", "a state machine applies all commands", swapped(Registers, "apply", _raising_late)),
    _bug("machine-uses-id", "equal records make equal states", swapped(Registers, "apply", _by_its_address)),
    _bug("machine-forgets", "a snapshot has the whole state", swapped(Registers, "restore", _without_the_last)),
    _bug("machine-keeps", "a snapshot replaces the state", swapped(Registers, "restore", _over_the_old_state)),
    _bug("machine-checks", "a state is what the machine says", instead(StateMachine, "check", _no_two_registers)),
)
"""The bugs."""
