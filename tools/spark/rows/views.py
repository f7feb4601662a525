# SPDX-License-Identifier: Apache-2.0
"""The views of the source: their names, columns and types.

Every column is nullable, as in Spark's Kafka source, unless a user's schema makes it NOT NULL. Timestamps are
microseconds in UTC, the only kind that Spark takes.
"""

import functools
from collections.abc import Collection
from typing import Final

import pyarrow as pa

from raftlog.errors import OptionError
from raftlog.tools.spark.rows.coordinator_columns import CONSUMER_OFFSETS_COLUMNS, TRANSACTION_STATE_COLUMNS
from raftlog.tools.spark.rows.metadata_columns import METADATA_COLUMNS
from raftlog.tools.spark.rows.options import PERMISSIVE, SourceOptions, nearest

CORRUPT: Final = "_corrupt"
"""The column about damage: a row with it describes bytes that could not be read."""

_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_HEADERS: Final = ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
_PLACE: Final = (("topic", pa.string()), ("partition", pa.int32()))
_RECORD: Final = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    *_PLACE,
    ("offset", pa.int64()),
    ("timestamp", _TIMESTAMP),
    ("timestampType", pa.int32()),
)
_PRODUCER: Final = (("producerId", pa.int64()), ("producerEpoch", pa.int32()))
_FLAGS: Final = (("isTransactional", pa.bool_()), ("isControl", pa.bool_()), ("codec", pa.string()))
_STORED: Final = (("position", pa.int64()), ("file", pa.string()))
_ENDPOINT: Final = pa.struct([("name", pa.string()), ("host", pa.string()), ("port", pa.int32())])
_VOTER: Final = pa.struct(
    [
        ("id", pa.int32()),
        ("directoryId", pa.string()),
        ("endpoints", pa.list_(_ENDPOINT)),
        ("minKraftVersion", pa.int32()),
        ("maxKraftVersion", pa.int32()),
    ]
)
_DECODED: Final = (
    *_PLACE,
    ("offset", pa.int64()),
    ("timestamp", _TIMESTAMP),
    ("leaderEpoch", pa.int32()),
    ("type", pa.string()),
    ("version", pa.int32()),
)
_CONTROL: Final = (
    *_DECODED,
    ("leaderId", pa.int32()),
    ("voters", pa.list_(_VOTER)),
    ("grantingVoters", pa.list_(pa.int32())),
    ("kraftVersion", pa.int32()),
    ("lastContainedLogTimestamp", _TIMESTAMP),
    ("committed", pa.bool_()),
    ("coordinatorEpoch", pa.int32()),
    *_PRODUCER,
    ("json", pa.string()),
    ("isSnapshot", pa.bool_()),
    *_STORED,
)
_METADATA: Final = (*_DECODED, *METADATA_COLUMNS, ("json", pa.string()), ("isSnapshot", pa.bool_()), *_STORED)
_JSON: Final = (("keyJson", pa.string()), ("json", pa.string()))
_TOMBSTONE: Final = ("isTombstone", pa.bool_())
_CONSUMER_OFFSETS: Final = (
    *_DECODED,
    _TOMBSTONE,
    *CONSUMER_OFFSETS_COLUMNS,
    ("isTransactional", pa.bool_()),
    ("producerId", pa.int64()),
    *_JSON,
    *_STORED,
)
_TRANSACTION_STATE: Final = (*_DECODED, _TOMBSTONE, *TRANSACTION_STATE_COLUMNS, *_JSON, *_STORED)
_RECORDS_EXT: Final = (
    *_RECORD,
    ("leaderEpoch", pa.int32()),
    ("batchBaseOffset", pa.int64()),
    ("sequence", pa.int32()),
    *_PRODUCER,
    *_FLAGS,
    *_STORED,
    ("crcOk", pa.bool_()),
)
_BATCHES: Final = (
    *_PLACE,
    ("baseOffset", pa.int64()),
    ("lastOffset", pa.int64()),
    ("recordCount", pa.int32()),
    ("leaderEpoch", pa.int32()),
    ("baseTimestamp", _TIMESTAMP),
    ("maxTimestamp", _TIMESTAMP),
    ("timestampType", pa.int32()),
    *_PRODUCER,
    ("baseSequence", pa.int32()),
    *_FLAGS,
    ("deleteHorizon", _TIMESTAMP),
    ("magic", pa.int32()),
    ("crc", pa.int64()),
    ("size", pa.int32()),
    *_STORED,
    ("crcOk", pa.bool_()),
)
_CORRUPT: Final = (
    CORRUPT,
    pa.struct(
        [
            ("file", pa.string()),
            ("position", pa.int64()),
            ("size", pa.int64()),
            ("offset", pa.int64()),
            ("rule", pa.string()),
            ("reason", pa.string()),
        ]
    ),
)
_VIEWS: Final = {
    "records": _RECORD,
    "records_ext": _RECORDS_EXT,
    "batches": _BATCHES,
    "control": _CONTROL,
    "metadata": _METADATA,
    "consumer_offsets": _CONSUMER_OFFSETS,
    "transaction_state": _TRANSACTION_STATE,
}
_WITH_HEADERS: Final = frozenset({"records", "records_ext"})


