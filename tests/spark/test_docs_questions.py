# SPDX-License-Identifier: Apache-2.0
"""The six questions of the data engineer's page: their code, run on files that a real Kafka wrote."""

import datetime
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import RecordView
from raftlog.records.messages.control import VotersRecord, read_control_record
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, CoordinatorRecord, read_coordinator_record
from raftlog.records.messages.schema import NEWEST
from raftlog.tools.payloads.message_payloads import MetadataDecoder
from tests.checkout import ROOT
from tests.golden_files import GOLDEN

pytestmark = pytest.mark.spark

PAGE: Final = (ROOT / "docs/spark.md").read_text("utf-8")
README: Final = (ROOT / "README.md").read_text("utf-8")
BROKER: Final = "/var/lib/kafka"
CONTROLLER: Final = "/var/lib/controller"
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND: Final = datetime.timedelta(milliseconds=1)

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copy a broker's log directory, with two transactions that never ended, and a controller's."""
    folder = tmp_path_factory.mktemp("logs")
    topics = folder / "kafka"
    for name in ("c-zstd-0", "java-0", "txn-0", "txn-1"):
        shutil.copytree(GOLDEN / "data-topics/data/n1" / name, topics / name)
    for name in ("orders-0", "orders-1", "tx.orders-0"):
        shutil.copytree(GOLDEN / "mirror/data/n1" / name, topics / name)
    for name in ("txn-0", "txn-1"):
        logs = sorted((topics / name).glob("*.log"))
        log, last_marker = [(each, batch) for each in logs for batch in batches_of(each) if batch.is_control][-1]
        log.write_bytes(log.read_bytes()[: last_marker.position])
    shutil.copytree(GOLDEN / "groups/data/n1/__consumer_offsets-0", topics / "__consumer_offsets-0")
    shutil.copytree(GOLDEN / "dynamic-quorum/data/n3", folder / "controller")
    return {BROKER: topics, CONTROLLER: folder / "controller"}


@pytest.fixture(scope="module")
def forgetful(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copy a controller's log directory whose log starts after the first voter sets, which snapshots cover."""
    folder = tmp_path_factory.mktemp("forgetful") / "controller"
    shutil.copytree(places[CONTROLLER], folder)
    logs = sorted((folder / "__cluster_metadata-0").glob("*.log"))
    assert len(logs) > 1
    for log in logs[:-1]:
        log.unlink()
    return places | {CONTROLLER: folder}


