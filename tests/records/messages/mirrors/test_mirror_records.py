# SPDX-License-Identifier: Apache-2.0
"""Offset syncs, checkpoints and heartbeats: exact round trips, every error, and what a real MirrorMaker wrote."""

import itertools
import re
import struct
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    CheckpointKey,
    Heartbeat,
    HeartbeatKey,
    MirrorRecord,
    MirrorRecordType,
    MirrorTombstone,
    OffsetSync,
    OffsetSyncKey,
    is_mirror_key,
    mirror_record_type,
    read_mirror_messages,
    read_mirror_record,
    write_mirror_record,
)
from tests.records.messages.mirrors.mirror_corpus import MIRROR, A, B, records_of
from tests.records.outcome import outcome

TYPES = list(MirrorRecordType)
SYNC, CHECKPOINT, HEARTBEAT = MirrorRecordType

STRINGS = st.text(st.characters(codec="utf-8"), max_size=6) | st.binary(max_size=6).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
SYNC_KEYS = st.builds(OffsetSyncKey, STRINGS, INT32)
CHECKPOINT_KEYS = st.builds(CheckpointKey, STRINGS, STRINGS, INT32)
HEARTBEAT_KEYS = st.builds(HeartbeatKey, STRINGS, STRINGS)
RECORDS: st.SearchStrategy[MirrorRecord] = st.one_of(
    st.builds(OffsetSync, SYNC_KEYS, INT64, INT64),
    st.builds(Checkpoint, CHECKPOINT_KEYS, INT64, INT64, STRINGS),
    st.builds(Heartbeat, HEARTBEAT_KEYS, INT64),
    st.builds(MirrorTombstone, SYNC_KEYS | CHECKPOINT_KEYS | HEARTBEAT_KEYS),
)


def naive(record: MirrorRecord) -> tuple[bytes, bytes | None]:
    """Write a record by hand: the naive model."""

    def string(text: str) -> bytes:
        data = text.encode("utf-8", "surrogateescape")
        return struct.pack(">h", len(data)) + data

    match record.key:
        case OffsetSyncKey(topic, partition):
            key = string(topic) + struct.pack(">i", partition)
        case CheckpointKey(group, topic, partition):
            key = string(group) + string(topic) + struct.pack(">i", partition)
        case HeartbeatKey(source, target):
            key = string(source) + string(target)
    match record:
        case OffsetSync():
            return key, struct.pack(">qq", record.upstream_offset, record.downstream_offset)
        case Checkpoint():
            offsets = struct.pack(">hqq", 0, record.upstream_offset, record.downstream_offset)
            return key, offsets + string(record.metadata)
        case Heartbeat():
            return key, struct.pack(">hq", 0, record.timestamp)
        case MirrorTombstone():
            return key, None


@given(RECORDS)
def test_records_survive_the_wire(record: MirrorRecord) -> None:
    """Any record is written as by hand, and reads as it was, from bytes of any kind."""
    key, value = write_mirror_record(record)
    kind = mirror_record_type(record)

    assert (key, value) == naive(record)
    assert read_mirror_record(kind, key, value) == record
    assert read_mirror_record(kind, memoryview(key), None if value is None else bytearray(value)) == record
    assert is_mirror_key(kind, key)


