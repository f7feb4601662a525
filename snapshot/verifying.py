# SPDX-License-Identifier: Apache-2.0
"""Freezing nothing that does not verify: a snapshot that came in chunks from somebody else, or one of our own making.

Source: KafkaRaftClient#handleFetchSnapshotResponse. Differs: Kafka freezes whatever bytes there are.
"""

from typing import Protocol

from raftlog.disk_work import DiskStep, DiskWork
from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.reader import verify_snapshot


class ReadableRawSnapshotWriter(RawSnapshotWriter, Protocol):
    """A ``RawSnapshotWriter`` whose bytes can be read back until it is frozen: a ``ByteSource`` too."""

    def size(self) -> int:
        """Return how many bytes there are to read back."""
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position of what was appended."""
        ...


class VerifyingRawSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that verifies the whole snapshot before it freezes it. It reads it back in pieces.

    Args:
        writer: what writes the snapshot, and gives it back to be verified.
    """

    def __init__(self, writer: ReadableRawSnapshotWriter) -> None:
        super().__init__(writer)
        self._written = writer

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare to verify the snapshot, and to make it durable under its name; see ``RawSnapshotWriter``.

        The work raises:
            DecodeError, MissingExtraError, StorageError: as for ``verify_snapshot``. The writer is closed then: bytes
                that were written cannot be put right.
        """
        work = super().prepare_freeze()
        verify = DiskStep(
            lambda: verify_snapshot(self._written, self.snapshot_id), on_failure=lambda _: self._writer.close()
        )
        return work.precede(verify)
