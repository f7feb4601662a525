# SPDX-License-Identifier: Apache-2.0
"""What a leader takes over of a voter's report of itself."""

import attrs
import pytest

from raftlog.quorum.roles.roles import Resigned
from raftlog.quorum.seam.effects import FlushLog
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterRequest
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch
from tests.quorum.leading.voter_requests import EPOCH, ask, fenced_leader
from tests.quorum.messages import update_voter_request
from tests.quorum.single_replica import LISTENER, replica_key

VOTER = replica_key(2)
RIGHT = update_voter_request(VOTER, EPOCH, port=1)
TWICE = (Listener(name=LISTENER, host="a", port=1), Listener(name=LISTENER.lower(), host="b", port=1))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(update_voter_request(ReplicaKey(2), EPOCH), id="no directory id"),
        pytest.param(attrs.evolve(RIGHT, voter_id=-1), id="no id"),
        pytest.param(update_voter_request(VOTER, EPOCH, listener="OTHER"), id="another listener"),
        pytest.param(attrs.evolve(RIGHT, listeners=()), id="no listener"),
        pytest.param(attrs.evolve(RIGHT, listeners=TWICE), id="a listener twice"),
        pytest.param(attrs.evolve(RIGHT, listeners=(Listener(name=" ", host="a", port=1),)), id="a blank listener"),
        pytest.param(update_voter_request(VOTER, EPOCH, levels=(-1, 1)), id="a negative level"),
        pytest.param(update_voter_request(VOTER, EPOCH, levels=(1, 0)), id="no level"),
        pytest.param(update_voter_request(VOTER, EPOCH, levels=(0, 0)), id="levels below the one in force"),
        pytest.param(update_voter_request(VOTER, EPOCH, levels=(2, 3)), id="levels above the one in force"),
    ],
)
def test_invalid_reports(request_: UpdateRaftVoterRequest) -> None:
    """A report that cannot be true is refused, and changes nothing; the next one is accepted."""
    core = fenced_leader()
    assert ask(core, request_) == [ErrorCode.INVALID_REQUEST]
    assert core.log.end_offset.offset == LOG_END
    assert ask(core, RIGHT) == [ErrorCode.NONE]


def test_voters_that_are_not_in_the_log_yet_delay_the_next_change() -> None:
    """The record waits for a slow disk, after its request was answered: a second set must not join it (KAFKA-20661)."""
    core = fenced_leader(slow=FlushLog)
    core.append(b"a")
    core.sleep(30)
    assert len(core.held) == 1
    assert ask(core, RIGHT) == [ErrorCode.NONE]
    assert core.machine.last_voter_set_offset == LOG_END - 1
    assert ask(core, update_voter_request(replica_key(3), EPOCH, port=1)) == [ErrorCode.REQUEST_TIMED_OUT]
    core.let_go()
    assert core.machine.last_voter_set_offset == LOG_END + 1
    assert ask(core, update_voter_request(replica_key(3), EPOCH, port=1)) == [ErrorCode.REQUEST_TIMED_OUT]
    core.let_go()
    fetch(core, VOTER, attrs.evolve(ENDS[3], offset=LOG_END + 2))
    assert ask(core, update_voter_request(replica_key(3), EPOCH, port=1)) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("expected", "error"), [(6, "INVALID_UPDATE_VERSION"), (7, "NONE"), (8, "INVALID_UPDATE_VERSION")]
)
def test_the_expected_offset_of_the_last_voters(expected: int, error: str) -> None:
    """An embedder names the set that it has seen: the change is refused if another one is in force."""
    core = fenced_leader()
    assert core.machine.last_voter_set_offset == 7
    assert ask(core, RIGHT, expected=expected) == [ErrorCode[error]]


def test_a_report_in_the_name_of_the_leader_does_not_let_it_lead_on() -> None:
    """It is written as any other; but the leader, which counts already, hears of no other voter."""
    core = fenced_leader()
    core.sleep(2_999)
    assert ask(core, update_voter_request(replica_key(1), EPOCH, port=1)) == [ErrorCode.NONE]
    core.sleep(1)
    assert isinstance(core.raft.role, Resigned)
