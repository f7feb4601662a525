# SPDX-License-Identifier: Apache-2.0
"""Connect's source offsets and configurations: total readers of JSON, and what a real MirrorMaker wrote."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.mirrors.connect_records import (
    MAX_NESTING,
    ConfigType,
    ConnectConfig,
    SourceOffset,
    SourcePartition,
    read_connect_config,
    read_json,
    read_source_offset,
)
from tests.records.messages.mirrors.mirror_corpus import A, B, records_of
from tests.records.outcome import outcome

Read = Callable[[bytes, bytes], SourceOffset | ConnectConfig]

KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]'
VALUE = b'{"offset":319}'
SESSION_KEY = b'{"key":"c2VjcmV0","algorithm":"HmacSHA256","creation-timestamp":1795258450258}'
CONNECTOR = b'{"properties":{"source.cluster.alias":"A","topics":null}}'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_any_json_is_read(value: Any) -> None:
    """What Python writes as JSON is read as it was."""
    assert read_json(json.dumps(value).encode(), "it") == value


def naive_depth(value: Any) -> int:
    """How many arrays and objects are inside each other, recursively."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(naive_depth, inner), default=0)


@given(JSON, st.integers(MAX_NESTING - 6, MAX_NESTING + 2))
def test_nesting_is_limited(value: Any, more: int) -> None:
    """Up to the limit is read, and one level more is refused, whatever is inside."""
    for level in range(more):
        value = [value] if level % 2 else {"a": value}
    read = outcome(lambda: read_json(json.dumps(value).encode(), "it"))
    assert isinstance(read, InvalidRecordError) == (naive_depth(value) > MAX_NESTING)


@given(st.binary(max_size=30), st.none() | st.binary(max_size=30))
def test_any_bytes_are_a_record_or_refused(key: bytes, value: bytes | None) -> None:
    """Any bytes give a record or an InvalidRecordError, and nothing else."""
    for read in (
        outcome(lambda: read_source_offset(key, value)),
        outcome(lambda: read_connect_config(key, value)),
    ):
        assert isinstance(read, SourceOffset | ConnectConfig | InvalidRecordError)


@pytest.mark.parametrize(
    ("key", "value"),
    [(KEY, VALUE), (b"session-key", SESSION_KEY), (b"connector-a", CONNECTOR)],
    ids=["offset", "session-key", "connector"],
)
def test_every_prefix_and_every_byte_changed(key: bytes, value: bytes) -> None:
    """A cut value is refused; a value or key with any byte changed is a record or an InvalidRecordError."""
    read: Read = read_source_offset if key is KEY else read_connect_config
    for end in range(len(value)):
        assert isinstance(outcome(partial(read, key, value[:end])), InvalidRecordError)
    for position in range(len(key) + len(value)):
        for byte in range(256):
            changed = bytearray(key + value)
            changed[position] = byte
            found = outcome(partial(read, bytes(changed[: len(key)]), bytes(changed[len(key) :])))
            assert isinstance(found, SourceOffset | ConnectConfig | InvalidRecordError)


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        (b"", 0, "it is not JSON"),
        (b'{"a":', 5, "it is not JSON"),
        (b'["\xc3\xa9",}', 6, "it is not JSON"),
        (b"1 2", 2, "it is not JSON"),
        (b'"\xff"', 1, "it is not UTF-8"),
        (b"NaN", None, "it has a number that is not finite, or too long"),
        (b"-Infinity", None, "it has a number that is not finite, or too long"),
        (b"1e999", None, "it has a number that is not finite, or too long"),
        (b"1" * 5000, None, "it has a number that is not finite, or too long"),
        (b"[" * 100_000, None, "it has more than 64 levels"),
        (b"[" * 65 + b"]" * 65, None, "it has more than 64 levels"),
    ],
)
def test_what_is_no_json(data: bytes, position: int | None, reason: str) -> None:
    """The error has the position in bytes if there is one, and quotes nothing, as values may be secret."""
    with pytest.raises(InvalidRecordError) as caught:
        read_json(data, "it")
    assert (caught.value.reason, caught.value.rule, caught.value.position) == (reason, "message-field", position)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, VALUE, "the source offset has no key"),
        (b"{}", VALUE, "is not an array of a connector's name and an object"),
        (b'["a"]', VALUE, "is not an array of a connector's name and an object"),
        (b'["a",{},{}]', VALUE, "is not an array of a connector's name and an object"),
        (b"[1,{}]", VALUE, "is not an array of a connector's name and an object"),
        (b'["a",null]', VALUE, "is not an array of a connector's name and an object"),
        (KEY, b"319", "the value of a source offset is not a JSON object"),
        (KEY, b"{}", "the value of the source offset has no offset"),
        (KEY, b'{"offset":true}', "the value of the source offset has no offset"),
        (KEY, b'{"offset":319.0}', "the value of the source offset has no offset"),
        (KEY, b'{"offset":9223372036854775808}', "the value of the source offset has no offset"),
        (KEY.replace(b'"partition":0', b'"partition":false'), None, "does not name cluster, topic and partition"),
        (KEY.replace(b'"partition":0', b'"partition":2147483648'), None, "does not name cluster, topic and partition"),
        (KEY.replace(b'"orders"', b"7"), None, "does not name cluster, topic and partition"),
        (KEY.replace(b'"A"', b'"A","more":1'), None, "does not name cluster, topic and partition"),
    ],
)
def test_what_is_no_source_offset(key: bytes | None, value: bytes | None, reason: str) -> None:
    """A MirrorSourceConnector's record has the members that MirrorMaker writes, each of its type."""
    with pytest.raises(InvalidRecordError, match=reason):
        read_source_offset(key, value)


