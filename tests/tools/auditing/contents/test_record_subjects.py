# SPDX-License-Identifier: Apache-2.0
"""What records are about: names and ids, never a value."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.record import Record
from raftlog.records.messages.metadata import (
    MetadataRecord,
    metadata_record,
    read_metadata_record,
    write_metadata_record,
)
from raftlog.records.messages.schema import message_types
from raftlog.tools.auditing.contents.record_subjects import kind_and_subject, subject_text, topic_of
from tests.records.schema_strategies import ALL_VERSIONS, messages

TYPES = message_types("metadata-records")
VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind == "metadata"]
TOPIC = UUID(int=7)
NAMES = {TOPIC: "orders"}
SECRET = "S3cret"

records = st.sampled_from(VERSIONS).flatmap(
    lambda chosen: st.builds(MetadataRecord, st.just(chosen[0]), st.just(chosen[1]), messages(*chosen))
)


def said_of(value: bytes | None, *, is_metadata: bool = True) -> tuple[str, str]:
    """The kind of a record, and its subject as text."""
    kind, topic, rest = kind_and_subject(Record(5, 0, None, value, ()), is_metadata=is_metadata)
    return kind, subject_text(topic, rest, NAMES)


@settings(deadline=None)
@given(records)
def test_any_record_has_a_kind(record: MetadataRecord) -> None:
    """A record of any type and version is named, and one that creates a topic gives its name."""
    value = write_metadata_record(record)
    assert said_of(value)[0] == record.type_name
    is_topic = record.type_name == "TOPIC_RECORD"
    assert topic_of(value) == ((record.message["topicId"], record.message["name"]) if is_topic else None)


@given(st.binary(max_size=20) | st.none())
def test_any_bytes_are_a_record(value: bytes | None) -> None:
    """What is no metadata record is a data record, and creates no topic unless it can be read as one."""
    kind, subject = said_of(value, is_metadata=False)
    assert (kind, subject) == ("data record", "")
    topic_of(value)
    assert said_of(value)[0]


def of_type(name: str, fields: dict[str, Any]) -> bytes:
    """A record of some type, whose other fields have their defaults."""
    return write_metadata_record(metadata_record(name, fields))


@pytest.mark.parametrize(
    ("name", "fields", "subject"),
    [
        ("TopicRecord", {"name": "orders", "topicId": TOPIC}, "orders"),
        ("RemoveTopicRecord", {"topicId": TOPIC}, "orders"),
        ("RemoveTopicRecord", {"topicId": UUID(int=8)}, "AAAAAAAAAAAAAAAAAAAACA"),
        ("PartitionRecord", {"topicId": TOPIC, "partitionId": 3}, "orders-3"),
        ("PartitionChangeRecord", {"topicId": UUID(int=8), "partitionId": 0}, "AAAAAAAAAAAAAAAAAAAACA-0"),
        (
            "ConfigRecord",
            {"resourceType": 2, "resourceName": "orders", "name": "a", "value": SECRET},
            "a of topic orders",
        ),
        (
            "ConfigRecord",
            {"resourceType": 4, "resourceName": "", "name": "a", "value": SECRET},
            "a of brokers by default",
        ),
        ("ConfigRecord", {"resourceType": 9, "resourceName": "x", "name": "a"}, "a of resource of type 9 x"),
        ("RegisterBrokerRecord", {"brokerId": 4}, "broker 4"),
        ("FenceBrokerRecord", {"id": 4}, "broker 4"),
        ("RegisterControllerRecord", {"controllerId": 4}, "controller 4"),
        ("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 29}, "metadata.version 29"),
        (
            "UserScramCredentialRecord",
            {"name": "ann", "salt": SECRET.encode(), "storedKey": SECRET.encode()},
            "user ann",
        ),
        ("DelegationTokenRecord", {"owner": "User:ann", "tokenId": SECRET}, "owner User:ann"),
        ("AccessControlEntryRecord", {"principal": "User:ann", "resourceName": "orders"}, "User:ann on orders"),
        (
            "ClientQuotaRecord",
            {"entity": [{"entityType": "user", "entityName": None}], "key": "producer_byte_rate"},
            "producer_byte_rate of user (default)",
        ),
        ("NoOpRecord", {}, ""),
    ],
)
def test_subjects(name: str, fields: dict[str, Any], subject: str) -> None:
    """Topics by name where that is known, and by id otherwise; configs by name, without the value."""
    assert said_of(of_type(name, fields))[1] == subject
    assert SECRET not in subject
    assert read_metadata_record(of_type(name, fields)).type.name == name
