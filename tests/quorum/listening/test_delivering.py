# SPDX-License-Identifier: Apache-2.0
"""Deliveries to listeners: what they are given, in which order, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import QueueFullError
from raftlog.quorum.listening.delivering import MAX_LISTENERS, snapshots_being_read
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import DeliverBatches, DeliverSnapshot
from tests.quorum.listening.following_core import RECORD_COUNT, fetched, follower, snapshot, texts
from tests.quorum.single_replica import SingleReplica

PAUSE_MS = QuorumConfig().retry_backoff_ms


class _Reader:
    """A model of a listener: an offset that only grows."""

    def __init__(self, core: SingleReplica) -> None:
        self.core = core
        self.number = core.raft.register_listener()
        core.settle()
        self.seen = 0
        self.next_offset = -1

    @property
    def given(self) -> list[DeliverBatches | DeliverSnapshot]:
        """All that it was given."""
        mine = [each for each in self.core.deliveries if each.listener == self.number]
        return [each for each in mine if isinstance(each, DeliverBatches | DeliverSnapshot)]

    @property
    def is_reading(self) -> bool:
        return len(self.given) > self.seen

    def check(self) -> None:
        """It is given one thing at a time, which begins where it is, and is committed; and nothing is held back."""
        mark = self.core.raft.high_watermark
        assert len(self.given) - self.seen in (0, 1)
        if not self.is_reading:
            assert mark is None or max(self.next_offset, 0) >= mark
            return
        assert mark is not None
        match self.given[-1]:
            case DeliverBatches() as batches:
                assert batches.offset == max(self.next_offset, 0) < batches.end_offset <= mark
            case DeliverSnapshot() as loaded:
                assert self.next_offset < loaded.snapshot_id.offset <= mark

    def close(self, taken: int) -> None:
        """Close what it reads, after some records."""
        delivery = self.given[-1]
        self.seen += 1
        if isinstance(delivery, DeliverSnapshot):
            self.next_offset = delivery.snapshot_id.offset
        elif self.core.log.start_offset > delivery.offset:
            # The log has deleted the records, and the listener gets the snapshot when the core has heard of it.
            self.core.close(delivery.number)
            fetched(self.core, 1, self.core.raft.high_watermark or 0)
            self.core.sleep(PAUSE_MS)
            return
        else:
            self.next_offset = min(delivery.offset + 1 + taken, delivery.end_offset)
        self.core.close(delivery.number, self.next_offset)


STEPS = st.lists(
    st.tuples(st.sampled_from(("fetch", "close", "snapshot", "register")), st.integers(0, 3), st.integers(0, 20)),
    max_size=40,
)


@given(STEPS)
def test_a_listener_gets_every_committed_record_once_and_in_order(steps: list[tuple[str, int, int]]) -> None:
    """However the high watermark rises, listeners stop, and snapshots replace records."""
    core = follower()
    readers, ends = [_Reader(core)], [RECORD_COUNT // 2, RECORD_COUNT]
    for step, count, number in steps:
        reader = readers[number % len(readers)]
        ends.append(core.log.end_offset.offset)
        covered = max((each for each in ends if each <= (core.raft.high_watermark or 0)), default=0)
        match step:
            case "fetch":
                fetched(core, count, number)
            case "close" if reader.is_reading:
                reader.close(count)
            case "snapshot" if covered > core.log.start_offset:
                snapshot(core, covered)
            case "register":
                readers.append(_Reader(core))
        for each in readers:
            each.check()


def test_nothing_is_delivered_before_the_high_watermark_is_known() -> None:
    """The records of the log may be truncated yet."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, -1)
    assert texts(core, listener) == []
    fetched(core, 0, 2)
    assert texts(core, listener) == ["0..2"]


def test_a_listener_reads_one_thing_at_a_time() -> None:
    """What is committed meanwhile comes in one delivery after it is closed."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 3, 2)
    for mark in (3, 4, 7):
        fetched(core, 0, mark)
    assert texts(core, listener) == ["0..2"]
    core.close(core.deliveries[-1].number, 2)
    assert texts(core, listener) == ["0..2", "2..7"]


def test_a_listener_that_has_read_a_part_gets_the_rest() -> None:
    """Its next record is the one after the last that it has processed."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 4)
    core.close(core.deliveries[-1].number, 1)
    assert texts(core, listener) == ["0..4", "1..4"]


