# SPDX-License-Identifier: Apache-2.0
"""The typed columns of the coordinators' records: offsets that groups committed, groups, and transactions."""

import datetime
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError
from raftlog.records.messages.coordinator import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    CoordinatorRecord,
    write_coordinator_record,
)
from raftlog.records.messages.java_text import displayed
from raftlog.records.messages.schema import Message, message_type, message_types
from raftlog.tools.payloads.transaction_text import TRANSACTION_STATES
from raftlog.tools.spark.rows.coordinator_columns import CONSUMER_OFFSETS_COLUMNS, TRANSACTION_STATE_COLUMNS
from raftlog.uuid_text import uuid_from_text
from tests.golden_files import GOLDEN
from tests.records.schema_strategies import messages
from tests.strategies import legacy_message
from tests.tools.made_logs import TIMESTAMP, batch, control_batch, write_log
from tests.tools.spark import source_reads

VIEWS: Final = {CONSUMER_OFFSETS: "consumer_offsets", TRANSACTION_STATE: "transaction_state"}
KINDS: Final = message_types("coordinator-records")
KEYS: Final = [kind for kind in KINDS.values() if kind.schema.topic in VIEWS and kind.name.endswith("Key")]
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MOST_MS: Final = (1 << 63) // 1000 - 1
COLUMNS: Final = {
    CONSUMER_OFFSETS: [name for name, _ in CONSUMER_OFFSETS_COLUMNS],
    TRANSACTION_STATE: [name for name, _ in TRANSACTION_STATE_COLUMNS],
}
GROUP: Final = "0002 0001 67"


@st.composite
def records(draw: st.DrawFn) -> CoordinatorRecord:
    """Draw a record of one of the topics, with a state that Kafka knows if it is of a transaction."""
    key = draw(st.sampled_from(KEYS))
    value = KINDS[key.name.removesuffix("Key") + "Value"]
    version = draw(st.none() | st.integers(value.versions.lowest, value.versions.highest))
    message: Message | None = None
    if version is not None:
        message = dict(draw(messages(value, version)))
        if "transactionStatus" in message:
            message["transactionStatus"] = draw(st.integers(0, len(TRANSACTION_STATES) - 1))
    return CoordinatorRecord(key.api_key or 0, key, draw(messages(key, 0)), value, version, message)


def rows_of(record: CoordinatorRecord, **options: Any) -> source_reads.Rows:
    """Return the rows of a log with one record."""
    key, value = write_coordinator_record(record)
    topic = record.key_type.schema.topic or ""
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / f"{topic}-3", batch(5, [value], key=key))
        return source_reads.rows(path.parent, view=VIEWS[topic], **options)


def without_times(topic: str) -> str:
    """Return the columns of a view whose values Python can hold, for the option ``columns``."""
    timed = {name for name in COLUMNS[topic] if name.endswith("Timestamp")}
    return ",".join(["offset", "type", "version", "isTombstone", "json", *sorted(set(COLUMNS[topic]) - timed)])


def is_shown(value: Any, field: Any) -> bool:
    """Whether a column shows a field of a message."""
    return bool(value == (displayed(field) if isinstance(field, str) else field))


