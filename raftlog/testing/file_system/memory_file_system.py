# SPDX-License-Identifier: Apache-2.0
"""A file system in memory that knows what is durable, and can be told to fail and to crash.

::

    file_system = MemoryFileSystem()
    file_system.faults.append(Fault(Operation.SYNC, skip=2))      # the third sync fails
    for after_crash in file_system.crash_states():                # each legal state, as another file system
        ...

It passes the same contract suite as ``raftlog.storage.local_file_system``. What a crash may leave is defined in
``raftlog.testing.file_system.crash_states``.

**A sync takes time.** At its end, it decides the fate of the changes made before its beginning: they are durable, or in
doubt if the sync fails. Changes made in between stay open, and a crash may keep or lose any of them. No lock is held
between beginning and end, so other operations may happen then: in ``during_sync``, for simulations with one thread, or
in another thread. Each operation is one atomic step between threads, and a sync is two, its beginning and its end: a
file that one thread writes may be synced by another. The hooks are called in the thread of the operation.

**A failed sync leaves its pages clean.** Until a crash, the changes that it covered are read as before, and no later
sync makes them durable. Bytes that are written again afterwards are new changes: a sync makes them durable with the
sectors that they are in. The same holds for names: rename a file back and forth, then sync the directory.
"""

import collections
from collections.abc import Callable, Iterator, Sequence

from raftlog.errors import DirectoryLockedError, MissingFileError, StorageError
from raftlog.file_system import parent_directory
from raftlog.testing.file_system.crash_states import (
    DIRECTORY,
    ROOTS,
    CrashModel,
    DiskImage,
    DiskState,
    PossibleStates,
    picked_state,
)
from raftlog.testing.file_system.disk_steps import DiskSteps
from raftlog.testing.file_system.faults import Operation, Step
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.file_system.memory_inode import Inode
from raftlog.testing.file_system.memory_names import Names


class MemoryLock:
    """A lock of a ``MemoryFileSystem``."""

    def __init__(self, held: set[int], number: int) -> None:
        self._held = held
        self._number: int | None = number
        held.add(number)

    def close(self) -> None:
        """Release the lock. The file stays. Closing twice is harmless."""
        if self._number is not None:
            self._held.discard(self._number)
            self._number = None


