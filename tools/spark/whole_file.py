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

    Where several do so for one name, it is that of the last one's.

    Raises:
        StorageError: the disk failed. There is no such file, or one that somebody else has written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}")
    try:
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(str(path), "write", error.strerror or str(error)) from error


def parts_in(folder: Path) -> Iterator[Path]:
    """Yield what was left in a folder by those who were killed as they wrote."""
    return folder.glob(f".*{_SUFFIX}")
