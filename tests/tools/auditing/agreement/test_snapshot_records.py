# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a real Kafka wrote have the state that its log makes, and each change of a record is told."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest

from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from raftlog.tools.auditing.agreement import snapshot_records as module
from raftlog.tools.auditing.agreement.metadata_image import MetadataImage, UnknownStateError
from raftlog.tools.auditing.agreement.snapshot_contents import StoredValue, read_contents
from raftlog.tools.auditing.agreement.snapshot_records import judge_snapshot_records
from raftlog.tools.auditing.evidence import FileEvidence
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.tools.auditing.contents.test_records_at_risk import raft_log

LOGS = sorted(path.parent for path in GOLDEN.rglob("__cluster_metadata-0") if any(path.glob("*.log")))
N3 = GOLDEN / "dynamic-quorum" / "data" / "n3"
LAST = "00000000000000000230-0000000004.checkpoint"
RECORDS = list(read_contents(raft_log(N3).snapshots[-1]))
NOT_OF_THE_STATE = {("PRODUCER_IDS_RECORD", "brokerId"), ("PRODUCER_IDS_RECORD", "brokerEpoch")}
"""Fields that Kafka's snapshots do not keep."""


def test_real_snapshots() -> None:
    """None of 51 differs, which were written by five quorums, two of them before and after an upgrade."""
    compared = []

    def contents(snapshot: FileEvidence) -> Iterator[StoredValue]:
        compared.append(snapshot)
        return read_contents(snapshot)

    assert [finding for path in LOGS for finding in judge_snapshot_records(raft_log(path), contents)] == []
    assert len(compared) >= 51


def judged(records: list[StoredValue]) -> list[Finding]:
    """Judge a real log whose last snapshot has such records."""
    return list(
        judge_snapshot_records(
            raft_log(N3), lambda file: records if file.task.path.endswith(LAST) else read_contents(file)
        )
    )


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_a_record_that_a_snapshot_lacks(number: int) -> None:
    """It is named by its type."""
    (finding,) = judged([*RECORDS[:number], *RECORDS[number + 1 :]])
    kind = read_metadata_record(RECORDS[number].value).type_name
    assert finding.rule == "snapshot-records"
    assert (finding.path, finding.offset, finding.epoch) == (raft_log(N3).snapshots[-1].task.path, 230, 4)
    assert finding.reason.startswith(f"it lacks the {kind}")


def other(value: Any) -> Any:
    """Another value of the same type, in the form that it has in a message."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case bytes():
            return value + b"x"
        case list():
            return [*value, *value] if value else None
        case _:
            return None


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_a_field_that_a_snapshot_has_otherwise(number: int) -> None:
    """Each field of each record counts; the first that differs is named, and no value is."""
    record = read_metadata_record(RECORDS[number].value)
    for name, value in record.message.items():
        changed = other(value)
        if changed is None or not isinstance(name, str) or (record.type_name, name) in NOT_OF_THE_STATE:
            continue
        message = {**record.message, name: changed}
        try:
            data = write_metadata_record(attrs.evolve(record, message=message))
        except ValueError:
            continue  # It does not fit into the field.
        (finding,) = judged([*RECORDS[:number], attrs.evolve(RECORDS[number], value=data), *RECORDS[number + 1 :]])
        expected = f"the {record.type_name}", f"it has a {record.type_name}", f"it lacks the {record.type_name}"
        assert finding.reason.startswith(expected)
        assert f"another {name} than" in finding.reason or "another" not in finding.reason


def test_secrets_are_not_told() -> None:
    """The reason of a credential or a config that differs has no value of it."""
    records = [attrs.evolve(each, value=_spoiled(each.value)) for each in RECORDS]
    (finding,) = judged(records)
    assert "sEcReT" not in finding.reason


def _spoiled(value: bytes | None) -> bytes | None:
    record = read_metadata_record(value)
    if record.type_name == "CONFIG_RECORD":
        return write_metadata_record(attrs.evolve(record, message={**record.message, "value": "sEcReT"}))
    return value


@pytest.mark.parametrize("name", ["n1", "n2", "n3"])
def test_a_log_with_a_gap_is_not_compared(tmp_path: Path, name: str) -> None:
    """From records on that are gone, nothing is known."""
    shutil.copytree(N3.parent / name, tmp_path / name)
    log = tmp_path / name / "__cluster_metadata-0"
    path = min(log.glob("*.log"))
    path.write_bytes(path.read_bytes()[:2000])
    evidence = raft_log(tmp_path / name)
    nothing: list[StoredValue] = []
    assert list(judge_snapshot_records(evidence, lambda _: nothing)) == []


def test_no_more_bytes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that has more bytes with its snapshots than the limit is not compared."""
    log = raft_log(N3)
    size = sum(file.task.size_bytes for file in (*log.segments, *log.snapshots))
    nothing: list[StoredValue] = []
    for limit, count in ((size - 1, 0), (size, 3), (size + 1, 3)):
        monkeypatch.setattr(module, "MOST_BYTES", limit)
        assert len(list(judge_snapshot_records(log, lambda _: nothing))) == count


