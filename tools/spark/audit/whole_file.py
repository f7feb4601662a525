# SPDX-License-Identifier: Apache-2.0
"""Files that several tasks may write at once, and that readers see completely or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raftlog.errors import StorageError
from raftlog.tools.auditing.object_paths import ObjectPath, OutputPath

_SUFFIX = ".part"


@contextmanager
def whole_file(path: OutputPath) -> Iterator[OutputPath]:
    """Provide a temporary path to write to, and rename that file to ``path`` at the end of the block, unless it fails.

    If several tasks do so for one path, the file of the first one is kept, provided the file system has hard links.

    In an object store, files are whole from the start: the path itself is provided, and the last one's file is kept.

    Raises:
        StorageError: the disk failed. The file does not exist, or another task wrote it.
    """
    if isinstance(path, ObjectPath):
        yield path
        return
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


def parts_in(folder: OutputPath) -> Iterator[OutputPath]:
    """Yield the temporary files in a folder, which killed tasks have left."""
    return folder.glob(f".*{_SUFFIX}")


def _publish(part: Path, path: Path) -> None:
    try:
        path.hardlink_to(part)
    except FileExistsError:
        return
    except OSError:  # The file system has no hard links.
        part.replace(path)
