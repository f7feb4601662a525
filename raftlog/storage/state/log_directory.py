# SPDX-License-Identifier: Apache-2.0
"""A node's log directory: formatted once, for one node of one cluster, then used by one process at a time.

::

    <log directory>/
        meta.properties                  the owner; written last, so that a directory that has it is complete
        bootstrap.checkpoint             feature records, which the first leader writes to the log; not read later
        .lock                            locked while the directory is open
        __cluster_metadata-0/            the log itself: segments, snapshots, quorum-state
            partition.metadata           the topic's id
            00000000000000000000-0000000000.checkpoint     the initial kraft.version and voters

Source: Formatter, BootstrapDirectory, MetaPropertiesEnsemble, LogManager#lockLogDirs, PartitionMetadataFile.
"""

import uuid
from collections.abc import Sequence
from typing import Final, Self

import attrs

from raftlog.errors import (
    AlreadyFormattedError,
    DecodeError,
    ForeignDirectoryError,
    MissingFileError,
    NotFormattedError,
    UnsupportedVersionError,
)
from raftlog.file_system import FileLock, FileSystem, join, make_durable_directory, read_file, replace_file
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import METADATA_TOPIC, FileKind, parse_directory_name
from raftlog.records.files.property_files import (
    MetaProperties,
    PartitionMetadata,
    read_meta_properties,
    read_partition_metadata,
    write_meta_properties,
    write_partition_metadata,
)
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID, parse_snapshot_name
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterNode, VoterSet
from raftlog.voters.voter_set_change import check_voter_set_change

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
METADATA_DIRECTORY_NAME: Final = f"{METADATA_TOPIC}-0"

_MAX_SIZE_BYTES: Final = 64 * 1024
_RESERVED_DIRECTORY_IDS: Final = 100
"""The first uuids are reserved: they stand for an unknown, a lost or an unassigned directory, for example."""


