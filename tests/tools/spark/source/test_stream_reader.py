# SPDX-License-Identifier: Apache-2.0
"""The reader of a stream, called without Spark: positions of a checkpoint, limits, and deleted files."""

import json
import math
import pickle
import uuid
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from raftlog.errors import CorruptBatchError, DivergedStreamError, OptionError, StorageError
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.files.property_files import (
    MetaProperties,
    PartitionMetadata,
    write_meta_properties,
    write_partition_metadata,
)
from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source import stream
from raftlog.tools.spark.source.stream import Offsets, RaftLogStreamReader
from raftlog.tools.spark.source.stream_positions import list_logs
from tests.spark import growing_log
from tests.spark.growing_log import GrowingLog
from tests.tools.made_logs import batch, flip, write_log
from tests.tools.spark.source_reads import source_options

NAME = "orders-0"


def _reader(path: Path, **given: object) -> RaftLogStreamReader:
    options = source_options(path, **({"startingOffsets": "earliest"} | given))
    return RaftLogStreamReader(options, view_schema(options))


def _rows(reader: RaftLogStreamReader, start: Offsets, end: Offsets) -> list[int]:
    parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    sent: RaftLogStreamReader = pickle.loads(pickle.dumps(reader))
    return [row["offset"] for part in parts for rows in sent.read(part) for row in rows.to_pylist()]


def _write_topic_id(path: Path, number: int) -> str:
    metadata = PartitionMetadata(0, uuid.UUID(int=number))
    (path / NAME / "partition.metadata").write_bytes(write_partition_metadata(metadata))
    return write_partition_metadata(metadata).decode().split()[-1]


def test_positions_are_json_and_bound_what_is_read(tmp_path: Path) -> None:
    """A checkpoint names, for each log, an offset and an epoch; between two of them each record is read once."""
    reader = _reader(tmp_path)
    write_log(tmp_path / NAME, *map(batch, range(4)))
    start, end = reader.initialOffset(), reader.latestOffset()
    assert start == {NAME: {"offset": 0, "epoch": -1}}
    assert json.loads(json.dumps(end)) == {NAME: {"offset": 4, "epoch": 1}}
    assert _rows(reader, start, end) == [0, 1, 2, 3]
    assert _rows(reader, end, end) == []
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_limit_is_what_the_option_says(tmp_path: Path) -> None:
    """Spark asks for the limit, and gives it back; without one all there is is taken."""
    write_log(tmp_path / NAME, *map(batch, range(4)))
    assert _reader(tmp_path).getDefaultReadLimit() == ReadAllAvailable()
    reader = _reader(tmp_path, maxOffsetsPerTrigger=3)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(3)
    end = reader.latestOffset(reader.initialOffset(), limit)
    assert end == {NAME: {"offset": 3, "epoch": 1}}
    assert reader.latestOffset(end, limit) == {NAME: {"offset": 4, "epoch": 1}}


def test_the_ends_of_the_logs_are_reported(tmp_path: Path) -> None:
    """Beside the place where a limited micro-batch ends, Spark is told up to where the logs can be read."""
    write_log(tmp_path / NAME, *map(batch, range(4)))
    reader = _reader(tmp_path, maxOffsetsPerTrigger=1)
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(1))
    assert (end[NAME]["offset"], reader.reportLatestOffset()) == (1, {NAME: {"offset": 4, "epoch": 1}})
    write_log(tmp_path / NAME, *map(batch, range(5)))
    reader.latestOffset(end, ReadMaxRows(1))
    assert reader.reportLatestOffset() == {NAME: {"offset": 5, "epoch": 1}}


def test_available_now_ends_at_the_recorded_ends(tmp_path: Path) -> None:
    """Records and logs that come while such a query runs are left to the next one."""
    reader = _reader(tmp_path)
    write_log(tmp_path / NAME, *map(batch, range(3)))
    reader.prepareForTriggerAvailableNow()
    write_log(tmp_path / NAME, *map(batch, range(5)))
    write_log(tmp_path / "orders-1", batch(0))
    start = {NAME: {"offset": 0, "epoch": -1}}
    end = reader.latestOffset(start, ReadMaxRows(2))
    assert end == {NAME: {"offset": 2, "epoch": 1}}
    end = reader.latestOffset(end, ReadMaxRows(2))
    assert end == {NAME: {"offset": 3, "epoch": 1}}
    assert reader.latestOffset(end, ReadMaxRows(2)) == end
    assert _reader(tmp_path).latestOffset(end, ReadAllAvailable()) == {
        NAME: {"offset": 5, "epoch": 1},
        "orders-1": {"offset": 1, "epoch": 1},
    }


def _write_cluster_id(path: Path, cluster: str) -> None:
    (path / "meta.properties").write_bytes(write_meta_properties(MetaProperties(1, cluster, 1)))


