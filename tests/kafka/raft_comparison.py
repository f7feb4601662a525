# SPDX-License-Identifier: Apache-2.0
"""Brings what Kafka and raftlog did into forms that can be compared."""

import uuid
from collections.abc import Sequence
from typing import Any

import attrs

from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.effects import SendRequest
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import Record
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.messages.control import ControlValue, LeaderChangeMessage, VotersRecord, read_control_record
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.election_messages import VoteResponse
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse, FetchSnapshotResponse
from raftlog.records.messages.raft.raft_messages import RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterResponse,
    DescribeQuorumResponse,
    RemoveRaftVoterResponse,
)
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import ReplicaKey, VoterSet
from tests.kafka.raft_oracle import SentByKafka
from tests.quorum.single_replica import SingleReplica

_MOCK_LOG_BATCHES = 2
"""How many batches a read of Kafka's mock log returns at most."""


def spelled(key: ReplicaKey) -> str:
    """Return a key as the oracle reads it: "2", or "2/7" for another directory."""
    number = 0 if key.directory_id is None else key.directory_id.int & (2**64 - 1)
    return str(key.id) if number == key.id else f"{key.id}/{number}"


def error_code(message: RaftResponse) -> int:
    """Return the error of a response: for the whole request, or of its partition."""
    topics = message.responses if isinstance(message, FetchResponse) else getattr(message, "topics", ())
    partitions = topics[0].partitions if topics else ()
    code: int = partitions[0].error_code if partitions else getattr(message, "error_code", 0)
    return code


def mark_of(message: RaftResponse) -> int:
    """Return the high watermark in a Fetch response; -1 in any other."""
    if not isinstance(message, FetchResponse) or not message.responses:
        return -1
    return message.responses[0].partitions[0].high_watermark


def with_mark(message: RaftResponse, present: int) -> RaftResponse:
    """Return a Fetch response with a high watermark in the place of a lower one that it names."""
    if not isinstance(message, FetchResponse) or mark_of(message) >= present:
        return message
    topic = message.responses[0]
    partition = attrs.evolve(topic.partitions[0], high_watermark=present)
    return attrs.evolve(message, responses=(attrs.evolve(topic, partitions=(partition,)),))


def is_vote_granted(message: RaftResponse) -> bool:
    """Whether a response grants a vote, or a pre-vote."""
    topics = message.topics if isinstance(message, VoteResponse) else ()
    return any(each.vote_granted for topic in topics for each in topic.partitions)


def with_vote(message: RaftResponse) -> RaftResponse:
    """Return a Vote response as if it granted the vote."""
    if not isinstance(message, VoteResponse) or not message.topics:
        return message
    topic = message.topics[0]
    partition = attrs.evolve(topic.partitions[0], vote_granted=True)
    return attrs.evolve(message, topics=(attrs.evolve(topic, partitions=(partition,)),))


def comparable(message: RaftResponse) -> RaftResponse:
    """Return a response without what Kafka leaves open.

    That is: a Fetch response with a text in the place of its records; a part of a snapshot, which has voters in the
    order of a hash map, as the size of the part; and a described quorum in one order.
    """
    if isinstance(message, FetchSnapshotResponse) and message.topics:
        part = message.topics[0].partitions[0]
        size = len(part.unaligned_records or b"").to_bytes(4)
        named = attrs.evolve(message.topics[0], partitions=(attrs.evolve(part, unaligned_records=size),))
        return attrs.evolve(message, topics=(named,))
    if isinstance(message, DescribeQuorumResponse):
        return _described_in_one_order(message)
    if isinstance(message, AddRaftVoterResponse | RemoveRaftVoterResponse) and message.error_code:
        return attrs.evolve(message, error_message=None)  # A text for people.
    if not isinstance(message, FetchResponse) or not message.responses:
        return message
    topic = message.responses[0]
    partition = topic.partitions[0]
    partition = attrs.evolve(partition, records=_shown_records(bytes(partition.records or b"")).encode())
    return attrs.evolve(message, responses=(attrs.evolve(topic, partitions=(partition,)),))


def _described_in_one_order(message: DescribeQuorumResponse) -> DescribeQuorumResponse:
    def in_order(states: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(sorted(states, key=repr))

    topics = tuple(
        attrs.evolve(
            topic,
            partitions=tuple(
                attrs.evolve(each, current_voters=in_order(each.current_voters), observers=in_order(each.observers))
                for each in topic.partitions
            ),
        )
        for topic in message.topics
    )
    nodes = in_order([attrs.evolve(each, listeners=in_order(each.listeners)) for each in message.nodes])
    return attrs.evolve(message, topics=topics, nodes=nodes)


def _shown_records(records: bytes, most: int = _MOCK_LOG_BATCHES) -> str:
    """Return what records hold: no more batches than Kafka's mock log reads, or than wanted, in one order, no CRC.

    Kafka lists granting voters, voters and their endpoints in the order of a hash map.
    """
    shown: list[object] = []
    position = 0
    while len(shown) < most and position + BATCH_OVERHEAD <= len(records):
        size = LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + LOG_OVERHEAD])
        data, position = records[position : position + size], position + size
        if len(data) < size:
            shown.append((size, len(data)))
            continue
        batch = RecordBatch(data)
        batch.ensure_valid()
        values = [_sorted_votes(each) if batch.is_control else each for each in batch.records()]
        shown.append((batch, batch.max_timestamp, values))
    return repr(shown)


def _sorted_votes(record: Record) -> tuple[Record, ControlValue | None]:
    return record._replace(value=None), _in_one_order(read_control_record(record.key, record.value).value)


