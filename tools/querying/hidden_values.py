# SPDX-License-Identifier: Apache-2.0
"""Hides values that are metadata records with secrets, before a query can select or compare them."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.payloads.redaction import REDACTED, SECRET_API_KEYS, may_be_secret
from raftlog.tools.spark.rows.parts import FilePart

_COMPUTE: Final[Any] = pc
"""Arrow makes these functions when it is imported, so a type checker does not see them."""
_VALUE: Final = "value"
_STARTS: Final = pa.array([bytes((1, key)) for key in sorted(SECRET_API_KEYS)], pa.binary())
"""The first bytes of metadata records that may have secrets: the version of the frame, and the type."""
_HIDDEN: Final = REDACTED.encode()


def with_hidden_secrets(batch: pa.RecordBatch, part: FilePart) -> pa.RecordBatch:
    """Return records with ``[redacted]`` in place of each value that is a metadata record with a secret.

    Files can be copied to any directory, so records of every topic are looked at. In the metadata log, in snapshots and
    in files whose topic is not known, a value that only starts like such a record counts; in a topic with another name,
    where values may start with any bytes, only one that is such a record.

    Args:
        batch: records, with or without their values.
        part: where they were read.
    """
    index = batch.schema.get_field_index(_VALUE)
    if index < 0:
        return batch
    values = batch.column(index)
    may_be = _COMPUTE.is_in(_COMPUTE.binary_slice(values, 0, 2), value_set=_STARTS)
    rows = _COMPUTE.indices_nonzero(may_be).to_pylist()
    if_unreadable = part.is_snapshot or part.partition is None or part.topic == METADATA_TOPIC
    secret = {row for row in rows if may_be_secret(values[row].as_py(), if_unreadable=if_unreadable)}
    if not secret:
        return batch
    hidden = pa.array([row in secret for row in range(len(batch))])
    replaced = _COMPUTE.if_else(hidden, pa.scalar(_HIDDEN, values.type), values)
    return batch.set_column(index, batch.schema.field(index), replaced)
