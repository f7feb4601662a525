# SPDX-License-Identifier: Apache-2.0
"""A node's log directory: made once, for one node of one cluster, and then held by one process at a time.

::

    <log directory>/
        meta.properties                  whose it is; written last, so that a directory which has it is whole
        bootstrap.checkpoint             records of features that the first leader writes; nobody reads it later
        .lock                            held while it is open
        __cluster_metadata-0/            the log itself: segments, snapshots, quorum-state
            partition.metadata           the topic's id
            00000000000000000000-0000000000.checkpoint     kraft.version and voters to begin with

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
"""The first uuids mean something else: no directory, a lost one, one that nobody assigned."""


@attrs.frozen
class DirectoryFormat:
    """Whose a directory shall be, and what its log begins with.

    Attributes:
        cluster_id: of the cluster.
        node_id: of the node.
        directory_id: of this directory.
        kraft_version: 0 goes with voters that the configuration names, 1 with voters that the log names.
        voters: the initial controllers, this node among them; None where it has no part in them: the node joins later,
            or the voters are static.
        metadata_records: that Kafka's first leader writes to the log, such as levels of features: one value a record.
            They stand in ``bootstrap.checkpoint``, which is not made where there are none.

    Raises:
        EmptyVoterSetError: the set of initial controllers is empty.
        ValueError: the cluster id is empty, an id is negative or reserved, or the voters do not go with the rest.

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
        """Make a cluster of one voter, which others may join.

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
    """Make a log directory for a node. It is durable on return; a crash before leaves one that can be formatted again.

    Args:
        file_system: that the directory shall be on.
        path: of the directory; it is made where it is missing.
        directory_format: whose it shall be.
        now_ms: wall clock, in milliseconds of the Unix epoch: the time of the records.

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


def _is_of_bootstrap(name: str) -> bool:
    """Whether a file may be what a format left that was cut short."""
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
    """A log directory that is held; ``open`` makes it. Leaving a ``with`` block closes it.

    Attributes:
        path: of the directory.
        log_path: of the log in it.
        meta: whose it is.
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
        """Take hold of a directory that was formatted, by raftlog or Kafka, and check whose it is.

        Args:
            file_system: that the directory is on.
            path: of the directory.
            cluster_id: that it must be of, if it is given.
            node_id: likewise.
            directory_id: likewise.

        Raises:
            NotFormattedError: it has no ``meta.properties``.
            DirectoryLockedError: another process holds it, or another owner in this one.
            ForeignDirectoryError: it is of another cluster, node or topic, or has another id.
            UnsupportedVersionError: it was made for ZooKeeper, or by something that is not known.
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
        """Let go of the directory. Closing twice is harmless."""
        self._lock.close()


def _check_is_log_directory(file_system: FileSystem, path: str) -> None:
    """Refuse what is none before anything is written to it."""
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
    """Check the topic of a log, or note it: a directory that was only formatted does not name it yet."""
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
