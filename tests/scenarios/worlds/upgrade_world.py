# SPDX-License-Identifier: Apache-2.0
"""The world of upgrades and of observers that join: replica 1, with the voters that it knows.

A replica is written ``2``, or ``2/9`` with a directory other than its own. A static voter, whose directory is not
known, is written ``2/-``. Levels of kraft.version are written ``0-1``.
"""

from collections.abc import Callable
from typing import ClassVar, Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.describing.raft_status import VotersStatus
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
)
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, VoterSet
from tests.offset_notation import offset_and_epoch
from tests.quorum.following.observers import upgrade_batch, voters_batch
from tests.quorum.messages import CLUSTER, describe_quorum_request, fetch_response, update_voter_request
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of
from tests.scenarios.world import ArgumentTypes, World, command
from tests.scenarios.worlds.election_world import ElectionWorld


class Keys(tuple[ReplicaKey, ...]):
    """Replicas, as in ``1,2/9``."""

    __slots__ = ()


class Levels(tuple[int, int]):
    """The lowest and the highest level of kraft.version, as in ``0-1``."""

    __slots__ = ()


def _key(text: str) -> ReplicaKey:
    replica_id, _, directory = text.partition("/")
    return replica_key(int(replica_id), int(directory) if directory else None)


def _key_text(key: ReplicaKey) -> str:
    if key.directory_id is None:
        return f"{key.id}/-"
    directory = key.directory_id.int & 0xFFFF
    return str(key.id) if directory == key.id else f"{key.id}/{directory}"


