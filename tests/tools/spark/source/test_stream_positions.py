# SPDX-License-Identifier: Apache-2.0
"""The positions of a stream: every record is read once, and a diverged log is reported."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DivergedStreamError, OptionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.strategies import SmallLog, small_logs
from raftlog.tools.spark.rows.options import SourceOptions
from raftlog.tools.spark.rows.reading import ReadRequest, read_split
from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source.batch_places import BatchPlaces
from raftlog.tools.spark.source.planning import plan
from raftlog.tools.spark.source.stream_positions import list_logs
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import plain_records

NAME = "orders-0"


def _options(path: Path, **given: str) -> SourceOptions:
    return SourceOptions.parse({"path": str(path), "startingOffsets": "earliest"} | given)


def _read(path: Path, start: dict[str, OffsetAndEpoch], end: dict[str, OffsetAndEpoch], **given: str) -> list[int]:
    logs = list_logs(_options(path, **given))
    options = logs.between(start, end)
    request = ReadRequest("records", view_schema(options))
    splits = plan(options, logs.listing)
    return [row["offset"] for each in splits for rows in read_split(request, each) for row in rows.to_pylist()]


def _grow(folder: Path, log: SmallLog, size: int, roll: int) -> None:
    """Write the first bytes of a log, in two segments if it continues after some batches."""
    first = b"".join(log.batches[:roll])
    write_log(folder, log.data[: min(size, len(first))] if roll else log.data[:size])
    if roll and roll < len(log.batches) and size > len(first):
        write_log(folder, log.data[len(first) : size], name=f"{RecordBatch(log.batches[roll]).base_offset:020}.log")


@settings(max_examples=25)
@given(small_logs(), st.lists(st.integers(0, 2000), max_size=3), st.none() | st.integers(1, 20), st.integers(0, 8))
def test_every_record_comes_once_and_in_order(log: SmallLog, sizes: list[int], most: int | None, roll: int) -> None:
    """However the log grows between micro-batches, with partial batches, with any limit, with a cache or without."""
    with TemporaryDirectory() as name:
        folder, found, places = Path(name), list[int](), BatchPlaces()
        write_log(folder / NAME)
        place = list_logs(_options(folder)).first()
        for size in [*sorted(min(size, len(log.data)) for size in sizes), len(log.data)]:
            _grow(folder / NAME, log, size, min(roll, len(log.batches)))
            while True:
                end = list_logs(_options(folder)).latest(place, most)
                assert list_logs(_options(folder), places).latest(place, most) == end
                if end == place:
                    break
                found += _read(folder, place, end)
                place = end
    assert found == [each[0] for each in plain_records(log.data)]


@settings(max_examples=25)
@given(small_logs(), st.integers(1, 30), st.data())
def test_a_limit_holds_but_for_one_batch(log: SmallLog, most: int, data: st.DataObject) -> None:
    """A micro-batch ends where a batch does: with the last one within the limit, else with the first there is."""
    with TemporaryDirectory() as name:
        write_log(Path(name) / NAME, log.data)
        logs = list_logs(_options(Path(name)))
        ends = [0, *(RecordBatch(each).next_offset for each in log.batches)]
        start = data.draw(st.sampled_from(ends))
        behind = [end for end in ends if end > start]
        within = [end for end in behind if end <= start + most]
        end = logs.latest({NAME: OffsetAndEpoch(start, -1)}, most)[NAME].offset
        assert end == (within[-1] if within else min(behind, default=start))


def _batches(*epochs: int) -> list[bytes]:
    return [_of_epoch(batch(offset), epoch) for offset, epoch in enumerate(epochs)]


def _of_epoch(data: bytes, epoch: int) -> bytes:
    return data[:12] + epoch.to_bytes(4, "big") + data[16:]


def test_a_diverged_log_is_reported(tmp_path: Path) -> None:
    """Truncated, or written again in a later epoch: the error names the log and both positions."""
    write_log(tmp_path / NAME, *_batches(1, 1, 2))
    logs = list_logs(_options(tmp_path))
    place = logs.latest(logs.first(), None)
    assert place == {NAME: OffsetAndEpoch(3, 2)}
    for epochs, found in (((1, 1), OffsetAndEpoch(2, 1)), ((1, 1, 4, 4), OffsetAndEpoch(3, 4))):
        write_log(tmp_path / NAME, *_batches(*epochs))
        with pytest.raises(DivergedStreamError, match=NAME) as raised:
            list_logs(_options(tmp_path)).latest(place, None)
        assert (raised.value.offset, raised.value.epoch) == (3, 2)
        assert (raised.value.found_offset, raised.value.found_epoch) == (found.offset, found.epoch)
        with pytest.raises(DivergedStreamError):
            _read(tmp_path, place, place)
    write_log(tmp_path / NAME, *_batches(1, 1, 2, 5))
    assert list_logs(_options(tmp_path)).latest(place, None) == {NAME: OffsetAndEpoch(4, 5)}


def test_a_new_stream_starts_at_the_end_by_default(tmp_path: Path) -> None:
    """As in Spark's Kafka source; and a log that comes later is read from its start."""
    write_log(tmp_path / NAME, *_batches(1, 1))
    options = SourceOptions.parse({"path": str(tmp_path)})
    start = list_logs(options).first()
    assert start == {NAME: OffsetAndEpoch(2, 1)}
    write_log(tmp_path / "orders-1", *_batches(3))
    end = list_logs(options).latest(start, None)
    assert end == {NAME: OffsetAndEpoch(2, 1), "orders-1": OffsetAndEpoch(1, 3)}
    assert _read(tmp_path, start, end) == [0]


