# SPDX-License-Identifier: Apache-2.0
"""Banks with bugs, each of which a simulation must find, and what it must say."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pytest

from raftlog.testing.state_machine import CommandChoices, StateMachine
from tests.testing.bank import NAMES, Bank


class Forgetful(Bank):
    """Its snapshot lacks an account."""

    def snapshot(self) -> Sequence[bytes]:
        """Return all accounts but the last."""
        return super().snapshot()[:-1]


class Clinging(Bank):
    """A snapshot does not replace accounts that it knows."""

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace accounts that are as they were at first."""
        before = {name: amount for name, amount in self.accounts.items() if amount != 100}
        super().restore(records)
        self.accounts |= before

    def check(self) -> None:
        """Find nothing."""


class Counting(Bank):
    """Every twentieth transfer is free, and the count is not in its snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def apply(self, offset: int, command: bytes) -> None:
        """Transfer, or not."""
        self.count += 1
        if self.count % 20:
            super().apply(offset, command)


class Overdrawn(Bank):
    """A transfer that is not atomic: it is refused when half of it is done."""

    def apply(self, offset: int, command: bytes) -> None:
        """Take, then look, then give."""
        source, target, amount = json.loads(command)
        self.accounts[source] -= amount
        if self.accounts[source] >= 0:
            self.accounts[target] += amount


class Lucky(Bank):
    """Sometimes a transfer is lost, by chance."""

    def apply(self, offset: int, command: bytes) -> None:
        """Transfer, mostly."""
        if random.random() < 0.9:
            super().apply(offset, command)


class Addressed(Bank):
    """Its snapshot is in the order of addresses in memory."""

    class Account:
        """An account."""

        def __init__(self, line: bytes) -> None:
            self.line = line

    def snapshot(self) -> Sequence[bytes]:
        """Return the accounts, sorted by ``id``, and one of the ids."""
        accounts = [self.Account(each) for each in super().snapshot()]
        return [b"%d" % id(self), *(each.line for each in sorted(accounts, key=id))]

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace all accounts."""
        super().restore(records[1:])


class Common(Bank):
    """All instances have the same accounts."""

    accounts = dict.fromkeys(NAMES, 100)

    def __init__(self) -> None:
        """Make no accounts."""


class Unsorted(Bank):
    """The bank pays a fee to the first of a set, whose order is another one in each process."""

    def apply(self, offset: int, command: bytes) -> None:
        """Transfer, and take the fee from the last."""
        super().apply(offset, command)
        first, *_, last = set(NAMES)
        self.accounts[first] += 1
        self.accounts[last] -= 1


class Raising(Bank):
    """It raises when there are many records."""

    def apply(self, offset: int, command: bytes) -> None:
        """Transfer, as long as there are few records."""
        if offset > 50:
            raise LookupError("no such account\nsays the bank")
        super().apply(offset, command)


class Quitting(Bank):
    """It ends the process."""

    def apply(self, offset: int, command: bytes) -> None:
        """Exit."""
        raise SystemExit(0)


class Failing(Bank):
    """It fails as a test does, by what is no ``Exception``."""

    def check(self) -> None:
        """Fail when an account has less than before."""
        if min(self.accounts.values()) < 100:
            pytest.fail("somebody is poor")


class Cancelled(Bank):
    """It raises what ends tasks."""

    def apply(self, offset: int, command: bytes) -> None:
        """Raise."""
        raise asyncio.CancelledError


class Quick(Bank):
    """It raises what ends generators."""

    def command(self, choices: CommandChoices) -> bytes:
        """Raise."""
        raise GeneratorExit


class Interrupting(Bank):
    """It raises what an interrupt raises."""

    def apply(self, offset: int, command: bytes) -> None:
        """Raise."""
        raise KeyboardInterrupt


class Chancy(Bank):
    """Its commands depend on random numbers, by which no token can name them."""

    def command(self, choices: CommandChoices) -> bytes:
        """Return a transfer of any amount."""
        return json.dumps(["alice", "bob", random.randrange(10**9)]).encode()


class Textual(Bank):
    """It has a snapshot of texts."""

    def snapshot(self) -> Any:
        """Return texts."""
        return list(self.accounts)


class Blank(Bank):
    """It has a snapshot with an empty record, which a log cannot have."""

    def snapshot(self) -> Sequence[bytes]:
        """Return it."""
        return [b""]


class Silent(Bank):
    """Its clients have nothing to say."""

    def command(self, choices: CommandChoices) -> Any:
        """Return none."""


class Verbose(Bank):
    """Its clients say too much."""

    def command(self, choices: CommandChoices) -> bytes:
        """Return a byte too much."""
        return bytes((1 << 20) + 1)


class Wrong(NamedTuple):
    """A state machine with a bug.

    Attributes:
        machine: makes it.
        invariant: that finds the bug.
        words: of the description.
    """

    machine: Callable[[], StateMachine]
    invariant: str
    words: str


WRONG: Final = (
    Wrong(Forgetful, "machine-restores", r"Forgetful: its snapshot at offset \d+, restored over the state at offset"),
    Wrong(Counting, "machine-restores", r"Counting: after it was restored from its snapshot at offset \d+, it differs"),
    Wrong(Overdrawn, "machine-check", r"Overdrawn.check at offset \d+ raised ValueError: the accounts have \d+"),
    Wrong(
        Lucky, "machine-is-deterministic", r"Lucky: two instances .* differ from the record at offset \d+ on: record"
    ),
    Wrong(Addressed, "machine-is-deterministic", "Addressed: two instances differ before the first record: record 0"),
    Wrong(Common, "machine-is-deterministic", "Common: two instances differ before the first record: record 0"),
    Wrong(Raising, "machine-fails", r"Raising.apply at offset \d+ raised LookupError: no such account \(wrong"),
    Wrong(Quitting, "machine-fails", r"Quitting.apply at offset \d+ raised SystemExit: 0 \(wrong_banks.py, line"),
    Wrong(Failing, "machine-check", r"Failing.check at offset \d+ raised Failed: somebody is poor \(wrong_b"),
    Wrong(Cancelled, "machine-fails", r"Cancelled.apply at offset \d+ raised CancelledError \(wrong_banks.py, line"),
    Wrong(Quick, "machine-fails", r"Quick.command raised GeneratorExit \(wrong_banks.py, line"),
    Wrong(
        Chancy,
        "machine-is-deterministic",
        r"Chancy: two instances that were asked for 1 commands, with the same choices",
    ),
    Wrong(Textual, "machine-fails", "Textual.snapshot at offset 0 returned a record of a str, not bytes"),
    Wrong(Blank, "machine-fails", "Blank.snapshot at offset 0 returned a record of 0 bytes, not 1 to 1,048,576"),
    Wrong(Silent, "machine-fails", "Silent.command returned a NoneType, not bytes"),
    Wrong(Verbose, "machine-fails", "Verbose.command returned 1,048,577 bytes, not 0 to 1,048,576"),
    Wrong(lambda: Bank().no_such_name, "machine-fails", r"raised AttributeError: 'Bank' object"),  # type: ignore[attr-defined]
    Wrong(dict, "machine-fails", r"dict\(\) made a dict, not a StateMachine"),  # type: ignore[arg-type]
)
"""All of them but those that take many schedules to find."""
