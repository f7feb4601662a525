# SPDX-License-Identifier: Apache-2.0
"""The form in which Spark sends a split to a task, and the task's work."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from raftlog.tools.spark.rows.filters import Hints
    from raftlog.tools.spark.rows.options import SourceOptions
    from raftlog.tools.spark.rows.parts import Split


class FilePartition(InputPartition):
    """What one task reads.

    Args:
        split: the parts of files.
    """

    def __init__(self, split: "Split") -> None:
        super().__init__(split)
        self.split = split


def read_partition(
    options: "SourceOptions", schema: "pa.Schema", hints: "Hints", partition: InputPartition
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a task.

    Args:
        options: what the user asks for.
        schema: the wanted columns, in order.
        hints: bounds on the wanted rows, from the query's filters.
        partition: the split; if there is nothing to read, Spark passes an instance of its own class.

    Raises:
        DecodeError: there is damage, and the mode is FAILFAST; it has path, position and offset.
        StorageError: a file was deleted or cannot be read.
        MissingExtraError: a codec's package is not installed on the worker.
        OptionError: a column that the schema declares NOT NULL has a null.
    """
    from raftlog.tools.spark.rows.reading import ReadRequest, read_split
    from raftlog.tools.spark.worker_gc import settle

    if isinstance(partition, FilePartition):
        request = ReadRequest(options.view, schema, options.mode, options.fails_on_loss, options.redact, hints)
        yield from read_split(request, partition.split)
        settle("reading")
