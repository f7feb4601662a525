# SPDX-License-Identifier: Apache-2.0
"""The records of MirrorMaker 2: offset syncs, checkpoints and heartbeats.

::

    key      the key's struct
    value    int16 version 0, except in an offset sync; then the value's struct

Kafka ignores bytes after key and value, and reads any version as 0; here both are errors, so that each record that is
read is written again byte for byte. A null value is a tombstone: MirrorMaker writes none, but its topics are compacted.

Source: OffsetSync, Checkpoint and Heartbeat of org.apache.kafka.connect.mirror.
"""

import enum
import struct
from typing import Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.primitives import RULE, Buffer
from raftlog.records.messages.schema import Message, MessageType, message_type

OFFSET_SYNC_VALUE_SIZE: Final = 16
"""The value of an offset sync has so many bytes: its offsets upstream and downstream, as big-endian integers."""
_VERSION: Final = 0
_VERSION_SIZE: Final = 2
_INT16: Final = struct.Struct(">h")
_FRAME_RULE: Final = "message-frame"
_VERSION_RULE: Final = "message-version"


class MirrorRecordType(enum.Enum):
    """The types of records; the value is how the names of their schemas begin."""

    OFFSET_SYNC = "OffsetSync"
    CHECKPOINT = "Checkpoint"
    HEARTBEAT = "Heartbeat"

    @property
    def has_version(self) -> bool:
        """Whether the value begins with its version."""
        return self is not MirrorRecordType.OFFSET_SYNC

    @property
    def words(self) -> str:
        """What such a record is called in messages."""
        return self.name.lower().replace("_", " ")

    @property
    def key_type(self) -> MessageType:
        """The message that is the key."""
        return message_type(f"{self.value}Key")

    @property
    def value_type(self) -> MessageType:
        """The message in the value."""
        return message_type(f"{self.value}Value")


@attrs.frozen
class OffsetSyncKey:
    """The key of an offset sync.

    Attributes:
        topic: the upstream name: that of the topic on the source cluster.
        partition: the partition of both topics.
    """

    topic: str
    partition: int


@attrs.frozen
class OffsetSync:
    """A record of the source and its copy on the target.

    Attributes:
        key: whose offsets they are.
        upstream_offset: the record's offset on the source.
        downstream_offset: the copy's offset on the target.
    """

    key: OffsetSyncKey
    upstream_offset: int
    downstream_offset: int


@attrs.frozen
class CheckpointKey:
    """The key of a checkpoint.

    Attributes:
        group: the consumer group.
        topic: the remote name: that of the topic on the target cluster.
        partition: the partition of both topics.
    """

    group: str
    topic: str
    partition: int


@attrs.frozen
class Checkpoint:
    """Where a group goes on after a fail-over to the target.

    Attributes:
        key: whose offsets they are.
        upstream_offset: what the group has committed on the source: the first offset that it has not read.
        downstream_offset: the first offset that it reads on the target.
        metadata: that of the committed offset.
    """

    key: CheckpointKey
    upstream_offset: int
    downstream_offset: int
    metadata: str


@attrs.frozen
class HeartbeatKey:
    """The key of a heartbeat: the flow that is alive.

    Attributes:
        source_cluster_alias: where the flow reads.
        target_cluster_alias: where it writes, heartbeats included.
    """

    source_cluster_alias: str
    target_cluster_alias: str


@attrs.frozen
class Heartbeat:
    """A sign of life of a flow.

    Attributes:
        key: the flow.
        timestamp: when it was written, in ms since the Unix epoch; the record has the same timestamp.
    """

    key: HeartbeatKey
    timestamp: int


@attrs.frozen
class MirrorTombstone:
    """A record with a null value, after whose compaction the key has no record.

    Attributes:
        key: its class says which type of record it is.
    """

    key: OffsetSyncKey | CheckpointKey | HeartbeatKey


MirrorRecord = OffsetSync | Checkpoint | Heartbeat | MirrorTombstone
"""A record of one of MirrorMaker's topics."""


def read_mirror_record(kind: MirrorRecordType, key: Buffer | None, value: Buffer | None) -> MirrorRecord:
    """Read a record of a type.

    Raises:
        InvalidRecordError: the key is null, key or value breaks the format or has bytes left over, or the value has
            another version than 0. Its position is in the key or the value, which the reason names.
    """
    key_message, value_message = read_mirror_messages(kind, key, value)
    return _record_of(kind, key_message, value_message)


def read_offset_sync_key(key: Buffer) -> OffsetSyncKey:
    """Read the key of an offset sync.

    Raises:
        InvalidRecordError: it breaks the format or has bytes left over.
    """
    kind = MirrorRecordType.OFFSET_SYNC
    message = _read_whole(kind.key_type, key, 0, f"the key of the {kind.words}")
    return OffsetSyncKey(message["topic"], message["partition"])


