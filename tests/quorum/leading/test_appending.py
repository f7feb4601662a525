# SPDX-License-Identifier: Apache-2.0
"""Appends of an application: where they go, and what it is told of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    BatchTooLargeError,
    BufferExhaustedError,
    NonContiguousAppendError,
    NotLeaderError,
    RaftLogError,
    UnknownEpochError,
)
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.seam.effects import AppendAsLeader, AppendOutcome, EndAppend, EnterEpoch, FlushLog
from raftlog.quorum.seam.log_view import control_record_view, log_view
from raftlog.records.batches.accumulator import MAX_UNDRAINED_BATCHES
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.limits import MAX_BATCH_SIZE
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request
from tests.quorum.single_replica import DictatedDraws, SingleReplica, replica_key

LINGER_MS = QuorumConfig().append_linger_ms


def outcomes(core: SingleReplica) -> dict[int, AppendOutcome]:
    """Return what became of the appends that have ended, by their numbers; each has ended once."""
    assert max(Counter(each.number for each in core.ended).values(), default=1) == 1
    return {each.number: each.outcome for each in core.ended}


def lose_leadership(core: SingleReplica) -> None:
    """Let another leader announce itself."""
    core.request("", begin_quorum_epoch_request(2, core.raft.role.epoch + 1), version=1)


def test_appends_are_written_together_after_the_linger() -> None:
    """They get the offsets after the log end at once, and the log gets one batch."""
    core = leader_of((1, 2))
    assert [core.append(b"a").last_offset, core.append(b"b", b"c").last_offset] == [LOG_END, LOG_END + 2]
    assert core.raft.deadline_ms == core.now_ms + LINGER_MS
    core.sleep(LINGER_MS - 1)
    assert core.log.end_offset.offset == LOG_END
    core.sleep(1)
    assert core.log.end_offset.offset == LOG_END + 3
    assert core.log.flushed_offset == LOG_END + 3


@given(st.lists(st.integers(0, 10**12), min_size=3, max_size=3))
def test_the_time_of_day_stamps_records_and_ends_no_linger(wall_ms: list[int]) -> None:
    """Wherever the time of day jumps or stands still, the records are written after the linger, with its first time."""
    core = leader_of((1,))
    core.raft.tick(core.now_ms, wall_ms[0])
    core.append(b"a")
    start_ms, end_offset = core.now_ms, core.log.end_offset.offset
    for passed_ms, now_wall_ms in zip((LINGER_MS - 1, LINGER_MS), wall_ms[1:], strict=True):
        assert core.raft.deadline_ms == start_ms + LINGER_MS
        core.raft.tick(start_ms + passed_ms, now_wall_ms)
        core.settle()
        assert core.log.end_offset.offset == end_offset + (passed_ms == LINGER_MS)
    batches = RecordBatch(bytes(core.log.read(end_offset, Isolation.UNCOMMITTED).records))
    assert batches.max_timestamp == wall_ms[0]


def test_an_append_is_committed_when_a_majority_has_flushed_it() -> None:
    """The leader alone is none of two; the Fetch of the other voter that shows it commits."""
    core = leader_of((1, 2))
    first, second = core.append(b"a"), core.append(b"b")
    core.sleep(LINGER_MS)
    fetch(core, replica_key(2), ENDS[3])
    assert outcomes(core) == {}
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 2, 3))
    assert outcomes(core) == dict.fromkeys((first.number, second.number), AppendOutcome.COMMITTED)
    assert [each.last_offset for each in core.ended] == [LOG_END, LOG_END + 1]


def test_what_is_in_the_log_when_the_leadership_ends_is_unknown() -> None:
    """It may be committed by the next leader. What was only collected has failed."""
    core = leader_of((1, 2))
    written = core.append(b"a")
    core.sleep(LINGER_MS)
    collected = core.append(b"b")
    lose_leadership(core)
    assert outcomes(core) == {written.number: AppendOutcome.UNKNOWN, collected.number: AppendOutcome.FAILED}
    with pytest.raises(NotLeaderError, match="Follower in epoch 4"):
        core.append(b"c", epoch=3)


def test_appends_end_when_the_disk_fails() -> None:
    """The replica halts, and the application is told; it must not wait for ever."""
    core = leader_of((1, 2), FlushLog)
    written = core.append(b"a")
    core.let_go()
    core.sleep(LINGER_MS)
    collected = core.append(b"b")
    flush = core.held[-1]
    assert isinstance(flush, FlushLog)
    core.raft.effect_failed(flush.number, "input/output error")
    core.settle()
    assert outcomes(core) == {written.number: AppendOutcome.UNKNOWN, collected.number: AppendOutcome.FAILED}
    with pytest.raises(NotLeaderError):
        core.append(b"c")


def test_appends_collect_while_a_flush_is_under_way() -> None:
    """One flush carries all that came during the one before it."""
    core = leader_of((1, 2), FlushLog)
    core.let_go()
    core.append(b"a")
    core.sleep(LINGER_MS)
    for each in range(5):
        core.append(b"%d" % each)
        core.sleep(LINGER_MS)
    assert core.log.end_offset.offset == LOG_END + 1
    core.let_go()
    assert core.log.end_offset.offset == LOG_END + 6
    assert len(core.held) == 1


def test_a_slow_disk_makes_appends_fail_before_memory_does() -> None:
    """All that fits waits; one more append is refused and changes nothing, until the disk has caught up."""
    core = leader_of((1, 2), FlushLog)
    core.let_go()
    core.append(b"a")
    core.sleep(LINGER_MS)
    value = bytes(MAX_BATCH_SIZE - 100)
    last = [core.append(value).last_offset for _ in range(MAX_UNDRAINED_BATCHES + 1)][-1]
    with pytest.raises(BufferExhaustedError, match="10 batches"):
        core.append(value)
    core.let_go()
    assert core.append(b"b").last_offset == last + 1


@pytest.mark.parametrize(
    ("values", "epoch", "at", "error"),
    [
        ((b"a",), 2, None, NotLeaderError),
        ((b"a",), 4, None, UnknownEpochError),
        ((b"a",), 3, LOG_END - 1, NonContiguousAppendError),
        ((b"a",), 3, LOG_END + 1, NonContiguousAppendError),
        ((bytes(MAX_BATCH_SIZE),), 3, None, BatchTooLargeError),
    ],
)
def test_an_append_that_is_refused_changes_nothing(
    values: tuple[bytes, ...], epoch: int, at: int | None, error: type[RaftLogError]
) -> None:
    """The next one gets the offset that it would have got, and only that one ends."""
    core = leader_of((1, 2))
    with pytest.raises(error):
        core.append(*values, epoch=epoch, at=at)
    appended = core.append(b"b", at=LOG_END)
    assert appended.last_offset == LOG_END
    core.sleep(LINGER_MS)
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, 3))
    assert outcomes(core) == {appended.number: AppendOutcome.COMMITTED}


@pytest.mark.parametrize("values", [(), (b"",), (b"a", b"")])
def test_empty_appends_are_misuse(values: tuple[bytes, ...]) -> None:
    """Kafka's raft readers refuse an empty value."""
    with pytest.raises(ValueError, match="needs a"):
        leader_of((1, 2)).append(*values)


