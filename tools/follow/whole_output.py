# SPDX-License-Identifier: Apache-2.0
"""Standard output of a dump, in large pieces, which an interrupt does not cut."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO, Final

_OUTPUT_CHUNK_SIZE: Final = 64 * 1024


class Output:
    """Standard output, written in large pieces; bytes of a file's name that are not UTF-8 are written unchanged."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pending: list[str] = []
        self._pending_size = 0
        self._is_writing = self._is_interrupted = False

    @property
    def descriptor(self) -> int | None:
        """The number of the open file that is written to; None if it is none."""
        try:
            return self._stream.fileno()
        except (OSError, ValueError):
            return None

    @contextmanager
    def whole_at_interrupts(self) -> Iterator[None]:
        """Let an interrupt wait while lines are written (``whole_lines``), so that the output ends with a whole one.

        A second interrupt does not wait, as nobody may read the output.
        """
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_writing or self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt
        self._is_interrupted = True

    @contextmanager
    def whole_lines(self) -> Iterator[None]:
        """Let an interrupt wait, in here, until a line ends."""
        self._is_writing = True
        try:
            yield
        finally:
            self._is_writing = False
        self._end_if_interrupted()

    def _end_if_interrupted(self) -> None:
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def write(self, text: str) -> None:
        """Write text."""
        self._pending.append(text)
        self._pending_size += len(text)
        if self._pending_size >= _OUTPUT_CHUNK_SIZE:
            self._write_pieces()
        if self._is_interrupted and text.endswith("\n"):
            self._end_if_interrupted()

    def write_bytes(self, text: bytes) -> None:
        """Write bytes, after what was written before."""
        self._write_pieces()
        self._stream.write(text)
        if self._is_interrupted and text.endswith(b"\n"):
            self._end_if_interrupted()

    def flush(self) -> None:
        """Write what is kept back."""
        self._write_pieces()
        self._stream.flush()

    def _write_pieces(self) -> None:
        pending, self._pending, self._pending_size = self._pending, [], 0
        self._stream.write("".join(pending).encode("utf-8", "surrogateescape"))
