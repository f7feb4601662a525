# SPDX-License-Identifier: Apache-2.0
"""Tests of clients that are left without an answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.roles.roles import Leader, Unattached
from raftlog.quorum.seam.effects import AppendOutcome, EndAppend, EndRead, ReadOutcome
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.checks.client_oracle import ClientOracle
from raftlog.testing.simulator.choices import ReplayedChoices
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.simulator.workload import Workload


class _Process:
    """A process whose replica leads, until it is told otherwise, and gives each request the next number."""

    def __init__(self) -> None:
        self._number = 0
        self.raft = SimpleNamespace(
            role=Leader(1, 1, granting_voters=(1,), voters=(1,)),
            append=lambda values, epoch: PendingAppend(self._next(), self._number * 10),
            read_barrier=self._next,
        )

    def _next(self) -> int:
        self._number += 1
        return self._number


def _begun(kind: str) -> tuple[Workload, Any]:
    """Return clients of which one waits for an append, or for a read, of a process."""
    workload, process = Workload(ClientOracle(), ReplayedChoices({}), BUILT_IN), _Process()
    if kind == "append":
        workload.append(process)  # type: ignore[arg-type]
    else:
        workload.read(process, 0, 0)  # type: ignore[arg-type]
    return workload, process


@pytest.mark.parametrize("kind", ["append", "read"])
def test_a_request_ends_with_the_leadership(kind: str) -> None:
    """It may wait while its replica leads, and must have ended when it does not; other processes do not count."""
    workload, process = _begun(kind)
    workload.check_ended(process)
    process.raft.role = Unattached(2)
    workload.check_ended(_Process())  # type: ignore[arg-type]
    with pytest.raises(ViolationError, match="requests-end"):
        workload.check_ended(process)
    if kind == "append":
        workload.append_ended(process, EndAppend(1, 10, AppendOutcome.UNKNOWN))
    else:
        workload.read_ended(process, EndRead(1, ReadOutcome.FAILED), 0)
    workload.check_ended(process)


def test_a_process_that_has_crashed_leaves_its_appends() -> None:
    """They are unknown, and nothing waits for them any more."""
    workload, process = _begun("append")
    process.raft.role = Unattached(2)
    workload.crashed(process)
    workload.check_ended(process)
