# SPDX-License-Identifier: Apache-2.0
"""From splits to rows: each view, and what becomes of damage."""

import datetime
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError, OptionError, RaftLogError, StorageError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, Corruption, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.testing.strategies import SmallLog, record_batches, small_logs
from raftlog.tools.spark.rows.options import VIEWS
from raftlog.tools.spark.rows.reading import ReadRequest, read_split
from raftlog.tools.spark.rows.views import asked_schema, view_schema
from raftlog.tools.spark.source.planning import list_partitions, plan
from tests.golden_files import GOLDEN, golden_id, record_files
from tests.tools.made_logs import batch, control_batch, flip, write_log
from tests.tools.spark.source_reads import plain_records, rows, rows_of, source_options, splits

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SOUND = list(record_files())[::3]
"""Some: reading all takes its time, and they are much alike."""
DAMAGED = sorted(path for path in (GOLDEN / "damaged").rglob("*.log") if path.name != ".log")
SOME_DAMAGED = DAMAGED[::7]
ALL_DAMAGED = [pytest.param(path, marks=() if path in SOME_DAMAGED else pytest.mark.slow) for path in DAMAGED]
OF_A_PARTITION = GOLDEN / "mirror/data/n1/__cluster_metadata-0/00000000000000000000.log"
OF_NO_PARTITION = GOLDEN / "damaged/data/index-good/00000000000000000000.log"
"""In a directory whose name says no partition; as metadata, its records are damage."""


