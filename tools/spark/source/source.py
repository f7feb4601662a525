# SPDX-License-Identifier: Apache-2.0
"""The data source ``raftlog``: segments and snapshots as DataFrames.

>>> spark.read.format("raftlog").option("view", "records").load("/var/lib/kafka/orders-0")  # doctest: +SKIP

This module has the classes that Spark calls. The options are in ``rows.options``, and the columns in ``rows.views``;
``planning`` divides files among tasks on the driver, and ``rows.reading`` is the work of a task. This module imports
little, since Spark imports it to look for a data source of any name.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from raftlog.tools.spark.source.file_partition import FilePartition, read_partition
from raftlog.tools.spark.source.worker_pickle import PickledForWorkers

if TYPE_CHECKING:
    from typing import NoReturn

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from raftlog.tools.spark.rows.options import SourceOptions
    from raftlog.tools.spark.source.planning import Listing


class RaftLogDataSource(PickledForWorkers, DataSource):
    """Segments and snapshots as rows. Spark creates an instance for each ``load``.

    Raises:
        OptionError: an option is misspelt, missing, or has a value that cannot be.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the source, for ``format``."""
        return "raftlog"

    def schema(self) -> "StructType":
        """Return the columns of the view that the options ask for.

        Raises:
            OptionError: an option is misspelt, missing, or has a value that cannot be.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        from raftlog.tools.spark.rows.views import view_schema

        return from_arrow_schema(view_schema(self._parsed()))

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Return a reader of the columns of a schema: all those of the view, or those that a user gave.

        Raises:
            OptionError: as ``schema``; and the view has no such column, or one of another type.
        """
        options = self._parsed()
        kind = RaftLogFilteringReader if options.pushdown else RaftLogReader
        return kind(options, _arrow_schema(options, schema))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the columns of a schema for a stream; raises as ``reader`` does."""
        from raftlog.tools.spark.source.stream import RaftLogStreamReader

        options = self._parsed()
        return RaftLogStreamReader(options, _arrow_schema(options, schema))

    def writer(self, schema: "StructType", overwrite: bool) -> "NoReturn":
        """Refuse to write.

        Raises:
            OptionError: always.
        """
        _refuse_to_write()

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "NoReturn":  # noqa: N802 - Spark's
        """Refuse to write; raises as ``writer`` does."""
        _refuse_to_write()

    def _parsed(self) -> "SourceOptions":
        from raftlog.tools.spark.rows.options import SourceOptions

        return SourceOptions.parse(self.options)


class RaftLogReader(PickledForWorkers, DataSourceReader):
    """Plans on the driver, and reads in tasks.

    Args:
        options: of the source.
        schema: the wanted columns, in order.
    """

    def __init__(self, options: "SourceOptions", schema: "pa.Schema") -> None:
        from raftlog.tools.spark.rows.filters import Hints
        from raftlog.tools.spark.source.data_loss import DataLoss

        self._options = options
        self._schema = schema
        self._hints = Hints()
        self._most_rows: int | None = None
        self._listing: Listing | None = None
        self._loss = DataLoss(fails=options.fails_on_loss)

    def partitions(self) -> list[InputPartition]:
        """Divide the wanted parts of logs among tasks.

        Raises:
            StorageError: a path does not exist, or cannot be read.
            OptionError: a topic, an offset or a timestamp was not found; or what is committed is wanted, and not known.
        """
        from raftlog.tools.spark.source.planning import list_partitions, plan

        if self._listing is None:
            self._listing = list_partitions(self._options)
            if self._options.committed_only:
                from raftlog.tools.spark.source.committed import committed_listing  # The audit comes with it.

                self._listing = committed_listing(self._listing)
        return [FilePartition(split) for split in plan(self._options, self._listing, self._hints, loss=self._loss)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a task; raises as ``read_partition`` does."""
        return read_partition(self._options, self._schema, self._hints, partition, self._most_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for workers, without the listing, which only the driver needs."""
        return self.__dict__ | {"_listing": None}


class RaftLogFilteringReader(RaftLogReader):
    """Skips what a query does not need. Spark refuses such a reader unless filter pushdown is enabled.

    Spark up to 4.3 calls ``pushFilters`` alone. The other methods have the names and the meaning that were proposed for
    later ones; a Spark that does not know them never calls them.

    Source: SPARK-51271 (filters), SPARK-51713 (columns), SPARK-58551 (limits).
    """

    def pushFilters(self, filters: "list[Any]") -> Iterable[Any]:  # noqa: N802 - Spark's name, as all here
        """Use filters as hints, and return all of them, so that Spark applies each again."""
        hints = self._hints
        for each in filters:
            column: tuple[str, ...] = getattr(each, "attribute", ())
            if len(column) == 1:
                hints = hints.narrowed(type(each).__name__, column[0], getattr(each, "value", None))
        self._hints = hints
        return filters

    def pruneColumns(self, requiredSchema: "StructType") -> "StructType":  # noqa: N802, N803
        """Read only the columns that a query needs, and return their schema.

        A struct has all of its fields. If no column is needed, one is read, since rows are still counted.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        from raftlog.tools.spark.rows.views import pruned_schema

        self._schema = pruned_schema(self._schema, [field.name for field in requiredSchema.fields])
        return from_arrow_schema(self._schema)

    def pushLimit(self, limit: int) -> bool:  # noqa: N802
        """Have each task stop after some rows; return whether they do. Spark applies the limit again.

        Rows that Spark filters afterwards do not count, and with a hint some of the rows may be such: then none stops.
        """
        from raftlog.tools.spark.rows.filters import Hints

        if self._hints != Hints() or limit < 0:
            return False
        self._most_rows = limit
        return True


def _refuse_to_write() -> "NoReturn":
    from raftlog.errors import OptionError

    raise OptionError("format", "raftlog reads logs and never writes them; write rows as parquet, delta or another")


def _arrow_schema(options: "SourceOptions", schema: "StructType") -> "pa.Schema":
    from pyspark.sql.pandas.types import from_arrow_schema

    from raftlog.errors import OptionError
    from raftlog.tools.spark.rows.views import asked_schema

    found = asked_schema(options, [(field.name, field.nullable) for field in schema.fields])
    known = {field.name: field.dataType.simpleString() for field in from_arrow_schema(found).fields}
    for field in schema.fields:
        asked_type, known_type = field.dataType.simpleString(), known[field.name]
        if asked_type != known_type:
            raise OptionError("schema", f"column {field.name} of view {options.view} is {known_type}, not {asked_type}")
    return found
