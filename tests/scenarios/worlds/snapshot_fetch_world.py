# SPDX-License-Identifier: Apache-2.0
"""The world of replica 1 whose log has snapshots: it fetches them, serves them, takes them, and cleans its log."""

from collections.abc import Callable
from typing import Final

from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import SendResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchSnapshotRequest, FetchSnapshotResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest
from tests.offset_notation import offset_and_epoch_text
from tests.quorum.fetched_snapshots import snapshot_bytes
from tests.quorum.messages import fetch_response, fetch_snapshot_request, fetch_snapshot_response, records_at
from tests.quorum.single_replica import replica_key, voter_set_of
from tests.scenarios.world import CommandError, World, command
from tests.scenarios.worlds.election_world import ElectionWorld

_VOTERS: Final = voter_set_of(map(replica_key, (1, 2, 3, 4)))


class SnapshotFetchWorld(ElectionWorld):
    """Replica 1. A snapshot that a leader sends names voters 1 to 4."""

    @command
    def names(self, leader: int, snapshot: OffsetAndEpoch) -> str:
        """The leader answers a Fetch with the id of a snapshot that must be fetched instead of records."""
        return self._respond(leader, fetch_response(self._epoch(None), leader, snapshot_id=snapshot, high_watermark=99))

    @command
    def bootstrap_names(self, server: int, snapshot: OffsetAndEpoch, leader: int = 2) -> str:
        """A bootstrap server that is the leader answers a Fetch with the id of a snapshot."""
        return self._respond(server, fetch_response(self._epoch(None), leader, snapshot_id=snapshot))

    @command
    def bootstrap_fetched(self, server: int, records: str, leader: int = 2) -> str:
        """A bootstrap server that is the leader answers a Fetch with records."""
        epoch, count = map(int, records.split("x"))
        batch = records_at(self._replica.log.end_offset.offset, epoch, count)
        return self._respond(server, fetch_response(self._epoch(None), leader, records=batch))

    @command
    def chunk(
        self,
        leader: int,
        snapshot: OffsetAndEpoch,
        part: str,
        position: int | None = None,
        damaged: bool = False,
        epoch: int | None = None,
    ) -> str:
        """The leader sends a part of a snapshot: its first half, its second half, or all of it."""
        data = snapshot_bytes(snapshot, _VOTERS)
        middle, size = len(data) // 2, len(data)
        if damaged:
            data = data[: middle - 1] + bytes([data[middle - 1] ^ 1]) + data[middle:]
        begin, end = {"first-half": (0, middle), "second-half": (middle, size), "all": (0, size), "none": (0, 0)}[part]
        begins_at = begin if position is None else position
        answer = fetch_snapshot_response(self._epoch(epoch), leader, snapshot, begins_at, data[begin:end], size)
        return self._respond(leader, answer)

    @command
    def refuse_chunk(self, leader: int, error: str, epoch: int | None = None) -> str:
        """A peer answers a FetchSnapshot with an error."""
        answer = fetch_snapshot_response(self._epoch(epoch), leader, OffsetAndEpoch(0, 0), error=ErrorCode[error])
        return self._respond(leader, answer)

    @command
    def fetch_snapshot(
        self,
        replica: int,
        snapshot: OffsetAndEpoch,
        position: int = 0,
        max: int = 2**31 - 1,  # noqa: A002
        epoch: int | None = None,
        cluster: str = "c",
    ) -> str:
        """A replica asks for bytes of a snapshot."""
        message = fetch_snapshot_request(
            replica_key(replica), self._epoch(epoch), snapshot, position, max_bytes=max, cluster_id=cluster
        )
        self._replica.request(replica, message, version=1)
        return self._what_happened()

    @command
    def append(self, *values: str) -> str:
        """The application appends records, which are written at once."""
        self._replica.append(*(each.encode() for each in values))
        return self.sleep(QuorumConfig().append_linger_ms)

    @command
    def take_snapshot(self, end: int) -> str:
        """The application takes a snapshot at an offset."""
        before = self._replica.log.latest_snapshot_id
        if self._replica.take_snapshot(end, b"state") == before:
            return f"no snapshot was taken\n{self._what_happened()}"
        return self._what_happened()

    @command
    def keep_at_most(self, size: int) -> str:
        """Limit the size of the log with all of its snapshots, in bytes."""
        instance_of(self._replica.log, MemoryLog)._retention = Retention(max_bytes=size, max_age_ms=None)
        return self._what_happened()

    def _role_text(self) -> str:
        text = super()._role_text()
        raft, log = self._replica.raft, self._replica.log
        if raft.halt_reason is not None:
            return text
        words = [f"log start {log.start_offset}"] if log.start_offset else []
        ids = [offset_and_epoch_text(each) for each in log.snapshot_ids if each.offset]
        words += [f"snapshots {' '.join(ids)}"] if ids else []
        fetch = raft.role.fetching_snapshot if isinstance(raft.role, Follower) else None
        if fetch is not None:
            words.append(f"fetching {offset_and_epoch_text(fetch.snapshot_id)}, {fetch.size_bytes} bytes so far")
        if (self._replica.fetched is not None) != (fetch is not None):
            raise CommandError(f"the disk has {self._replica.fetched}, and the core {fetch}")
        words += (
            [f"voters {','.join(map(str, sorted(self._replica.machine.last_voter_set.voter_ids)))}"] if words else []
        )
        words += ["the last snapshot was refused"] if raft.snapshot_refusal is not None else []
        return "; ".join([text, *words])

    def _text_of_request(self, message: RaftRequest) -> str:
        if isinstance(message, FetchSnapshotRequest):
            asked = message.topics[0].partitions[0]
            return f"fetch snapshot {asked.snapshot_id.end_offset}@{asked.snapshot_id.epoch} from {asked.position}"
        return super()._text_of_request(message)

    def _text_of_answer(self, sent: SendResponse) -> str:
        message = sent.message
        if not isinstance(message, FetchSnapshotResponse):
            return super()._text_of_answer(sent)
        if not message.topics:
            return f"answer to {sent.token}: {ErrorCode(message.error_code).name}"
        part = message.topics[0].partitions[0]
        if part.error_code:
            return (
                f"answer to {sent.token}: {ErrorCode(part.error_code).name}, epoch {part.current_leader.leader_epoch}"
            )
        end = part.position + len(part.unaligned_records)
        return f"answer to {sent.token}: bytes {part.position} to {end} (exclusive) of {part.size}"


SNAPSHOT_FETCH_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": SnapshotFetchWorld}
