# SPDX-License-Identifier: Apache-2.0
"""Hides values that are metadata records or configurations of Connect with secrets, before a query can see them."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.payloads.config_secrets import CONFIG_MARKS, may_be_config_secret
from raftlog.tools.payloads.mirror_topics import mirror_topic
from raftlog.tools.payloads.redaction import REDACTED, SECRET_API_KEYS, may_be_secret
from raftlog.tools.spark.rows.parts import FilePart

_COMPUTE: Final[Any] = pc
"""Arrow makes these functions when it is imported, so a type checker does not see them."""
_VALUE: Final = "value"
_STARTS: Final = pa.array([bytes((1, key)) for key in sorted(SECRET_API_KEYS)], pa.binary())
"""The first bytes of metadata records that may have secrets: the version of the frame, and the type."""
_BRACE: Final = pa.array([b"{"], pa.binary())
_HIDDEN: Final = REDACTED.encode()


def with_hidden_secrets(batch: pa.RecordBatch, part: FilePart) -> pa.RecordBatch:
    """Return records with ``[redacted]`` in place of each value that has a secret of the metadata or of Connect.

    Files can be copied to any directory, so records of every topic are looked at. In the metadata log, in snapshots and
    in files whose topic is not known, a value that only starts like such a record counts; in a topic with another name,
    where values may start with any bytes, only one that is such a record. Of Connect's configurations, those count that
    say so themselves; in a topic of configurations, a value that cannot be read counts too.

    Args:
        batch: records, with or without their values.
        part: where they were read.
    """
    index = batch.schema.get_field_index(_VALUE)
    if index < 0:
        return batch
    values = batch.column(index)
    secret = _metadata_secrets(values, part) | _config_secrets(values, part)
    if not secret:
        return batch
    hidden = pa.array([row in secret for row in range(len(batch))])
    replaced = _COMPUTE.if_else(hidden, pa.scalar(_HIDDEN, values.type), values)
    return batch.set_column(index, batch.schema.field(index), replaced)


def _metadata_secrets(values: pa.Array, part: FilePart) -> set[int]:
    """Return the rows of values that are metadata records with secrets."""
    may_be = _COMPUTE.is_in(_COMPUTE.binary_slice(values, 0, 2), value_set=_STARTS)
    if_unreadable = part.is_snapshot or part.partition is None or part.topic == METADATA_TOPIC
    return {row for row in _rows(may_be) if may_be_secret(values[row].as_py(), if_unreadable=if_unreadable)}


def _config_secrets(values: pa.Array, part: FilePart) -> set[int]:
    """Return the rows of values that are configurations of Connect with secrets."""
    is_config = mirror_topic(part.topic) == "connect-configs"
    may_be = values.is_valid()
    if not is_config:
        may_be = _COMPUTE.is_in(_COMPUTE.binary_slice(values, 0, 1), value_set=_BRACE)
        if not _COMPUTE.any(may_be).as_py():
            return set()
        first, second = (_COMPUTE.match_substring(values, mark) for mark in CONFIG_MARKS)
        may_be = _COMPUTE.and_(may_be, _COMPUTE.or_(first, second))
    return {row for row in _rows(may_be) if may_be_config_secret(values[row].as_py(), is_config=is_config)}


def _rows(are_wanted: pa.Array) -> list[int]:
    return _COMPUTE.indices_nonzero(are_wanted).to_pylist()  # type: ignore[no-any-return]
