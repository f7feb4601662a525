# SPDX-License-Identifier: Apache-2.0
"""Counts in bounded memory: sums per group, and the distribution of sizes."""

import bisect
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

if TYPE_CHECKING:
    Longs = np.ndarray[Any, np.dtype[np.int64]]

MOST_GROUPS: Final = 1 << 16
"""How many groups are told apart; what belongs to later ones is counted together."""

BATCH_SUMS: Final = ("batches", "records", "stored_bytes", "uncompressed_bytes")
"""What is summed over batches. Stored and uncompressed sizes include the headers of batches."""
RECORD_SUMS: Final = ("records", "bytes")
"""What is summed over records; the bytes are those of keys and values, uncompressed."""


def grouped(codes: "Longs", *columns: "Longs") -> "tuple[Longs, list[Longs]]":
    """Return the distinct codes, ascending, and the sums of each column over the rows of each.

    Args:
        codes: one per row; at least one row.
        columns: what to sum; as long as the codes.
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], [np.add.reduceat(column[order], starts) for column in columns]


class Groups:
    """Sums per group, for a bounded number of groups: the first ones that are met.

    Args:
        sums: the names of the sums.
        most: how many groups are told apart.

    Attributes:
        sums: the names of the sums.
        rest: the sums of all other groups together.
        is_exact: whether no group was left to the rest.
    """

    def __init__(self, sums: tuple[str, ...], most: int = MOST_GROUPS) -> None:
        self.sums = sums
        self.rest = [0] * len(sums)
        self.is_exact = True
        self._most = most
        self._groups: dict[Hashable, list[int]] = {}

    def add(self, key: Hashable, values: Iterable[int]) -> None:
        """Add to the sums of a group."""
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) < self._most:
                group = self._groups[key] = [0] * len(self.sums)
            else:
                group, self.is_exact = self.rest, False
        for index, value in enumerate(values):
            group[index] += int(value)

    def add_rows(self, codes: "Longs", *columns: "Longs") -> None:
        """Add rows to the groups of their codes, which become the keys as ``int``."""
        if len(codes):
            keys, sums = grouped(codes, *columns)
            for key, *values in zip(keys.tolist(), *(each.tolist() for each in sums), strict=True):
                self.add(key, values)

    def __len__(self) -> int:
        return len(self._groups)

    def rows(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Return each group's key and sums, the group with most bytes first; groups of the same bytes as they came."""
        found = [(key, tuple(values)) for key, values in self._groups.items()]
        return sorted(found, key=lambda row: row[1][2 if len(self.sums) > 2 else 1], reverse=True)


@attrs.frozen
class SizeSummary:
    """The distribution of some sizes, all in bytes.

    Attributes:
        least, median, greatest: of the sizes; the median is that of the lower middle. 0 if there are none.
        is_median_exact: whether the median is a size that was met; otherwise it is the end of its power of two.
        histogram: how many sizes have each number of binary digits, ascending.
    """

    least: int
    median: int
    greatest: int
    is_median_exact: bool
    histogram: dict[int, int]


class Sizes:
    """Collects sizes in bounded memory.

    Args:
        most: how many distinct sizes are told apart.
    """

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        self._counts: Counter[int] = Counter()
        self._digits: Counter[int] = Counter()
        self._least, self._greatest, self._is_exact = 0, 0, True

    def add(self, sizes: "Longs") -> None:
        """Add sizes, each above 0."""
        if not len(sizes):
            return
        least, greatest = int(sizes.min()), int(sizes.max())
        self._least = min(self._least, least) if self._digits else least
        self._greatest = max(self._greatest, greatest)
        values, counts = np.unique(sizes, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            self._digits[value.bit_length()] += count
            if self._is_exact:
                self._counts[value] += count
        if len(self._counts) > self._most:
            self._is_exact = False
            self._counts.clear()

    def summary(self) -> SizeSummary:
        """Return the distribution."""
        histogram = dict(sorted(self._digits.items()))
        if not histogram:
            return SizeSummary(0, 0, 0, True, {})
        if self._is_exact:
            median = _middle(sorted(self._counts.items()))
        else:
            median = min((1 << _middle(list(histogram.items()))) - 1, self._greatest)
        return SizeSummary(self._least, median, self._greatest, self._is_exact, histogram)


def _middle(counts: Sequence[tuple[int, int]]) -> int:
    """Return the value at the lower middle of sorted values with their counts."""
    ends, total = [], 0
    for _, count in counts:
        total += count
        ends.append(total)
    return counts[bisect.bisect_left(ends, (total + 1) // 2)][0]