def code_of(question: int, language: str) -> str:
    """Return the code of a question."""
    [section] = re.findall(rf"^### {question}\. .*?(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    [found] = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(found)


def placed(code: str, places: dict[str, Path]) -> str:
    """Let code read the copies."""
    for name, path in places.items():
        code = code.replace(name, str(path))
    return code


def by_data_frame(spark: SparkSession, question: int, places: dict[str, Path]) -> DataFrame:
    """Run the Python of a question."""
    [imports] = re.findall(r"^from pyspark\.sql import Window\n.*\n", PAGE, re.MULTILINE)
    known: dict[str, Any] = {"spark": spark}
    exec(compile(imports + placed(code_of(question, "python"), places), "docs/spark.md", "exec"), known)
    answer = known["answer"]
    assert isinstance(answer, DataFrame)
    return answer


def by_sql(spark: SparkSession, question: int, places: dict[str, Path]) -> DataFrame:
    """Run the statements of a question; the last one is the answer."""
    *before, last = [each for each in placed(code_of(question, "sql"), places).split(";") if each.strip()]
    for statement in before:
        spark.sql(statement)
    return spark.sql(last)


def answers(spark: SparkSession, question: int, places: dict[str, Path]) -> Rows:
    """Return the answer to a question, which both ways give alike; timestamps are in ms."""
    frame, table = (ask(spark, question, places) for ask in (by_data_frame, by_sql))
    assert frame.columns == table.columns
    rows, rows_of_sql = (
        [tuple(map(in_ms, row.values())) for row in each.toArrow().to_pylist()] for each in (frame, table)
    )
    assert rows == rows_of_sql
    return rows


def in_ms(value: Any) -> Any:
    """Return milliseconds for a time, and all else as it is."""
    return (value - EPOCH) // MILLISECOND if isinstance(value, datetime.datetime) else value


def batches_of(path: Path) -> Iterator[RecordBatch]:
    """Yield the batches of a file."""
    for piece in split(BufferSource(path.read_bytes())):
        assert isinstance(piece, RecordBatch)
        yield piece


def logs_in(folder: Path, pattern: str = "*.log") -> Iterator[tuple[str, int, Path]]:
    """Yield topic, partition and path of the files below a log directory."""
    for path in sorted(folder.glob(f"*/{pattern}")):
        topic, _, partition = path.parent.name.rpartition("-")
        yield topic, int(partition), path


def test_the_example_of_the_readme_runs(
    spark: SparkSession, places: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's Spark code runs unchanged in an existing session, and leaves that running."""
    [example] = re.findall(r"^```python\n(from raftlog.spark.*?)^```", README, re.MULTILINE | re.DOTALL)
    exec(compile(placed(example, places), "README.md", "exec"), {})
    assert re.search(r"\|\s*java\|\s*0\|\s*1500\|", capsys.readouterr().out)
    assert spark.range(1).count() == 1


@pytest.mark.parametrize("heading", ["Installing", "Reading", "Streams"])
def test_the_other_examples_run(
    spark: SparkSession,
    places: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    heading: str,
) -> None:
    """The page's other code runs unchanged."""
    [example] = re.findall(rf"^## {heading}\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    folders = {"/mnt/kafka-1": places[BROKER], "/mnt/kafka-2": places[BROKER], "/srv": tmp_path}
    exec(compile(placed(example, places | folders), "docs/spark.md", "exec"), {"spark": spark})
    if heading == "Streams":
        assert spark.read.parquet(str(tmp_path / "orders")).count() == 320
    if heading == "Installing":
        assert re.search(r"\|\s*java\|\s*0\|\s*1500\|", capsys.readouterr().out)


def test_records_by_key(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 1 gives the records of a key, in the order of partitions and offsets."""
    expected: Rows = [
        (partition, record.offset, record.timestamp, None if record.value is None else record.value.decode())
        for topic, partition, path in logs_in(places[BROKER])
        for batch in batches_of(path)
        for record in batch.records()
        if topic == "orders" and not batch.is_control and record.key == b"key-2"
    ]
    assert len(expected) > 20
    assert answers(spark, 1, places) == expected


def test_bytes_by_hour_and_producer(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 2 adds up sizes and records of data batches."""
    totals: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for _, _, path in logs_in(places[BROKER]):
        for batch in batches_of(path):
            if not batch.is_control:
                total = totals[batch.max_timestamp // 3_600_000 * 3_600_000, batch.producer_id]
                total[0] += batch.size_bytes
                total[1] += batch.record_count
    assert len(totals) > 3
    assert answers(spark, 2, places) == [(*key, *totals[key]) for key in sorted(totals)]


def test_transactions_left_open(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 3 gives the two transactions whose markers were cut off, and no other."""
    still_open: dict[tuple[str, int, int], list[RecordBatch]] = {}
    for topic, partition, path in logs_in(places[BROKER]):
        for batch in batches_of(path):
            if batch.is_transactional and batch.is_control:
                still_open.pop((topic, partition, batch.producer_id), None)
            elif batch.is_transactional:
                still_open.setdefault((topic, partition, batch.producer_id), []).append(batch)
    expected: Rows = [
        (*key, found[0].base_offset, found[0].base_timestamp, sum(batch.record_count for batch in found))
        for key, found in sorted(still_open.items())
    ]
    assert [row[:2] for row in expected] == [("txn", 0), ("txn", 1)]
    assert answers(spark, 3, places) == expected


def test_changes_of_a_topic(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 4 gives the records that name the topic, its id or its configuration."""
    decoder = MetadataDecoder(NEWEST, True)
    name, ids, expected = "orders-0", set(), []
    for record in metadata_records(places[CONTROLLER]):
        payload = decoder.decode(record)
        fields = json.loads(payload.value_json or "{}")
        if payload.type_name == "TOPIC_RECORD" and fields["name"] == name:
            ids.add(fields["topicId"])
        is_config = payload.type_name == "CONFIG_RECORD" and fields["resourceType"] == 2
        if fields.get("topicId") in ids or (is_config and fields["resourceName"] == name):
            expected.append((record.offset, record.timestamp, payload.type_name, payload.value_json))
    kinds = {row[2] for row in expected}
    assert kinds >= {"TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD"}
    assert answers(spark, 4, places) == expected


def metadata_records(log_directory: Path) -> Iterator[RecordView]:
    """Yield the data records of a metadata log."""
    for _, _, path in logs_in(log_directory):
        for batch in batches_of(path):
            if not batch.is_control:
                yield from batch.records()


def test_voters_over_time(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 5 gives each voter set once, with where it begins: four was added, and one removed."""
    rows = answers(spark, 5, places)
    assert rows == voters_over_time(places[CONTROLLER])
    assert [ids for *_, ids in rows] == [[1, 2, 3], [1, 2, 3, 4], [2, 3, 4]]


def test_voters_that_the_log_has_forgotten(spark: SparkSession, forgetful: dict[str, Path]) -> None:
    """Question 5 is answered by snapshots for what the log does not reach any more."""
    rows = answers(spark, 5, forgetful)
    assert rows == voters_over_time(forgetful[CONTROLLER])
    assert [ids for *_, ids in rows][:1] == [[1, 2, 3]]


def voters_over_time(log_directory: Path) -> Rows:
    """Read voter sets from logs and snapshots, and drop those that say nothing new."""
    found = []
    for pattern in ("*.log", "*.checkpoint"):
        for _, _, path in logs_in(log_directory, pattern):
            is_snapshot = path.suffix == ".checkpoint"
            for batch in batches_of(path):
                for record in batch.records() if batch.is_control else ():
                    voters = read_control_record(record.key, record.value).value
                    if isinstance(voters, VotersRecord):
                        at = int(path.name.split("-")[0]) - 1 if is_snapshot else record.offset
                        found.append((at, record.timestamp, sorted(voters.voters, key=lambda voter: voter.id)))
    found.sort(key=lambda each: each[:2])
    return [
        (at, timestamp, [voter.id for voter in voters])
        for index, (at, timestamp, voters) in enumerate(found)
        if index == 0 or found[index - 1][2] != voters
    ]


def test_what_groups_have_read(spark: SparkSession, places: dict[str, Path]) -> None:
    """Question 6 gives the newest commit of each group and partition, without those that were deleted."""
    newest: dict[tuple[str, str, int], tuple[int, int] | None] = {}
    for topic, _, path in logs_in(places[BROKER]):
        for batch in batches_of(path) if topic == CONSUMER_OFFSETS else ():
            assert not batch.is_transactional
            for record in batch.records():
                read = read_coordinator_record(topic, record.key, record.value)
                if isinstance(read, CoordinatorRecord) and read.key_type.name == "OffsetCommitKey":
                    value = read.value
                    key = (read.key["group"], read.key["topic"], read.key["partition"])
                    newest[key] = None if value is None else (value["offset"], value["commitTimestamp"])
    expected: Rows = [(*key, *found) for key, found in sorted(newest.items()) if found is not None]
    assert expected
    assert None in newest.values()
    assert answers(spark, 6, places) == expected
