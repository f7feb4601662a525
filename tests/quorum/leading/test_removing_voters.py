# SPDX-License-Identifier: Apache-2.0
"""What becomes of a removal, of the voters that are left, and of a leader that is removed."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader, Resigned
from raftlog.quorum.seam.effects import FlushLog
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch
from tests.quorum.leading.voter_requests import ask, errors, fenced_leader, fetch_at_end, voter_ids
from tests.quorum.messages import LOCAL, begin_quorum_epoch_request, fetch_response, remove_voter_request
from tests.quorum.single_replica import replica_key


@pytest.mark.parametrize("key", [ReplicaKey(3), ReplicaKey(-1, replica_key(3).directory_id)])
def test_a_removal_without_an_id(key: ReplicaKey) -> None:
    """A removal names id and directory."""
    assert ask(fenced_leader(), remove_voter_request(key)) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("ms", "error"), [(3_000, []), (3_001, [ErrorCode.REQUEST_TIMED_OUT])])
def test_a_majority_of_the_voters_that_are_left_must_be_in_touch(ms: int, error: list[ErrorCode]) -> None:
    """Voter 3 was last heard of long ago: without voter 2, nothing would be committed."""
    core = fenced_leader()
    core.sleep(1_500)
    fetch_at_end(core, replica_key(2))
    core.sleep(ms - 1_500)
    assert ask(core, remove_voter_request(replica_key(2))) == error
    assert (voter_ids(core) == {1, 3}) == (error == [])


def test_kafka_does_not_look_whether_voters_are_in_touch() -> None:
    """Without a stabilisation time, a removal may leave too few."""
    core = fenced_leader(config=QuorumConfig(new_voter_stabilization_ms=0))
    for _ in range(3):
        core.sleep(1_500)
        fetch_at_end(core, replica_key(2))
    assert ask(core, remove_voter_request(replica_key(2))) == []
    assert voter_ids(core) == {1, 3}


def test_from_two_voters_to_one() -> None:
    """The leader alone commits the removal once it is flushed, and does without others from then on."""
    core = fenced_leader((1, 2), FlushLog)
    assert ask(core, remove_voter_request(replica_key(2))) == []
    assert (voter_ids(core), core.raft.high_watermark) == ({1}, LOG_END)
    core.let_go()
    assert (errors(core), core.raft.high_watermark) == ([ErrorCode.NONE], LOG_END + 1)
    core.sleep(100_000)
    assert isinstance(core.raft.role, Leader)


def test_the_high_watermark_does_not_fall_with_a_removal() -> None:
    """Voters 1 and 2 had committed a record that voter 3 lacks. Without 2, nothing is uncommitted (KAFKA-16530)."""
    core = fenced_leader()
    core.append(b"a")
    core.sleep(25)
    fetch_at_end(core, replica_key(2))
    assert core.raft.high_watermark == LOG_END + 1
    assert ask(core, remove_voter_request(replica_key(2))) == []
    assert core.raft.high_watermark == LOG_END + 1
    fetch(core, replica_key(3), ENDS[3])
    assert core.raft.high_watermark == LOG_END + 1


def test_a_removed_leader_does_not_count_itself() -> None:
    """Of the two voters that are left, both must have the record (KAFKA-16530)."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    fetch_at_end(core, replica_key(2))
    assert (core.raft.high_watermark, type(core.raft.role)) == (LOG_END, Leader)
    fetch_at_end(core, replica_key(3))
    assert type(core.raft.role) is Resigned


def test_a_removed_leader_needs_a_majority_of_the_others_in_touch() -> None:
    """It does not count itself for the check of quorum either: one of two is not enough."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    core.sleep(1_500)
    fetch_at_end(core, replica_key(2))
    core.sleep(1_499)
    assert isinstance(core.raft.role, Leader)
    core.sleep(1)
    assert isinstance(core.raft.role, Resigned)


def test_a_removed_leader_resigns_even_if_its_request_has_expired() -> None:
    """Kafka's leader would lead on as an observer."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    core.sleep(2_000)
    assert (errors(core), type(core.raft.role)) == ([ErrorCode.REQUEST_TIMED_OUT], Leader)
    fetch_at_end(core, replica_key(2))
    fetch_at_end(core, replica_key(3))
    assert (errors(core), type(core.raft.role)) == ([], Resigned)


def test_a_removed_leader_may_be_asked_to_resign() -> None:
    """Before the removal is committed it still leads, though it is no voter (KAFKA-17332)."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    core.raft.resign(core.raft.role.epoch)
    core.settle()
    role = core.raft.role
    assert isinstance(role, Resigned)
    assert {each.id for each in role.preferred_candidates} == {2, 3}
    assert errors(core) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_truncated_removal_of_the_leader_makes_it_a_voter_again() -> None:
    """Another leader, elected by the voters before, lacks the record. Later, this replica begins an election."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    core.take_requests()
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert voter_ids(core) == {2, 3}
    (sent,) = core.take_requests()
    core.respond(sent.number, fetch_response(4, 2, diverging=OffsetAndEpoch(LOG_END, 3)))
    assert voter_ids(core) == {1, 2, 3}
    core.sleep(2_000)
    assert type(core.raft.role).__name__ == "Prospective"
