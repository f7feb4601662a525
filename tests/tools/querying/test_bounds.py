# SPDX-License-Identifier: Apache-2.0
"""What a filter excludes is found for all expressions that Arrow simplifies, and nothing that can match is excluded."""

import datetime
import functools
import operator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.querying.bounds import Filter, greatest
from raftlog.tools.querying.views import schema_of
from raftlog.tools.spark.rows.filters import Hints

RECORDS = schema_of("records")
OFFSET, TIME, TOPIC = ds.field("offset"), ds.field("timestamp"), ds.field("topic")
NOON = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
NOON_MS = int(NOON.timestamp() * 1000)
LIMIT = (1 << 63) - 1


def at(time: datetime.datetime) -> Any:
    return pa.scalar(time, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("expression", "hints"),
    [
        (None, Hints()),
        (OFFSET == 7, Hints(first_offset=7, last_offset=7)),
        (OFFSET > 7, Hints(first_offset=8)),
        (OFFSET >= 7, Hints(first_offset=7)),
        (OFFSET < 7, Hints(last_offset=6)),
        (OFFSET <= 7, Hints(last_offset=7)),
        (OFFSET <= -1, Hints(last_offset=-1)),
        (OFFSET >= LIMIT, Hints(first_offset=LIMIT - 1)),
        ((OFFSET >= 7) & (OFFSET < 9), Hints(first_offset=7, last_offset=8)),
        ((OFFSET == 3) | (OFFSET == 9), Hints(first_offset=3, last_offset=9)),
        ((OFFSET == 3) | (TOPIC == "a"), Hints()),
        (OFFSET.isin([5, 3, 9]), Hints(first_offset=3, last_offset=9)),
        ((OFFSET > 3) & (ds.field("batchBaseOffset") < 2), Hints(first_offset=4, last_offset=1)),
        (TOPIC == "a", Hints()),
        (at(NOON) <= TIME, Hints(since_ms=NOON_MS)),
        (at(NOON) < TIME, Hints(since_ms=NOON_MS)),
        (at(NOON) > TIME, Hints()),
        ((at(NOON) <= TIME) | TIME.is_null(), Hints()),
        (OFFSET.is_null(), Hints(first_offset=LIMIT - 1, last_offset=-1)),
    ],
    ids=str,
)
def test_hints(expression: Any, hints: Hints) -> None:
    """Offsets and times at the limit are in, one before or after are out."""
    assert Filter(expression, RECORDS).hints() == hints


@given(st.integers(0, LIMIT), st.integers(0, LIMIT), st.integers(0, LIMIT))
def test_no_offset_within_a_range_is_excluded(low: int, high: int, offset: int) -> None:
    """For any range of 64 bits, the hints admit an offset if it is in the range."""
    hints = Filter((low <= OFFSET) & (high >= OFFSET), RECORDS).hints()
    if low <= offset <= high and offset < LIMIT:
        assert hints.first_offset is None or hints.first_offset <= offset
        assert hints.last_offset is None or offset <= hints.last_offset


BOUNDS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, LIMIT - 1)), min_size=2, max_size=2).map(sorted)


def alternatives(bounds: list[list[int]], column: str = "offset") -> Any:
    """A filter that offsets within one of some bounds meet."""
    each = [(low <= ds.field(column)) & (high >= ds.field(column)) for low, high in bounds]
    return functools.reduce(operator.or_, each)


