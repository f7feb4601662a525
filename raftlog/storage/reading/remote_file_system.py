# SPDX-License-Identifier: Apache-2.0
"""Files of any file system that ``pyarrow.fs`` opens, by URIs: their status, what is below a directory, their bytes.

Credentials come from where the file system's own tools have them: environment, profiles, the machine's role. Failures
are tried again by pyarrow, for some seconds, and then are a ``StorageError`` that names the path.
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
    """What a remote file system says about a path.

    Attributes:
        path: in the file system, without scheme and query.
        is_directory: whether it is one, or a prefix of keys; otherwise it is a file.
        size_bytes: of a file, else 0.
        modified_ns: when it was last changed, in ns since 1970; None where that is not known.
    """

    path: str
    is_directory: bool
    size_bytes: int = 0
    modified_ns: int | None = None


def remote_status(path: str) -> RemoteStatus:
    """Return what is at a remote path.

    Raises:
        MissingFileError: nothing is.
        StorageError: the file system cannot be asked.
    """
    file_system, place = _locate(path)
    try:
        found = _status(file_system.get_file_info([place])[0])
    except Exception as error:
        _fail(path, "open", error)
    if found is None:
        raise MissingFileError(path, "open", _ABSENT)
    return found


def list_below(path: str) -> tuple[str, Iterator[RemoteStatus]]:
    """Return a remote directory's own path in its file system, and all that is below it, at any depth.

    An object store has a thousand keys ready for one question, however many prefixes they are under.

    Raises:
        MissingFileError: there is no such directory.
        StorageError: the file system cannot be asked.
    """
    from pyarrow.fs import FileSelector

    file_system, place = _locate(path)
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
    file_system, place = _locate(path)
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
    # Whatever it is: each of pyarrow's file systems has its own ways to refuse a path.
    raise remote_failure(path, operation, error) from error


def _status(info: "FileInfo") -> RemoteStatus | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    is_directory = info.type == FileType.Directory
    return RemoteStatus(info.path, is_directory, 0 if is_directory else info.size or 0, info.mtime_ns)


def _locate(path: str) -> tuple["FileSystem", str]:
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
    """Open a file system, once in a process: it keeps its connections."""
    from pyarrow.fs import FileSystem

    opened: tuple[FileSystem, str] = FileSystem.from_uri(root)
    return opened
