# SPDX-License-Identifier: Apache-2.0
"""Files that several tasks may write at once, and that others see whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raftlog.errors import StorageError

_SUFFIX = ".part"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Lend the path of a file that gets its name at the end of the block, unless that fails.

    Of several who do so for one name, the first one's file is kept, if the file system has links.

    Raises:
        StorageError: the disk failed. There is no such file, or one that somebody else has written.
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
    """Yield what was left in a folder by those who were killed as they wrote."""
    return folder.glob(f".*{_SUFFIX}")


def _publish(part: Path, path: Path) -> None:
    try:
        path.hardlink_to(part)
    except FileExistsError:
        return
    except OSError:  # There are file systems without links.
        part.replace(path)
