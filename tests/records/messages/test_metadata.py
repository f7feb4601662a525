# SPDX-License-Identifier: Apache-2.0
"""The records of ``__cluster_metadata``: frames, errors in Kafka's words, levels, JSON."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, UnsupportedVersionError
from raftlog.records.batches.batch import whole_batches
from raftlog.records.messages.metadata import (
    MetadataRecord,
    metadata_json,
    metadata_record,
    read_metadata_record,
    write_metadata_record,
)
from raftlog.records.messages.releases import LEVELS
from raftlog.records.messages.schema import UNKNOWN_TAGS, message_types
from tests.golden_files import GOLDEN
from tests.records.outcome import outcome
from tests.records.schema_strategies import ALL_VERSIONS, messages

TYPES = message_types("metadata-records")
VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind == "metadata"]
TOPIC_ID = "0102030405060708090a0b0c0d0e0f10"

records = st.sampled_from(VERSIONS).flatmap(
    lambda chosen: st.builds(MetadataRecord, st.just(chosen[0]), st.just(chosen[1]), messages(*chosen))
)


@settings(deadline=None, max_examples=30)
@given(records)
def test_records_survive_the_wire(record: MetadataRecord) -> None:
    """A record reads as it was written, and renders as JSON of its type, version and fields."""
    written = write_metadata_record(record)
    assert read_metadata_record(written) == record
    assert read_metadata_record(memoryview(written)) == record
    rendered = record.to_object()
    assert json.loads(record.to_json()) == rendered
    assert (rendered["type"], rendered["version"]) == (record.type_name, record.version)


@settings(deadline=None, max_examples=40)
@given(st.data(), records, st.sampled_from(LEVELS))
def test_mutated_records_read_or_are_refused(data: st.DataObject, record: MetadataRecord, level: str) -> None:
    """A written record with a byte changed gives a record or a typed error, at every level."""
    written = write_metadata_record(record)
    position = data.draw(st.integers(0, len(written) - 1))
    mutated = written[:position] + data.draw(st.binary(max_size=3)) + written[position + 1 :]
    read = outcome(lambda: read_metadata_record(mutated, level=level))
    if isinstance(read, DecodeError):
        assert read.rule in ("message-frame", "message-field", "message-version")
    else:
        json.loads(read.to_json())


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=30).map(lambda data: b"\x01" + data))
def test_any_bytes_read_or_are_refused(data: bytes) -> None:
    """Any bytes give a record or a typed error."""
    record = outcome(lambda: read_metadata_record(data))
    if not isinstance(record, DecodeError):
        json.loads(record.to_json())


@pytest.mark.parametrize(
    ("data", "name", "rendered"),
    [
        ("01140000", "NoOpRecord", '{"type":"NO_OP_RECORD","version":0,"data":{}}'),
        (
            "010c0011 6d657461646174612e76657273696f6e 0019 00",
            "FeatureLevelRecord",
            '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":25}}',
        ),
        (
            f"010200 04666f6f {TOPIC_ID} 00",
            "TopicRecord",
            '{"type":"TOPIC_RECORD","version":0,"data":{"name":"foo","topicId":"AQIDBAUGBwgJCgsMDQ4PEA"}}',
        ),
    ],
)
def test_kafkas_own_vectors(data: str, name: str, rendered: str) -> None:
    """Records that Kafka wrote are read, rendered, and written as they were."""
    record = read_metadata_record(bytes.fromhex(data))
    assert record.type is TYPES[name]
    assert record.to_json() == rendered
    assert write_metadata_record(record) == bytes.fromhex(data)


OLD_FRAME = (
    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of KRaft "
    "in 2.8 to newer versions are not supported."
)
NEW_FRAME = "Could not deserialize metadata record due to unknown frame version {}(only frame version 1 is supported)"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "Error while reading frame version"),
        ("", "Error while reading frame version"),
        ("ffffffffffff", "Error while reading frame version"),
        ("01", "Error while reading type"),
        ("0180", "Error while reading type"),
        ("0114", "Error while reading version"),
        ("80800200000000", "Value for frame version was too large."),
        ("0180800200", "Value for type was too large."),
        ("0114808002", "Value for version was too large."),
        ("00140000", OLD_FRAME),
        ("02140000", NEW_FRAME.format(2)),
        ("ffffffff0f140000", NEW_FRAME.format(-1)),
        ("01630000", "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 99"),
        ("01ffffffff0f0000", "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id -1"),
        ("011400", "Failed to deserialize record with type 20"),
        ("01140001", "Failed to deserialize record with type 20"),
        (f"01020000{TOPIC_ID}00", "Failed to deserialize record with type 2"),
        ("0114000000", "Found 1 byte(s) of garbage after 20"),
    ],
)
def test_errors_are_kafkas_words(data: str | None, reason: str) -> None:
    """The reason of each error is what Kafka's dump tool prints for such a record."""
    with pytest.raises((InvalidRecordError, UnsupportedVersionError)) as caught:
        read_metadata_record(None if data is None else bytes.fromhex(data))
    assert caught.value.reason == reason


