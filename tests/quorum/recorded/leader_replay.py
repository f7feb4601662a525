# SPDX-License-Identifier: Apache-2.0
"""Replays a recorded leadership: our core leads the epoch, and writes what Kafka wrote, with the same bytes."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import named_voters
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage, read_control_record
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.snapshot.paths import snapshot_name
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterNode, VoterSet
from tests.quorum.messages import api_versions_response, fetch_request, vote_response
from tests.quorum.recorded.recording import LISTENER, RecordedQuorum, batches
from tests.quorum.single_replica import SingleReplica

CONFIG: Final = QuorumConfig(fetch_timeout_ms=800, append_linger_ms=0, new_voter_stabilization_ms=0)
"""The recorded quorums' timeouts, and Kafka's rule for new voters."""


class LeaderReplay:
    """Our core as the leader of a recorded epoch.

    Attributes:
        core: the leader.
        left: the batches that Kafka wrote in the epoch, and our core has not written yet.
        voter_ids: of the voters at the start of the epoch.
    """

    def __init__(self, quorum: RecordedQuorum, leader_id: int, epoch: int, log_start: int = 0) -> None:
        self.own_directory = quorum.log_of(leader_id)
        whole = batches(quorum.whole_log)
        before = [each for each in whole if each.partition_leader_epoch < epoch and each.base_offset >= log_start]
        self.left = deque(each for each in whole if each.partition_leader_epoch == epoch)
        self.core = SingleReplica(
            quorum.identity(leader_id),
            CONFIG,
            static_voters=quorum.static_voters,
            log=recorded_log(quorum.whole_log, before, log_start),
            stored=QuorumStateData(0 if quorum.is_static else 1, -1, epoch - 1, -1, None),
        )
        self._elect(epoch)

    def _elect(self, epoch: int) -> None:
        """Win the election with the votes that the recorded leader had when it had a majority."""
        core, first = self.core, self.left.popleft()
        self.voter_ids = tuple(each.id for each in leader_change(first).voters)
        granting = {each.id for each in leader_change(first).granting_voters}
        core.sleep(CONFIG.election_timeout_ms)
        self._set_wall(first.base_timestamp)
        for _ in range(2):
            for each in core.take_requests():
                if each.destination.id in granting:
                    core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
        assert isinstance(core.raft.role, Leader)
        assert core.raft.role.epoch == epoch
        self.start_ms = core.now_ms

    def _set_wall(self, wall_ms: int) -> None:
        self.core.started_wall_ms = wall_ms - self.core.now_ms
        self.core.tick()

    def pass_time(self, ms: int, wall_ms: int) -> None:
        """Let the time come that is so many ms after the election."""
        self.core.now_ms = max(self.core.now_ms, self.start_ms + ms)
        self._set_wall(wall_ms)
        self.core.take_requests()

    def write_up_to(self, end_offset: int) -> None:
        """Write what Kafka wrote, up to an offset, exclusive, and take the snapshots that it took.

        A batch that our core has written by itself, because a request asked for it, is left out.
        """
        core = self.core
        wall_ms = core.started_wall_ms + core.now_ms
        while self.left and self.left[0].base_offset < end_offset:
            batch = self.left.popleft()
            if core.log.end_offset.offset == batch.base_offset:
                self._set_wall(batch.base_timestamp)
                self._write(batch)
            freeze_snapshot(
                self.own_directory, core.log, OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)
            )
        self._set_wall(wall_ms)

    def prepare_voters(self) -> None:
        """Write what Kafka wrote before its next VotersRecord, and let the time come at which it wrote that."""
        batch = next(each for each in self.left if each.is_control)
        self.write_up_to(batch.base_offset)
        self._set_wall(batch.base_timestamp)

    def _write(self, batch: RecordBatch) -> None:
        core, epoch = self.core, batch.partition_leader_epoch
        if not batch.is_control:
            core.append(*(each.value or b"" for each in batch.records()), at=batch.base_offset)
            return
        record = next(iter(batch.records()))
        if read_control_record(record.key, record.value).value == KRaftVersionRecord(1):
            core.raft.upgrade_kraft_version(KRaftVersion.KRAFT_VERSION_1, epoch=epoch)
            core.settle()
        else:
            (voters,) = named_voters(batch)
            self._change_voters(voters)

    def _change_voters(self, after: VoterSet) -> None:
        """Ask to add the new voter, or to remove the one that is gone; all replicas are caught up."""
        core, before = self.core, self.core.machine.last_voter_set
        for key in sorted((before.voter_keys | after.voter_keys) - {core.identity.key}):
            self.fetch_end(key)
        for node in after.voters.values():
            if node.voter_key not in before.voter_keys:
                core.request("", add_request(node), 1, LISTENER)
                (asked,) = [each for each in core.take_requests() if isinstance(each.message, ApiVersionsRequest)]
                core.respond(asked.number, api_versions_response())
        for key in before.voter_keys - after.voter_keys:
            directory_id = key.directory_id or ZERO_UUID
            message = RemoveRaftVoterRequest(cluster_id=None, voter_id=key.id, voter_directory_id=directory_id)
            core.request("", message, 0, LISTENER)

    def fetch_end(self, key: ReplicaKey) -> None:
        """Let a replica have all of the leader's log."""
        end = OffsetAndEpoch(self.core.log.end_offset.offset, self.core.raft.role.epoch)
        message = fetch_request(key, end.epoch, end, max_wait_ms=0, cluster_id=None)
        self.core.request("", message, 18, LISTENER)


