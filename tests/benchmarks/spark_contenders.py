# SPDX-License-Identifier: Apache-2.0
"""Contenders that run on Spark: an operation in a session that is there, and a whole program with all it starts."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import attrs

from tests.benchmarks.line_process import LineProcess
from tests.benchmarks.measure import environment
from tests.benchmarks.process_tree import MemoryWatch


class SparkProcess:
    """A process with a session (``tests.benchmarks.spark_operations``). Use it as a context manager.

    Args:
        master: where its session runs.
        configuration: of the session.
        variables: of the environment, besides those that are there.

    Attributes:
        start_s: how long it took until a first task had run.
        watch: how much memory it takes while it is at work, with what it starts on this machine.
    """

    def __init__(self, master: str, configuration: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self._process = LineProcess(
            "tests.benchmarks.spark_operations",
            master,
            json.dumps(dict(configuration)),
            variables=environment("compiled") | dict(variables),
        )
        self.watch = MemoryWatch(self._process.pid)
        self._warm: set[tuple[str, Path]] = set()

    def run(self, operation: str, path: Path, warm_ups: int) -> dict[str, Any]:
        """Do an operation, the first time some times before it counts: Java is slow with what is new to it."""
        if (operation, path) not in self._warm:
            self._warm.add((operation, path))
            for _ in range(warm_ups):
                self._done(operation, path)
        return self._done(operation, path)

    def _done(self, operation: str, path: Path) -> dict[str, Any]:
        with self.watch:
            return self._process.ask({"operation": operation, "path": str(path)})

    def __enter__(self) -> Self:
        self.start_s: float = self._process.answer()["start_s"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.close()


@attrs.frozen
class SparkSpeed:
    """How much an operation does in a second that passes.

    Attributes:
        process: who does it.
        operation: one of ``spark_operations.OPERATIONS``.
        path: of what.
        amount: what it does, in units; None is what it counts, in millions.
        warm_ups: how often it is done before it counts.
        repeats: how often it is done in a round; what takes seconds is at the mercy of the machine's other work.
    """

    process: SparkProcess
    operation: str
    path: Path
    amount: float | None = None
    warm_ups: int = 3
    repeats: int = 1

    def measure(self) -> float:
        """Return units a second."""
        done = [self.process.run(self.operation, self.path, self.warm_ups) for _ in range(self.repeats)]
        amount = sum(each["count"] / 1e6 if self.amount is None else self.amount for each in done)
        return float(amount / sum(each["wall_s"] for each in done))

    def peak_memory_bytes(self) -> int:
        """Return the peak of the process and of what it has started on this machine, up to now."""
        return self.process.watch.peak


@attrs.frozen
class MeanSpeed:
    """The mean of speeds, of contenders that are alike but for their processors, one after the other.

    Attributes:
        contenders: there is one at least.
    """

    contenders: Sequence[SparkSpeed]

    def measure(self) -> float:
        """Return units a second."""
        return statistics.mean(each.measure() for each in self.contenders)

    def peak_memory_bytes(self) -> int:
        """Return the greatest of their peaks."""
        return max(each.peak_memory_bytes() for each in self.contenders)


@attrs.frozen
class SparkPeak:
    """How much memory one kind of process has taken up to now, in MiB.

    Attributes:
        process: whose.
        kind: of process.
    """

    process: SparkProcess
    kind: Literal["program", "java", "task"]

    def measure(self) -> float:
        """Return the peak in MiB."""
        return self.peak_memory_bytes() / 1024**2

    def peak_memory_bytes(self) -> int:
        """Return the same in bytes."""
        return self.process.watch.peaks[self.kind]


@attrs.define
class WatchedProgram:
    """How much a program does in a second, from its start to its end, with all that it starts.

    Attributes:
        command: the program and its arguments.
        amount: what it does, in units.
    """

    command: Sequence[str]
    amount: float
    _peak: int = attrs.field(default=0, init=False)
    _peak_of_driver: int = attrs.field(default=0, init=False)

    def measure(self) -> float:
        """Return units a second.

        Raises:
            RuntimeError: it failed.
        """
        start = time.perf_counter()
        process = subprocess.Popen(self.command, env=environment("compiled"), stdout=subprocess.DEVNULL)
        with MemoryWatch(process.pid) as watch:
            status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
            duration_s = time.perf_counter() - start
        process.returncode = status
        if status != 0:
            raise RuntimeError(f"{self.command} exited with {status}")
        self._peak = max(self._peak, watch.peak)
        self._peak_of_driver = max(self._peak_of_driver, watch.peaks["program"] + watch.peaks["java"])
        return self.amount / duration_s

    def peak_memory_bytes(self) -> int:
        """Return the most that it and all that it started took at once, over all rounds."""
        return self._peak

    def peak_of_driver_bytes(self) -> int:
        """Return the most that its own Python and Java took, over all rounds; it runs once if it has not yet.

        In Spark's local mode Java is the driver's and that of all tasks.
        """
        if self._peak_of_driver == 0:
            self.measure()
        return self._peak_of_driver


@attrs.frozen
class DriverPeak:
    """How much memory the driver of a program has taken up to now, in MiB.

    Attributes:
        program: whose driver.
    """

    program: WatchedProgram

    def measure(self) -> float:
        """Return the peak in MiB."""
        return self.peak_memory_bytes() / 1024**2

    def peak_memory_bytes(self) -> int:
        """Return the same in bytes."""
        return self.program.peak_of_driver_bytes()