SAME: Final = {
    "OffsetCommitValue": {
        "committedOffset": "offset",
        "committedLeaderEpoch": "leaderEpoch",
        "committedMetadata": "metadata",
    },
    "LegacyOffsetCommitValue": {"committedOffset": "offset", "committedMetadata": "metadata"},
    "GroupMetadataValue": {
        "protocolType": "protocolType",
        "protocol": "protocol",
        "generation": "generation",
        "groupLeader": "leader",
    },
    "TransactionLogValue": {
        "producerId": "producerId",
        "producerEpoch": "producerEpoch",
        "transactionTimeoutMs": "transactionTimeoutMs",
    },
    "ConsumerGroupMetadataValue": {"epoch": "epoch"},
    "ShareGroupMetadataValue": {"epoch": "epoch"},
    "StreamsGroupMetadataValue": {"epoch": "epoch"},
    "StreamsGroupTopologyValue": {"epoch": "epoch"},
    "ConsumerGroupTargetAssignmentMetadataValue": {"epoch": "assignmentEpoch"},
    "ShareGroupTargetAssignmentMetadataValue": {"epoch": "assignmentEpoch"},
    "StreamsGroupTargetAssignmentMetadataValue": {"epoch": "assignmentEpoch"},
    "ConsumerGroupCurrentMemberAssignmentValue": {"epoch": "memberEpoch"},
    "ShareGroupCurrentMemberAssignmentValue": {"epoch": "memberEpoch"},
    "StreamsGroupCurrentMemberAssignmentValue": {"epoch": "memberEpoch"},
}
"""The columns that show a field of the value as it is; all other numbers and texts of a value are in ``json`` alone."""
KEY_FIELDS: Final = {
    "group": "groupId",
    "groupId": "groupId",
    "memberId": "memberId",
    "topic": "committedTopic",
    "partition": "committedPartition",
    "transactionalId": "transactionalId",
}
"""The column that shows a field of a key."""
TAGGED: Final = {"committedTopicId", "previousProducerId", "nextProducerId", "nextProducerEpoch"}
COMPUTED: Final = TAGGED | {"clientTransactionVersion", "members", "state", "transactionPartitions"}
"""The columns whose value is not simply that of a field; examples show them."""


@given(records())
def test_columns_are_the_fields_of_key_and_value(record: CoordinatorRecord) -> None:
    """Of every type in every version, and of tombstones: a column shows its field, and is null where there is none."""
    topic = record.key_type.schema.topic or ""
    columns = without_times(topic)
    [row] = rows_of(record, columns=columns)
    assert (row["offset"], row["version"], row["isTombstone"]) == (5, record.version, record.value is None)
    assert (row["json"] is None) == (record.value is None)
    expected: dict[str, Any] = {KEY_FIELDS[name]: field for name, field in record.key.items() if name in KEY_FIELDS}
    value = record.value
    if value is not None:
        written = json.loads(row["json"])
        same = SAME.get(record.value_type.name, {})
        expected |= {column: value[field] for column, field in same.items() if field in written}
    for column in set(COLUMNS[topic]) & set(row) - COMPUTED:
        assert is_shown(row[column], expected.get(column)), column


def test_every_epoch_is_listed() -> None:
    """The oracle above has each value with a field that is an epoch of a group, an assignment or a member."""
    epochs = {"epoch", "assignmentEpoch", "memberEpoch"}
    of_groups = [
        kind
        for kind in KINDS.values()
        if kind.name.endswith("Value")
        and KINDS[kind.name.removesuffix("Value") + "Key"].schema.topic == CONSUMER_OFFSETS
    ]
    with_epoch = {kind.name for kind in of_groups if epochs & {each.name for each in kind.schema.struct.fields}}
    assert with_epoch == {name for name, same in SAME.items() if "epoch" in same}


def offset_commit(version: int, **fields: Any) -> CoordinatorRecord:
    """Return a commit of offset 5 of orders-2 by group g."""
    key = {"group": "g", "topic": "orders", "partition": 2}
    kind = message_type("OffsetCommitValue")
    return CoordinatorRecord(1, message_type("OffsetCommitKey"), key, kind, version, {"offset": 5, **fields})


def time_of(milliseconds: int) -> datetime.datetime:
    """Return a time from its milliseconds."""
    return EPOCH + datetime.timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_times_of_commits(version: int) -> None:
    """A commit has its time; that of expiry is in version 1 alone, and -1 there is none."""
    expiry = {"expireTimestamp": TIMESTAMP + 1} if version == 1 else {}
    [row] = rows_of(offset_commit(version, metadata="m", commitTimestamp=TIMESTAMP, **expiry))
    assert row["commitTimestamp"] == time_of(TIMESTAMP)
    assert row["expireTimestamp"] == (time_of(TIMESTAMP + 1) if version == 1 else None)
    [row] = rows_of(offset_commit(1, commitTimestamp=-1, expireTimestamp=-1))
    assert (row["commitTimestamp"], row["expireTimestamp"]) == (None, None)


