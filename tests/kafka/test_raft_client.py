# SPDX-License-Identifier: Apache-2.0
"""Kafka's own raft client and raftlog's core do the same: elections, votes, following a leader, leading, appending."""

from collections import Counter
from pathlib import Path

import pytest

from raftlog.records.messages.raft.error_codes import ErrorCode
from tests.kafka import dump_tool
from tests.kafka.raft_oracle import RaftOracle
from tests.kafka.raft_sequences import FATAL, SideBySide

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(
        bool(dump_tool.missing_programs()),
        reason=f"Kafka's code needs {', '.join(dump_tool.missing_programs())} (Java 17 and Maven)",
    ),
]

SEQUENCES = 5_000
INPUTS = 40


def test_a_replica_does_what_kafkas_does(tmp_path: Path) -> None:
    """Answers, requests, roles, stored election states, log ends and high watermarks are equal after every input.

    So are the records of a leader, byte for byte but for the order of the voters that granted their vote. A sequence
    ends early when Kafka's client dies of an input, which loses at most a tenth of them.
    """
    inputs, roles, errors, fatal = Counter[str](), Counter[str](), Counter[int](), Counter[str]()
    with RaftOracle(tmp_path) as oracle:
        for seed in range(SEQUENCES):
            outcome = SideBySide(oracle, seed).run(INPUTS)
            inputs += outcome.inputs
            roles += outcome.roles
            errors += outcome.errors
            fatal.update([outcome.fatal] if outcome.fatal else [])
    print(f"{SEQUENCES} sequences: {dict(inputs)}, {dict(roles)}, {dict(errors)}, {dict(fatal)}")

    assert set(fatal) <= set(FATAL)
    assert fatal.total() <= SEQUENCES // 10
    assert min(roles[role] for role in ("Unattached", "Prospective", "Candidate", "Follower", "Resigned")) > 500
    assert roles["Leader"] > 10_000
    assert inputs["append"] > 5_000
    answered = {
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_VOTER_KEY,
    }
    assert all(errors[code] > 100 for code in answered)
