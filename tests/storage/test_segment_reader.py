# SPDX-License-Identifier: Apache-2.0
"""Segments in parallel processes, from a process of one thread and from one of two."""

import multiprocessing
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
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


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists its threads")
def test_a_process_with_one_thread_forks() -> None:
    """A script of one thread gets its results from forks, which need no guard against being imported again."""
    script = f"""
        from raftlog.storage import segment_reader

        def count_chunks(segment):
            return len(list(segment.chunks()))

        print(segment_reader.start_method(), *segment_reader.map_segments(count_chunks, [{_LOG!r}] * 3, processes=2))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fork", "1", "1", "1"]
