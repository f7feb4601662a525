# SPDX-License-Identifier: Apache-2.0
"""Takes note of a signal that asks the command to end, so that it can print what it has so far."""

import os
import signal
import sys
from types import FrameType
from typing import Any, Final, Self

from raftlog.tools.terminal.exit_codes import EXIT_INTERRUPTED

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Of a terminal's Ctrl-C, of ``timeout`` and ``kill``, and of a terminal that is closed."""


class Interrupts:
    """Takes note of the first of ``SIGNALS`` in a ``with`` block; a second one raises ``KeyboardInterrupt``.

    A signal that the process ignores, as one in the background of a script ignores SIGINT, stays ignored. Use it on the
    main thread.

    Attributes:
        number: of the signal; None if there was none.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        for each in SIGNALS:
            if signal.getsignal(each) not in (signal.SIG_IGN, None):
                self._before[each] = signal.signal(each, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
        os.write(self._writer, b"\0")

    def fileno(self) -> int:
        """Return a descriptor that is readable from the signal on, until it was heeded."""
        return self._reader

    def heed(self) -> None:
        """Have the descriptor not readable any more."""
        os.read(self._reader, 1)

    def exit_code(self) -> int:
        """Return the exit code of what was interrupted, once the block has ended.

        It is that of other verbs: signals but SIGINT end the process.
        """
        if self.number not in (None, signal.SIGINT):
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            signal.raise_signal(self.number)
        return EXIT_INTERRUPTED
