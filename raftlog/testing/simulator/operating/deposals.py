# SPDX-License-Identifier: Apache-2.0
"""Lets a leader crash while a replica has no room for its first record, and another one has other records there."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.disks.aiming import Deposal
from raftlog.testing.simulator.machine import Machine

AT_ONCE_MS: Final = 20
"""So soon, on average, a leader crashes after its first record was refused: before it is fetched again."""


@attrs.frozen(eq=False)
class Deposals:
    """Leaders that are to be followed by one of an earlier epoch.

    Attributes:
        machines: by replica.
        history: knows the leaders.
        after: calls a function after a mean time in ms, drawn as a choice of a kind.
    """

    machines: Mapping[int, Machine]
    history: CommittedHistory
    after: Callable[[int, Callable[[], None], str], None]

    def of(self, replica_id: int) -> Deposal:
        """Return how the leaders are deposed that a replica follows."""
        return functools.partial(self._deposal, replica_id)

    def _deposal(self, replica_id: int, begun: OffsetAndEpoch) -> Callable[[], object] | None:
        leader = self.history.leaders.get(begun.epoch)
        ledgers = [each.directory.ledger for each in self.machines.values()]
        if leader is None or leader.key.id == replica_id or not any(_is_rival(each, begun) for each in ledgers):
            return None
        return lambda: self.after(AT_ONCE_MS, self.machines[leader.key.id].crash, "deposal")


def _is_rival(ledger: Ledger, begun: OffsetAndEpoch) -> bool:
    """Whether a disk durably has a record of an earlier epoch where another one begins."""
    there = ledger.batches[ledger.index_of(begun.offset) :][:1]
    return ledger.durable_end > begun.offset and any(each.epoch < begun.epoch for each in there)
