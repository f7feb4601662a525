# SPDX-License-Identifier: Apache-2.0
"""The values of a result, as text for people and CSV, and as values of JSON."""

import datetime
import decimal
import math
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from raftlog.tools.terminal.json_lines import encode, text_or_base64

NULL: Final = "null"
"""How a table shows a value that is not there."""
_TICKS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
"""How many of each unit a second has."""
_EPOCH: Final = datetime.datetime(1970, 1, 1)


def values_of(column: pa.Array) -> list[Any]:
    """Return the values of a column as Python values; times are text in ISO 8601, in UTC if they have a zone."""
    if pa.types.is_timestamp(column.type):
        ticks, zone = _TICKS[column.type.unit], "Z" if column.type.tz else ""
        return [None if each is None else _time(each, ticks, zone) for each in column.cast(pa.int64()).to_pylist()]
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # A time inside a list or a struct, or a date, that Python's calendar lacks.
        return list(map(_python, column))


def text_of(value: Any) -> str:
    """Return a value as text. Bytes are UTF-8, with an escape for each byte that is not."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, Mapping | list | tuple):
        return encode({"": json_value(value)})[len('{"":') : -1]
    return str(value)


def json_members(name: str, value: Any) -> dict[str, Any]:
    """Return the member of a JSON object for a value, as all verbs write bytes: as text, or else as base64."""
    return text_or_base64(name, value) if isinstance(value, bytes) else {name: json_value(value)}


def json_value(value: Any) -> Any:
    """Return a value as JSON has it; bytes inside a list are objects with the member ``bytes``."""
    if isinstance(value, Mapping):
        return {key: each for name, inner in value.items() for key, each in json_members(str(name), inner).items()}
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return text_or_base64("bytes", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def interval_text(value: pa.MonthDayNano) -> str:
    """Return an interval as DuckDB writes it: ``1 year 2 months 3 days 04:05:06.7``.

    Source: duckdb, ``IntervalToStringCast``.
    """
    months, days, nanoseconds = value
    sign = -1 if months < 0 else 1
    counts = ((sign * (abs(months) // 12), "year"), (sign * (abs(months) % 12), "month"), (days, "day"))
    words = [f"{count} {noun}{'' if abs(count) == 1 else 's'}" for count, noun in counts if count]
    if nanoseconds or not words:
        seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
        fraction = f".{rest:09}".rstrip("0") if rest else ""
        minutes = seconds // 60
        words.append(f"{'-' * (nanoseconds < 0)}{minutes // 60:02}:{minutes % 60:02}:{seconds % 60:02}{fraction}")
    return " ".join(words)


def _time(ticks: int, per_second: int, zone: str) -> str:
    """Return a time as text; as a number of ticks if no calendar has it."""
    seconds, rest = divmod(ticks, per_second)
    try:
        whole = _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return str(ticks)
    digits = max(3, len(str(per_second)) - 1)
    fraction = f"{rest * 10**digits // per_second:0{digits}}"
    shown = fraction if int(fraction[3:] or 0) else fraction[:3]
    return f"{whole.isoformat(timespec='seconds')}.{shown}{zone}"


def _python(scalar: Any) -> Any:
    """Return a scalar of Arrow as a Python value; a number in place of a date that no calendar has."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.ListScalar):
            return values_of(scalar.values)
        if isinstance(scalar, pa.StructScalar):
            return {name: _python(scalar[name]) for name in scalar}
        return str(scalar.value)
