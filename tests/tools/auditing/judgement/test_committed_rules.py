# SPDX-License-Identifier: Apache-2.0
"""The verdict on a quorum as a finding, where no single file and no two logs show the loss."""

import pytest

from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters


def node(node_id: int, end: int, *, snapshot: int = 0, epoch: int = 1, begins: int = 0) -> list[PartitionEvidence]:
    """A node with a log of voters 1, 2 and 3, led by 1; a later epoch begins at an offset."""
    log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3))
    if epoch > 1:
        log.data(begins - log.end_offset).lead(1, (1, 2, 3), epoch=epoch)
    log.data(end - log.end_offset)
    if snapshot:
        log.snapshot(snapshot, epoch=1, named=voters(1, 2, 3))
    log.state(epoch, leader_id=1)
    return [log_directory(log.node, node_id, voter(node_id).voter_key.directory_id), log.evidence()]


def found(*nodes: list[PartitionEvidence]) -> list[tuple[str, str, int | None]]:
    """Rule, node and offset of each finding."""
    evidence = [place for each in nodes for place in each]
    return [(each.rule, each.path.partition("/")[0], each.offset) for each in judge_directories(evidence)]


@pytest.mark.parametrize(("ends", "expected"), [((25, 19, 18), [("committed-lost", "n3", 19)]), ((25, 20, 18), [])])
def test_what_a_snapshot_proves_and_a_majority_lacks(
    ends: tuple[int, int, int], expected: list[tuple[str, str, int]]
) -> None:
    """The voter that lacks the most is named, with the first offset that no majority has; one voter may lack it."""
    voting = [node(each, end) for each, end in enumerate(ends, 1)]
    assert found(*voting, node(9, 25, snapshot=20)) == expected


def test_a_leader_that_lacks_what_it_wrote() -> None:
    """Another log has more of the leader's epoch, and no majority has that."""
    assert found(node(1, 19), node(2, 19), node(3, 19), node(9, 25)) == [("committed-lost", "n1", 19)]
    assert found(node(1, 19), node(2, 25), node(3, 25), node(9, 25)) == []


def test_a_log_that_went_on_without_what_a_lone_snapshot_proves() -> None:
    """No log has the records of the snapshot any more, so that only the verdict shows the loss."""
    observer = MadeLog(25, node="n9").data(0).snapshot(25, epoch=1, named=voters(1, 2, 3)).state(1, leader_id=1)
    directory = log_directory("n9", 9, voter(9).voter_key.directory_id)
    rewriting = [node(each, 22, epoch=2, begins=19) for each in (1, 2, 3)]

    assert found(*rewriting, [directory, observer.evidence()])[:1] == [("committed-lost", "n1", 19)]
