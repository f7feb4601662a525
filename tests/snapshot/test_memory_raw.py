# SPDX-License-Identifier: Apache-2.0
"""Snapshots in memory. The contract of all raw snapshots is in ``tests/contracts/test_raw_snapshots.py``."""

from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter

ID = OffsetAndEpoch(42, 3)


def test_a_frozen_snapshot_is_bytes_of_its_own() -> None:
    """The mapping gets bytes that no longer change, and the writer releases its own."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    chunk = bytearray(b"data")
    with MemoryRawSnapshotWriter(snapshots, ID) as writer:
        writer.append(memoryview(chunk))
        chunk[:] = b"gone"
        writer.freeze()
    assert snapshots == {ID: b"data"}