@given(st.sampled_from(TYPES), st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_refused(kind: MirrorRecordType, key: bytes, value: bytes | None) -> None:
    """Any bytes give an InvalidRecordError with a position in them, or a record that is written as it was."""
    read = outcome(lambda: read_mirror_record(kind, key, value))
    if isinstance(read, InvalidRecordError):
        assert read.position is not None
        assert 0 <= read.position <= max(len(key), len(value or b""))
    else:
        assert not isinstance(read, Exception)
        assert write_mirror_record(read) == (key, value)


@given(st.data(), RECORDS)
def test_every_prefix_is_refused(data: st.DataObject, record: MirrorRecord) -> None:
    """A key or value that is cut anywhere, or has a byte more, is refused; a cut metadata text is not taken for one."""
    kind = mirror_record_type(record)
    key, value = write_mirror_record(record)
    more = data.draw(st.binary(min_size=1, max_size=3))
    for other in (*(key[:end] for end in range(len(key))), key + more):
        assert isinstance(outcome(partial(read_mirror_record, kind, other, value)), InvalidRecordError)
        assert not is_mirror_key(kind, other)
    for other in () if value is None else (*(value[:end] for end in range(len(value))), value + more):
        assert isinstance(outcome(partial(read_mirror_record, kind, key, other)), InvalidRecordError)


EXAMPLES: list[MirrorRecord] = [
    OffsetSync(OffsetSyncKey("orders", 1), 319, 317),
    Checkpoint(CheckpointKey("readers", "A.orders", 0), 61, 1, "m"),
    Heartbeat(HeartbeatKey("A", "B"), 1795258450024),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_every_byte_changed(record: MirrorRecord) -> None:
    """Each byte, changed to each other value: another record, written as it was read, or an InvalidRecordError."""
    kind = mirror_record_type(record)
    parts = write_mirror_record(record)
    results = {"read": 0, "refused": 0}
    for which, part in enumerate(parts):
        for position in range(len(part or b"")):
            for byte in range(256):
                changed = bytearray(part or b"")
                changed[position] ^= byte
                key, value = (bytes(changed), parts[1]) if which == 0 else (parts[0], bytes(changed))
                read = outcome(partial(read_mirror_record, kind, key, value))
                if isinstance(read, InvalidRecordError):
                    results["refused"] += 1
                else:
                    assert not isinstance(read, Exception)
                    assert (read == record) == (byte == 0)
                    assert write_mirror_record(read) == (key, value)
                    results["read"] += 1
    assert min(results.values()) > 0


@pytest.mark.parametrize(
    ("kind", "key", "value", "rule", "position", "reason"),
    [
        (SYNC, None, "", "message-frame", None, "the offset sync has no key"),
        (SYNC, "", "", "message-field", 0, "the key of the offset sync: the bytes end inside a field"),
        (SYNC, "0001 61 00000000", "00" * 15, "message-field", 0, "the value of the offset sync: the bytes end"),
        (
            SYNC,
            "0001 61 00000000",
            "00" * 17,
            "message-field",
            16,
            "bytes are left over after the value of the offset sync: 1",
        ),
        (
            SYNC,
            "0001 61 00000000 00",
            None,
            "message-field",
            7,
            "bytes are left over after the key of the offset sync: 1",
        ),
        (SYNC, "ffff 00000000", None, "message-field", 0, "non-nullable field topic was serialized as null"),
        (SYNC, "7fff 61", None, "message-field", 0, "Error reading byte array of 32767 byte(s): only 1 byte(s)"),
        (CHECKPOINT, "0000 0000 00000000", "", "message-frame", 0, "the value of the checkpoint has 0 bytes"),
        (CHECKPOINT, "0000 0000 00000000", "00", "message-frame", 0, "which is no version"),
        (CHECKPOINT, "0000 0000 00000000", "0001" + "00" * 18, "message-version", 0, "has version 1; only version 0"),
        (CHECKPOINT, "0000 0000 00000000", "ffff" + "00" * 18, "message-version", 0, "has version -1; only version 0"),
        (CHECKPOINT, "0000 0000 00000000", "0000" + "00" * 16, "message-field", 18, "the bytes end inside a field"),
        (CHECKPOINT, "0000 0000 00000000", "0000" + "00" * 16 + "0001", "message-field", 18, "only 0 byte(s)"),
        (HEARTBEAT, "0001 41 0001 42", "0000" + "00" * 7, "message-field", 2, "the value of the heartbeat: the bytes"),
        (
            HEARTBEAT,
            "0001 41 0001 42",
            "0000" + "00" * 9,
            "message-field",
            10,
            "bytes are left over after the value of the heartbeat: 1",
        ),
        (HEARTBEAT, "0001 41 0001 42", "0100" + "00" * 8, "message-version", 0, "has version 256"),
    ],
)
def test_errors(
    kind: MirrorRecordType, key: str | None, value: str | None, rule: str, position: int | None, reason: str
) -> None:
    """Each error names what breaks the format, the rule, and the position in key or value."""
    parts = (None if part is None else bytes.fromhex(part) for part in (key, value))
    with pytest.raises(InvalidRecordError, match=re.escape(reason)) as caught:
        read_mirror_record(kind, *parts)
    assert (caught.value.rule, caught.value.position) == (rule, position)


def test_a_field_that_does_not_fit() -> None:
    """What cannot be written is refused: a partition of 64 bits, a text that is too long."""
    for key in (OffsetSyncKey("a", 2**31), OffsetSyncKey("a" * 0x8000, 0)):
        with pytest.raises(InvalidRecordError):
            write_mirror_record(MirrorTombstone(key))
    assert write_mirror_record(MirrorTombstone(OffsetSyncKey("a" * 0x7FFF, 2**31 - 1)))


def test_messages_have_kafkas_names() -> None:
    """A message has the fields of Kafka's schemas; that of a tombstone has no value."""
    key, value = naive(EXAMPLES[1])
    messages = ({"group": "readers", "topic": "A.orders", "partition": 0},)
    assert read_mirror_messages(CHECKPOINT, key, None) == (*messages, None)
    assert read_mirror_messages(CHECKPOINT, key, value) == (
        *messages,
        {"upstreamOffset": 61, "offset": 1, "metadata": "m"},
    )


# What a real MirrorMaker wrote


def syncs() -> list[OffsetSync]:
    """Return all offset syncs of the golden files."""
    read = [read_mirror_record(SYNC, each.key, each.value) for each in records_of(A, "mm2-offset-syncs.B.internal")]
    return [each for each in read if isinstance(each, OffsetSync)]


def test_offset_syncs_of_a_real_mirror() -> None:
    """All 52 are read: each partition's begin at 0, and their offsets rise together."""
    found = syncs()
    pairs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for sync in found:
        pair = (sync.upstream_offset, sync.downstream_offset)
        pairs.setdefault((sync.key.topic, sync.key.partition), []).append(pair)
    assert {partition: len(each) for partition, each in pairs.items()} == {
        ("orders", 0): 25,
        ("orders", 1): 12,
        ("tx.orders", 0): 7,
        ("heartbeats", 0): 6,
        ("internal-looking", 0): 2,
    }
    assert pairs["tx.orders", 0] == [(0, 0), (11, 11), (21, 20), (32, 31), (42, 40), (53, 51), (61, 59)]
    assert all(each == sorted(each) and each[0] == (0, 0) for each in pairs.values())
    assert len(found) == 52


def test_checkpoints_of_a_real_mirror() -> None:
    """The four of the group, with remote names and without metadata."""
    read = [read_mirror_record(CHECKPOINT, each.key, each.value) for each in records_of(B, "A.checkpoints.internal")]
    assert read == [
        Checkpoint(CheckpointKey("readers", "A.orders", partition), upstream, downstream, "")
        for partition, upstream, downstream in ((1, 150, 144), (0, 61, 1), (1, 150, 150), (0, 273, 243))
    ]


@pytest.mark.parametrize(
    ("node", "topic", "flow", "count"),
    [(A, "heartbeats", ("B", "A"), 40), (B, "A.heartbeats", ("B", "A"), 40), (B, "heartbeats", ("A", "B"), 41)],
)
def test_heartbeats_of_a_real_mirror(node: str, topic: str, flow: tuple[str, str], count: int) -> None:
    """Each has the timestamp of its record, about 2 s after the one before, and names the flow that writes there."""
    found = list(records_of(node, topic))
    assert [read_mirror_record(HEARTBEAT, each.key, each.value) for each in found] == [
        Heartbeat(HeartbeatKey(*flow), each.timestamp) for each in found
    ]
    distances = [after.timestamp - before.timestamp for before, after in itertools.pairwise(found)]
    assert len(found) == count
    assert min(distances) >= 2000
    assert max(distances) <= 2005


@pytest.mark.parametrize(
    ("kind", "topics"),
    [(SYNC, "mm2-offset-syncs.*"), (CHECKPOINT, "*.checkpoints.internal"), (HEARTBEAT, "*heartbeats")],
)
def test_real_records_are_written_as_they_were(kind: MirrorRecordType, topics: str) -> None:
    """Byte for byte, and each is of no other type."""
    names = {(path.parent.name, path.name.rpartition("-")[0]) for path in MIRROR.glob(f"*/{topics}-0")}
    assert names
    for record in (record for name in sorted(names) for record in records_of(*name)):
        assert write_mirror_record(read_mirror_record(kind, record.key, record.value)) == (record.key, record.value)
        for other in set(TYPES) - {kind}:
            with pytest.raises(InvalidRecordError):
                read_mirror_record(other, record.key, record.value)
