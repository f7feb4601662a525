# SPDX-License-Identifier: Apache-2.0
"""The records of the coordinators' topics: frames, tombstones, errors in Kafka's words, levels, JSON."""

import base64
import json
import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.batches.batch import whole_batches
from raftlog.records.messages.coordinator import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    read_coordinator_record,
    write_coordinator_record,
)
from raftlog.records.messages.releases import LEVELS
from raftlog.records.messages.schema import MessageType, message_type, message_types
from tests.golden_files import GOLDEN
from tests.records.outcome import outcome
from tests.records.schema_strategies import messages

TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
KINDS = message_types("coordinator-records")
KEYS = [kind for kind in KINDS.values() if kind.schema.topic in TOPICS and kind.name.endswith("Key")]

subscription = message_type("ConsumerProtocolSubscription")
assignment = message_type("ConsumerProtocolAssignment")


@st.composite
def records(draw: st.DrawFn) -> tuple[str, CoordinatorRecord]:
    """Draw a topic and a record of it."""
    key = draw(st.sampled_from(KEYS))
    value = KINDS[key.name.removesuffix("Key") + "Value"]
    version = draw(st.none() | st.integers(value.versions.lowest, value.versions.highest))
    message = None if version is None else draw(messages(value, version))
    record = CoordinatorRecord(key.api_key or 0, key, draw(messages(key, 0)), value, version, message)
    return key.schema.topic or "", record


@settings(deadline=None, max_examples=30)
@given(records(), st.binary(max_size=2))
def test_records_survive_the_wire(drawn: tuple[str, CoordinatorRecord], trailing: bytes) -> None:
    """A record reads as it was written; what follows key and value is reported; both render as JSON."""
    topic, record = drawn
    key, value = write_coordinator_record(record)
    assert read_coordinator_record(topic, key, value) == record
    longer = read_coordinator_record(topic, memoryview(key + trailing), None if value is None else value + trailing)
    rest = b"" if value is None else trailing
    assert longer == attrs.evolve(record, key_trailing=trailing, value_trailing=rest)
    assert json.loads(record.key_json())["type"] == str(record.type)
    rendered = record.value_json()
    assert (rendered is None) == (value is None)
    assert rendered is None or json.loads(rendered)["version"] == str(record.version)


@settings(deadline=None, max_examples=40)
@given(st.data(), records(), st.sampled_from(LEVELS))
def test_mutated_records_read_or_are_refused(
    data: st.DataObject, drawn: tuple[str, CoordinatorRecord], level: str
) -> None:
    """A written record with a byte changed gives a record or an InvalidRecordError, at every level."""
    topic, record = drawn
    key, value = (mutated(data, part) for part in write_coordinator_record(record))
    read = outcome(lambda: read_coordinator_record(topic, key, value, level=level))
    if isinstance(read, DecodeError):
        assert isinstance(read, InvalidRecordError)
    elif isinstance(read, CoordinatorRecord):
        json.loads(read.key_json())
        json.loads(read.value_json() or "null")


def mutated(data: st.DataObject, part: bytes | None) -> bytes | None:
    """Draw bytes with one of them changed."""
    if not part:
        return part
    position = data.draw(st.integers(0, len(part) - 1))
    return part[:position] + data.draw(st.binary(max_size=2)) + part[position + 1 :]


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(TOPICS), st.binary(max_size=20), st.none() | st.binary(max_size=20))
def test_any_bytes_read_or_are_refused(topic: str, key: bytes, value: bytes | None) -> None:
    """Any bytes give a record, an unknown record, or a typed error."""
    read = outcome(lambda: read_coordinator_record(topic, key, value))
    assert isinstance(read, DecodeError) or read.type == int.from_bytes(key[:2], "big", signed=True)


GROUP = "0002 0001 67"


