# SPDX-License-Identifier: Apache-2.0
"""Leading an epoch: what is committed, which fetches wait, and what a leader does in time."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leading.serving import MAX_FETCH_WAIT_MS, MAX_OBSERVERS, MAX_WAITING_FETCHES
from raftlog.quorum.roles.roles import Leader, Resigned
from raftlog.quorum.seam.effects import FlushLog, ReadLog
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequestReplicaState
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, EPOCH_START, LOG_END, answers, fetch, leader_of
from tests.quorum.leading.static_leaders import fetch_all, static_leader_of
from tests.quorum.messages import fetch_request, vote_request
from tests.quorum.single_replica import LISTENER, SingleReplica, replica_key

LINGER_MS = 25

# What is committed


@given(st.integers(2, 5), st.lists(st.tuples(st.integers(2, 7), st.sampled_from(ENDS), st.sampled_from((None, 9)))))
def test_a_majority_of_voters_commits(size: int, fetches: list[tuple[int, OffsetAndEpoch, int | None]]) -> None:
    """Whoever fetches what: the high watermark is the offset that a majority has, once it is past the epoch's start."""
    core = leader_of(tuple(range(1, size + 1)))
    ends = dict.fromkeys(range(2, size + 1), -1)
    expected = None
    for replica_id, end, directory in fetches:
        fetch(core, replica_key(replica_id, directory), end)
        if replica_id in ends and directory is None:
            ends[replica_id] = end.offset
        reached = sorted([LOG_END, *ends.values()], reverse=True)[size // 2]
        if reached > EPOCH_START:
            expected = reached
        assert core.raft.high_watermark == expected


def test_unflushed_records_are_served_and_not_counted() -> None:
    """The other voter has the records before the leader's own disk has: that is no majority of two."""
    core = leader_of((1, 2))
    fetch(core, replica_key(2), ENDS[3])
    core.slow = FlushLog
    core.append(b"a")
    core.sleep(25)
    (answer,) = fetch(core, replica_key(2), ENDS[3])
    assert int.from_bytes(bytes(answer.records or b"")[:8]) == LOG_END == core.log.flushed_offset
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, 3))
    assert core.raft.high_watermark == LOG_END
    core.let_go()
    assert core.raft.high_watermark == LOG_END + 1


def test_a_leader_that_is_slower_than_a_majority_does_not_delay_it() -> None:
    """Two of three voters are a majority without the leader."""
    core = leader_of((1, 2, 3), FlushLog)
    fetch(core, replica_key(2), ENDS[3])
    assert core.raft.high_watermark is None
    fetch(core, replica_key(3), ENDS[3])
    assert core.raft.high_watermark == LOG_END


def test_a_fetch_of_an_old_version_counts_too() -> None:
    """Up to version 14 the replica's id is in another field."""
    core = leader_of((1, 2))
    request = fetch_request(replica_key(2), core.raft.role.epoch, ENDS[3])
    old = attrs.evolve(request, replica_id=2, replica_state=FetchRequestReplicaState(replica_id=-1))
    core.request("old", old, version=14)
    assert core.raft.high_watermark == LOG_END


def test_the_flush_of_the_leader_answers_a_fetch_that_waits_for_it() -> None:
    """It raises the high watermark."""
    core = leader_of((1, 2), FlushLog)
    fetch(core, replica_key(2), ENDS[3])
    assert fetch(core, replica_key(4), ENDS[3], wait=500, mark=-1) == []
    core.let_go()
    assert [each.high_watermark for each in answers(core)] == [LOG_END]


# Reads


def test_a_fetch_is_answered_when_its_records_are_read() -> None:
    """Not before, and with what was read."""
    core = leader_of((1, 2, 3), ReadLog)
    assert fetch(core, replica_key(2), ENDS[1]) == []
    core.let_go()
    (answer,) = answers(core)
    assert answer.error_code == ErrorCode.NONE
    assert int.from_bytes(bytes(answer.records or b"")[:8]) == ENDS[1].offset


