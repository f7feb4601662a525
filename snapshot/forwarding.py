# SPDX-License-Identifier: Apache-2.0
"""A base class for snapshot writers that wrap another one and extend it."""

from raftlog.disk_work import DiskWork
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.raw import RawSnapshotWriter


class ForwardingRawSnapshotWriter(Closing, RawSnapshotWriter):
    """A ``RawSnapshotWriter`` that forwards every call to another one, which it owns.

    Args:
        writer: the wrapped writer.
    """

    def __init__(self, writer: RawSnapshotWriter) -> None:
        self._writer = writer

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """End offset (exclusive) and epoch."""
        return self._writer.snapshot_id

    @property
    def size_bytes(self) -> int:
        """How many bytes have been appended."""
        return self._writer.size_bytes

    @property
    def is_frozen(self) -> bool:
        """Whether ``freeze`` has succeeded."""
        return self._writer.is_frozen

    def append(self, data: bytes | memoryview) -> None:
        """Add bytes at the end; see ``RawSnapshotWriter``."""
        self._writer.append(data)

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare ``freeze``; see ``RawSnapshotWriter``."""
        return self._writer.prepare_freeze()

    def close(self) -> None:
        """Close the wrapped writer; see ``RawSnapshotWriter``."""
        self._writer.close()
