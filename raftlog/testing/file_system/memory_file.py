# SPDX-License-Identifier: Apache-2.0
"""The open file of ``raftlog.testing.file_system.memory_file_system``."""

from typing import Final

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.testing.file_system.crash_states import Truncate, Write
from raftlog.testing.file_system.disk_steps import DiskSteps
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.file_system.memory_inode import Inode

_MAX_FILE_SIZE_BYTES: Final = 1 << 32


class MemoryFile:
    """An open file of a ``MemoryFileSystem``; a ``raftlog.file_system.OpenFile``."""

    def __init__(self, steps: DiskSteps, path: str, inode: Inode, *, is_writable: bool) -> None:
        self._steps = steps
        self._path = path
        self._inode = inode
        self._is_writable = is_writable
        self._is_closed = False

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        return self._path

    def append(self, data: bytes | memoryview) -> None:
        """Write all of the bytes at the end.

        Raises:
            OutOfSpaceError: the disk is full.
            StorageError: the write failed otherwise. In both cases some of the bytes may have been written.
        """
        self._write(None, data)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of the bytes at a position, overwriting existing ones; a gap before it reads as zeros.

        Raises:
            OutOfSpaceError, StorageError: as for ``append``.
        """
        self._write(position, data)

    def _write(self, position: int | None, data: bytes | memoryview) -> None:
        data = bytes(data)
        with self._steps.mutex:
            position = len(self._inode.content) if position is None else position
            step, fault = self._begin(Operation.WRITE, f"{len(data)} bytes at {position}")
            self._check(step, is_allowed=self._is_writable and position >= 0)
            if position + len(data) > _MAX_FILE_SIZE_BYTES:
                raise OutOfSpaceError(self._path, step.operation.value, "file too large")
            if written := data[: fault.written_bytes] if fault else data:
                self._inode.change(Write(position, written))
        self._steps.end(step, fault)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only if the file ends before.

        Raises:
            StorageError: the read failed.
        """
        with self._steps.mutex:
            step, fault = self._begin(Operation.READ, f"{size} bytes at {position}")
            content = self._inode.content
            if fault:
                raise fault.error(step)
            self._check(step, is_allowed=position >= 0 or min(size, len(content) - position) <= 0)
            start, size = max(position, 0), max(size, 0)
            if self._steps.change_read is not None:
                return memoryview(self._steps.change_read(step, start, size, content))
            return memoryview(bytes(content[start : start + size]))

    def size(self) -> int:
        """Return the file's length in bytes.

        Raises:
            StorageError: the file is closed, or the machine has crashed.
        """
        self._check_open("size")
        return len(self._inode.content)

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a length that is not above its own.

        Raises:
            StorageError: the length is above the file's, or it failed; it has not changed.
        """
        with self._steps.mutex:
            step, fault = self._begin(Operation.TRUNCATE, f"to {size_bytes} bytes")
            self._check(step, is_allowed=self._is_writable and 0 <= size_bytes <= len(self._inode.content))
            if not fault and size_bytes < len(self._inode.content):
                self._inode.change(Truncate(size_bytes))
        self._steps.end(step, fault)

    def reserve(self, size_bytes: int) -> None:
        """Do nothing: there is always space."""

    def sync(self) -> None:
        """Make the bytes and the length durable.

        Raises:
            StorageError: what is on disk is unknown, and remains so.
        """
        with self._steps.mutex:
            step, fault = self._begin(Operation.SYNC)
            covered = self._inode.open_changes()
        self._steps.run_sync(step, fault, covered, self._inode.tidy)

    def drop_cache(self, position: int) -> bool:
        """Sync, and make reads return what the disk has of writes whose sync has failed, if ``has_arrived`` is set.

        Returns:
            Whether the file system's ``has_arrived`` is set.

        Raises:
            StorageError: as for ``sync``.
        """
        if self._steps.has_arrived is None:
            return False
        self.sync()
        with self._steps.mutex:
            self._inode.drop_cache(self._steps.has_arrived)
        return True

    def close(self) -> None:
        """Close the file without a sync. Closing twice is harmless."""
        self._is_closed = True

    def _begin(self, operation: Operation, detail: str = "") -> tuple[Step, Fault | None]:
        self._check_open(operation.value)
        return self._steps.begin(operation, self._path, detail)

    def _check_open(self, words: str) -> None:
        if self._is_closed or self._steps.has_crashed:
            raise StorageError(self._path, words, "closed" if self._is_closed else "the machine has crashed")

    def _check(self, step: Step, *, is_allowed: bool) -> None:
        if not is_allowed:
            raise StorageError(self._path, step.operation.value, f"not permitted: {step.detail}")
