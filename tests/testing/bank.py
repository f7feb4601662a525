# SPDX-License-Identifier: Apache-2.0
"""A bank, replicated: money moves between accounts, and is neither made nor lost."""

import json
from collections.abc import Sequence

from raftlog.testing.state_machine import CommandChoices, StateMachine

NAMES = ("alice", "bob", "carol", "dave")


class Bank(StateMachine):
    """Accounts by name, each with 100 at first."""

    def __init__(self) -> None:
        self.accounts = dict.fromkeys(NAMES, 100)

    def command(self, choices: CommandChoices) -> bytes:
        """Return a transfer that a client asks for."""
        transfer = [choices.pick(NAMES), choices.pick(NAMES), choices.number(1, 50)]
        return json.dumps(transfer).encode()

    def apply(self, offset: int, command: bytes) -> None:
        """Transfer an amount, if there is so much."""
        source, target, amount = json.loads(command)
        if self.accounts[source] >= amount:
            self.accounts[source] -= amount
            self.accounts[target] += amount

    def snapshot(self) -> Sequence[bytes]:
        """Return a record per account."""
        return [json.dumps(each).encode() for each in sorted(self.accounts.items())]

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace all accounts."""
        self.accounts = dict(json.loads(each) for each in records)

    def check(self) -> None:
        """Find money that was made or lost."""
        total = sum(self.accounts.values())
        if total != 100 * len(NAMES):
            raise ValueError(f"the accounts have {total} together")