@attrs.frozen
class DirectoryFormat:
    """The owner of a new log directory, and the initial content of its log.

    Attributes:
        cluster_id: of the cluster.
        node_id: of the node.
        directory_id: of this directory.
        kraft_version: 0 if the configuration names the voters, 1 if the log does.
        voters: the initial controllers, including this node; None if the node joins later, or the voters are static.
        metadata_records: records that Kafka's first leader writes to the log, such as feature levels: one value per
            record. They are stored in ``bootstrap.checkpoint``, which is not made if there are none.

    Raises:
        EmptyVoterSetError: the set of initial controllers is empty.
        ValueError: the cluster id is empty, an id is negative or reserved, or the voters contradict the rest.

    Source: Formatter, StorageTool.
    """

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID
    kraft_version: KRaftVersion = KRaftVersion.KRAFT_VERSION_1
    voters: VoterSet | None = None
    metadata_records: tuple[bytes, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not self.cluster_id.strip() or not 0 <= self.node_id < 1 << 31:
            raise ValueError(f"not a cluster id and a node id: {self.cluster_id!r}, {self.node_id}")
        if self.directory_id.int < _RESERVED_DIRECTORY_IDS:
            raise ValueError(f"a reserved directory id: {uuid_to_text(self.directory_id)}")
        if self.voters is None:
            return
        check_voter_set_change(VoterSet(), self.voters)
        if not self.kraft_version.is_reconfiguration_supported:
            raise ValueError(f"initial controllers, and kraft.version {self.kraft_version.value}")
        if not self.voters.is_voter(ReplicaKey(self.node_id, self.directory_id)):
            key = ReplicaKey(self.node_id, self.directory_id)
            raise ValueError(f"node {key} is not among the initial controllers {self.voters}")

    @classmethod
    def standalone(cls, cluster_id: str, node: VoterNode, metadata_records: Sequence[bytes] = ()) -> Self:
        """Return the format of the first node of a new cluster, its only voter; others may join later.

        Raises:
            ValueError: the node has no directory id, or as for the class.
        """
        if node.voter_key.directory_id is None:
            raise ValueError(f"a voter without a directory id: {node.voter_key}")
        return cls(
            cluster_id,
            node.voter_key.id,
            node.voter_key.directory_id,
            voters=VoterSet.of([node]),
            metadata_records=tuple(metadata_records),
        )


def format_log_directory(file_system: FileSystem, path: str, directory_format: DirectoryFormat, now_ms: int) -> None:
    """Format a log directory for a node. It is durable on return; after a crash before that, format it again.

    Args:
        file_system: where the directory is to be.
        path: of the directory; it is created if missing.
        directory_format: the owner, and the initial content.
        now_ms: wall clock, in milliseconds of the Unix epoch: the timestamp of the records.

    Raises:
        AlreadyFormattedError: it has a ``meta.properties``, or holds a log. Nothing was changed.
        BatchTooLargeError: the records do not fit in one batch.
        ValueError: a record is empty, or the time negative.
        StorageError: the disk failed.

    Source: Formatter, as ``kafka-storage format``.
    """
    meta_path = join(path, FileKind.META_PROPERTIES.value)
    log_path = join(path, METADATA_DIRECTORY_NAME)
    if file_system.exists(meta_path):
        raise AlreadyFormattedError(f"{meta_path} is there")
    if file_system.exists(log_path) and not all(map(_is_of_bootstrap, file_system.list(log_path))):
        raise AlreadyFormattedError(f"{log_path} holds a log, and there is no {FileKind.META_PROPERTIES.value}")
    records = _bootstrap_records(directory_format, now_ms)
    make_durable_directory(file_system, path)
    make_durable_directory(file_system, log_path)
    if records is not None:
        replace_file(file_system, join(path, FileKind.BOOTSTRAP_SNAPSHOT.value), records)
    _write_bootstrap_snapshot(file_system, log_path, directory_format, now_ms)
    meta = MetaProperties(1, directory_format.cluster_id, directory_format.node_id, directory_format.directory_id)
    replace_file(file_system, meta_path, write_meta_properties(meta))


def random_directory_id() -> uuid.UUID:
    """Return an id that Kafka could choose too: never one that looks like an option on a command line.

    Source: Uuid#randomUuid.
    """
    while uuid_to_text(chosen := uuid.uuid4()).startswith("-"):
        pass
    return chosen


def _is_of_bootstrap(name: str) -> bool:
    """Whether a file may be left over from an interrupted format."""
    snapshot = parse_snapshot_name(name)
    return snapshot is not None and snapshot.snapshot_id == BOOTSTRAP_SNAPSHOT_ID


def _bootstrap_records(directory_format: DirectoryFormat, now_ms: int) -> bytes | None:
    """Return ``bootstrap.checkpoint``. Source: BootstrapDirectory#writeBinaryFile."""
    if not directory_format.metadata_records:
        return None
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    raw = MemoryRawSnapshotWriter(snapshots, BOOTSTRAP_SNAPSHOT_ID)
    level_0 = KRaftVersion.KRAFT_VERSION_0
    with RecordsSnapshotWriter(raw, now_ms, last_contained_log_timestamp=0, kraft_version=level_0) as writer:
        writer.append(directory_format.metadata_records, now_ms)
        writer.freeze(now_ms)
    return snapshots[BOOTSTRAP_SNAPSHOT_ID]


def _write_bootstrap_snapshot(
    file_system: FileSystem, log_path: str, directory_format: DirectoryFormat, now_ms: int
) -> None:
    raw = SnapshotDirectory(file_system, log_path).create(BOOTSTRAP_SNAPSHOT_ID)
    with RecordsSnapshotWriter(
        raw,
        now_ms,
        last_contained_log_timestamp=now_ms,
        kraft_version=directory_format.kraft_version,
        voter_set=directory_format.voters,
    ) as writer:
        writer.freeze(now_ms)


class LogDirectory(Closing):
    """A log directory that this process has locked; ``open`` makes it. Leaving a ``with`` block closes it.

    Attributes:
        path: of the directory.
        log_path: of the log in it.
        meta: the content of ``meta.properties``, which names the owner.
    """

    def __init__(self, path: str, meta: MetaProperties, lock: FileLock) -> None:
        self.path: Final = path
        self.log_path: Final = join(path, METADATA_DIRECTORY_NAME)
        self.meta: Final = meta
        self._lock = lock

    @classmethod
    def open(
        cls,
        file_system: FileSystem,
        path: str,
        *,
        cluster_id: str | None = None,
        node_id: int | None = None,
        directory_id: uuid.UUID | None = None,
    ) -> Self:
        """Lock a directory that was formatted, by raftlog or Kafka, and check its owner.

        Args:
            file_system: where the directory is.
            path: of the directory.
            cluster_id: the expected cluster; None accepts any.
            node_id: the expected node; None accepts any.
            directory_id: the expected directory id; None accepts any.

        Raises:
            NotFormattedError: it has no ``meta.properties``.
            DirectoryLockedError: another process, or another owner in this one, holds it.
            ForeignDirectoryError: it belongs to another cluster, node or topic, or has another directory id.
            UnsupportedVersionError: it was made for ZooKeeper, or in an unknown version.
            DecodeError: ``meta.properties`` or ``partition.metadata`` is malformed.
            StorageError: the disk failed.
        """
        _check_is_log_directory(file_system, path)
        lock = file_system.lock(join(path, FileKind.LOCK.value))
        try:
            meta = _load_meta(file_system, path)
            expected = MetaProperties(0, cluster_id, node_id, directory_id)
            _check_meta(join(path, FileKind.META_PROPERTIES.value), meta, expected)
            directory = cls(path, meta, lock)
            make_durable_directory(file_system, directory.log_path)
            _check_partition(file_system, directory.log_path)
        except BaseException:
            lock.close()
            raise
        return directory

    def close(self) -> None:
        """Release the lock. Closing twice is harmless."""
        self._lock.close()


def _check_is_log_directory(file_system: FileSystem, path: str) -> None:
    """Refuse a path that is not a log directory, before anything is written to it."""
    partition = parse_directory_name(path.rstrip("/").rpartition("/")[2])
    is_partition = partition is not None and file_system.exists(join(path, FileKind.PARTITION_METADATA.value))
    if partition is not None and is_partition and partition.topic != METADATA_TOPIC:
        raise ForeignDirectoryError(path, "topic", partition.topic, METADATA_TOPIC)
    if not file_system.exists(join(path, FileKind.META_PROPERTIES.value)):
        advice = "; the log directory is the one above it" if is_partition else ""
        raise NotFormattedError(f"{path} has no {FileKind.META_PROPERTIES.value}{advice}")


def _load_meta(file_system: FileSystem, path: str) -> MetaProperties:
    meta_path = join(path, FileKind.META_PROPERTIES.value)
    try:
        meta = read_meta_properties(read_file(file_system, meta_path, _MAX_SIZE_BYTES))
        if meta.version == 0:
            raise UnsupportedVersionError("version 0: the directory was made for ZooKeeper", "file-format")
    except DecodeError as error:
        raise error.located(path=meta_path) from None
    return meta


def _check_meta(path: str, found: MetaProperties, expected: MetaProperties) -> None:
    def check(subject: str, there: object, wanted: object) -> None:
        if wanted is not None and there != wanted:
            raise ForeignDirectoryError(path, subject, _text(there), _text(wanted))

    check("cluster.id", found.cluster_id, expected.cluster_id)
    check("node.id", found.node_id, expected.node_id)
    check("directory.id", found.directory_id, expected.directory_id)


def _text(value: object) -> str:
    return uuid_to_text(value) if isinstance(value, uuid.UUID) else str(value)


def _check_partition(file_system: FileSystem, log_path: str) -> None:
    """Check the topic id of a log, or store it: a directory that was only formatted does not have it yet."""
    path = join(log_path, FileKind.PARTITION_METADATA.value)
    try:
        found = read_partition_metadata(read_file(file_system, path, _MAX_SIZE_BYTES))
    except MissingFileError:
        replace_file(file_system, path, write_partition_metadata(PartitionMetadata(0, METADATA_TOPIC_ID)))
        return
    except DecodeError as error:
        raise error.located(path=path) from None
    if found.topic_id != METADATA_TOPIC_ID:
        raise ForeignDirectoryError(path, "topic_id", _text(found.topic_id), _text(METADATA_TOPIC_ID))