@pytest.mark.parametrize(("milliseconds", "is_null"), [(-2, False), (-1, True), (0, False)])
def test_times_around_none(milliseconds: int, *, is_null: bool) -> None:
    """Only -1 means that there is no time."""
    [row] = rows_of(offset_commit(3, commitTimestamp=milliseconds))
    assert row["commitTimestamp"] == (None if is_null else time_of(milliseconds))


def test_times_beyond_64_bits_are_null() -> None:
    """A time whose microseconds do not fit is null, and the one before it is not."""
    for milliseconds in (MOST_MS + 1, -MOST_MS - 1):
        [row] = rows_of(offset_commit(3, commitTimestamp=milliseconds), columns="commitTimestamp")
        assert row["commitTimestamp"] is None


def test_the_topic_id_of_a_commit() -> None:
    """From version 4 on a commit may name the id of its topic; without one the column is null."""
    topic_id = "NXQbvU1bTgKz8QHlh0TGwA"
    [row] = rows_of(offset_commit(4, topicId=uuid_from_text(topic_id)))
    assert row["committedTopicId"] == topic_id
    assert rows_of(offset_commit(4))[0]["committedTopicId"] is None


def classic_group(protocol_type: str) -> CoordinatorRecord:
    """Return a classic group with a member that is assigned two partitions."""
    assigned = {"assignedPartitions": [{"topic": "orders", "partitions": [1, 2]}]}
    member = {
        "memberId": "m-1",
        "groupInstanceId": "i",
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 7,
        "sessionTimeout": 8,
        "assignment": b"\0\x03" + message_type("ConsumerProtocolAssignment").write(assigned, version=3),
    }
    fields = {"protocolType": protocol_type, "generation": 4, "currentStateTimestamp": TIMESTAMP, "members": [member]}
    kind = message_type("GroupMetadataValue")
    return CoordinatorRecord(2, message_type("GroupMetadataKey"), {"group": "g"}, kind, 3, fields)


def test_members_of_a_classic_group() -> None:
    """They have their assigned partitions, unless the protocol is not the consumers'; a tombstone has no members."""
    [row] = rows_of(classic_group("consumer"))
    assert row["currentStateTimestamp"] == time_of(TIMESTAMP)
    assert row["members"] == [
        {
            "memberId": "m-1",
            "groupInstanceId": "i",
            "clientId": "c",
            "clientHost": "/h",
            "rebalanceTimeout": 7,
            "sessionTimeout": 8,
            "assignedPartitions": [{"topic": "orders", "partitions": [1, 2]}],
        }
    ]
    [row] = rows_of(classic_group("connect"))
    assert row["members"][0]["assignedPartitions"] is None
    kind = message_type("GroupMetadataValue")
    gone = CoordinatorRecord(2, message_type("GroupMetadataKey"), {"group": "g"}, kind, None, None)
    [row] = rows_of(gone)
    assert (row["groupId"], row["isTombstone"], row["members"]) == ("g", True, None)


def transaction(version: int, **fields: Any) -> CoordinatorRecord:
    """Return the state of transactional id t."""
    kind = message_type("TransactionLogValue")
    whole = {"transactionStatus": 1, "transactionPartitions": None, **fields}
    return CoordinatorRecord(0, message_type("TransactionLogKey"), {"transactionalId": "t"}, kind, version, whole)


@pytest.mark.parametrize(("number", "state"), [*enumerate(TRANSACTION_STATES)])
def test_states_of_transactions(number: int, state: str) -> None:
    """Each state has Kafka's name."""
    assert [row["state"] for row in rows_of(transaction(0, transactionStatus=number))] == [state]


@pytest.mark.parametrize("number", [-1, len(TRANSACTION_STATES)])
def test_a_state_that_is_none_is_damage(number: int) -> None:
    """The numbers before the first state and after the last one follow the mode."""
    with pytest.raises(CorruptBatchError, match=f"unknown transaction state {number}"):
        rows_of(transaction(0, transactionStatus=number))
    [row] = rows_of(transaction(0, transactionStatus=number), mode="PERMISSIVE")
    assert (row["_corrupt"]["offset"], row["_corrupt"]["rule"]) == (5, "message-field")
    assert rows_of(transaction(0, transactionStatus=number), mode="DROPMALFORMED") == []