@pytest.mark.parametrize(
    ("topic", "key", "value", "reason"),
    [
        (CONSUMER_OFFSETS, "", None, "Could not read version from key's buffer."),
        (CONSUMER_OFFSETS, "00", None, "Could not read version from key's buffer."),
        (CONSUMER_OFFSETS, GROUP, "00", "Could not read version from value's buffer."),
        (CONSUMER_OFFSETS, GROUP, "0009", "Found an unknown record version 9 for 2 type"),
        (CONSUMER_OFFSETS, "0000 0001 67 0001 74 00000000", "0001", "Found an unknown record version 1 for 0 type"),
        (
            CONSUMER_OFFSETS,
            "0002",
            None,
            "Could not read record with version 2 from key's buffer due to: null.",
        ),
        (
            CONSUMER_OFFSETS,
            "0002 0005 67",
            None,
            "Could not read record with version 2 from key's buffer due to: "
            "Error reading byte array of 5 byte(s): only 1 byte(s) available.",
        ),
        (
            CONSUMER_OFFSETS,
            "0002 ffff",
            None,
            "Could not read record with version 2 from key's buffer due to: "
            "non-nullable field group was serialized as null.",
        ),
        (
            CONSUMER_OFFSETS,
            "0003 0001 67",
            "0000 00000000 01 50 ffffffff0f",
            "Could not read record with version 0 from value's buffer due to: -1.",
        ),
        (
            TRANSACTION_STATE,
            "0000 0001 74",
            "0000 00",
            "Could not read record with version 0 from value's buffer due to: null.",
        ),
    ],
)
def test_errors_are_kafkas_words(topic: str, key: str, value: str | None, reason: str) -> None:
    """The reason of each error is what Kafka's dump tool prints for such a record."""
    with pytest.raises(InvalidRecordError) as caught:
        read_coordinator_record(topic, bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert caught.value.reason == reason


def test_a_key_has_to_be_there() -> None:
    """A null key is an InvalidRecordError; a topic that is none of the three is a LookupError."""
    with pytest.raises(InvalidRecordError):
        read_coordinator_record(CONSUMER_OFFSETS, None, b"")
    with pytest.raises(LookupError):
        read_coordinator_record("orders", b"\0\0", b"")


@pytest.mark.parametrize("value", [None, b"", b"abc"])
def test_unknown_types_are_values(value: bytes | None) -> None:
    """A type that is not known keeps its raw bytes."""
    key = b"\0\x63rest"
    assert read_coordinator_record(CONSUMER_OFFSETS, key, value) == UnknownCoordinatorRecord(99, key, value)
    assert read_coordinator_record(TRANSACTION_STATE, b"\xff\xff", value).type == -1


def test_older_levels_know_less() -> None:
    """Before 4.0 there are no share groups, and a value of any version is read by the nearest layout."""
    share = b"\0\x0b\0\x01g"
    assert isinstance(read_coordinator_record(CONSUMER_OFFSETS, share, None, level="4.1"), CoordinatorRecord)
    assert isinstance(read_coordinator_record(CONSUMER_OFFSETS, share, None, level="3.9"), UnknownCoordinatorRecord)
    offset_key = bytes.fromhex("0000 0001 67 0001 74 00000000")
    commit = message_type("OffsetCommitValue").write({"offset": 5, "leaderEpoch": 7}, version=3)
    read = read_coordinator_record(CONSUMER_OFFSETS, offset_key, b"\0\x03" + commit, level="3.9")
    assert isinstance(read, CoordinatorRecord)
    assert read.value_json() == (
        '{"version":"3","data":{"offset":5,"leaderEpoch":7,"metadata":"","commitTimestamp":0}}'
    )
    with pytest.raises(InvalidRecordError, match="Found an unknown record version 9 for 0 type"):
        read_coordinator_record(CONSUMER_OFFSETS, offset_key, b"\0\x09" + commit, level="4.0")


EARLY_KINDS = message_types("early-share-records")
EARLY_KEYS = [kind for kind in EARLY_KINDS.values() if kind.name.endswith("Key")]


@settings(deadline=None, max_examples=30)
@given(st.data(), st.sampled_from(EARLY_KEYS))
def test_early_share_groups_survive_the_wire(data: st.DataObject, key: MessageType) -> None:
    """A record of 4.0's early share groups reads at that level as it was written, by its own layouts."""
    value = EARLY_KINDS[key.name.removesuffix("Key") + "Value"]
    record = CoordinatorRecord(
        key.api_key or 0, key, data.draw(messages(key, 0)), value, 0, data.draw(messages(value, 0))
    )
    topic = key.schema.topic or ""
    assert read_coordinator_record(topic, *write_coordinator_record(record), level="4.0") == record


def test_early_share_groups_have_other_fields() -> None:
    """In 4.0 the epoch of a snapshot has 16 bits without sign, and there are no timestamps."""
    update = b"\0\0" + bytes.fromhex("ffff 00000003 0000000000000004 01 00")
    read = read_coordinator_record(SHARE_GROUP_STATE, b"\0\1" + bytes(22), update, level="4.0")
    assert isinstance(read, CoordinatorRecord)
    assert read.value_json() == (
        '{"version":"0","data":{"snapshotEpoch":65535,"leaderEpoch":3,"startOffset":4,"stateBatches":[]}}'
    )


@pytest.mark.parametrize(
    ("level", "types"),
    [
        ("3.9", [*range(9)]),
        ("4.0", [*range(17)]),
        ("4.1", [*range(9), *range(10, 18), *range(19, 24)]),
        ("4.3", [*range(9), *range(10, 18), *range(19, 24)]),
    ],
)
def test_types_by_level(level: str, types: list[int]) -> None:
    """Each release knows its types of records in __consumer_offsets."""

    def is_known(number: int) -> bool:
        key = number.to_bytes(2, "big") + bytes.fromhex("0001 67 0001 67 00000000")
        return isinstance(read_coordinator_record(CONSUMER_OFFSETS, key, None, level=level), CoordinatorRecord)

    assert [number for number in range(30) if is_known(number)] == types


def test_a_version_too_new_reads_in_3_9_until_a_nested_struct_comes() -> None:
    """Kafka's readers of structs that several fields share do not check the version; those of the others do."""
    group = b"\0\x09" + message_type("GroupMetadataValue").write({"members": [{}]}, version=4)
    read = read_coordinator_record(CONSUMER_OFFSETS, bytes.fromhex(GROUP), group, level="3.9")
    assert isinstance(read, CoordinatorRecord)
    assert read.version == 9
    target = message_type("ConsumerGroupTargetAssignmentMemberValue").write({"topicPartitions": [{}]}, version=0)
    with pytest.raises(InvalidRecordError, match="due to: Can't read version 9 of TopicPartition"):
        read_coordinator_record(CONSUMER_OFFSETS, b"\0\x07" + bytes(4), b"\0\x09" + target, level="3.9")


def group_json(protocol_type: str, subscribed: bytes, assigned: bytes) -> tuple[object, object]:
    """Render a classic group with one member, and give how its subscription and assignment look."""
    member = {"subscription": subscribed, "assignment": assigned}
    message = {"protocolType": protocol_type, "members": [member]}
    kind = KINDS["GroupMetadataValue"]
    key = CoordinatorRecord(2, KINDS["GroupMetadataKey"], {"group": "g"}, kind, 3, message)
    read = read_coordinator_record(CONSUMER_OFFSETS, *write_coordinator_record(key))
    assert isinstance(read, CoordinatorRecord)
    shown = json.loads(read.value_json() or "")["data"]["members"][0]
    return shown["subscription"], shown["assignment"]


def as_base64(data: bytes) -> str:
    """Give bytes as they are shown where they do not parse."""
    return base64.b64encode(data).decode()


SUBSCRIBED = subscription.write({"topics": ["t"]}, version=3)
ASSIGNED = assignment.write({"assignedPartitions": [{"topic": "t", "partitions": [1]}]}, version=3)
SHOWN = {"topics": ["t"], "userData": None, "ownedPartitions": [], "generationId": -1, "rackId": None}


def test_classic_groups_are_expanded() -> None:
    """Subscription and assignment of a consumer group are shown as objects, without what follows them."""
    shown = group_json("consumer", b"\0\x03" + SUBSCRIBED + b"rest", b"\0\x03" + ASSIGNED)
    assert shown == (SHOWN, {"assignedPartitions": [{"topic": "t", "partitions": [1]}], "userData": None})
    assert group_json("connect", b"\0\x03" + SUBSCRIBED, b"") == (as_base64(b"\0\x03" + SUBSCRIBED), "")


def test_odd_versions_of_the_classic_protocol() -> None:
    """A negative version reads as 0, one too new as 3 until a struct comes; what does not parse stays base64."""
    first = subscription.write({"topics": ["t"]}, version=0)
    assert group_json("consumer", b"\xff\xff" + first, b"")[0] == {"topics": ["t"], "userData": None}
    assert group_json("consumer", b"\0\x09" + SUBSCRIBED, b"") == (SHOWN, "")
    assert group_json("consumer", b"\0\x03", b"\0\x09" + ASSIGNED) == ("AAM=", as_base64(b"\0\x09" + ASSIGNED))


@pytest.mark.parametrize(
    ("folder", "topic", "decoder"),
    [
        ("groups", CONSUMER_OFFSETS, "offsets"),
        ("groups", SHARE_GROUP_STATE, "share"),
        ("data-topics", CONSUMER_OFFSETS, "offsets"),
        ("data-topics", TRANSACTION_STATE, "transaction"),
    ],
)
def test_logs_of_real_coordinators(folder: str, topic: str, decoder: str) -> None:
    """Each record renders as Kafka's dump tool printed it, and is written as it was."""
    data = (GOLDEN / folder / "data/n1" / f"{topic}-0/00000000000000000000.log").read_bytes()
    expected = GOLDEN / folder / "expected" / f"n1.{topic}-0.00000000000000000000.log.{decoder}.txt"
    printed = re.findall(r"\| offset: .* (key: .*)", expected.read_text("utf-8"))
    assert printed
    for batch in whole_batches(data):
        for record in () if batch.is_control else batch.records():
            read = read_coordinator_record(topic, record.key, record.value)
            assert isinstance(read, CoordinatorRecord)
            assert f"key: {read.key_json()} payload: {read.value_json() or '<DELETE>'}" == printed.pop(0)
            assert write_coordinator_record(read) == (record.key, record.value)
    assert not printed
