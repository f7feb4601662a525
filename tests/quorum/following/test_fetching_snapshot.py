# SPDX-License-Identifier: Apache-2.0
"""Fetching a snapshot: which chunks are written, and what is left of a fetch that does not end."""

import sys

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OutOfSpaceError
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import DeliverSnapshot
from raftlog.quorum.seam.snapshot_effects import (
    AbandonFetchedSnapshot,
    AppendToFetchedSnapshot,
    FreezeFetchedSnapshot,
    RestartAtLatestSnapshot,
)
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchSnapshotRequest
from tests.quorum.fetched_snapshots import chunks_of, snapshot_bytes
from tests.quorum.following.followers import DATA, SNAPSHOT, VOTERS, FollowerOfTwo
from tests.quorum.listening.following_core import texts
from tests.quorum.messages import (
    begin_quorum_epoch_request,
    fetch_response,
    fetch_snapshot_response,
    records_at,
    vote_request,
)
from tests.quorum.single_replica import log_with, replica_key

CONFIG = QuorumConfig()


def fetching() -> FollowerOfTwo:
    """Return a follower that has been told to fetch the snapshot."""
    core = FollowerOfTwo()
    core.name()
    return core


def freeze_slowly(core: FollowerOfTwo) -> None:
    """Let a follower fetch and freeze the snapshot; the restart of its log waits."""
    core.name()
    core.is_slow = True
    core.send_chunk(0, DATA)
    core.work()
    core.work()
    assert [type(each) for each in core.waiting] == [RestartAtLatestSnapshot]


def damaged(data: bytes) -> bytes:
    """Return bytes with one changed."""
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


# Every snapshot, in any chunks


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=4),
    st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4),
)
def test_chunks_of_any_size_give_the_same_bytes(sizes: list[int], values: list[bytes]) -> None:
    """Whatever the snapshot is and however it is cut, the log then starts at it, with the leader's bytes."""
    data, core = snapshot_bytes(SNAPSHOT, VOTERS, values), fetching()
    for position, chunk in chunks_of(data, sizes):
        assert core.asked_position == position
        core.send_chunk(position, chunk, size=len(data))
    assert core.stored_bytes() == data
    assert (core.log.start_offset, core.log.end_offset.offset, core.raft.high_watermark) == (10, 10, 10)
    assert core.asked_offset == 10


