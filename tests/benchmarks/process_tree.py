# SPDX-License-Identifier: Apache-2.0
"""How much memory a program takes with all that it starts: a sample a second, as each takes a hundredth of that."""

import subprocess
import threading
from types import TracebackType
from typing import Final, Self

_PERIOD_S: Final = 2
_KIB: Final = 1024


class MemoryWatch:
    """Watches a process and what it starts, whenever it is used as a context manager.

    Args:
        process: its id.

    Attributes:
        peaks: the most bytes that each kind of process took at once: ``program``, ``java`` (all of them together), and
            ``task``, the largest of what Java has started.
        peak: the most that all took at once.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self.peaks = {"program": 0, "java": 0, "task": 0}
        self.peak = 0

    def _watch(self) -> None:
        while not self._is_over.wait(_PERIOD_S):
            self._sample()

    def _sample(self) -> None:
        """Look at all processes once."""
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,rss=,comm="], capture_output=True, text=True, check=True
        )
        processes = {int(fields[0]): fields[1:] for fields in map(str.split, listing.stdout.splitlines())}
        sizes: dict[str, list[int]] = {kind: [] for kind in self.peaks}
        for number, (parent, kib, name, *_) in processes.items():
            kind = self._kind(number, processes)
            if kind is not None and not (name == "java" and processes.get(int(parent), ["", "", ""])[2] == "java"):
                sizes[kind].append(int(kib) * _KIB)
        now = {"program": sum(sizes["program"]), "java": sum(sizes["java"]), "task": max(sizes["task"], default=0)}
        self.peaks = {kind: max(self.peaks[kind], now[kind]) for kind in now}
        self.peak = max(self.peak, sum(map(sum, sizes.values())))

    def _kind(self, number: int, processes: dict[int, list[str]]) -> str | None:
        """Return what a process is to the program, or None if it is nothing to it.

        What Java has just started still has all of Java's memory, and a name that is not yet Python's: it is nothing.
        """
        name = processes[number][2]
        kind = "java" if name == "java" else "program"
        while number != self._process:
            if number not in processes:
                return None
            if kind == "program" and processes[number][2] == "java":
                kind = "task"
            number = int(processes[number][0])
        return None if kind == "task" and not name.startswith("python") else kind

    def __enter__(self) -> Self:
        self._is_over.clear()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
