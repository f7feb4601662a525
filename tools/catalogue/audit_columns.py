# SPDX-License-Identifier: Apache-2.0
r"""The columns of the tables of an audit's results, apart from what makes their rows: that is slow to import.

Each row has the ``run_id`` of its run; a run is complete once it is in ``runs``. Times are UTC, in ms; sizes and
positions are bytes; offsets are inclusive unless a column says otherwise. In a path that is not valid Unicode, the
invalid bytes are ``\udcXX``. All engines write the same tables.

======================  ================================================================================================
``runs``                one row per run: the audited paths, the time and the outcome
``checks``              one row per rule and run: ``pass``, ``fail``, ``skipped`` (there was no input that it applies
                        to), or ``error`` (it found nothing, but something could not be read)
``findings``            one row per finding, with its place and a command that shows it
``voter_timeline``      one row per voter set of a raft log, by offset: the set, and its changes
``epochs``              one row per epoch of a raft log: its leader, its offsets, and the votes
======================  ================================================================================================
"""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from raftlog.errors import MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

TABLES: Final = ("runs", "checks", "findings", "voter_timeline", "epochs")
"""The names of the tables; the first one is the table that completes a run."""


_LOG: Final = {"run_id": "text", "cluster_id": "text", "topic": "text", "partition": "int"}

COLUMNS: Final[dict[str, dict[str, str]]] = {
    "runs": {
        "run_id": "text",
        "raftlog_version": "text",
        "started": "time",
        "finished": "time",
        "sources": "texts",
        "verdict": "text",  # clean, suspicious, unreadable, damaged or data-loss
        "files": "long",
        "reused_files": "long",  # unchanged since an earlier run: not read again
        "bytes": "long",  # the sum of the five that follow
        "explained_bytes": "long",  # in batches whose CRC holds
        "damaged_bytes": "long",
        "padding_bytes": "long",
        "small_file_bytes": "long",  # in indexes and small files
        "unread_bytes": "long",
        "unreadable": "long",  # files and directories that could not be read
        "harmless": "long",  # findings
        "suspicious": "long",
        "damaged": "long",
        "data_loss": "long",
    },
    "checks": {
        "run_id": "text",
        "rule": "text",
        "severity": "text",
        "claim": "text",
        "source": "text",
        "status": "text",  # pass, fail, skipped or error
        "findings": "long",
    },
    "findings": {
        "run_id": "text",
        "rule": "text",
        "severity": "text",
        "file": "text",
        "log_directory": "text",  # null, as are topic and partition, if it is about a file that was not read
        "topic": "text",
        "partition": "int",
        "position": "long",
        "size_bytes": "long",
        "offset": "long",
        "epoch": "int",
        "reason": "text",
        "command": "text",  # a command that shows it
    },
    "voter_timeline": _LOG
    | {
        "offset": "long",
        "epoch": "int",
        "timestamp": "time",
        "kraft_version": "int",
        "voters": "voters",
        "added": "ints",
        "removed": "ints",
        "updated": "ints",
        "seen_in": "texts",
    },
    "epochs": _LOG
    | {
        "epoch": "int",
        "leader_id": "int",
        "start_offset": "long",
        "end_offset": "long",  # exclusive
        "start_timestamp": "time",
        "duration_ms": "long",
        "record_count": "long",
        "voters": "ints",
        "granting_voters": "ints",
        "seen_in": "texts",
    },
}
"""The columns of each table, and their types."""


def schema(table: str) -> "pa.Schema":
    """Return the columns of a table.

    Raises:
        MissingExtraError: pyarrow is not installed.
        KeyError: there is no such table.
    """
    return schema_of(COLUMNS[table])


def schema_of(columns: Mapping[str, str]) -> "pa.Schema":
    """Return columns by their names and the names of their types: text, int, long, time, texts, ints or voters.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    types = _types()
    return _pyarrow().schema([(name, types[kind]) for name, kind in columns.items()])


@functools.cache
def _types() -> dict[str, "pa.DataType"]:
    pa = _pyarrow()
    text, number = pa.string(), pa.int32()
    endpoint = pa.struct({"name": text, "host": text, "port": number})
    voter = {
        "id": number,
        "directory_id": text,
        "endpoints": pa.list_(endpoint),
        "min_supported_version": number,
        "max_supported_version": number,
    }
    return {
        "text": text,
        "int": number,
        "long": pa.int64(),
        "time": pa.timestamp("ms", "UTC"),
        "texts": pa.list_(text),
        "ints": pa.list_(number),
        "voters": pa.list_(pa.struct(voter)),
    }


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("columns", "an audit's tables") from error
    return pa
