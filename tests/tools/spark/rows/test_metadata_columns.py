# SPDX-License-Identifier: Apache-2.0
"""The typed columns of metadata records: each shows a field of the record, and hides what the JSON hides."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.java_text import displayed
from raftlog.records.messages.metadata import MetadataRecord, write_metadata_record
from raftlog.records.messages.schema import UNKNOWN_TAGS, MessageType, message_type, message_types
from raftlog.tools.spark.rows.metadata_columns import METADATA_COLUMNS
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.records.schema_strategies import messages
from tests.tools.made_logs import batch, write_log
from tests.tools.spark import source_reads

KINDS: Final = list(message_types("metadata-records").values())
NAMES: Final = tuple(name for name, _ in METADATA_COLUMNS)
OTHERS: Final = {
    "FenceBrokerRecord": {"brokerId": "id", "brokerEpoch": "epoch"},
    "UnfenceBrokerRecord": {"brokerId": "id", "brokerEpoch": "epoch"},
    "TopicRecord": {"topicName": "name"},
    "ConfigRecord": {"configName": "name"},
    "FeatureLevelRecord": {"featureName": "name"},
    "PartitionRecord": {"partitionLeaderEpoch": "leaderEpoch"},
}
"""The columns that have another name than their field, by message."""
COMPUTED: Final = {"fenced", "inControlledShutdown", "resourceType", "configValue"}
"""The columns whose value differs from the field in some records, which examples show."""


def rows_of(kind: MessageType, version: int, *contents: Mapping[str, Any], **options: Any) -> source_reads.Rows:
    """Return the rows of a log with these records."""
    values = [write_metadata_record(MetadataRecord(kind, version, dict(each))) for each in contents]
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "__cluster_metadata-0", batch(7, values))
        return source_reads.rows(path.parent, view="metadata", **options)


def shown(value: Any) -> Any:
    """Return a field of a message as a column shows it."""
    if isinstance(value, str):
        return displayed(value)
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items() if isinstance(name, str) and name != UNKNOWN_TAGS}
    return uuid_to_text(value) if hasattr(value, "bytes_le") else value


@given(st.data())
def test_columns_are_the_fields_of_the_record(data: st.DataObject) -> None:
    """Of every type in every version: a column has the value of its field, and is null where there is none."""
    kind = data.draw(st.sampled_from(KINDS))
    version = data.draw(st.integers(kind.versions.lowest, kind.versions.highest))
    message = data.draw(messages(kind, version))
    [row] = rows_of(kind, version, message, redact="false")
    renamed = OTHERS.get(kind.name, {})
    fields = {each.name: each for each in kind.schema.struct.fields if version in each.versions}
    written = json.loads(row["json"])
    for column in set(NAMES) - COMPUTED:
        field = renamed.get(column, column)
        is_of_acl = kind.name == "AccessControlEntryRecord"
        is_topic = kind.name == "ConfigRecord" and column == "topicName" and message["resourceType"] == 2
        expected = message["resourceName"] if is_topic else None
        if field in fields and field in written and not is_of_acl:
            expected = None if (kind.name, column, message[field]) == _UNCHANGED_LEADER else shown(message[field])
        assert row[column] == expected, column


_UNCHANGED_LEADER: Final = ("PartitionChangeRecord", "leader", -2)


@pytest.mark.parametrize(
    ("field", "flags"),
    [("fenced", [None, False, None, True, None]), ("inControlledShutdown", [None, None, None, True, None])],
)
def test_changes_of_a_broker_set_flags_or_leave_them(field: str, flags: list[bool | None]) -> None:
    """A change to 1 sets the flag, one to -1 clears that of fencing, and others leave it, which is null."""
    kind = message_type("BrokerRegistrationChangeRecord")
    changes = [{"brokerId": 1, "brokerEpoch": 2, field: number} for number in (-2, -1, 0, 1, 2)]
    assert [row[field] for row in rows_of(kind, 3, *changes)] == flags
    registered = message_type("RegisterBrokerRecord")
    assert [row[field] for row in rows_of(registered, 4, {field: True}, {field: False})] == [True, False]


def test_fencing_is_a_flag() -> None:
    """A record that fences a broker and one that ends that have the flag that they lead to."""
    assert [row["fenced"] for row in rows_of(message_type("FenceBrokerRecord"), 0, {"id": 3, "epoch": 4})] == [True]
    assert [row["fenced"] for row in rows_of(message_type("UnfenceBrokerRecord"), 0, {"id": 3, "epoch": 4})] == [False]


def test_resources_of_configs_are_named() -> None:
    """The type is Kafka's word, an unknown one its number; only a topic's config has the topic's name."""
    configs = [
        {"resourceType": number, "resourceName": "r", "name": "n", "value": None} for number in (2, 4, 8, 16, 32, 5)
    ]
    found = rows_of(message_type("ConfigRecord"), 0, *configs)
    words = ["TOPIC", "BROKER", "BROKER_LOGGER", "CLIENT_METRICS", "GROUP", "UNKNOWN(5)"]
    assert [row["resourceType"] for row in found] == words
    assert [row["topicName"] for row in found] == ["r", None, None, None, None, None]
    assert all(row["configValue"] is None for row in found)


