# SPDX-License-Identifier: Apache-2.0
"""Digests of records, by which logs are compared without their contents."""

from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.records.columns.column_values import RecordColumns, numpy_module
from raftlog.records.kernel_choice import kernel

if TYPE_CHECKING:
    import numpy as np

DIGESTED_COLUMNS: Final = ("timestamp", "key", "value", "headers")
"""The columns of records that digests cover, and that must have been requested."""


@attrs.frozen
class RecordDigests:
    """A digest of 128 bits per record, as two columns of 64-bit integers, one after the other.

    Attributes:
        columns: all lower halves, and then all higher halves.
    """

    columns: memoryview

    def __len__(self) -> int:
        return len(self.columns) // 2

    @property
    def low(self) -> memoryview:
        """The lower 64 bits of each digest, signed."""
        return self.columns[: len(self)]

    @property
    def high(self) -> memoryview:
        """The higher 64 bits of each digest, signed."""
        return self.columns[len(self) :]

    def to_numpy(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Return an array of two rows, the lower and the higher halves, without a copy.

        Raises:
            MissingExtraError: numpy is not installed.
        """
        array: np.ndarray[Any, np.dtype[np.int64]] = numpy_module().frombuffer(self.columns, dtype="int64")
        return array.reshape(2, len(self))


def record_digests(records: RecordColumns, *, with_timestamps: bool = True) -> RecordDigests:
    """Hash the contents of each record to 128 bits: its timestamp, key, value and headers.

    Two records have the same digest if they have the same contents. Null and empty are different, and so are headers in
    another order. Offset, batch, codec, epoch and producer do not count. The hash, t1ha2, is fast, but not
    cryptographic: an attacker who chooses the contents can make different records with one digest.

    Args:
        records: of some batches.
        with_timestamps: whether timestamps count. Otherwise the digests are those of records of time 0.

    Raises:
        KeyError: one of ``DIGESTED_COLUMNS`` was not requested.
    """
    given = records.columns
    timestamps = given["timestamp"]
    if not with_timestamps:
        timestamps = memoryview(bytes(len(timestamps) * timestamps.itemsize)).cast("q")
    columns = memoryview(kernel.room(2 * 8 * records.count)).cast("q")
    kernel.digest_records(
        records.data,
        timestamps,
        given["key_position"],
        given["key_size"],
        given["value_position"],
        given["value_size"],
        given["header_position"],
        given["header_count"],
        columns,
    )
    return RecordDigests(columns)