class Story:
    """A follower to which anything happens, on a disk that may be slow; it is checked after each event."""

    def __init__(self, events: list[tuple[str, int]]) -> None:
        self.core = FollowerOfTwo()
        self.core.learn_high_watermark(1)
        for name, number in events:
            self.core.is_slow = number % 2 == 1
            getattr(self, name)(number)
            while self.core.waiting and number % 4 != 3:
                self.core.work()
            self.check()
        while self.core.waiting:
            self.core.work()
        self.check()

    def check(self) -> None:
        """What is listed is whole; a partial snapshot is there only while it is fetched."""
        core = self.core
        for each in core.log.snapshot_ids:
            if each.offset:
                assert core.stored_bytes(each) == snapshot_bytes(each, VOTERS, [b"x" * 200, b"y" * 50])
        role = core.raft.role
        is_fetching = isinstance(role, Follower) and role.fetching_snapshot is not None
        if not core.waiting:
            assert (core.fetched is not None) == is_fetching
            assert core.log.latest_snapshot_id is not None
            assert core.log.latest_snapshot_id.offset <= core.log.end_offset.offset
        assert core.raft.halt_reason is None
        delivered = (each.snapshot_id.offset for each in core.deliveries if isinstance(each, DeliverSnapshot))
        assert max(delivered, default=0) <= (core.raft.high_watermark or 0)

    def name(self, number: int) -> None:
        """The leader names a snapshot, unless it is an older one than the log has."""
        snapshot_id = OffsetAndEpoch((10, 10, 20)[number % 3], 2)
        role = self.core.raft.role
        if isinstance(role, Follower) and self.core.asked_offset is not None:
            self.core.name(snapshot_id, role.leader.id)

    def chunk(self, number: int) -> None:
        """The leader sends what was asked for, or something else."""
        message, role = self.core.last_request, self.core.raft.role
        if not isinstance(message, FetchSnapshotRequest) or not isinstance(role, Follower):
            return
        asked = message.topics[0].partitions[0]
        snapshot_id = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        data = snapshot_bytes(snapshot_id, VOTERS, [b"x" * 200, b"y" * 50])
        position = asked.position + (0, 0, 0, 0, 0, 5, -5, 0, 0, 0)[number % 10]
        piece = data[position : position + (100, 1000, 300)[number % 3]]
        if number % 10 == 9:
            piece = damaged(piece) if len(piece) > 101 else bytes(len(piece))
        error = ErrorCode.SNAPSHOT_NOT_FOUND if number % 10 == 8 else ErrorCode.NONE
        self.core.send_chunk(
            position, piece, snapshot_id=snapshot_id, size=len(data), error=error, leader=role.leader.id
        )

    def repeat(self, number: int) -> None:
        """The answer to a request that was answered arrives again."""
        sent = self.core.requests[number % len(self.core.requests)]
        if isinstance(sent.message, FetchSnapshotRequest):
            answer = fetch_snapshot_response(self.core.raft.role.epoch, 2, SNAPSHOT, 0, DATA, len(DATA))
            if sent is not self.core.requests[-1]:
                self.core.respond(sent.number, answer)

    def lose(self, number: int) -> None:
        """The last request is lost."""
        self.core.raft.request_failed(self.core.requests[-1].number)
        self.core.settle()
        self.core.sleep(CONFIG.retry_backoff_ms)

    def later_leader(self, number: int) -> None:
        """Another leader begins an epoch."""
        epoch = self.core.raft.role.epoch + 1
        self.core.request("", begin_quorum_epoch_request(2 + epoch % 2, epoch), version=1)

    def later_epoch(self, number: int) -> None:
        """A candidate asks for a vote, and then it leads."""
        epoch = self.core.raft.role.epoch + 1
        end = OffsetAndEpoch(100, 2)
        self.core.request("", vote_request(replica_key(2), epoch, end), version=2)
        self.core.request("", begin_quorum_epoch_request(2, epoch), version=1)

    def register(self, number: int) -> None:
        """A state machine begins to listen."""
        self.core.raft.register_listener()
        self.core.settle()

    def sleep(self, number: int) -> None:
        """Time passes."""
        self.core.sleep((1, 20, 100, 500)[number % 4])


EVENTS = (
    *("name",) * 2,
    *("chunk",) * 4,
    "repeat",
    "lose",
    "later_leader",
    "later_epoch",
    "register",
    "sleep",
)


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 59)), max_size=40))
def test_no_partial_snapshot_is_ever_listed(events: list[tuple[str, int]]) -> None:
    """Whatever is lost, repeated or changed: what is listed is whole, and nothing is left of what was given up."""
    Story(events)


# Chunks


@pytest.mark.parametrize("position", [99, 101])
def test_only_the_next_position_is_written(position: int) -> None:
    """A chunk one byte before the place, or after it, is not written, and the request is sent again."""
    core = fetching()
    core.send_chunk(0, DATA[:100])
    core.send_chunk(position, DATA[position : position + 10])
    core.sleep(CONFIG.retry_backoff_ms)
    assert core.asked_position == 100
    core.send_chunk(100, DATA[100:])
    assert core.stored_bytes() == DATA


@pytest.mark.parametrize(("extra", "next_position"), [(-1, len(DATA) - 1), (0, None), (1, 0)])
def test_a_chunk_ends_within_the_snapshot(extra: int, next_position: int | None) -> None:
    """A chunk that ends before the end of the snapshot, or there, is written; one that ends after it is not."""
    core = fetching()
    core.send_chunk(0, (DATA + b"x")[: len(DATA) + extra])
    core.sleep(CONFIG.retry_backoff_ms)
    assert core.asked_position == next_position
    assert core.stored_bytes() == (DATA if next_position is None else None)
    assert core.raft.snapshot_refusal is None


