# SPDX-License-Identifier: Apache-2.0
"""Serving snapshots: which request gets which answer, and what a leader may hold for its readers."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leading.serving_snapshots import MAX_SNAPSHOT_READS
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.snapshot_effects import ReadSnapshot, SnapshotChunk
from raftlog.records.messages.raft.endpoints import NodeEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchSnapshotRequest,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, fetch_snapshot_request
from tests.quorum.single_replica import replica_key

OTHER = replica_key(2)
TAKEN = OffsetAndEpoch(LOG_END, 3)
EARLIER = OffsetAndEpoch(3, 1)


def leader(slow: type[ReadSnapshot] | None = None) -> SlowDisk:
    """Return a leader of three voters with snapshots at the first batch's end, and at the log end."""
    core = leader_of((1, 2, 3), slow)
    fetch(core, OTHER, ENDS[3])
    core.take_snapshot(EARLIER.offset, b"a")
    core.take_snapshot(LOG_END, b"a", b"b")
    assert core.log.snapshot_ids[1:] == (EARLIER, TAKEN)
    return core


def ask(core: SlowDisk, request: FetchSnapshotRequest, version: int = 1) -> list[FetchSnapshotResponse]:
    """Deliver a request, and return what has been answered since."""
    core.request("r", request, version)
    return answers(core)


def answers(core: SlowDisk) -> list[FetchSnapshotResponse]:
    """Return the answers to fetches of snapshots."""
    found = [each.message for each in core.take_responses()]
    return [each for each in found if isinstance(each, FetchSnapshotResponse)]


def only_part(found: list[FetchSnapshotResponse]) -> FetchSnapshotResponsePartitionSnapshot:
    """Return the partition of the only answer."""
    (answer,) = found
    return answer.topics[0].partitions[0]


def request(
    snapshot_id: OffsetAndEpoch = TAKEN, position: int = 0, key: ReplicaKey = OTHER, max_bytes: int = 2**31 - 1
) -> FetchSnapshotRequest:
    """Return the request of a replica in epoch 3."""
    return fetch_snapshot_request(key, 3, snapshot_id, position, max_bytes=max_bytes)


# Answers


@given(st.sampled_from((EARLIER, TAKEN)), st.integers(1, 500))
def test_a_reader_gets_every_snapshot_in_pieces_of_any_size(snapshot_id: OffsetAndEpoch, size: int) -> None:
    """Whatever it asks for at once, what it gets are the bytes of the file, and where they are in it."""
    core, found = leader(), b""
    reader = core.log.read_snapshot(snapshot_id)
    assert reader is not None
    expected = bytes(reader.read_at(0, reader.size()))
    while len(found) < len(expected):
        part = only_part(ask(core, request(snapshot_id, len(found), max_bytes=size)))
        assert (part.error_code, part.position, part.size) == (0, len(found), len(expected))
        assert (part.snapshot_id.end_offset, part.snapshot_id.epoch) == (snapshot_id.offset, snapshot_id.epoch)
        found += part.unaligned_records
    assert found == expected