def view_schema(options: SourceOptions) -> pa.Schema:
    """Return the columns that the options ask for.

    Raises:
        OptionError: the option ``columns`` names a column that the view does not have, or a column twice.
    """
    whole = _whole_view(options.view, with_headers=options.include_headers, with_corrupt=options.mode == PERMISSIVE)
    if options.columns is None:
        return whole
    _check_names(options.columns, "columns")
    return pa.schema([_column(whole, name, "columns", options.view) for name in options.columns])


def asked_schema(options: SourceOptions, asked: Collection[tuple[str, bool]]) -> pa.Schema:
    """Return the columns of a schema that a user gave, in its order.

    Args:
        options: with the name of the view.
        asked: the name of each column, and whether it may be null; its type is that of the view.

    Raises:
        OptionError: the view lacks a column; or the schema is empty, or has a column twice.
    """
    _check_names([name for name, _ in asked], "schema")
    with_headers = options.view in _WITH_HEADERS
    whole = _whole_view(options.view, with_headers=with_headers, with_corrupt=options.mode == PERMISSIVE)
    return pa.schema(
        [_column(whole, name, "schema", options.view).with_nullable(is_nullable) for name, is_nullable in asked]
    )


def pruned_schema(whole: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the named columns of a schema, in its order; without names, one column that costs little to read."""
    wanted = {name.lower() for name in names}
    kept = [field for field in whole if field.name.lower() in wanted]
    if not kept:
        fixed = [field for field in whole if pa.types.is_primitive(field.type)]
        kept = (fixed or list(whole))[:1]
    return pa.schema(kept)


@functools.cache
def _whole_view(view: str, *, with_headers: bool, with_corrupt: bool) -> pa.Schema:
    columns = list(_VIEWS[view])
    if with_headers and view in _WITH_HEADERS:
        columns.append(_HEADERS)
    if with_corrupt:
        columns.append(_CORRUPT)
    return pa.schema(columns)


def _check_names(names: Collection[str], option: str) -> None:
    if not names:
        raise OptionError(option, "it names no column")
    if len({name.lower() for name in names}) < len(names):
        raise OptionError(option, f"it names a column twice: {', '.join(names)}")


def _column(whole: pa.Schema, name: str, option: str, view: str) -> pa.Field:
    """Return a column by its name in any case, as in Spark, which expects the name as the user wrote it."""
    for field in whole:
        if field.name.lower() == name.lower():
            return field.with_name(name)
    hint = "; only mode PERMISSIVE has it" if name == CORRUPT else nearest(name, tuple(whole.names))
    raise OptionError(option, f"view {view} has no column {name}{hint}")
