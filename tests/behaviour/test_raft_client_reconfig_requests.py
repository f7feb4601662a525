# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientReconfigTest about requests to a leader that change voters."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Leader, Resigned, Unattached
from raftlog.records.messages.raft.election_messages import EndQuorumEpochRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import HostPort, ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch, leader_of
from tests.quorum.leading.voter_requests import (
    EPOCH,
    add,
    ask,
    catch_up,
    errors,
    fenced_leader,
    fetch_at_end,
    leader_again,
    question,
    static_leader,
    voter_ids,
)
from tests.quorum.messages import (
    LOCAL,
    add_voter_request,
    api_versions_response,
    begin_quorum_epoch_request,
    fetch_response,
    remove_voter_request,
    update_voter_request,
)
from tests.quorum.single_replica import LISTENER, replica_key

JOINER = replica_key(4)

# AddVoter


def test_add_voter() -> None:
    """The new voter is asked for its versions. It counts once its record is in the log. The commit is answered."""
    core = fenced_leader()
    catch_up(core, JOINER)
    core.take_requests()
    assert ask(core, add_voter_request(JOINER, port=77)) == []
    asked = question(core)
    assert asked.destination == (4, "localhost", 77)
    core.respond(asked.number, api_versions_response())
    assert (errors(core), voter_ids(core), core.raft.high_watermark) == ([], {1, 2, 3, 4}, LOG_END)
    fetch_at_end(core, replica_key(2))
    assert (errors(core), core.raft.high_watermark) == ([], LOG_END)
    fetch_at_end(core, JOINER)
    assert (errors(core), core.raft.high_watermark) == ([ErrorCode.NONE], LOG_END + 1)


def test_add_voter_invalid_cluster_id() -> None:
    """A request of another cluster is refused; one that names none is not."""
    core = fenced_leader()
    assert ask(core, add_voter_request(JOINER, cluster_id="other")) == [ErrorCode.INCONSISTENT_CLUSTER_ID]
    assert ask(core, add_voter_request(JOINER, cluster_id=None)) == []


def test_add_voter_to_not_leader() -> None:
    """A follower refuses."""
    core = fenced_leader()
    core.request("", begin_quorum_epoch_request(2, EPOCH + 1), version=1)
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_add_voter_with_missing_default_listener() -> None:
    """The new voter needs an address at the listener of the replicas."""
    assert ask(fenced_leader(), add_voter_request(JOINER, listener="OTHER")) == [ErrorCode.INVALID_REQUEST]


def test_add_voter_with_missing_directory_id() -> None:
    """The new voter needs a directory id."""
    assert ask(fenced_leader(), add_voter_request(ReplicaKey(4))) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("levels", [None, (0, 0), (2, 2), (1, 0), (-1, 1)])
def test_add_voter_invalid_feature_version(levels: tuple[int, int] | None) -> None:
    """The new voter must support the kraft.version in force."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    core.respond(question(core).number, api_versions_response(levels))
    assert (errors(core), voter_ids(core)) == ([ErrorCode.INVALID_REQUEST], {1, 2, 3})


def test_add_voter_with_kraft_version_0() -> None:
    """Static voters are not added to."""
    assert ask(static_leader(), add_voter_request(JOINER)) == [ErrorCode.UNSUPPORTED_VERSION]


def test_add_voter_with_existing_voter() -> None:
    """An id is there once, whatever the directory."""
    assert ask(fenced_leader(), add_voter_request(replica_key(3, 7))) == [ErrorCode.DUPLICATE_VOTER]


def test_add_voter_with_pending_add_voter() -> None:
    """The first request waits for the new voter's versions, and then for the commit: a second one is refused."""
    core = fenced_leader()
    catch_up(core, JOINER, replica_key(5))
    assert ask(core, add_voter_request(JOINER)) == []
    assert ask(core, add_voter_request(replica_key(5))) == [ErrorCode.REQUEST_TIMED_OUT]
    core.respond(question(core).number, api_versions_response())
    assert ask(core, add_voter_request(replica_key(5))) == [ErrorCode.REQUEST_TIMED_OUT]
    catch_up(core, JOINER, ms=0)
    assert errors(core) == [ErrorCode.NONE]
    assert ask(core, add_voter_request(replica_key(5))) == []


