# SPDX-License-Identifier: Apache-2.0
"""Stores evidence for later runs: one Parquet file per bin, which the bin's task writes when it is done."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from raftlog.errors import StorageError
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
"""Columns of stored evidence. A final key belongs to one state of one file.

``slice`` and ``number`` are those of the run that made the evidence.
"""
EVIDENCE_COLUMNS: Final = (
    "key string, run_id string, slice int, number long, is_final boolean, path string, evidence string"
)
JUDGED: Final = ("slice", "number", "evidence")
"""Columns of the evidence that is judged."""
JUDGED_COLUMNS: Final = "slice int, number long, evidence string"


def evidence_path(folder: Path, run_id: str, bin_number: int) -> Path:
    """Return the path of the evidence that a run has of a bin."""
    return folder / f"{run_id}-{bin_number}.parquet"


def bins_done(folder: Path, run_id: str) -> set[int]:
    """Return the numbers of a run's bins whose evidence is stored."""
    return {int(path.stem.rpartition("-")[2]) for path in folder.glob(f"{run_id}-*.parquet")}


def keep_evidence(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of ``EVIDENCE`` durably; if another task has already stored this bin's evidence, they are dropped.

    Raises:
        StorageError: the disk failed. Nothing was stored.
    """
    with whole_file(path) as part:
        with pq.ParquetWriter(part, EVIDENCE, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        with part.open("rb") as written:
            os.fsync(written.fileno())


def kept_evidence(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the columns of ``JUDGED``, in batches as they were written.

    Raises:
        StorageError: they cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            for group in range(
                file.num_row_groups
            ):  # Group by group: across groups, every batch would have the same number of rows.
                yield from file.iter_batches(row_groups=[group], columns=list(JUDGED))
    except (OSError, pa.ArrowException) as error:
        raise StorageError(str(path), "read", str(error)) from error