def test_the_next_chunk_is_asked_for_when_the_last_one_is_written() -> None:
    """A slow disk has one chunk to write, and a follower asks for no more meanwhile."""
    core = fetching()
    core.is_slow = True
    core.send_chunk(0, DATA[:100])
    count = len(core.requests)
    core.sleep(100)
    assert len(core.requests) == count
    assert [type(each) for each in core.waiting] == [AppendToFetchedSnapshot]
    core.work()
    assert core.asked_position == 100


def test_a_chunk_is_as_good_as_a_fetch() -> None:
    """Each chunk puts off the election by a fetch timeout; without one it begins."""
    core = fetching()
    for position in (0, 10, 20):
        core.sleep(CONFIG.fetch_timeout_ms - 1)
        core.send_chunk(position, DATA[position : position + 10])
    core.sleep(CONFIG.fetch_timeout_ms - 1)
    assert isinstance(core.raft.role, Follower)
    core.sleep(1)
    assert not isinstance(core.raft.role, Follower)
    assert core.fetched is None


def test_negative_ids_are_none() -> None:
    """A snapshot id with one negative number is a failed request; in an answer to a FetchSnapshot it is no snapshot."""
    for snapshot_id in (OffsetAndEpoch(-1, 2), OffsetAndEpoch(4, -1)):
        core = FollowerOfTwo()
        core.name(snapshot_id)
        core.sleep(CONFIG.retry_backoff_ms)
        assert core.asked_offset == 3
        core = fetching()
        core.send_chunk(0, DATA, snapshot_id=snapshot_id)
        assert (core.asked_offset, core.fetched) == (3, None)


def test_a_part_is_found_among_other_topics_as_kafka_finds_it() -> None:
    """The first part of this replica's log counts, unless the first topic has several parts."""
    core = fetching()
    right = fetch_snapshot_response(2, 2, SNAPSHOT, 0, DATA, len(DATA))
    (mine,) = right.topics
    other, twice = attrs.evolve(mine, name="other"), attrs.evolve(mine, partitions=mine.partitions * 2)
    for topics in ((), (other,), (twice, mine)):
        core.respond(core.requests[-1].number, attrs.evolve(right, topics=topics))
        assert core.stored_bytes() is None
        core.sleep(CONFIG.retry_backoff_ms)
        assert core.asked_position == 0
    core.respond(core.requests[-1].number, attrs.evolve(right, topics=(other, mine)))
    assert core.stored_bytes() == DATA


# The end of a fetch


def test_a_snapshot_is_delivered_when_the_log_starts_at_it() -> None:
    """A state machine that begins to listen while the log restarts does not know more than the log has."""
    core = FollowerOfTwo()
    core.learn_high_watermark(1)
    freeze_slowly(core)
    listener = core.raft.register_listener()
    core.settle()
    assert texts(core, listener) == []
    core.work()
    assert texts(core, listener) == ["snapshot 10@2"]


def test_a_role_that_changes_while_the_snapshot_is_frozen() -> None:
    """A snapshot that is being frozen is not given up: the log restarts at it, whatever the role is then."""
    core = fetching()
    core.is_slow = True
    core.send_chunk(0, DATA)
    core.work()
    assert [type(each) for each in core.waiting] == [FreezeFetchedSnapshot]
    core.request("", begin_quorum_epoch_request(3, 3), version=1)
    core.work()
    assert [type(each) for each in core.waiting] == [RestartAtLatestSnapshot]
    core.work()
    assert (core.raft.role.epoch, core.raft.high_watermark, core.asked_offset) == (3, 10, 10)


def test_a_role_that_changes_while_the_last_chunk_is_written() -> None:
    """What is whole but not frozen is given up."""
    core = fetching()
    core.is_slow = True
    core.send_chunk(0, DATA)
    core.request("", begin_quorum_epoch_request(3, 3), version=1)
    assert [type(each) for each in core.waiting] == [AppendToFetchedSnapshot, AbandonFetchedSnapshot]
    core.work()
    core.work()
    assert not core.waiting
    assert (core.fetched, core.stored_bytes(), core.asked_offset) == (None, None, 3)


