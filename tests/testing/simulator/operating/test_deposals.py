# SPDX-License-Identifier: Apache-2.0
"""A leader is deposed while another replica may lead again with other records."""

from types import SimpleNamespace
from typing import Any

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.operating.deposals import Deposals
from tests.testing.simulator.checks.quorum_disks import QuorumDisks


@pytest.mark.parametrize(
    ("rival", "durable_end", "begun", "is_deposed"),
    [
        ((0, 1, 1), 3, OffsetAndEpoch(2, 2), True),
        ((0, 1, 1), 2, OffsetAndEpoch(2, 2), False),
        ((0, 1), 2, OffsetAndEpoch(2, 2), False),
        ((0, 1, 2), 3, OffsetAndEpoch(2, 2), False),
        ((0, 1, 1), 3, OffsetAndEpoch(1, 2), True),
        ((0, 1, 1), 3, OffsetAndEpoch(2, 3), False),
        ((), 5, OffsetAndEpoch(2, 2), False),
    ],
    ids=["rival", "not-durable", "shorter", "same-epoch", "earlier", "unknown-leader", "empty"],
)
def test_a_leader_is_deposed_if_another_disk_has_earlier_records_there(
    rival: tuple[int, ...], durable_end: int, begun: OffsetAndEpoch, *, is_deposed: bool
) -> None:
    """They are durable; it crashes as it is told to, and no leader does by its own refusal."""
    disks, crashed = QuorumDisks(3), list[int]()
    disks.ledgers[3].batches[:] = [StoredBatch(offset, epoch, offset + 1, 0) for offset, epoch in enumerate(rival)]
    disks.ledgers[3].durable_end = durable_end
    disks.witness.history.leaders[2] = disks.ledgers[2]
    machines: Any = {
        each: SimpleNamespace(id=each, directory=SimpleNamespace(ledger=ledger))
        for each, ledger in disks.ledgers.items()
    }
    deposals = Deposals(machines, disks.witness.history, lambda machine: crashed.append(machine.id))
    depose = deposals.of(1)(begun)
    assert deposals.of(2)(begun) is None
    assert (depose is not None, crashed) == (is_deposed, [])
    if depose is not None:
        depose()
        assert crashed == [2]
