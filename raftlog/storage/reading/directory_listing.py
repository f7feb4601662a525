# SPDX-License-Identifier: Apache-2.0
"""Lists directories and reads the status of files, in the same way for local and for remote file systems."""

import enum
import os
import stat
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import directory_of, is_remote, join_path, name_of
from raftlog.storage.reading.file_source import STANDARD_INPUT

if TYPE_CHECKING:
    from raftlog.storage.reading.remote_file_system import RemoteStatus

_STANDARD_INPUT_DESCRIPTOR = 0


class EntryKind(enum.Enum):
    """The kind of a directory entry, with links followed."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "device, pipe or socket"


class EntryStatus(NamedTuple):
    """The status of a path.

    Attributes:
        kind: what it is.
        size_bytes: of a file.
        fingerprint: a text that differs once the file has changed.
    """

    kind: EntryKind
    size_bytes: int
    fingerprint: str


class Entry(Protocol):
    """A name in a directory."""

    @property
    def name(self) -> str:
        """The name, without its directory."""
        ...

    def is_directory(self) -> bool:
        """Whether it is a directory; False if that cannot be determined."""
        ...

    def status(self) -> EntryStatus:
        """Return its status.

        Raises:
            MissingFileError: it was deleted meanwhile.
            StorageError: the status cannot be read.
        """
        ...


class DirectoryListing:
    """Lists directories. A remote directory is listed once, with everything below it, and cached in this object."""

    def __init__(self) -> None:
        self._remote: dict[str, list[_RemoteEntry]] = {}

    def status(self, path: str) -> EntryStatus:
        """Return the status of a path; ``-`` is standard input.

        Raises:
            MissingFileError: there is nothing at the path; a dangling link is a ``StorageError``.
            StorageError: the status cannot be read.
        """
        if not is_remote(path):
            return _local_status(path)
        from raftlog.storage.reading.remote_file_system import remote_status

        return _of_remote(remote_status(path))

    def entries(self, path: str) -> Iterator[Entry]:
        """Yield the entries of a directory, in no particular order.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be listed, or not completely.
        """
        if is_remote(path):
            yield from self._remote_entries(path)
            return
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    yield _LocalEntry(entry)
        except OSError as error:
            raise _failure(path, "list", error) from error

    def exists(self, path: str) -> bool:
        """Whether there is anything at a path, even a dangling link."""
        if not is_remote(path):
            return os.path.lexists(path)
        siblings = self._remote.get(directory_of(path))
        if siblings is not None:
            return any(entry.name == name_of(path) for entry in siblings)
        try:
            self.status(path)
        except StorageError:
            return False
        return True

    def identity(self, path: str) -> Hashable:
        """Return a value that identifies a directory, however its path is written.

        Raises:
            StorageError: the directory's status cannot be read.
        """
        if is_remote(path):
            return path
        try:
            status = os.stat(path)  # noqa: PTH116 - the path is kept as it was named
        except OSError as error:
            raise _failure(path, "list", error) from error
        return status.st_dev, status.st_ino

    def _remote_entries(self, path: str) -> list["_RemoteEntry"]:
        if path not in self._remote:
            self._list_below(path)
        return self._remote[path]

    def _list_below(self, path: str) -> None:
        """List a remote directory with everything below it, in one request, and cache all directories found."""
        from raftlog.storage.reading.remote_file_system import list_below

        top, found = list_below(path)
        top = top.rstrip("/")
        directories: dict[str, tuple[str, list[_RemoteEntry]]] = {top: (path, [])}

        def directory(place: str) -> tuple[str, list[_RemoteEntry]]:
            """Return the path and entries of a directory; add it if the store has keys below it but did not list it."""
            if place not in directories:
                parent, _, name = place.rpartition("/")
                parent_path, siblings = directory(parent)
                siblings.append(_RemoteEntry(name, EntryStatus(EntryKind.DIRECTORY, 0, "")))
                directories[place] = (join_path(parent_path, name), [])
            return directories[place]

        for status in found:
            place = status.path.rstrip("/")
            if not place.startswith(f"{top}/"):
                continue  # The directory itself, which some file systems list, too.
            if status.is_directory:
                directory(place)
            else:
                parent, _, name = place.rpartition("/")
                directory(parent)[1].append(_RemoteEntry(name, _of_remote(status)))
        self._remote.update(directories.values())


class _LocalEntry:
    """An entry of ``os.scandir``, which usually knows its kind without another system call."""

    __slots__ = ("_entry", "name")

    def __init__(self, entry: "os.DirEntry[str]") -> None:
        self._entry = entry
        self.name = entry.name

    def is_directory(self) -> bool:
        try:
            return self._entry.is_dir()
        except OSError:  # Such as a link that leads to itself.
            return False

    def status(self) -> EntryStatus:
        try:
            return _of_local(self._entry.stat())
        except OSError as error:
            raise _failure(self._entry.path, "open", error) from error


class _RemoteEntry(NamedTuple):
    """An entry whose status came with the listing."""

    name: str
    known: EntryStatus

    def is_directory(self) -> bool:
        return self.known.kind is EntryKind.DIRECTORY

    def status(self) -> EntryStatus:
        return self.known


def _local_status(path: str) -> EntryStatus:
    try:
        status = os.fstat(_STANDARD_INPUT_DESCRIPTOR) if path == STANDARD_INPUT else os.stat(path)  # noqa: PTH116
    except (OSError, ValueError) as error:  # A zero byte in the path is a ValueError.
        raise _failure(path, "open", error) from error
    return _of_local(status)


def _of_local(status: os.stat_result) -> EntryStatus:
    """Return a status; its fingerprint includes the ctime, which programs cannot set."""
    kind = EntryKind.OTHER
    if stat.S_ISREG(status.st_mode):
        kind = EntryKind.FILE
    elif stat.S_ISDIR(status.st_mode):
        kind = EntryKind.DIRECTORY
    fingerprint = f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    return EntryStatus(kind, status.st_size, fingerprint)


def _of_remote(status: "RemoteStatus") -> EntryStatus:
    kind = EntryKind.DIRECTORY if status.is_directory else EntryKind.FILE
    return EntryStatus(kind, status.size_bytes, f"{status.size_bytes}:{status.modified_ns}")


def _failure(path: str, operation: str, error: OSError | ValueError) -> StorageError:
    cause = getattr(error, "strerror", None) or str(error)
    is_missing = isinstance(error, FileNotFoundError) and not os.path.islink(path)  # noqa: PTH114
    return (MissingFileError if is_missing else StorageError)(path, operation, cause)
