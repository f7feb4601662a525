# SPDX-License-Identifier: Apache-2.0
"""Derives from the filters of a query which batches need not be read.

Filters are only hints: Spark applies each one again, so the one requirement is that no matching row is left out. The
offsets and timestamps in batch headers are trusted, as Kafka trusts them.
"""

import datetime
from collections.abc import Collection
from typing import Any, Final, Self

import attrs

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_OFFSET_COLUMNS: Final = frozenset({"offset", "baseoffset", "lastoffset", "batchbaseoffset"})
"""Columns whose values are between the first and the last offset of their batch."""
_TIMESTAMP_COLUMNS: Final = frozenset({"timestamp", "maxtimestamp"})
"""Columns whose values are at most the maximum timestamp of their batch."""
_EQUAL: Final = frozenset({"EqualTo", "EqualNullSafe"})
_AT_LEAST: Final = frozenset({"GreaterThan", "GreaterThanOrEqual"})
_AT_MOST: Final = frozenset({"LessThan", "LessThanOrEqual"})


@attrs.frozen
class Hints:
    """What matching rows have in common; None if unknown.

    Attributes:
        first_offset, last_offset: the range of their offsets, both inclusive.
        since_ms: a lower bound of their timestamps.
        topics: those that they may have.
        partitions: those that they may have.
        is_control: whether they are control records.
    """

    first_offset: int | None = None
    last_offset: int | None = None
    since_ms: int | None = None
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    is_control: bool | None = None

    def narrowed(self, operator: str, column: str, value: Any) -> Self:
        """Return hints that include one more filter. A filter of no use returns the same hints.

        Args:
            operator: Spark's name of the filter, such as ``EqualTo``.
            column: the filtered column.
            value: the value to compare with; a list for ``In``.
        """
        column = column.lower()
        values = value if operator == "In" else [value]
        if column in _OFFSET_COLUMNS and _all_are(int, values):
            return self._within_offsets(operator, values)
        if column in _TIMESTAMP_COLUMNS and _all_are(datetime.datetime, values):
            return self._since(operator, values)
        if operator not in _EQUAL and operator != "In":
            return self
        if column == "topic" and _all_are(str, values):
            return attrs.evolve(self, topics=_common(self.topics, values))
        if column == "partition" and _all_are(int, values):
            return attrs.evolve(self, partitions=_common(self.partitions, values))
        if column == "iscontrol" and _all_are(bool, values) and len(set(values)) == 1:
            return attrs.evolve(self, is_control=values[0])
        return self

    def admits_partition(self, topic: str | None, partition: int | None) -> bool:
        """Whether rows of a partition may match."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )

    def _within_offsets(self, operator: str, values: Collection[int]) -> Self:
        first, last = self.first_offset, self.last_offset
        if operator in _EQUAL | _AT_LEAST | {"In"}:
            first = min(values) if first is None else max(first, min(values))
        if operator in _EQUAL | _AT_MOST | {"In"}:
            last = max(values) if last is None else min(last, max(values))
        return attrs.evolve(self, first_offset=first, last_offset=last)

    def _since(self, operator: str, values: Collection[datetime.datetime]) -> Self:
        if operator not in _EQUAL | _AT_LEAST | {"In"} or any(value.tzinfo is None for value in values):
            return self
        since = (min(values) - _EPOCH) // _MILLISECOND  # Rounded down, so that no matching row is left out.
        return attrs.evolve(self, since_ms=since if self.since_ms is None else max(self.since_ms, since))


def _all_are(kind: type, values: Any) -> bool:
    return isinstance(values, list | tuple) and len(values) > 0 and all(type(value) is kind for value in values)


def _common(known: frozenset[Any] | None, values: Collection[Any]) -> frozenset[Any]:
    return frozenset(values) if known is None else known & frozenset(values)
