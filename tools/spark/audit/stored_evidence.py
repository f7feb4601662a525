# SPDX-License-Identifier: Apache-2.0
"""The stored evidence, and the plan that says which of it is reused, as DataFrames.

Spark itself reads and writes files that driver and workers share. Objects in a store are read and written by Python, in
tasks, since Spark would need a connector and a configuration of its own for them.
"""

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from raftlog.errors import StorageError
from raftlog.tools.auditing.object_paths import ObjectPath, OutputPath
from raftlog.tools.spark.audit.evidence_files import EVIDENCE, EVIDENCE_COLUMNS, keep_evidence, stored_columns
from raftlog.tools.spark.audit.plan_file import PLAN_COLUMNS
from raftlog.tools.spark.spark_paths import path_to_read, path_to_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDED: Final = "folded"
_REPLACED: Final = "replaced"
_PATHS: Final = "path string"


def plan_frame(spark: "SparkSession", plan: Path) -> "DataFrame":
    """Return a plan in a folder that driver and workers share."""
    return spark.read.schema(PLAN_COLUMNS).parquet(path_to_read(plan))


def local_plan_frame(spark: "SparkSession", plan: Path) -> "DataFrame":
    """Return a plan that only the driver sees."""
    return spark.createDataFrame(pq.read_table(plan))


def evidence_frame(spark: "SparkSession", folder: OutputPath) -> "DataFrame":
    """Return all evidence of a folder, with the columns of ``EVIDENCE``."""
    if isinstance(folder, Path):
        return spark.read.schema(EVIDENCE_COLUMNS).parquet(path_to_read(folder))
    paths = [str(path) for path in folder.glob("*.parquet")]
    files = spark.createDataFrame([(path,) for path in paths], _PATHS).repartition(max(1, len(paths)))
    return files.mapInArrow(_read_objects, EVIDENCE_COLUMNS)


def replace_evidence(kept: "DataFrame", folder: OutputPath, work: OutputPath) -> None:
    """Replace all evidence of a folder.

    Args:
        kept: the evidence that is to be there, in a partition per file.
        folder: of the evidence.
        work: a folder for what is not finished.

    Raises:
        StorageError: the disk failed. The next run surveys again what is missing.
    """
    if isinstance(folder, ObjectPath):
        # What is there twice after a kill is evidence of the same files: one of each is used.
        before = list(folder.glob("*.parquet"))
        kept.mapInArrow(_ObjectWriter(folder).__call__, _PATHS).collect()
        for path in before:
            path.unlink(missing_ok=True)
        return
    folded = Path(str(work), _FOLDED)
    kept.write.option("compression", "zstd").parquet(path_to_write(folded))
    try:
        # After a kill between the two renames, the next run surveys everything, which costs only time.
        folder.replace(Path(str(work), _REPLACED))
        folded.replace(folder)
    except OSError as error:
        raise StorageError(str(folder), "write", error.strerror or str(error)) from error


def _read_objects(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch["path"].to_pylist():
            yield from stored_columns(ObjectPath(path), EVIDENCE.names)


@attrs.frozen
class _ObjectWriter:
    """Writes a partition of evidence to an object. Spark pickles it for the workers.

    Attributes:
        folder: for the object.
    """

    folder: ObjectPath

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read rows of ``EVIDENCE``, and yield the path of the object."""
        path = self.folder / f"folded-{secrets.token_hex(8)}.parquet"
        keep_evidence(path, (batch.cast(EVIDENCE) for batch in batches))
        yield pa.RecordBatch.from_pydict({"path": [str(path)]})
