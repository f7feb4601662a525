# SPDX-License-Identifier: Apache-2.0
"""How far a stream has read: every record once, and a log that has parted from it is told."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DivergedStreamError, OptionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.strategies import SmallLog, small_logs
from raftlog.tools.spark.options import SourceOptions
from raftlog.tools.spark.planning import plan
from raftlog.tools.spark.reading import ReadRequest, read_split
from raftlog.tools.spark.stream_positions import list_logs
from raftlog.tools.spark.views import view_schema
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


@given(small_logs(), st.lists(st.integers(0, 2000), max_size=5), st.none() | st.integers(1, 5), st.integers(0, 8))
def test_every_record_comes_once_and_in_order(log: SmallLog, sizes: list[int], most: int | None, roll: int) -> None:
    """However the log grows between micro-batches, half batches included, and whatever the limit is."""
    roll = min(roll, len(log.batches))
    first = b"".join(log.batches[:roll])
    with TemporaryDirectory() as name:
        folder, found = Path(name), list[int]()
        write_log(folder / NAME)
        place = list_logs(_options(folder)).first()
        for size in [*sorted(sizes), len(log.data), *[len(log.data)] * (20 if most else 0)]:
            write_log(folder / NAME, log.data[: min(size, len(first))])
            if size > len(first):
                start = int.from_bytes(log.data[len(first) : len(first) + 8].ljust(8, b"\0"), "big")
                if len(log.data) >= len(first) + 8 and roll:
                    write_log(folder / NAME, log.data[len(first) : size], name=f"{start:020}.log")
                else:
                    write_log(folder / NAME, log.data[:size])
            end = list_logs(_options(folder)).latest(place, most)
            found += _read(folder, place, end)
            place = end
    assert found == [each[0] for each in plain_records(log.data)]


def _batches(*epochs: int) -> list[bytes]:
    return [_of_epoch(batch(offset), epoch) for offset, epoch in enumerate(epochs)]


def _of_epoch(data: bytes, epoch: int) -> bytes:
    return data[:12] + epoch.to_bytes(4, "big") + data[16:]


def test_a_log_that_has_parted_is_told(tmp_path: Path) -> None:
    """Truncated, or written anew in a later epoch: the error names the log and both places."""
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


def test_a_new_stream_starts_at_the_end_unless_told(tmp_path: Path) -> None:
    """As in Spark's Kafka source; and a log that comes later is read from its start."""
    write_log(tmp_path / NAME, *_batches(1, 1))
    options = SourceOptions.parse({"path": str(tmp_path)})
    start = list_logs(options).first()
    assert start == {NAME: OffsetAndEpoch(2, 1)}
    write_log(tmp_path / "orders-1", *_batches(3))
    end = list_logs(options).latest(start, None)
    assert end == {NAME: OffsetAndEpoch(2, 1), "orders-1": OffsetAndEpoch(1, 3)}
    assert _read(tmp_path, start, end) == [0]


def test_a_log_that_is_gone_or_there_twice_is_an_error(tmp_path: Path) -> None:
    """A stream reads one replica of each log, and one that is gone is a loss."""
    write_log(tmp_path / "n1" / NAME, *_batches(1))
    gone: dict[str, Any] = {"payments-0": OffsetAndEpoch(4, 1)}
    with pytest.raises(OptionError, match="payments-0 is gone"):
        list_logs(_options(tmp_path)).latest(gone, None)
    kept = list_logs(_options(tmp_path, failOnDataLoss="false")).latest(gone, None)
    assert kept["payments-0"] == gone["payments-0"]
    write_log(tmp_path / "n2" / NAME, *_batches(1))
    with pytest.raises(OptionError, match="one replica"):
        list_logs(_options(tmp_path))


def test_what_was_deleted_before_it_was_read_is_a_loss(tmp_path: Path) -> None:
    """The log start has passed the stream."""
    place = {NAME: OffsetAndEpoch(2, 1)}
    write_log(tmp_path / NAME, batch(5), name="00000000000000000005.log")
    with pytest.raises(OptionError, match="starts at 5, so that 2 is gone"):
        _read(tmp_path, place, {NAME: OffsetAndEpoch(6, 1)})
    assert _read(tmp_path, place, {NAME: OffsetAndEpoch(6, 1)}, failOnDataLoss="false") == [5]
