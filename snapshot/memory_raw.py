# SPDX-License-Identifier: Apache-2.0
"""Snapshots in memory: a mapping from ids to bytes replaces the directory."""

from collections.abc import MutableMapping
from typing import Final

from raftlog.disk_work import DiskStep, DiskWork, nothing
from raftlog.errors import SnapshotFrozenError
from raftlog.invariants import invariant
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.raw import RawSnapshotWriter


class MemoryRawSnapshotWriter(Closing, RawSnapshotWriter):
    """A ``RawSnapshotWriter`` into memory; its bytes can be read back until it is frozen.

    Args:
        snapshots: receives the bytes when it is frozen.
        snapshot_id: end offset (exclusive) and epoch.

    Raises:
        InvalidSnapshotIdError: no snapshot has such an id.
    """

    def __init__(self, snapshots: MutableMapping[OffsetAndEpoch, bytes], snapshot_id: OffsetAndEpoch) -> None:
        self._snapshots = snapshots
        self._snapshot_id: Final = snapshot_id
        self._name = snapshot_name(snapshot_id)
        self._data: bytearray | None = bytearray()
        self._size_bytes = 0
        self._is_frozen = False
        self._freezing: DiskWork[None] | None = None

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
        held, before = self._open_data(), self._size_bytes
        invariant(len(held) == before, "{}: {} bytes, but {} were appended", self._name, len(held), before)
        held.extend(data)
        self._size_bytes += len(data)
        now = self._size_bytes
        invariant(len(held) == now, "{}: {} bytes, but {} were appended", self._name, len(held), now)

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare to add the bytes to the snapshots; see ``RawSnapshotWriter``."""
        data = self._open_data()

        def end(content: bytes) -> None:
            size_bytes = self._size_bytes
            invariant(
                len(content) == size_bytes, "{}: {} bytes frozen, {} appended", self._name, len(content), size_bytes
            )
            invariant(not self._is_frozen, "{}: frozen twice", self._name)
            self._snapshots[self._snapshot_id] = content
            self._data, self._is_frozen = None, True

        self._freezing = DiskWork([DiskStep(lambda: bytes(data), end)], nothing, on_end=self._end_freezing)
        return self._freezing

    def _end_freezing(self) -> None:
        self._freezing = None

    def size(self) -> int:
        """Return how many bytes there are to read back.

        Raises:
            SnapshotFrozenError: it is frozen, or closed.
        """
        return len(self._unfrozen_data())

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position of what was appended.

        Raises:
            SnapshotFrozenError: it is frozen, or closed.
        """
        return memoryview(self._unfrozen_data()[position : position + size])  # A view would block appends.

    def close(self) -> None:
        """Close it, and drop the bytes if it was not frozen."""
        freezing = self._freezing
        if freezing is not None:
            freezing.end(SnapshotFrozenError(f"snapshot {self._name} is closed"))
        self._data = None

    def _open_data(self) -> bytearray:
        if self._freezing is not None:
            raise SnapshotFrozenError(f"snapshot {self._name} is being frozen")
        return self._unfrozen_data()

    def _unfrozen_data(self) -> bytearray:
        if self._data is None:
            raise SnapshotFrozenError(f"snapshot {self._name} is {'frozen' if self._is_frozen else 'closed'}")
        return self._data


class MemoryRawSnapshotReader(Closing):
    """A ``RawSnapshotReader`` of bytes in memory.

    Args:
        snapshot_id: end offset (exclusive) and epoch.
        data: all of the snapshot.
    """

    def __init__(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        self._snapshot_id = snapshot_id
        self._data = memoryview(data)

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch."""
        return self._snapshot_id

    def size(self) -> int:
        """Return how many bytes it has."""
        return len(self._data)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, fewer only at the end of the snapshot."""
        return self._data[position : position + size]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
