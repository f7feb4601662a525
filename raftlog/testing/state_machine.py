# SPDX-License-Identifier: Apache-2.0
"""What a state machine of yours is to the simulator: it applies commands, and writes and reads snapshots.

::

    class Counter(StateMachine):
        def __init__(self) -> None:
            self.total = 0

        def command(self, choices: CommandChoices) -> bytes:
            return bytes([choices.number(0, 256)])

        def apply(self, offset: int, command: bytes) -> None:
            self.total += command[0]

        def snapshot(self) -> Sequence[bytes]:
            return [b"%d" % self.total]

        def restore(self, records: Sequence[bytes]) -> None:
            self.total = int(records[0])

``raftlog.testing.schedules`` runs it on simulated quorums, and ``raftlog.testing.quorum_machine`` by rules that
Hypothesis combines.
"""

import abc
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
MAX_RECORD_BYTES: Final = 1 << 20
"""The most bytes of a command, and of a record of a snapshot."""


class CommandChoices(Protocol):
    """All that a command may depend on, so that a schedule can be run again and shrunk.

    Each choice has a calm value. Shrinking makes choices calm, so let that be the simplest one.
    """

    def number(self, start: int, stop: int) -> int:
        """Return an integer in [start, stop). Calm: ``start``."""
        ...

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options, of which there is at least one. Calm: the first."""
        ...

    def happens(self, probability: float) -> bool:
        """Whether something happens, with a probability from 0 to 1. Calm: it does not."""
        ...


class StateMachine(abc.ABC):
    """A state machine, of which each replica has an instance: its class is called without arguments.

    Its state must depend on nothing but the commands that were applied, in their order, and the last snapshot that was
    restored: on no clock, no random numbers, no ``id()``, no order of a set of texts, and no other instance. Methods
    may raise nothing, and must return.
    """

    @abc.abstractmethod
    def command(self, choices: CommandChoices) -> bytes:
        """Return a command of a client, of at most ``MAX_RECORD_BYTES``; it may be empty.

        It is asked of two instances of their own, to which nothing is applied: both must return the same.

        Args:
            choices: all that the command may depend on, besides earlier calls of the same instance.
        """

    @abc.abstractmethod
    def apply(self, offset: int, command: bytes) -> None:
        """Apply a committed command.

        Args:
            offset: of its record. Offsets rise, and some are skipped: raft has records of its own.
            command: what ``command`` has returned once. A client that is not told the outcome does not append it again.
        """

    @abc.abstractmethod
    def snapshot(self) -> Sequence[bytes]:
        """Return the whole state as records, each of 1 to ``MAX_RECORD_BYTES`` bytes; none at all is allowed.

        It changes nothing. Equal states have equal records in the same order: by them, instances are compared.
        """

    @abc.abstractmethod
    def restore(self, records: Sequence[bytes]) -> None:
        """Replace the whole state, whatever it is, by that of a snapshot.

        Args:
            records: what ``snapshot`` of another instance has returned.
        """

    def check(self) -> None:  # noqa: B027 - a state machine may have no invariant
        """Raise an exception if the state can not be right; it changes nothing.

        It is called for each state between two commands, for a bank to show that no money was made or lost.
        """