def _in_one_order(value: ControlValue | None) -> ControlValue | None:
    if isinstance(value, LeaderChangeMessage):
        return attrs.evolve(value, granting_voters=tuple(sorted(value.granting_voters, key=repr)))
    if isinstance(value, VotersRecord):
        voters = [
            attrs.evolve(each, endpoints=tuple(sorted(each.endpoints, key=lambda endpoint: endpoint.name)))
            for each in value.voters
        ]
        return attrs.evolve(value, voters=tuple(sorted(voters, key=lambda each: each.id)))
    return value


def is_same(theirs: SentByKafka, ours: SendRequest, started_mark: int | None = None) -> bool:
    """Whether both sent the same request to the same place; software has different names and versions.

    Args:
        theirs: Kafka's.
        ours: raftlog's.
        started_mark: the high watermark that raftlog's replica has just started with, and Kafka's does not know.
    """
    if theirs.destination != tuple(ours.destination):
        return False
    if isinstance(theirs.message, ApiVersionsRequest):
        return isinstance(ours.message, ApiVersionsRequest)
    if isinstance(ours.message, FetchRequest) and started_mark is not None:
        return theirs.message == _without_mark(ours.message)
    return theirs.message == ours.message


def _without_mark(request: FetchRequest) -> FetchRequest:
    topic = request.topics[0]
    partition = attrs.evolve(topic.partitions[0], high_watermark=-1)
    return attrs.evolve(request, topics=(attrs.evolve(topic, partitions=(partition,)),))


def shown_request(sent: SentByKafka) -> str:
    """Return a request of Kafka's as text."""
    return f"{sent.destination} {shown_message(sent.message)}"


def shown_effect(sent: SendRequest) -> str:
    """Return a request of raftlog's as text."""
    return f"{tuple(sent.destination)} {shown_message(sent.message)}"


def shown_message(value: object) -> str:
    """Return a message as text, without what is at its default, and with batches as offsets and epochs."""
    if isinstance(value, bytes | memoryview):
        return _shown_batches(bytes(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(shown_message, value)) + "]"
    if isinstance(value, uuid.UUID):
        return f"#{value.int & (2**64 - 1)}"
    if not attrs.has(type(value)):
        return str(value)
    kind: type[Any] = type(value)
    fields = [(each, getattr(value, each.name)) for each in attrs.fields(kind)]
    shown = [f"{each.name}={shown_message(found)}" for each, found in fields if found not in (each.default, (), b"")]
    return f"{type(value).__name__.split('Partition')[0]}({', '.join(shown)})"


def _shown_batches(data: bytes) -> str:
    words, position = [], 0
    while position + BATCH_OVERHEAD <= len(data):
        batch = RecordBatch(data[position:])
        size = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD])
        kind = "control " if batch.is_control else ""
        cut = ", cut" if position + size > len(data) else ""
        words.append(f"{kind}{batch.base_offset}..{batch.last_offset}@{batch.partition_leader_epoch}{cut}")
        position += size
    return f"<{'; '.join(words)}; {len(data)} bytes>"


def shown_log(core: SingleReplica) -> list[str]:
    """Return every record of a replica's log, as the oracle prints them."""
    words = [str(core.log.state.start_offset)]
    for batch in core.log.batches(isolation=Isolation.UNCOMMITTED):
        parts = [f"{batch.partition_leader_epoch}{'c' if batch.is_control else 'd'}"]
        parts += [f"{each.offset},{each.timestamp},{_hex(each.key)},{_hex(each.value)}" for each in batch.records()]
        words.append("|".join(parts))
    return words


def _hex(data: bytes | memoryview | None) -> str:
    return "-" if data is None else bytes(data).hex()


def readable_log(words: Sequence[str]) -> list[str]:
    """Return a log as it is printed, with control records as values, in one order."""
    return [words[0], *map(_readable_batch, words[1:])]


def _readable_batch(word: str) -> str:
    head, *records = word.split("|")
    if not head.endswith("c"):
        return word
    parts = [head]
    for each in records:
        offset, timestamp, key, data = each.split(",")
        value = _in_one_order(read_control_record(bytes.fromhex(key), bytes.fromhex(data)).value)
        parts.append(f"{offset},{timestamp},{value}")
    return "|".join(parts)


def shown_voters(voters: VoterSet, kraft_version: int, listener: str) -> list[str]:
    """Return the voters and kraft.version, as the oracle prints them."""
    words = [str(int(kraft_version))]
    for node in sorted(voters.voters.values(), key=lambda each: each.voter_key.id):
        key, address, levels = node.voter_key, node.listeners.address(listener), node.supported_kraft_versions
        where = "-" if address is None else f"{address.host}:{address.port}"
        directory = "-" if key.directory_id is None else uuid_to_text(key.directory_id)
        words.append(f"{key.id}/{directory}@{where}/{levels.minimum}-{levels.maximum}")
    return words


def shown_snapshots(log: ReplicatedLog) -> list[str]:
    """Return the snapshots of a log with their bytes, as the oracle prints them; without the bootstrap snapshot."""
    ids = [each for each in log.snapshot_ids if each != BOOTSTRAP_SNAPSHOT_ID]
    return [f"{each.offset}@{each.epoch}:{snapshot_bytes(log, each).hex()}" for each in ids]


def readable_snapshots(words: Sequence[str]) -> list[str]:
    """Return snapshots as they are printed, with every batch and record, and control records in one order."""
    split = [word.split(":") for word in words]
    return [f"{name} {_shown_records(bytes.fromhex(data), len(data))}" for name, data in split]


def snapshot_bytes(log: ReplicatedLog, snapshot_id: OffsetAndEpoch) -> bytes:
    """Return the bytes of a snapshot that a log has."""
    reader = log.read_snapshot(snapshot_id)
    assert reader is not None
    return bytes(reader.read_at(0, reader.size()))
