# SPDX-License-Identifier: Apache-2.0
"""The progress bar: for long files, on a terminal, and removed when the reading is over."""

import io
import sys

import pytest

from raftlog.tools.terminal.progress import Progress
from raftlog.tools.terminal.standard_error import say

LONG = 64 * 1024 * 1024


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO | None, size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The output of reading a file to its middle."""
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("a.log", size_bytes) as progress:
        for position in range(0, size_bytes // 2 + 1, max(1, size_bytes // 8)):
            progress.reached(position)
    return "" if stream is None else stream.getvalue()


def test_a_long_file_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar with a share is drawn, not at every step, and is wiped at the end."""
    monkeypatch.setattr("raftlog.tools.terminal.progress._INTERVAL_SECONDS", 0)
    text = shown(Terminal(), LONG, monkeypatch)

    assert "a.log [###############---------------]  50%" in text
    assert text.endswith("\r\x1b[K")
    monkeypatch.setattr("raftlog.tools.terminal.progress._INTERVAL_SECONDS", 3600)
    assert shown(Terminal(), LONG, monkeypatch).count("%") == 1


def test_it_is_wiped_when_the_reading_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves no part of a bar."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def read() -> None:
        with Progress("a.log", LONG) as progress:
            progress.reached(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()

    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short file, a standard error that is not a terminal, and a closed one show nothing."""
    assert shown(Terminal(), 1000, monkeypatch) == ""
    assert shown(io.StringIO(), LONG, monkeypatch) == ""
    assert shown(None, LONG, monkeypatch) == ""


def test_a_message_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message takes one line, whatever it contains; without standard error there is no message."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    say("a\nb\x1b[31m\u2028c")
    monkeypatch.setattr(sys, "stderr", None)
    say("nothing")

    assert stream.getvalue() == "raftlog: a\\x0ab\\x1b[31m\\u2028c\n"