def test_what_newer_transactions_have() -> None:
    """Version 1 has producer ids around an overflow of the epoch, and the client's version; absent ones are null."""
    newer = {"previousProducerId": 3, "nextProducerId": 4, "nextProducerEpoch": 0, "clientTransactionVersion": 2}
    [row] = rows_of(transaction(1, **newer))
    assert {name: row[name] for name in newer} == newer
    [row] = rows_of(transaction(0))
    assert {row[name] for name in newer} == {None}


def test_partitions_and_times_of_transactions() -> None:
    """Partitions are by topic, null where there are none; a transaction that has not begun has no time."""
    partitions = [{"topic": "orders", "partitionIds": [0, 2]}]
    [row] = rows_of(
        transaction(
            0,
            transactionPartitions=partitions,
            transactionStartTimestampMs=TIMESTAMP,
            transactionLastUpdateTimestampMs=TIMESTAMP + 1,
        )
    )
    assert row["transactionPartitions"] == partitions
    assert row["transactionStartTimestamp"] == time_of(TIMESTAMP)
    assert row["transactionLastUpdateTimestamp"] == time_of(TIMESTAMP + 1)
    [row] = rows_of(transaction(0, transactionStartTimestampMs=-1))
    assert (row["transactionStartTimestamp"], row["transactionPartitions"]) == (None, None)


def write_records(folder: Path, topic: str, *records: tuple[bytes | None, bytes | None], **options: Any) -> Path:
    """Write a log with a batch per record."""
    parts = [batch(offset, [value], key=key, **options) for offset, (key, value) in enumerate(records)]
    return write_log(folder / f"{topic}-0", *parts).parent


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "has no key"),
        (b"\0", None, "Could not read version from key's buffer"),
        (bytes.fromhex(GROUP), b"\0\x09", "Found an unknown record version 9"),
        (bytes.fromhex(GROUP), b"\0\x03\0", "Could not read record with version 3 from value's buffer"),
    ],
)
def test_what_cannot_be_decoded_follows_the_mode(
    tmp_path: Path, key: bytes | None, value: bytes | None, reason: str
) -> None:
    """It is an error, a row of damage with its offset, or left out; the records around it are read."""
    good = (bytes.fromhex(GROUP), None)
    folder = write_records(tmp_path, CONSUMER_OFFSETS, good, (key, value), good)
    with pytest.raises(CorruptBatchError, match=reason):
        source_reads.rows(folder, view="consumer_offsets")
    found = source_reads.rows(folder, view="consumer_offsets", mode="PERMISSIVE")
    assert [row["_corrupt"]["offset"] for row in found if row["_corrupt"]] == [1]
    assert sorted(row["offset"] for row in found if not row["_corrupt"]) == [0, 2]
    dropped = source_reads.rows(folder, view="consumer_offsets", mode="DROPMALFORMED")
    assert [row["offset"] for row in dropped] == [0, 2]


def test_a_type_of_a_later_release_is_not_damage(tmp_path: Path) -> None:
    """Kafka skips it; here it is a row without fields."""
    folder = write_records(tmp_path, CONSUMER_OFFSETS, (b"\0\x63later", b"v"))
    [row] = source_reads.rows(folder, view="consumer_offsets")
    assert (row["type"], row["isTombstone"], row["groupId"], row["json"]) == ("UNKNOWN(99)", False, None, None)


def test_other_logs_are_left_out(tmp_path: Path) -> None:
    """Each view reads its topic alone, and markers are no rows; a segment that is named is read whatever its topic."""
    write_log(tmp_path / "orders-0", batch(0))
    group = batch(0, [None], key=bytes.fromhex(GROUP))
    write_log(tmp_path / "__consumer_offsets-1", group, control_batch(1, b"\0" * 4, b"\0" * 6))
    write_log(tmp_path / "__transaction_state-7", batch(0, [None], key=b"\0\0\0\x01t"))
    found = source_reads.rows(tmp_path, view="consumer_offsets")
    assert [(row["topic"], row["partition"], row["groupId"]) for row in found] == [(CONSUMER_OFFSETS, 1, "g")]
    found = source_reads.rows(tmp_path, view="transaction_state")
    assert [(row["topic"], row["partition"], row["transactionalId"]) for row in found] == [(TRANSACTION_STATE, 7, "t")]
    copied = write_log(tmp_path / "saved", group)
    assert [row["groupId"] for row in source_reads.rows(copied, view="consumer_offsets")] == ["g"]


