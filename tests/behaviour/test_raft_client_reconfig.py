# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientReconfigTest."""

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import HostPort
from tests.quorum.leading.leaders import LOG_END, fetch
from tests.quorum.leading.voter_requests import EPOCH, ask, fenced_leader, leader_again
from tests.quorum.messages import begin_quorum_epoch_request, update_voter_request
from tests.quorum.single_replica import LISTENER, replica_key

# UpdateVoter


def test_update_voter() -> None:
    """The answer does not wait for the commit. The new entry is in force at once, and is a sign of the voter."""
    core = fenced_leader()
    core.sleep(2_999)
    assert ask(core, update_voter_request(replica_key(2), EPOCH, port=1)) == [ErrorCode.NONE]
    assert core.machine.last_voter_set.listeners(2).address(LISTENER) == HostPort("localhost", 1)
    assert (core.machine.last_voter_set_offset, core.raft.high_watermark) == (LOG_END, LOG_END)
    core.sleep(2_999)
    assert core.raft.role.epoch == EPOCH
    assert type(core.raft.role).__name__ == "Leader"


def test_update_voter_invalid_cluster_id() -> None:
    """A request of another cluster is refused; one that names none is not."""
    core = fenced_leader()
    other = update_voter_request(replica_key(2), EPOCH, port=1, cluster_id="other")
    assert ask(core, other) == [ErrorCode.INCONSISTENT_CLUSTER_ID]
    unnamed = update_voter_request(replica_key(2), EPOCH, port=1, cluster_id=None)
    assert ask(core, unnamed) == [ErrorCode.NONE]


def test_update_voter_old_epoch() -> None:
    """A voter that knows an old epoch learns the present one."""
    core = fenced_leader()
    core.request("", update_voter_request(replica_key(2), EPOCH - 1, port=1), version=0)
    (answer,) = [each.message for each in core.take_responses() if hasattr(each.message, "current_leader")]
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, EPOCH)
    assert (answer.current_leader.host, answer.current_leader.port) == ("localhost", 9991)


def test_update_voter_new_epoch() -> None:
    """An epoch that this replica does not know is refused, and not entered."""
    core = fenced_leader()
    request = update_voter_request(replica_key(2), EPOCH + 1, port=1)
    assert ask(core, request) == [ErrorCode.UNKNOWN_LEADER_EPOCH]
    assert core.raft.role.epoch == EPOCH


def test_update_voter_to_not_leader() -> None:
    """A follower refuses."""
    core = fenced_leader()
    core.request("", begin_quorum_epoch_request(2, EPOCH + 1), version=1)
    request = update_voter_request(replica_key(3), EPOCH + 1, port=1)
    assert ask(core, request) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_update_voter_without_fenced_previous_leaders() -> None:
    """A leader that has committed nothing in its epoch changes no voter."""
    core = leader_again((1, 2, 3))
    epoch = core.raft.role.epoch
    request = update_voter_request(replica_key(2), epoch, port=1)
    assert ask(core, request) == [ErrorCode.REQUEST_TIMED_OUT]
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, epoch))
    assert ask(core, request) == [ErrorCode.NONE]


def test_update_voter_with_none_voter() -> None:
    """The id of a voter, but another directory."""
    request = update_voter_request(replica_key(2, 7), EPOCH, port=1)
    assert ask(fenced_leader(), request) == [ErrorCode.VOTER_NOT_FOUND]


def test_update_voter_with_none_voter_id() -> None:
    """The id of no voter."""
    request = update_voter_request(replica_key(4), EPOCH, port=1)
    assert ask(fenced_leader(), request) == [ErrorCode.VOTER_NOT_FOUND]
