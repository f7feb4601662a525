# SPDX-License-Identifier: Apache-2.0
"""Contenders that are a whole program, from its start on, by the time that passes."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.benchmarks.measure import PEAK_UNIT, Mode, environment
from tests.kafka import dump_tool
from tests.other_processes import started

RAFTLOG: Final = str(Path(sys.executable).with_name("raftlog"))
"""The command."""
KAFKA_RELEASE: Final = "4.3"


@attrs.define
class Command:
    """How much a program does in a second, from its start to its end; its output goes to a file.

    Attributes:
        command: the program and its arguments.
        mode: how it runs raftlog.
        amount: what it does, in units.
        output: the file, which is written anew each time.
    """

    command: Sequence[str]
    mode: Mode
    amount: float
    output: Path
    _peak: int = attrs.field(default=0, init=False)

    def measure(self) -> float:
        """Return units a second."""
        with self.output.open("wb") as output:
            start = time.perf_counter()
            process = subprocess.Popen(self.command, env=environment(self.mode), stdout=output)
            _, status, usage = os.wait4(process.pid, 0)
            duration_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{self.command} exited with {process.returncode}")
        self._peak = max(self._peak, usage.ru_maxrss * PEAK_UNIT)
        return self.amount / duration_s

    def peak_memory_bytes(self) -> int:
        """Return the peak of the whole process, over all rounds."""
        return self._peak


@attrs.frozen
class FirstLine:
    """How long a program takes to its first line of output, or to its end if it prints nothing, in milliseconds."""

    command: Sequence[str]
    mode: Mode
    allowance_ms: float = 0

    def measure(self) -> float:
        """Return milliseconds: the median of some starts, with the allowance added."""
        return statistics.median(self._start_ms() for _ in range(3)) + self.allowance_ms

    def _start_ms(self) -> float:
        start = time.perf_counter()
        with started(self.command, env=environment(self.mode), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            duration_s = time.perf_counter() - start
            process.stdout.read()
        return duration_s * 1000

    def peak_memory_bytes(self) -> int:
        """Return the peak of the whole process."""
        with started(self.command, env=environment(self.mode), stdout=subprocess.DEVNULL) as process:
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        return usage.ru_maxrss * PEAK_UNIT


def kafka_dump_log() -> list[str]:
    """Return the command that runs Kafka's dump tool as its own script does.

    Raises:
        subprocess.CalledProcessError: Maven could not fetch the release.
    """
    options = [
        "-Xmx256M",
        "-server",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
    ]
    class_path = f"{dump_tool.install(KAFKA_RELEASE)}{os.sep}*"
    return ["java", *options, "-XX:MaxInlineLevel=15", "-cp", class_path, "org.apache.kafka.tools.DumpLogSegments"]