def test_messages_of_old_releases_are_read(tmp_path: Path) -> None:
    """Compaction may keep messages of magic 0 and 1 for ever."""
    key, value = write_coordinator_record(offset_commit(1, metadata="", commitTimestamp=TIMESTAMP))
    for magic in (0, 1):
        path = write_log(tmp_path / f"{CONSUMER_OFFSETS}-{magic}", legacy_message(magic, 4, key, value))
        [row] = source_reads.rows(path.parent, view="consumer_offsets")
        assert (row["offset"], row["committedOffset"], row["leaderEpoch"], row["isTransactional"]) == (4, 5, -1, False)
    path = write_log(tmp_path / f"{CONSUMER_OFFSETS}-5", legacy_message(1, 4, None, value))
    with pytest.raises(CorruptBatchError, match="has no key"):
        source_reads.rows(path.parent, view="consumer_offsets")


def test_commits_of_aborted_transactions(tmp_path: Path) -> None:
    """They count for nothing: read_committed leaves them out, and otherwise a flag and the producer are shown."""
    key, value = write_coordinator_record(offset_commit(3))
    of_producer: dict[str, Any] = {"producer_id": 8, "producer_epoch": 0, "is_transactional": True}
    aborted = batch(0, [value], key=key, base_sequence=0, **of_producer)
    marker = batch(1, [b"\0\0\0\0\0\0"], key=b"\0\0\0\0", is_control=True, **of_producer)
    path = write_log(tmp_path / f"{CONSUMER_OFFSETS}-0", aborted, marker, batch(2, [value], key=key))
    found = source_reads.rows(path.parent, view="consumer_offsets")
    assert [(row["offset"], row["isTransactional"], row["producerId"]) for row in found] == [
        (0, True, 8),
        (2, False, -1),
    ]
    committed = source_reads.rows(path.parent, view="consumer_offsets", kafka_isolation_level="read_committed")
    assert [row["offset"] for row in committed] == [2]


@pytest.mark.parametrize(
    ("folder", "topic", "decoder", "least"),
    [
        ("groups", CONSUMER_OFFSETS, "offsets", 40),
        ("data-topics", CONSUMER_OFFSETS, "offsets", 10),
        ("data-topics", TRANSACTION_STATE, "transaction", 16),
    ],
)
def test_real_logs_have_what_kafkas_tool_printed(folder: str, topic: str, decoder: str, least: int) -> None:
    """Keys and values of a real Kafka's coordinators are those of kafka-dump-log's output, in JSON and in columns."""
    expected = GOLDEN / folder / "expected" / f"n1.{topic}-0.00000000000000000000.log.{decoder}.txt"
    printed = re.findall(
        r"^\| offset: (\d+) .* key: (\{.*\}) payload: (.*)$", expected.read_text("utf-8"), re.MULTILINE
    )
    found = source_reads.rows(GOLDEN / folder / "data/n1", view=VIEWS[topic])
    assert len(found) == len(printed) >= least
    for row, (offset, key_text, value_text) in zip(found, printed, strict=True):
        key = json.loads(key_text)["data"]
        assert (row["offset"], json.loads(row["keyJson"])) == (int(offset), key)
        assert row["isTombstone"] == (value_text == "<DELETE>")
        value = {} if row["isTombstone"] else json.loads(value_text)["data"]
        assert json.loads(row["json"] or "{}") == value
        if topic == TRANSACTION_STATE:
            assert row["transactionalId"] == key["transactionalId"]
            assert row["state"] == TRANSACTION_STATES[value["transactionStatus"]]
            assert (row["producerId"], row["producerEpoch"]) == (value["producerId"], value["producerEpoch"])
        elif row["type"] == "OFFSET_COMMIT":
            committed = (row["groupId"], row["committedTopic"], row["committedPartition"], row["committedOffset"])
            assert committed == (key["group"], key["topic"], key["partition"], value.get("offset"))
            time = value.get("commitTimestamp")
            assert row["commitTimestamp"] == (None if time is None else time_of(time))
