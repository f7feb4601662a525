# SPDX-License-Identifier: Apache-2.0
"""Derives from the filter of a scan which parts of a log need not be read.

DuckDB hands over the filter as an Arrow expression, which has no public parts to look at. Arrow itself tells whether
rows with a known property, such as ``offset < 100``, can match: a file whose partition has that property is among the
fragments of a data set, or it is not. No such file is opened. An answer of "can match" is always safe, so expressions
that Arrow does not simplify cost time, not rows.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from raftlog.tools.spark.rows.filters import Hints

_MOST: Final = (1 << 63) - 2
"""No offset is greater: the end after it must fit in 64 bits too."""
_MOST_MS: Final = _MOST // 1000
"""The latest and, negated, the earliest timestamp (ms) that a column of microseconds has."""
_OFFSETS: Final = ("offset", "baseOffset", "lastOffset", "batchBaseOffset")
"""Columns whose values are between the first and the last offset of their batch."""
_TIMESTAMPS: Final = ("timestamp", "maxTimestamp")
"""Columns whose values are at most the maximum timestamp of their batch."""
_MOST_GAPS: Final = 32
"""How many gaps between wanted offsets are looked for, the widest ones: each costs some questions to Arrow."""


class Filter:
    """The filter of one scan.

    Args:
        expression: Arrow's form of it; None if all rows are wanted.
        schema: all columns of the scanned view.
    """

    def __init__(self, expression: Any, schema: pa.Schema) -> None:
        self.expression = expression
        self._schema = schema
        self._is_of_view = expression is None or self._applies_to(schema)

    def columns(self) -> frozenset[str]:
        """Return the names of the columns that it compares; all of the view's if that cannot be found out."""
        if self.expression is None:
            return frozenset()
        names = self._schema.names
        if not self._is_of_view:
            return frozenset(names)
        without = (pa.schema([each for each in self._schema if each.name != name]) for name in names)
        return frozenset(name for name, rest in zip(names, without, strict=True) if not self._applies_to(rest))

    def allows(self, known: Any) -> bool:
        """Whether rows can match of which an expression is known to be true."""
        if self.expression is None:
            return True
        try:
            made_up = ds.FileSystemDataset.from_paths(
                ["/rows"],
                schema=self._schema,
                format=ds.ParquetFileFormat(),
                filesystem=fs.LocalFileSystem(),
                partitions=[known],
            )
            return any(True for _ in made_up.get_fragments(filter=self.expression))
        except pa.ArrowException:
            return True

    def allows_values(self, **values: Any) -> bool:
        """Whether rows can match that have these values, by column; None is null. Unknown columns are ignored."""
        known = [
            ds.field(name).is_null() if value is None else ds.field(name) == value
            for name, value in values.items()
            if name in self._schema.names
        ]
        whole = known[0]
        for each in known[1:]:
            whole = whole & each
        return self.allows(whole)

    def hints(self) -> Hints:
        """Return what all matching rows have in common."""
        compared = self.columns()
        firsts = [self._first_offset(name) for name in _OFFSETS if name in compared]
        lasts = [self._last_offset(name) for name in _OFFSETS if name in compared]
        times = [self._since_ms(name) for name in _TIMESTAMPS if name in compared]
        return Hints(
            first_offset=max((each for each in firsts if each is not None), default=None),
            last_offset=min((each for each in lasts if each is not None), default=None),
            since_ms=max((each for each in times if each is not None), default=None),
        )

    def ranges(self) -> list[Hints]:
        """Return what the matching rows of each range of offsets have in common; the ranges ascend and are disjoint.

        A batch with a matching row spans an offset of one of them. There is one range if the filter leaves no gap, or
        if none is found: where to look is told by the numbers that the filter contains.
        """
        hints = self.hints()
        compared = self.columns()
        for name in _OFFSETS:
            if name in compared and len(ranges := self._ranges_of(name)) > 1:
                return [
                    attrs.evolve(
                        hints,
                        first_offset=max(first, hints.first_offset or 0),
                        last_offset=last if hints.last_offset is None else min(last, hints.last_offset),
                    )
                    for first, last in ranges
                ]
        return [hints]

    def _ranges_of(self, name: str) -> list[tuple[int, int]]:
        """Return the least and the greatest offset of each range outside of which a column has no wanted value."""
        column = ds.field(name)
        numbers = sorted({-1, _MOST + 1, *(each for each in _numbers(self.expression) if 0 <= each <= _MOST)})
        gaps = [(low + 1, high - 1) for low, high in itertools.pairwise(numbers) if high - low > 1]
        widest = sorted(gaps, key=lambda gap: gap[0] - gap[1])[:_MOST_GAPS]
        starts, found = 0, []
        for low, high in sorted(widest):
            if not self.allows((column >= low) & (column <= high)):
                found.append((starts, low - 1))
                starts = high + 1
        found.append((starts, _MOST))
        # Numbers are limits of ranges, and may themselves be out.
        limits = ((low + self._excludes(column == low), high - self._excludes(column == high)) for low, high in found)
        return [(low, high) for low, high in limits if low <= high]

    def _excludes(self, known: Any) -> bool:
        return not self.allows(known)

    def _applies_to(self, schema: pa.Schema) -> bool:
        try:
            schema.empty_table().filter(self.expression)
        except pa.ArrowException:
            return False
        return True

    def _first_offset(self, name: str) -> int | None:
        return greatest(0, _MOST, lambda offset: not self.allows(ds.field(name) <= offset - 1))

    def _last_offset(self, name: str) -> int | None:
        """Return an upper bound of the offsets, inclusive; -1 if none matches."""
        least = greatest(-_MOST, 1, lambda negative: not self.allows(ds.field(name) >= 1 - negative))
        return None if least is None else -least

    def _since_ms(self, name: str) -> int | None:
        """Return a lower bound of the timestamps. There is none if rows match whose timestamp is too large to show."""
        if self.allows(ds.field(name).is_null()):
            return None
        kind = self._schema.field(name).type
        return greatest(
            -_MOST_MS, _MOST_MS, lambda time: not self.allows(ds.field(name) < pa.scalar(time * 1000, kind))
        )


def _numbers(expression: Any) -> Iterator[int]:
    """Yield numbers that an expression contains, which Arrow keeps as columns of its form for files; or none.

    A number that is missing here, or of another column, costs time only.
    """
    try:
        (_, (form, *_)) = expression.__reduce__()
        values = [column.to_pylist() for column in pa.ipc.open_file(form).read_all().columns]
    except (AttributeError, TypeError, ValueError, pa.ArrowException):
        return
    while values:
        value = values.pop()
        if isinstance(value, list | tuple):
            values += value
        elif isinstance(value, dict):
            values += value.values()
        elif type(value) is int:
            yield value


def greatest(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Return a number for which something was found to hold, by bisection; None if none was found.

    It is the greatest one if what holds for a number holds for all below it. Otherwise it may be a lesser one.

    Args:
        low: the least number, inclusive.
        high: the greatest number, inclusive.
        holds: is asked about 64 numbers at most, if these are of 64 bits.
    """
    found = None
    while low <= high:
        middle = (low + high) // 2
        if holds(middle):
            found, low = middle, middle + 1
        else:
            high = middle - 1
    return found
