# SPDX-License-Identifier: Apache-2.0
"""Evidence as stored for the next run: one Parquet file per bin, which its task writes when it is done."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from raftlog.errors import StorageError
from raftlog.storage.reading.remote_file_system import open_remote
from raftlog.tools.auditing.object_paths import ObjectPath, OutputPath
from raftlog.tools.spark.audit.whole_file import whole_file

EVIDENCE: Final = pa.schema(
    [
        ("key", pa.string()),
        ("run_id", pa.string()),
        ("slice", pa.int32()),
        ("number", pa.int64()),
        ("is_final", pa.bool_()),
        ("path", pa.string()),
        ("evidence", pa.string()),
    ]
)
"""Columns of the evidence. A key whose ``is_final`` is true identifies the evidence of one file.

``slice`` and ``number`` are those of the run that surveyed the file.
"""
EVIDENCE_COLUMNS: Final = (
    "key string, run_id string, slice int, number long, is_final boolean, path string, evidence string"
)
JUDGED: Final = ("slice", "number", "evidence")
"""The columns that a judgement needs."""
JUDGED_COLUMNS: Final = "slice int, number long, evidence string"


def evidence_path(folder: OutputPath, run_id: str, bin_number: int) -> OutputPath:
    """Return the path for the evidence of a bin."""
    return folder / f"{run_id}-{bin_number}.parquet"


def bins_done(folder: OutputPath, run_id: str) -> set[int]:
    """Return the numbers of the bins of a run whose evidence is stored."""
    return {int(path.stem.rpartition("-")[2]) for path in folder.glob(f"{run_id}-*.parquet")}


def keep_evidence(path: OutputPath, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of ``EVIDENCE`` durably. If another task has written the file meanwhile, these rows are dropped.

    Raises:
        StorageError: the disk failed. Nothing was written.
    """
    with whole_file(path) as part, part.open("wb") as file:
        with pq.ParquetWriter(file, EVIDENCE, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        if not isinstance(path, ObjectPath):
            file.flush()
            os.fsync(file.fileno())


def kept_evidence(path: OutputPath) -> Iterator[pa.RecordBatch]:
    """Yield the columns of ``JUDGED``, as ``stored_columns`` does."""
    return stored_columns(path, JUDGED)


def stored_columns(path: OutputPath, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file, in the batches in which they were written.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with _opened(path) as source, pq.ParquetFile(source) as file:
            for group in range(file.num_row_groups):  # Across groups, batches have a fixed number of rows of any size.
                yield from file.iter_batches(row_groups=[group], columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise StorageError(str(path), "read", str(error)) from error


def _opened(path: OutputPath) -> contextlib.AbstractContextManager[Any]:
    return open_remote(path.uri) if isinstance(path, ObjectPath) else contextlib.nullcontext(path)