def read_mirror_messages(
    kind: MirrorRecordType, key: Buffer | None, value: Buffer | None
) -> tuple[Message, Message | None]:
    """Read a record's key and value as messages of their schemas; the value of a tombstone is None.

    Raises:
        InvalidRecordError: as ``read_mirror_record``.
    """
    if key is None:
        raise InvalidRecordError(f"the {kind.words} has no key", _FRAME_RULE)
    key_message = _read_whole(kind.key_type, key, 0, f"the key of the {kind.words}")
    return key_message, None if value is None else _read_value(kind, value)


def is_mirror_key(kind: MirrorRecordType, key: Buffer) -> bool:
    """Whether bytes are a key of a type, with nothing left over."""
    try:
        _read_whole(kind.key_type, key, 0, "the key")
    except InvalidRecordError:
        return False
    return True


def _read_value(kind: MirrorRecordType, value: Buffer) -> Message:
    what = f"the value of the {kind.words}"
    if not kind.has_version:
        return _read_whole(kind.value_type, value, 0, what)
    if len(value) < _VERSION_SIZE:
        raise InvalidRecordError(f"{what} has {len(value)} bytes, which is no version", _FRAME_RULE, position=0)
    (version,) = _INT16.unpack_from(value)
    if version != _VERSION:
        raise InvalidRecordError(f"{what} has version {version}; only version 0 is known", _VERSION_RULE, position=0)
    return _read_whole(kind.value_type, value, _VERSION_SIZE, what)


def _read_whole(layout: MessageType, data: Buffer, start: int, what: str) -> Message:
    """Read a message that begins at a position and must fill the rest of the bytes."""
    try:
        message, end = layout.read(data, start, version=_VERSION)
    except DecodeError as error:
        raise InvalidRecordError(f"{what}: {error.reason}", error.rule, position=error.position) from error
    if end != len(data):
        raise InvalidRecordError(f"bytes are left over after {what}: {len(data) - end}", RULE, position=end)
    return message


def write_mirror_record(record: MirrorRecord) -> tuple[bytes, bytes | None]:
    """Write the key and the value (None for a tombstone) of a record.

    Raises:
        InvalidRecordError: an attribute takes another value.
    """
    kind, value_message = mirror_record_type(record), _value_message(record)
    key = kind.key_type.write(_key_message(record.key), version=_VERSION)
    if value_message is None:
        return key, None
    head = _INT16.pack(_VERSION) if kind.has_version else b""
    return key, head + kind.value_type.write(value_message, version=_VERSION)


def mirror_record_type(record: MirrorRecord) -> MirrorRecordType:
    """Return the type of a record."""
    match record.key:
        case OffsetSyncKey():
            return MirrorRecordType.OFFSET_SYNC
        case CheckpointKey():
            return MirrorRecordType.CHECKPOINT
        case HeartbeatKey():
            return MirrorRecordType.HEARTBEAT


def _record_of(kind: MirrorRecordType, key: Message, value: Message | None) -> MirrorRecord:
    match kind:
        case MirrorRecordType.OFFSET_SYNC:
            sync_key = OffsetSyncKey(key["topic"], key["partition"])
            if value is not None:
                return OffsetSync(sync_key, value["upstreamOffset"], value["offset"])
            return MirrorTombstone(sync_key)
        case MirrorRecordType.CHECKPOINT:
            checkpoint_key = CheckpointKey(key["group"], key["topic"], key["partition"])
            if value is not None:
                return Checkpoint(checkpoint_key, value["upstreamOffset"], value["offset"], value["metadata"])
            return MirrorTombstone(checkpoint_key)
        case MirrorRecordType.HEARTBEAT:
            heartbeat_key = HeartbeatKey(key["sourceClusterAlias"], key["targetClusterAlias"])
            return MirrorTombstone(heartbeat_key) if value is None else Heartbeat(heartbeat_key, value["timestamp"])


def _value_message(record: MirrorRecord) -> Message | None:
    """Return the message of a record's value; None for a tombstone."""
    match record:
        case OffsetSync():
            return {"upstreamOffset": record.upstream_offset, "offset": record.downstream_offset}
        case Checkpoint():
            offsets = {"upstreamOffset": record.upstream_offset, "offset": record.downstream_offset}
            return {**offsets, "metadata": record.metadata}
        case Heartbeat():
            return {"timestamp": record.timestamp}
        case MirrorTombstone():
            return None


def _key_message(key: OffsetSyncKey | CheckpointKey | HeartbeatKey) -> Message:
    match key:
        case OffsetSyncKey():
            return {"topic": key.topic, "partition": key.partition}
        case CheckpointKey():
            return {"group": key.group, "topic": key.topic, "partition": key.partition}
        case HeartbeatKey():
            return {"sourceClusterAlias": key.source_cluster_alias, "targetClusterAlias": key.target_cluster_alias}
