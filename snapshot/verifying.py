# SPDX-License-Identifier: Apache-2.0
"""Verifies a snapshot before it is frozen, whether it was fetched from a peer or written here.

Source: KafkaRaftClient#handleFetchSnapshotResponse. Differs: Kafka freezes the bytes without a check.
"""

from typing import Protocol

from raftlog.disk_work import DiskStep, DiskWork
from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.reader import verify_snapshot


class ReadableRawSnapshotWriter(RawSnapshotWriter, Protocol):
    """A ``RawSnapshotWriter`` whose bytes can be read back until it is frozen; it is also a ``ByteSource``."""

    def size(self) -> int:
        """Return how many bytes there are to read back."""
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position of what was appended."""
        ...


class VerifyingRawSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that reads the whole snapshot back in pieces and verifies it before freezing it.

    Args:
        writer: writes the snapshot, and reads it back.
    """

    def __init__(self, writer: ReadableRawSnapshotWriter) -> None:
        super().__init__(writer)
        self._written = writer

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare to verify the snapshot, and to make it durable under its name; see ``RawSnapshotWriter``.

        The work raises:
            DecodeError, MissingExtraError, StorageError: as for ``verify_snapshot``. The writer is then closed, since
                bytes that were written cannot be corrected.
        """
        work = super().prepare_freeze()
        verify = DiskStep(
            lambda: verify_snapshot(self._written, self.snapshot_id), on_failure=lambda _: self._writer.close()
        )
        return work.precede(verify)
