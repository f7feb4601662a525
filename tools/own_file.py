# SPDX-License-Identifier: Apache-2.0
"""Files that raftlog writes for a user: completely or not at all, and known as its own by how they begin."""

import contextlib
import glob
import itertools
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.file_paths import is_remote, local_or_remote
from raftlog.records.files.file_names import FileKind, parse_directory_name
from raftlog.storage.reading.file_source import STANDARD_INPUT

_OWNER: Final = FileKind.META_PROPERTIES.value
_OF_LOGS: Final = (_OWNER, FileKind.PARTITION_METADATA.value, FileKind.LEADER_EPOCH_CHECKPOINT.value)
"""Files that Kafka keeps in each log directory, or in the directory of each log."""


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
    """Check that results are written neither to a directory that is read nor to a remote file system.

    A file that is read stands for the directory of a log that it is in, and the directory of a log for the log
    directory around it: a file that appears there may be taken for one of the node's.

    Args:
        path: to be written.
        sources: what is read, as users name it: directories, files, patterns, URIs and ``-``.

    Raises:
        LogDirectoryError: they would be.
        StorageError: a URI holds credentials.
    """
    if local_or_remote(path) != path or is_remote(path):
        raise LogDirectoryError(f"{path}: results are written to a local directory, named by its plain path, not a URI")
    output = os.path.realpath(path)
    for source in itertools.filterfalse(is_remote, map(local_or_remote, sources)):
        for place in () if source == STANDARD_INPUT else _places(source):
            if os.path.commonpath([output, place]) == place:
                where = source if place == os.path.realpath(source) else place
                raise LogDirectoryError(f"{path} is in {where}: an audited directory is not written to")


def _places(source: str) -> Iterator[str]:
    """Yield the paths that must not be written below if a path, or a pattern, is read; without links."""
    for each in (source, *glob.glob(source)):  # noqa: PTH207 - as users give it
        real = os.path.realpath(each)
        yield real
        directory = Path(real if os.path.isdir(real) else os.path.dirname(real))  # noqa: PTH112, PTH120
        if any((directory / name).exists() for name in _OF_LOGS):
            yield str(directory)
        if parse_directory_name(directory.name) is not None and (directory.parent / _OWNER).exists():
            yield str(directory.parent)
