# SPDX-License-Identifier: Apache-2.0
"""The directories that a repair starts from, which are only read: what each file of them was when the plan was made.

A plan is carried out only on what it was made of. So each file that a repair may read is known by its size, its time of
modification, its inode and the CRC of its bytes: a node that was started since, or a file that was copied or edited,
shows.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from raftlog.errors import (
    DirectoryLockedError,
    MissingFileError,
    NotFormattedError,
    SourceChangedError,
    StorageError,
)
from raftlog.file_system import join
from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind, FileState, parse_file_name
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.storage.state.quorum_state_store import COPY_NAMES

_OF_DIRECTORY: Final = (FileKind.META_PROPERTIES.value, FileKind.BOOTSTRAP_SNAPSHOT.value)
"""The files of a log directory itself that a repair of its metadata log reads."""
_BESIDE_PARTITIONS: Final = (
    FileKind.META_PROPERTIES.value,
    FileKind.REPLICATION_OFFSET_CHECKPOINT.value,
    FileKind.LOG_START_OFFSET_CHECKPOINT.value,
    FileKind.CLEANER_OFFSET_CHECKPOINT.value,
)
"""Those that a repair of the log of a topic's partition reads."""
_PIECE_BYTES: Final = 1 << 20


@attrs.frozen
class SourceFile:
    """A file of a source, as it was when a plan was made.

    Attributes:
        name: path below the log directory.
        size_bytes: its size.
        mtime_ns: when it was modified, in ns since the Unix epoch.
        inode: of its file system.
        crc32c: of all its bytes.
    """

    name: str
    size_bytes: int
    mtime_ns: int
    inode: int
    crc32c: int


@attrs.frozen
class Source:
    """A log directory that a repair starts from, or that is evidence for it.

    Attributes:
        directory: its absolute path.
        files: those of its metadata log, its ``meta.properties`` and its ``bootstrap.checkpoint``, by name. For the
            partition of a topic: those of its log, ``meta.properties`` and the checkpoints that have its offsets.
        log_name: name of the directory of the log below it.
    """

    directory: str
    files: tuple[SourceFile, ...]
    log_name: str = METADATA_DIRECTORY_NAME

    def path(self, name: str) -> str:
        """Return the path of one of its files."""
        return join(self.directory, name)

    @property
    def has_segments(self) -> bool:
        """Whether there is a log, and not only snapshots of one."""
        return any(_is_current(file.name, FileKind.LOG) for file in self.files)

    @property
    def size_bytes(self) -> int:
        """The size of all its files."""
        return sum(file.size_bytes for file in self.files)


def log_directory_of(path: str, log_name: str = METADATA_DIRECTORY_NAME) -> str:
    """Return the absolute path of the log directory that a user means: it, or the log of a name inside it."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - pathlib would resolve links
    parent, _, name = absolute.rpartition("/")
    return parent or "/" if name == log_name else absolute


def distinct_directories(paths: Iterable[str], log_name: str = METADATA_DIRECTORY_NAME) -> list[str]:
    """Return the log directories that some paths name, each once, whatever links lead to it.

    Two with the same log are one: the one with a ``meta.properties`` counts, and of two of these the first by name. A
    path that cannot be looked up stays.

    Args:
        paths: absolute paths of log directories.
        log_name: name of the log inside them.
    """
    found: dict[object, str] = {}
    for path in paths:
        key = _identity(path, log_name)
        found[key] = min(found.get(key, path), path, key=_preference)
    return list(found.values())


def _preference(directory: str) -> tuple[bool, str]:
    return not os.path.lexists(join(directory, FileKind.META_PROPERTIES.value)), directory


def _identity(directory: str, log_name: str) -> object:
    """Return the device and the inode of a directory's log, or of the directory, if it has none."""
    for path in (join(directory, log_name), directory):
        with suppress(OSError):
            status = Path(path).stat()
            return status.st_dev, status.st_ino
    return directory


def read_source(directory: str, *, needs_owner: bool = True) -> Source:
    """Read all files of a source that a repair may need.

    Args:
        directory: absolute path of the log directory.
        needs_owner: whether it must have a ``meta.properties``, which may be lost; a metadata log must be there then.

    Raises:
        NotFormattedError: it has neither what it must have: it is not a log directory.
        SourceChangedError: a file changes while it is read.
        StorageError: it cannot be read.
    """
    has_owner = os.path.lexists(join(directory, FileKind.META_PROPERTIES.value))
    if needs_owner and not has_owner:
        raise NotFormattedError(f"{directory} has no {FileKind.META_PROPERTIES.value}: it is not a log directory")
    if not has_owner and not os.path.isdir(join(directory, METADATA_DIRECTORY_NAME)):  # noqa: PTH112
        raise NotFormattedError(f"{directory} has no {METADATA_DIRECTORY_NAME}: it is not a log directory")
    return Source(directory, tuple(_read_file(directory, name) for name in sorted(_names(directory))))


