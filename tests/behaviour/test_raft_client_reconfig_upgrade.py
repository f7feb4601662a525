# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientReconfigTest about kraft.version 0 and its upgrade."""

import pytest

from raftlog.errors import InvalidUpdateVersionError
from raftlog.quorum.seam.effects import SendRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.voters.kraft_version import KRaftVersion
from tests.quorum.following.observers import EPOCH, LEADER, fetch_until_due, fetched, observer_of
from tests.quorum.leading.static_leaders import fetch_all, leader_that_was_told, static_leader_of, static_voters, tell
from tests.quorum.messages import LOCAL, begin_quorum_epoch_request
from tests.quorum.single_replica import SingleReplica, replica_key

LEVEL_1 = KRaftVersion.KRAFT_VERSION_1


def _follower() -> SingleReplica:
    """Return replica 1 as a follower that is a static voter."""
    return observer_of(static_voters=static_voters((1, 2, 3)))


def _told(sent: SendRequest) -> bool:
    message = sent.message
    assert isinstance(message, UpdateRaftVoterRequest)
    levels = message.kraft_version_feature
    described = message.voter_id, message.voter_directory_id, levels.min_supported_version, levels.max_supported_version
    return described == (LOCAL.id, LOCAL.directory_id, 0, 1)


def _answer(core: SingleReplica, sent: SendRequest, error: ErrorCode, epoch: int = EPOCH) -> None:
    leader = UpdateRaftVoterResponseCurrentLeader(leader_id=LEADER, leader_epoch=epoch, host="localhost", port=9992)
    core.respond(sent.number, UpdateRaftVoterResponse(throttle_time_ms=0, error_code=error, current_leader=leader))


@pytest.mark.parametrize("answer", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_follower_sends_update_voter_with_kraft_version_0(answer: ErrorCode) -> None:
    """A follower tells its leader of itself once; a leader that is too old for that is not asked again."""
    core = _follower()
    sent = fetch_until_due(core)
    assert _told(sent)
    _answer(core, sent, answer)
    assert isinstance(fetch_until_due(core).message, FetchRequest)


@pytest.mark.parametrize("answer", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_follower_sends_update_voter_after_election_with_kraft_version_0(answer: ErrorCode) -> None:
    """Each new leader is told, because none knows what the one before was told."""
    core = _follower()
    sent = fetch_until_due(core)
    _answer(core, sent, answer)
    core.take_requests()
    core.request("", begin_quorum_epoch_request(LEADER, EPOCH + 1), version=1)
    assert _told(fetch_until_due(core))


def test_kraft_upgrade_version() -> None:
    """One batch with the version and the voters; the level is told from the moment of the request on."""
    core = leader_that_was_told((1, 2, 3))
    end = core.log.end_offset.offset
    core.raft.upgrade_kraft_version(LEVEL_1, epoch=1)
    assert core.raft.status.kraft_version is LEVEL_1
    core.settle()
    assert core.log.end_offset.offset == end + 2
    assert core.machine.last_voter_set.voter_keys == {LOCAL, replica_key(2), replica_key(3)}
    assert core.machine.last_voter_set_offset == end + 1


def test_update_voter_after_kraft_version_upgrade() -> None:
    """Once the upgrade is committed, a voter's new entry is written to the log."""
    core = leader_that_was_told((1, 2, 3))
    core.raft.upgrade_kraft_version(LEVEL_1, epoch=1)
    core.settle()
    assert tell(core, replica_key(2)) is ErrorCode.REQUEST_TIMED_OUT
    for each in (2, 3):
        fetch_all(core, replica_key(each))
    end = core.log.end_offset.offset
    assert tell(core, replica_key(2)) is ErrorCode.NONE
    assert core.machine.last_voter_set_offset == end


def test_invalid_kraft_upgrade_version() -> None:
    """It is refused until each voter has told that it supports the level."""
    core = static_leader_of((1, 2, 3))
    with pytest.raises(InvalidUpdateVersionError, match=r"\[2, 3\]"):
        core.raft.upgrade_kraft_version(LEVEL_1, epoch=1)
    tell(core, replica_key(2))
    with pytest.raises(InvalidUpdateVersionError, match=r"\[3\]"):
        core.raft.upgrade_kraft_version(LEVEL_1, epoch=1)
    assert core.raft.status.kraft_version is KRaftVersion.KRAFT_VERSION_0


def test_the_follower_of_a_static_quorum_fetches_before_it_tells() -> None:
    """Its period begins when it begins to follow."""
    core = _follower()
    fetched(core)
    core.sleep(1999)
    fetched(core)
    assert isinstance(core.take_requests()[-1].message, FetchRequest)
