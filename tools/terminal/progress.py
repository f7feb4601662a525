# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error, for long files on a terminal."""

import sys
import time
from typing import Final, Self

from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.text_width import cut_line, terminal_columns

_LONG_FILE_SIZE: Final = 32 * 1024 * 1024
_INTERVAL_SECONDS: Final = 0.2
_BAR_WIDTH: Final = 30
_REST_WIDTH: Final = 10
"""The width of brackets, blanks and percentage. A bar wider than a line could not be redrawn in place."""


class Progress:
    """Shows the progress of reading a file, only on a terminal and only for long files.

    Use it as a context manager: leaving it removes the bar from the terminal.

    Args:
        label: what is read.
        size_bytes: size of the file.

    Attributes:
        is_shown: whether it is shown at all.
    """

    def __init__(self, label: str, size_bytes: int) -> None:
        self._label = cut_line(printable(label), max(0, terminal_columns(sys.stderr) - _BAR_WIDTH - _REST_WIDTH))
        self._size_bytes = size_bytes
        self.is_shown = size_bytes >= _LONG_FILE_SIZE and sys.stderr is not None and sys.stderr.isatty()
        self._next_time = 0.0

    def reached(self, position: int) -> None:
        """Show that everything before a byte position has been read."""
        if not self.is_shown or (now := time.monotonic()) < self._next_time:
            return
        self._next_time = now + _INTERVAL_SECONDS
        share = min(1.0, position / self._size_bytes)
        bar = "#" * round(share * _BAR_WIDTH)
        sys.stderr.write(f"\r{self._label} [{bar:-<{_BAR_WIDTH}}] {share:4.0%}")
        sys.stderr.flush()

    def wipe(self) -> None:
        """Remove the bar from the terminal; further progress shows it again."""
        if self.is_shown and self._next_time:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._next_time = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()
