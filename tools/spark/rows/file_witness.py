# SPDX-License-Identifier: Apache-2.0
"""How a file looked when a query was planned, so that a task notices that another file is in its place.

What is compared must be the same for every machine that sees the file, also where workers have copies of it: no number
of an inode, which file systems in user space make up, and no time except on the machine of the driver. Everywhere the
header of the first batch of a part is compared, which has that batch's CRC; in a remote file system size and time, as
the store has them. A file that is appended to has another time and the same header.
"""

import functools
import platform
from pathlib import Path
from typing import Final

import attrs

from raftlog.errors import StorageError
from raftlog.file_paths import is_remote
from raftlog.records import limits
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.storage.reading.file_source import FileSource, open_source
from raftlog.storage.reading.remote_file_source import RemoteFileSource
from raftlog.tools.spark.rows.exhaustion import is_exhaustion

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@attrs.frozen
class FileWitness:
    """How a file looked at its planning. Empty values are not compared.

    Attributes:
        head: the header of the batch at which a part starts.
        size_bytes: of the file; the other values are compared only if it has that size still. A file of another size
            was truncated or appended to, which its reading tells.
        machine: the machine and the device on which ``modified_ns`` was read.
        modified_ns: when the file was last written, in ns since 1970.
        fingerprint: the size and the time of a remote file, as text.
    """

    head: bytes = b""
    size_bytes: int = 0
    machine: str = ""
    modified_ns: int = 0
    fingerprint: str = ""

    def holds(self, source: FileSource | RemoteFileSource, start: int) -> bool:
        """Whether an open file is still the one that was planned.

        Args:
            source: the file.
            start: byte position of the part.

        Raises:
            StorageError: the file cannot be read.
        """
        head = bytes(source.read_at(start, len(self.head)))
        if len(head) == len(self.head) and head != self.head:
            return False
        if source.size() != self.size_bytes:
            return True
        if self.fingerprint:
            return DirectoryListing().status(source.path).fingerprint == self.fingerprint
        if not isinstance(source, FileSource) or self.machine != _machine(source):
            return True
        return source.modified_ns() == self.modified_ns


def witness_of(path: str, start: int, size_bytes: int, fingerprint: str, *, may_grow: bool) -> FileWitness:
    """Return how a file looks now. A remote file is not opened, as each request takes a round trip.

    Args:
        path: of the file.
        start: byte position of a part of it, where a batch starts.
        size_bytes: of the file in its listing.
        fingerprint: of the file in its listing.
        may_grow: whether the file may be appended to, and then has another time.

    Raises:
        StorageError: the process has no descriptor or no memory left.
    """
    if is_remote(path):
        return FileWitness() if may_grow else FileWitness(size_bytes=size_bytes, fingerprint=fingerprint)
    try:
        with open_source(path) as source:
            head = bytes(source.read_at(start, limits.BATCH_OVERHEAD))
            head = head if _is_written(head) else b""
            if may_grow or not isinstance(source, FileSource):
                return FileWitness(head)
            return FileWitness(head, size_bytes, _machine(source), source.modified_ns())
    except StorageError as error:
        if is_exhaustion(error):
            raise
        return FileWitness()  # The task that reads it handles the error as the mode requires.


def _is_written(head: bytes) -> bool:
    """Whether a header is there: it may be torn, or in space that was allocated in advance."""
    return len(head) == limits.BATCH_OVERHEAD and any(head)


def _machine(source: FileSource) -> str:
    return f"{_boot_id()} {source.device()}"


@functools.cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # Another system than Linux.
        return platform.node()