def test_add_voter_with_pending_remove_voter() -> None:
    """A removal is not committed yet."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(replica_key(3))) == []
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]


def test_add_voter_without_fenced_previous_leaders() -> None:
    """A leader that has committed nothing in its epoch adds no voter."""
    core = leader_again((1, 2, 3))
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]


def test_add_voter_with_lagging_new_voter() -> None:
    """The new voter lacks the last record."""
    core = fenced_leader()
    for _ in range(5):
        core.sleep(500)
        fetch(core, replica_key(2), ENDS[3])
        fetch(core, JOINER, ENDS[2])
    core.take_responses()
    assert ask(core, add_voter_request(JOINER)) == []
    core.respond(question(core).number, api_versions_response())
    assert (errors(core), voter_ids(core)) == ([ErrorCode.REQUEST_TIMED_OUT], {1, 2, 3})


def test_add_voter_with_api_versions_from_incorrect_node() -> None:
    """A response that belongs to no request to the new voter is ignored, until the time is over."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    core.respond(question(core).number + 1, api_versions_response())
    assert (errors(core), voter_ids(core)) == ([], {1, 2, 3})
    core.sleep(2_000)
    assert errors(core) == [ErrorCode.REQUEST_TIMED_OUT]


def test_add_voter_timeout() -> None:
    """The answer says that it took too long. The new voter is in the set, and its record is committed later."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert add(core, JOINER) == []
    core.sleep(1_999)
    assert errors(core) == []
    core.sleep(1)
    assert (errors(core), voter_ids(core)) == ([ErrorCode.REQUEST_TIMED_OUT], {1, 2, 3, 4})
    assert ask(core, remove_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]
    catch_up(core, JOINER, ms=0)
    assert (errors(core), core.raft.high_watermark) == ([], LOG_END + 1)
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.DUPLICATE_VOTER]


@pytest.mark.parametrize("is_written", [False, True])
def test_add_voter_fails_when_losing_leadership(is_written: bool) -> None:
    """Before and after the record is written, another leader ends the request."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    if is_written:
        core.respond(question(core).number, api_versions_response())
    core.request("", begin_quorum_epoch_request(2, EPOCH + 1), version=1)
    assert errors(core) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


# RemoveVoter


def test_remove_voter() -> None:
    """The removal is in force once its record is in the log: the rest of the voters commits it. Then it is answered."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(replica_key(3))) == []
    assert (voter_ids(core), core.raft.high_watermark) == ({1, 2}, LOG_END)
    fetch_at_end(core, replica_key(3))
    assert (errors(core), core.raft.high_watermark) == ([], LOG_END)
    fetch_at_end(core, replica_key(2))
    assert (errors(core), core.raft.high_watermark) == ([ErrorCode.NONE], LOG_END + 1)


def test_remove_voter_is_leader() -> None:
    """A removed leader leads until the others have committed the removal. It resigns, and ends as an observer."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(LOCAL)) == []
    fetch_at_end(core, replica_key(2))
    assert (type(core.raft.role), core.raft.high_watermark) == (Leader, LOG_END)
    fetch_at_end(core, replica_key(3))
    assert errors(core) == [ErrorCode.NONE]
    resigned = core.raft.role
    assert isinstance(resigned, Resigned)
    ended = [each.message for each in core.take_requests() if isinstance(each.message, EndQuorumEpochRequest)]
    candidates = [[one.candidate_id for one in each.topics[0].partitions[0].preferred_candidates] for each in ended]
    assert candidates == [[2, 3], [2, 3]]
    core.sleep(5_000)
    assert core.raft.role == Unattached(EPOCH + 1)


def test_remove_voter_invalid_cluster_id() -> None:
    """A request of another cluster is refused; one that names none is not."""
    core = fenced_leader()
    other = remove_voter_request(replica_key(3), cluster_id="other")
    assert ask(core, other) == [ErrorCode.INCONSISTENT_CLUSTER_ID]
    assert ask(core, remove_voter_request(replica_key(3), cluster_id=None)) == []


