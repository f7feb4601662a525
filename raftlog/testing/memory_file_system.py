# SPDX-License-Identifier: Apache-2.0
"""A file system in memory that knows what is durable, fails when it is told to, and crashes.

::

    file_system = MemoryFileSystem()
    file_system.faults.append(Fault(Operation.SYNC, skip=2))      # the third sync fails
    for after_crash in file_system.crash_states():                # each legal state, as another file system
        ...

It passes the same contract suite as ``raftlog.storage.local_file_system``. What a crash may leave is told in
``raftlog.testing.crash_states``.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from raftlog.errors import DirectoryLockedError, MissingFileError, OutOfSpaceError, StorageError
from raftlog.file_system import parent_directory
from raftlog.testing.crash_states import (
    DIRECTORY,
    ROOTS,
    Change,
    CrashModel,
    DiskImage,
    DiskState,
    Fate,
    FileImage,
    NameChange,
    PossibleStates,
    Truncate,
    Write,
    cut,
    picked_state,
    rename,
    write,
)
from raftlog.testing.faults import Fault, Operation, Step

_LISTED_OPERATIONS: Final = 10_000
_MAX_FILE_SIZE_BYTES: Final = 1 << 32


class _Inode:
    """A file without its name."""

    def __init__(self, number: int, durable: bytes = b"", *, is_read_only: bool = False) -> None:
        self.number = number
        self.is_read_only = is_read_only
        self.content: bytes | bytearray = durable
        self._durable = durable
        self._changes: list[Change] = []
        self._fates: list[Fate] = []
        self._image: FileImage | None = None

    def change(self, change: Change) -> None:
        if isinstance(self.content, bytes):
            self.content = bytearray(self.content)
        if isinstance(change, Write):
            write(self.content, change)
        else:
            cut(self.content, change.size_bytes)
        self._changes.append(change)
        self._fates.append(Fate.OPEN)
        self._image = None

    def settle(self) -> None:
        """Make all that is open durable."""
        self._fates = _decided(self._fates, Fate.SETTLED)
        if Fate.DOUBTFUL not in self._fates:
            self._durable = self.content = bytes(self.content)
            self._changes, self._fates = [], []
        self._image = None

    def doubt(self) -> None:
        """Leave all that is open in doubt."""
        self._fates = _decided(self._fates, Fate.DOUBTFUL)
        self._image = None

    def image(self) -> FileImage:
        """Return what is durable, and what was done since."""
        if self._image is None or self._image.read_only != self.is_read_only:
            self._image = FileImage(self._durable, tuple(self._changes), tuple(self._fates), self.is_read_only)
        return self._image


def _decided(fates: list[Fate], fate: Fate) -> list[Fate]:
    return [fate if each is Fate.OPEN else each for each in fates]


class MemoryFile:
    """An open file of a ``MemoryFileSystem``; a ``raftlog.file_system.OpenFile``."""

    def __init__(self, file_system: "MemoryFileSystem", path: str, inode: _Inode, *, is_writable: bool) -> None:
        self._file_system = file_system
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
            OutOfSpaceError: there is no room.
            StorageError: the write failed otherwise. In both cases some of the bytes may be there.
        """
        self._write(len(self._inode.content), data)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of the bytes at a position, over what is there; a gap before it reads as zeros.

        Raises:
            OutOfSpaceError, StorageError: as for ``append``.
        """
        self._write(position, data)

    def _write(self, position: int, data: bytes | memoryview) -> None:
        data = bytes(data)
        step, fault = self._begin(Operation.WRITE, f"{len(data)} bytes at {position}")
        self._check(step, is_allowed=self._is_writable and position >= 0)
        if position + len(data) > _MAX_FILE_SIZE_BYTES:
            raise OutOfSpaceError(self._path, step.operation.value, "file too large")
        if written := data[: fault.written_bytes] if fault else data:
            self._inode.change(Write(position, written))
        self._file_system.end(step, fault)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only where the file ends.

        Raises:
            StorageError: the read failed.
        """
        step, fault = self._begin(Operation.READ, f"{size} bytes at {position}")
        content = self._inode.content
        if fault:
            raise fault.error(step)
        self._check(step, is_allowed=position >= 0 or min(size, len(content) - position) <= 0)
        return memoryview(bytes(content[max(position, 0) : max(position, 0) + max(size, 0)]))

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
        step, fault = self._begin(Operation.TRUNCATE, f"to {size_bytes} bytes")
        self._check(step, is_allowed=self._is_writable and 0 <= size_bytes <= len(self._inode.content))
        if not fault and size_bytes < len(self._inode.content):
            self._inode.change(Truncate(size_bytes))
        self._file_system.end(step, fault)

    def reserve(self, size_bytes: int) -> None:
        """Do nothing: there is room."""

    def sync(self) -> None:
        """Make the bytes and the length durable.

        Raises:
            StorageError: what is on the disk is not known, and will not be.
        """
        step, fault = self._begin(Operation.SYNC)
        if fault:
            self._inode.doubt()
        else:
            self._inode.settle()
        self._file_system.end(step, fault)

    def close(self) -> None:
        """Let go of the file, without a sync. Closing twice is harmless."""
        self._is_closed = True

    def _begin(self, operation: Operation, detail: str = "") -> tuple[Step, Fault | None]:
        self._check_open(operation.value)
        return self._file_system.begin(operation, self._path, detail)

    def _check_open(self, words: str) -> None:
        if self._is_closed or self._file_system.has_crashed:
            raise StorageError(self._path, words, "closed" if self._is_closed else "the machine has crashed")

    def _check(self, step: Step, *, is_allowed: bool) -> None:
        if not is_allowed:
            raise StorageError(self._path, step.operation.value, f"not permitted: {step.detail}")


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