def test_a_version_too_new_is_read_by_the_highest() -> None:
    """A version above the highest is kept and shown, unless an item of a nested struct has to be read."""
    record = read_metadata_record(bytes.fromhex("01140900"))
    assert (record.version, record.message) == (9, {})
    assert record.to_json() == '{"type":"NO_OP_RECORD","version":9,"data":{}}'
    broker = bytearray(write_metadata_record(metadata_record("RegisterBrokerRecord", {"endPoints": [{}]})))
    broker[2] = 9
    with pytest.raises(InvalidRecordError) as caught:
        read_metadata_record(broker)
    assert caught.value.reason == "Failed to deserialize record with type 0"
    with pytest.raises(UnsupportedVersionError):
        write_metadata_record(record)


def test_older_levels_know_less() -> None:
    """An older release keeps a newer tagged field as unknown, and does not know newer types or versions."""
    change = write_metadata_record(metadata_record("BrokerRegistrationChangeRecord", {"cordonedLogDirs": []}))
    assert '"cordonedLogDirs":[]' in read_metadata_record(change, level="4.3").to_json()
    old = read_metadata_record(change, level="4.1")
    assert old.to_json() == (
        '{"type":"BROKER_REGISTRATION_CHANGE_RECORD","version":3,"data":{"brokerId":0,"brokerEpoch":0}}'
    )
    assert old.message[UNKNOWN_TAGS] == {3: b"\x01"}
    broker = write_metadata_record(metadata_record("RegisterBrokerRecord", {"endPoints": [{}]}))
    assert read_metadata_record(broker, level="4.3").version == 4
    with pytest.raises(InvalidRecordError):
        read_metadata_record(broker, level="4.1")
    clear = write_metadata_record(metadata_record("ClearElrRecord", {}))
    assert read_metadata_record(clear, level="4.1").type_name == "CLEAR_ELR_RECORD"
    with pytest.raises(UnsupportedVersionError, match="Unknown metadata id 28"):
        read_metadata_record(clear, level="3.9")


def test_records_are_made_by_name() -> None:
    """A record is made in the highest version or the one asked for; another name is a LookupError."""
    assert metadata_record("PartitionRecord", {}).version == 2
    assert metadata_record("PartitionRecord", {}, version=0).version == 0
    with pytest.raises(LookupError):
        metadata_record("VoteRequest", {})


def test_names_and_keys_are_those_of_kafka() -> None:
    """Type names are in capitals with underscores, and each api key is there once."""
    names = {kind.api_key: MetadataRecord(kind, 0, {}).type_name for kind in TYPES.values()}
    assert len(names) == len(TYPES)
    assert (names[20], names[21], names[18]) == (
        "NO_OP_RECORD",
        "ZK_MIGRATION_STATE_RECORD",
        "ACCESS_CONTROL_ENTRY_RECORD",
    )


def test_a_log_of_a_real_quorum() -> None:
    """Each record of a metadata log renders as Kafka's dump tool printed it, and is written as it was."""
    name = "__cluster_metadata-0/00000000000000000000.log"
    data = (GOLDEN / "dynamic-quorum/data/n1" / name).read_bytes()
    expected = GOLDEN / "dynamic-quorum/expected" / f"n1.{name.replace('/', '.')}.metadata.txt"
    printed = re.findall(r"\| offset: (\d+) .* payload: (.*)", expected.read_text("utf-8"))
    assert printed
    for batch in whole_batches(data):
        for record in () if batch.is_control else batch.records():
            assert record.value is not None
            read = read_metadata_record(record.value)
            assert (str(record.offset), read.to_json()) == printed.pop(0)
            assert write_metadata_record(read) == record.value
    assert not printed


@settings(deadline=None, max_examples=75)
@given(st.data(), records, st.sampled_from(LEVELS))
def test_the_quick_way_to_json_is_the_same(data: st.DataObject, record: MetadataRecord, level: str) -> None:
    """Of a record as written, mutated, cut or too long, the quick way gives the same text, or leaves it alone."""
    written = write_metadata_record(record)
    position = data.draw(st.integers(0, len(written)))
    mutated = written[:position] + data.draw(st.binary(max_size=2)) + written[position + data.draw(st.integers(0, 1)) :]
    quick = metadata_json(mutated, level)
    text = None if quick is None else quick.message_json(mutated)
    if quick is None or text is None:
        return
    read = read_metadata_record(mutated, level=level)
    assert quick.head + text + "}" == read.to_json()
    assert (quick.type_name, quick.version) == (read.type_name, read.version)


def test_a_real_log_takes_the_quick_way() -> None:
    """Every data record of a real log is rendered quickly, and as by way of a dict."""
    data = (GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0/00000000000000000000.log").read_bytes()
    for batch in whole_batches(data):
        for record in () if batch.is_control else batch.records():
            assert record.value is not None
            quick = metadata_json(record.value)
            assert quick is not None
            text = quick.message_json(record.value)
            assert f"{quick.head}{text}}}" == read_metadata_record(record.value).to_json()


@pytest.mark.parametrize("frame", [b"", b"\1", b"\1\2", b"\0\2\0", b"\1\x82\0", b"\1\2\x80", b"\1\x63\0", b"\1\2\1"])
def test_other_frames_have_no_quick_way(frame: bytes) -> None:
    """Cut frames, frames of other versions, long numbers, unknown types and versions: None."""
    assert metadata_json(frame) is None
