# SPDX-License-Identifier: Apache-2.0
"""Small log directories with everything in them, and each way to change one byte of a file in them.

Each has three segments, three epochs, changes of the voter set, a compressed batch, the bootstrap snapshot and two
more, and all kinds of files beside a log.
"""

import functools
import uuid
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from raftlog.file_system import join
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.log_directory import (
    METADATA_DIRECTORY_NAME,
    DirectoryFormat,
    LogDirectory,
    format_log_directory,
)
from raftlog.storage.state.quorum_state_store import COPY_NAMES, RESERVE_NAME, QuorumStateStore
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.log.control_batches import LEADER_CHANGE, TIMESTAMP

PATH: Final = "data"
LOG_PATH: Final = join(PATH, METADATA_DIRECTORY_NAME)
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
NODE_ID: Final = 1
CONFIG: Final = LogConfig(segment_size_bytes=800, index_interval_bytes=100, retention_bytes=None, retention_ms=None)
VOTE: Final = QuorumStateData(1, leader_epoch=4, voted_id=2, voted_directory_id=uuid.UUID(int=1002))

FLIPS: Final = 8
ZEROED: Final = 8
"""The change that is no flip of bit 0 to 7, but makes the byte zero."""


@attrs.frozen(order=True)
class Damage:
    """One byte that is not what was written.

    Attributes:
        name: of the file, without the directory.
        position: of the byte.
        change: the bit that is flipped, or ``ZEROED``.
    """

    name: str
    position: int
    change: int

    def of(self, byte: int) -> int:
        """Return what the byte is then."""
        return 0 if self.change == ZEROED else byte ^ 1 << self.change

    def __str__(self) -> str:
        return f"{self.name}:{self.position}:{self.change}"

    @classmethod
    def parse(cls, text: str) -> "Damage":
        """Read what ``str`` has written."""
        name, position, change = text.rsplit(":", 2)
        return cls(name, int(position), int(change))


@attrs.frozen
class Scene:
    """A directory, and what is true of it.

    Attributes:
        name: how it came to be.
        state: all files and directories.
        history: every batch that was ever appended, by its base offset.
        durable_end_offset: a log that ends before it (exclusive) has lost something.
    """

    name: str
    state: DiskState
    history: dict[int, bytes]
    durable_end_offset: int

    @functools.cached_property
    def files(self) -> dict[str, tuple[str, bytes]]:
        """The path and the bytes of each file, by its name."""
        return {path.rpartition("/")[2]: (path, data) for path, data, _ in self.state if data is not None}

    @property
    def is_ours(self) -> bool:
        """Whether something in it says how far the log was durable."""
        return RECOVERY_POINT_NAME in self.files

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(len(data) for _, data in self.files.values())

    def damages(self) -> Iterator[Damage]:
        """Yield every change of one byte."""
        for name, (_, data) in sorted(self.files.items()):
            for position, byte in enumerate(data):
                for change in range(FLIPS + (byte != 0)):
                    yield Damage(name, position, change)

    def damage(self, index: int) -> Damage:
        """Return one of 9 changes of each byte of all files by its number; what is zero already has a bit flipped."""
        position, change = divmod(index, FLIPS + 1)
        for name, (_, data) in sorted(self.files.items()):
            if position < len(data):
                is_zero = change == ZEROED and data[position] == 0
                return Damage(name, position, position % FLIPS if is_zero else change)
            position -= len(data)
        raise IndexError(index)

    def damaged(self, damage: Damage | None) -> MemoryFileSystem:
        """Return a file system with the directory, and one byte of it changed."""
        if damage is None:
            return MemoryFileSystem(self.state)
        changed, _ = self.files[damage.name]
        entries: list[tuple[str, bytes | None, bool]] = []
        for path, data, is_read_only in self.state:
            if path == changed and data is not None:
                at = damage.position
                entries.append((path, data[:at] + bytes([damage.of(data[at])]) + data[at + 1 :], is_read_only))
            else:
                entries.append((path, data, is_read_only))
        return MemoryFileSystem(tuple(entries))

    def base_offset_at(self, name: str, position: int) -> int:
        """Return the base offset of the batch that a byte of a segment is of."""
        base_offset, end = int(name.removesuffix(".log")), 0
        while True:
            data = self.history[base_offset]
            end += len(data)
            if position < end:
                return base_offset
            base_offset = RecordBatch(data).next_offset


def node(node_id: int) -> VoterNode:
    """Make a voter with a directory and an endpoint of its own."""
    return VoterNode(
        ReplicaKey(node_id, uuid.UUID(int=1000 + node_id)),
        Endpoints.of({"CONTROLLER": ("localhost", 9000 + node_id)}),
        SupportedVersionRange(0, 1),
    )


def voters(*ids: int) -> VoterSet:
    """Make a voter set."""
    return VoterSet.of(map(node, ids))


Make = Callable[[int], bytes]
"""Makes the batch of a base offset."""


def _data(epoch: int, *values: bytes, codec: CompressionType = CompressionType.NONE) -> Make:
    def make(base_offset: int) -> bytes:
        builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch, compression_type=codec)
        builder.extend([(TIMESTAMP + base_offset, None, value) for value in values])
        return builder.build()

    return make


def _leader(epoch: int) -> Make:
    return lambda base_offset: write_control_batch(
        [LEADER_CHANGE], base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP
    )


def _voters(epoch: int, *ids: int) -> Make:
    values: list[ControlValue] = [KRaftVersionRecord(1), voters_record(voters(*ids))]
    return lambda base_offset: write_control_batch(values, base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP)


