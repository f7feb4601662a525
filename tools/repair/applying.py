# SPDX-License-Identifier: Apache-2.0
"""Makes the directory of a repair: whole, durable and reviewed before it has its name, or not at all.

It is built under a temporary name beside its target, so that the last step is one rename within a directory. A failure,
or an interrupt, removes what was built. A process that is killed leaves the temporary name, which nothing reads.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from raftlog.errors import AlreadyFormattedError, LogDirectoryError, MissingFileError
from raftlog.file_system import FileSystem, join, parent_directory
from raftlog.tools.repair.sources import Source

R = TypeVar("R")

TEMPORARY_SUFFIX: Final = ".raftlog-part"

Build = Callable[[str], None]
"""Makes the content of a directory, which exists and is empty."""

Review = Callable[[str], R]
"""Looks at the finished directory and returns what there is to say; raises an error if it must not be used."""


def check_is_outside(path: str, sources: Iterable[Source], others: Iterable[str] = ()) -> None:
    """Check that a path that is to be written is in no source.

    Args:
        path: to be written.
        sources: of a repair.
        others: local log directories that it reads, too.

    Raises:
        LogDirectoryError: it is inside a source, which is only read, or a source is inside it.
    """
    real = os.path.realpath(path)
    for directory in (*(source.directory for source in sources), *others):
        place = os.path.realpath(directory)
        if os.path.commonpath([real, place]) in {real, place}:
            raise LogDirectoryError(f"{path} is inside the source {directory}, which is only read")


def check_target(out: str, sources: Iterable[Source], others: Iterable[str] = ()) -> str:
    """Return the absolute path of a directory that is to be made, if it can be.

    Args:
        out: its path.
        sources: of the repair.
        others: local log directories that it reads, too.

    Raises:
        AlreadyFormattedError: it exists.
        LogDirectoryError: it is inside a source, which is only read.
        MissingFileError: the directory that it is to be in does not exist.
    """
    target = os.path.abspath(out)  # noqa: PTH100 - pathlib would resolve a link, which must not be there
    if os.path.lexists(target):
        raise AlreadyFormattedError(f"{out} exists: a repair makes a new directory")
    parent = parent_directory(target)
    if not os.path.isdir(parent):  # noqa: PTH112
        raise MissingFileError(parent, "make a directory in it", "no such directory")
    check_is_outside(target, sources, others)
    return target


def make_directory(file_system: FileSystem, target: str, build: Build, review: Review[R]) -> R:
    """Make a directory, and return what its review says. On return it has its name, and all of it is durable.

    Args:
        file_system: the local file system, or one over it.
        target: absolute path of the directory, as ``check_target`` returns it.
        build: makes its content.
        review: looks at it, after all of it is durable.

    Raises:
        AlreadyFormattedError: the directory has appeared meanwhile.
        OutOfSpaceError, StorageError: the disk failed. Nothing has the target's name.
        RaftLogError: as ``build`` and ``review``. Nothing has the target's name.
    """
    temporary = f"{target}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    parent = parent_directory(target)
    is_placed = False
    try:
        file_system.make_directory(temporary)
        build(temporary)
        _sync_tree(file_system, temporary)
        found = review(temporary)
        if file_system.exists(target):
            raise AlreadyFormattedError(f"{target} has appeared meanwhile")
        file_system.rename(temporary, target)
        is_placed = True
        file_system.sync_directory(parent)
        return found
    except BaseException:
        if is_placed:  # Its name may not be durable.
            with contextlib.suppress(OSError):
                os.rename(target, temporary)  # noqa: PTH104
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _sync_tree(file_system: FileSystem, directory: str) -> None:
    """Make all files and names below a directory durable."""
    for name in file_system.list(directory):
        path = join(directory, name)
        if os.path.isdir(path):  # noqa: PTH112
            _sync_tree(file_system, path)
            continue
        file = file_system.open_for_reads(path)
        try:
            file.sync()
        finally:
            file.close()
    file_system.sync_directory(directory)