class MemoryFileSystem(DiskSteps):
    """Names and files in memory; a ``raftlog.file_system.FileSystem``. ``.`` and ``/`` are separate roots.

    Args:
        state: the initial content, which is durable.

    Attributes:
        faults: the planned failures; append to it.
        steps: the last 10,000 operations.
        step_count: the number of all operations so far.
        on_change: called after each step that may have changed what a crash leaves, and also at the beginning of each
            sync.
        during_sync: called with the step between the beginning and the end of each sync of a file or a directory. It
            may do anything with this file system; syncs that begin in it call it again.
        has_arrived: when the cache of a file is dropped, called for each write whose sync has failed; returns whether
            the disk has it nevertheless. None if no cache can be dropped, so that this is unknown before a crash.
        change_read: called with the step of each read, where it begins, how long it is, and the content of the file;
            returns what the reader gets. None for a disk that returns what it has.
        under_way: the syncs that have begun, and have not ended.
        mutex: held during a step, but not while a sync is under way or a hook is called.
        has_crashed: whether the machine has crashed; then this object and all its open files refuse to work.
    """

    def __init__(self, state: DiskState = ()) -> None:
        super().__init__()
        self._held_locks: set[int] = set()
        self._failed_directory_syncs: collections.Counter[str] = collections.Counter()
        self._last_number = DIRECTORY
        self._inodes: dict[int, Inode] = {}
        self._names = Names(
            {
                path: DIRECTORY if data is None else self._new_inode(data, is_read_only=is_read_only).number
                for path, data, is_read_only in state
            }
        )

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file for reads and writes.

        Args:
            path: of the file.
            create: make an empty file if there is none.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set; or no such directory.
            StorageError: it cannot be opened: it is a directory, or read-only.
        """
        with self.mutex:
            is_new = create and self._find(_plain(path)) is None
            step = self.start(Operation.CREATE if is_new else Operation.OPEN, path)
            inode = self._open(step, create=create)
            if inode.is_read_only:
                raise StorageError(path, step.operation.value, "permission denied")
        if is_new:
            self.end(step, None)
        return MemoryFile(self, path, inode, is_writable=True)

    def open_for_reads(self, path: str) -> MemoryFile:
        """Open a file for reads only.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened.
        """
        with self.mutex:
            step = self.start(Operation.OPEN, path)
            return MemoryFile(self, path, self._open(step, create=False), is_writable=False)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""
        if self.has_crashed:
            raise StorageError(path, "look up", "the machine has crashed")
        return self._find(_plain(path)) is not None

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        with self.mutex:
            step = self.start(Operation.LIST, directory)
            place = self._directory(step, _plain(directory))
            return sorted(name.rpartition("/")[2] for name in self._names.current if parent_directory(name) == place)

    def make_directory(self, directory: str) -> None:
        """Make a directory and its parents, if missing. Not durable until the parents are synced.

        Raises:
            StorageError: it cannot be made, or a file has its name.
        """
        with self.mutex:
            step = self.start(Operation.MAKE_DIRECTORY, directory)
            missing, place = [], _plain(directory)
            while self._find(place) is None:
                missing.append(place)
                place = parent_directory(place)
            self._directory(step, place)
            for name in reversed(missing):
                self._names.change(((name, DIRECTORY),))
        self.end(step, None)

    def rename(self, source: str, target: str) -> None:
        """Rename a file atomically, replacing a file that has the new name.

        Raises:
            MissingFileError: there is no such source, or no directory for the target.
            StorageError: it failed, and the names are as they were.
        """
        with self.mutex:
            step = self.start(Operation.RENAME, source, f"to {target}")
            old, new = _plain(source), _plain(target)
            for name in (old, new):
                self._directory(step, parent_directory(name))
            number = self._file_number(step, old)
            replaced = self._find(new)
            if replaced == DIRECTORY:
                raise StorageError(source, step.operation.value, f"{target} is a directory")
            if number != replaced:
                self._names.change(((old, None), (new, number)), (number, replaced))
        self.end(step, None)

    def remove(self, path: str) -> None:
        """Remove a file's name.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed, and the name is there.
        """
        with self.mutex:
            step = self.start(Operation.REMOVE, path)
            name = _plain(path)
            self._directory(step, parent_directory(name))
            number = self._file_number(step, name)
            self._names.change(((name, None),), (number,))
        self.end(step, None)

    def sync_directory(self, directory: str) -> None:
        """Make created, renamed and removed names in a directory durable.

        A rename from one directory to another is durable once either of them is synced.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: what is on disk is unknown, and remains so.
        """
        with self.mutex:
            step, fault = self.begin(Operation.SYNC_DIRECTORY, directory)
            covered = self._names.open_changes(self._directory(step, _plain(directory)))
        self._failed_directory_syncs[directory] += fault is not None
        self.run_sync(step, fault, covered, self._tidy_names)

    def failed_directory_syncs(self, directory: str) -> int:
        """Return how many syncs of a directory have failed or are about to, since this object was made."""
        return self._failed_directory_syncs[directory]

    def set_read_only(self, path: str) -> None:
        """Remove write permission from a file, so that no mistake changes it. A crash does not undo this.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed.
        """
        with self.mutex:
            step = self.start(Operation.SET_READ_ONLY, path)
            self._inodes[self._file_number(step, _plain(path))].is_read_only = True
        self.end(step, None)

    def lock(self, path: str) -> MemoryLock:
        """Take the exclusive lock on a file, which is created if missing. A crash releases it.

        Raises:
            DirectoryLockedError: another owner holds it.
            StorageError: the file cannot be made.
        """
        with self.mutex:
            step = self.start(Operation.LOCK, path)
            is_new = self._find(_plain(path)) is None
            number = self._open(step, create=True).number
            if number in self._held_locks:
                raise DirectoryLockedError(f"{path}: another owner holds the lock")
            lock = MemoryLock(self._held_locks, number)
        if is_new:
            self.end(step, None)
        return lock

    def image(self) -> DiskImage:
        """Return the durable state and all changes since, for ``crash_states``, as an immutable value."""
        with self.mutex:
            files = {number: inode.image() for number, inode in self._inodes.items()}
            pending = self._names.pending
            changes = tuple(each.change for each in pending)
            return DiskImage(self._names.durable, changes, tuple(each.fate for each in pending), files)

    def crash_states(self, model: CrashModel | None = None) -> "Iterator[MemoryFileSystem]":
        """Yield a file system for each state that a crash at this point may leave; this one is not affected."""
        return map(MemoryFileSystem, PossibleStates(self.image(), model or CrashModel()))

    def crash(self, choose: Callable[[int], int], model: CrashModel | None = None) -> "MemoryFileSystem":
        """End this file system and its open files, and return one that a crash at this point may leave.

        Args:
            choose: returns a number from 0 up to, not including, its argument: ``random.Random(seed).randrange``.
            model: the states that a crash may leave.
        """
        with self.mutex:
            self.has_crashed = True
        return MemoryFileSystem(picked_state(self.image(), choose, model or CrashModel()))

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of each file by path, as a reader would find them now."""
        return {path: data for path, data, _ in self.state() if data is not None}

    def settled(self) -> "MemoryFileSystem":
        """Return a copy of this file system in which everything is durable, and no file is open."""
        return MemoryFileSystem(self.state())

    def state(self) -> DiskState:
        """Return all names and bytes as a reader would find them now, sorted by path."""
        with self.mutex:
            return tuple(
                (name, None, False)
                if number == DIRECTORY
                else (name, bytes(self._inodes[number].content), self._inodes[number].is_read_only)
                for name, number in sorted(self._names.current.items())
            )

    def _open(self, step: Step, *, create: bool) -> Inode:
        name = _plain(step.path)
        self._directory(step, parent_directory(name))
        if create and self._find(name) is None:
            inode = self._new_inode()
            self._names.change(((name, inode.number),), (inode.number,))
        return self._inodes[self._file_number(step, name)]

    def _new_inode(self, durable: bytes = b"", *, is_read_only: bool = False) -> Inode:
        self._last_number += 1
        inode = self._inodes[self._last_number] = Inode(self._last_number, durable, is_read_only=is_read_only)
        return inode

    def _find(self, name: str) -> int | None:
        return DIRECTORY if name in ROOTS else self._names.current.get(name)

    def _directory(self, step: Step, name: str) -> str:
        """Return the name of a directory; raise an error if it is not one."""
        if self._find(name) is None:
            self._directory(step, parent_directory(name))
            raise MissingFileError(step.path, step.operation.value, "no such directory")
        if self._find(name) != DIRECTORY:
            raise StorageError(step.path, step.operation.value, "not a directory")
        return name

    def _file_number(self, step: Step, name: str) -> int:
        number = self._find(name)
        if number is None:
            self._directory(step, parent_directory(name))
            raise MissingFileError(step.path, step.operation.value, "no such file")
        if number == DIRECTORY:
            raise StorageError(step.path, step.operation.value, "is a directory")
        return number

    def _tidy_names(self) -> None:
        """Forget changes whose outcome is known, and files that no name can refer to any more."""
        live = self._names.tidy()
        self._inodes = {number: inode for number, inode in self._inodes.items() if number in live}


def _plain(path: str) -> str:
    """Return a path with single slashes and without redundant ``.`` parts."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    root = "/" if path.startswith("/") else ""
    return root + "/".join(parts) or "."
