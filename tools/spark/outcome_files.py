# SPDX-License-Identifier: Apache-2.0
"""What tasks have left for the driver: it reads one outcome at a time, in the order of the slices."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from raftlog.errors import StorageError
from raftlog.tools.spark.executor_work import Outcome


def _in_order(path: Path) -> tuple[int, str]:
    number = path.name.split("-")[1]
    return len(number), number  # Five digits with zeros before them, and more from the 100,000th task on.


def outcomes_in(folder: Path) -> Iterator[Outcome]:
    """Yield the outcomes in a folder that Spark has written: the name of each file begins with its task's number.

    Raises:
        StorageError: they cannot be read.
    """
    try:
        for path in sorted(folder.glob("part-*.parquet"), key=_in_order):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=1):
                    yield from (pickle.loads(value.as_py()) for value in batch.column("outcome"))  # noqa: S301 - ours
    except (OSError, pa.ArrowException) as error:
        raise StorageError(str(folder), "read", str(error)) from error
