# SPDX-License-Identifier: Apache-2.0
"""Log directories that raftlog wrote, with everything in them that it can write, for Kafka to read."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage, Voter
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.log_directory import DirectoryFormat, LogDirectory, format_log_directory
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

CLUSTER_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
DIRECTORY_ID: Final = uuid.UUID(int=0x5102030405060708090A0B0C0D0E0F10)
START_MS: Final = 1_700_000_000_000
NODE_ID: Final = 1
FILES: Final = LocalFileSystem()
CONFIG: Final = LogConfig(segment_size_bytes=24 * 1024)
CODECS: Final = tuple(CompressionType)
BATCHES_IN_EPOCH: Final = 60
BROKER_RESOURCE: Final = 4


def voter(port: int) -> VoterNode:
    """The one voter, listening on a port."""
    listeners = Endpoints.of({"CONTROLLER": ("localhost", port)})
    return VoterNode(ReplicaKey(NODE_ID, DIRECTORY_ID), listeners, SupportedVersionRange(0, 1))


@contextmanager
def open_log(directory: Path) -> Iterator[FileLog]:
    """Hold a directory and its log until the block ends."""
    with LogDirectory.open(FILES, str(directory)) as held:
        log = FileLog.open(FILES, held.log_path, CONFIG)
        try:
            yield log
        finally:
            log.close()


def state_of(log: FileLog) -> KRaftControlRecordStateMachine:
    """The values of a log's control records, all of which were allowed."""
    state_machine = KRaftControlRecordStateMachine(VoterSet())
    update_state(state_machine, log)
    assert not state_machine.violations()
    return state_machine


def batches_of(log: FileLog, start_offset: int) -> list[RecordBatch]:
    """The batches of a log from an offset on."""
    batches: list[RecordBatch] = []
    while start_offset < log.end_offset.offset:
        read = split(BufferSource(log.read(start_offset, Isolation.UNCOMMITTED).records))
        batches += [piece for piece in read if isinstance(piece, RecordBatch)]
        start_offset = batches[-1].next_offset
    return batches


def write_directory(directory: Path, port: int) -> None:
    """Write a directory: a bootstrap snapshot, and a log of two epochs with all that a metadata log may hold."""
    node = voter(port)
    format_log_directory(FILES, str(directory), DirectoryFormat.standalone(CLUSTER_ID, node), START_MS)
    with open_log(directory) as log:
        first = (KRaftVersionRecord(1), voters_record(VoterSet.of([node])))
        append_epoch(log, 1, first, _features())
        append_epoch(log, 2)
        store = QuorumStateStore.open(FILES, str(directory / "__cluster_metadata-0"), has_log=True)
        store.write(QuorumStateData(1, leader_id=NODE_ID, leader_epoch=2))


def append_epoch(
    log: FileLog,
    epoch: int,
    control_values: Sequence[ControlValue] = (),
    first_values: Sequence[bytes] = (),
) -> None:
    """Append an epoch as its leader, the batches compressed by all codecs in turn, and make it durable."""
    log.initialize_leader_epoch(epoch)
    now_ms = START_MS + epoch * 1_000_000
    leader = Voter(NODE_ID)
    with_control = _accumulator(log, epoch, CompressionType.NONE)
    with_control.append_control_records([LeaderChangeMessage(NODE_ID, (leader,), (leader,)), *control_values], now_ms)
    if first_values:
        with_control.append(epoch, first_values, now_ms)
    _append(log, with_control)
    for number in range(BATCHES_IN_EPOCH):
        accumulator = _accumulator(log, epoch, CODECS[number % len(CODECS)])
        accumulator.append(epoch, [_config(epoch, number, each) for each in range(30)], now_ms + number)
        _append(log, accumulator)
    accumulator = _accumulator(log, epoch, CompressionType.NONE)
    accumulator.append_kraft_version(KRaftVersionRecord(1), now_ms)
    accumulator.append_voters(voters_record(state_of(log).last_voter_set), now_ms)
    _append(log, accumulator)
    log.flush()
    log.update_high_watermark(log.end_offset.offset)


def _accumulator(log: FileLog, epoch: int, codec: CompressionType) -> BatchAccumulator:
    in_force = state_of(log).voters_in_force
    return BatchAccumulator(epoch, log.end_offset.offset, compression_type=codec, voters_in_force=in_force)


def _append(log: FileLog, accumulator: BatchAccumulator) -> None:
    for batch in accumulator.drain():
        log.append_as_leader(batch.data, accumulator.epoch)
        batch.release()


def _features() -> list[bytes]:
    levels = {"metadata.version": 30, "group.version": 1, "transaction.version": 2}
    return [_record("FeatureLevelRecord", name=name, featureLevel=level) for name, level in levels.items()]


def _config(epoch: int, batch: int, number: int) -> bytes:
    value = f"{epoch}-{batch}-{number} " + "".join(chr(32 + (batch * 31 + number * 7 + at) % 90) for at in range(20))
    return _record("ConfigRecord", resourceType=BROKER_RESOURCE, resourceName="7", name=f"x{number}", value=value)


def _record(type_name: str, **fields: object) -> bytes:
    return write_metadata_record(metadata_record(type_name, fields, version=0))


def write_snapshot(directory: Path) -> OffsetAndEpoch:
    """Write a snapshot of about half of a log, and let the log start there."""
    with open_log(directory) as log:
        batches = batches_of(log, 0)
        log.update_high_watermark(log.end_offset.offset)
        contained = batches[: len(batches) // 2]
        snapshot_id = OffsetAndEpoch(contained[-1].next_offset, contained[-1].partition_leader_epoch)
        raw = log.create_snapshot(snapshot_id)
        assert raw is not None
        now_ms = contained[-1].max_timestamp
        with RecordsSnapshotWriter(
            raw,
            now_ms,
            last_contained_log_timestamp=now_ms,
            kraft_version=KRaftVersion.KRAFT_VERSION_1,
            voter_set=state_of(log).voter_set_at_offset(snapshot_id.offset - 1),
            compression_type=CompressionType.GZIP,
            max_batch_size_bytes=16 * 1024,
        ) as writer:
            for batch in contained:
                if not batch.is_control:
                    writer.append([record.value or b"" for record in batch.records()], now_ms)
            writer.freeze(now_ms)
        assert log.delete_before_snapshot(snapshot_id)
    return snapshot_id
