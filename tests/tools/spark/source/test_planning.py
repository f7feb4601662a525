# SPDX-License-Identifier: Apache-2.0
"""Splits: whatever their size, the same rows."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import MissingFileError, OptionError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.index_entries import OFFSET_INDEX, OffsetIndexEntry
from raftlog.testing.contracts.made_batches import snapshot_bytes
from raftlog.testing.strategies import SmallLog, small_logs
from raftlog.tools.spark.rows.filters import Hints
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import plain_records, rows, rows_of, splits

INDEX_NAME = "00000000000000000000.index"
PARTITION = GOLDEN / "mirror/data/n1/orders-0"


def _index(log: SmallLog, chosen: list[bool]) -> bytes:
    """Make an index that has some of the batches."""
    entries, position = [], 0
    for data, is_chosen in zip(log.batches, chosen, strict=False):
        if is_chosen:
            last = int.from_bytes(data[:8], "big") + struct.unpack(">i", data[23:27])[0]
            entries.append(OffsetIndexEntry(last, position))
        position += len(data)
    return OFFSET_INDEX.encode(entries)


@given(
    small_logs(),
    st.integers(1, 600),
    st.lists(st.booleans(), min_size=20, max_size=20),
    st.binary(max_size=40),
    st.none() | st.integers(1, 5),
)
def test_any_split_size_gives_the_same_rows(
    log: SmallLog, size: int, chosen: list[bool], lies: bytes, most: int | None
) -> None:
    """Every record comes once and in order, however the segment is divided, and whatever its index says."""
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-0", log.data)
        path.with_suffix(".index").write_bytes(_index(log, chosen) + lies)
        given_options: dict[str, Any] = {} if most is None else {"maxRecordsPerPartition": most}
        planned = splits(path.parent, splitSize=size, **given_options)
        assert [part.start for each in planned for part in each][1:] == [part.end for each in planned for part in each][
            :-1
        ]
        found = rows_of(planned, path.parent)
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (offset, key, value) for offset, _, key, value in plain_records(log.data)
    ]


@given(small_logs(max_epochs=2), st.integers(-3, 20), st.integers(-3, 20), st.integers(1, 300))
def test_offset_bounds_hold(log: SmallLog, first: int, end: int, size: int) -> None:
    """The records from a starting offset up to an ending one are read, and no others."""
    first, end = max(first, 0), max(end, 0)
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-0", log.data)
        bounds: dict[str, Any] = {
            "startingOffsets": f'{{"orders": {{"0": {first}}}}}',
            "endingOffsets": f'{{"orders": {{"0": {end}}}}}',
        }
        found = rows(path.parent, splitSize=size, **bounds)
    assert [row["offset"] for row in found] == [each[0] for each in plain_records(log.data) if first <= each[0] < end]


@given(small_logs(), st.integers(0, 20), st.integers(0, 20), st.integers(1, 400), st.booleans())
def test_hints_drop_no_row_that_matches(log: SmallLog, first: int, last: int, size: int, is_control: bool) -> None:
    """Rows that a filter matches are read with the filter as a hint as without."""
    hints = Hints(first_offset=first, last_offset=last, is_control=is_control)
    with TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-0", log.data)
        whole = rows(path.parent, view="records_ext")
        hinted = rows(path.parent, hints, view="records_ext", splitSize=size)

    def matches(row: dict[str, int]) -> bool:
        return first <= row["offset"] <= last and row["isControl"] == is_control

    assert list(filter(matches, hinted)) == list(filter(matches, whole))


def test_one_batch_a_split_down_to_the_smallest_size() -> None:
    """A split size of one byte gives as many splits as a real segment has batches."""
    batches = rows(PARTITION, view="batches")
    planned = splits(PARTITION, splitSize=1)
    assert [each[0].start for each in planned] == [row["position"] for row in batches]
    assert rows_of(planned, PARTITION) == rows(PARTITION)


def test_small_files_share_a_split(tmp_path: Path) -> None:
    """A thousand small segments are not a thousand tasks."""
    for number in range(40):
        write_log(tmp_path / f"orders-{number}", batch(0))
    planned = splits(tmp_path)
    assert [len(each) for each in planned] == [40]
    assert len(splits(tmp_path, minPartitions=8)) >= 8
    assert sorted(row["partition"] for row in rows_of(planned, tmp_path)) == list(range(40))


def test_partitions_of_other_topics_are_left_out(tmp_path: Path) -> None:
    """Subscribe, subscribePattern and assign choose partitions, and a topic that is not there is an error."""
    for name in ("orders-0", "orders-1", "payments-0"):
        write_log(tmp_path / name, batch(0))
    assert {row["topic"] for row in rows(tmp_path, subscribe="payments")} == {"payments"}
    assert {row["topic"] for row in rows(tmp_path, subscribePattern="ord.*")} == {"orders"}
    assert {row["partition"] for row in rows(tmp_path, assign='{"orders": [1]}')} == {1}
    assert len(rows(tmp_path, Hints(topics=frozenset({"orders"}), partitions=frozenset({0})))) == 1
    with pytest.raises(OptionError, match="did you mean payments"):
        rows(tmp_path, subscribe="payment")


def test_a_path_that_is_not_there_is_an_error_and_an_empty_directory_is_not(tmp_path: Path) -> None:
    """A missing path and a file that holds no batches are typed errors; a directory without logs has no rows."""
    with pytest.raises(MissingFileError, match="nowhere"):
        rows(tmp_path / "nowhere")
    with pytest.raises(MissingFileError, match="nowhere"):
        rows((tmp_path / "nowhere").as_uri())
    with pytest.raises(OptionError, match="neither a segment"):
        rows(write_log(tmp_path / "orders-0", b"", name="partition.metadata"))
    (tmp_path / "empty").mkdir()
    assert rows(tmp_path / "empty") == []


def _below_a_file(folder: Path) -> Path:
    return write_log(folder / "orders-0", batch()) / "below"


def _dangling(folder: Path) -> Path:
    (folder / "link").symlink_to("gone")
    return folder / "link"


def _circle(folder: Path) -> Path:
    (folder / "circle").symlink_to("circle")
    return folder / "circle"


def _closed(folder: Path) -> Path:
    (folder / "closed").mkdir(mode=0)
    return folder / "closed"


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (_below_a_file, "Not a directory"),
        (_dangling, "No such file"),
        (_circle, "Too many levels"),
        pytest.param(
            _closed,
            "Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything"),
        ),
    ],
)
def test_an_unreadable_file_is_not_missing(make: Callable[[Path], Path], cause: str, tmp_path: Path) -> None:
    """A path that was named and cannot be read is an error with the system's words; only one of nothing is missing."""
    with pytest.raises(StorageError, match=cause) as caught:
        rows(make(tmp_path))
    assert not isinstance(caught.value, MissingFileError)


