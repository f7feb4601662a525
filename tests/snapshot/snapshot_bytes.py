# SPDX-License-Identifier: Apache-2.0
"""Snapshots put together batch by batch, right ones and wrong ones."""

from collections.abc import Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.strategies import TIMESTAMP

ID = OffsetAndEpoch(42, 3)
HEADER = (SnapshotHeaderRecord(TIMESTAMP), KRaftVersionRecord(1))
FOOTER = (SnapshotFooterRecord(),)


def control(values: Sequence[ControlValue], base_offset: int, epoch: int = ID.epoch) -> bytes:
    """Write a control batch."""
    return write_control_batch(values, base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP)


def data(
    base_offset: int,
    count: int = 2,
    epoch: int = ID.epoch,
    *,
    is_control: bool = False,
    key: bytes | None = None,
    value: bytes = b"value",
) -> bytes:
    """Write a batch of some records."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch, is_control=is_control)
    builder.extend([(TIMESTAMP, key, value)] * count)
    return builder.build()


def written(
    *appends: Sequence[bytes],
    snapshot_id: OffsetAndEpoch = ID,
    voter_set: VoterSet | None = None,
    max_batch_size_bytes: int = 8192,
) -> bytes:
    """Write a snapshot by the writer."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(snapshots, snapshot_id),
        TIMESTAMP,
        last_contained_log_timestamp=TIMESTAMP - 1000,
        kraft_version=KRaftVersion.KRAFT_VERSION_1,
        voter_set=voter_set,
        max_batch_size_bytes=max_batch_size_bytes,
    ) as writer:
        for values in appends:
            writer.append(values, TIMESTAMP)
        assert writer.freeze(TIMESTAMP) == len(snapshots[snapshot_id])
    return snapshots[snapshot_id]