# The effects of records that the golden logs do not have

Said = tuple[str, dict[str, Any]]
"""The type of a record, and its fields."""

TOPIC, OTHER = UUID(int=1), UUID(int=2)
TOPICS = [("TopicRecord", {"name": "a", "topicId": TOPIC}), ("TopicRecord", {"name": "b", "topicId": OTHER})]
REMOVED = ("RemoveTopicRecord", {"topicId": TOPIC})
REGISTERED = ("RegisterBrokerRecord", {"brokerId": 7, "brokerEpoch": 3, "fenced": True, "logDirs": [OTHER]})
ACL = ("AccessControlEntryRecord", {"id": TOPIC, "principal": "User:a"})
SCRAM = ("UserScramCredentialRecord", {"name": "a", "mechanism": 1, "iterations": 4096})
TOKEN = ("DelegationTokenRecord", {"owner": "a", "tokenId": "t", "renewers": ["c", "b"]})
QUOTA = {"entity": [{"entityType": "user", "entityName": None}], "key": "rate", "value": 1.0}


def partition(number: int = 0, topic_id: UUID = TOPIC, **fields: Any) -> Said:
    """A PartitionRecord."""
    usual = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 4, "partitionEpoch": 9}
    return "PartitionRecord", {**usual, "partitionId": number, "topicId": topic_id, **fields}


def change(**fields: Any) -> Said:
    """A PartitionChangeRecord."""
    return "PartitionChangeRecord", {"partitionId": 0, "topicId": TOPIC, **fields}


def image(*records: Said) -> MetadataImage:
    """The state after some records."""
    found = MetadataImage()
    for name, message in records:
        found.replay(read_metadata_record(write_metadata_record(metadata_record(name, message))))
    return found


def config(kind: int, name: str, value: str | None = "1") -> Said:
    """A ConfigRecord."""
    return "ConfigRecord", {"resourceType": kind, "resourceName": name, "name": "retention.ms", "value": value}


