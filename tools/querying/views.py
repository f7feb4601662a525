# SPDX-License-Identifier: Apache-2.0
"""The views of a query: their names and columns.

Columns have the names that the Spark source gives them. ``directory`` and ``nodeId`` come first: DuckDB reads the first
column if it needs none, and these two cost nothing.
"""

import functools
import re
from typing import Final

import pyarrow as pa

from raftlog.tools.catalogue import audit_columns
from raftlog.tools.spark.rows.options import FAIL_FAST, SourceOptions
from raftlog.tools.spark.rows.views import view_schema

LOG_VIEWS: Final = {"batches": "batches", "records": "records_ext", "control": "control", "metadata": "metadata"}
"""The views whose rows are read from segments and snapshots, each with the name of that view in the Spark source."""
AUDIT_VIEWS: Final = {"voters": "voter_timeline", "epochs": "epochs", "findings": "findings"}
"""The views whose rows the audit finds, each with the name of its table there."""
VIEWS: Final = (*LOG_VIEWS, *AUDIT_VIEWS)
"""The names of all views."""
SHOWS_SNAPSHOTS: Final = frozenset({"control", "metadata"})
"""The views that have rows from snapshots, marked by ``isSnapshot``."""

_PLACE: Final = (pa.field("directory", pa.string()), pa.field("nodeId", pa.int32()))
_LEADING: Final = ("topic", "partition", "offset")
_ALWAYS_THE_SAME: Final = {"batches": {"crcOk"}, "records": {"crcOk", "isControl"}}
"""Damaged batches have no rows, and control records are in a view of their own."""


@functools.cache
def schema_of(view: str) -> pa.Schema:
    """Return the columns of a view.

    Raises:
        KeyError: there is no such view.
    """
    if view in AUDIT_VIEWS:
        table = audit_columns.schema(AUDIT_VIEWS[view])
        return pa.schema([_renamed(field) for field in table if field.name != "run_id"])
    options = SourceOptions(paths=(), view=LOG_VIEWS[view], mode=FAIL_FAST, include_headers=True)
    left_out = _ALWAYS_THE_SAME.get(view, set())
    fields = [field for field in view_schema(options) if field.name not in left_out]
    first = [field for field in fields if field.name in _LEADING]
    return pa.schema([*_PLACE, *first, *(field for field in fields if field.name not in _LEADING)])


def camel_case(name: str) -> str:
    """Return a name of the audit's tables as the Spark source writes names; a log directory is a ``directory``."""
    name = "directory" if name == "log_directory" else name
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def _renamed(field: pa.Field) -> pa.Field:
    return pa.field(camel_case(field.name), _renamed_type(field.type))


def _renamed_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_renamed(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_renamed_type(kind.value_type))
    return kind