def test_no_election_begins_while_a_snapshot_is_verified() -> None:
    """Verifying may take longer than a fetch timeout; the follower is not out of touch for that."""
    core = fetching()
    core.is_slow = True
    core.send_chunk(0, DATA)
    core.work()
    core.sleep(10 * CONFIG.fetch_timeout_ms)
    core.work()
    core.work()
    core.sleep(CONFIG.fetch_timeout_ms - 1)
    assert isinstance(core.raft.role, Follower)
    assert core.log.end_offset.offset == 10


def test_records_of_the_snapshot_are_committed_once() -> None:
    """The high watermark rises to the end of the snapshot; a higher one of the leader waits for the records."""
    core = fetching()
    core.send_chunk(0, DATA)
    core.respond(core.requests[-1].number, fetch_response(2, 2, records=records_at(10, 2, 2), high_watermark=50))
    assert (core.raft.high_watermark, core.log.high_watermark.offset) == (12, 12)


def test_records_that_a_snapshot_replaces_are_never_committed() -> None:
    """The log has records that diverge; between the freezing of the snapshot and the restart they are still there."""
    core = FollowerOfTwo(log_with([(1, 4)], VOTERS))
    freeze_slowly(core)
    assert (core.raft.high_watermark, core.raft.status.log_end.offset) == (None, 4)
    core.work()
    assert (core.raft.high_watermark, core.raft.status.log_end.offset) == (10, 10)


@pytest.mark.parametrize(
    "end", [OffsetAndEpoch(2, 2), OffsetAndEpoch(4, 1), OffsetAndEpoch(3, 2), OffsetAndEpoch(4, 2)]
)
def test_snapshots_ahead_of_the_log_by_epoch_or_offset(end: OffsetAndEpoch) -> None:
    """Epochs are compared first, as in the restart of the log."""
    core = FollowerOfTwo()
    core.name(end)
    data = snapshot_bytes(end, VOTERS)
    core.send_chunk(0, data, snapshot_id=end, size=len(data))
    assert (core.log.end_offset.offset, core.log.last_fetched_epoch) == (end.offset, end.epoch)


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(3, 1), OffsetAndEpoch(2, 1), OffsetAndEpoch(3, 0)])
def test_snapshots_that_bring_nothing_are_not_fetched(snapshot_id: OffsetAndEpoch) -> None:
    """A snapshot at the log end, or before it, would replace nothing."""
    core = FollowerOfTwo()
    core.name(snapshot_id)
    core.sleep(CONFIG.retry_backoff_ms)
    assert (core.asked_offset, core.fetched, core.raft.halt_reason) == (3, None, None)


@pytest.mark.parametrize("end_offset", [3, 4, 5])
def test_a_log_of_a_later_epoch_has_diverged_from_a_snapshot(end_offset: int) -> None:
    """The leader's log has only epochs up to the snapshot's below its end: what is later here is dropped first."""
    core = FollowerOfTwo(log_with([(1, 3), (2, 1)], VOTERS))
    core.name(OffsetAndEpoch(end_offset, 1))
    is_longer = end_offset < 4
    assert (core.log.end_offset.offset, core.log.last_fetched_epoch) == ((4, 2) if is_longer else (3, 1))
    core.sleep(CONFIG.retry_backoff_ms if is_longer else 0)
    assert (core.asked_offset, core.raft.halt_reason) == (core.log.end_offset.offset, None)


def test_no_committed_record_is_dropped_for_a_snapshot() -> None:
    """A leader whose snapshot contradicts what is committed must not be followed."""
    core = FollowerOfTwo(log_with([(1, 3), (2, 1)], VOTERS))
    core.learn_high_watermark(4)
    core.name(OffsetAndEpoch(5, 1))
    assert core.raft.halt_reason == "leader 2 asks to truncate to 3, but 4 is committed"
    assert core.log.end_offset.offset == 4


