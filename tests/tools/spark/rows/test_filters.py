# SPDX-License-Identifier: Apache-2.0
"""Filters as hints: never narrower than what matches."""

import datetime
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.spark.rows.filters import Hints

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda value, values: value in values,
}
Filter = tuple[str, int | list[int]]


def _filters() -> st.SearchStrategy[Filter]:
    singles = st.tuples(st.sampled_from([name for name in OPERATORS if name != "In"]), st.integers(-5, 20))
    return singles | st.tuples(st.just("In"), st.lists(st.integers(-5, 20), max_size=3))


@given(st.lists(_filters(), max_size=4), st.integers(-5, 20))
def test_a_matching_offset_is_within_the_hints(filters: list[Filter], offset: int) -> None:
    """Whatever filters an offset passes, the hints made of them admit it."""
    hints = Hints()
    for name, value in filters:
        hints = hints.narrowed(name, "offset", value)
    if all(OPERATORS[name](offset, value) for name, value in filters):
        assert hints.first_offset is None or hints.first_offset <= offset
        assert hints.last_offset is None or hints.last_offset >= offset


@given(st.lists(_filters(), max_size=4), st.integers(-5000, 20000))
def test_a_matching_timestamp_is_within_the_hints(filters: list[Filter], microseconds: int) -> None:
    """Likewise a timestamp, in a finer unit than the log has."""
    hints = Hints()

    def at(milliseconds: int) -> datetime.datetime:
        return EPOCH + datetime.timedelta(microseconds=milliseconds * 1000 + 300)

    time = EPOCH + datetime.timedelta(microseconds=microseconds)
    values = [[at(each) for each in value] if isinstance(value, list) else at(value) for _, value in filters]
    for (name, _), value in zip(filters, values, strict=True):
        hints = hints.narrowed(name, "timestamp", value)
    matches = all(OPERATORS[name](time, value) for (name, _), value in zip(filters, values, strict=True))
    if matches and hints.since_ms is not None:
        assert hints.since_ms * 1000 <= microseconds


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("IsNotNull", "offset", None),
        ("EqualTo", "offset", None),
        ("EqualTo", "offset", "5"),
        ("In", "offset", []),
        ("GreaterThan", "timestamp", datetime.datetime(2026, 1, 1)),  # It has no zone.
        ("LessThan", "timestamp", EPOCH),
        ("StringStartsWith", "topic", "o"),
        ("EqualTo", "value", b"x"),
        ("In", "isControl", [True, False]),
    ],
)
def test_a_filter_without_a_bound_changes_nothing(name: str, column: str, value: object) -> None:
    """Nulls, other types, other columns and other operators are left to Spark."""
    assert Hints().narrowed(name, column, value) == Hints()


def test_topics_partitions_and_control_are_common_ground() -> None:
    """Two filters on one column leave what both allow."""
    hints = Hints().narrowed("In", "topic", ["a", "b"]).narrowed("EqualTo", "topic", "b")
    hints = hints.narrowed("In", "partition", (0, 1)).narrowed("EqualTo", "isControl", True)
    assert hints == Hints(topics=frozenset({"b"}), partitions=frozenset({0, 1}), is_control=True)
    assert hints.admits_partition("b", 1)
    assert not hints.admits_partition("a", 1)
    assert not hints.admits_partition("b", 2)
