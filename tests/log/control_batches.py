# SPDX-License-Identifier: Apache-2.0
"""Batches as raft writes them, and others, for the tests of what reads them."""

import functools
import itertools
import uuid
from collections.abc import Iterable, Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.control import ControlValue, LeaderChangeMessage, Voter, write_control_record
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader, MemoryRawSnapshotWriter
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

TIMESTAMP = 1_700_000_000_000
LEADER_CHANGE = LeaderChangeMessage(1, (Voter(1), Voter(2)), (Voter(1),))

Written = ControlValue | tuple[bytes | None, bytes | None]
"""What a control record is written from: its value, or a raw key and value."""

Change = tuple[int, VoterSet | KRaftVersion]
"""What a record puts in force, from its offset on."""

State = tuple[VoterSet | None, KRaftVersion]
"""What is in force at an offset; no voters where no record has named them."""


def states_at(changes: Sequence[Change], first: int, end: int) -> dict[int, State]:
    """Give the state at every offset of [first, end), by looking at every change at every offset."""
    known: VoterSet | None = None
    version = KRaftVersion.KRAFT_VERSION_0
    states = {}
    for offset in range(first, end):
        for at, change in changes:
            if at == offset and isinstance(change, VoterSet):
                known = change
            elif at == offset and isinstance(change, KRaftVersion):
                version = change
        states[offset] = (known, version)
    return states


@functools.cache
def voters(*ids: int) -> VoterSet:
    """Make a set of voters with these ids, each with a directory and an endpoint of its own."""
    return VoterSet.of(
        VoterNode(
            ReplicaKey(each, uuid.UUID(int=each + 1)),
            Endpoints.of({"CONTROLLER": ("localhost", 9000 + each)}),
            SupportedVersionRange(0, 1),
        )
        for each in ids
    )


def control_bytes(
    base_offset: int,
    values: Iterable[Written],
    *,
    epoch: int = 0,
    codec: CompressionType = CompressionType.NONE,
) -> bytes:
    """Write a control batch of typed values, or of raw keys and values."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch, compression_type=codec, is_control=True)
    for value in values:
        key, data = value if isinstance(value, tuple) else write_control_record(value)
        builder.append(TIMESTAMP, key, data)
    return builder.build()


def data_bytes(base_offset: int, count: int = 1, *, epoch: int = 0) -> bytes:
    """Write a data batch of some records."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    builder.extend([(TIMESTAMP, None, b"value")] * count)
    return builder.build()


def batch_of(data: bytes) -> RecordBatch:
    """View a whole batch."""
    return RecordBatch(data)


def run_of(batches: list[bytes]) -> BatchRun:
    """Put batches end to end, whether or not their CRCs hold."""
    positions, sizes = memoryview(bytearray(8 * len(batches))).cast("q"), memoryview(bytearray(4 * len(batches)))
    in_ints = sizes.cast("i")
    for index, start in enumerate(itertools.accumulate(map(len, batches[:-1]), initial=0) if batches else ()):
        positions[index], in_ints[index] = start, len(batches[index])
    return BatchRun(memoryview(b"".join(batches)), 0, positions, in_ints)


def snapshot_of(snapshot_id: OffsetAndEpoch, batches: Iterable[bytes]) -> RecordsSnapshotReader:
    """Make a snapshot of these batches."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    with MemoryRawSnapshotWriter(snapshots, snapshot_id) as writer:
        for batch in batches:
            writer.append(batch)
        writer.freeze()
    return RecordsSnapshotReader.of(MemoryRawSnapshotReader(snapshot_id, snapshots[snapshot_id]))