FLUSHED: Final = (
    _leader(1),
    _voters(1, 1, 2),
    _data(1, b"one", b"two"),
    _data(1, *[b"compressed" * 3] * 8, codec=CompressionType.GZIP),
    _leader(2),
    _data(2, b"three"),
    _data(2, b"four" * 60, b"five"),
    _voters(2, 1, 2, 3),
    _data(2, b"six" * 70),
    _leader(4),
    _data(4, b"seven", b"eight"),
    _data(4, b"nine"),
)
UNFLUSHED: Final = (_data(4, b"ten"), _leader(6), _data(6, b"eleven"))
SNAPSHOTS: Final = (17, 21)
"""Where they end, exclusive: inside the second segment, and in the third one."""


class _Writer:
    """Writes a directory."""

    def __init__(self) -> None:
        self.files = MemoryFileSystem()
        beginning = DirectoryFormat.standalone(CLUSTER_ID, node(NODE_ID), [b"bootstrap"])
        format_log_directory(self.files, PATH, beginning, TIMESTAMP)
        LogDirectory.open(self.files, PATH).close()
        self.log = FileLog.open(self.files, LOG_PATH, CONFIG)
        store = QuorumStateStore.open(self.files, LOG_PATH, has_log=False)
        store.write(QuorumStateData(1, leader_id=1, leader_epoch=2))
        store.write(VOTE)
        self.history: dict[int, bytes] = {}

    def append(self, *batches: Make) -> None:
        for make in batches:
            base_offset = self.log.end_offset.offset
            data = self.history[base_offset] = make(base_offset)
            self.log.append_as_leader(data, RecordBatch(data).partition_leader_epoch)

    def snapshot(self, offset: int) -> OffsetAndEpoch:
        last = max(base_offset for base_offset in self.history if base_offset < offset)
        snapshot_id = OffsetAndEpoch(offset, RecordBatch(self.history[last]).partition_leader_epoch)
        self.log.update_high_watermark(offset)
        writer = self.log.create_snapshot(snapshot_id)
        assert writer is not None
        with writer:
            writer.append(_snapshot_bytes(snapshot_id, voters(*((1, 2) if offset < SNAPSHOTS[1] else (1, 2, 3)))))
            writer.freeze()
        return snapshot_id

    def forget_what_is_ours(self) -> None:
        for name in (RECOVERY_POINT_NAME, FLUSH_MARK_NAME, RESERVE_NAME, *COPY_NAMES):
            self.files.remove(join(LOG_PATH, name))

    def scene(self, name: str, durable_end_offset: int) -> Scene:
        assert sum(path.endswith(".log") for path in self.files.contents()) == 3
        contents = {path: (data, path.endswith(".checkpoint")) for path, data in self.files.contents().items()}
        files = [(path, data, is_read_only) for path, (data, is_read_only) in sorted(contents.items())]
        return Scene(name, ((PATH, None, False), (LOG_PATH, None, False), *files), self.history, durable_end_offset)


def _snapshot_bytes(snapshot_id: OffsetAndEpoch, voter_set: VoterSet) -> bytes:
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(snapshots, snapshot_id),
        TIMESTAMP,
        last_contained_log_timestamp=TIMESTAMP,
        kraft_version=KRaftVersion.KRAFT_VERSION_1,
        voter_set=voter_set,
    ) as writer:
        writer.append([b"state"], TIMESTAMP)
        writer.freeze(TIMESTAMP)
    return snapshots[snapshot_id]


def _written() -> _Writer:
    writer = _Writer()
    writer.append(*FLUSHED)
    writer.log.flush()
    for offset in SNAPSHOTS:
        writer.snapshot(offset)
    return writer


def _closed() -> Scene:
    """Closed in order: all of it was durable."""
    writer = _written()
    writer.log.close()
    return writer.scene("closed", writer.log.end_offset.offset)


def _crashed() -> Scene:
    """The process was killed with three batches that were not flushed."""
    writer = _written()
    durable_end_offset = writer.log.end_offset.offset
    writer.append(*UNFLUSHED)
    return writer.scene("crashed", durable_end_offset)


def _trimmed() -> Scene:
    """Closed in order, where the log starts at a snapshot, inside a segment."""
    writer = _Writer()
    writer.append(*FLUSHED)
    writer.append(_data(4, b"x" * 700))
    first = writer.snapshot(SNAPSHOTS[0])
    writer.snapshot(SNAPSHOTS[1])
    assert writer.log.delete_before_snapshot(first)
    writer.log.close()
    return writer.scene("trimmed", writer.log.end_offset.offset)


def _covered() -> Scene:
    """Closed in order, with a snapshot of all that the log has."""
    writer = _written()
    writer.snapshot(writer.log.end_offset.offset)
    writer.log.close()
    return writer.scene("covered", writer.log.end_offset.offset)


def _kafkas() -> Scene:
    """As Kafka would have written it: nothing beside the log is ours."""
    writer = _written()
    writer.log.close()
    writer.forget_what_is_ours()
    return writer.scene("kafkas", SNAPSHOTS[-1])


def _kafkas_covered() -> Scene:
    """As Kafka would have written it, with a snapshot of all that the log has."""
    writer = _written()
    writer.snapshot(writer.log.end_offset.offset)
    writer.log.close()
    writer.forget_what_is_ours()
    return writer.scene("kafkas-covered", writer.log.end_offset.offset)


@functools.cache
def scenes() -> dict[str, Scene]:
    """Return all directories by name."""
    return {
        scene.name: scene for scene in (_closed(), _crashed(), _trimmed(), _covered(), _kafkas(), _kafkas_covered())
    }
