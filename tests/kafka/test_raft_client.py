# SPDX-License-Identifier: Apache-2.0
"""Kafka's own raft client and raftlog's core do the same, whatever they are asked, told, or have to suffer."""

from raftlog.records.messages.raft.error_codes import ErrorCode
from tests.kafka import dump_tool
from tests.kafka.raft_both_replicas import FATAL
from tests.kafka.raft_campaign import INPUTS, PROCESSES, run_campaign, shown_disagreement

pytestmark = dump_tool.marks("Kafka's code")

SEQUENCES = 5_000


def test_a_replica_does_what_kafkas_does() -> None:
    """Answers, requests, roles, stored election states, log ends and high watermarks are equal after every input.

    So is what a listener was told, and has read. At the end, and before each restart, the logs are equal record by
    record, but for the order of the voters that granted their vote; so are the voter sets and the snapshots. A sequence
    ends early when Kafka's client dies of an input, which loses at most a tenth of them.
    """
    figures = run_campaign(range(SEQUENCES), INPUTS, processes=PROCESSES)
    print(figures)

    assert not figures.disagreements, "\n".join(shown_disagreement(*each) for each in figures.disagreements)
    assert set(figures.fatal) <= set(FATAL)
    assert figures.fatal.total() <= SEQUENCES // 10
    roles, inputs, errors = figures.roles, figures.inputs, figures.errors
    assert min(roles[role] for role in ("Unattached", "Prospective", "Candidate", "Follower", "Resigned")) > 500
    assert roles["Leader"] > 10_000
    assert inputs["append"] > 5_000
    often = (
        "restart",
        "failure",
        "listener",
        "upgrade",
        "snapshot",
        "UpdateRaftVoterRequest",
        "AddRaftVoterRequest",
        "RemoveRaftVoterRequest",
        "DescribeQuorumRequest",
        "FetchSnapshotRequest",
        "FetchSnapshotResponse",
    )
    assert min(inputs[each] for each in often) > 1_000
    assert min(inputs[each] for each in ("AddRaftVoterResponse", "ApiVersionsResponse")) > 200
    assert min(inputs["resign"], inputs["shutdown"]) > 300
    assert inputs["clean"] > 200
    answered = {
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_VOTER_KEY,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert all(errors[code] > 100 for code in answered)
