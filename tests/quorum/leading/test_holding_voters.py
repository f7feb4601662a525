# SPDX-License-Identifier: Apache-2.0
"""No replica learns of a voter set before the leader's disk has it."""

import functools
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import FlushLog, ReadLog
from raftlog.records.messages.raft.error_codes import ErrorCode
from tests.quorum.leading.leaders import LOG_END, SlowDisk, answers, fetch
from tests.quorum.leading.voter_requests import ask, fenced_leader, fetch_at_end, voter_ids
from tests.quorum.messages import LOCAL, remove_voter_request
from tests.quorum.single_replica import replica_key

LINGER_MS = 25


def served(core: SlowDisk, end: OffsetAndEpoch, wait: int = 0) -> list[bytes]:
    """Return what voter 2 gets: the records in each answer."""
    return [bytes(each.records or b"") for each in fetch(core, replica_key(2), end, wait=wait)]


@pytest.mark.parametrize("voters", [(1, 2), (1, 2, 3)])
def test_a_removal_is_served_once_it_is_flushed(voters: tuple[int, ...]) -> None:
    """A Fetch waits for that, and is answered at once then, though the log does not grow."""
    core = fenced_leader(voters, FlushLog)
    assert ask(core, remove_voter_request(replica_key(voters[-1]))) == []
    assert core.log.end_offset.offset == LOG_END + 1
    assert served(core, OffsetAndEpoch(LOG_END, 3)) == [b""]
    assert served(core, OffsetAndEpoch(LOG_END, 3), wait=500) == []
    core.let_go()
    (answer,) = answers(core)
    assert int.from_bytes(bytes(answer.records or b"")[:8]) == LOG_END


def test_records_before_a_voter_set_are_served() -> None:
    """The log is flushed up to the set; what comes with it in one write waits, too."""
    core = fenced_leader((1, 2, 3), FlushLog)
    core.append(b"a")
    core.sleep(LINGER_MS)
    core.append(b"b")
    ask(core, remove_voter_request(replica_key(3)))
    assert core.log.end_offset.offset == LOG_END + 1
    (first,) = served(core, OffsetAndEpoch(LOG_END, 3))
    assert int.from_bytes(first[:8]) == LOG_END
    core.let_go()
    assert core.log.end_offset.offset == LOG_END + 3
    assert served(core, OffsetAndEpoch(LOG_END, 3)) == [first]
    assert served(core, OffsetAndEpoch(LOG_END + 1, 3)) == [b""]
    core.let_go()
    (rest,) = served(core, OffsetAndEpoch(LOG_END + 1, 3))
    assert int.from_bytes(rest[:8]) == LOG_END + 1
    assert len(rest) > len(first)


def answer_to_a_late_read(read_of: Callable[[list[bytes]], bytes] = b"".join) -> tuple[list[bytes], bytes]:
    """Return the batches that a log has when it is read late, a new voter set as the last one, and what is served.

    Args:
        read_of: what the read gives of these batches.
    """
    core = fenced_leader((1, 2, 3), ReadLog)
    core.append(b"a")
    core.sleep(LINGER_MS)
    core.append(b"b")
    core.sleep(LINGER_MS)
    assert fetch(core, replica_key(2), OffsetAndEpoch(LOG_END, 3)) == []
    (read,) = core.held
    assert isinstance(read, ReadLog)
    core.held, core.slow = (), FlushLog
    ask(core, remove_voter_request(replica_key(3)))
    found = [bytes(each.buffer) for each in core.log.batches(LOG_END, Isolation.UNCOMMITTED)]
    core.raft.log_read(read.number, read_of(found))
    core.settle()
    (answer,) = answers(core)
    return found, bytes(answer.records or b"")


def test_a_read_that_finds_more_than_was_known_is_cut() -> None:
    """The disk reads later than it was asked to, and finds the voter set that was written meanwhile."""
    found, records = answer_to_a_late_read()
    assert records == b"".join(found[:-1])
    assert len(found) == 3


def beginning(batches: list[bytes], size: int) -> bytes:
    """Return so many bytes of batches."""
    return b"".join(batches)[:size]


def test_a_read_may_end_within_any_batch() -> None:
    """Of records that are cut off anywhere, because of the size that was asked for, the whole batches are served."""
    found, _ = answer_to_a_late_read()
    for size in range(1, sum(map(len, found))):
        whole = [each for each in itertools.accumulate(found[:-1]) if len(each) <= size]
        served = whole[-1] if whole else b""
        assert answer_to_a_late_read(functools.partial(beginning, size=size)) == (found, served), size


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 48])
def test_a_length_that_has_rotted_ends_no_leader(length: int) -> None:
    """What comes before it is served."""

    def rotten(batches: list[bytes]) -> bytes:
        first, second, last = batches
        return first + second[:8] + length.to_bytes(4, "big", signed=True) + second[12:] + last

    found, records = answer_to_a_late_read(rotten)
    assert records == found[0]


@given(st.integers(0, 4), st.integers(1, 3))
def test_unflushed_data_is_served_in_parallel(before: int, count: int) -> None:
    """Only voter sets wait for the leader's disk; it and those of the followers write other records together."""
    core = fenced_leader((1, 2), FlushLog)
    for _ in range(before):
        core.append(b"a")
        core.sleep(LINGER_MS)
        core.let_go()
        core.let_go()
    core.append(*[b"b"] * count)
    core.sleep(LINGER_MS)
    (records,) = served(core, OffsetAndEpoch(LOG_END + before, 3))
    assert int.from_bytes(records[:8]) == LOG_END + before == core.log.flushed_offset


@pytest.mark.parametrize(("voters", "is_possible"), [((1, 2), False), ((1, 2, 3), True), ((1, 2, 3, 4), True)])
def test_a_leader_leaves_only_voters_that_do_without_it(voters: tuple[int, ...], is_possible: bool) -> None:
    """Of two voters the other one cannot elect itself as long as it does not know of the removal."""
    core = fenced_leader(voters)
    assert ask(core, remove_voter_request(LOCAL)) == ([] if is_possible else [ErrorCode.REQUEST_TIMED_OUT])
    assert (1 in voter_ids(core)) != is_possible
    assert isinstance(core.raft.role, Leader)


@pytest.mark.parametrize(("ms", "error"), [(3_000, []), (3_001, [ErrorCode.REQUEST_TIMED_OUT])])
def test_the_others_must_be_in_touch(ms: int, error: list[ErrorCode]) -> None:
    """Of four voters, three must know of the removal or elect a leader: voter 4 was last heard of long ago."""
    core = fenced_leader((1, 2, 3, 4))
    core.sleep(1_500)
    for each in (2, 3):
        fetch_at_end(core, replica_key(each))
    core.sleep(ms - 1_500)
    assert ask(core, remove_voter_request(LOCAL)) == error


def test_kafka_lets_a_leader_of_two_remove_itself() -> None:
    """Without a stabilisation time, as for all checks of what the voters could do."""
    core = fenced_leader((1, 2), config=QuorumConfig(new_voter_stabilization_ms=0))
    assert ask(core, remove_voter_request(LOCAL)) == []
    assert voter_ids(core) == {2}
