# SPDX-License-Identifier: Apache-2.0
"""Records of a log as rows of numbers: offset, digest and what is known of them."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import attrs
import numpy as np

ABORTED: Final = 1
"""Flag of a record of an aborted transaction."""
UNKNOWN: Final = 2
"""Flag of an offset whose record cannot be read, or is not there any more: any record may have been there, or none."""

Int64s = np.ndarray[Any, np.dtype[np.int64]]
UInt64s = np.ndarray[Any, np.dtype[np.uint64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Places = tuple[Int64s, Int64s]
"""Offsets of records of the source, and for each that of its copy in the target."""
NOWHERE: Final[Places] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
UInt8s = np.ndarray[Any, np.dtype[np.uint8]]


@attrs.frozen(eq=False)
class DigestRows:
    """Some data records of a log, by ascending offset. Control records have no rows.

    Attributes:
        offsets: of the records.
        digests: two columns, the halves of a digest of key, value, headers and timestamp.
        flags: ``ABORTED`` and ``UNKNOWN``.
    """

    offsets: Int64s
    digests: UInt64s
    flags: UInt8s

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def none(cls) -> "DigestRows":
        """Return no rows."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2), np.uint64), np.zeros(0, np.uint8))

    @classmethod
    def joined(cls, parts: Iterable["DigestRows"]) -> "DigestRows":
        """Return the rows of several parts, in their order."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        if not found:
            return cls.none()
        return cls(
            np.concatenate([each.offsets for each in found]),
            np.concatenate([each.digests for each in found]),
            np.concatenate([each.flags for each in found]),
        )

    def rows(self, first: int, last: int) -> "DigestRows":
        """Return the rows from an index (inclusive) to another (exclusive)."""
        return DigestRows(self.offsets[first:last], self.digests[first:last], self.flags[first:last])

    def between(self, start: int, end: int) -> "DigestRows":
        """Return the rows from an offset (inclusive) to another (exclusive)."""
        first, last = np.searchsorted(self.offsets, (start, end))
        return self.rows(int(first), int(last))

    def without_aborted(self) -> "DigestRows":
        """Return the rows of records that are not of aborted transactions."""
        is_kept = self.flags & ABORTED == 0
        return (
            self
            if bool(is_kept.all())
            else DigestRows(self.offsets[is_kept], self.digests[is_kept], self.flags[is_kept])
        )


class RowReader(Protocol):
    """Reads the rows of one log, again and again.

    Attributes:
        start_offset: the first offset that the log has.
        end_offset: the offset after the last one.
        has_aborted: whether a record may be of an aborted transaction.
    """

    @property
    def start_offset(self) -> int:
        """See the class."""
        ...

    @property
    def end_offset(self) -> int:
        """See the class."""
        ...

    @property
    def has_aborted(self) -> bool:
        """See the class."""
        ...

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        """Yield the rows from an offset (inclusive) to another (exclusive), in order, a moderate number at a time."""
        ...


def numbered(left: DigestRows, right: DigestRows) -> tuple[Int64s, Int64s]:
    """Number the digests of two logs: equal numbers are equal digests, and -1 is an unknown record."""
    both = np.ascontiguousarray(np.concatenate([left.digests, right.digests]))
    _, numbers = np.unique(both.view([("low", np.uint64), ("high", np.uint64)]).ravel(), return_inverse=True)
    numbers = numbers.astype(np.int64)
    numbers[np.concatenate([left.flags, right.flags]) & UNKNOWN != 0] = -1
    return numbers[: len(left)], numbers[len(left) :]


def first_offsets(rows: Iterable[DigestRows], contents: DigestRows) -> Int64s:
    """Return the offset of the first record that is the same as each of some others; -1 if none is.

    Args:
        rows: of a log, in order; read once, whatever the number of the others is.
        contents: the others. An unknown one is the same as none.
    """
    found = np.full(len(contents), -1, np.int64)
    for each in rows:
        if not len(each):
            continue
        left, right = numbered(each, contents)
        values, first = np.unique(left, return_index=True)
        at = np.minimum(np.searchsorted(values, right), len(values) - 1)
        is_first = (values[at] == right) & (right >= 0) & (found < 0)
        found[is_first] = each.offsets[first[at[is_first]]]
    return found
