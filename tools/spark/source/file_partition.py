# SPDX-License-Identifier: Apache-2.0
"""A split in the form that Spark sends to a task, and the function with which the task reads it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from raftlog.tools.spark.rows.filters import Hints
    from raftlog.tools.spark.rows.options import SourceOptions
    from raftlog.tools.spark.rows.parts import Split


class FilePartition(InputPartition):
    """The input of one task.

    Args:
        split: the parts of files to read.
    """

    def __init__(self, split: "Split") -> None:
        super().__init__(split)
        self.split = split


def read_partition(
    options: "SourceOptions",
    schema: "pa.Schema",
    hints: "Hints",
    partition: InputPartition,
    most_rows: int | None = None,
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a task.

    Args:
        options: of the source.
        schema: the wanted columns, in order.
        hints: what wanted rows have in common.
        partition: the split; any other partition, which Spark makes if there is nothing to read, has no rows.
        most_rows: the number of rows after which to stop, or None.

    Raises:
        DecodeError: there is damage, and the mode is FAILFAST; path, position and offset locate it.
        StorageError: a file is missing or cannot be read, and ``failOnDataLoss`` is true.
        MissingExtraError: a codec's package is not installed on the worker.
        OptionError: there is a null in a column that the schema calls NOT NULL.
    """
    from raftlog.tools.spark.rows.reading import ReadRequest, read_split
    from raftlog.tools.spark.worker_gc import settle

    if isinstance(partition, FilePartition):
        request = ReadRequest(
            options.view, schema, options.mode, options.fails_on_loss, options.redact, hints, most_rows
        )
        yield from read_split(request, partition.split)
        settle("reading")
