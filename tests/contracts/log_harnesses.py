# SPDX-License-Identifier: Apache-2.0
"""The implementations of a replicated log, on the disks that their contract is run on."""

import functools
import random
from collections.abc import Callable
from typing import Final, cast

from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness, LogInParts
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem


class MemoryHarness:
    """A ``MemoryLog``."""

    def __init__(self, retention: Retention = KEEP_ALL) -> None:
        self._log = MemoryLog(retention)

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return self._log

    def reopen(self) -> None:
        """Close the log, and open it again."""
        self._log.close()
        self._log.reopen()

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        self._log.crash()


class FileHarness:
    """A ``FileLog`` on a disk that loses, or keeps, all that was not synced; it is torn in other tests.

    Args:
        retention: of the log.
        segment_size_bytes: of the log.
        always_loses: whether every crash loses what was not synced; otherwise some crashes keep it.
    """

    def __init__(
        self, retention: Retention = KEEP_ALL, segment_size_bytes: int = 1024 * 1024, *, always_loses: bool = False
    ) -> None:
        self._config = LogConfig(
            segment_size_bytes=segment_size_bytes,
            retention_bytes=retention.max_bytes,
            retention_ms=retention.max_age_ms,
            index_interval_bytes=0,
        )
        self._random = random.Random(segment_size_bytes)
        self._always_loses = always_loses
        self._file_system = MemoryFileSystem()
        self._open()

    def _open(self) -> None:
        self._log = FileLog.open(self._file_system, "log", self._config)

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return self._log

    def reopen(self) -> None:
        """Close the log, and open it again."""
        self._log.close()
        self._open()

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        loses = self._always_loses or self._random.random() < 0.5
        self._file_system = self._file_system.crash(lambda count: 0 if loses else count - 1)
        self._open()


class MemoryHarnessInParts(MemoryHarness):
    """A ``MemoryLog``, by the second form of each call."""

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return cast("ReplicatedLog", LogInParts(self._log))


class FileHarnessInParts(FileHarness):
    """A log in files, by the second form of each call."""

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return cast("ReplicatedLog", LogInParts(self._log, self._file_system))


HARNESSES: Final[dict[str, Callable[[Retention], LogHarness]]] = {
    "memory": MemoryHarness,
    "file": FileHarness,
    "file-of-small-segments": functools.partial(FileHarness, segment_size_bytes=300),
    "memory-in-parts": MemoryHarnessInParts,
    "file-in-parts": functools.partial(FileHarnessInParts, segment_size_bytes=300),
}
"""Every implementation, by name."""
