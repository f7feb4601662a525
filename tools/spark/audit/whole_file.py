# SPDX-License-Identifier: Apache-2.0
"""Atomic creation of files that several tasks may write at the same time: readers see all of a file or none of it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raftlog.errors import StorageError

_SUFFIX = ".part"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Provide a temporary path whose file is renamed to its final name at the end of the block, unless that fails.

    If several tasks do so for one name, the first file is kept, provided that the file system has hard links.

    Raises:
        StorageError: the disk failed. The name does not exist, or is the file of another task.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}")
    try:
        try:
            yield part
            _publish(part, path)
        finally:
            part.unlink(missing_ok=True)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(str(path), "write", error.strerror or str(error)) from error


def parts_in(folder: Path) -> Iterator[Path]:
    """Yield the temporary files in a folder whose writers were killed."""
    return folder.glob(f".*{_SUFFIX}")


def _publish(part: Path, path: Path) -> None:
    try:
        path.hardlink_to(part)
    except FileExistsError:
        return
    except OSError:  # Some file systems have no hard links.
        part.replace(path)