def test_positions_at_both_ends() -> None:
    """The first and the last byte are there; what is before and after them is out of range."""
    core = leader()
    size = only_part(ask(core, request())).size
    for position, error in ((-1, 99), (0, 0), (size - 1, 0), (size, 99), (2**40, 99)):
        assert only_part(ask(core, request(position=position))).error_code == error


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (attrs.evolve(request(), cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (attrs.evolve(request(), topics=()), ErrorCode.INVALID_REQUEST),
        (
            attrs.evolve(request(), topics=(FetchSnapshotRequestTopicSnapshot(name="x", partitions=()),)),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_errors_of_the_whole_request(asked: FetchSnapshotRequest, error: ErrorCode) -> None:
    """A request of another cluster, or for nothing, is refused as a whole."""
    (answer,) = ask(leader(), asked)
    assert (answer.error_code, answer.topics) == (error, ())


def test_a_request_without_a_cluster_id_is_of_this_cluster() -> None:
    """As in Kafka, a null cluster id is not checked."""
    assert only_part(ask(leader(), attrs.evolve(request(), cluster_id=None))).error_code == 0


def test_another_topic_or_partition_is_unknown() -> None:
    """It is named in the answer, which does not name the leader."""
    core = leader()
    topic = request().topics[0]
    other_topic = attrs.evolve(topic, name="other")
    other_partition = attrs.evolve(topic, partitions=(attrs.evolve(topic.partitions[0], partition=1),))
    for asked in (other_topic, other_partition):
        (answer,) = ask(core, attrs.evolve(request(), topics=(asked,)))
        part = answer.topics[0].partitions[0]
        assert answer.topics[0].name == asked.name
        assert part.index == asked.partitions[0].partition
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (0, 0)


def test_our_partition_is_found_among_others() -> None:
    """As in Kafka, a request may name other partitions and topics, of which nothing is said."""
    core = leader()
    topic = request().topics[0]
    ours = topic.partitions[0]
    both = attrs.evolve(topic, partitions=(attrs.evolve(ours, partition=4), ours))
    assert only_part(ask(core, attrs.evolve(request(), topics=(both,)))).size > 0
    first = FetchSnapshotRequestTopicSnapshot(name="other", partitions=(ours,))
    assert only_part(ask(core, attrs.evolve(request(), topics=(first, topic)))).size > 0
    many = attrs.evolve(first, partitions=(ours, ours))
    (answer,) = ask(core, attrs.evolve(request(), topics=(many, topic)))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("epoch", "snapshot_id", "error"),
    [
        (2, TAKEN, ErrorCode.FENCED_LEADER_EPOCH),
        (4, TAKEN, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, OffsetAndEpoch(0, 0), ErrorCode.SNAPSHOT_NOT_FOUND),
        (3, OffsetAndEpoch(LOG_END, 2), ErrorCode.SNAPSHOT_NOT_FOUND),
        (3, OffsetAndEpoch(-1, -1), ErrorCode.SNAPSHOT_NOT_FOUND),
    ],
)
def test_errors_of_the_partition(epoch: int, snapshot_id: OffsetAndEpoch, error: ErrorCode) -> None:
    """The epoch is checked first; the answer names the leader, and where it listens."""
    (answer,) = ask(leader(), fetch_snapshot_request(OTHER, epoch, snapshot_id))
    part = answer.topics[0].partitions[0]
    assert part.error_code == error
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (1, 3)
    assert (part.snapshot_id.end_offset, part.size, part.unaligned_records) == (0, 0, b"")
    assert answer.node_endpoints == (NodeEndpoint(node_id=1, host="localhost", port=9991),)


def test_the_oldest_version_has_no_place_for_endpoints() -> None:
    """Version 0 does not say where the leader listens."""
    (answer,) = ask(leader(), request(), version=0)
    assert answer.node_endpoints == ()


@pytest.mark.parametrize(("max_bytes", "count"), [(0, 0), (1, 1)])
def test_as_many_bytes_as_were_asked_for(max_bytes: int, count: int) -> None:
    """A request for no bytes is answered with none, as in Kafka."""
    assert len(only_part(ask(leader(), request(max_bytes=max_bytes))).unaligned_records) == count


def test_a_negative_number_of_bytes() -> None:
    """It is an error of the request."""
    assert only_part(ask(leader(), request(max_bytes=-1))).error_code == ErrorCode.INVALID_REQUEST


def test_a_leader_reads_no_more_than_its_own_limit() -> None:
    """A peer that asks for 2 GiB gets what is configured."""
    core = leader(ReadSnapshot)
    ask(core, request())
    (effect,) = core.held
    assert isinstance(effect, ReadSnapshot)
    assert effect.max_size_bytes == 1024 * 1024


# Reads that take time


def test_reads_are_bounded_and_one_more_is_told_to_try_again() -> None:
    """With one place left a request is read for; with none it is answered at once."""
    core = leader(ReadSnapshot)
    for _ in range(MAX_SNAPSHOT_READS):
        assert not ask(core, request())
    assert only_part(ask(core, request())).error_code == ErrorCode.BROKER_NOT_AVAILABLE
    core.let_go()
    assert len(answers(core)) == MAX_SNAPSHOT_READS
    assert not ask(core, request())


def test_reads_end_with_the_leadership() -> None:
    """Who waits is told that this replica leads no more, and the late result changes nothing."""
    core = leader(ReadSnapshot)
    ask(core, request())
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    part = only_part(answers(core))
    assert (part.error_code, part.current_leader.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 4)
    core.let_go()
    assert not answers(core)


def test_a_snapshot_that_is_gone_when_it_is_read() -> None:
    """The reader is told, and begins again with a Fetch."""
    core = leader(ReadSnapshot)
    ask(core, request())
    core.raft.snapshot_read(core.held[0].number, None)
    core.settle()
    assert only_part(answers(core)).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_results_that_nobody_waits_for() -> None:
    """A read that was never asked for, or was reported before, changes nothing."""
    core = leader(ReadSnapshot)
    ask(core, request())
    number = core.held[0].number
    for each in (number, number, 999):
        core.raft.snapshot_read(each, SnapshotChunk(10, b"x"))
        core.settle()
    assert len(answers(core)) == 1


# Contact


@pytest.mark.parametrize(
    ("key", "position", "is_leader"),
    [
        (OTHER, 0, True),
        (OTHER, 2**40, False),
        (replica_key(4), 0, False),
        (replica_key(2, 7), 0, False),
        (ReplicaKey(-1, OTHER.directory_id), 0, False),
    ],
)
def test_only_bytes_for_a_voter_count_as_contact(key: ReplicaKey, position: int, is_leader: bool) -> None:
    """An error does not, and neither does a replica that is no voter, is in another directory, or has no id."""
    core = leader()
    core.sleep(2999)
    ask(core, request(position=position, key=key))
    core.sleep(1)
    assert isinstance(core.raft.role, Leader) == is_leader
