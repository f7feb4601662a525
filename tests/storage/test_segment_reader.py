# SPDX-License-Identifier: Apache-2.0
"""Segments in parallel processes, from a process of one thread and from one of two."""

import multiprocessing
import threading
from unittest import mock

import pytest

from raftlog.storage.segment_reader import Segment, map_segments
from tests.golden_files import GOLDEN

_LOG = str(GOLDEN / "mirror/data/n1/__cluster_metadata-0/00000000000000000000.log")


def count_chunks(segment: Segment) -> int:
    """Return how many pieces a segment has."""
    return len(list(segment.chunks()))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_process_with_threads_starts_others_anew(processes: int) -> None:
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