def read_partition_source(directory: str, log_name: str) -> Source:
    """Read all files of a replica of a topic's partition that a repair may need.

    Args:
        directory: absolute path of the log directory.
        log_name: name of the partition's directory in it, such as ``orders-3``.

    Raises:
        NotFormattedError: it has no such directory.
        SourceChangedError: a file changes while it is read.
        StorageError: it cannot be read.
    """
    if not os.path.isdir(join(directory, log_name)):  # noqa: PTH112
        raise NotFormattedError(f"{directory} has no {log_name}: it is not a log directory with this partition")
    names = sorted(_names(directory, log_name))
    return Source(directory, tuple(_read_file(directory, name) for name in names), log_name)


def check_is_stopped(source: Source) -> None:
    """Check that the node of a source is not running, as ``check_not_locked`` does."""
    check_not_locked(source.directory)


def check_not_locked(directory: str) -> None:
    """Check that no process holds the lock of a log directory, as every node that runs does.

    Raises:
        DirectoryLockedError: its node is running.
        StorageError: the lock's file cannot be read.

    Source: LogManager#lockLogDirs.
    """
    path = join(directory, FileKind.LOCK.value)
    with suppress(MissingFileError), _reported(path, "look up"), Path(path).open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # Given back when the file is closed.
        except (BlockingIOError, PermissionError):
            raise DirectoryLockedError(f"{directory}: its node is running: stop it first") from None


def check_unchanged(source: Source, *, reads: bool) -> None:
    """Check that a source is what it was.

    Args:
        source: as it was.
        reads: whether to read all bytes again; otherwise sizes, times and inodes are compared.

    Raises:
        SourceChangedError: a file has changed, is gone, or is new.
        StorageError: it cannot be read.
    """
    if sorted(_names(source.directory, source.log_name)) != [file.name for file in source.files]:
        raise SourceChangedError(source.directory, "it has other files than when the plan was made")
    for file in source.files:
        path = source.path(file.name)
        found = _read_file(source.directory, file.name) if reads else _as_it_is(path, file)
        if found != file:
            raise SourceChangedError(path, "it has changed since the plan was made")


def _names(directory: str, log_name: str = METADATA_DIRECTORY_NAME) -> Iterator[str]:
    """Yield the names of a source's files."""
    for name in _OF_DIRECTORY if log_name == METADATA_DIRECTORY_NAME else _BESIDE_PARTITIONS:
        if os.path.lexists(join(directory, name)):
            yield name
    log = join(directory, log_name)
    with suppress(MissingFileError), _reported(log, "list"):
        for entry in os.scandir(log):
            if parse_file_name(entry.name) is not None or entry.name in COPY_NAMES:
                yield join(log_name, entry.name)


def _as_it_is(path: str, file: SourceFile) -> SourceFile:
    with _reported(path, "look up"):
        status = Path(path).stat()
    return attrs.evolve(file, size_bytes=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)


def _read_file(directory: str, name: str) -> SourceFile:
    path, crc = join(directory, name), 0
    with _reported(path, "read"), Path(path).open("rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        while data := file.read(_PIECE_BYTES):
            crc = crc32c(data, crc)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise SourceChangedError(path, "it changes while it is read: is its node running?")
    return SourceFile(name, after.st_size, after.st_mtime_ns, after.st_ino, crc)


def _is_current(name: str, *kinds: FileKind) -> bool:
    parsed = parse_file_name(name.rpartition("/")[2])
    return parsed is not None and parsed.state is FileState.CURRENT and parsed.kind in kinds


def current_files(source: Source, kinds: Iterable[FileKind]) -> list[SourceFile]:
    """Return the files of some kinds, without those that are being written or deleted."""
    wanted = tuple(kinds)
    return [file for file in source.files if _is_current(file.name, *wanted)]


@contextmanager
def _reported(path: str, operation: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(path, operation, error.strerror or str(error)) from error
    except OSError as error:
        raise StorageError(path, operation, error.strerror or str(error)) from error