def test_a_uri_is_read_as_a_path_is() -> None:
    """A file: URI is read in splits of any size."""
    assert rows(PARTITION.as_uri(), splitSize=4096) == rows(PARTITION)


def test_files_on_their_way_out_are_read_only_if_they_are_named(tmp_path: Path) -> None:
    """A segment with a suffix is not part of the log, unless that very file is named."""
    write_log(tmp_path / "orders-0", batch(5), name="00000000000000000005.log")
    deleted = write_log(tmp_path / "orders-0", batch(0), name="00000000000000000000.log.deleted")
    assert [row["offset"] for row in rows(tmp_path)] == [5]
    assert [row["offset"] for row in rows(deleted)] == [0]


def test_a_time_is_turned_into_an_offset(tmp_path: Path) -> None:
    """From the first record that is as new as the starting timestamp on, all are read, also older ones after it."""
    times = (100, 300, 200, 400)
    batches = [batch(index, timestamp=time) for index, time in enumerate(times)]
    write_log(tmp_path / "orders-0", *batches[:2])
    write_log(tmp_path / "orders-0", *batches[2:], name="00000000000000000002.log")
    assert [row["offset"] for row in rows(tmp_path, startingTimestamp=250)] == [1, 2, 3]
    assert [row["offset"] for row in rows(tmp_path, endingTimestamp=250)] == [0]
    by_time = '{"orders": {"0": 350}}'
    assert [row["offset"] for row in rows(tmp_path, startingOffsetsByTimestamp=by_time)] == [3]
    with pytest.raises(OptionError, match="no record of that time or later"):
        rows(tmp_path, startingTimestamp=500)
    assert rows(tmp_path, startingTimestamp=500, startingOffsetsByTimestampStrategy="latest") == []


def test_missing_offsets_are_a_loss(tmp_path: Path) -> None:
    """A starting offset before the log start fails, unless failOnDataLoss says otherwise."""
    write_log(tmp_path / "orders-0", batch(5), name="00000000000000000005.log")
    start = '{"orders": {"0": 2}}'
    with pytest.raises(OptionError, match="starts at 5, so that 2 is missing"):
        rows(tmp_path, startingOffsets=start)
    assert len(rows(tmp_path, startingOffsets=start, failOnDataLoss="false")) == 1


def test_snapshots_are_read_if_they_are_named_or_asked_for() -> None:
    """A directory gives its segments; the option adds the newest snapshot, or all."""
    metadata = GOLDEN / "mirror/data/n1/__cluster_metadata-0"
    assert not any(row["isSnapshot"] for row in rows(metadata, view="control"))
    newest = {row["file"] for row in rows(metadata, view="control", snapshots="newest") if row["isSnapshot"]}
    assert newest == {str(max(metadata.glob("*.checkpoint")))}
    every = {row["file"] for row in rows(metadata, view="control", snapshots="all") if row["isSnapshot"]}
    assert every == set(map(str, metadata.glob("*.checkpoint")))
    assert {row["file"] for row in rows(max(metadata.glob("*.checkpoint")), view="control")} == newest


def test_the_newest_snapshot_is_that_of_the_highest_epoch(tmp_path: Path) -> None:
    """As in a log, the newest is not the one that reaches furthest: that may be of a history that was given up."""
    log = tmp_path / "__cluster_metadata-0"
    for snapshot_id in (OffsetAndEpoch(100, 1), OffsetAndEpoch(50, 2), OffsetAndEpoch(40, 2)):
        name = f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}.checkpoint"
        write_log(log, snapshot_bytes(snapshot_id, value=str(snapshot_id).encode()), name=name)
    assert {Path(row["file"]).name for row in rows(log, view="records_ext", snapshots="newest")} == {
        f"{50:020}-{2:010}.checkpoint"
    }


def test_small_files_are_not_a_task_each(tmp_path: Path) -> None:
    """A least number of tasks is about what it says where there are more files than that."""
    for number in range(40):
        write_log(tmp_path / f"orders-{number}", batch(0))
    assert 4 <= len(splits(tmp_path, minPartitions=4)) <= 5


def test_relative_paths_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have other working directories, so they get absolute paths."""
    path = write_log(tmp_path / "orders-0", batch(0))
    monkeypatch.chdir(tmp_path)
    for relative in ("orders-0", "./orders-0/", ".", "orders-0/../orders-0", f"orders-0/{path.name}"):
        [[part]] = splits(relative)
        assert Path(part.path).is_absolute()
        assert Path(part.path).samefile(path)
