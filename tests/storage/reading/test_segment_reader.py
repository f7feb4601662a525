# SPDX-License-Identifier: Apache-2.0
"""Segments: what bounds leave of them, and many in parallel processes, from one thread and from one of two."""

import multiprocessing
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.columns.columns import Chunk
from raftlog.storage.reading.segment_reader import Segment, map_segments, open_segment
from tests.consumer_logs import ConsumerLog, Step, steps
from tests.golden_files import GOLDEN
from tests.storage.transaction_files import write_segments
from tests.tools.made_logs import write_log

_LOG = str(GOLDEN / "mirror/data/n1/__cluster_metadata-0/00000000000000000000.log")


def count_chunks(segment: Segment) -> int:
    """Return how many pieces a segment has."""
    return len(list(segment.chunks()))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_process_with_threads_spawns_others_without_fork(processes: int) -> None:
    """Results come in the order of the paths; a fork is not taken while a second thread runs."""
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    try:
        with mock.patch.object(multiprocessing, "get_context", wraps=multiprocessing.get_context) as started:
            assert list(map_segments(count_chunks, [_LOG] * 3, processes=processes)) == [1] * 3
    finally:
        is_over.set()
        thread.join()
    assert [call.args for call in started.call_args_list] == [("spawn",)] * (processes - 1)


@given(
    steps,
    st.lists(st.integers(0, 14), max_size=2, unique=True),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "from_offset": st.integers(0, 40),
            "to_offset": st.integers(0, 40),
            "data_only": st.booleans(),
            "read_committed": st.booleans(),
        },
    ),
)
def test_segments_of_a_log_give_what_a_consumer_of_it_sees(
    steps: list[Step], rolls: list[int], has_files: bool, bounds: Any
) -> None:
    """Each segment knows the transactions of the whole log, by its files or without; together they are the log."""
    log = ConsumerLog(steps)
    with TemporaryDirectory() as folder:
        paths = write_segments(Path(folder) / "orders-0", log, rolls, has_files=has_files)
        found, objects, marks = [], [], []
        for path in paths:
            with open_segment(str(path)) as segment:
                for chunk in segment.chunks(("offset", "is_aborted"), **bounds):
                    assert isinstance(chunk, Chunk)
                    assert chunk.records is not None
                    found += chunk.records.columns["offset"].tolist()
                    marks += chunk.records.columns["is_aborted"].tolist()
                objects += [record.offset for record in segment.records(**bounds)]
    expected = log.seen(**bounds)
    assert found == objects == [each.offset for each in expected]
    assert marks == [each.is_aborted for each in expected]


@pytest.mark.parametrize("at", [*range(165, 175), 239, 240, 241])
def test_indexes_do_not_move_a_bound(at: int) -> None:
    """In a log with indexes, which say where to begin, the first record is the first that is asked for."""
    path = str(GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0/00000000000000000000.log")
    with open_segment(path) as segment:
        everything = [record.offset for record in segment.records(data_only=False)]
        assert [record.offset for record in segment.records(from_offset=at, data_only=False)] == [
            offset for offset in everything if offset >= at
        ]
        found = list(segment.chunks(("offset",), from_offset=at, data_only=False))
    offsets = [offset for chunk in found if isinstance(chunk, Chunk) for offset in chunk.records.columns["offset"]]  # type: ignore[union-attr]
    assert offsets == [offset for offset in everything if offset >= at]


def test_a_file_of_another_name_is_a_log_of_its_own(tmp_path: Path) -> None:
    """A file without a segment's name has only its own transactions, whatever files are beside it."""
    log = ConsumerLog([Step("write"), Step("plain"), Step("abort")])
    other = ConsumerLog([Step("write", 2)])
    write_log(tmp_path, *other.batches)
    path = write_log(tmp_path, *log.batches, name="copy-of-a-log")
    with open_segment(str(path)) as segment:
        assert [record.offset for record in segment.records(read_committed=True)] == [2, 3]


def test_a_segment_beside_it_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Which records are committed is not guessed where a segment of the log does not open."""
    log = ConsumerLog([Step("write"), Step("plain"), Step("abort")])
    path = write_log(tmp_path, *log.batches)
    (tmp_path / f"{log.end_offset:020}.log").mkdir()
    with open_segment(str(path)) as segment:
        assert [record.offset for record in segment.records()] == [0, 1, 2, 3]
        with pytest.raises(StorageError):
            list(segment.records(read_committed=True))
