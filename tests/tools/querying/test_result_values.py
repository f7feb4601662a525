# SPDX-License-Identifier: Apache-2.0
"""Every value that DuckDB returns has a text and a JSON value."""

import datetime
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.querying.result_values import json_members, text_of, values_of
from tests.tools.querying.queries import ask_plainly

MS = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("sql", "text", "value"),
    [
        ("1", "1", 1),
        ("true", "true", True),
        ("1.5::DOUBLE", "1.5", 1.5),
        ("'nan'::DOUBLE", "nan", "nan"),
        ("'inf'::DOUBLE", "inf", "inf"),
        ("1.25::DECIMAL(9,2)", "1.25", 1.25),
        (
            "sum(170141183460469231731687303715884105727::HUGEINT)",
            "170141183460469231731687303715884105727",
            2**127 - 1,
        ),
        ("'é'", "é", "é"),
        ("'a'::BLOB", "a", "a"),
        ("DATE '2026-11-21'", "2026-11-21", "2026-11-21"),
        ("TIME '10:00:01'", "10:00:01", "10:00:01"),
        ("TIMESTAMP '2026-11-21 10:00:01.5'", "2026-11-21T10:00:01.500", "2026-11-21T10:00:01.500"),
        ("TIMESTAMPTZ '2026-11-21 10:00:01.000007+02'", "2026-11-21T08:00:01.000007Z", "2026-11-21T08:00:01.000007Z"),
        ("TIMESTAMP '0001-01-01'", "0001-01-01T00:00:00.000", "0001-01-01T00:00:00.000"),
        ("[1, NULL]", "[1,null]", [1, None]),
        ("{'a': 1, 'b': ['x']}", '{"a":1,"b":["x"]}', {"a": 1, "b": ["x"]}),
        ("{'a': '\\xFF'::BLOB}", '{"a_base64":"/w=="}', {"a_base64": "/w=="}),
        (
            "['\\xFF'::BLOB, 'x'::BLOB]",
            '[{"bytes_base64":"/w=="},{"bytes":"x"}]',
            [{"bytes_base64": "/w=="}, {"bytes": "x"}],
        ),
        ("MAP {'k': 1}", '[["k",1]]', [["k", 1]]),
        ("'a'::ENUM ('a', 'b')", "a", "a"),
        ("'{\"a\": 1}'::JSON", '{"a": 1}', '{"a": 1}'),
        (
            "INTERVAL '-14 months -1 day 25:00:00.5'",
            "-1 year -2 months -1 day 25:00:00.5",
            "-1 year -2 months -1 day 25:00:00.5",
        ),
        ("[INTERVAL 0 DAYS, NULL]", '["00:00:00",null]', ["00:00:00", None]),
        ("{'a': INTERVAL 2 DAYS}", '{"a":"2 days"}', {"a": "2 days"}),
        ("TIMESTAMP '290000-01-01'", "9089348860800000000", "9089348860800000000"),
        (
            "uuid '7325698e-554d-44e8-a99d-143a3ed23424'",
            "7325698e-554d-44e8-a99d-143a3ed23424",
            "7325698e-554d-44e8-a99d-143a3ed23424",
        ),
    ],
)
def test_values_of_duckdb(sql: str, text: str, value: Any, tmp_path: Path) -> None:
    """By type."""
    (found,) = values_of(ask_plainly({}, f"SELECT {sql} AS x", tmp_path)["x"].combine_chunks())
    assert text_of(found) == text
    assert json.loads(json.dumps(json_members("x", found))) == {"x": value}


@pytest.mark.parametrize(
    "sql", ["[TIMESTAMP '290000-01-01']", "DATE '5000000-01-01'", "INTERVAL 1 MONTH", "'101'::BIT"]
)
def test_values_that_python_lacks_are_text(sql: str, tmp_path: Path) -> None:
    """Something is shown, and nothing raised; null stays null."""
    table = ask_plainly({}, f"SELECT * FROM (VALUES ({sql}), (NULL)) AS t(x)", tmp_path)
    shown, null = values_of(table["x"].combine_chunks())
    assert text_of(shown)
    assert json.dumps(json_members("x", shown))
    assert null is None


INTERVALS = st.tuples(
    st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-25, 25),
    st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-2, 2),
    st.integers(-(1 << 53), 1 << 53) | st.sampled_from([0, 1, -1, 10, 10**6, 10**6 - 1, 60 * 10**6, 3600 * 10**6]),
)


@given(st.lists(INTERVALS, min_size=1, max_size=20))
def test_intervals_are_as_duckdb_writes_them(intervals: list[tuple[int, int, int]]) -> None:
    """Years, months and days with their signs and plurals, hours beyond a day, fractions without zeros at the end."""
    values = ", ".join(
        f"(to_months({months}) + to_days({days}) + to_microseconds({us}))" for months, days, us in intervals
    )
    rows = duckdb.connect().sql(f"SELECT x, x::VARCHAR AS text FROM (VALUES {values}) AS t(x)").to_arrow_table()
    assert list(map(text_of, values_of(rows["x"].combine_chunks()))) == rows["text"].to_pylist()


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.none()), st.sampled_from(["s", "ms", "us", "ns"]))
def test_all_times_have_a_text(ticks: list[int | None], unit: str) -> None:
    """Also those that no calendar has; the others are read back."""
    found = values_of(pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, "UTC")))
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    for tick, text in zip(ticks, found, strict=True):
        if tick is None:
            assert text is None
        elif "T" in text:
            seconds = datetime.datetime.fromisoformat(text.split(".")[0] + "+00:00").timestamp()
            fraction = text.split(".")[1].rstrip("Z")
            assert round(seconds) * per_second + int(fraction) * per_second // 10 ** len(fraction) == tick
        else:
            assert text == str(tick)
            assert not 0 <= tick // per_second < 250_000_000_000


@given(st.binary())
def test_bytes_are_text_or_base64(data: bytes) -> None:
    """In JSON they are read back exactly; as text they are one value that can be shown."""
    import base64

    members = json_members("x", data)
    back = base64.b64decode(members["x_base64"]) if "x_base64" in members else members["x"].encode()
    assert back == data
    assert bool(text_of(data)) == bool(data)