class MemoryFileSystem:
    """Names and files in memory; a ``raftlog.file_system.FileSystem``. Paths are relative to nothing but themselves.

    Args:
        state: what is there, and durable, at first.

    Attributes:
        faults: the failures to come; append to it.
        steps: what was asked for so far, or the last 10,000 of it.
        step_count: how much that was.
        on_change: is called after each step that may have changed what a crash leaves.
        has_crashed: whether it is dead, and all files that were opened from it.
    """

    def __init__(self, state: DiskState = ()) -> None:
        self.faults: list[Fault] = []
        self.steps: collections.deque[Step] = collections.deque(maxlen=_LISTED_OPERATIONS)
        self.step_count = 0
        self.on_change: Callable[[], object] | None = None
        self.has_crashed = False
        self._held_locks: set[int] = set()
        self._last_number = DIRECTORY
        self._inodes: dict[int, _Inode] = {}
        self._names: dict[str, int] = {}
        self._changes: list[NameChange] = []
        self._fates: list[Fate] = []
        for path, data, is_read_only in state:
            self._names[path] = DIRECTORY if data is None else self._new_inode(data, is_read_only=is_read_only).number
        self._durable_names = dict(self._names)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file for reads and writes.

        Args:
            path: of the file.
            create: make an empty file where there is none.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set; or no such directory.
            StorageError: it cannot be opened: it is a directory, or read-only.
        """
        is_new = create and self._find(_plain(path)) is None
        step = self._start(Operation.CREATE if is_new else Operation.OPEN, path)
        inode = self._open(step, create=create)
        if inode.is_read_only:
            raise StorageError(path, step.operation.value, "permission denied")
        return MemoryFile(self, path, inode, is_writable=True)

    def open_for_reads(self, path: str) -> MemoryFile:
        """Open a file for reads alone.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened.
        """
        step = self._start(Operation.OPEN, path)
        return MemoryFile(self, path, self._open(step, create=False), is_writable=False)

    def exists(self, path: str) -> bool:
        """Say whether a file or directory of this name is there."""
        if self.has_crashed:
            raise StorageError(path, "look up", "the machine has crashed")
        return self._find(_plain(path)) is not None

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        step = self._start(Operation.LIST, directory)
        place = self._directory(step, _plain(directory))
        return sorted(name.rpartition("/")[2] for name in self._names if parent_directory(name) == place)

    def make_directory(self, directory: str) -> None:
        """Make a directory, and those above it, where there is none. Not durable until those above are synced.

        Raises:
            StorageError: it cannot be made, or a file has its name.
        """
        step = self._start(Operation.MAKE_DIRECTORY, directory)
        missing, place = [], _plain(directory)
        while self._find(place) is None:
            missing.append(place)
            place = parent_directory(place)
        self._directory(step, place)
        for name in reversed(missing):
            self._change_names(((name, DIRECTORY),))
        self.end(step, None)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in one step, in place of a file that has it.

        Raises:
            MissingFileError: there is no such source, or no directory for the target.
            StorageError: it failed, and the names are as they were.
        """
        step = self._start(Operation.RENAME, source, f"to {target}")
        old, new = _plain(source), _plain(target)
        for name in (old, new):
            self._directory(step, parent_directory(name))
        number = self._file_number(step, old)
        replaced = self._find(new)
        if replaced == DIRECTORY:
            raise StorageError(source, step.operation.value, f"{target} is a directory")
        if number != replaced:
            self._change_names(((old, None), (new, number)), {number, replaced} - {None})
        self.end(step, None)

    def remove(self, path: str) -> None:
        """Remove a file's name.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed, and the name is there.
        """
        step = self._start(Operation.REMOVE, path)
        name = _plain(path)
        self._directory(step, parent_directory(name))
        number = self._file_number(step, name)
        self._change_names(((name, None),), {number})
        self.end(step, None)

    def sync_directory(self, directory: str) -> None:
        """Make names that appeared, changed or went in a directory durable.

        A rename from one directory to another is durable once either of them is synced.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: what is on the disk is not known, and will not be.
        """
        step, fault = self.begin(Operation.SYNC_DIRECTORY, directory)
        place = self._directory(step, _plain(directory))
        fate = Fate.DOUBTFUL if fault else Fate.SETTLED
        for index, change in enumerate(self._changes):
            if self._fates[index] is Fate.OPEN and any(parent_directory(name) == place for name, _ in change.names):
                self._fates[index] = fate
        self._fold_settled_names()
        self.end(step, fault)

    def set_read_only(self, path: str) -> None:
        """Take the right to write from a file, so that no slip changes it. A crash does not give it back.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed.
        """
        step = self._start(Operation.SET_READ_ONLY, path)
        self._inodes[self._file_number(step, _plain(path))].is_read_only = True
        self.end(step, None)

    def lock(self, path: str) -> MemoryLock:
        """Take the exclusive lock on a file, which is made where it is missing. A crash releases it.

        Raises:
            DirectoryLockedError: another holds it.
            StorageError: it cannot be made.
        """
        step = self._start(Operation.LOCK, path)
        number = self._open(step, create=True).number
        if number in self._held_locks:
            raise DirectoryLockedError(f"{path}: another owner holds the lock")
        return MemoryLock(self._held_locks, number)

    def image(self) -> DiskImage:
        """Return what is durable and what is not, for ``raftlog.testing.crash_states``; later changes do not show."""
        files = {number: inode.image() for number, inode in self._inodes.items()}
        return DiskImage(self._durable_names, tuple(self._changes), tuple(self._fates), files)

    def crash_states(self, model: CrashModel | None = None) -> "Iterator[MemoryFileSystem]":
        """Yield a file system for each state that a crash at this point may leave; this one goes on as it is."""
        return map(MemoryFileSystem, PossibleStates(self.image(), model or CrashModel()))

    def crash(self, choose: Callable[[int], int], model: CrashModel | None = None) -> "MemoryFileSystem":
        """End this file system and its open files, and return one that a crash at this point may leave.

        Args:
            choose: returns a number from 0 up to, not including, its argument: ``random.Random(seed).randrange``.
            model: what a crash may mix up.
        """
        self.has_crashed = True
        return MemoryFileSystem(picked_state(self.image(), choose, model or CrashModel()))

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of each file by path, as a reader would find them now."""
        return {
            name: bytes(self._inodes[number].content) for name, number in self._names.items() if number != DIRECTORY
        }

    def settled(self) -> "MemoryFileSystem":
        """Return a copy of this file system in which all is durable, and nothing is open."""
        entries = [
            (name, None, False)
            if number == DIRECTORY
            else (name, bytes(self._inodes[number].content), self._inodes[number].is_read_only)
            for name, number in sorted(self._names.items())
        ]
        return MemoryFileSystem(tuple(entries))

    def begin(self, operation: Operation, path: str, detail: str = "") -> tuple[Step, Fault | None]:
        """Number an operation, and return what is to make it fail. For the open files of this file system."""
        if self.has_crashed:
            raise StorageError(path, operation.value, "the machine has crashed")
        self.step_count += 1
        step = Step(self.step_count, operation, path, detail)
        self.steps.append(step)
        return step, next((fault for fault in self.faults if fault.strikes(step)), None)

    def end(self, step: Step, fault: Fault | None) -> None:
        """Tell that an operation is over, and raise what made it fail. For the open files of this file system."""
        if self.on_change:
            self.on_change()
        if fault:
            raise fault.error(step)

    def _start(self, operation: Operation, path: str, detail: str = "") -> Step:
        """Begin an operation that changes nothing if it fails."""
        step, fault = self.begin(operation, path, detail)
        if fault:
            raise fault.error(step)
        return step

    def _open(self, step: Step, *, create: bool) -> _Inode:
        name = _plain(step.path)
        self._directory(step, parent_directory(name))
        if create and self._find(name) is None:
            inode = self._new_inode()
            self._change_names(((name, inode.number),), {inode.number})
            self.end(step, None)
        return self._inodes[self._file_number(step, name)]

    def _new_inode(self, durable: bytes = b"", *, is_read_only: bool = False) -> _Inode:
        self._last_number += 1
        inode = self._inodes[self._last_number] = _Inode(self._last_number, durable, is_read_only=is_read_only)
        return inode

    def _find(self, name: str) -> int | None:
        return DIRECTORY if name in ROOTS else self._names.get(name)

    def _directory(self, step: Step, name: str) -> str:
        """Return the name of a directory; raise where it is none."""
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

    def _change_names(self, names: tuple[tuple[str, int | None], ...], files: "set[int | None] | None" = None) -> None:
        change = NameChange(names, frozenset(number for number in files or () if number))
        rename(self._names, change)
        self._changes.append(change)
        self._fates.append(Fate.OPEN)

    def _fold_settled_names(self) -> None:
        """Forget changes whose outcome is known, and files that no name can lead to any more."""
        names = dict(self._durable_names)
        left: list[tuple[NameChange, Fate]] = []
        for change, fate in zip(self._changes, self._fates, strict=True):
            if fate is Fate.SETTLED and not any(change.conflicts(before) for before, _ in left):
                rename(names, change)
            else:
                left.append((change, fate))
        self._changes, self._fates = [change for change, _ in left], [fate for _, fate in left]
        self._durable_names = names
        live = {*names.values(), *self._names.values()}.union(*(change.files for change in self._changes))
        self._inodes = {number: inode for number, inode in self._inodes.items() if number in live}


def _plain(path: str) -> str:
    """Return a path with single slashes and without dots that say nothing."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    root = "/" if path.startswith("/") else ""
    return root + "/".join(parts) or "."