def test_a_read_that_comes_after_the_leadership_changes_nothing() -> None:
    """Its Fetch has been answered with the error."""
    core = leader_of((1, 2, 3), ReadLog)
    fetch(core, replica_key(2), ENDS[1])
    core.raft.receive_request(vote_request(replica_key(3), 9, ENDS[3]), ReceivedRequest("v", 2, LISTENER))
    core.settle()
    assert [each.error_code for each in answers(core)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    core.let_go()
    assert answers(core) == []


# Bounds


def test_the_number_of_fetches_that_wait_is_bounded() -> None:
    """The last that fits waits; one more is answered at once, without records, and displaces none."""
    core = leader_of((1, 2, 3))
    for each in range(MAX_WAITING_FETCHES):
        assert fetch(core, replica_key(10 + each), ENDS[3], wait=500) == []
    (answer,) = fetch(core, replica_key(5), ENDS[3], wait=500)
    assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
    (answer,) = fetch(core, replica_key(5), ENDS[1])
    assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
    core.sleep(500)
    assert len(answers(core)) == MAX_WAITING_FETCHES


def test_observers_that_wait_do_not_keep_a_voter_from_records() -> None:
    """Voters have as many places of their own."""
    core = leader_of((1, 2, 3))
    for each in range(MAX_WAITING_FETCHES):
        assert fetch(core, replica_key(10 + each), ENDS[3], wait=500) == []
    (answer,) = fetch(core, replica_key(2), ENDS[1])
    assert answer.records


@pytest.mark.parametrize("count", [1, *(2 * MAX_WAITING_FETCHES + each for each in (-1, 0, 1))])
def test_a_static_voter_does_not_keep_others_from_waiting(count: int) -> None:
    """Whatever directories come in its name: each displaces the one before, and the other voter waits, or is served."""
    core = static_leader_of((1, 2, 3))
    end = OffsetAndEpoch(core.raft.status.log_end.offset, 1)
    assert fetch(core, replica_key(2), end, wait=500) == []
    for each in range(count - 1):
        (answer,) = fetch(core, replica_key(2, 100 + each), end, wait=500)
        assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
    assert fetch(core, replica_key(3), end, wait=500) == []
    assert fetch(core, replica_key(10), end, wait=500) == []
    (answer,) = fetch(core, replica_key(3), OffsetAndEpoch(0, 0))
    assert answer.records


@pytest.mark.parametrize("is_static", [False, True])
def test_a_replica_has_one_read_under_way(is_static: bool) -> None:
    """A Fetch that comes before the disk has read for the last one is answered at once, without records."""
    core = static_leader_of((1, 2, 3)) if is_static else leader_of((1, 2, 3))
    core.slow = ReadLog
    start = OffsetAndEpoch(0, 0)
    assert fetch(core, replica_key(2), start) == []
    for directory in (2, 7 if is_static else 2):
        (answer,) = fetch(core, replica_key(2, directory), start)
        assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
    assert fetch(core, replica_key(3), start) == []
    assert fetch(core, replica_key(10), start) == []
    assert fetch(core, replica_key(10, 7), start) == []
    core.let_go()
    assert [bool(each.records) for each in answers(core)] == [True] * 4
    assert fetch(core, replica_key(2), start) == []


@given(
    st.booleans(),
    st.lists(st.tuples(st.sampled_from((2, 3, 10)), st.sampled_from((None, 7)), st.booleans(), st.booleans())),
)
def test_each_replica_has_one_place_to_wait_in(
    is_static: bool, fetches: list[tuple[int, int | None, bool, bool]]
) -> None:
    """A voter of kraft.version 0 is one replica, whatever its directory is; each Fetch is answered once in the end."""
    core = static_leader_of((1, 2, 3)) if is_static else leader_of((1, 2, 3))
    core.slow, log_end, answered = ReadLog, core.raft.status.log_end, 0
    for replica_id, directory, is_at_end, is_read in fetches:
        end = OffsetAndEpoch(log_end.offset, log_end.epoch) if is_at_end else OffsetAndEpoch(0, 0)
        answered += len(fetch(core, replica_key(replica_id, directory), end, wait=500))
        if is_read:
            core.let_go()
            answered += len(answers(core))
        leadership = present(core.raft._replica.leadership, "a leadership")
        for places in (list(leadership.parked), list(leadership.reading)):
            taken = [each.id if is_static and each.id in {2, 3} else each for each in places]
            assert len(set(taken)) == len(taken)
    core.let_go()
    core.sleep(500)
    assert answered + len(answers(core)) == len(fetches)


@pytest.mark.parametrize("asked_ms", [MAX_FETCH_WAIT_MS - 1, MAX_FETCH_WAIT_MS, 2**31 - 1])
def test_a_fetch_waits_for_a_bounded_time(asked_ms: int) -> None:
    """Whatever its replica asks for."""
    core = leader_of((1,))
    assert fetch(core, replica_key(10), ENDS[3], wait=asked_ms, mark=LOG_END) == []
    core.sleep(min(asked_ms, MAX_FETCH_WAIT_MS) - 1)
    assert answers(core) == []
    core.sleep(1)
    assert len(answers(core)) == 1


def test_a_replica_has_one_fetch_that_waits() -> None:
    """A second one from the same replica displaces the first, which is answered; one from another replica does not."""
    core = leader_of((1, 2, 3))
    assert fetch(core, replica_key(2), ENDS[3], wait=500) == []
    assert fetch(core, replica_key(3), ENDS[3], wait=500) == []
    assert len(fetch(core, replica_key(3), ENDS[3], wait=500)) == 1


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_leader_remembers_a_bounded_number_of_observers(extra: int) -> None:
    """The one that has not fetched for the longest time is forgotten; voters never are."""
    core = leader_of((1, 2, 3))
    fetch(core, replica_key(2), ENDS[3])
    fetch(core, replica_key(3), ENDS[3])
    for each in range(MAX_OBSERVERS + extra):
        fetch(core, replica_key(10 + each), ENDS[1])
    known = core.raft._replica.leadership
    assert known is not None
    assert {replica_key(2), replica_key(3)} <= set(known.progress)
    # The voter that has not fetched leaves its place free.
    assert (replica_key(10) in known.progress) == (extra <= 1)
    fetch(core, replica_key(9), ENDS[1])
    assert (replica_key(10) in known.progress) == (extra < 1)


def test_a_static_voter_has_one_place_whatever_directories_come_in_its_name() -> None:
    """The one that fetched last counts; the leader goes on however many there are."""
    core = static_leader_of((1, 2, 3))
    committed = core.raft.high_watermark
    core.append(b"a")
    core.sleep(LINGER_MS)
    for each in range(MAX_OBSERVERS + 5):
        fetch(core, replica_key(2, 100 + each), OffsetAndEpoch(0, 0))
    known = core.raft._replica.leadership
    assert known is not None
    assert [each for each in known.progress if each.id == 2] == [replica_key(2, 100 + MAX_OBSERVERS + 4)]
    assert core.raft.high_watermark == committed
    fetch_all(core, replica_key(2, 7))
    assert core.raft.high_watermark == core.raft.status.log_end.offset


def test_a_static_voter_counts_once_in_the_check_of_quorum() -> None:
    """Of five voters only one fetches, from two directories."""
    core = static_leader_of((1, 2, 3, 4, 5))
    for _ in range(3):
        core.sleep(999)
        fetch(core, replica_key(2), OffsetAndEpoch(0, 0))
        fetch(core, replica_key(2, 7), OffsetAndEpoch(0, 0))
    assert isinstance(core.raft.role, Leader)
    core.sleep(3)
    assert isinstance(core.raft.role, Resigned)


# Time


def test_a_lone_leader_needs_no_majority() -> None:
    """The only voter leads on for any time."""
    core = leader_of((1,))
    core.sleep(10_000_000)
    assert isinstance(core.raft.role, Leader)


def test_the_deadline_of_a_leader_is_the_next_thing_to_do() -> None:
    """Announce itself after half a fetch timeout, answer a Fetch, resign."""
    core = leader_of((1, 2, 3))
    assert core.raft.deadline_ms == core.now_ms + 1000
    fetch(core, replica_key(4), ENDS[3], wait=400)
    assert core.raft.deadline_ms == core.now_ms + 400
    core.sleep(2999)
    assert isinstance(core.raft.role, Leader)
    assert core.raft.deadline_ms == core.now_ms + 1
    core.sleep(1)
    assert isinstance(core.raft.role, Resigned)


def test_a_replica_was_last_caught_up_when_it_had_all_that_there_was() -> None:
    """A follower that has now what the leader had at its previous Fetch was caught up at the time of that Fetch."""
    core = leader_of((1, 2, 3))
    leadership = core.raft._replica.leadership
    assert leadership is not None
    fetch(core, replica_key(2), ENDS[1])
    assert leadership.progress[replica_key(2)].caught_up_wall_ms == -1
    before = core.now_ms
    core.sleep(7)
    fetch(core, replica_key(2), ENDS[3])
    assert leadership.progress[replica_key(2)].caught_up_wall_ms == before + 7


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(2, 6), st.integers(1, 300)), max_size=12))
def test_a_driver_that_acts_at_deadlines_answers_each_fetch_in_time(arrivals: list[tuple[int, int, int]]) -> None:
    """A Fetch that waits is answered when its time is over, or when its replica sends another one."""
    core = leader_of((1, 2))
    fetch(core, replica_key(2), ENDS[3])
    due: dict[int, int] = {}
    for pause_ms, replica_id, wait_ms in arrivals:
        _act_at_deadlines(core, core.now_ms + pause_ms, due)
        fetch(core, replica_key(replica_id), ENDS[3], wait=wait_ms, mark=LOG_END)
        due[replica_id] = core.now_ms + wait_ms
    _act_at_deadlines(core, core.now_ms + 300, due)
    assert due == {}


def _act_at_deadlines(core: SingleReplica, end_ms: int, due: dict[int, int]) -> None:
    """Let time pass from one deadline of the core to the next, and check which fetches are answered at each."""
    while True:
        deadline_ms = core.raft.deadline_ms
        assert deadline_ms is not None
        core.take_responses()
        core.sleep(min(deadline_ms, end_ms) - core.now_ms)
        over = {each for each, at_ms in due.items() if at_ms <= core.now_ms}
        assert {each.token.id for each in core.take_responses() if isinstance(each.token, ReplicaKey)} == over
        for each in over:
            assert due.pop(each) == core.now_ms
        if core.now_ms == end_ms:
            return
