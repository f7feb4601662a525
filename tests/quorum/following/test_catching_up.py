# SPDX-License-Identifier: Apache-2.0
"""Whatever two replicas have been through, one that follows the other ends with the same log."""

from typing import Final

import attrs
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch, ValidationKind
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.voters.voter_set import Endpoints
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    fetch_response,
    fetch_snapshot_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, replica_key, voter_set_of

LEADER: Final = 2
_VOTERS: Final = voter_set_of(map(replica_key, (1, LEADER, 3)))
_MOST_ANSWERS: Final = 30
"""A follower needs one answer a batch, at most one truncation an epoch, and a snapshot."""


@attrs.frozen
class Past:
    """What a leader and its follower have been through; all batches have two records.

    Attributes:
        shared: epochs of the batches that both logs have.
        of_leader: epochs of those that only the leader has, before the one with which it begins its epoch.
        of_follower: epochs of those that only the follower has.
        entered: an epoch that the follower has led without a record of it; None if there is none.
        leader_starts_at: how many of its batches the leader has replaced by a snapshot.
        follower_starts_at: how many of the shared batches the follower has.
    """

    shared: tuple[int, ...] = ()
    of_leader: tuple[int, ...] = ()
    of_follower: tuple[int, ...] = ()
    entered: int | None = None
    leader_starts_at: int = 0
    follower_starts_at: int = 0

    @property
    def epoch(self) -> int:
        """The leader's epoch: later than all."""
        return 1 + max((0, *self.shared, *self.of_leader, *self.of_follower, self.entered or 0))


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """Pasts that no quorum forbids: an epoch has one leader, and only the last one has committed anything.

    It commits all that is in its log, records of earlier epochs included, so that a snapshot may cover any of them.
    """
    shared = sorted(draw(st.lists(st.integers(1, 3), max_size=3)))
    later = draw(st.permutations(range(4, 10)))
    mine, theirs = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    of_leader, of_follower = sorted(later[:mine]), sorted(later[mine : mine + theirs])
    latest = max((0, *shared, *of_follower))
    entered = draw(st.none() | st.sampled_from([epoch for epoch in range(latest + 1, 11) if epoch not in of_leader]))
    leader_starts_at = draw(st.integers(0, len(shared) + len(of_leader) + 1))
    follower_starts_at = draw(st.integers(0, len(shared)))
    return Past(tuple(shared), tuple(of_leader), tuple(of_follower), entered, leader_starts_at, follower_starts_at)


def log_of(epochs: tuple[int, ...], starts_at: int) -> MemoryLog:
    """Return a flushed log of batches of some epochs, of which the first ones are in a snapshot only."""
    log = MemoryLog()
    for index, epoch in enumerate(epochs):
        log.append_as_follower(raft_batch(2 * index, epoch, 2), epoch)
    log.flush()
    if starts_at:
        log.update_high_watermark(2 * starts_at)
        store(log, OffsetAndEpoch(2 * starts_at, epochs[starts_at - 1]))
        assert log.delete_before_snapshot(log.snapshot_ids[-1])
    return log


def store(log: MemoryLog, snapshot_id: OffsetAndEpoch) -> None:
    """Store a snapshot in a log."""
    raw = log.create_snapshot(snapshot_id)
    assert raw is not None
    with raw:
        raw.append(snapshot_bytes(snapshot_id))
        raw.freeze()


def answer(core: SingleReplica, leader: MemoryLog, epoch: int) -> bool:
    """Let the leader answer the follower's last request; return whether it had more for it."""
    sent = core.requests[-1]
    message = sent.message
    if isinstance(message, FetchSnapshotRequest):
        asked = message.topics[0].partitions[0]
        snapshot_id = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        data = snapshot_bytes(snapshot_id)
        core.respond(sent.number, fetch_snapshot_response(epoch, LEADER, snapshot_id, 0, data, len(data)))
        return True
    assert isinstance(message, FetchRequest)
    fetched = message.topics[0].partitions[0]
    valid = leader.validate_offset_and_epoch(fetched.fetch_offset, fetched.last_fetched_epoch)
    position = valid.offset_and_epoch
    if valid.kind is ValidationKind.SNAPSHOT:
        response = fetch_response(epoch, LEADER, snapshot_id=position)
    elif valid.kind is ValidationKind.DIVERGING:
        response = fetch_response(epoch, LEADER, diverging=position)
    elif fetched.fetch_offset == leader.end_offset.offset:
        return False
    else:
        records = bytes(leader.read(fetched.fetch_offset, Isolation.UNCOMMITTED, 1).records)
        response = fetch_response(epoch, LEADER, records=records)
    core.respond(sent.number, response)
    return True


@given(past=pasts())
@example(past=Past(of_leader=(1,), entered=3))
@example(past=Past(shared=(1,), entered=3, leader_starts_at=1, follower_starts_at=1))
@example(past=Past(shared=(1,), of_leader=(4,), entered=3, leader_starts_at=1))
def test_a_follower_ends_with_the_log_of_its_leader(past: Past) -> None:
    """Also if it has led an epoch of which it has no record, in a log that is empty, or that starts at a snapshot."""
    leader = log_of((*past.shared, *past.of_leader, past.epoch), past.leader_starts_at)
    log = log_of(past.shared + past.of_follower, past.follower_starts_at)
    if past.entered is not None:
        log.initialize_leader_epoch(past.entered)
    endpoints = Endpoints.of({LISTENER: ("localhost", 9991)})
    identity = ReplicaIdentity(key=LOCAL, cluster_id=CLUSTER, endpoints=endpoints, listener=LISTENER)
    core = SingleReplica(identity, QuorumConfig(fetch_timeout_ms=10**8), log=log, static_voters=_VOTERS)
    core.request("", begin_quorum_epoch_request(LEADER, past.epoch), version=1)
    answers = 0
    while answer(core, leader, past.epoch):
        answers += 1
        assert answers <= _MOST_ANSWERS
        assert core.raft.halt_reason is None
    assert (log.end_offset.offset, log.last_fetched_epoch) == (leader.end_offset.offset, leader.last_fetched_epoch)
    for offset in range(max(log.start_offset, leader.start_offset), log.end_offset.offset):
        assert log.epoch_at_offset(offset) == leader.epoch_at_offset(offset)
