# SPDX-License-Identifier: Apache-2.0
"""Control records: keys, typed values, and the vectors that Kafka's own classes wrote."""

import json
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, UnsupportedVersionError
from raftlog.records.messages.control import (
    ControlRecordType,
    ControlValue,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
    control_json,
    control_key,
    control_type,
    read_control_record,
    write_control_record,
)
from raftlog.records.messages.schema import message_type
from tests.records.outcome import outcome

D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
D2 = uuid.UUID(bytes=bytes(range(0x10, 0x20)))

int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
text = st.text(st.characters(codec="utf-8"), max_size=5)
unknown_tags = st.dictionaries(st.integers(0, 1 << 31), st.binary(max_size=3), max_size=2).map(
    lambda tags: tuple(sorted(tags.items()))
)
directory_ids = st.none() | st.sampled_from([D1, D2])
voters = st.lists(st.builds(Voter, int32, unknown_tags=unknown_tags), max_size=3).map(tuple)
endpoints = st.builds(VotersRecordEndpoint, text, text, st.integers(0, 0xFFFF), unknown_tags)
record_voters = st.builds(
    VotersRecordVoter,
    int32,
    directory_ids,
    st.lists(endpoints, max_size=2).map(tuple),
    int16,
    int16,
    unknown_tags,
    unknown_tags,
)
values: st.SearchStrategy[ControlValue] = st.one_of(
    st.builds(LeaderChangeMessage, int32, voters, voters, int16, unknown_tags),
    st.builds(SnapshotHeaderRecord, st.integers(-(1 << 63), (1 << 63) - 1), int16, unknown_tags),
    st.builds(SnapshotFooterRecord, int16, unknown_tags),
    st.builds(KRaftVersionRecord, int16, int16, unknown_tags),
    st.builds(VotersRecord, st.lists(record_voters, max_size=3).map(tuple), int16, unknown_tags),
    st.builds(EndTxnMarker, st.booleans(), int32, st.integers(0, (1 << 15) - 1)),
)

GOLDEN: list[tuple[ControlValue, str, str, str]] = [
    (
        LeaderChangeMessage(1, (Voter(1), Voter(2), Voter(3)), (Voter(1), Voter(3))),
        "00000002",
        "0000 00000001 04 00000001 00 00000002 00 00000003 00 03 00000001 00 00000003 00 00",
        '{"version":0,"leaderId":1,"voters":[{"voterId":1},{"voterId":2},{"voterId":3}],'
        '"grantingVoters":[{"voterId":1},{"voterId":3}]}',
    ),
    (
        LeaderChangeMessage(1, (Voter(1),), (), version=1),  # Read by version 0, printed by version 1.
        "00000002",
        "0001 00000001 02 00000001 00 01 00",
        '{"version":1,"leaderId":1,"voters":[{"voterId":1,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}],"grantingVoters":[]}',
    ),
    (
        SnapshotHeaderRecord(1700000000123),
        "00000003",
        "0000 0000018bcfe5687b 00",
        '{"version":0,"lastContainedLogTimestamp":1700000000123}',
    ),
    (SnapshotFooterRecord(), "00000004", "0000 00", '{"version":0}'),
    (KRaftVersionRecord(1), "00000005", "0000 0001 00", '{"version":0,"kRaftVersion":1}'),
    (
        VotersRecord((VotersRecordVoter(1, D1, (VotersRecordEndpoint("CONTROLLER", "localhost", 9093),), 0, 1),)),
        "00000006",
        "0000 02 00000001 0102030405060708090a0b0c0d0e0f10 02 0b 434f4e54524f4c4c4552 0a 6c6f63616c686f7374 2385 00"
        "0000 0001 00 00 00",
        '{"version":0,"voters":[{"voterId":1,"voterDirectoryId":"AQIDBAUGBwgJCgsMDQ4PEA","endpoints":[{"name":'
        '"CONTROLLER","host":"localhost","port":9093}],"kRaftVersionFeature":{"minSupportedVersion":0,'
        '"maxSupportedVersion":1}}]}',
    ),
    (EndTxnMarker(committed=False, coordinator_epoch=9), "00000000", "0000 00000009", '{"coordinatorEpoch":9}'),
    (EndTxnMarker(committed=True, coordinator_epoch=100), "00000001", "0000 00000064", '{"coordinatorEpoch":100}'),
]


@settings(deadline=None)
@given(values, st.binary(max_size=3))
def test_values_survive_the_wire(value: ControlValue, trailing: bytes) -> None:
    """A value reads as it was written, its own version kept, and bytes after it are reported."""
    key, written = write_control_record(value)
    record = read_control_record(key, memoryview(written + trailing))
    assert record.value == value
    assert record.type is control_type(value)
    assert (record.raw_key, record.raw_value, record.trailing) == (key, written + trailing, trailing)
    assert write_control_record(value) == (key, written)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 6), st.binary(max_size=40))
