# SPDX-License-Identifier: Apache-2.0
"""Finds the records of a metadata log that brokers act on: registrations, topics, and leaders of partitions.

A registration is known by its broker epoch, a partition's leader by its leader epoch. A PartitionChangeRecord does not
name the leader epoch that it begins: it is one more than the one before, whichever record or snapshot said that.

Source: PartitionRegistration#merge, ClusterControlManager#registerBroker.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import attrs

from raftlog.errors import RaftLogError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.tools.auditing.batch_reader import BatchReader, batches_in_range
from raftlog.tools.auditing.evidence import PartitionEvidence

MOST_BYTES: Final = 64 << 20
"""How many bytes of batches of one log are read, and how many to find what was before."""
_FRAMES: Final = {bytes((1, key)) for key in (0, 2, 3, 5)}
"""The first two bytes of RegisterBrokerRecord, TopicRecord, PartitionRecord and PartitionChangeRecord."""
_NO_LEADER_CHANGE: Final = -2
_MAX_OFFSET: Final = (1 << 63) - 1

Partition = tuple[UUID, int]
"""The id of a topic, and the number of a partition."""


class _Seen(NamedTuple):
    """A record of one of the types that brokers act on.

    Attributes:
        point: the offset after it, with its epoch.
        batch_offset: base offset of its batch.
        kind: its type.
        message: its fields.
    """

    point: OffsetAndEpoch
    batch_offset: int
    kind: str
    message: Mapping[str, Any]


class _Gap:
    """Stands for records that are gone, cannot be decoded, or are too many to read."""


@attrs.frozen
class Registered:
    """The record that registered a broker with a broker epoch.

    Attributes:
        point: the offset after it, with its epoch.
        broker_id: of the broker.
        broker_epoch: as Kafka calls it: an offset of the record's batch.
    """

    point: OffsetAndEpoch
    broker_id: int
    broker_epoch: int


@attrs.frozen
class TopicCreated:
    """The record that created a topic.

    Attributes:
        point: the offset after it, with its epoch.
        name, topic_id: of the topic.
    """

    point: OffsetAndEpoch
    name: str
    topic_id: UUID


@attrs.frozen
class LeaderEpochBegun:
    """A record that began a leader epoch of a partition.

    Attributes:
        point: the offset after it, with its epoch.
        name, topic_id: of the partition's topic.
        partition: its number.
        leader_epoch: the partition's, not that of a controller.
    """

    point: OffsetAndEpoch
    name: str
    topic_id: UUID
    partition: int
    leader_epoch: int


ActedRecord = Registered | TopicCreated | LeaderEpochBegun


def acted_records(log: PartitionEvidence, start: int, end: int, read: BatchReader) -> list[ActedRecord]:
    """Return the records that brokers act on, in their order.

    What cannot be read or decoded is left out, and so is each leader epoch that could only be known by it.

    Args:
        log: a metadata log.
        start: the first offset, inclusive.
        end: exclusive.
        read: reads batches of a surveyed file again; about 64 MiB of them.
    """
    pieces = list(_of_log(log, start, end, read))
    of_partitions = (piece for piece in pieces if isinstance(piece, _Seen) and "partitionId" in piece.message)
    wanted = {piece.message["topicId"] for piece in of_partitions}
    known = _Known(wanted)
    for piece in _before(log, start, read) if wanted else ():
        known.take(piece)
    return [acted for piece in pieces if (acted := known.take(piece)) is not None]


@attrs.define
class _Known:
    """What the records so far have said about some topics.

    Attributes:
        wanted: ids of the topics.
        names: of topics, by id.
        leader_epochs: of partitions.
    """

    wanted: set[UUID]
    names: dict[UUID, str] = attrs.field(factory=dict)
    leader_epochs: dict[Partition, int] = attrs.field(factory=dict)

    def take(self, piece: _Seen | _Gap) -> ActedRecord | None:
        """Take what comes next, and return what brokers do by it; None if nothing, or nothing that can be known."""
        if isinstance(piece, _Gap):
            self.leader_epochs.clear()
            return None
        message = piece.message
        match piece.kind:
            case "RegisterBrokerRecord":
                broker_epoch = message["brokerEpoch"]  # The offset from which it was appended; later ones repeat it.
                is_first = piece.batch_offset <= broker_epoch < piece.point.offset
                return Registered(piece.point, message["brokerId"], broker_epoch) if is_first else None
            case "TopicRecord":
                if message["topicId"] in self.wanted:
                    self.names[message["topicId"]] = message["name"]
                return TopicCreated(piece.point, message["name"], message["topicId"])
            case _:
                return self._begun(piece)

    def _begun(self, piece: _Seen) -> LeaderEpochBegun | None:
        topic_id, number = partition = piece.message["topicId"], piece.message["partitionId"]
        if topic_id not in self.wanted or piece.message["leader"] == _NO_LEADER_CHANGE:
            return None
        if piece.kind == "PartitionRecord":
            self.leader_epochs[partition] = piece.message["leaderEpoch"]
        elif partition in self.leader_epochs:
            self.leader_epochs[partition] += 1
        name, leader_epoch = self.names.get(topic_id), self.leader_epochs.get(partition)
        if name is None or leader_epoch is None:
            return None
        return LeaderEpochBegun(piece.point, name, topic_id, number, leader_epoch)


def _before(log: PartitionEvidence, end: int, read: BatchReader) -> Iterator[_Seen | _Gap]:
    """Yield the records before an offset: of the newest snapshot up to there, and of the log after it.

    Nothing is yielded if the log starts later than such a snapshot ends, or if there is too much to read.
    """
    snapshots = [(id_, file) for id_, file in log.snapshots_by_id.items() if id_.offset <= end and not file.findings]
    id_, snapshot = snapshots[-1] if snapshots else (OffsetAndEpoch(0, -1), None)
    if log.start_offset > id_.offset:
        return
    files = [each for each in log.segments if each.extent is not None and each.extent.end_offset > id_.offset]
    if sum(each.task.size_bytes for each in (*files, *([snapshot] if snapshot else []))) > MOST_BYTES:
        return
    if snapshot is not None:
        for batch in read(snapshot, 0, _MAX_OFFSET):
            yield from _of_batch(batch, 0, _MAX_OFFSET)
    yield from _of_log(log, id_.offset, end, read)


def _of_log(log: PartitionEvidence, start: int, end: int, read: BatchReader) -> Iterator[_Seen | _Gap]:
    expected, size_bytes = start, 0
    for _, batch in batches_in_range(log, start, end, read):
        size_bytes += batch.size_bytes
        if size_bytes > MOST_BYTES:
            yield _Gap()
            return
        if batch.base_offset > expected:
            yield _Gap()
        yield from _of_batch(batch, start, end)
        expected = batch.next_offset
    if expected < end:
        yield _Gap()


def _of_batch(batch: RecordBatch, start: int, end: int) -> Iterator[_Seen | _Gap]:
    if batch.is_control:
        return
    try:
        for record in batch.records(check_crc=False):
            if start <= record.offset < end and record.value is not None and bytes(record.value[:2]) in _FRAMES:
                read = read_metadata_record(record.value)
                point = OffsetAndEpoch(record.offset + 1, batch.partition_leader_epoch)
                yield _Seen(point, batch.base_offset, read.type.name, read.message)
    except RaftLogError:
        yield _Gap()  # The findings say what is wrong there.
