# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientSnapshotTest.

The leader here has records 0..2 of epoch 1, 3..4 of epoch 2, and 5..7, which start its epoch 3.
"""

import pytest

from raftlog.errors import InvalidSnapshotIdError
from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import CLEANING_INTERVAL_MS, QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Prospective, Unattached
from raftlog.quorum.seam.effects import DeliverBatches, DeliverBootstrap, Delivering, DeliverSnapshot
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchResponsePartitionData,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from tests.quorum.following.followers import DATA, SNAPSHOT, FollowerOfTwo
from tests.quorum.leading.leaders import EPOCH_START, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import fetch_response, fetch_snapshot_request, fetch_snapshot_response, vote_request
from tests.quorum.single_replica import SingleReplica, replica_key

CONFIG = QuorumConfig()
OTHER = replica_key(2)
OLDEST = OffsetAndEpoch(EPOCH_START, 2)
LATEST = OffsetAndEpoch(LOG_END, 3)


def _leader(*snapshots: int) -> SlowDisk:
    """Return a leader of voters 1 and 2, which has committed its log and taken snapshots."""
    core = leader_of((1, 2))
    fetch(core, OTHER, LATEST)
    for offset in snapshots:
        core.take_snapshot(offset, b"x")
    return core


def _leader_from_snapshot() -> SlowDisk:
    """Return the only voter, whose log starts at a snapshot."""
    core = leader_of((1,))
    _start_at(core, OLDEST.offset)
    return core


def _start_at(core: SingleReplica, offset: int) -> None:
    """Take a snapshot, and let the log start there."""
    core.take_snapshot(offset, b"x")
    instance_of(core.log, MemoryLog)._retention = Retention(max_bytes=0, max_age_ms=None)
    core.sleep(CLEANING_INTERVAL_MS)
    assert core.log.start_offset == offset


def _answer(core: SlowDisk, end: OffsetAndEpoch, wait: int = 500) -> FetchResponsePartitionData:
    (answer,) = fetch(core, OTHER, end, wait=wait)
    assert answer.error_code == ErrorCode.NONE
    return answer


def _names(answer: FetchResponsePartitionData) -> OffsetAndEpoch | None:
    named = answer.snapshot_id
    return None if named.end_offset < 0 else OffsetAndEpoch(named.end_offset, named.epoch)


def _ask(core: SingleReplica, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    core.take_responses()
    core.request("r", request, version=1)
    (sent,) = core.take_responses()
    return instance_of(sent.message, FetchSnapshotResponse)


def _part(core: SingleReplica, request: FetchSnapshotRequest) -> FetchSnapshotResponsePartitionSnapshot:
    return _ask(core, request).topics[0].partitions[0]


def _read_all(core: SingleReplica) -> list[Delivering]:
    """Return what a new listener is given, one thing after another."""
    core.deliveries.clear()
    core.raft.register_listener()
    core.settle()
    found: list[Delivering] = []
    while core.deliveries:
        found.append(core.deliveries.pop())
        end = found[-1].end_offset if isinstance(found[-1], DeliverBatches) else found[-1].snapshot_id.offset
        core.close(found[-1].number, end)
    return found


def _given(core: SingleReplica) -> list[tuple[str, int]]:
    """Return the same as words, each with the end of what was given."""
    return [
        ("batches", each.end_offset) if isinstance(each, DeliverBatches) else ("snapshot", each.snapshot_id.offset)
        for each in _read_all(core)
    ]


def _fetching() -> FollowerOfTwo:
    core = FollowerOfTwo()
    core.name()
    core.send_chunk(0, DATA[:100])
    assert core.fetched is not None
    return core


# Listeners


def test_latest_snapshot_id() -> None:
    """The log lists the snapshot that was taken last."""
    assert _leader(3, LOG_END).log.latest_snapshot_id == LATEST


def test_latest_snapshot_id_missing() -> None:
    """A log without a snapshot of records lists none but that of the bootstrap."""
    assert _leader().log.latest_snapshot_id == OffsetAndEpoch(0, 0)


def test_leader_listener_notified() -> None:
    """A leader's listener is given the snapshot, and then the records after it."""
    assert _given(_leader_from_snapshot()) == [("snapshot", OLDEST.offset), ("batches", LOG_END)]


def test_follower_listener_notified() -> None:
    """So is a follower's, whose log starts at a snapshot that it has fetched."""
    core = FollowerOfTwo()
    core.name()
    core.send_chunk(0, DATA)
    assert _given(core) == [("snapshot", SNAPSHOT.offset)]


