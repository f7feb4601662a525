# SPDX-License-Identifier: Apache-2.0
"""The two programs that answer which keys are written most often: ``raftlog query``, and the least that does the same.

The latter decodes the keys of a segment with the kernel, each to a column of Arrow, and has DuckDB group the keys of a
Parquet file with the same records. Both run without pandas, which the extra ``sql`` does not install: where it is
there, pyarrow imports it for an array of its own, and that is no part of either program. Both collect garbage as
seldom as the command does, and end at once.
"""

import importlib.abc
import os
import sys
from collections.abc import Sequence
from typing import Final

from raftlog.records.columns.columns import Chunk
from raftlog.storage.reading.segment_reader import open_segment
from raftlog.tools import command_line
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom

_GROUPED: Final = "SELECT {column}, count(*) AS n FROM {source} GROUP BY key ORDER BY n DESC, key LIMIT 5"
QUESTION: Final = _GROUPED.format(column="key", source="records")
"""What ``raftlog query`` is asked."""


class _Hidden(importlib.abc.MetaPathFinder):
    """Lets a package seem not to be installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def reference(segment: str, parquet: str) -> None:
    """Decode the keys of a segment, group those of a Parquet file, and print the answer as ``raftlog query`` does."""
    import duckdb

    count = 0
    with open_segment(segment) as opened:
        for chunk in opened.chunks(("key",)):
            assert isinstance(chunk, Chunk)
            assert chunk.records is not None
            count += len(chunk.records.binary("key"))
    with duckdb.connect() as connection:
        sql = _GROUPED.format(column="decode(key)", source="read_parquet($path)")
        rows = connection.execute(sql, {"path": parquet}).fetchall()
        (total,) = connection.execute("SELECT count(*) FROM read_parquet($path)", {"path": parquet}).fetchall()
    assert total == (count,)
    sys.stdout.writelines(["key,n\n", *(f"{key},{number}\n" for key, number in rows)])


def main(arguments: Sequence[str]) -> None:
    """Run one of the two: ``query DIR`` or ``reference SEGMENT PARQUET``."""
    sys.meta_path.insert(0, _Hidden("pandas"))
    if arguments[0] == "reference":
        collect_garbage_seldom()
        reference(arguments[1], arguments[2])
        sys.stdout.flush()
        os._exit(0)
    else:
        sys.argv = ["raftlog", "query", QUESTION, arguments[1], "--format", "csv"]
        command_line.run_process()


if __name__ == "__main__":
    main(sys.argv[1:])