def test_there_is_no_append_before_the_epoch_has_begun_in_the_log() -> None:
    """The log may still be writing what this replica fetched as a follower, so the offsets are not known."""
    core = leader_of((1,))
    found = StartingPoint(log=log_view(core.log, control_record_view(core.machine)))
    raft = Raft(core.identity, QuorumConfig(), DictatedDraws(), found, monotonic_ms=0, wall_ms=0)
    (enter,) = [each for each in raft.take_effects() if isinstance(each, EnterEpoch)]
    with pytest.raises(NotLeaderError, match="Leader in epoch"):
        raft.append([b"a"], epoch=raft.role.epoch)
    core.log.initialize_leader_epoch(enter.epoch)
    raft.log_changed(enter.number, log_view(core.log, control_record_view(core.machine)))
    assert raft.append([b"a"], epoch=raft.role.epoch).last_offset > LOG_END
    assert any(isinstance(each, AppendAsLeader) for each in raft.take_effects())


@given(st.lists(st.sampled_from(("append", "sleep", "fetch", "flush")), max_size=30), st.booleans())
def test_each_append_ends_once(steps: list[str], is_slow: bool) -> None:
    """However appends, flushes and fetches fall: none ends twice, and none is left when the leadership ends.

    The model keeps the offsets: an append is committed exactly if both logs have it, flushed.
    """
    core: SlowDisk = leader_of((1, 2), FlushLog if is_slow else None)
    core.let_go()
    appended: dict[int, int] = {}
    fetched = committed = -1
    for step in steps:
        match step:
            case "append":
                each = core.append(b"a")
                appended[each.number] = each.last_offset
            case "sleep":
                core.sleep(LINGER_MS)
            case "fetch":
                fetched = core.log.end_offset.offset
                fetch(core, replica_key(2), OffsetAndEpoch(fetched, 3))
            case "flush":
                core.let_go()
        committed = min(fetched, core.log.flushed_offset)
        assert set(outcomes(core)) == {number for number, last in appended.items() if last < committed}
    in_log = core.log.end_offset.offset
    lose_leadership(core)
    for number, last in appended.items():
        left = AppendOutcome.UNKNOWN if last < in_log else AppendOutcome.FAILED
        assert outcomes(core)[number] is (AppendOutcome.COMMITTED if last < committed else left)
    assert [each.last_offset for each in core.ended] == sorted(appended.values())
    assert all(isinstance(each, EndAppend) for each in core.ended)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_appends_may_wait_to_be_committed(most: int) -> None:
    """One more is refused, and changes nothing; once one is committed, there is room for another."""
    core = leader_of((1, 2), config=QuorumConfig(max_uncommitted_appends=most))
    for _ in range(most):
        core.append(b"a")
    with pytest.raises(BufferExhaustedError, match=f"{most} appends"):
        core.append(b"b")
    core.sleep(LINGER_MS)
    fetch(core, replica_key(2), ENDS[3])
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + most, 3))
    assert list(outcomes(core).values()) == [AppendOutcome.COMMITTED] * most
    assert core.append(b"c").last_offset == LOG_END + most