@pytest.mark.parametrize("next_offset", [None, 1])
def test_a_listener_that_takes_nothing_is_given_it_again_after_a_pause(next_offset: int | None) -> None:
    """Otherwise it could occupy the replica for ever."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 4)
    core.close(core.deliveries[-1].number, 1)
    core.close(core.deliveries[-1].number, next_offset)
    assert core.raft.deadline_ms == core.now_ms + PAUSE_MS
    core.sleep(PAUSE_MS - 1)
    fetched(core, 0, 4)
    assert texts(core, listener) == ["0..4", "1..4"]
    core.sleep(1)
    assert texts(core, listener) == ["0..4", "1..4", "1..4"]


def test_the_bootstrap_snapshot_comes_first_and_is_no_committed_state() -> None:
    """It has its own effect; the records follow from offset 0."""
    core = follower(has_bootstrap=True)
    listener = core.raft.register_listener()
    assert texts(core, listener) == []
    fetched(core, 0, 4)
    core.close(core.deliveries[-1].number, 0)
    assert texts(core, listener) == ["bootstrap", "0..4"]


def test_the_newest_snapshot_comes_first() -> None:
    """A new listener does not get the records that it covers, even if they are in the log."""
    core = follower()
    fetched(core, 2, 6)
    snapshot(core, 4)
    newest = snapshot(core, 6)
    fetched(core, 2, 7)
    listener = core.raft.register_listener()
    core.settle()
    assert texts(core, listener) == [f"snapshot 6@{newest.epoch}"]
    assert snapshots_being_read(core.raft._replica) == {newest}
    core.close(core.deliveries[-1].number, 6)
    assert texts(core, listener)[1:] == ["6..7"]
    assert snapshots_being_read(core.raft._replica) == set()


@pytest.mark.parametrize("read_to", [5, 6, 7])
def test_a_listener_before_the_log_start_gets_the_snapshot(read_to: int) -> None:
    """One at the log start, or after it, reads on in the log."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 2, 4)
    fetched(core, 2, 8)
    core.close(core.deliveries[-1].number, 4)
    core.close(core.deliveries[-1].number, read_to)
    newest = snapshot(core, 6)
    fetched(core, 1, 9)
    core.close(core.deliveries[-1].number)
    core.sleep(PAUSE_MS)
    expected = f"snapshot 6@{newest.epoch}" if read_to < 6 else f"{read_to}..9"
    assert texts(core, listener)[-1] == expected


def test_unregistered_listeners_get_nothing_more() -> None:
    """The snapshot that one is still reading stays until it has closed it."""
    core = follower()
    fetched(core, 2, 6)
    newest = snapshot(core, 6)
    fetched(core, 2, 6)
    listener, other = core.raft.register_listener(), core.raft.register_listener()
    core.settle()
    core.raft.unregister_listener(listener)
    core.raft.unregister_listener(other)
    core.raft.unregister_listener(99)
    assert snapshots_being_read(core.raft._replica) == {newest}
    first, second = core.deliveries
    core.close(first.number, 6)
    fetched(core, 1, 8)
    assert (texts(core, listener), texts(core, other)) == (["snapshot 6@3"], ["snapshot 6@3"])
    assert set(core.raft._replica.listeners) == {other}
    core.close(second.number)
    assert core.raft._replica.listeners == {}


def test_a_delivery_that_is_not_open_changes_nothing() -> None:
    """One that was closed already, of a listener that is gone, or that never was."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 2)
    number = core.deliveries[-1].number
    core.close(number, 2)
    fetched(core, 0, 4)
    core.close(number, 1)
    core.close(number + 1000, 4)
    assert texts(core, listener) == ["0..2", "2..4"]


@pytest.mark.parametrize("next_offset", [-2, 1, 5])
def test_an_offset_that_was_not_delivered_is_misuse(next_offset: int) -> None:
    """Nothing has changed then: the listener still reads."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 4)
    core.close(core.deliveries[-1].number, 2)
    with pytest.raises(ValueError, match=f"read up to {next_offset}"):
        core.close(core.deliveries[-1].number, next_offset)
    core.close(core.deliveries[-1].number, 4)
    assert core.raft._replica.listeners[listener].next_offset == 4


def test_a_part_of_a_snapshot_is_no_progress() -> None:
    """A snapshot is taken as a whole, or not at all."""
    core = follower()
    fetched(core, 2, 6)
    snapshot(core, 6)
    fetched(core, 2, 6)
    core.raft.register_listener()
    core.settle()
    with pytest.raises(ValueError, match="read up to 5"):
        core.close(core.deliveries[-1].number, 5)


def test_the_number_of_listeners_is_bounded() -> None:
    """The last that fits is registered; one more is refused, until one is gone and has closed what it reads."""
    core = follower()
    fetched(core, 0, 4)
    numbers = [core.raft.register_listener() for _ in range(MAX_LISTENERS)]
    core.settle()
    with pytest.raises(QueueFullError, match="100 listeners"):
        core.raft.register_listener()
    core.raft.unregister_listener(numbers[0])
    with pytest.raises(QueueFullError):
        core.raft.register_listener()
    core.close(core.deliveries[0].number, 4)
    core.raft.register_listener()
    with pytest.raises(QueueFullError):
        core.raft.register_listener()


def test_a_halted_replica_delivers_nothing() -> None:
    """It cannot know what is on its disk."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 2)
    core.raft.effect_failed(1, "input/output error")
    core.close(core.deliveries[-1].number, 2)
    core.raft.register_listener()
    core.settle()
    assert texts(core, listener) == ["0..2"]
    assert len(core.deliveries) == 1