def test_second_listener_notified() -> None:
    """A listener that comes later is given the same."""
    core = _leader_from_snapshot()
    assert _given(core) == _given(core) == [("snapshot", OLDEST.offset), ("batches", LOG_END)]


def test_listener_renotified() -> None:
    """A listener that has not read what the log has deleted is given the later snapshot."""
    core = _leader_from_snapshot()
    core.raft.register_listener()
    core.settle()
    core.close(core.deliveries[-1].number, OLDEST.offset)
    slow = core.deliveries[-1]
    _start_at(core, LOG_END)
    core.close(slow.number, OLDEST.offset)
    core.sleep(CONFIG.retry_backoff_ms)
    later = core.deliveries[-1]
    assert isinstance(later, DeliverSnapshot)
    assert later.snapshot_id == LATEST


def test_listener_receives_bootstrap_snapshot() -> None:
    """The bootstrap snapshot is given as such, before the records."""
    kinds = [type(each) for each in _read_all(leader_of((1,)))]
    assert kinds == [DeliverBootstrap, DeliverBatches]


def test_listener_receives_bootstrap_snapshot_via_follower_fetch() -> None:
    """So it is when another voter's Fetch commits the records."""
    assert [type(each) for each in _read_all(_leader())] == [DeliverBootstrap, DeliverBatches]


# Answers to a Fetch


def test_leader_immediately_sends_snapshot_id() -> None:
    """A Fetch that may wait does not, if the answer is a snapshot."""
    assert _names(_answer(_leader_from_snapshot(), OffsetAndEpoch(0, 0), wait=10_000)) == OLDEST


def test_fetch_request_offset_less_than_log_start() -> None:
    """Records that the log has no more are in the snapshot."""
    assert _names(_answer(_leader_from_snapshot(), OffsetAndEpoch(EPOCH_START - 1, 2))) == OLDEST


def test_fetch_request_offset_at_zero() -> None:
    """A replica without records gets the snapshot, although the log has all records."""
    core = _leader(OLDEST.offset)
    assert core.log.start_offset == 0
    assert _names(_answer(core, OffsetAndEpoch(0, 0))) == OLDEST


def test_fetch_request_with_larger_last_fetched_epoch() -> None:
    """A last epoch above the sender's own epoch cannot be."""
    (answer,) = fetch(_leader(OLDEST.offset), OTHER, OffsetAndEpoch(LOG_END, 4))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_fetch_request_truncate_to_log_start() -> None:
    """A log that diverges after the snapshot's end is truncated to there."""
    diverging = _answer(_leader_from_snapshot(), OffsetAndEpoch(EPOCH_START + 1, 2)).diverging_epoch
    assert (diverging.end_offset, diverging.epoch) == (OLDEST.offset, OLDEST.epoch)


def test_fetch_request_at_log_start_offset_with_valid_epoch() -> None:
    """A replica that has the snapshot gets the records after it."""
    answer = _answer(_leader_from_snapshot(), OLDEST)
    assert (_names(answer), answer.diverging_epoch.end_offset) == (None, -1)
    assert answer.records


def test_fetch_request_at_log_start_offset_with_invalid_epoch() -> None:
    """A replica with other records up to the log start needs the snapshot."""
    for epoch in (1, 3):
        assert _names(_answer(_leader_from_snapshot(), OffsetAndEpoch(OLDEST.offset, epoch))) == OLDEST


def test_fetch_request_with_last_fetched_epoch_less_than_oldest_snapshot() -> None:
    """A replica whose last epoch is older than the snapshot's needs the snapshot, wherever its log ends."""
    for offset in (OLDEST.offset, OLDEST.offset + 1, LOG_END):
        assert _names(_answer(_leader_from_snapshot(), OffsetAndEpoch(offset, 1))) == OLDEST


# Answers to a FetchSnapshot


def test_fetch_snapshot_request_missing_snapshot() -> None:
    """A snapshot that is not there is not found."""
    request = fetch_snapshot_request(OTHER, 3, OffsetAndEpoch(4, 2))
    assert _part(_leader(LOG_END), request).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_fetch_snapshot_request_bootstrap_snapshot() -> None:
    """That of the bootstrap is there, and is not found either."""
    request = fetch_snapshot_request(OTHER, 3, OffsetAndEpoch(0, 0))
    assert _part(_leader(), request).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_fetch_snapshot_request_unknown_partition() -> None:
    """Another partition is unknown."""
    request = fetch_snapshot_request(OTHER, 3, LATEST, partition=1)
    assert _part(_leader(LOG_END), request).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_fetch_snapshot_request_as_leader() -> None:
    """A request for all of a snapshot is answered with all of it."""
    core = _leader(LOG_END)
    part = _part(core, fetch_snapshot_request(OTHER, 3, LATEST))
    reader = core.log.read_snapshot(LATEST)
    assert reader is not None
    assert (part.position, part.size) == (0, reader.size())
    assert part.unaligned_records == bytes(reader.read_at(0, reader.size()))


