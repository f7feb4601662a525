# SPDX-License-Identifier: Apache-2.0
"""A replica whose log in files has lost records: it fetches them again without being counted, and is then whole."""

import pytest

from raftlog.invariants import instance_of, present
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Prospective
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterRequest
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.voter_set import ReplicaKey
from tests.file_logs import BATCH_SIZE, expected, fill, flip, open_log, records_of, segment_path
from tests.quorum.fetched_snapshots import snapshot_bytes
from tests.quorum.following.followers import VOTERS, FollowerOfTwo
from tests.quorum.following.observers import EPOCH, LEADER, observer_of
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch, leader_of
from tests.quorum.messages import fetch_response, vote_request
from tests.quorum.single_replica import log_with, replica_key, voter_set_of, write_bootstrap

CONFIG = QuorumConfig()
END = OffsetAndEpoch(20, 2)


def damaged_replica(
    *, can_become_voter: bool = True, voters: tuple[int, ...] = (1, 2, 3), port: int = 9991
) -> FollowerOfTwo:
    """Return a follower whose log was durable up to offset 8, and is damaged at offset 4."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    write_bootstrap(log, voter_set_of(map(replica_key, voters)))
    fill(log, 8)
    log.close()
    flip(file_system, segment_path(3), BATCH_SIZE + 65)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (4, 8)
    return FollowerOfTwo(log, can_become_voter=can_become_voter, port=port)


def fetched_as(core: FollowerOfTwo) -> tuple[int, int]:
    """Return the replica id of the last Fetch, and its offset."""
    message = core.last_request
    assert isinstance(message, FetchRequest)
    return message.replica_state.replica_id, message.topics[0].partitions[0].fetch_offset


def send(core: FollowerOfTwo, first: int, last: int) -> None:
    """The leader answers the last Fetch with records, both ends included."""
    records = b"".join(raft_batch(offset, 1) for offset in range(first, last + 1))
    core.respond(core.requests[-1].number, fetch_response(2, 2, records=records, high_watermark=8))


def is_granted(core: FollowerOfTwo, epoch: int = 3) -> bool:
    """Return whether a candidate with a longer log gets this replica's vote."""
    core.request("", vote_request(replica_key(3), epoch, END), version=2)
    message = core.take_responses()[-1].message
    granted: bool = message.topics[0].partitions[0].vote_granted  # type: ignore[union-attr]
    return granted


def test_a_damaged_log_is_repaired_by_fetches() -> None:
    """It fetches from its first bad offset on, and its records are those of the leader; then it counts again."""
    core = damaged_replica()
    assert fetched_as(core) == (-1, 4)
    send(core, 4, 5)
    assert fetched_as(core) == (-1, 6)
    send(core, 6, 6)
    assert fetched_as(core) == (-1, 7)
    send(core, 7, 7)
    assert core.log.quarantine is None
    assert fetched_as(core) == (1, 8)
    assert records_of(instance_of(core.log, FileLog)) == expected(0, 8)
    assert core.raft.high_watermark == 8


def test_a_damaged_replica_neither_votes_nor_stands() -> None:
    """Whatever time passes and whoever asks: until it is whole, it takes no part in an election."""
    core = damaged_replica()
    core.sleep(100 * CONFIG.fetch_timeout_ms)
    assert isinstance(core.raft.role, Follower)
    assert not is_granted(core)
    core.sleep(100 * CONFIG.election_timeout_ms)
    assert core.raft.role.epoch == 3
    assert not is_granted(core, 3)


def test_a_repaired_replica_votes_and_stands() -> None:
    """Once its log is flushed up to where it was durable, it is a voter like any other."""
    core = damaged_replica()
    send(core, 4, 7)
    core.sleep(CONFIG.fetch_timeout_ms)
    assert isinstance(core.raft.role, Prospective)
    core = damaged_replica()
    send(core, 4, 7)
    assert is_granted(core)
    assert core.stored is not None
    assert core.stored.voted_id == 3


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)])
@pytest.mark.parametrize("can_become_voter", [True, False])
def test_a_quarantine_ends_for_observers_too(voters: tuple[int, ...], can_become_voter: bool) -> None:
    """A quarantine ends by a flush, which an observer does not otherwise need."""
    core = damaged_replica(voters=voters, can_become_voter=can_become_voter)
    send(core, 4, 7)
    assert core.log.quarantine is None
    assert fetched_as(core) == (1, 8)


