# SPDX-License-Identifier: Apache-2.0
"""Snapshots in files.

A snapshot is written to ``<id>-<digits>.checkpoint.part``. Freezing it gives it its name, ``<id>.checkpoint``::

    append ... append   sync the bytes   make it read-only   rename   sync the directory

A crash at any point leaves either a partial file, which ``SnapshotDirectory.clean_up`` removes, or the whole snapshot.

Source: FileRawSnapshotWriter, FileRawSnapshotReader.
"""

import contextlib

from raftlog.disk_work import DiskStep, DiskWork, nothing
from raftlog.errors import SnapshotFrozenError, StorageError
from raftlog.file_system import FileSystem, OpenFile, join, own_view, remove_if_there
from raftlog.invariants import invariant
from raftlog.offsets import OffsetAndEpoch
from raftlog.process_ownership import Owned
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.paths import partial_name, snapshot_name
from raftlog.snapshot.raw import RawSnapshotWriter


class FileRawSnapshotWriter(Closing, RawSnapshotWriter, Owned):
    """A ``RawSnapshotWriter`` into a directory; its bytes can be read back until it is frozen.

    After a ``StorageError`` from one of its methods it is closed, and its partial file is removed if possible. A
    process forked from its creator can only close it, which leaves the partial file in place.

    Args:
        file_system: the file system of the directory.
        directory: the log directory.
        snapshot_id: end offset (exclusive) and epoch.
        digits: 1 to 20 digits that make the partial file's name unique among writers of this id. An existing partial
            file of this name is removed as a leftover.

    Raises:
        InvalidSnapshotIdError: the id or the digits are not valid.
        StorageError: the partial file cannot be created.
    """

    def __init__(self, file_system: FileSystem, directory: str, snapshot_id: OffsetAndEpoch, digits: str) -> None:
        self._file_system = own_view(file_system, directory)
        self._directory = directory
        self._snapshot_id = snapshot_id
        self._name = snapshot_name(snapshot_id)
        self._part_path = join(directory, partial_name(snapshot_id, digits))
        Owned.__init__(self, self._part_path)
        self._size_bytes = 0
        self._is_frozen = False
        self._freezing: DiskWork[None] | None = None
        remove_if_there(file_system, self._part_path)
        self._file: OpenFile | None = file_system.open(self._part_path, create=True)

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch."""
        return self._snapshot_id

    @property
    def size_bytes(self) -> int:
        """How many bytes have been appended."""
        return self._size_bytes

    @property
    def is_frozen(self) -> bool:
        """Whether ``freeze`` has succeeded."""
        return self._is_frozen

    def append(self, data: bytes | memoryview) -> None:
        """Add bytes at the end; see ``RawSnapshotWriter``."""
        file = self._open_file()
        try:
            file.append(data)
        except StorageError:
            self.close()
            raise
        before = self._size_bytes
        self._size_bytes += len(data)
        is_growing = 0 <= before <= self._size_bytes
        if self._is_frozen or not is_growing:
            self.close()
        invariant(not self._is_frozen, "{}: {} bytes appended when frozen", self._part_path, len(data))
        invariant(is_growing, "{}: {} bytes, previously {}", self._part_path, self._size_bytes, before)

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare to make the snapshot durable under its name; see ``RawSnapshotWriter``.

        Differs: Kafka copies the file if a rename fails; here that is an error. After the rename the file stays, even
        if a later step fails: it is whole, and may have replaced a snapshot that peers know of.
        """
        file, size_bytes = self._open_file(), self._size_bytes
        path = join(self._directory, self._name)

        def store() -> None:
            self.check_owner()
            file.sync()
            self._file_system.set_read_only(self._part_path)
            self._file_system.rename(self._part_path, path)
            self._file_system.sync_directory(self._directory)

        def end(_: object) -> None:
            file.close()
            invariant(not self._is_frozen, "{}: frozen twice", path)
            now = self._size_bytes
            invariant(now == size_bytes, "{}: {} bytes frozen, {} appended", path, size_bytes, now)
            self._file, self._is_frozen = None, True

        step = DiskStep(store, end, (self._part_path, path, self._directory), lambda _: self.close())
        self._freezing = DiskWork([step], nothing, on_end=self._end_freezing)
        return self._freezing

    def _end_freezing(self) -> None:
        self._freezing = None

    def size(self) -> int:
        """Return how many bytes there are to read back.

        Raises:
            SnapshotFrozenError: it is frozen, or closed.
        """
        self._unfrozen_file()
        return self._size_bytes

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position of what was appended.

        Raises:
            SnapshotFrozenError: it is frozen, or closed.
            StorageError: the disk failed. Nothing has changed.
        """
        return self._unfrozen_file().read_at(position, size)

    def close(self) -> None:
        """Close it, and remove the partial file if it was not frozen; if that fails, the next startup removes it."""
        freezing = self._freezing if self.disowned is None else None
        if freezing is not None:
            freezing.end(SnapshotFrozenError(f"snapshot {self._name} is closed"))
        file, self._file = self._file, None
        if file is not None:
            file.close()
            if self.disowned is not None:
                return
            with contextlib.suppress(StorageError):
                self._file_system.remove(self._part_path)

    def _open_file(self) -> OpenFile:
        self.check_owner()
        if self._freezing is not None:
            raise SnapshotFrozenError(f"snapshot {self._name} is being frozen")
        return self._unfrozen_file()

    def _unfrozen_file(self) -> OpenFile:
        if self._file is None:
            raise SnapshotFrozenError(f"snapshot {self._name} is {'frozen' if self._is_frozen else 'closed'}")
        return self._file


class FileRawSnapshotReader(Closing):
    """A ``RawSnapshotReader`` of a file. Removing the snapshot's name does not disturb it.

    Args:
        file_system: the file system of the directory.
        directory: the log directory.
        snapshot_id: end offset (exclusive) and epoch.

    Raises:
        InvalidSnapshotIdError: no snapshot has such an id.
        MissingFileError: there is no frozen snapshot of this id.
        StorageError: it cannot be opened.
    """

    def __init__(self, file_system: FileSystem, directory: str, snapshot_id: OffsetAndEpoch) -> None:
        self._snapshot_id = snapshot_id
        self._file = file_system.open_for_reads(join(directory, snapshot_name(snapshot_id)))

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch."""
        return self._snapshot_id

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._file.size()

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, fewer only at the end of the snapshot.

        Raises:
            StorageError: the disk failed.
        """
        return self._file.read_at(position, size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
