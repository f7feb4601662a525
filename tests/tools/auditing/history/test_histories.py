# SPDX-License-Identifier: Apache-2.0
"""Telling the replicas of a log from the logs of another cluster."""

import attrs
from hypothesis import given

from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from raftlog.tools.auditing.judgement.replica_rules import judge_replicas
from tests.tools.auditing.made_quorum import MadeLog, histories, log_directory, voter, voters
from tests.work_counts import calls_made


def divided(*logs: PartitionEvidence) -> list[list[str]]:
    """The log directories that are together."""
    return [[each.place.log_directory for each in group] for group in by_history(logs, lambda log: log)]


def later(log: MadeLog, node: str, days: int = 1) -> PartitionEvidence:
    """A log like another one that was written some days later, on some node."""
    delay_ms = days * 86_400_000
    log.node = node
    log.epochs = [attrs.evolve(seen, timestamp=seen.timestamp + delay_ms) for seen in log.epochs]
    return log.evidence()


@given(histories())
def test_replicas_of_one_history_are_together(log: MadeLog) -> None:
    """Replicas of one quorum are never divided."""
    other = attrs.evolve(log, node="n2")
    assert divided(log.evidence(), other.evidence()) == [["n1", "n2"]]


def test_clusters_whose_first_leaders_differ() -> None:
    """With static voters, the first batch decides, if both logs have it."""
    one, other = MadeLog(), MadeLog()
    one.lead(1, (1, 2, 3))
    other.lead(2, (1, 2, 3))
    replica = MadeLog(node="n3")
    replica.lead(1, (1, 2, 3))
    logs = [one.evidence(), later(other, "n2"), replica.evidence()]
    assert divided(*logs) == [["n1", "n3"], ["n2"]]
    (finding,) = judge_replicas(logs, read_batches)
    assert (finding.rule, finding.offset, finding.epoch, finding.path) == (
        "cluster-twice",
        0,
        1,
        logs[1].files[0].task.path,
    )
    assert "leader 2 of voters 1, 2, 3, but in n1/" in finding.reason


def test_clusters_whose_voters_have_no_directory_in_common() -> None:
    """Directory ids decide, whatever the logs still have; a common one keeps them together."""
    old, new, both = voters(1, 2), voters(3, 4), voters(2, 3)
    one = MadeLog(start_offset=50).snapshot(50, epoch=1, named=old).data(2).evidence()
    other = MadeLog(start_offset=70, node="n2").snapshot(70, epoch=4, named=new).data(2).evidence()
    bridge = (
        MadeLog(start_offset=70, node="n2")
        .snapshot(60, epoch=4, named=both)
        .snapshot(70, epoch=4, named=new)
        .data(2)
        .evidence()
    )
    assert divided(one, other) == [["n1"], ["n2"]]
    assert divided(one, bridge) == [["n1", "n2"]]


def test_one_epoch_with_two_leaders_is_no_other_cluster() -> None:
    """Logs that began alike belong to one cluster, whatever leaders they had later: that is reported instead."""
    one, other = MadeLog(), MadeLog(node="n2")
    for log, leader_id in ((one, 1), (other, 2)):
        log.lead(1, (1, 2, 3))
        log.lead(leader_id, (1, 2, 3))
    logs = [one.evidence(), other.evidence()]
    assert divided(*logs) == [["n1", "n2"]]
    assert [finding.rule for finding in judge_replicas(logs, read_batches)] == ["replica-leader"]


def test_each_log_is_read_once() -> None:
    """One log more costs a few comparisons, not that all logs are read again: each here is of another cluster."""

    def work(clusters: int) -> int:
        logs = [MadeLog(node=f"n{number}") for number in range(clusters)]
        for number, log in enumerate(logs):
            log.bootstrap(voters(2 * number, 2 * number + 1))
            for epoch in range(20):
                log.lead(2 * number + epoch % 2, (2 * number, 2 * number + 1))
        evidence = [later(log, log.node, days) for days, log in enumerate(logs)]
        assert len(by_history(evidence, lambda log: log)) == clusters
        return calls_made(lambda: by_history(evidence, lambda log: log))

    assert work(20) < 2.2 * work(10)


def test_two_clusters_are_two_quorums_of_directories() -> None:
    """A node id that both clusters have is not taken for one node."""
    one, other = MadeLog().bootstrap(voters(1)), MadeLog().bootstrap(voters(1))
    other.others.clear()
    found = judge_directories(
        [
            log_directory("n1", 1, voter(1).voter_key.directory_id),
            log_directory("n2", 1, voter(1, 5).voter_key.directory_id),
            one.evidence(),
            later(other, "n2"),
        ]
    )
    assert [finding.rule for finding in found if finding.rule == "majority-missing"] == []