@pytest.mark.parametrize(("offset", "is_whole"), [(7, False), (8, True), (9, True)])
def test_a_snapshot_repairs_what_it_covers(offset: int, is_whole: bool) -> None:
    """A snapshot from where the log was durable on ends the quarantine; it too is fetched without an id."""
    core, snapshot_id = damaged_replica(), OffsetAndEpoch(offset, 2)
    data = snapshot_bytes(snapshot_id, VOTERS)
    core.name(snapshot_id)
    message = core.last_request
    assert isinstance(message, FetchSnapshotRequest)
    assert message.replica_id == -1
    core.send_chunk(0, data, snapshot_id=snapshot_id, size=len(data))
    assert (core.log.quarantine is None) == is_whole
    assert fetched_as(core) == (1 if is_whole else -1, offset)


def test_a_log_that_ends_below_its_own_snapshot_restarts_there() -> None:
    """Its damage is below the log start; the leader names a snapshot below what is known to be committed."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    write_bootstrap(log, voter_set_of(map(replica_key, (1, 2, 3))))
    fill(log, 8)
    own = OffsetAndEpoch(7, 1)
    log.update_high_watermark(7)
    with present(log.create_snapshot(own), "a new snapshot") as writer:
        writer.append(snapshot_bytes(own, VOTERS))
        writer.freeze()
    assert log.delete_before_snapshot(own)
    log.close()
    flip(file_system, segment_path(6), 65)
    log = open_log(file_system)
    assert (log.start_offset, log.end_offset.offset, log.snapshot_ids) == (7, 7, (own,))
    core = FollowerOfTwo(log)
    assert fetched_as(core) == (-1, 7)
    core.name(OffsetAndEpoch(5, 1))
    assert core.raft.halt_reason is None
    assert fetched_as(core) == (-1, 7)
    core.sleep(1_000)
    send(core, 7, 7)
    assert core.log.quarantine is None
    assert fetched_as(core) == (1, 8)


@pytest.mark.parametrize("may_vote", [False, True])
@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)])
def test_a_replica_that_cannot_vote_counts_for_nobody(*, may_vote: bool, voters: tuple[int, ...]) -> None:
    """A leader would else count it among those that elect the next one, or an operator make it a voter."""
    core = observer_of(log_with([(1, 3)], voter_set_of(map(replica_key, voters))), may_vote=may_vote)
    (sent,) = core.take_requests()
    assert isinstance(sent.message, FetchRequest)
    assert sent.message.replica_state.replica_id == (1 if may_vote else -1)
    core.respond(sent.number, fetch_response(EPOCH, LEADER, snapshot_id=OffsetAndEpoch(9, 2)))
    (sent,) = core.take_requests()
    assert isinstance(sent.message, FetchSnapshotRequest)
    assert sent.message.replica_id == (1 if may_vote else -1)


@pytest.mark.parametrize("is_repaired", [False, True])
def test_a_damaged_voter_does_not_update_its_entry(is_repaired: bool) -> None:
    """A leader of Kafka's would count UpdateRaftVoter as contact; a repaired voter at another port sends it."""
    core = damaged_replica(port=9999)
    send(core, 4, 7 if is_repaired else 6)
    core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=8))
    core.sleep(CONFIG.update_voter_period_ms - 1)
    core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=8))
    core.sleep(1)
    core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=8))
    assert isinstance(core.last_request, UpdateRaftVoterRequest) == is_repaired


@pytest.mark.parametrize("may_vote", [False, True])
def test_a_voter_that_cannot_vote_does_not_update_its_entry(*, may_vote: bool) -> None:
    """Its leader would take that for contact."""
    voters = voter_set_of(ReplicaKey(each) for each in (1, 2, 3))
    core = observer_of(static_voters=voters, may_vote=may_vote)
    sent = []
    for _ in range(2 * CONFIG.update_voter_period_ms // 500):
        for each in core.take_requests():
            sent.append(type(each.message))
            core.respond(each.number, fetch_response(EPOCH, LEADER)) if sent[-1] is FetchRequest else None
        core.sleep(500)
    assert (UpdateRaftVoterRequest in sent) == may_vote


def test_a_fetch_without_an_id_counts_for_nothing() -> None:
    """The leader serves it, but neither commits nor leads on for it."""
    core, nameless = leader_of((1, 2)), ReplicaKey(-1, replica_key(2).directory_id)
    (answer,) = fetch(core, nameless, ENDS[0])
    assert answer.records
    core.sleep(2999)
    fetch(core, nameless, ENDS[-1])
    assert core.raft.high_watermark is None
    assert core.log.end_offset.offset == LOG_END
    core.sleep(1)
    assert not isinstance(core.raft.role, Leader)
