# SPDX-License-Identifier: Apache-2.0
"""The bytes of snapshots that a leader may send."""

from collections.abc import Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.compression import CompressionType
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet


def snapshot_bytes(
    snapshot_id: OffsetAndEpoch,
    voters: VoterSet,
    values: Sequence[bytes] = (b"state",),
    *,
    compression_type: CompressionType = CompressionType.NONE,
) -> bytes:
    """Return a whole snapshot of kraft.version 1 with a set of voters and some records."""
    held: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(held, snapshot_id),
        0,
        last_contained_log_timestamp=0,
        kraft_version=KRaftVersion.KRAFT_VERSION_1,
        voter_set=voters,
        compression_type=compression_type,
    ) as writer:
        writer.append(values, 0)
        writer.freeze(0)
    return held[snapshot_id]


def chunks_of(data: bytes, sizes: Sequence[int]) -> list[tuple[int, bytes]]:
    """Cut bytes into chunks of some sizes, which are used again and again; return each with its position."""
    found: list[tuple[int, bytes]] = []
    position = 0
    while position < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append((position, data[position : position + size]))
        position += size
    return found
