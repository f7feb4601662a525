# SPDX-License-Identifier: Apache-2.0
"""Records of a log as rows of numbers: offset, digest and what is known of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import attrs
import numpy as np

ABORTED: Final = 1
"""Flag of a record of an aborted transaction."""
UNKNOWN: Final = 2
"""Flag of an offset whose record cannot be read, or is not there any more: any record may have been there, or none."""
MARKER: Final = 4
"""Flag of a control record."""

Int64s = np.ndarray[Any, np.dtype[np.int64]]
UInt64s = np.ndarray[Any, np.dtype[np.uint64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Places = tuple[Int64s, Int64s]
"""Offsets of records of the source, and for each that of its copy in the target."""
NOWHERE: Final[Places] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
UInt8s = np.ndarray[Any, np.dtype[np.uint8]]
_SPREAD: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
"""Odd numbers: a multiple of each, modulo 2**64, is of one offset only."""


@attrs.frozen(eq=False)
class DigestRows:
    """Some records of a log, by ascending offset. Control records have rows only if offsets are compared.

    Attributes:
        offsets: of the records.
        digests: two columns, the halves of a digest of key, value, headers and timestamp.
        flags: ``ABORTED``, ``UNKNOWN`` and ``MARKER``.
        origins: three columns, of each record the leader epoch, the producer id and the timestamp; or none.
    """

    offsets: Int64s
    digests: UInt64s
    flags: UInt8s
    origins: Int64s = attrs.field(
        default=attrs.Factory(lambda self: np.zeros((len(self.offsets), 0), np.int64), takes_self=True)
    )

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def none(cls) -> "DigestRows":
        """Return no rows."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2), np.uint64), np.zeros(0, np.uint8))

    @classmethod
    def joined(cls, parts: Iterable["DigestRows"]) -> "DigestRows":
        """Return the rows of several parts, in their order."""
        found = [each for each in parts if len(each)]
        if len(found) == 1:
            return found[0]
        if not found:
            return cls.none()
        return cls(
            np.concatenate([each.offsets for each in found]),
            np.concatenate([each.digests for each in found]),
            np.concatenate([each.flags for each in found]),
            np.concatenate([each.origins for each in found]),
        )

    def rows(self, first: int, last: int) -> "DigestRows":
        """Return the rows from an index (inclusive) to another (exclusive)."""
        part = slice(first, last)
        return DigestRows(self.offsets[part], self.digests[part], self.flags[part], self.origins[part])

    def between(self, start: int, end: int) -> "DigestRows":
        """Return the rows from an offset (inclusive) to another (exclusive)."""
        first, last = np.searchsorted(self.offsets, (start, end))
        return self.rows(int(first), int(last))

    def where(self, is_wanted: Bools) -> "DigestRows":
        """Return the rows of some of the records."""
        if bool(is_wanted.all()):
            return self
        return DigestRows(
            self.offsets[is_wanted], self.digests[is_wanted], self.flags[is_wanted], self.origins[is_wanted]
        )

    def without_aborted(self) -> "DigestRows":
        """Return the rows of data records that are not of aborted transactions."""
        return self.where(self.flags & (ABORTED | MARKER) == 0)

    def without_markers(self) -> "DigestRows":
        """Return the rows of data records."""
        return self.where(self.flags & MARKER == 0)

    def markers(self) -> "DigestRows":
        """Return the rows of control records."""
        return self.where(self.flags & MARKER != 0)

    def with_offsets(self) -> "DigestRows":
        """Return the rows with digests that cover offsets, too: equal sums are of records at equal offsets then."""
        places = self.offsets.astype(np.uint64)[:, None] * _SPREAD
        return attrs.evolve(self, digests=self.digests ^ (places ^ places >> np.uint64(31)))


class RowReader(Protocol):
    """Reads the rows of one log, again and again.

    Attributes:
        start_offset: the first offset that the log has.
        end_offset: the offset after the last one.
    """

    @property
    def start_offset(self) -> int:
        """See the class."""
        ...

    @property
    def end_offset(self) -> int:
        """See the class."""
        ...

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        """Yield the rows from an offset (inclusive) to another (exclusive), in order, a moderate number at a time."""
        ...


def first_offsets(rows: Iterable[DigestRows], digests: Sequence[UInt64s]) -> list[int | None]:
    """Return, for each digest, the offset of the first of some rows, by ascending offset, that has it; None if none."""
    found: dict[tuple[int, int], int] = {}
    wanted = {(int(low), int(high)) for low, high in digests}
    lows = np.array([low for low, _ in wanted], np.uint64)
    for each in rows:
        for at in np.flatnonzero(np.isin(each.digests[:, 0], lows) & (each.flags & UNKNOWN == 0)).tolist():
            low, high = each.digests[at].tolist()
            if (low, high) in wanted:
                found.setdefault((low, high), int(each.offsets[at]))
    return [found.get((int(low), int(high))) for low, high in digests]


def numbered(left: DigestRows, right: DigestRows) -> tuple[Int64s, Int64s]:
    """Number the digests of two logs: equal numbers are equal digests, and -1 is an unknown record."""
    both = np.ascontiguousarray(np.concatenate([left.digests, right.digests]))
    _, numbers = np.unique(both.view([("low", np.uint64), ("high", np.uint64)]).ravel(), return_inverse=True)
    numbers = numbers.astype(np.int64)
    numbers[np.concatenate([left.flags, right.flags]) & UNKNOWN != 0] = -1
    return numbers[: len(left)], numbers[len(left) :]
