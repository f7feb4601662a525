# SPDX-License-Identifier: Apache-2.0
"""Records below the log start that a broker stored are not returned, as if their segments were deleted."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.checkpoint_files import PartitionOffset, write_offset_checkpoint
from raftlog.testing.strategies import SmallLog, small_logs
from raftlog.tools.spark.source.stream_positions import list_logs
from tests.tools.made_logs import TIMESTAMP, batch, write_log
from tests.tools.spark.source_reads import plain_records, rows, source_options

CHECKPOINT = "log-start-offset-checkpoint"
NAME = "orders-0"


def _start_at(folder: Path, offset: int, topic: str = "orders") -> None:
    (folder / CHECKPOINT).write_bytes(write_offset_checkpoint([PartitionOffset(topic, 0, offset)]))


def _offsets(path: Path, **options: Any) -> list[int]:
    return [row["offset"] for row in rows(path, **options)]


@given(small_logs(), st.integers(0, 20), st.integers(0, 20), st.integers(0, 8), st.integers(1, 300))
def test_rows_begin_at_the_log_start(log: SmallLog, start: int, wanted: int, roll: int, size: int) -> None:
    """Every record from the log start on is read, none below it, wherever segments, parts and a wanted start are."""
    roll = min(roll, len(log.batches) - 1) if log.batches else 0
    expected = [each[0] for each in plain_records(log.data) if each[0] >= start]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / NAME, *log.batches[:roll])
        if roll:
            base = RecordBatch(log.batches[roll]).base_offset
            write_log(folder / NAME, *log.batches[roll:], name=f"{base:020}.log")
        else:
            write_log(folder / NAME, log.data)
        _start_at(folder, start)
        assert _offsets(folder, splitSize=size) == _offsets(folder / NAME, splitSize=size) == expected
        begin: dict[str, Any] = {"startingOffsets": f'{{"orders": {{"0": {wanted}}}}}', "failOnDataLoss": "false"}
        assert _offsets(folder, splitSize=size, **begin) == [each for each in expected if each >= wanted]
        whole = [each[0] for each in plain_records(log.data)]
        assert _offsets(folder, splitSize=size, includeDeletedRecords="true") == whole


def test_a_start_within_a_batch(tmp_path: Path) -> None:
    """A batch is divided, as consumers do; the offset before the log start is missing, the log start is not."""
    write_log(tmp_path / NAME, batch(0, [b"a", b"b", b"c"]), batch(3))
    _start_at(tmp_path, 2)
    assert _offsets(tmp_path) == [2, 3]
    assert _offsets(tmp_path, startingOffsets='{"orders": {"0": 2}}') == [2, 3]
    with pytest.raises(OptionError, match="orders-0 starts at 2, so that 1 is missing"):
        _offsets(tmp_path, startingOffsets='{"orders": {"0": 1}}')


def test_the_last_record_and_the_end_as_log_start(tmp_path: Path) -> None:
    """All records but the last may be deleted, or all of them; a start after the log's end leaves none either."""
    write_log(tmp_path / NAME, *map(batch, range(4)))
    for start, expected in ((3, [3]), (4, []), (5, [])):
        _start_at(tmp_path, start)
        assert _offsets(tmp_path) == expected
        assert list_logs(source_options(tmp_path)).first() == {
            NAME: OffsetAndEpoch(max(start, 4), 1 if start <= 4 else -1)
        }


def test_timestamps_find_no_deleted_record(tmp_path: Path) -> None:
    """The first record as new as a timestamp is one that a broker would return."""
    write_log(tmp_path / NAME, batch(0, [b"a", b"b", b"c"], timestamp=TIMESTAMP + 100), batch(3, timestamp=TIMESTAMP))
    _start_at(tmp_path, 1)
    assert _offsets(tmp_path, startingTimestamp=TIMESTAMP) == [1, 2, 3]
    assert _offsets(tmp_path, endingTimestamp=TIMESTAMP + 102) == [1]
    _start_at(tmp_path, 3)
    with pytest.raises(OptionError, match="no record of that time or later"):
        _offsets(tmp_path, startingTimestamp=TIMESTAMP + 1)


def test_a_stream_starts_at_the_log_start(tmp_path: Path) -> None:
    """A new one begins there; one whose place is before it has lost records, and goes on there if that is forgiven."""
    write_log(tmp_path / NAME, *map(batch, range(4)))
    _start_at(tmp_path, 2)
    logs = list_logs(source_options(tmp_path, startingOffsets="earliest"))
    assert logs.first() == {NAME: OffsetAndEpoch(2, 1)}
    assert logs.latest({}, 1) == {NAME: OffsetAndEpoch(3, 1)}
    assert logs.latest({NAME: OffsetAndEpoch(2, 1)}) == {NAME: OffsetAndEpoch(4, 1)}
    with pytest.raises(OptionError, match="starts at 2, so that 1 is missing"):
        logs.latest({NAME: OffsetAndEpoch(1, 1)})
    forgiving = list_logs(source_options(tmp_path, failOnDataLoss="false"))
    assert forgiving.latest({NAME: OffsetAndEpoch(1, 1)}, 1) == {NAME: OffsetAndEpoch(3, 1)}


def test_logs_without_a_start_of_their_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A raft log, a file that is named, another topic's entry, and a checkpoint that cannot be read hide nothing."""
    path = write_log(tmp_path / NAME, *map(batch, range(3)))
    write_log(tmp_path / "__cluster_metadata-0", *map(batch, range(3)))
    _start_at(tmp_path, 2, "__cluster_metadata")
    assert len(rows(tmp_path)) == 6
    _start_at(tmp_path, 2)
    assert _offsets(path) == [0, 1, 2]
    assert _offsets(tmp_path, subscribe="orders") == [2]
    assert caplog.records == []
    (tmp_path / CHECKPOINT).write_bytes(b"7\nx\n")
    assert _offsets(tmp_path, subscribe="orders") == [0, 1, 2]
    [line] = [record.message for record in caplog.records]
    assert line.startswith(str(tmp_path / CHECKPOINT))
