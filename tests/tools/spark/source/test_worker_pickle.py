# SPDX-License-Identifier: Apache-2.0
"""Objects that Spark sends to a worker can be opened there, or fail with one line that says why."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle

from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source.source import RaftLogDataSource, RaftLogFilteringReader, RaftLogReader
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import source_options

_WITHOUT_RAFTLOG = """
import pickle, sys
sys.modules["raftlog"] = None
try:
    pickle.load(sys.stdin.buffer)
except ImportError as error:
    print(error)
"""


def _pickled(path: Path) -> bytes:
    options = source_options(path)
    reader = RaftLogFilteringReader(options, view_schema(options))
    reader.partitions()
    data: bytes = cloudpickle.dumps(reader)  # type: ignore[no-untyped-call]
    return data


def _source(path: Path) -> bytes:
    data: bytes = cloudpickle.dumps(RaftLogDataSource({"path": str(path)}))  # type: ignore[no-untyped-call]
    return data


def test_a_reader_reads_elsewhere(tmp_path: Path) -> None:
    """A reader that was sent gives the same rows, without the listing."""
    write_log(tmp_path / "orders-0", batch(0), batch(1))
    reader: RaftLogReader = cloudpickle.loads(_pickled(tmp_path))
    assert type(reader) is RaftLogFilteringReader
    assert vars(reader)["_listing"] is None
    assert sum(len(rows) for partition in reader.partitions() for rows in reader.read(partition)) == 2


@pytest.mark.parametrize("pickled", [_pickled, _source])
def test_a_python_without_the_package(tmp_path: Path, pickled: Callable[[Path], bytes]) -> None:
    """A worker whose Python lacks raftlog says so in one line, which says what to do: Spark carries both to it."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_RAFTLOG], input=pickled(tmp_path), capture_output=True, check=True
    )
    [line] = done.stdout.decode().splitlines()
    assert line.startswith(f"the Python of a worker, {sys.executable}, cannot run raftlog (")
    assert "pip install 'raftlog[spark]'" in line