def test_secrets_are_hidden_in_columns_too() -> None:
    """A password's value is hidden unless the option redact is false; another config's value is shown."""
    kind = message_type("ConfigRecord")
    configs = [
        {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "hunter2"},
        {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "7"},
    ]
    assert [row["configValue"] for row in rows_of(kind, 0, *configs)] == ["[redacted]", "7"]
    assert "hunter2" not in str(rows_of(kind, 0, *configs))
    assert [row["configValue"] for row in rows_of(kind, 0, *configs, redact="false")] == ["hunter2", "7"]


def test_columns_may_be_read_without_the_others() -> None:
    """Naming typed columns alone, or none of them, gives the same values."""
    folder = GOLDEN / "dynamic-quorum/data/n3"
    whole = source_reads.rows(folder, view="metadata")
    for columns in (("topicId", "isr"), ("offset", "json")):
        found = source_reads.rows(folder, view="metadata", columns=",".join(columns))
        assert found == [{name: row[name] for name in columns} for row in whole]


def test_a_real_log_has_what_kafkas_tool_printed() -> None:
    """Topics, partitions, configs and brokers of a real Kafka's log are those of kafka-dump-log's output."""
    folder = GOLDEN / "dynamic-quorum"
    [name] = {path.name for path in (folder / "data/n3/__cluster_metadata-0").glob("*0.log")}
    printed = (folder / "expected" / f"n3.__cluster_metadata-0.{name}.metadata.txt").read_text("utf-8")
    records = [json.loads(each) for each in re.findall(r"payload: (\{.*\})$", printed, re.MULTILINE)]
    found = source_reads.rows(folder / "data/n3/__cluster_metadata-0" / name, view="metadata", redact="false")
    assert [row["type"] for row in found] == [each["type"] for each in records]
    seen = set()
    for row, record in zip(found, records, strict=True):
        fields = record["data"]
        if record["type"] == "PARTITION_RECORD":
            of_kafka = [fields[each] for each in ("topicId", "partitionId", "leader", "leaderEpoch", "isr", "replicas")]
            names = ("topicId", "partitionId", "leader", "partitionLeaderEpoch", "isr", "replicas")
            assert [row[each] for each in names] == of_kafka
        elif record["type"] == "TOPIC_RECORD":
            assert (row["topicName"], row["topicId"]) == (fields["name"], fields["topicId"])
        elif record["type"] == "CONFIG_RECORD":
            assert (row["configName"], row["configValue"]) == (fields["name"], fields["value"])
        elif record["type"] == "REGISTER_BROKER_RECORD":
            assert (row["brokerId"], row["rack"]) == (fields["brokerId"], fields["rack"])
            assert row["endPoints"] == fields["endPoints"]
            assert row["features"] == fields["features"]
        else:
            continue
        seen.add(record["type"])
    assert len(seen) == 4
