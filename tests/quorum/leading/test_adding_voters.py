# SPDX-License-Identifier: Apache-2.0
"""Which replica may become a voter, when, and what becomes of the request."""

from collections.abc import Sequence

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import FlushLog
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch
from tests.quorum.leading.voter_requests import (
    add,
    ask,
    catch_up,
    errors,
    fenced_leader,
    fetch_at_end,
    question,
    voter_ids,
)
from tests.quorum.messages import add_voter_request, api_versions_response, remove_voter_request
from tests.quorum.single_replica import replica_key

JOINER = replica_key(4)
AS_KAFKA = QuorumConfig(new_voter_stabilization_ms=0)
HOUR_MS = 3_600_000


def is_added(core: SlowDisk, key: ReplicaKey = JOINER) -> bool:
    """Ask for a new voter, and answer what it is asked; return whether it is a voter then."""
    refused = add(core, key)
    assert refused in ([], [ErrorCode.REQUEST_TIMED_OUT])
    assert (refused == []) == (key.id in voter_ids(core))
    return refused == []


def fetch_at(core: SlowDisk, times: Sequence[int], key: ReplicaKey = JOINER) -> None:
    """Let a replica fetch at the log end, and a voter too, at some times."""
    for each in times:
        core.sleep(each - core.now_ms)
        fetch_at_end(core, replica_key(2))
        fetch_at_end(core, key)


@pytest.mark.parametrize(("ms", "expected"), [(1_999, False), (2_000, True)])
def test_the_stabilisation_time(ms: int, expected: bool) -> None:
    """A replica has fetched at the log end since it was seen first, at 1,000 ms."""
    core = fenced_leader()
    fetch_at(core, [1_000, 2_000, 1_000 + ms])
    assert is_added(core) == expected


@pytest.mark.parametrize(("gap_ms", "expected"), [(2_000, True), (2_001, False)])
def test_a_replica_that_was_not_heard_of_begins_anew(gap_ms: int, expected: bool) -> None:
    """Between two fetches too much time has passed, though the log has not grown."""
    core = fenced_leader()
    fetch_at(core, [1_000, 1_000 + gap_ms])
    assert is_added(core) == expected


@pytest.mark.parametrize(("ms", "expected"), [(2_000, True), (2_001, False)])
def test_the_last_fetch_must_be_recent(ms: int, expected: bool) -> None:
    """A replica that was steady has not fetched of late."""
    core = fenced_leader()
    fetch_at(core, [1_000, 3_000])
    core.sleep(ms)
    assert is_added(core) == expected


@pytest.mark.parametrize(("lag_ms", "expected"), [(2_000, True), (2_001, False)])
def test_a_replica_that_lags_begins_anew(lag_ms: int, expected: bool) -> None:
    """The log grows, and the replica fetches from the old end for some time."""
    core = fenced_leader()
    fetch_at(core, [1_000, 3_000])
    core.append(b"a")
    core.sleep(25)
    for each in (3_500, 4_500, 3_000 + lag_ms):
        core.sleep(each - core.now_ms)
        fetch(core, JOINER, ENDS[3])
        fetch_at_end(core, replica_key(2))
    fetch_at_end(core, JOINER)
    assert is_added(core) == expected


def test_the_last_voters_must_be_known() -> None:
    """A replica that has not lagged for long lacks the last VotersRecord (KAFKA-19933)."""
    core = fenced_leader()
    fetch_at(core, [1_000, 3_000])
    fetch_at_end(core, replica_key(3))
    assert ask(core, remove_voter_request(replica_key(3))) == []
    fetch_at_end(core, replica_key(2))
    assert (errors(core), core.raft.high_watermark) == ([ErrorCode.NONE], LOG_END + 1)
    assert not is_added(core)
    fetch_at_end(core, JOINER)
    assert is_added(core)


@pytest.mark.parametrize(("ms", "expected"), [(HOUR_MS - 1, True), (HOUR_MS, False)])
def test_kafkas_check(ms: int, expected: bool) -> None:
    """Without a stabilisation time: the replica had all of the log once, and has fetched within the hour."""
    core = fenced_leader((1,), config=AS_KAFKA)
    core.sleep(1)
    assert not is_added(core)
    fetch(core, JOINER, ENDS[2])
    assert not is_added(core)
    fetch_at_end(core, JOINER)
    core.append(b"a")
    core.sleep(25)
    fetch(core, JOINER, ENDS[3])
    core.sleep(ms)
    assert is_added(core) == expected
    assert isinstance(core.raft.role, Leader)


def test_a_majority_of_the_new_voters_must_be_in_touch() -> None:
    """The voters are five. Two of them have kept the leader in office, the one long ago: six voters need four."""
    core = fenced_leader((1, 2, 3, 4, 5))
    joiner = replica_key(6)
    for voter_id, pause_ms in ((2, 2_000), (3, 500), (None, 1_500), (None, 1_001)):
        core.sleep(pause_ms)
        fetch_at_end(core, joiner)
        if voter_id is not None:
            fetch_at_end(core, replica_key(voter_id))
    assert isinstance(core.raft.role, Leader)
    assert not is_added(core, joiner)
    fetch_at_end(core, replica_key(2))
    assert is_added(core, joiner)