def test_a_checkpoint_of_a_recreated_topic_is_refused(tmp_path: Path) -> None:
    """The topic's id shows what offsets and epochs might not: another log of the same name."""
    write_log(tmp_path / NAME, *map(batch, range(3)))
    old = _write_topic_id(tmp_path, 7)
    start = _reader(tmp_path).latestOffset()
    assert start == {NAME: {"offset": 3, "epoch": 1, "topicId": old}}
    new = _write_topic_id(tmp_path, 8)
    with pytest.raises(OptionError, match=f"{NAME} had topic id {old} there, and has {new}"):
        _reader(tmp_path).latestOffset(start, ReadAllAvailable())
    (tmp_path / NAME / "partition.metadata").unlink()
    end = _reader(tmp_path).latestOffset(start, ReadAllAvailable())
    assert end == start


def test_a_recreated_topic_is_read_from_its_start_if_losses_are_forgiven(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Spark's Kafka source does; a log line says so once. Another cluster's topic is never taken for a new one."""
    write_log(tmp_path / NAME, *map(batch, range(3)))
    old = _write_topic_id(tmp_path, 7)
    start = _reader(tmp_path).latestOffset()
    write_log(tmp_path / NAME, *map(batch, range(2)))
    new = _write_topic_id(tmp_path, 8)
    reader = _reader(tmp_path, failOnDataLoss="false")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {NAME: {"offset": 2, "epoch": 1, "topicId": new}}
    assert _rows(reader, start, end) == [0, 1]
    assert _rows(reader, start, start) == []
    assert [f"{NAME} had topic id {old} there" in record.message for record in caplog.records] == [True]
    parts = reader.partitions(start, end)
    _write_topic_id(tmp_path, 9)
    with pytest.raises(OptionError, match=f"{NAME} had topic id {new} there"):
        list(reader.read(parts[0]))
    _write_cluster_id(tmp_path, "c-2")
    with pytest.raises(OptionError, match="had cluster id c-1"):
        reader.latestOffset({NAME: start[NAME] | {"clusterId": "c-1"}}, ReadAllAvailable())


def test_a_checkpoint_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """All metadata logs have one topic id, and may have the same epochs: the cluster's id distinguishes them."""
    write_log(tmp_path / "a" / NAME, *map(batch, range(3)))
    write_log(tmp_path / "b" / NAME, *map(batch, range(3)))
    _write_cluster_id(tmp_path / "a", "c-1")
    _write_cluster_id(tmp_path / "b", "c-2")
    start = _reader(tmp_path / "a").initialOffset()
    end = _reader(tmp_path / "a" / NAME).latestOffset(start, ReadAllAvailable())
    assert end == {NAME: {"offset": 3, "epoch": 1, "clusterId": "c-1"}}
    other = _reader(tmp_path / "b")
    for call in (lambda: other.latestOffset(end, ReadAllAvailable()), lambda: other.partitions(start, end)):
        with pytest.raises(OptionError, match=f"{NAME} had cluster id c-1 there, and has c-2 under the path"):
            call()
    assert _rows(_reader(tmp_path / "a"), start, end) == [0, 1, 2]


def test_a_checkpoint_without_ids_is_taken_and_gets_them(tmp_path: Path) -> None:
    """Those of logs beside which there was no such file, or one that does not say it, are taken."""
    write_log(tmp_path / NAME, batch(0))
    for spoilt in (b"version=7\n", b"\xff\x00" * 100_000, b""):
        (tmp_path / "meta.properties").write_bytes(spoilt)
        (tmp_path / NAME / "partition.metadata").write_bytes(spoilt)
        start = _reader(tmp_path).latestOffset()
        assert start == {NAME: {"offset": 1, "epoch": 1}}
    topic_id = _write_topic_id(tmp_path, 7)
    _write_cluster_id(tmp_path, "c-1")
    end = {NAME: {"offset": 1, "epoch": 1, "clusterId": "c-1", "topicId": topic_id}}
    assert _reader(tmp_path).latestOffset(start, ReadAllAvailable()) == end


@pytest.mark.parametrize(
    "place",
    [
        *(None, 7, "x", [], {}, {"offset": 1}),
        *({"offset": "x", "epoch": 1}, {"offset": 1, "epoch": None}, {"offset": math.inf, "epoch": 1}),
    ],
)
def test_a_checkpoint_of_something_else_is_an_error(tmp_path: Path, place: Any) -> None:
    """An invalid position is named, with its log."""
    write_log(tmp_path / NAME, batch(0))
    with pytest.raises(OptionError, match=f"is not a place in log {NAME}"):
        _reader(tmp_path).latestOffset({NAME: place}, ReadAllAvailable())


@pytest.mark.parametrize("offsets", [0, 1234, [], [{NAME: {"offset": 0, "epoch": -1}}], "earliest"])
def test_a_checkpoint_of_another_source_is_an_error(tmp_path: Path, offsets: Any) -> None:
    """Spark's other sources write numbers and lists there."""
    write_log(tmp_path / NAME, batch(0))
    with pytest.raises(OptionError, match="it is of another source"):
        _reader(tmp_path).latestOffset(offsets, ReadAllAvailable())


def test_a_checkpoint_is_checked_before_each_micro_batch(tmp_path: Path) -> None:
    """Also between the planning of its end and that of its tasks: the log was written again in another epoch."""
    reader = _reader(tmp_path)
    write_log(tmp_path / NAME, *map(batch, range(3)))
    start, end = reader.initialOffset(), reader.latestOffset()
    data = bytearray(batch(2))
    data[12:16] = (5).to_bytes(4, "big")
    write_log(tmp_path / NAME, batch(0), batch(1), data)
    for call in (lambda: reader.partitions(start, end), lambda: reader.latestOffset(end, ReadAllAvailable())):
        with pytest.raises(DivergedStreamError, match=f"{NAME}: .* offset 3 of epoch 1, but .* offset 3 of epoch 5"):
            call()


def _change(log: GrowingLog, random: Random) -> None:
    for _ in range(random.randint(0, 3)):
        match random.randrange(3):
            case 0:
                log.append()
            case 1:
                log.truncate(max(1, log.start))
            case 2:
                log.take_snapshot(log.end)


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_a_log_that_changes_once_it_is_planned_is_not_taken_for_a_damaged_one(seed: int) -> None:
    """Each record that was planned is read, or it is said what has become of the log: then, or at the next look."""
    random = Random(seed)
    with TemporaryDirectory() as name, closing(GrowingLog(Path(name), random)) as log:
        for _ in range(random.randint(1, 6)):
            log.append()
        begins = json.dumps({METADATA_TOPIC: {"0": random.randrange(log.end)}})
        reader = _reader(Path(name), splitSize=random.choice([1, 300, 10_000]), startingOffsets=begins)
        start, end = reader.initialOffset(), reader.latestOffset()
        first, next_offset = start[growing_log.NAME]["offset"], end[growing_log.NAME]["offset"]
        rows: list[int] = []
        try:
            for part in reader.partitions(start, end):
                _change(log, random)
                rows += [row["offset"] for batch in reader.read(part) for row in batch.to_pylist()]
        except DivergedStreamError:
            assert log.truncated_to is not None
            assert log.truncated_to < next_offset
        except OptionError:
            assert log.start > first
        else:
            if log.truncated_to is None or log.truncated_to >= next_offset:
                assert rows == list(range(first, next_offset))
            else:
                with pytest.raises((DivergedStreamError, OptionError)):
                    reader.latestOffset(end, ReadAllAvailable())


def test_a_truncation_after_the_wanted_records_is_no_loss(tmp_path: Path) -> None:
    """A replica that starts again takes a half-written batch away: a stream has not planned to read it."""
    reader = _reader(tmp_path)
    path = write_log(tmp_path / NAME, batch(0), batch(1), batch(2)[:30])
    start, end = reader.initialOffset(), reader.latestOffset()
    parts = reader.partitions(start, end)
    write_log(tmp_path / NAME, batch(0), batch(1))
    assert [row["offset"] for part in parts for rows in reader.read(part) for row in rows.to_pylist()] == [0, 1]
    for position in (65, len(batch(0)) + 65):
        flip(path, position)
        with pytest.raises(CorruptBatchError, match=f"{path}"):
            list(reader.read(parts[0]))
        flip(path, position)
    path.unlink()
    with pytest.raises(OptionError, match=f"{NAME} is missing"):
        list(reader.read(parts[0]))


@pytest.mark.parametrize("value", [b"", b"v", b"longer"])
def test_records_of_another_epoch_are_not_read_in_place_of_those_that_were_planned(
    tmp_path: Path, value: bytes
) -> None:
    """Whether the file is shorter than it was, as long, or longer."""
    reader = _reader(tmp_path)
    write_log(tmp_path / NAME, *map(batch, range(3)))
    start, end = reader.initialOffset(), reader.latestOffset()
    parts = reader.partitions(start, end)
    data = bytearray(batch(2, [value]))
    data[12:16] = (5).to_bytes(4, "big")
    write_log(tmp_path / NAME, batch(0), batch(1), data)
    with pytest.raises(DivergedStreamError, match=f"{NAME}: .* offset 3 of epoch 1, but .* offset 3 of epoch 5"):
        list(reader.read(parts[0]))


def test_a_file_that_goes_while_it_is_looked_for_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that was listed, and deleted before it was opened, does not fail the stream."""
    write_log(tmp_path / NAME, batch(0))
    old = write_log(tmp_path / NAME, batch(0), name="00000000000000000001.log")
    write_log(tmp_path / NAME, batch(2), name="00000000000000000002.log")
    listings = 0

    def list_and_delete(*arguments: Any) -> Any:
        nonlocal listings
        listings += 1
        logs = list_logs(*arguments)
        old.unlink(missing_ok=True)
        return logs

    monkeypatch.setattr(stream, "list_logs", list_and_delete)
    start = {NAME: {"offset": 2, "epoch": 1}}
    assert _reader(tmp_path).latestOffset(start, ReadAllAvailable()) == {NAME: {"offset": 3, "epoch": 1}}
    assert listings == 2
    with pytest.raises(StorageError):
        _reader(tmp_path / "nowhere").latestOffset(start, ReadAllAvailable())
