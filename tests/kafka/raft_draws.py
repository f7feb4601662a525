# SPDX-License-Identifier: Apache-2.0
"""What requests to a replica and responses to its requests have in common: epochs, leaders and records near its own."""

import random
from typing import Any, TypeVar

import attrs

from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import leader_id
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage, Voter
from raftlog.records.messages.raft.fetch_messages import FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from raftlog.records.messages.raft.raft_messages import RaftMessage
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints, ReplicaKey, VoterSet
from tests.quorum.single_replica import SingleReplica, replica_key, voter_node

Message = TypeVar("Message", bound=RaftMessage)
TOPIC = "metadata"
LOCAL = replica_key(1)


class RaftDraws:
    """Draws parts of messages for a replica.

    Args:
        seeded: of all choices.
        core: the replica.
        identity: of the replica.

    Attributes:
        is_favoured: whether most voters vote for this replica, and few others act.
        may_change_local: whether fetched records may make this replica a voter, or an observer.
        has_directories: whether several directories may fetch with one id. With static voters, a leader counts all of
            them for the voter, and after an upgrade of kraft.version Kafka does so for the one that the voter has told.
        offered: the snapshots that leaders have offered to this replica.
    """

    def __init__(self, seeded: random.Random, core: SingleReplica, identity: ReplicaIdentity) -> None:
        self.random = seeded
        self.core = core
        self.identity = identity
        self.is_favoured = seeded.random() < 0.5
        self.may_change_local = True
        self.has_directories = True
        self.offered: dict[OffsetAndEpoch, bytes] = {}

    @property
    def voters(self) -> VoterSet:
        """The voters that the log's records, or the configuration, name."""
        return self.core.machine.last_voter_set

    @property
    def voter_ids(self) -> list[int]:
        """The ids of the voters, ascending."""
        return sorted(self.voters.voter_ids)

    def epoch(self) -> int:
        """Return an epoch near the replica's."""
        return max(0, self.core.raft.role.epoch + self.random.choice((-1, 0, 0, 0, 0, 1, 1, 2)))

    def other(self) -> ReplicaKey:
        """Return another replica."""
        return self.random.choice([replica_key(each) for each in (2, 3, 4, 5)])

    def cluster(self) -> str | None:
        """Return the cluster's id, seldom none or another."""
        return self.random.choice([self.identity.cluster_id] * 12 + [None, "other"])

    def topic_name(self) -> str:
        """Return the topic's name, very seldom another."""
        return TOPIC if self.random.random() < 0.98 else "another"

    def partition_index(self) -> int:
        """Return the partition's index, very seldom another."""
        return 0 if self.random.random() < 0.99 else 1

    def addressee(self) -> tuple[int, ReplicaKey]:
        """Return the id and the key in a request for a voter: mostly this replica's."""
        choices = [(LOCAL.id, LOCAL)] * 10 + [(-1, ReplicaKey(1)), (LOCAL.id, ReplicaKey(1)), (2, LOCAL)]
        return self.random.choice([*choices, (LOCAL.id, replica_key(1, 9))])

    def leader_of(self, epoch: int) -> int:
        """Return a leader for an epoch: the known one, as two leaders of one epoch are a fault that Kafka dies of."""
        known = leader_id(self.core.raft.role)
        is_known = epoch == self.core.raft.role.epoch and known is not None
        if is_known and self.random.random() < 0.99:
            assert known is not None
            return known
        # Kafka keeps connections in the order of a hash map, in which higher ids come after bootstrap servers.
        return self.random.choice([each for each in self.voter_ids if LOCAL.id < each < 5] or [2])

    def batch_ends(self) -> list[int]:
        """Return where the log may be cut, or committed up to: Kafka's mock log holds whole batches."""
        log = self.core.log
        ends = [each.next_offset for each in log.batches(isolation=Isolation.UNCOMMITTED)]
        return [log.state.start_offset, *ends]

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the last record before an offset: in the log, or in its snapshot."""
        log = self.core.log
        if offset > log.state.start_offset:
            return log.epoch_at_offset(offset - 1)
        earliest = log.state.earliest_snapshot_id
        return 0 if earliest is None else earliest.epoch

    def records(self, offset: int, least_epoch: int, epoch: int) -> bytes:
        """Return records that a leader of ``epoch`` may send: some batches, of data or of control records."""
        found, last = b"", least_epoch
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            if epoch < last:
                break
            last = self.random.randint(last, epoch)
            data = self._control_batch(offset, last) if self.random.random() < 0.2 else self._batch(offset, last)
            found += data
            offset += int.from_bytes(data[57:61])
        choice = self.random.random()
        if choice < 0.03 and found:
            # What a leader sends of a batch that does not fit in whole.
            return found[: self.random.randrange(1, len(found))]
        if choice < 0.06:
            return found + self._batch(offset, epoch + 1)
        return found

    def _batch(self, offset: int, epoch: int) -> bytes:
        batches = BatchAccumulator(epoch, offset)
        batches.append(epoch, [b"r"] * self.random.randint(1, 3), self.core.now_ms)
        batches.force_drain()
        with batches.drain() as drained:
            return b"".join(bytes(each.data) for each in drained)

    def _control_batch(self, offset: int, epoch: int) -> bytes:
        """Return records that a leader writes: it begins its epoch, upgrades kraft.version, or changes the voters."""
        changed = self.changed_voters()
        leader = self.leader_of(epoch)
        values: list[ControlValue] = [LeaderChangeMessage(leader, tuple(map(Voter, self.voter_ids)), (Voter(leader),))]
        is_dynamic = self.core.machine.last_kraft_version.is_reconfiguration_supported
        choice = self.random.random()
        if not is_dynamic and choice < 0.4:
            keys = [replica_key(each) for each in self.voter_ids] or [LOCAL]
            upgraded = VoterSet.of(voter_node(each, self.identity.listener) for each in keys)
            values = [KRaftVersionRecord(1), voters_record(upgraded)]
        elif is_dynamic and choice < 0.6:
            values = [voters_record(changed)]
        elif is_dynamic and choice < 0.7:
            values += [KRaftVersionRecord(1), voters_record(changed)]
        return bytes(write_control_batch(values, base_offset=offset, epoch=epoch, timestamp=self.core.now_ms))

    def changed_voters(self) -> VoterSet:
        """Return the voters after a change: one added, removed, in another directory, or at another address."""
        voters, listener = self.voters, self.identity.listener
        chosen = replica_key(self.random.randint(1 if self.may_change_local else 2, 5))
        known = voters.voters.get(chosen.id)
        if known is None:
            return voters.add_voter(voter_node(chosen, listener)) or voters
        choice = self.random.random()
        if choice < 0.5:
            return voters.remove_voter(known.voter_key) or voters
        if choice < 0.75:
            moved = Endpoints.of({listener: ("elsewhere", 9000 + chosen.id)})
            return voters.update_voter(attrs.evolve(known, listeners=moved)) or voters
        others = voters.remove_voter(known.voter_key)
        return (
            voters
            if others is None
            else others.add_voter(voter_node(replica_key(chosen.id, 17 + chosen.id), listener)) or voters
        )

    def misshapen(self, message: Message) -> Message:
        """Return a message, very seldom with a topic or a partition twice, or without any."""
        name = "responses" if isinstance(message, FetchResponse) else "topics"
        topics = getattr(message, name, ())
        if not topics or self.random.random() >= 0.02:
            return message
        shapes = [(*topics, topics[0]), (attrs.evolve(topics[0], partitions=topics[0].partitions * 2),)]
        if not isinstance(message, FetchSnapshotRequest | FetchSnapshotResponse):
            # Kafka's client dies of a FetchSnapshot, or the answer to one, that has no topics.
            shapes += [(), (attrs.evolve(topics[0], partitions=()),)]
        whole: Any = message
        misshapen: Message = attrs.evolve(whole, **{name: self.random.choice(shapes)})
        return misshapen