def test_remove_voter_to_not_leader() -> None:
    """A follower refuses."""
    core = fenced_leader()
    core.request("", begin_quorum_epoch_request(2, EPOCH + 1), version=1)
    assert ask(core, remove_voter_request(replica_key(3))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_remove_voter_with_pending_remove_voter() -> None:
    """One removal at a time."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(replica_key(3))) == []
    assert ask(core, remove_voter_request(replica_key(2))) == [ErrorCode.REQUEST_TIMED_OUT]


def test_remove_voter_with_pending_add_voter() -> None:
    """A new voter is being asked for its versions."""
    core = fenced_leader()
    assert ask(core, add_voter_request(JOINER)) == []
    assert ask(core, remove_voter_request(replica_key(3))) == [ErrorCode.REQUEST_TIMED_OUT]


def test_remove_voter_without_fenced_previous_leaders() -> None:
    """A leader that has committed nothing in its epoch removes no voter."""
    core = leader_again((1, 2, 3))
    assert ask(core, remove_voter_request(replica_key(3))) == [ErrorCode.REQUEST_TIMED_OUT]


def test_remove_voter_timed_out() -> None:
    """The answer says that it took too long, but the voter is removed."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(replica_key(3))) == []
    core.sleep(2_000)
    assert (errors(core), voter_ids(core)) == ([ErrorCode.REQUEST_TIMED_OUT], {1, 2})


def test_remove_voter_with_kraft_version_0() -> None:
    """Static voters are not removed."""
    assert ask(static_leader(), remove_voter_request(replica_key(2))) == [ErrorCode.UNSUPPORTED_VERSION]


def test_remove_voter_with_none_voter() -> None:
    """The id of a voter, but another directory."""
    assert ask(fenced_leader(), remove_voter_request(replica_key(3, 7))) == [ErrorCode.VOTER_NOT_FOUND]


def test_remove_voter_with_none_voter_id() -> None:
    """The id of no voter."""
    assert ask(fenced_leader(), remove_voter_request(JOINER)) == [ErrorCode.VOTER_NOT_FOUND]


def test_remove_voter_to_empty_voter_set() -> None:
    """The last voter stays."""
    assert ask(fenced_leader((1,)), remove_voter_request(LOCAL)) == [ErrorCode.VOTER_NOT_FOUND]


def test_remove_voter_fails_when_losing_leadership() -> None:
    """Another leader ends the request. The removal stays in force until it is truncated."""
    core = fenced_leader()
    assert ask(core, remove_voter_request(replica_key(3))) == []
    core.request("", begin_quorum_epoch_request(2, EPOCH + 1), version=1)
    assert (errors(core), voter_ids(core)) == ([ErrorCode.NOT_LEADER_OR_FOLLOWER], {1, 2})
    core.respond(core.take_requests()[-1].number, fetch_response(EPOCH + 1, 2, diverging=ENDS[3]))
    assert voter_ids(core) == {1, 2, 3}


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


def test_update_voter_with_kraft_version_0() -> None:
    """Static voters are not updated in the log: Kafka 4.3.1 keeps what they report in memory."""
    core = static_leader()
    end = core.log.end_offset
    request = update_voter_request(replica_key(2), core.raft.role.epoch, port=1)
    assert ask(core, request) == [ErrorCode.NONE]
    assert core.log.end_offset == end


def test_update_voter_with_pending_add_voter() -> None:
    """A new voter is being asked for its versions."""
    core = fenced_leader()
    assert ask(core, add_voter_request(JOINER)) == []
    request = update_voter_request(replica_key(2), EPOCH, port=1)
    assert ask(core, request) == [ErrorCode.REQUEST_TIMED_OUT]


def test_leader_updates_voter() -> None:
    """A leader whose own entry is outdated corrects it when its epoch starts."""
    core = leader_of((1, 2, 3), port=77)
    assert core.machine.last_voter_set.listeners(1).address(LISTENER) == HostPort("localhost", 77)
    assert (core.machine.last_voter_set_offset, core.log.end_offset.offset) == (LOG_END - 1, LOG_END)
