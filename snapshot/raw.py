# SPDX-License-Identifier: Apache-2.0
"""Protocols of raw snapshots: an id, and bytes that are written once and frozen.

Both protocols have two implementations, which pass one contract suite: files (``file_raw``) and memory
(``memory_raw``).

Source: RawSnapshotWriter, RawSnapshotReader.
"""

from types import TracebackType
from typing import Protocol, Self

from raftlog.disk_work import DiskWork
from raftlog.errors import SnapshotPositionError
from raftlog.offsets import OffsetAndEpoch


class RawSnapshotWriter(Protocol):
    """Writes the bytes of a snapshot, which exists once it is frozen. Leaving a ``with`` block closes the writer."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) of the log prefix that the snapshot replaces, and the epoch of its last record."""
        ...

    @property
    def size_bytes(self) -> int:
        """How many bytes have been appended."""
        ...

    @property
    def is_frozen(self) -> bool:
        """Whether ``freeze`` has succeeded."""
        ...

    def append(self, data: bytes | memoryview) -> None:
        """Add bytes at the end. They need not be whole batches, since a snapshot is fetched in chunks of any size.

        Raises:
            SnapshotFrozenError: it is frozen, or closed.
            StorageError: the disk failed. From now on the snapshot can only be closed.
        """
        ...

    def append_at(self, position: int, data: bytes | memoryview) -> None:
        """Add a chunk that must start at the end of the bytes so far; this refuses repeated and late chunks.

        Raises:
            SnapshotPositionError: it starts elsewhere. Nothing has changed.
            SnapshotFrozenError, StorageError: as for ``append``.
        """
        if position != self.size_bytes:
            raise SnapshotPositionError(f"a chunk at position {position}, and the next position is {self.size_bytes}")
        self.append(data)

    def freeze(self) -> None:
        """Make the snapshot durable under its name, all of it or nothing, and take no more bytes.

        Raises:
            SnapshotFrozenError: it is frozen already, or closed.
            StorageError: the disk failed. It is not known whether the name will exist after a crash, so do not
                acknowledge the snapshot.
        """
        self.prepare_freeze().complete()

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare ``freeze``: appends are refused from now on, and the snapshot exists once the work is finished.

        Raises:
            SnapshotFrozenError: it is frozen already, being frozen, or closed.
        """
        ...

    def close(self) -> None:
        """Close it. A snapshot that was not frozen is removed. Closing twice is harmless.

        Raises:
            WorkUnderWayError: it is being frozen now. Finish that work first; nothing has changed.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class RawSnapshotReader(Protocol):
    """Reads the bytes of a frozen snapshot; it is also a ``ByteSource``. Leaving a ``with`` block closes it."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) of the log prefix that the snapshot replaces, and the epoch of its last record."""
        ...

    def size(self) -> int:
        """Return how many bytes it has."""
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, fewer only at the end of the snapshot.

        Raises:
            StorageError: the disk failed.
        """
        ...

    def close(self) -> None:
        """Close it. Closing twice is harmless."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
