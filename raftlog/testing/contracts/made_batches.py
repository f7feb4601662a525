# SPDX-License-Identifier: Apache-2.0
"""Makes small batches as a raft leader writes them, and small complete snapshots."""

import functools
from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.checksum import crc32c
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion

TIMESTAMP: Final = 1_700_000_000_000
"""In ms since the Unix epoch. The records of a batch have this timestamp plus its base offset."""


_CRC_POSITION: Final = 17
_ATTRIBUTES_POSITION: Final = 21
_IS_CONTROL: Final = 0x20


@functools.lru_cache(maxsize=4096)
def raft_batch(base_offset: int, epoch: int, count: int = 1, value: bytes = b"value") -> bytes:
    """Return a batch of ``count`` records that all have the same value."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    builder.extend([(TIMESTAMP + base_offset, None, value)] * count)
    return builder.build()


def snapshot_bytes(snapshot_id: OffsetAndEpoch, *, last_contained_log_timestamp: int = 0, value: bytes = b"v") -> bytes:
    """Return a snapshot of one record."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    raw = MemoryRawSnapshotWriter(snapshots, snapshot_id)
    with RecordsSnapshotWriter(
        raw,
        TIMESTAMP,
        last_contained_log_timestamp=last_contained_log_timestamp,
        kraft_version=KRaftVersion.KRAFT_VERSION_0,
    ) as writer:
        writer.append([value], TIMESTAMP)
        writer.freeze(TIMESTAMP)
    return snapshots[snapshot_id]


def unreadable_control_batch(base_offset: int, epoch: int) -> bytes:
    """Return a control batch whose CRC matches, but whose record is not a control record."""
    batch = bytearray(raft_batch(base_offset, epoch))
    batch[_ATTRIBUTES_POSITION + 1] |= _IS_CONTROL
    batch[_CRC_POSITION:_ATTRIBUTES_POSITION] = crc32c(batch[_ATTRIBUTES_POSITION:]).to_bytes(4, "big")
    return bytes(batch)
