# SPDX-License-Identifier: Apache-2.0
"""How processes are started."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.golden_files import GOLDEN

_LOG = str(GOLDEN / "mirror/data/n1/__cluster_metadata-0/00000000000000000000.log")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists its threads")
def test_a_process_with_one_thread_forks() -> None:
    """A script of one thread gets its results from forks, which need no guard against being imported again."""
    script = f"""
        from raftlog.storage.reading.segment_reader import map_segments
        from raftlog.storage.reading.start_method import start_method

        def count_chunks(segment):
            return len(list(segment.chunks()))

        print(start_method(), *map_segments(count_chunks, [{_LOG!r}] * 3, processes=2))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fork", "1", "1", "1"]
