# SPDX-License-Identifier: Apache-2.0
"""A snapshot that is fetched, and tells a witness when it is closed."""

from collections.abc import Callable

from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger

Spoil = Callable[[bytes | memoryview], bytes | memoryview]


class FetchedSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that is watched.

    Args:
        writer: what writes the snapshot.
        witness: to be told.
        ledger: of the directory.
        spoil: returns what is written of a part.
    """

    def __init__(self, writer: RawSnapshotWriter, witness: DiskWitness, ledger: Ledger, spoil: Spoil = bytes) -> None:
        super().__init__(writer)
        self._spoil = spoil
        self._witness, self._ledger = witness, ledger
        witness.fetching(ledger, writer.snapshot_id)

    def append(self, data: bytes | memoryview) -> None:
        """Add a part, as the disk gets it."""
        super().append(self._spoil(data))

    def close(self) -> None:
        """Close it, and tell the witness."""
        super().close()
        self._witness.fetched(self._ledger)
