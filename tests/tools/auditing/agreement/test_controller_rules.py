# SPDX-License-Identifier: Apache-2.0
"""Controllers that are registered, are no voters, and keep a cluster from an upgrade."""

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement.controller_rules import judge_controllers
from raftlog.tools.auditing.evidence import ControllerSeen, PartitionEvidence
from tests.tools.auditing.made_quorum import MadeLog, voters

GONE = -1
"""Stands for the level of a controller whose registration was taken away."""


def log_with(
    *registered: tuple[int, int, int], snapshot: tuple[int, tuple[tuple[int, int], ...]] | None = None
) -> PartitionEvidence:
    """A log of voters 1, 2 and 3 that ends at 40.

    Args:
        registered: offset, controller id and level of each registration.
        snapshot: end of a snapshot, and controller id and level of each registration in it.
    """
    log = MadeLog().bootstrap(voters(1, 2, 3)).data(37)
    seen = tuple(ControllerSeen(offset, 100 * offset, 1, controller, level) for offset, controller, level in registered)
    if snapshot is not None:
        log.snapshot(snapshot[0], epoch=1, named=voters(1, 2, 3))
    files = []
    for file in log.evidence().files:
        if file.task.kind is FileKind.LOG:
            file = attrs.evolve(file, controllers=seen)
        elif snapshot is not None and file.task.snapshot_id == OffsetAndEpoch(snapshot[0], 1):
            of_snapshot = (ControllerSeen(place, 0, 1, *each) for place, each in enumerate(snapshot[1], 4))
            file = attrs.evolve(file, controllers=tuple(of_snapshot))
        files.append(file)
    return PartitionEvidence(log.place, tuple(files))


def found(evidence: PartitionEvidence) -> list[tuple[str, int | None, int | None]]:
    """Return the rule, the position and the offset of each finding."""
    return [(finding.rule, finding.position, finding.offset) for finding in judge_controllers(evidence)]


VOTERS = ((5, 1, 25), (6, 2, 24), (7, 3, 25))


@pytest.mark.parametrize(("level", "caps"), [(0, True), (23, True), (24, False), (25, False), (GONE, False)])
def test_a_controller_that_was_removed(level: int, caps: bool) -> None:
    """It bars the way to the level that every voter supports, unless it supports that too, or is unregistered."""
    assert found(log_with(*VOTERS, (9, 4, level))) == ([("controller-caps", 900, 9)] if caps else [])


def test_a_voter_caps_itself() -> None:
    """That is a rolling upgrade, which has not reached each voter yet."""
    assert found(log_with(*VOTERS, (9, 2, 7))) == []


def test_the_last_registration_counts() -> None:
    """A controller that was upgraded has registered again."""
    assert found(log_with(*VOTERS, (9, 4, 7), (10, 4, 25))) == []
    assert found(log_with(*VOTERS, (9, 4, 25), (10, 4, 7))) == [("controller-caps", 1000, 10)]
    assert found(log_with(*VOTERS, (9, 4, 7), (10, 4, GONE))) == []


def test_controllers_of_a_snapshot() -> None:
    """What the newest snapshot says takes the place of what the log said before its end, not of what it says after."""
    registered = ((1, 25), (2, 24), (3, 25))
    assert found(log_with(*VOTERS, (9, 4, 7), snapshot=(20, registered))) == []
    assert found(log_with(*VOTERS, (20, 4, 7), snapshot=(20, registered))) == [("controller-caps", 2000, 20)]
    assert found(log_with(snapshot=(20, (*registered, (4, 7))))) == [("controller-caps", 0, 7)]


def test_without_registrations_nothing_is_said() -> None:
    """Nor where no voter is registered: static voters register with a later release."""
    assert found(log_with()) == []
    assert found(log_with((9, 4, 7))) == []
