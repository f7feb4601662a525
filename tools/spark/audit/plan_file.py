# SPDX-License-Identifier: Apache-2.0
"""The plan: which stored evidence a run reuses, with its slice and number in this run.

The driver writes the plan while it lists files, so that it holds only a few rows. Evidence from surveys of this run is
not in the plan, since it has its slice and number.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

PLAN: Final = pa.schema([("slice", pa.int32()), ("number", pa.int64()), ("key", pa.string())])
PLAN_COLUMNS: Final = "slice int, number long, key string"
_ROW_GROUP_COUNT: Final = 65_536


class PlanFile:
    """Writes the plan; a context manager.

    Args:
        path: of the file.

    Attributes:
        count: number of keys in the plan.
    """

    def __init__(self, path: Path) -> None:
        self.count = 0
        self._writer = pq.ParquetWriter(path, PLAN, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, slice_number: int, number: int, key: str) -> None:
        """Add a file whose stored evidence is reused.

        Args:
            slice_number: of the slice that has its partition.
            number: of the file, in the order in which files were listed.
            key: of its evidence.
        """
        self._rows.append({"slice": slice_number, "number": number, "key": key})
        self.count += 1
        if len(self._rows) == _ROW_GROUP_COUNT:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, PLAN))
        self._rows = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._flush()
        self._writer.close()
