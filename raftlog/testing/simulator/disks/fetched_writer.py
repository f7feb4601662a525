# SPDX-License-Identifier: Apache-2.0
"""A snapshot that is fetched, and tells a witness when it is closed."""

from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger


class FetchedSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that is watched.

    Args:
        writer: what writes the snapshot.
        witness: to be told.
        ledger: of the directory.
    """

    def __init__(self, writer: RawSnapshotWriter, witness: DiskWitness, ledger: Ledger) -> None:
        super().__init__(writer)
        self._witness, self._ledger = witness, ledger
        witness.fetching(ledger, writer.snapshot_id)

    def close(self) -> None:
        """Close it, and tell the witness."""
        super().close()
        self._witness.fetched(self._ledger)