def test_leader_should_resign_leadership_if_not_get_fetch_snapshot_request_from_majority_voters() -> None:
    """Requests of a majority keep the leadership; without them it ends after one and a half fetch timeouts."""
    core = _leader(LOG_END)
    for _ in range(3):
        core.sleep(CONFIG.check_quorum_timeout_ms - 1)
        _part(core, fetch_snapshot_request(OTHER, 3, LATEST))
    core.sleep(CONFIG.check_quorum_timeout_ms - 1)
    assert isinstance(core.raft.role, Leader)
    _part(core, fetch_snapshot_request(replica_key(7), 3, LATEST))
    core.sleep(1)
    assert not isinstance(core.raft.role, Leader)


def test_partial_fetch_snapshot_request_as_leader() -> None:
    """Two requests for halves are answered with halves, which are the whole."""
    core = _leader(LOG_END)
    whole = _part(core, fetch_snapshot_request(OTHER, 3, LATEST))
    first = _part(core, fetch_snapshot_request(OTHER, 3, LATEST, max_bytes=whole.size // 2))
    second = _part(core, fetch_snapshot_request(OTHER, 3, LATEST, whole.size // 2))
    assert bytes(first.unaligned_records) + bytes(second.unaligned_records) == whole.unaligned_records


def test_fetch_snapshot_request_as_follower() -> None:
    """A follower of the same epoch does not serve snapshots."""
    part = _part(FollowerOfTwo(), fetch_snapshot_request(replica_key(3), 2, OffsetAndEpoch(3, 1)))
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert part.current_leader.leader_id == 2


def test_fetch_snapshot_request_with_partial_data() -> None:
    """A follower asks for the bytes after those that it has."""
    assert _fetching().asked_position == 100


def test_fetch_snapshot_request_with_invalid_position() -> None:
    """A position before the first byte, or after the last one, is out of range."""
    core = _leader(LOG_END)
    size = _part(core, fetch_snapshot_request(OTHER, 3, LATEST)).size
    for position in (-1, size):
        part = _part(core, fetch_snapshot_request(OTHER, 3, LATEST, position))
        assert part.error_code == ErrorCode.POSITION_OUT_OF_RANGE


def test_fetch_snapshot_request_with_older_epoch() -> None:
    """A replica of an old epoch is fenced."""
    request = fetch_snapshot_request(OTHER, 2, LATEST)
    assert _part(_leader(LOG_END), request).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_fetch_snapshot_request_with_newer_epoch() -> None:
    """A leader does not know a later epoch."""
    request = fetch_snapshot_request(OTHER, 4, LATEST)
    assert _part(_leader(LOG_END), request).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_fetch_snapshot_request_cluster_id_validation() -> None:
    """A request of this cluster, or of none, is served; one of another cluster is not."""
    core = _leader(LOG_END)
    for cluster, error in (("c", 0), (None, 0), ("", 104), ("other", 104)):
        assert _ask(core, fetch_snapshot_request(OTHER, 3, LATEST, cluster_id=cluster)).error_code == error


# Answers that a follower gets


def test_fetch_response_with_invalid_snapshot_id() -> None:
    """An id with one number missing is a failed request: the Fetch is sent again after a pause."""
    for snapshot_id in (OffsetAndEpoch(200, -1), OffsetAndEpoch(-1, 1)):
        core = FollowerOfTwo()
        core.name(snapshot_id)
        count = len(core.requests)
        core.sleep(CONFIG.retry_backoff_ms)
        assert (len(core.requests), core.asked_offset, core.fetched) == (count + 1, 3, None)


def test_fetch_response_with_snapshot_id() -> None:
    """The snapshot is fetched, the log restarts at it, and the next Fetch asks for what follows."""
    core = FollowerOfTwo()
    core.name()
    assert core.asked_position == 0
    core.send_chunk(0, DATA)
    assert (core.log.start_offset, core.raft.high_watermark, core.asked_offset) == (10, 10, 10)


def test_fetch_snapshot_response_partial_data() -> None:
    """Two chunks make the snapshot."""
    core = _fetching()
    core.send_chunk(100, DATA[100:])
    assert core.stored_bytes() == DATA


def test_fetch_snapshot_response_missing_snapshot() -> None:
    """A leader without the snapshot sends the follower back to fetching records."""
    core = _fetching()
    core.send_chunk(0, b"", error=ErrorCode.SNAPSHOT_NOT_FOUND)
    assert (core.asked_offset, core.fetched) == (3, None)


def test_fetch_snapshot_response_from_newer_epoch_not_leader() -> None:
    """A later epoch ends the fetch, and its leader is followed."""
    core = _fetching()
    answer = fetch_snapshot_response(3, 3, SNAPSHOT, error=ErrorCode.FENCED_LEADER_EPOCH)
    core.respond(core.requests[-1].number, answer)
    role = instance_of(core.raft.role, Follower)
    assert (role.epoch, role.leader.id, role.fetching_snapshot, core.fetched) == (3, 3, None, None)


def test_fetch_snapshot_response_from_newer_epoch_leader() -> None:
    """So it does if the same replica leads the later epoch; the bytes in the answer are not used."""
    core = _fetching()
    core.respond(core.requests[-1].number, fetch_snapshot_response(3, 2, SNAPSHOT, 100, DATA[100:], len(DATA)))
    role = instance_of(core.raft.role, Follower)
    assert (role.epoch, role.leader.id, role.fetching_snapshot, core.stored_bytes()) == (3, 2, None, None)


def test_fetch_snapshot_response_from_older_epoch() -> None:
    """An answer of an old epoch changes nothing: the fetch goes on."""
    core = _fetching()
    answer = fetch_snapshot_response(1, 3, SNAPSHOT, 100, DATA[100:], len(DATA))
    core.respond(core.requests[-1].number, answer)
    assert core.asked_position == 100
    core.send_chunk(100, DATA[100:])
    assert core.stored_bytes() == DATA


def test_fetch_snapshot_response_with_invalid_id() -> None:
    """A negative number in the id means that there is no snapshot. Differs: another id is a failed request."""
    for snapshot_id in (OffsetAndEpoch(-1, 2), OffsetAndEpoch(10, -1)):
        core = _fetching()
        core.send_chunk(100, DATA[100:], snapshot_id=snapshot_id)
        assert (core.asked_offset, core.fetched) == (3, None)
    core = _fetching()
    core.send_chunk(100, DATA[100:], snapshot_id=OffsetAndEpoch(11, 2))
    assert core.stored_bytes() is None
    core.sleep(CONFIG.retry_backoff_ms)
    assert core.asked_position == 100


def test_fetch_snapshot_response_to_not_follower() -> None:
    """A late answer changes nothing once the fetch timeout has begun an election, or another epoch has."""
    core = _fetching()
    number = core.requests[-1].number
    core.sleep(CONFIG.fetch_timeout_ms)
    answer = fetch_snapshot_response(2, 2, SNAPSHOT, 100, DATA[100:], len(DATA))
    core.respond(number, answer)
    assert isinstance(core.raft.role, Prospective)
    assert core.stored_bytes() is None
    core = _fetching()
    number = core.requests[-1].number
    core.request("", vote_request(replica_key(3), 5, OffsetAndEpoch(20, 2)), version=2)
    core.respond(number, answer)
    assert isinstance(core.raft.role, Unattached)
    assert core.stored_bytes() is None


# Snapshots of the application


def test_create_snapshot_as_leader_with_invalid_snapshot_id() -> None:
    """Not before anything is committed, not above that, and not inside of a batch. The core finds the epoch itself."""
    core = leader_of((1, 2))
    with pytest.raises(InvalidSnapshotIdError, match="above the high watermark 0"):
        core.raft.create_snapshot(4)
    fetch(core, OTHER, LATEST)
    core.append(b"a", b"b", b"c")
    core.sleep(CONFIG.append_linger_ms)
    assert core.log.end_offset.offset == LOG_END + 3
    with pytest.raises(InvalidSnapshotIdError, match=f"above the high watermark {LOG_END}"):
        core.raft.create_snapshot(LOG_END + 3)
    core.take_snapshot(LOG_END - 1)
    assert core.refused
    assert core.take_snapshot(LOG_END) == LATEST


def test_create_snapshot_as_follower_with_invalid_snapshot_id() -> None:
    """The same holds for a follower, which knows from its leader what is committed."""
    core = FollowerOfTwo()
    with pytest.raises(InvalidSnapshotIdError, match="above the high watermark 0"):
        core.raft.create_snapshot(1)
    core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=3))
    with pytest.raises(InvalidSnapshotIdError, match="above the high watermark 3"):
        core.raft.create_snapshot(4)
    core.take_snapshot(2)
    assert core.refused
    assert core.take_snapshot(3) == OffsetAndEpoch(3, 1)
