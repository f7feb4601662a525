# SPDX-License-Identifier: Apache-2.0
"""Formats times, time spans and places for tables, reports and JSON lines."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from raftlog.file_paths import name_of
from raftlog.records.files.file_names import FileKind

LAST_MS: Final = 253_402_300_799_999
"""The last time that calendars have, in ms since the Unix epoch: the end of the year 9999."""
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def time_text(timestamp: int) -> str:
    """Format ms since the Unix epoch as ISO 8601 in UTC, or as a number if no calendar has that time."""
    try:
        time = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(timestamp)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03}Z" if timestamp >= 0 else "-"


def duration_text(duration_ms: int) -> str:
    """Format a time span in its two largest units, or in seconds.

    Args:
        duration_ms: in ms, 0 or more.
    """
    for index, (size, unit) in enumerate(_UNITS):
        if duration_ms >= size:
            smaller, name = (*_UNITS[1:], (1000, "s"))[index]
            return f"{duration_ms // size} {unit} {duration_ms % size // smaller} {name}"
    return f"{duration_ms / 1000:.3f} s"


def seen_text(paths: Sequence[str]) -> str:
    """Summarize where something was seen: in how many logs and snapshots, and in which directories."""
    snapshots = sum(name_of(path).endswith(FileKind.SNAPSHOT.value) for path in paths)
    counts = [(len(paths) - snapshots, "segment"), (snapshots, "snapshot")]
    what = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts if count)
    places = list(dict.fromkeys(path.split("/")[-3] if path.count("/") > 1 else "." for path in paths))
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return f"{what} of {', '.join(places[:5])}{more}"


def ids_text(ids: Iterable[object]) -> str:
    """Return ids with commas between them."""
    return ", ".join(map(str, ids))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends with -s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
