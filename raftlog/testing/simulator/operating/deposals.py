# SPDX-License-Identifier: Apache-2.0
"""Lets a leader crash while a replica has no room for its first record, and another one has other records there."""

import functools
from collections.abc import Callable, Mapping

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.disks.aiming import Deposal
from raftlog.testing.simulator.machine import Machine


@attrs.frozen(eq=False)
class Deposals:
    """Leaders that are to be followed by one of an earlier epoch.

    Attributes:
        machines: by replica.
        history: knows the leaders.
        crash_soon: crashes a machine after a while.
    """

    machines: Mapping[int, Machine]
    history: CommittedHistory
    crash_soon: Callable[[Machine], None]

    def of(self, replica_id: int) -> Deposal:
        """Return how the leaders are deposed that a replica follows."""
        return functools.partial(self._deposal, replica_id)

    def _deposal(self, replica_id: int, begun: OffsetAndEpoch) -> Callable[[], object] | None:
        leader = self.history.leaders.get(begun.epoch)
        ledgers = [each.directory.ledger for each in self.machines.values()]
        if leader is None or leader.key.id == replica_id or not any(_is_rival(each, begun) for each in ledgers):
            return None
        return lambda: self.crash_soon(self.machines[leader.key.id])


def _is_rival(ledger: Ledger, begun: OffsetAndEpoch) -> bool:
    """Whether a disk durably has a record of an earlier epoch where another one begins."""
    there = ledger.batches[ledger.index_of(begun.offset) :][:1]
    return ledger.durable_end > begun.offset and any(each.epoch < begun.epoch for each in there)
