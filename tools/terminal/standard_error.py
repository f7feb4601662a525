# SPDX-License-Identifier: Apache-2.0
"""Writes messages for people to standard error, one per line."""

import sys
from typing import Final

HIDDEN_RANGES: Final = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),
)
"""First and last of each range of invisible characters: a terminal acts upon them, or they end a line, have no width,
or reverse the direction of text."""


def character_escape(code: int) -> str:
    """Return the escape of a character, as Python writes it."""
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES: Final = {code: character_escape(code) for first, last in HIDDEN_RANGES for code in range(first, last + 1)}


def printable(text: str) -> str:
    """Escape invisible characters, and those that a terminal acts upon. The result is one line."""
    return text.translate(_ESCAPES)


def unicode_text(text: str) -> str:
    """Escape lone surrogates, which stand for bytes in a file's name that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def say(text: str, speaker: str = "raftlog") -> None:
    """Write one line, if there is a standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"{speaker}: {printable(text)}\n")