def test_a_log_restarts_at_a_snapshot_that_is_stored() -> None:
    """A crash of Kafka's client leaves it: it is ahead of the log once what diverges is dropped."""
    log = log_with([(1, 3), (2, 1)], VOTERS)
    stored = OffsetAndEpoch(5, 1)
    raw = log.create_snapshot_unchecked(stored)
    assert raw is not None
    with raw:
        raw.append(snapshot_bytes(stored, VOTERS))
        raw.freeze()
    core = FollowerOfTwo(log)
    core.name(stored)
    assert (core.asked_offset, core.log.start_offset, core.log.end_offset.offset) == (3, 0, 3)
    core.name(stored)
    assert (core.asked_offset, core.log.start_offset, core.log.end_offset.offset) == (5, 5, 5)
    assert core.raft.halt_reason is None


# Refused snapshots


def test_a_snapshot_in_a_codec_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica stays up, and says what is missing; it fetches the snapshot again, seldom."""
    data, core = snapshot_bytes(SNAPSHOT, VOTERS, compression_type=CompressionType.ZSTD), fetching()
    with monkeypatch.context() as without_zstd:
        without_zstd.setitem(sys.modules, "zstandard", None)
        core.send_chunk(0, data, size=len(data))
    assert core.raft.halt_reason is None
    assert "MissingExtraError: zstd compression needs a package" in str(core.raft.status.snapshot_refusal)
    assert core.raft.deadline_ms == core.now_ms + CONFIG.retry_backoff_ms
    core.sleep(CONFIG.retry_backoff_ms)
    core.name()
    core.send_chunk(0, data, size=len(data))
    assert core.raft.status.snapshot_refusal is None
    assert core.log.latest_snapshot_id == SNAPSHOT


def test_a_refused_snapshot_is_fetched_again_after_a_growing_pause() -> None:
    """Each refusal doubles the pause, up to half a fetch timeout; a success ends that."""
    core = FollowerOfTwo()
    for count in range(8):
        core.name()
        core.send_chunk(0, damaged(DATA))
        assert core.raft.snapshot_refusal is not None
        assert (core.fetched, core.stored_bytes()) == (None, None)
        sent, pause_ms = len(core.requests), min(20 << count, 1000)
        assert core.raft.deadline_ms == core.now_ms + pause_ms
        core.sleep(pause_ms - 1)
        assert len(core.requests) == sent
        core.sleep(1)
        assert len(core.requests) == sent + 1
    core.name()
    core.send_chunk(0, DATA)
    assert core.raft.snapshot_refusal is None
    assert core.stored_bytes() == DATA


def test_a_disk_without_room_is_no_failed_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that does not fit is given up, and fetched again later."""
    core = fetching()
    assert core.fetched is not None

    def refuse(position: int, data: bytes) -> None:
        raise OutOfSpaceError("snapshot", "write", "no room")

    monkeypatch.setattr(core.fetched, "append_at", refuse)
    core.send_chunk(0, DATA)
    assert core.stored_bytes() is None
    assert core.raft.halt_reason is None
    core.sleep(CONFIG.retry_backoff_ms)
    assert core.asked_offset == 3


def test_only_work_on_a_fetched_snapshot_can_be_refused() -> None:
    """Another number is misuse by the embedder, and changes nothing; so is the restart of the log."""
    core = fetching()
    core.is_slow = True
    core.send_chunk(0, DATA)
    for number in (0, core.waiting[0].number + 1):
        with pytest.raises(ValueError, match="is not the snapshot"):
            core.raft.snapshot_refused(number, "no")
    core.work()
    core.work()
    with pytest.raises(ValueError, match="is not the snapshot"):
        core.raft.snapshot_refused(core.waiting[0].number, "no")
    core.work()
    assert core.stored_bytes() == DATA


def test_a_halted_replica_takes_no_results() -> None:
    """After a failed disk nothing of a snapshot is done any more."""
    core = fetching()
    core.raft.effect_failed(1, "the disk has failed")
    core.raft.snapshot_refused(1, "no")
    core.raft.snapshot_read(1, None)
    core.raft.snapshot_frozen(1)
    assert core.raft.create_snapshot(3) is None
    assert not core.raft.take_effects()