def test_any_value_reads_or_is_refused(type_id: int, data: bytes) -> None:
    """Any bytes give a typed value that writes and renders, or a typed error."""
    record = outcome(lambda: read_control_record(control_key(ControlRecordType(type_id)), data))
    if isinstance(record, DecodeError):
        assert isinstance(record, InvalidRecordError)
        assert record.rule == "control-value"
        return
    assert record.value is not None
    assert record.trailing == data[len(data) - len(record.trailing) :]
    write_control_record(record.value)
    json.loads(control_json(record.value))


@settings(deadline=None, max_examples=50)
@given(st.data(), values)
def test_mutated_values_read_or_are_refused(data: st.DataObject, value: ControlValue) -> None:
    """A written value with one byte changed gives a typed value, or a typed error."""
    key, written = write_control_record(value)
    position = data.draw(st.integers(0, len(written) - 1))
    mutated = written[:position] + data.draw(st.binary(max_size=2)) + written[position + 1 :]
    record = outcome(lambda: read_control_record(key, mutated))
    assert not isinstance(record, DecodeError) or record.rule == "control-value"


@pytest.mark.parametrize(("value", "key", "data", "rendered"), GOLDEN)
def test_kafkas_own_vectors(value: ControlValue, key: str, data: str, rendered: str) -> None:
    """Each value is written as Kafka writes it, read back, and rendered as its dump tool prints it."""
    written = bytes.fromhex(key), bytes.fromhex(data)
    assert write_control_record(value) == written
    assert read_control_record(*written).value == value
    assert control_json(value) == rendered


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\x02"])
def test_bad_keys_are_refused(key: bytes | None) -> None:
    """A key that is null, short or of a negative version is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError) as caught:
        read_control_record(key, b"")
    assert caught.value.rule == "control-key"


@pytest.mark.parametrize("type_id", [-1, 7, 42])
@pytest.mark.parametrize("value", [None, b"", b"abc"])
def test_unknown_types_are_values(type_id: int, value: bytes | None) -> None:
    """A type that is not known keeps its raw bytes."""
    key = b"\0\0" + type_id.to_bytes(2, "big", signed=True)
    record = read_control_record(key, value)
    assert not isinstance(record.type, ControlRecordType)
    assert (record.type, record.value, record.raw_key, record.raw_value) == (type_id, None, key, value)


def test_newer_and_longer_keys_are_read() -> None:
    """A key of a later version, and bytes after it, change nothing but what is kept of the key."""
    record = read_control_record(b"\0\x05\0\x04rest", bytes.fromhex("000000"))
    assert record.type is ControlRecordType.SNAPSHOT_FOOTER
    assert record.key_version == 5
    assert record.raw_key.endswith(b"rest")


def test_a_known_type_needs_a_value() -> None:
    """A null value of a known type is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError):
        read_control_record(control_key(ControlRecordType.SNAPSHOT_FOOTER), None)


def test_the_embedded_version_does_not_choose_the_layout() -> None:
    """A leader change that says version 7 is read by version 0, keeps the 7, and is rendered by version 1's fields."""
    record = read_control_record(b"\0\0\0\x02", bytes.fromhex("0007 00000001 02 00000001 00 01 00"))
    assert record.value == LeaderChangeMessage(1, (Voter(1),), (), 7)
    assert control_json(record.value) == (
        '{"version":7,"leaderId":1,"voters":[{"voterId":1,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}],"grantingVoters":[]}'
    )


def test_a_leader_change_of_version_1_is_misread_as_kafka_does() -> None:
    """Its directory ids are taken for tagged fields, which rarely succeeds; the schema itself knows both versions."""
    data = bytes.fromhex(
        "0001 00000001 03 00000001 0102030405060708090a0b0c0d0e0f10 00 00000002 101112131415161718191a1b1c1d1e1f 00"
        "02 00000001 0102030405060708090a0b0c0d0e0f10 00 00"
    )
    with pytest.raises(InvalidRecordError):
        read_control_record(b"\0\0\0\x02", data)
    leader_change = message_type("LeaderChangeMessage")
    message = leader_change.decode(data, version=1)
    assert [voter["voterDirectoryId"] for voter in message["voters"]] == [D1, D2]
    assert leader_change.write(message, version=1) == data


def test_directory_ids_are_not_written_in_a_leader_change() -> None:
    """The version 0 layout lacks them."""
    with pytest.raises(UnsupportedVersionError):
        write_control_record(LeaderChangeMessage(1, (Voter(1, D1),)))


def test_a_missing_tag_section_is_refused() -> None:
    """A value that ends before its tagged fields does not read."""
    with pytest.raises(InvalidRecordError):
        read_control_record(b"\0\0\0\x05", bytes.fromhex("00000001"))


@pytest.mark.parametrize("value", [b"\0", b"\xff\xff\0\0\0\x01", b"\0\0\0\0\0"])
def test_bad_end_markers_are_refused(value: bytes) -> None:
    """An end marker without a version, with a negative one, or cut, is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError):
        read_control_record(b"\0\0\0\x01", value)
