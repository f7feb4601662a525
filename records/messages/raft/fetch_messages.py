# SPDX-License-Identifier: Apache-2.0
"""The RPCs that copy a log: Fetch and FetchSnapshot.

Records are bytes when read. A value to be written may have a read-only memoryview instead, which is equal to the bytes
and has their hash.

Source: FetchRequestData, FetchSnapshotRequestData and their responses; KIP-595, KIP-630, KIP-853, KIP-1166.
"""

import uuid
from typing import Final

import attrs

from raftlog.records.messages.raft.endpoints import NodeEndpoint, SnapshotId
from raftlog.records.messages.schema import UnknownTags
from raftlog.uuid_text import ZERO_UUID

HIGH_WATERMARK_UNSUPPORTED: Final = 0x7FFF_FFFF_FFFF_FFFF
"""The value of ``high_watermark`` in a FetchRequest of a replica that does not send one."""

_MAX_INT32: Final = 0x7FFF_FFFF


@attrs.frozen(kw_only=True)
class FetchRequestReplicaState:
    """Names the replica that fetches; an id of -1 is a consumer.

    Attributes:
        replica_epoch: the broker epoch; -1 if there is none, as for controllers.
    """

    replica_id: int = -1
    replica_epoch: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchRequestFetchPartition:
    """States from which offset on a replica fetches, and what it has.

    Attributes:
        current_leader_epoch: the sender's epoch; -1 if it does not say.
        fetch_offset: the first offset to fetch; the sender's log end, if it is a replica.
        last_fetched_epoch: the epoch of the last record in the sender's log; -1 if there is none.
        log_start_offset: the first offset of the sender's log, inclusive; -1 if not given, as in raft.
        replica_directory_id: the sender's directory; the zero uuid if it is not known.
        high_watermark: the highest one that the sender knows, exclusive; -1 if it knows none.
    """

    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int
    replica_directory_id: uuid.UUID = ZERO_UUID
    high_watermark: int = HIGH_WATERMARK_UNSUPPORTED
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchRequestFetchTopic:
    """Groups the partitions of a topic, which has a name up to version 12 and an id from version 13 on."""

    topic: str = ""
    topic_id: uuid.UUID = ZERO_UUID
    partitions: tuple[FetchRequestFetchPartition, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchRequestForgottenTopic:
    """Names partitions that leave a fetch session; raft has no sessions."""

    topic: str = ""
    topic_id: uuid.UUID = ZERO_UUID
    partitions: tuple[int, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchRequest:
    """Asks the leader for records after the end of a replica's log.

    Attributes:
        replica_id: the sender, up to version 14.
        replica_state: the sender, from version 15 on.
        max_wait_ms: how long the leader may wait for records.
    """

    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: FetchRequestReplicaState = FetchRequestReplicaState()
    max_wait_ms: int
    min_bytes: int
    max_bytes: int = _MAX_INT32
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchRequestFetchTopic, ...]
    forgotten_topics_data: tuple[FetchRequestForgottenTopic, ...] = ()
    rack_id: str = ""
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseEpochEndOffset:
    """Tells a diverged replica where to truncate: an epoch and its exclusive end in the leader's log; -1 is none."""

    epoch: int = -1
    end_offset: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseLeaderIdAndEpoch:
    """Names the leader and the epoch that the answering replica knows; -1 is none."""

    leader_id: int = -1
    leader_epoch: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseSnapshotId:
    """Names the snapshot to fetch instead of records; -1 is none.

    Attributes:
        end_offset: the snapshot's end, exclusive.
        epoch: the epoch of the record before it.
    """

    end_offset: int = -1
    epoch: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseAbortedTransaction:
    """Names an aborted transaction by its producer and first offset, inclusive; never in a metadata log."""

    producer_id: int
    first_offset: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponsePartitionData:
    """Has the records, or the reason why there are none.

    Attributes:
        high_watermark: the leader's, exclusive.
        last_stable_offset: the end of what readers of committed transactions see, exclusive; -1 if not given.
        log_start_offset: the first offset of the leader's log, inclusive; -1 if not given.
        diverging_epoch: where to truncate, if the replica's log has diverged.
        snapshot_id: what to fetch instead, if the leader's log starts after the requested offset.
        records: stored batches; the last one may be cut short.
    """

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: FetchResponseEpochEndOffset = FetchResponseEpochEndOffset()
    current_leader: FetchResponseLeaderIdAndEpoch = FetchResponseLeaderIdAndEpoch()
    snapshot_id: FetchResponseSnapshotId = FetchResponseSnapshotId()
    aborted_transactions: tuple[FetchResponseAbortedTransaction, ...] | None
    preferred_read_replica: int = -1
    records: bytes | memoryview | None
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseFetchableTopicResponse:
    """Groups the partitions of a topic, which has a name up to version 12 and an id from version 13 on."""

    topic: str = ""
    topic_id: uuid.UUID = ZERO_UUID
    partitions: tuple[FetchResponsePartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponseNodeEndpoint:
    """Names a leader's address; unlike other endpoints it has a rack, and a 32-bit port."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchResponse:
    """Answers a FetchRequest; with an error for the whole request, ``responses`` is empty."""

    throttle_time_ms: int
    error_code: int = 0
    session_id: int = 0
    responses: tuple[FetchResponseFetchableTopicResponse, ...]
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotRequestPartitionSnapshot:
    """Says which bytes of which snapshot a replica wants.

    Attributes:
        current_leader_epoch: the sender's epoch.
        position: the first byte of the snapshot's file to fetch.
        replica_directory_id: the sender's directory; the zero uuid if it is not known.
    """

    partition: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    replica_directory_id: uuid.UUID = ZERO_UUID
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotRequestTopicSnapshot:
    """Groups the partitions of a topic."""

    name: str
    partitions: tuple[FetchSnapshotRequestPartitionSnapshot, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotRequest:
    """Asks the leader for a part of a snapshot.

    Attributes:
        replica_id: the sender.
        max_bytes: how many bytes of snapshots the response may have.
    """

    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = _MAX_INT32
    topics: tuple[FetchSnapshotRequestTopicSnapshot, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotResponseLeaderIdAndEpoch:
    """Names the leader and the epoch that the answering replica knows."""

    leader_id: int
    leader_epoch: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotResponsePartitionSnapshot:
    """Has a part of a snapshot's file.

    Attributes:
        current_leader: left out of the bytes if both its numbers are 0, as in Kafka.
        size: how many bytes the whole snapshot has.
        position: the byte position in the file at which ``unaligned_records`` starts.
        unaligned_records: bytes of the file, which may start and end inside a batch.
    """

    index: int
    error_code: int
    snapshot_id: SnapshotId
    current_leader: FetchSnapshotResponseLeaderIdAndEpoch = FetchSnapshotResponseLeaderIdAndEpoch(
        leader_id=0, leader_epoch=0
    )
    size: int
    position: int
    unaligned_records: bytes | memoryview
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotResponseTopicSnapshot:
    """Groups the partitions of a topic."""

    name: str
    partitions: tuple[FetchSnapshotResponsePartitionSnapshot, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class FetchSnapshotResponse:
    """Answers a FetchSnapshotRequest; with an error for the whole request, ``topics`` is empty."""

    throttle_time_ms: int
    error_code: int
    topics: tuple[FetchSnapshotResponseTopicSnapshot, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()