def test_a_stream_from_a_time_after_all_records_starts_at_the_end_if_the_strategy_is_latest(tmp_path: Path) -> None:
    """With startingOffsetsByTimestampStrategy latest, such a stream reads only records that are appended later."""
    write_log(tmp_path / NAME, *_batches(1, 1))
    options = SourceOptions.parse(
        {"path": str(tmp_path), "startingTimestamp": "9999999999999", "startingOffsetsByTimestampStrategy": "latest"}
    )
    assert list_logs(options).first() == {NAME: OffsetAndEpoch(2, 1)}


def test_a_log_that_is_missing_or_occurs_twice_is_an_error(tmp_path: Path) -> None:
    """A stream reads one replica of each log, and a missing one is a loss."""
    write_log(tmp_path / "n1" / NAME, *_batches(1))
    gone: dict[str, Any] = {"payments-0": OffsetAndEpoch(4, 1)}
    with pytest.raises(OptionError, match="payments-0 is missing"):
        list_logs(_options(tmp_path)).latest(gone, None)
    forgiving = list_logs(_options(tmp_path, failOnDataLoss="false"))
    kept = forgiving.latest(gone, None)
    assert kept["payments-0"] == gone["payments-0"]
    write_log(tmp_path / "n2" / NAME, *_batches(1))
    with pytest.raises(OptionError, match="one replica"):
        list_logs(_options(tmp_path))


def test_files_deleted_before_reading_are_a_loss(tmp_path: Path) -> None:
    """The log start has passed the stream."""
    place = {NAME: OffsetAndEpoch(2, 1)}
    write_log(tmp_path / NAME, batch(5), name="00000000000000000005.log")
    with pytest.raises(OptionError, match="starts at 5, so that 2 is missing"):
        _read(tmp_path, place, {NAME: OffsetAndEpoch(6, 1)})
    assert _read(tmp_path, place, {NAME: OffsetAndEpoch(6, 1)}, failOnDataLoss="false") == [5]


def test_records_in_a_snapshot_are_still_committed(tmp_path: Path) -> None:
    """If the record before a position is missing, a snapshot's name has its epoch, and the record after bounds it."""
    place = {NAME: OffsetAndEpoch(5, 2)}
    write_log(tmp_path / NAME, name="00000000000000000005.log")
    snapshot = write_log(tmp_path / NAME, name="00000000000000000005-0000000002.checkpoint")
    logs = list_logs(_options(tmp_path))
    assert logs.latest(place) == place
    assert logs.latest({}) == place
    with pytest.raises(DivergedStreamError, match="offset 5 of epoch 1"):
        logs.latest({NAME: OffsetAndEpoch(5, 1)})
    snapshot.unlink()
    write_log(tmp_path / NAME, _of_epoch(batch(5), 1), name="00000000000000000005.log")
    with pytest.raises(DivergedStreamError, match="offset 5 of epoch 2"):
        list_logs(_options(tmp_path)).latest(place)
    assert list_logs(_options(tmp_path)).latest({NAME: OffsetAndEpoch(5, 1)}) == {NAME: OffsetAndEpoch(6, 1)}


def test_compaction_is_no_divergence(tmp_path: Path) -> None:
    """A batch that was read, and then compacted away, leaves a gap; its epoch must fit the batches around it."""
    write_log(tmp_path / NAME, _of_epoch(batch(0), 1), _of_epoch(batch(9), 4))
    logs = list_logs(_options(tmp_path))
    assert logs.latest({NAME: OffsetAndEpoch(7, 3)}) == {NAME: OffsetAndEpoch(10, 4)}
    for epoch in (0, 5):
        with pytest.raises(DivergedStreamError):
            logs.latest({NAME: OffsetAndEpoch(7, epoch)})


def test_a_batch_that_was_rewritten_is_not_remembered(tmp_path: Path) -> None:
    """Cached batches are used only as long as they exist."""
    places = BatchPlaces()
    path = write_log(tmp_path / NAME, *_batches(1, 1, 1))
    assert list_logs(_options(tmp_path), places).latest({}) == {NAME: OffsetAndEpoch(3, 1)}
    path.write_bytes(b"".join(_batches(1, 2)))
    assert list_logs(_options(tmp_path), places).latest({}) == {NAME: OffsetAndEpoch(2, 2)}
    path.write_bytes(b"".join(_batches(1, 2, 3, 3)))
    assert list_logs(_options(tmp_path), places).latest({}) == {NAME: OffsetAndEpoch(4, 3)}


def test_a_stream_has_no_end_and_no_snapshots(tmp_path: Path) -> None:
    """An end is an error; a snapshot's records are those of the log once more, and not read."""
    write_log(tmp_path / NAME, *_batches(1))
    write_log(tmp_path / NAME, batch(0), name="00000000000000000001-0000000001.checkpoint")
    with pytest.raises(OptionError, match="a stream has no end"):
        list_logs(_options(tmp_path, endingOffsets="latest"))
    start, end = {NAME: OffsetAndEpoch(0, -1)}, {NAME: OffsetAndEpoch(1, 1)}
    assert _read(tmp_path, start, end, snapshots="all") == [0]
    assert _read(tmp_path, end, end, snapshots="all") == []