@pytest.mark.parametrize("offset", [-(2**63), -1, 0, 2**63 - 1])
def test_offsets_at_the_limits(offset: int) -> None:
    """An offset is a number of 64 bits, and a partition one of 32."""
    key = KEY.replace(b'"partition":0', b'"partition":2147483647')
    read = read_source_offset(key, b'{"offset":%d}' % offset)
    assert (read.mirrored, read.upstream_offset) == (SourcePartition("A", "orders", 2**31 - 1), offset)


def test_other_connectors_and_tombstones() -> None:
    """A connector of another name may mirror too; other partitions, and tombstones, have no upstream offset."""
    named = read_source_offset(KEY.replace(b"MirrorSourceConnector", b"mine"), VALUE)
    assert (named.connector, named.upstream_offset) == ("mine", 319)
    file = read_source_offset(b'["a",{"filename":"f"}]', b'{"position":7}')
    assert (file.mirrored, file.upstream_offset, file.offset) == (None, None, {"position": 7})
    heartbeat = read_source_offset(b'["b",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]', VALUE)
    assert (heartbeat.mirrored, heartbeat.upstream_offset) == (None, None)
    tombstone = read_source_offset(KEY, None)
    assert (tombstone.mirrored, tombstone.upstream_offset) == (SourcePartition("A", "orders", 0), None)


@pytest.mark.parametrize(
    ("key", "kind", "name"),
    [
        ("session-key", ConfigType.SESSION_KEY, ""),
        ("session-keys", ConfigType.UNKNOWN, "session-keys"),
        ("connector-a-b", ConfigType.CONNECTOR, "a-b"),
        ("task-a-0", ConfigType.TASK, "a-0"),
        ("tasks-fencing-a", ConfigType.TASK_COUNT, "a"),
        ("commit-a", ConfigType.TASKS_COMMIT, "a"),
        ("target-state-a", ConfigType.TARGET_STATE, "a"),
        ("restart-connector-a", ConfigType.RESTART, "a"),
        ("logger-cluster-org.a", ConfigType.LOGGER_LEVEL, "org.a"),
        ("", ConfigType.UNKNOWN, ""),
    ],
)
def test_types_of_configurations(key: str, kind: ConfigType, name: str) -> None:
    """The key says what a record is about, and of whom."""
    read = read_connect_config(key.encode(), None)
    assert (read.type, read.name, read.value, read.properties) == (kind, name, None, None)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"{}", "the configuration record has no key"),
        (b"\xff", b"{}", "the key of the configuration record is not UTF-8"),
        (b"commit-a", b"[]", "the value of a configuration record is not a JSON object"),
        (b"commit-a", b"{", "the value of a configuration record is not JSON"),
        (b"connector-a", b"{}", "the properties are not an object of texts"),
        (b"connector-a", b'{"properties":[]}', "the properties are not an object of texts"),
        (b"task-a-0", b'{"properties":{"a":1}}', "the properties are not an object of texts"),
    ],
)
def test_what_is_no_configuration(key: bytes | None, value: bytes, reason: str) -> None:
    """Each error says what is wrong."""
    with pytest.raises(InvalidRecordError, match=reason):
        read_connect_config(key, value)


def test_source_offsets_of_a_real_mirror() -> None:
    """At the end: the last offset of each partition; and each record is compact JSON of what was read."""
    last: dict[SourcePartition, int] = {}
    others = set()
    for record in records_of(B, "mm2-offsets.A.internal"):
        read = read_source_offset(record.key, record.value)
        if read.mirrored is not None and read.upstream_offset is not None:
            last[read.mirrored] = read.upstream_offset
        else:
            others.add(read.connector)
        for part, data in (([read.connector, read.partition], record.key), (read.offset, record.value)):
            assert json.dumps(part, separators=(",", ":")).encode() == data
    assert last == {
        SourcePartition("A", "orders", 0): 319,
        SourcePartition("A", "orders", 1): 149,
        SourcePartition("A", "tx.orders", 0): 61,
        SourcePartition("A", "internal-looking", 0): 9,
        SourcePartition("A", "heartbeats", 0): 39,
    }
    assert others == {"MirrorCheckpointConnector", "MirrorHeartbeatConnector"}


@pytest.mark.parametrize(("node", "source", "target"), [(A, "B", "A"), (B, "A", "B")])
def test_configurations_of_a_real_mirror(node: str, source: str, target: str) -> None:
    """The aliases, the filter and the distance of syncs are found in the configuration of the source connector."""
    topic = f"mm2-configs.{source}.internal"
    found = {each.key: each for each in (read_connect_config(r.key, r.value) for r in records_of(node, topic))}
    properties = found["connector-MirrorSourceConnector"].properties
    assert properties is not None
    assert properties["source.cluster.alias"] == source
    assert properties["target.cluster.alias"] == target
    assert properties["offset.lag.max"] == "10"
    assert properties.get("topics") == (None if node == A else "orders|tx.*|internal-looking")
    assert sorted(found["session-key"].value or {}) == ["algorithm", "creation-timestamp", "key"]
    assert {each.type for each in found.values()} == {
        ConfigType.SESSION_KEY,
        ConfigType.CONNECTOR,
        ConfigType.TASK,
        ConfigType.TASKS_COMMIT,
    }