@pytest.mark.parametrize(
    ("log", "snapshot"),
    [
        ([partition(), change(leader=2)], [partition(leader=2, leaderEpoch=5, partitionEpoch=10)]),
        ([partition(), change(leader=-1)], [partition(leader=-1, leaderEpoch=5, partitionEpoch=10)]),
        ([partition(), change(leader=1)], [partition(leaderEpoch=5, partitionEpoch=10)]),
        ([partition(), change(isr=[1])], [partition(isr=[1], partitionEpoch=10)]),
        ([partition(), change(replicas=[3])], [partition(replicas=[3], partitionEpoch=10)]),
        ([partition(), change(removingReplicas=[1])], [partition(removingReplicas=[1], partitionEpoch=10)]),
        ([partition(), change(addingReplicas=[3])], [partition(addingReplicas=[3], partitionEpoch=10)]),
        ([partition(), change(leaderRecoveryState=1)], [partition(leaderRecoveryState=1, partitionEpoch=10)]),
        (
            [partition(directories=[TOPIC, OTHER]), change(directories=[OTHER, OTHER])],
            [partition(directories=[OTHER, OTHER], partitionEpoch=10)],
        ),
        ([partition(directories=[TOPIC, OTHER])], [partition(directories=[])]),
        (
            [partition(), change(eligibleLeaderReplicas=[2], lastKnownElr=[1])],
            [partition(eligibleLeaderReplicas=[2], lastKnownElr=[1], partitionEpoch=10)],
        ),
        ([partition(eligibleLeaderReplicas=None)], [partition(eligibleLeaderReplicas=[])]),
        (
            [*TOPICS, partition(lastKnownElr=[1]), ("ClearElrRecord", {"topicName": "a"})],
            [*TOPICS, partition(partitionEpoch=10)],
        ),
        (
            [*TOPICS, partition(eligibleLeaderReplicas=[1]), ("ClearElrRecord", {"topicName": "b"})],
            [*TOPICS, partition(eligibleLeaderReplicas=[1])],
        ),
        (
            [*TOPICS, partition(), partition(1, OTHER, lastKnownElr=[1]), ("ClearElrRecord", {"topicName": ""})],
            [*TOPICS, partition(), partition(1, OTHER, partitionEpoch=10)],
        ),
        (
            [*TOPICS, partition(), partition(1), config(2, "a"), config(2, "b"), config(4, "a"), REMOVED],
            [TOPICS[1], config(2, "b"), config(4, "a")],
        ),
        ([change(leader=2), REMOVED], []),
        ([config(2, "a"), config(2, "a", None)], []),
        ([config(2, "a"), config(2, "a", "2")], [config(2, "a", "2")]),
        ([REGISTERED, ("UnfenceBrokerRecord", {"id": 7})], [(REGISTERED[0], {**REGISTERED[1], "fenced": False})]),
        ([REGISTERED, ("UnfenceBrokerRecord", {"id": 7}), ("FenceBrokerRecord", {"id": 7})], [REGISTERED]),
        (
            [REGISTERED, ("BrokerRegistrationChangeRecord", {"brokerId": 7, "fenced": -1, "inControlledShutdown": 1})],
            [(REGISTERED[0], {**REGISTERED[1], "fenced": False, "inControlledShutdown": True})],
        ),
        (
            [REGISTERED, ("BrokerRegistrationChangeRecord", {"brokerId": 7, "logDirs": [OTHER, TOPIC]})],
            [(REGISTERED[0], {**REGISTERED[1], "logDirs": [TOPIC, OTHER]})],
        ),
        (
            [REGISTERED, ("BrokerRegistrationChangeRecord", {"brokerId": 7, "cordonedLogDirs": [OTHER]})],
            [(REGISTERED[0], {**REGISTERED[1], "cordonedLogDirs": [OTHER]})],
        ),
        ([("BrokerRegistrationChangeRecord", {"brokerId": 7}), ("FenceBrokerRecord", {"id": 7})], []),
        ([REGISTERED, ("UnregisterBrokerRecord", {"brokerId": 7})], []),
        ([("RegisterControllerRecord", {"controllerId": 7}), ("UnregisterControllerRecord", {"controllerId": 7})], []),
        ([ACL, ("RemoveAccessControlEntryRecord", {"id": TOPIC})], []),
        ([ACL, ("RemoveAccessControlEntryRecord", {"id": OTHER})], [ACL]),
        ([SCRAM, ("RemoveUserScramCredentialRecord", {"name": "a", "mechanism": 1})], []),
        ([SCRAM, ("RemoveUserScramCredentialRecord", {"name": "a", "mechanism": 2})], [SCRAM]),
        ([TOKEN], [(TOKEN[0], {**TOKEN[1], "renewers": ["b", "c"]})]),
        ([TOKEN, ("RemoveDelegationTokenRecord", {"tokenId": "t"})], []),
        (
            [("ClientQuotaRecord", {**QUOTA, "remove": False}), ("ClientQuotaRecord", {**QUOTA, "remove": True})],
            [],
        ),
        (
            [("FeatureLevelRecord", {"name": "f", "featureLevel": level}) for level in (1, 0)],
            [],
        ),
        (
            [("ProducerIdsRecord", {"brokerId": 1, "brokerEpoch": 3, "nextProducerId": 10})],
            [("ProducerIdsRecord", {"brokerId": -1, "nextProducerId": 10})],
        ),
        ([("NoOpRecord", {}), ("BeginTransactionRecord", {}), ("EndTransactionRecord", {})], []),
        ([("ZkMigrationStateRecord", {"zkMigrationState": 1})], []),
    ],
)
def test_the_effect_of_records(
    log: list[tuple[str, dict[str, Any]]], snapshot: list[tuple[str, dict[str, Any]]]
) -> None:
    """A log has the state of a snapshot that says the result."""
    assert list(image(*snapshot).differences(image(*log))) == []
    assert list(image(*log).differences(image(*snapshot))) == []


def test_records_of_unknown_effect() -> None:
    """What an aborted transaction leaves is not guessed."""
    with pytest.raises(UnknownStateError):
        image(("AbortTransactionRecord", {}))
