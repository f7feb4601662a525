# SPDX-License-Identifier: Apache-2.0
"""The built-in state machine: a register for each remainder that a number can have."""

from collections.abc import Sequence
from typing import Final

from raftlog.testing.simulator.applications.checked_machine import MachineKind, number_of, value_of
from raftlog.testing.state_machine import CommandChoices, StateMachine

REGISTERS: Final = 24


class Registers(StateMachine):
    """Each command is the next number, which is written to its register."""

    def __init__(self) -> None:
        self._values: dict[int, bytes] = {}
        self._next_number = 0

    def command(self, choices: CommandChoices) -> bytes:
        """Return the next number."""
        self._next_number += 1
        return value_of(self._next_number - 1)

    def apply(self, offset: int, command: bytes) -> None:
        """Write a number to its register."""
        self._values[number_of(command) % REGISTERS] = command

    def snapshot(self) -> Sequence[bytes]:
        """Return the registers, in the order in which they were written first."""
        return tuple(self._values.values())

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace all registers."""
        self._values = {number_of(each) % REGISTERS: each for each in records}


BUILT_IN: Final = MachineKind(Registers, is_numbered=True)
"""The state machine of schedules for which no other one is named."""