def _time(milliseconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("path", SOUND, ids=golden_id)
def test_records_are_those_of_a_plain_reading(path: Path) -> None:
    """The records view gives offset, timestamp, key and value of every data record of every file of a real Kafka."""
    found = rows(path)
    assert [(row["offset"], row["timestamp"], row["key"], row["value"]) for row in found] == [
        (offset, _time(timestamp), key, value) for offset, timestamp, key, value in plain_records(path.read_bytes())
    ]


@pytest.mark.parametrize("path", ALL_DAMAGED, ids=map(golden_id, DAMAGED))
def test_all_that_is_sound_in_a_damaged_file_is_read(path: Path) -> None:
    """PERMISSIVE and DROPMALFORMED give the same sound records, in every split size; FAILFAST raises or gives them."""
    sound = [each[0] for each in plain_records(path.read_bytes())]
    for size in (1, 10**6):
        given_rows = rows(path, mode="PERMISSIVE", splitSize=size)
        assert [row["offset"] for row in given_rows if row["_corrupt"] is None] == sound
    assert [row["offset"] for row in rows(path, mode="DROPMALFORMED")] == sound
    damage = [row["_corrupt"] for row in given_rows if row["_corrupt"] is not None]
    if damage:
        with pytest.raises(CorruptBatchError):
            rows(path)
    else:
        assert [row["offset"] for row in rows(path)] == sound


@pytest.mark.parametrize("view", VIEWS)
def test_no_file_is_too_damaged_for_a_view(view: str) -> None:
    """Whatever is wrong with a file, each view gives rows in mode PERMISSIVE, and no error."""
    for path in SOME_DAMAGED:
        rows(path, view=view, mode="PERMISSIVE", includeHeaders="true")


@pytest.mark.parametrize("path", SOUND, ids=golden_id)
def test_batches_are_those_of_a_plain_reading(path: Path) -> None:
    """The view of batches has every header, and its position."""
    pieces = [each for each in split(BufferSource(path.read_bytes())) if isinstance(each, RecordBatch | LegacyBatch)]
    found = rows(path, view="batches")
    assert [(row["position"], row["size"], row["baseOffset"], row["lastOffset"], row["crc"]) for row in found] == [
        (each.position, each.size_bytes, each.base_offset, each.last_offset, each.crc) for each in pieces
    ]


@given(record_batches(base_offset=7), st.integers(-1, 2**31 - 1))
def test_records_ext_adds_what_the_batch_says(data: bytes, first_sequence: int) -> None:
    """Each record has its headers, and the epoch, sequence, codec and place of its batch."""
    changed = data[:53] + first_sequence.to_bytes(4, "big", signed=True) + data[57:]
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-3", _with_crc(changed))
        found = rows(path, view="records_ext", includeHeaders="true")
    whole = RecordBatch(changed)
    records = list(whole.records(check_crc=False))
    assert [row["headers"] or [] for row in found] == [
        [{"key": bytes(key).decode(), "value": value} for key, value in record.headers] for record in records
    ]
    assert all((row["headers"] is None) == (not record.headers) for row, record in zip(found, records, strict=True))
    for delta, row in enumerate(found):
        assert row["sequence"] == (-1 if first_sequence < 0 else (first_sequence + delta) % 2**31)
        assert row["leaderEpoch"] == whole.partition_leader_epoch
        assert (row["topic"], row["partition"], row["batchBaseOffset"], row["position"]) == ("orders", 3, 7, 0)
        assert row["codec"] == whole.compression_type.label
        assert (row["isControl"], row["isTransactional"], row["crcOk"], row["file"]) == (False, False, True, str(path))


def _with_crc(data: bytes) -> bytes:
    from raftlog.records.checksum import crc32c

    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def test_control_records_are_typed() -> None:
    """Leaders, voters with endpoints, the level, and the marks of snapshots are in columns of their own."""
    found = rows(GOLDEN / "mirror/data/n1/__cluster_metadata-0", view="control", snapshots="all")
    by_type = {row["type"]: row for row in found}
    assert {"LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"} <= set(by_type)
    assert by_type["LEADER_CHANGE"]["leaderId"] in {voter["id"] for voter in by_type["KRAFT_VOTERS"]["voters"]}
    voter = by_type["KRAFT_VOTERS"]["voters"][0]
    assert voter["endpoints"][0]["port"] > 0
    assert voter["maxKraftVersion"] == 1
    assert by_type["KRAFT_VERSION"]["kraftVersion"] == 1
    assert by_type["SNAPSHOT_HEADER"]["lastContainedLogTimestamp"].year >= 1970


def test_metadata_records_are_json_and_hide_secrets() -> None:
    """The metadata view gives type and JSON, of this log alone, and no secrets unless they are asked for."""
    folder = GOLDEN / "mirror/data/n1"
    found = rows(folder, view="metadata")
    assert {row["topic"] for row in found} == {"__cluster_metadata"}
    assert [row["offset"] for row in found] == [row["offset"] for row in rows(folder, subscribe="__cluster_metadata")]
    feature = next(row for row in found if row["type"] == "FEATURE_LEVEL_RECORD")
    assert '"featureLevel"' in feature["json"]
    assert feature["version"] == 0


def test_a_metadata_record_that_does_not_decode_is_damage(tmp_path: Path) -> None:
    """It names the record's offset, and the others of its batch are read."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(4, [b"\x09\x00\x00", b"\x01\x0c\x00\x02a\x00\x01\x00"]))
    found = rows(path, view="metadata", mode="PERMISSIVE")
    assert [row["_corrupt"]["offset"] for row in found if row["_corrupt"]] == [4]
    with pytest.raises(CorruptBatchError, match="frame version"):
        rows(path, view="metadata")


def test_control_and_data_are_kept_apart(tmp_path: Path) -> None:
    """Records are data alone; records_ext has both; a control record of an unknown type has no fields."""
    path = write_log(tmp_path / "orders-0", batch(0), control_batch(1, b"\0\0\0\x63", b"x"))
    assert [row["offset"] for row in rows(path)] == [0]
    assert [row["isControl"] for row in rows(path, view="records_ext")] == [False, True]
    assert [(row["offset"], row["type"]) for row in rows(path, view="control")] == [(1, "UNKNOWN(99)")]


@given(small_logs(max_epochs=2), st.integers(0, 10**6), st.integers(1, 500))
def test_a_flipped_byte_costs_no_other_batch(log: SmallLog, position: int, size: int) -> None:
    """All batches that a plain reader still finds are there, and others are reported, whatever the split size."""
    if not log.data:
        return
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-0", log.data)
        flip(path, position % len(log.data))
        data = path.read_bytes()
        found = rows(path.parent, mode="PERMISSIVE", splitSize=size)
        whole = rows(path.parent, mode="PERMISSIVE")
    sound = [each[0] for each in plain_records(data)]
    assert [row["offset"] for row in found if row["_corrupt"] is None] == sound
    assert [row["offset"] for row in whole if row["_corrupt"] is None] == sound
    damaged = any(isinstance(each, Corruption) for each in split(BufferSource(data)))
    assert not damaged or any(row["_corrupt"] for row in whole)


@pytest.mark.parametrize("view", VIEWS)
@given(st.data())
def test_not_null_columns_have_no_nulls(view: str, data: st.DataObject) -> None:
    """Whichever columns a schema calls NOT NULL: the rows are the same, or one of these has nulls, and it is named."""
    path = data.draw(st.sampled_from([OF_A_PARTITION, OF_NO_PARTITION]))
    given: dict[str, Any] = {"view": view, "mode": "PERMISSIVE"}
    options = source_options(path, **given)
    whole = view_schema(options)
    declared = data.draw(st.sets(st.sampled_from(whole.names)))
    schema = asked_schema(options, [(name, name not in declared) for name in whole.names])
    planned = splits(path, **given)
    expected = rows_of(planned, path, **given)
    with_nulls = {name for name in declared if any(row[name] is None for row in expected)}
    if with_nulls:
        with pytest.raises(OptionError, match=f"column ({'|'.join(with_nulls)}) is NOT NULL, .* nulls in {path}"):
            rows_of(planned, path, schema=schema, **given)
    else:
        assert rows_of(planned, path, schema=schema, **given) == expected


def test_one_corrupt_block_in_many_files(tmp_path: Path) -> None:
    """The other files are read; the damage is one row with file, position, size, rule and reason; or one error."""
    for number in range(100):
        write_log(tmp_path / f"orders-{number}", batch(0, [b"v" * 100]), batch(1, [b"w" * 100]))
    bad = tmp_path / "orders-7" / "00000000000000000000.log"
    size = bad.stat().st_size // 2
    flip(bad, size + 100)
    found = rows(tmp_path, mode="PERMISSIVE")
    [damage] = [row["_corrupt"] for row in found if row["_corrupt"] is not None]
    assert len(found) == 2 * 100
    assert (damage["file"], damage["position"], damage["size"], damage["rule"]) == (str(bad), size, size, "batch-crc")
    assert damage["offset"] == 1
    assert len(rows(tmp_path, mode="DROPMALFORMED")) == 2 * 100 - 1
    with pytest.raises(CorruptBatchError) as raised:
        rows(tmp_path, failOnDataLoss="false")
    assert (raised.value.path, raised.value.position, raised.value.base_offset) == (str(bad), size, 1)


def test_damage_that_is_left_out_is_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line per file names it, the number of places, the first of them, and the mode; sound files have none."""
    size = len(batch(0))
    bad = write_log(tmp_path / "orders-0", *map(batch, range(5)))
    write_log(tmp_path / "orders-1", batch(0))
    flip(bad, size + 65)
    flip(bad, 3 * size + 65)
    assert len(rows(tmp_path, mode="DROPMALFORMED")) == 4
    [line] = [record.message for record in caplog.records]
    assert line.startswith(
        f"{bad}: damage at 2 places is left out, since mode is DROPMALFORMED; the first, at position {size}: "
    )
    assert line.endswith("[batch-crc]")
    caplog.clear()
    rows(tmp_path, mode="PERMISSIVE")
    assert caplog.records == []


def test_a_file_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """Its bytes are there: failOnDataLoss does not forgive it, and mode decides."""
    path = write_log(tmp_path / "orders-0", batch(0))
    planned = splits(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="directory"):
        rows_of(planned, tmp_path, failOnDataLoss="false")
    [row] = rows_of(planned, tmp_path, mode="PERMISSIVE")
    assert row["_corrupt"]["rule"] == "file-unreadable"
    assert rows_of(planned, tmp_path, mode="DROPMALFORMED") == []


def test_a_batch_that_does_not_decompress_is_damage(tmp_path: Path) -> None:
    """Its CRC holds, its stream does not: the batches around it are read."""
    broken = batch(1, [b"v" * 100], codec=CompressionType.GZIP)
    path = write_log(tmp_path / "orders-0", batch(0), _with_crc(broken[:90] + b"\0\0" + broken[92:]), batch(2))
    found = rows(path, mode="PERMISSIVE")
    assert sorted(row["offset"] for row in found if row["_corrupt"] is None) == [0, 2]
    assert [row["_corrupt"]["offset"] for row in found if row["_corrupt"]] == [1]


def test_a_torn_tail_is_the_end_of_a_log_and_damage_before_it(tmp_path: Path) -> None:
    """A write that was cut ends the newest segment; at the end of an older one something is missing."""
    write_log(tmp_path / "orders-0", batch(0), batch(1)[:30])
    assert len(rows(tmp_path)) == 1
    write_log(tmp_path / "orders-0", batch(2), bytes(4096), name="00000000000000000002.log")
    with pytest.raises(CorruptBatchError, match="tail-torn"):
        rows(tmp_path)


def test_files_deleted_since_planning_are_a_loss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that was deleted or has shrunk fails the query, or is reported or left out with a line in the log."""
    for change in (os.remove, lambda path: os.truncate(path, 100)):
        path = write_log(tmp_path / "orders-0", batch(0), batch(1))
        planned = splits(tmp_path)
        change(path)
        with pytest.raises(StorageError, match="orders-0"):
            rows_of(planned, tmp_path)
        for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
            with pytest.raises(StorageError, match="orders-0"):
                rows_of(planned, tmp_path, mode=mode)
        found = rows_of(planned, tmp_path, mode="PERMISSIVE", failOnDataLoss="false")
        assert [row["_corrupt"]["rule"] for row in found if row["_corrupt"]] == ["file-gone"]
        caplog.clear()
        assert len(rows_of(planned, tmp_path, failOnDataLoss="false")) == len(found) - 1
        [line] = [record.message for record in caplog.records]
        assert line.startswith(f"{path}: ")
        assert line.endswith("left out, since failOnDataLoss is false")


def test_a_file_that_cannot_be_split_is_a_loss_too(tmp_path: Path) -> None:
    """A file that is deleted before it is opened for splitting counts as deleted, and the others are read."""
    path = write_log(tmp_path / "orders-0", batch(0), batch(1))
    write_log(tmp_path / "orders-1", batch(0))
    lenient: dict[str, Any] = {"mode": "PERMISSIVE", "failOnDataLoss": "false"}
    options = source_options(tmp_path, splitSize=1, **lenient)
    listing = list_partitions(options)
    path.unlink()
    found = rows_of(plan(options, listing), tmp_path, **lenient)
    assert [row["_corrupt"]["rule"] for row in found if row["_corrupt"]] == ["file-gone"]
    assert len(found) == 2


def test_records_appended_since_planning_wait(tmp_path: Path) -> None:
    """Only what was there at planning is read, also where a batch was half written then."""
    second = batch(1)
    path = write_log(tmp_path / "orders-0", batch(0), second[:40])
    planned = splits(tmp_path)
    with path.open("ab") as log:
        log.write(second[40:] + batch(2))
    assert [row["offset"] for row in rows_of(planned, tmp_path)] == [0]
    assert [row["offset"] for row in rows(tmp_path)] == [0, 1, 2]


def test_columns_are_read_in_the_order_in_which_they_are_named() -> None:
    """The option columns leaves the others out."""
    [first, *_] = rows(GOLDEN / "mirror/data/n1/orders-0", columns="value, offset")
    assert list(first) == ["value", "offset"]


def test_errors_are_typed_for_any_bytes(tmp_path: Path) -> None:
    """Whatever bytes a file has, a query gives rows or an error of ours."""
    path = write_log(tmp_path / "orders-0", os.urandom(5000))
    for view in VIEWS:
        rows(path, view=view, mode="PERMISSIVE")
        with pytest.raises(RaftLogError):
            rows(path, view=view)


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Such a name is escaped wherever Spark gets it: in rows, and in errors."""
    folder = tmp_path / os.fsdecode(b"t\xffpic")
    try:
        path = write_log(folder / "orders-0", batch(0), batch(1))
    except OSError:
        pytest.skip("this file system takes no such names")
    shown = str(path).encode("utf-8", "backslashreplace").decode()
    assert [row["file"] for row in rows(tmp_path, view="records_ext")] == [shown, shown]
    assert [row["topic"] for row in rows(folder.rename(tmp_path / os.fsdecode(b"t\xff-0")) / "orders-0")] == [
        "orders"
    ] * 2
    path = tmp_path / os.fsdecode(b"t\xff-0") / "orders-0" / path.name
    planned = splits(tmp_path)
    flip(path, 80)
    for view in VIEWS:
        rows(tmp_path, view=view, mode="PERMISSIVE")
    for kind in (CorruptBatchError, StorageError):
        with pytest.raises(kind) as raised:
            rows_of(planned, tmp_path)
        assert str(raised.value).encode()
        path.unlink(missing_ok=True)


def test_large_records_are_not_put_together(tmp_path: Path) -> None:
    """A record batch is limited by its bytes too, however large a split is."""
    write_log(tmp_path / "orders-0", *(batch(number, [bytes(2**20)]) for number in range(40)))
    options = source_options(tmp_path, splitSize="1g")
    request = ReadRequest("records", view_schema(options))
    [split_of_all] = plan(options, list_partitions(options))
    found = list(read_split(request, split_of_all))
    assert sum(map(len, found)) == 40
    assert max(each.nbytes for each in found) < 20 * 2**20
