# SPDX-License-Identifier: Apache-2.0
"""Files that raftlog writes for a user: completely or not at all, and known as its own by how they begin."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from raftlog.errors import StorageError


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
