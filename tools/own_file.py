# SPDX-License-Identifier: Apache-2.0
"""Files that raftlog writes for a user: completely or not at all, and known as its own by how they begin."""

import contextlib
import itertools
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.file_paths import is_remote, local_or_remote


def is_own(target: Path, head: bytes) -> bool:
    """Whether a path is a file that begins as those of one kind do.

    Raises:
        OSError: it cannot be read.
    """
    if not target.is_file():  # Reading a pipe would block.
        return False
    with target.open("rb") as file:
        return file.read(len(head)) == head


def write_whole(path: str, data: bytes) -> None:
    """Write a file durably, in place of the one that has its name.

    Raises:
        StorageError: it cannot be written. What the path had is unchanged.
    """
    target = Path(path)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise StorageError(path, "write", error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that gets its name when it is complete and durable; after an error there is none.

    Raises:
        StorageError: the path exists, or the file cannot be written.
    """
    target = Path(path)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if os.path.lexists(target):
            raise StorageError(path, "make", "it exists, and is not overwritten")
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(part, target)  # Unlike a rename, it replaces nothing.
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(path, "write", error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)


def check_outside(path: str, sources: Iterable[str]) -> None:
    """Check that results are written neither to an audited directory nor to a remote file system.

    Raises:
        LogDirectoryError: they would be.
        StorageError: a URI holds credentials.
    """
    if local_or_remote(path) != path or is_remote(path):
        raise LogDirectoryError(f"{path}: results are written to a local directory, named by its plain path, not a URI")
    output = os.path.realpath(path)
    for source in itertools.filterfalse(is_remote, map(local_or_remote, sources)):
        if os.path.commonpath([output, root := os.path.realpath(source)]) == root:
            raise LogDirectoryError(f"{path} is in {source}: an audited directory is not written to")
