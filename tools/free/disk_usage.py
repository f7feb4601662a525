# SPDX-License-Identifier: Apache-2.0
"""How many bytes come free if a file is removed: what the file system has allocated, and only with the last link."""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from raftlog.errors import MissingFileError, StorageError

_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks``, whatever the file system's own blocks are (POSIX: sys/stat.h)."""


@attrs.frozen
class DiskFile:
    """A file as it is on disk.

    Attributes:
        path: its path.
        size_bytes: its length, holes included.
        allocated_bytes: what the file system has allocated for it: less than its size if it has holes, more if it is
            preallocated.
        identity: device and inode.
        link_count: how many names it has.
    """

    path: str
    size_bytes: int
    allocated_bytes: int
    identity: tuple[int, int]
    link_count: int


def disk_file(path: str) -> DiskFile | None:
    """Return a file as it is on disk; None for a symbolic link, whose removal frees nothing, and what is not a file.

    Raises:
        MissingFileError: there is no such file.
        StorageError: it cannot be looked up.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError as error:
        raise MissingFileError(path, "look up", error.strerror or str(error)) from error
    except OSError as error:
        raise StorageError(path, "look up", error.strerror or str(error)) from error
    if not stat.S_ISREG(status.st_mode):
        return None
    allocated = status.st_blocks * _BLOCK_BYTES
    return DiskFile(path, status.st_size, allocated, (status.st_dev, status.st_ino), status.st_nlink)


def device_of(path: str) -> int:
    """Return the number of the file system of a path.

    Raises:
        StorageError: the path cannot be looked up.
    """
    try:
        return os.stat(path).st_dev  # noqa: PTH116 - the path is kept as it was named
    except OSError as error:
        raise StorageError(path, "look up", error.strerror or str(error)) from error


def files_below(path: str) -> Iterator[DiskFile]:
    """Yield all files in a directory and below it; symbolic links are not followed.

    Raises:
        StorageError: a directory cannot be listed, or a file not be looked up.
    """
    try:
        with os.scandir(path) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise StorageError(path, "list", error.strerror or str(error)) from error
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(entry.path)
        elif (file := disk_file(entry.path)) is not None:
            yield file


class FreedBytes:
    """Counts what comes free as files are removed one after the other."""

    def __init__(self) -> None:
        self._removed_links: dict[tuple[int, int], set[str]] = {}

    def remove(self, files: Iterable[DiskFile]) -> int:
        """Note that files are removed, and return how many bytes come free with them.

        A file with several names comes free with the last of them. A file that was noted before counts nothing.
        """
        freed = 0
        for file in files:
            paths = self._removed_links.setdefault(file.identity, set())
            if file.path in paths:
                continue
            paths.add(file.path)
            if len(paths) == file.link_count:
                freed += file.allocated_bytes
        return freed
