# SPDX-License-Identifier: Apache-2.0
"""Where in the log a state is asked for: at an offset, at a time, or some records before the end."""

import argparse
import re
from typing import Final

import attrs

from raftlog.tools.dump.selection import parse_time_ms

_MOST_DIGITS: Final = 19
_NUMBER: Final = re.compile(r"-?[0-9]+", re.ASCII)


@attrs.frozen
class Position:
    """A place in the log; at most one attribute is set. Without any, it is the end of the log.

    Attributes:
        text: as the user wrote it.
        offset: the records below it count, exclusive.
        time_ms: the records count that come before the first batch that was appended later, in ms since the Unix epoch.
        from_end: how many offsets before the end of the log.
    """

    text: str = "the end"
    offset: int | None = None
    time_ms: int | None = None
    from_end: int | None = None


def parse_position(text: str) -> Position:
    """Parse an offset, a time in ISO 8601 (UTC unless it says), or a negative number, which counts from the end.

    Raises:
        ValueError: it is none of these.
    """
    if _NUMBER.fullmatch(text):
        if len(text.lstrip("-")) > _MOST_DIGITS:
            raise ValueError("no log has so many offsets")
        number = int(text)
        return Position(text, from_end=-number) if text.startswith("-") else Position(text, offset=number)
    if not text.isascii():
        raise ValueError("it has characters that no time has")
    return Position(text, time_ms=parse_time_ms(text))


def parsed_position(text: str) -> Position:
    """Return the position that an option gives.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        return parse_position(text)
    except (ValueError, OverflowError) as error:
        problem = f"{text!r} is no offset, no time in ISO 8601 and no -N: {error}"
        raise argparse.ArgumentTypeError(problem) from None