def test_an_answer_that_does_not_wait_for_the_commit() -> None:
    """The request is answered once the record is written; the next change waits for the commit all the same."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert add(core, JOINER, ack_when_committed=False) == [ErrorCode.NONE]
    assert ask(core, remove_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]
    core.sleep(1_000)
    catch_up(core, JOINER, ms=0)
    assert (errors(core), core.raft.high_watermark) == ([], LOG_END + 1)
    assert ask(core, remove_voter_request(JOINER)) == []


def test_a_directory_of_another_voter_is_refused() -> None:
    """The log would refuse the voter set."""
    core = fenced_leader()
    joiner = replica_key(4, 2)
    catch_up(core, joiner)
    assert add(core, joiner) == [ErrorCode.INVALID_REQUEST]
    assert (voter_ids(core), core.raft.halt_reason) == ({1, 2, 3}, None)


def test_a_voter_that_does_not_fit_in_a_batch_is_refused() -> None:
    """An embedder may pass any text as a host."""
    core = fenced_leader()
    catch_up(core, JOINER)
    listeners = (*add_voter_request(JOINER).listeners, Listener(name="OTHER", host="x" * 9_000_000, port=1))
    assert ask(core, attrs.evolve(add_voter_request(JOINER), listeners=listeners)) == []
    core.respond(question(core).number, api_versions_response())
    assert errors(core) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("is_version_unsupported", [False, True])
def test_a_new_voter_that_cannot_be_reached(is_version_unsupported: bool) -> None:
    """The request ends at once, and another one waits until the pause after the failure is over."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    core.raft.request_failed(question(core).number, is_version_unsupported=is_version_unsupported)
    core.settle()
    assert errors(core) == [ErrorCode.REQUEST_TIMED_OUT]
    core.sleep(19)
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]
    core.sleep(1)
    assert ask(core, add_voter_request(JOINER)) == []


def test_a_new_voter_that_answers_with_an_error() -> None:
    """The request ends, and another one waits until the pause is over."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    core.respond(question(core).number, api_versions_response(error=ErrorCode.INVALID_REQUEST))
    assert (errors(core), voter_ids(core)) == ([ErrorCode.REQUEST_TIMED_OUT], {1, 2, 3})
    assert ask(core, add_voter_request(JOINER)) == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_late_answer_of_a_new_voter_is_ignored() -> None:
    """It comes when the request has expired, and another one is under way."""
    core = fenced_leader()
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    late = question(core)
    core.sleep(2_000)
    assert errors(core) == [ErrorCode.REQUEST_TIMED_OUT]
    assert ask(core, add_voter_request(JOINER)) == []
    core.respond(late.number, api_versions_response())
    assert (errors(core), voter_ids(core)) == ([], {1, 2, 3})


def test_a_late_answer_of_another_voter_is_ignored() -> None:
    """It says nothing of the one that is being added now."""
    core, other = fenced_leader(), replica_key(5)
    catch_up(core, JOINER)
    assert ask(core, add_voter_request(JOINER)) == []
    late = question(core)
    core.sleep(1_999)
    catch_up(core, other)
    core.sleep(1)
    assert errors(core) == [ErrorCode.REQUEST_TIMED_OUT]
    assert ask(core, add_voter_request(other)) == []
    core.respond(late.number, api_versions_response(error=ErrorCode.INVALID_REQUEST))
    assert (errors(core), voter_ids(core)) == ([], {1, 2, 3})


def test_a_second_voter_of_a_leader_that_was_alone() -> None:
    """The only voter has led long without any other voter. The check of quorum begins with the second (KAFKA-16144)."""
    core = fenced_leader((1,))
    core.sleep(100_000)
    catch_up(core, JOINER)
    assert is_added(core)
    assert isinstance(core.raft.role, Leader)
    assert core.raft.high_watermark == LOG_END
    core.sleep(2_999)
    fetch_at_end(core, JOINER)
    assert core.raft.high_watermark == LOG_END + 1
    core.sleep(2_999)
    assert isinstance(core.raft.role, Leader)
    core.sleep(1)
    assert not isinstance(core.raft.role, Leader)


def test_a_new_voter_counts_only_once_its_record_is_flushed() -> None:
    """The disk of the leader, which was alone, is slow: neither it nor the new voter commits alone."""
    core = fenced_leader((1,), FlushLog)
    catch_up(core, JOINER)
    assert is_added(core)
    fetch(core, JOINER, OffsetAndEpoch(LOG_END + 1, 3))
    assert core.raft.high_watermark == LOG_END
    core.let_go()
    assert core.raft.high_watermark == LOG_END + 1


def test_requests_to_a_leader_go_out_once() -> None:
    """A new voter is asked once, however often time passes."""
    core = fenced_leader()
    catch_up(core, JOINER)
    core.take_requests()
    assert ask(core, add_voter_request(JOINER)) == []
    for _ in range(3):
        core.sleep(100)
    assert len([each for each in core.take_requests() if isinstance(each.message, ApiVersionsRequest)]) == 1
