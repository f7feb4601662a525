# SPDX-License-Identifier: Apache-2.0
"""Contenders that are an operation in a process of its own, which goes on from one round to the next."""

from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import attrs

from tests.benchmarks.line_process import LineProcess
from tests.benchmarks.measure import Mode, environment


class Worker:
    """A process that does operations (``tests.benchmarks.worker``). Use it as a context manager.

    Args:
        folder: where the inputs are.
        mode: how it runs raftlog.

    Raises:
        RuntimeError: the kernel is not built, and so cannot be measured.
    """

    def __init__(self, folder: Path, mode: Mode) -> None:
        self._arguments = folder, mode
        self._process = LineProcess("tests.benchmarks.worker", str(folder), variables=environment(mode))
        if self._process.answer()["is_compiled"] != (mode == "compiled"):
            self.close()
            raise RuntimeError("the kernel is not built here: see what the install said about a compiler")

    def run(self, operation_name: str, shape: str, size_mib: float) -> dict[str, Any]:
        """Do an operation once."""
        return self._process.ask({"operation_name": operation_name, "shape": shape, "size_mib": size_mib})

    def input(self, shape: str, size_mib: float) -> str:
        """Return the path of an input."""
        path: str = self._process.ask({"shape": shape, "size_mib": size_mib})["path"]
        return path

    def another(self) -> "Worker":
        """Start one like it."""
        return Worker(*self._arguments)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@attrs.define
class Speed:
    """How much an operation does in a second.

    Attributes:
        worker: who does it.
        operation_name: one of ``contenders.OPERATIONS``.
        shape, size_mib: of the input.
        of: what is counted, ``count`` or ``size_bytes``.
        unit: how many make one in the figure.
        clock: the processor's time, or the time that passes.
    """

    worker: Worker
    operation_name: str
    shape: str
    size_mib: float
    of: Literal["count", "size_bytes"] = "count"
    unit: float = 1e6
    clock: Literal["cpu_s", "wall_s"] = "cpu_s"
    _last: dict[str, Any] = attrs.field(factory=dict, init=False)

    def measure(self) -> float:
        """Return units a second."""
        self._last = self.worker.run(self.operation_name, self.shape, self.size_mib)
        return self.by_last(self.clock)

    def by_last(self, clock: str) -> float:
        """Return units a second, by one of the times that the last round has measured."""
        amount: float = self._last[self.of] / self._last[clock]
        return amount / self.unit

    def peak_memory_bytes(self) -> int:
        """Return the peak of a new process that does this alone, without the log that it holds in memory."""
        with self.worker.another() as worker:
            peak: int = worker.run(self.operation_name, self.shape, self.size_mib)["peak_memory_bytes"]
        return peak


@attrs.frozen
class Beside:
    """What an operation has measured beside itself, in its last round; measure that first."""

    speed: Speed

    def measure(self) -> float:
        """Return units a second."""
        return self.speed.by_last("beside_s")

    def peak_memory_bytes(self) -> int:
        """Return nothing: it was not alone."""
        return 0


@attrs.frozen
class Duration:
    """How long one of what a speed counts takes: in µs, where the speed is in millions a second."""

    speed: Speed

    def measure(self) -> float:
        """Return the time."""
        return 1 / self.speed.measure()

    def peak_memory_bytes(self) -> int:
        """Return the peak of the same."""
        return self.speed.peak_memory_bytes()


@attrs.frozen
class Peak:
    """How much memory an operation takes, in MiB; attributes are those of ``Speed``."""

    speed: Speed

    def measure(self) -> float:
        """Return the peak in MiB."""
        return self.speed.peak_memory_bytes() / 1024**2

    def peak_memory_bytes(self) -> int:
        """Return the same in bytes."""
        return self.speed.peak_memory_bytes()