def add_request(node: VoterNode) -> AddRaftVoterRequest:
    """Return the request to add a voter, which is answered when the new set is committed."""
    return AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1000,
        voter_id=node.voter_key.id,
        voter_directory_id=node.voter_key.directory_id or ZERO_UUID,
        listeners=tuple(
            Listener(name=name, host=at.host, port=at.port) for name, at in node.listeners.listeners.items()
        ),
    )


def comparable_batch(batch: RecordBatch) -> object:
    """Return a batch's bytes; of one that starts an epoch, its content, because granted votes are in no order."""
    if not batch.is_control:
        return bytes(batch.buffer)
    first, *others = [(each.key, each.value) for each in batch.records()]
    message = read_control_record(*first).value
    if isinstance(message, LeaderChangeMessage):
        granting = frozenset(message.granting_voters)
        header = batch.base_offset, batch.partition_leader_epoch, batch.base_timestamp, batch.max_timestamp
        return header, message.leader_id, message.voters, granting, others
    return bytes(batch.buffer)


def leader_change(batch: RecordBatch) -> LeaderChangeMessage:
    """Return the first record of a batch that starts an epoch."""
    record = next(iter(batch.records()))
    message = read_control_record(record.key, record.value).value
    assert isinstance(message, LeaderChangeMessage)
    return message


def recorded_log(directory: Path, recorded: Iterable[RecordBatch], log_start: int) -> MemoryLog:
    """Return a flushed log of recorded batches, which starts with a recorded snapshot."""
    log = MemoryLog()
    freeze_snapshot(directory, log, OffsetAndEpoch(log_start, 1 if log_start else 0))
    if log_start:
        assert log.truncate_to_latest_snapshot()
    for each in recorded:
        log.append_as_follower(bytes(each.buffer), each.partition_leader_epoch)
    log.flush()
    return log


def freeze_snapshot(directory: Path, log: ReplicatedLog, snapshot_id: OffsetAndEpoch) -> None:
    """Put a recorded snapshot into a log, if there is one with this id."""
    path = directory / snapshot_name(snapshot_id)
    if path.is_file():
        raw = log.create_snapshot_unchecked(snapshot_id)
        assert raw is not None
        with raw:
            raw.append(path.read_bytes())
            raw.freeze()
