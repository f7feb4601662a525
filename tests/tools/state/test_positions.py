# SPDX-License-Identifier: Apache-2.0
"""What the words of ``--at`` mean."""

import pytest

from raftlog.tools.state.positions import Position, parse_position


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Position("0", offset=0)),
        ("193", Position("193", offset=193)),
        ("-0", Position("-0", from_end=0)),
        ("-1", Position("-1", from_end=1)),
        ("9" * 19, Position("9" * 19, offset=int("9" * 19))),
        ("1970-01-01T00:00:01", Position("1970-01-01T00:00:01", time_ms=1000)),
        ("1970-01-01T00:00:01.5+00:01", Position("1970-01-01T00:00:01.5+00:01", time_ms=1500 - 60_000)),
        ("2026-11-21", Position("2026-11-21", time_ms=1_795_219_200_000)),
    ],
)
def test_each_form_is_understood(text: str, expected: Position) -> None:
    """Digits are an offset, with a minus they count from the end, all else is a time: in UTC unless it says."""
    assert parse_position(text) == expected


@pytest.mark.parametrize(
    "text", ["", "-", "+1", "1e3", "--1", "end", "12:00", "2026-13-01", "9" * 20, "-" + "9" * 20, "٣"]
)
def test_anything_else_is_refused(text: str) -> None:
    """No guess is made."""
    with pytest.raises(ValueError):
        parse_position(text)
