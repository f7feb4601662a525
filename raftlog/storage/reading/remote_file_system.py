# SPDX-License-Identifier: Apache-2.0
"""Accesses files by URI on any file system that ``pyarrow.fs`` opens: their status, directory listings, their bytes.

Credentials come from the same places as for the file system's own tools: environment, profiles, the machine's role.
pyarrow retries failures for some seconds; after that they are raised as a ``StorageError`` that names the path.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NoReturn

import attrs

from raftlog.errors import MissingExtraError, MissingFileError, StorageError
from raftlog.file_paths import remote_path

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

_LONGEST_CAUSE: Final = 400
_ABSENT: Final = "No such file or directory"


@attrs.frozen
class RemoteStatus:
    """The status of a path on a remote file system.

    Attributes:
        path: in the file system, without scheme and query.
        is_directory: whether it is a directory, or a prefix of keys; otherwise it is a file.
        size_bytes: of a file; 0 for a directory.
        modified_ns: when it was last changed, in ns since 1970; None if that is not known.
    """

    path: str
    is_directory: bool
    size_bytes: int = 0
    modified_ns: int | None = None


def remote_status(path: str) -> RemoteStatus:
    """Return the status of a remote path.

    Raises:
        MissingFileError: there is nothing at the path.
        StorageError: the file system cannot be reached, or refuses.
    """
    file_system, place = locate_remote(path)
    try:
        found = _status(file_system.get_file_info([place])[0])
    except Exception as error:
        _fail(path, "open", error)
    if found is None:
        raise MissingFileError(path, "open", _ABSENT)
    return found


def list_below(path: str) -> tuple[str, Iterator[RemoteStatus]]:
    """Return a remote directory's path in its file system, and everything below it, at any depth.

    One recursive listing is cheapest: an object store returns a thousand keys per request, under whatever prefixes.

    Raises:
        MissingFileError: there is no such directory.
        StorageError: the file system cannot be reached, or refuses.
    """
    from pyarrow.fs import FileSelector

    file_system, place = locate_remote(path)
    try:
        infos = file_system.get_file_info(FileSelector(place, recursive=True))
    except Exception as error:
        _fail(path, "list", error)
    return place, (status for info in infos if (status := _status(info)) is not None)


def open_remote(path: str) -> "NativeFile":
    """Open a remote file for reads at any position.

    Raises:
        MissingFileError: there is no such file.
        StorageError: it cannot be opened.
    """
    file_system, place = locate_remote(path)
    try:
        return file_system.open_input_file(place)
    except Exception as error:
        _fail(path, "open", error)


def remote_failure(path: str, operation: str, error: Exception) -> StorageError:
    """Return the error for a failure of pyarrow's: one line, and a ``MissingFileError`` if the file is not there."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(path, operation, _ABSENT)
    cause = " ".join(str(error).split())
    return StorageError(path, operation, cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}…")


def _fail(path: str, operation: str, error: Exception) -> NoReturn:
    # Callers catch every Exception, because each of pyarrow's file systems raises its own kinds.
    raise remote_failure(path, operation, error) from error


def _status(info: "FileInfo") -> RemoteStatus | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    is_directory = info.type == FileType.Directory
    return RemoteStatus(info.path, is_directory, 0 if is_directory else info.size or 0, info.mtime_ns)


def locate_remote(path: str) -> tuple["FileSystem", str]:
    """Return the file system of a remote path, and the path in it."""
    parts = remote_path(path)
    try:
        file_system, root = _file_system(parts.root)
    except ImportError as error:
        raise MissingExtraError("columns", path) from error
    except Exception as error:
        _fail(path, "open", error)
    return file_system, f"{root.rstrip('/')}/{parts.key}".rstrip("/") or "/"


@functools.lru_cache(maxsize=64)
def _file_system(root: str) -> tuple["FileSystem", str]:
    """Open a file system, once per process, because it keeps its connections."""
    from pyarrow.fs import FileSystem

    opened: tuple[FileSystem, str] = FileSystem.from_uri(root)
    return opened
