# SPDX-License-Identifier: Apache-2.0
"""Evidence as it is kept for the next run: a file of Parquet for each bin, which its task writes once it is done."""

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
"""What surveys found: of one file by each key that is final.

``slice`` and ``number`` are those of the run that found it.
"""
EVIDENCE_COLUMNS: Final = (
    "key string, run_id string, slice int, number long, is_final boolean, path string, evidence string"
)
JUDGED: Final = ("slice", "number", "evidence")
"""What is judged of it."""
JUDGED_COLUMNS: Final = "slice int, number long, evidence string"


def evidence_path(folder: Path, run_id: str, bin_number: int) -> Path:
    """Return the path of what a run has found in a bin."""
    return folder / f"{run_id}-{bin_number}.parquet"


def bins_done(folder: Path, run_id: str) -> set[int]:
    """Return the numbers of the bins of a run whose evidence is there."""
    return {int(path.stem.rpartition("-")[2]) for path in folder.glob(f"{run_id}-*.parquet")}


def keep_evidence(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of ``EVIDENCE``, and make them last; where others are kept by then, these are dropped.

    Raises:
        StorageError: the disk failed. Nothing is kept.
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
            for group in range(file.num_row_groups):  # Across groups, batches would be of so many rows, however long.
                yield from file.iter_batches(row_groups=[group], columns=list(JUDGED))
    except (OSError, pa.ArrowException) as error:
        raise StorageError(str(path), "read", str(error)) from error