class UpgradeWorld(ElectionWorld):
    """Replica 1, with Kafka's default timeouts: 1,000 ms for an election, 2,000 ms for an update period."""

    argument_types: ClassVar[ArgumentTypes] = {
        OffsetAndEpoch: offset_and_epoch,
        Keys: lambda text: Keys(map(_key, text.split(","))),
        Levels: lambda text: Levels(map(int, text.split("-"))),
        ReplicaKey: _key,
    }

    @command
    def start_static(self, voters: tuple[int, ...], auto_join: bool = False) -> str:
        """Start a new replica with configured voters, and kraft.version 0."""
        static = VoterSet.from_inet_addresses(LISTENER, {each: HostPort("localhost", 9990 + each) for each in voters})
        return self._start(SingleReplica(_IDENTITY, QuorumConfig(auto_join=auto_join), static_voters=static))

    @command
    def start_observer(self, voters: Keys, auto_join: bool = True) -> str:
        """Start a new replica of a quorum whose voters the log names, and that it may join by itself."""
        log = log_with([(1, 2)], voter_set_of(voters))
        return self._start(SingleReplica(_IDENTITY, QuorumConfig(auto_join=auto_join), log=log))

    @command
    def restart(self, remembered: bool = False) -> str:
        """Start again with what is durable; the embedder may remember that the replica has been a voter."""
        old = self._replica
        return self._start(
            SingleReplica(
                old.identity,
                old.config,
                static_voters=old.machine.static_voters,
                log=old.log,
                stored=old.stored,
                has_been_voter=remembered and old.raft.status.has_been_voter,
            )
        )

    def _start(self, replica: SingleReplica) -> str:
        self._replica, self._sent = replica, {}
        return self._what_happened()

    @command
    def elect(self, *grants: int) -> str:
        """Let the election timeout pass, and win with pre-votes and votes."""
        self._replica.sleep(1000)
        self._what_happened()
        return [self.grant(each) for _ in range(2) for each in grants][-1]

    # The leader

    @command
    def tell(self, voter: ReplicaKey, levels: Levels = Levels((0, 1))) -> str:  # noqa: B008
        """A voter tells the leader of itself."""
        message = update_voter_request(voter, self._epoch(None), levels=(levels[0], levels[1]))
        self._replica.request(_key_text(voter), message, version=0)
        return self._what_happened()

    @command
    def upgrade(self, level: int = 1, epoch: int | None = None, check: bool = False) -> str:
        """An operator asks for an upgrade of kraft.version, or only if it is possible."""
        version = KRaftVersion.from_level(level)
        written = self._replica.raft.upgrade_kraft_version(version, epoch=self._epoch(epoch), validate_only=check)
        self._replica.settle()
        text = "nothing to write" if written is None else f"append {written.number}, last offset {written.last_offset}"
        return f"{text}\n{self._what_happened()}"

    @command
    def describe(self) -> str:
        """A tool asks for a description of the quorum."""
        self._replica.request("tool", describe_quorum_request(), version=2)
        (answer,) = [each.message for each in self._replica.take_responses()]
        assert isinstance(answer, DescribeQuorumResponse)
        found = answer.topics[0].partitions[0]
        lines = [f"{ErrorCode(found.error_code).name}, leader {found.leader_id}, high-watermark {found.high_watermark}"]
        for name, side in (("voter", found.current_voters), ("observer", found.observers)):
            for each in side:
                key = ReplicaKey(each.replica_id, each.replica_directory_id)
                lines.append(f"{name} {_key_text(key)} log end {each.log_end_offset}")
        return "\n".join(lines)

    # The leader of this replica

    @command
    def fetched_voters(self, leader: int, voters: Keys, high_watermark: int = -1, level: int | None = None) -> str:
        """The leader answers a Fetch with a voter set, which may come with an upgrade of kraft.version."""
        make = voters_batch if level is None else upgrade_batch
        records = make(self._replica.log.end_offset.offset, voters)
        answer = fetch_response(self._epoch(None), leader, records=records, high_watermark=high_watermark)
        return self._respond(leader, answer)

    @command
    def changed(self, leader: int, error: str = "NONE") -> str:
        """The leader answers a request to add or remove a voter."""
        is_addition = isinstance(self._sent[leader].message, AddRaftVoterRequest)
        kind = AddRaftVoterResponse if is_addition else RemoveRaftVoterResponse
        return self._respond(leader, kind(throttle_time_ms=0, error_code=ErrorCode[error], error_message=None))

    @command
    def snapshot(self) -> str:
        """Take a snapshot of the whole log, which replaces the records and names only the last voters."""
        log, machine = self._replica.log, self._replica.machine
        end = OffsetAndEpoch(log.end_offset.offset, log.last_fetched_epoch)
        raw = log.create_snapshot(end)
        assert raw is not None
        with RecordsSnapshotWriter(
            raw,
            0,
            last_contained_log_timestamp=0,
            kraft_version=machine.last_kraft_version,
            voter_set=machine.last_voter_set,
        ) as writer:
            writer.freeze(0)
        assert log.delete_before_snapshot(end)
        machine.truncate_old_entries(end.offset)
        return self._what_happened()

    # What is printed

    def _what_happened(self) -> str:
        told, others = [], []
        for sent in self._replica.take_responses():
            if isinstance(sent.message, UpdateRaftVoterResponse):
                told.append(f"answer to {sent.token}: {ErrorCode(sent.message.error_code).name}")
            else:
                others.append(sent)
        self._replica.responses = others
        changes = {each.destination.id: _change_text(each.message) for each in self._replica.requests}
        lines = told
        for line in super()._what_happened().splitlines():
            name, separator, _ = line.partition(": ")
            number = name.removeprefix("-> ")
            change = changes.get(int(number)) if number.lstrip("-").isdigit() else None
            lines.append(f"{name}{separator}{change}" if change else line)
        lines += [f"append {each.number}: {each.outcome.value}" for each in self._replica.ended]
        self._replica.ended.clear()
        return "\n".join([*lines, *self._voters_text()])

    def _voters_text(self) -> list[str]:
        status = self._replica.raft.status
        lines = [f"kraft.version {status.kraft_version:d}, voters {_voters_text(status.committed_voters)}"]
        if status.uncommitted_voters is not None:
            lines.append(f"uncommitted voters {_voters_text(status.uncommitted_voters)}")
        if status.has_been_voter and not status.is_voter:
            lines.append("was removed")
        return lines


def _voters_text(status: VotersStatus) -> str:
    names = " ".join(_key_text(node.voter_key) for node in status.voters.voters.values())
    return f"{names} " + ("of the configuration" if status.offset is None else f"at offset {status.offset}")


def _change_text(message: object) -> str | None:
    match message:
        case AddRaftVoterRequest():
            return f"add voter {_key_text(ReplicaKey(message.voter_id, message.voter_directory_id))}"
        case RemoveRaftVoterRequest():
            return f"remove voter {_key_text(ReplicaKey(message.voter_id, message.voter_directory_id))}"
    return None


_IDENTITY: Final = ReplicaIdentity(
    key=replica_key(1),
    cluster_id=CLUSTER,
    endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
    listener=LISTENER,
)

UPGRADE_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": UpgradeWorld}
