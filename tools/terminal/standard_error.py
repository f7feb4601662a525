# SPDX-License-Identifier: Apache-2.0
"""What a tool says to people: one message a line, on standard error."""

import sys
from typing import Final

_ESCAPES: Final = {code: f"\\x{code:02x}" for code in [*range(0x20), *range(0x7F, 0xA0)]} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def printable(text: str) -> str:
    """Show as escapes what a terminal would act upon, and what would end the line."""
    return text.translate(_ESCAPES)


def unicode_text(text: str) -> str:
    """Return a text that any reader takes: what is no Unicode, in a file's name, is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def say(text: str, speaker: str = "raftlog") -> None:
    """Write one line, if there is a standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"{speaker}: {printable(text)}\n")
