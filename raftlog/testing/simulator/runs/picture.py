# SPDX-License-Identifier: Apache-2.0
"""A story as text: a script with a line per event, and a picture with a column per replica and time downward."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.testing.simulator.story import StoryEvent

_TIME_WIDTH: Final = 11
_COLUMN_WIDTH: Final = 38
_MARKS: Final = {"role": "*", "fault": "!", "client": "$"}
_DRAWN: Final = frozenset({"arrived", "lost"})
"""A message is drawn where it arrives, or does not."""


def script_lines(events: Sequence[StoryEvent]) -> Iterator[str]:
    """Yield a line per event; a message that arrives later has one line there."""
    for event in events:
        if event.kind != "sent":
            yield str(event)


def picture_lines(events: Sequence[StoryEvent], replicas: Sequence[int]) -> Iterator[str]:
    """Yield a picture: a column per replica, time downward, an arrow per message.

    Args:
        events: of the story, in order.
        replicas: their ids, in the order of the columns.
    """
    columns = {replica: number for number, replica in enumerate(replicas)}
    heads = "".join(f"replica {replica}".center(_COLUMN_WIDTH) for replica in replicas)
    yield (" " * _TIME_WIDTH + heads).rstrip()
    last_ms = -1
    for event in events:
        if event.kind == "sent":
            continue
        time = f"{event.at_ms:>7,} ms" if event.at_ms != last_ms else ""
        last_ms = event.at_ms
        yield f"{time:<{_TIME_WIDTH}}{_row(event, columns)}".rstrip()


def _row(event: StoryEvent, columns: dict[int, int]) -> str:
    width = _COLUMN_WIDTH * len(columns)
    if event.kind in _DRAWN and event.sender in columns and event.replica in columns:
        return _arrow(event, columns[event.sender], columns[event.replica], len(columns))
    if event.replica not in columns:
        return f" {event.words} ".center(width, "=")
    lanes = ["|".center(_COLUMN_WIDTH)] * len(columns)
    number = columns[event.replica]
    words = f"{_MARKS.get(event.kind, '-')} {event.words}"
    free = _COLUMN_WIDTH * (len(columns) - number)
    if len(words) > _COLUMN_WIDTH:  # Long words reach over the lanes to the right.
        return "".join(lanes[:number]) + (words if len(words) <= free else words[: free - 1] + "…")
    lanes[number] = words.center(_COLUMN_WIDTH)
    return "".join(lanes)


def _arrow(event: StoryEvent, start: int, end: int, count: int) -> str:
    """Draw a message from the middle of one lane to that of another; a lost one stops before its lane."""
    cells = list("|".center(_COLUMN_WIDTH) * count)
    left, right = sorted((start, end))
    first, last = left * _COLUMN_WIDTH + _COLUMN_WIDTH // 2, right * _COLUMN_WIDTH + _COLUMN_WIDTH // 2
    if start == end:
        words = f"(itself: {event.words})"
        first = max(0, min(first, len(cells) - len(words)))
        return f"{''.join(cells[:first])}{words[: len(cells) - first]}"
    inside = last - first - 1
    words = event.words.removesuffix(" is lost")
    label = words if len(words) <= inside - 4 else words[: inside - 5] + "…"
    line = f" {label} ".center(inside, "-")
    head = "x" if event.kind == "lost" else (">" if end > start else "<")
    line = line[:-1] + head if end > start else head + line[1:]
    cells[first + 1 : last] = line
    return "".join(cells)
