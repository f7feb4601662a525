# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientAutoJoinTest."""

from raftlog.quorum.seam.effects import SendRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.following.observers import LEADER, answer_change, fetch_until_due, fetched, last_request, observer_of
from tests.quorum.leading.static_leaders import static_voters
from tests.quorum.messages import LOCAL
from tests.quorum.single_replica import SingleReplica, log_with, replica_key, voter_set_of

LEADING, OTHER, OLD = replica_key(LEADER), replica_key(3), replica_key(1, 9)


def _observer(*voters: ReplicaKey, auto_join: bool = True, can_become_voter: bool = True) -> SingleReplica:
    log = log_with([(1, 1)], voter_set_of(voters))
    return observer_of(log, auto_join=auto_join, can_become_voter=can_become_voter)


def _is_removal(sent: SendRequest) -> bool:
    message = sent.message
    assert isinstance(message, RemoveRaftVoterRequest)
    return (message.voter_id, message.voter_directory_id) == (OLD.id, OLD.directory_id)


def _is_addition(sent: SendRequest) -> bool:
    message = sent.message
    assert isinstance(message, AddRaftVoterRequest)
    return (message.voter_id, message.voter_directory_id) == (LOCAL.id, LOCAL.directory_id)


def test_auto_remove_old_voter() -> None:
    """It asks to remove its old entry, fetches, and asks again as long as the log has that entry."""
    core = _observer(LEADING, OLD)
    sent = fetch_until_due(core)
    assert _is_removal(sent)
    answer_change(core, sent, ErrorCode.NONE)
    assert _is_removal(fetch_until_due(core))


def test_auto_add_new_voter() -> None:
    """It asks to be added, fetches when the request has failed, and asks again; the answer may come before the set."""
    core = _observer(LEADING, OTHER)
    sent = fetch_until_due(core)
    assert _is_addition(sent)
    core.raft.request_failed(sent.number)
    core.settle()
    core.sleep(core.config.retry_backoff_ms)
    again = fetch_until_due(core)
    assert _is_addition(again)
    answer_change(core, again, ErrorCode.NONE)
    fetched(core, (LEADING, OTHER, LOCAL))
    assert core.raft.status.is_voter


def test_observer_removes_old_voter_and_auto_joins() -> None:
    """First the old entry goes, then the new one comes; then there is nothing to ask for."""
    core = _observer(LEADING, OLD)
    sent = fetch_until_due(core)
    assert _is_removal(sent)
    answer_change(core, sent, ErrorCode.NONE)
    fetched(core, (LEADING,))
    sent = fetch_until_due(core)
    assert _is_addition(sent)
    answer_change(core, sent, ErrorCode.NONE)
    fetched(core, (LEADING, LOCAL))
    assert core.raft.status.is_voter
    assert isinstance(fetch_until_due(core).message, FetchRequest)


def test_observers_do_not_auto_join() -> None:
    """A broker may not be a voter."""
    core = _observer(LEADING, OTHER, can_become_voter=False)
    assert isinstance(fetch_until_due(core).message, FetchRequest)


def test_observer_does_not_add_itself_when_auto_join_disabled() -> None:
    """An operator adds it."""
    core = _observer(LEADING, OTHER, auto_join=False)
    assert isinstance(fetch_until_due(core).message, FetchRequest)


def test_observer_does_not_auto_join_with_kraft_version_0() -> None:
    """The voters are configured."""
    core = observer_of(static_voters=static_voters((2, 3)))
    fetched(core)
    assert isinstance(last_request(core).message, FetchRequest)
