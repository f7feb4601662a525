# SPDX-License-Identifier: Apache-2.0
"""What a filter excludes is found for all expressions that Arrow simplifies, and nothing that can match is excluded."""

import datetime
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
