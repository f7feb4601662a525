# SPDX-License-Identifier: Apache-2.0
"""What a tool says to people: one message a line, on standard error."""

import re
import sys
from typing import Final

_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def printable(text: str) -> str:
    """Show as escapes what a terminal would act upon, and what would end the line."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def unicode_text(text: str) -> str:
    """Return a text that any reader takes: what is no Unicode, in a file's name, is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def say(text: str, speaker: str = "raftlog") -> None:
    """Write one line, if there is a standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"{speaker}: {printable(text)}\n")