def united(bounds: list[list[int]]) -> list[tuple[int, int]]:
    """The same offsets as ranges that neither overlap nor touch, by going through them in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(bounds):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


@given(st.lists(BOUNDS, min_size=1, max_size=5), st.sampled_from(["offset", "batchBaseOffset"]), st.booleans())
def test_ranges_are_those_of_a_filter(bounds: list[list[int]], column: str, has_topic: bool) -> None:
    """Whatever else is compared, the ranges are exactly the alternatives that were given, joined where they touch."""
    wanted = alternatives(bounds, column)
    ranges = Filter(wanted & (TOPIC == "a") if has_topic else wanted, RECORDS).ranges()
    expected = united(bounds)
    assert [(each.last_offset, each.first_offset) for each in ranges] == [(last, first) for first, last in expected]


@pytest.mark.parametrize(
    ("expression", "ranges"),
    [
        (None, [(None, None)]),
        (OFFSET >= 7, [(7, None)]),
        ((OFFSET < 7) | (OFFSET > 9), [(0, 6), (10, LIMIT - 1)]),
        ((OFFSET <= 7) | (OFFSET >= 9), [(0, 7), (9, LIMIT - 1)]),
        ((OFFSET <= 7) | (OFFSET > 7), [(None, None)]),
        (OFFSET.isin([9, 3, 900]), [(3, 3), (9, 9), (900, 900)]),
        (OFFSET.isin(list(range(0, 300, 10))), [(each, each) for each in range(0, 300, 10)]),
        (OFFSET.isin(list(range(0, 500, 10))), [*((each, each) for each in range(0, 310, 10)), (310, 490)]),
        (OFFSET.isin(list(range(0, 510, 10))), [(None, None)]),  # Arrow does not look into longer lists.
        ((OFFSET == 3) | ((OFFSET == 900) & (TOPIC == "a")), [(3, 3), (900, 900)]),
        ((OFFSET == 3) | (TOPIC == "a"), [(None, None)]),
        (OFFSET.isin([3, 900]) & (ds.field("batchBaseOffset") < 5), [(3, 3), (900, 4)]),
    ],
    ids=lambda each: f"{len(each)}-ranges" if isinstance(each, list) else " ".join(str(each).split())[:60],
)
def test_ranges(expression: Any, ranges: list[tuple[int | None, int | None]]) -> None:
    """Offsets at the limits of a range are in, one beside them is out; of many gaps, 32 are looked for."""
    assert [(each.first_offset, each.last_offset) for each in Filter(expression, RECORDS).ranges()] == ranges


@pytest.mark.parametrize(("count", "found"), [(31, 31), (32, 31)])
def test_of_many_ranges_the_widest_gaps_count(count: int, found: int) -> None:
    """Of 32 gaps, two are before and after all ranges. No range is lost, and those with narrow gaps are joined."""
    bounds = [[each * 1000 + each, each * 1000 + 2 * each] for each in range(1, count + 1)]
    ranges = Filter(alternatives(bounds), RECORDS).ranges()
    assert len(ranges) == found
    for low, high in bounds:
        assert any((each.first_offset or 0) <= low <= high <= (each.last_offset or 0) for each in ranges)


def test_values_of_several_columns_are_known_together() -> None:
    """A log is left out only if no part of an alternative can match all of its values."""
    wanted = Filter(
        ((TOPIC == "a") & (ds.field("partition") == 1)) | ((TOPIC == "b") & ds.field("nodeId").is_null()), RECORDS
    )
    assert wanted.allows_values(topic="a", partition=1, nodeId=7)
    assert not wanted.allows_values(topic="a", partition=2, nodeId=None)
    assert wanted.allows_values(topic="b", partition=2, nodeId=None)
    assert not wanted.allows_values(topic="b", partition=1, nodeId=7)
    assert not wanted.allows_values(topic=None, partition=None, nodeId=None)
    assert wanted.allows_values(topic="b", isSnapshot=True)  # The view has no such column.


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        (None, []),
        (OFFSET > 3, ["offset"]),
        ((OFFSET > 3) | TOPIC.isin(["key", "value"]), ["offset", "topic"]),
        (ds.field("key") == b"offset", ["key"]),
    ],
    ids=str,
)
def test_the_columns_of_a_filter(expression: Any, columns: list[str]) -> None:
    """They are those that it compares, not those that its values are called like."""
    assert Filter(expression, RECORDS).columns() == set(columns)


def test_a_filter_that_is_not_of_the_view_allows_everything() -> None:
    """It is not understood, so that all columns are read, and all rows."""
    strange = Filter(ds.field("nowhere") > 3, RECORDS)
    assert strange.columns() == set(RECORDS.names)
    assert strange.allows(OFFSET < 3)


@given(st.integers(-100, 100), st.integers(-100, 100), st.integers(-120, 120))
def test_bisection(low: int, high: int, most: int) -> None:
    """It finds the greatest number for which something holds, as a walk over all would."""
    expected = max((number for number in range(low, high + 1) if number <= most), default=None)
    assert greatest(low, high, lambda number: number <= most) == expected


@given(st.sets(st.integers(0, 60)))
def test_bisection_never_claims_what_was_not_found(holding: set[int]) -> None:
    """Also if what holds for a number does not hold for all below it."""
    found = greatest(0, 60, holding.__contains__)
    assert found is None or found in holding
