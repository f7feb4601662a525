# SPDX-License-Identifier: Apache-2.0
"""Reads the log directories of brokers: names, small files, and the headers of each partition's last batches."""

from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from typing import Final, TypeVar

import attrs

from raftlog.errors import DecodeError, StorageError
from raftlog.file_paths import join_path
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource
from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from raftlog.records.files.file_names import (
    METADATA_TOPIC,
    DirectoryName,
    DirectoryState,
    FileKind,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from raftlog.records.files.property_files import MetaProperties, read_meta_properties, read_partition_metadata
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.storage.reading.file_source import open_source, read_file
from raftlog.storage.reading.index_seek import IndexSeek, read_head
from raftlog.tools.auditing.acts.broker_directory import LARGEST_REGISTRATION_BYTES, registered_epoch
from raftlog.tools.auditing.survey.found_directories import DirectorySearch
from raftlog.tools.beliefs.given import GivenDirectory, GivenPartition
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES

_Contents = TypeVar("_Contents")
_MAX_OFFSET: Final = (1 << 63) - 1
_WITH_EPOCHS: Final = frozenset({DirectoryState.CURRENT, DirectoryState.FUTURE})
"""The states of directories whose leader epochs matter."""


class GivenFiles:
    """Reads log directories; what cannot be read is reported, and the rest is used.

    Args:
        report: is called with each error of a file.
    """

    def __init__(self, report: Callable[[DecodeError | StorageError], None]) -> None:
        self._report: Final = report
        self._listing: Final = DirectoryListing()

    def read(self, paths: Sequence[str]) -> list[GivenDirectory]:
        """Return the log directories at or below some paths, by path; one that is found twice is read once.

        Raises:
            StorageError: a path cannot be listed, or has no log directory.
        """
        found: dict[Hashable, str] = {}
        for path in paths:
            for each in self._log_directories(path):
                found.setdefault(self._listing.identity(each), each)
        return [self._directory(path) for path in sorted(found.values())]

    def _log_directories(self, path: str) -> list[str]:
        search = DirectorySearch(self._listing)
        search.add([path])
        unread = [each for each in search.problems if each.rule == "file-unreadable"]
        if unread:
            raise StorageError(unread[0].path, "read", unread[0].reason)
        found = [each.path for each in search.directories() if not each.is_partition and each.names is None]
        if not found:
            raise StorageError(path, "compare", "it is no log directory of a broker, and has none below it")
        return found

    def _directory(self, path: str) -> GivenDirectory:
        entries = list(self._listing.entries(path))
        files = {entry.name for entry in entries}
        parsed = (parse_directory_name(entry.name) for entry in entries if entry.is_directory())
        names = [name for name in parsed if name is not None and name.topic != METADATA_TOPIC]
        names.sort(key=lambda name: (name.topic, name.partition, name.state.value, name.unique_id or ""))
        meta = self._contents(path, FileKind.META_PROPERTIES, files, read_meta_properties) or MetaProperties(0)
        limit = LARGEST_REGISTRATION_BYTES
        epoch = self._contents(path, FileKind.CLEAN_SHUTDOWN, files, registered_epoch, limit)
        partitions = tuple(self._partition(join_path(path, str(name)), name) for name in names)
        return GivenDirectory(path, meta.cluster_id, meta.node_id, meta.directory_id, epoch, partitions)

    def _partition(self, path: str, name: DirectoryName) -> GivenPartition:
        try:
            files = {entry.name for entry in self._listing.entries(path)}
        except StorageError as error:
            self._report(error)
            return GivenPartition(path, name, is_unread=True)
        metadata = self._contents(path, FileKind.PARTITION_METADATA, files, read_partition_metadata)
        is_unread = metadata is None and FileKind.PARTITION_METADATA.value in files
        topic_id = None if metadata is None else metadata.topic_id
        found = GivenPartition(path, name, topic_id, is_unread=is_unread)
        return self._with_epoch(found, files) if name.state in _WITH_EPOCHS else found

    def _with_epoch(self, partition: GivenPartition, files: Set[str]) -> GivenPartition:
        kind = FileKind.LEADER_EPOCH_CHECKPOINT
        entries = self._contents(partition.path, kind, files, read_leader_epoch_checkpoint) or ()
        epoch = max((entry.epoch for entry in entries), default=-1)
        try:
            segment, last = _last_batches(partition.path, files)
        except StorageError as error:
            self._report(error)
            segment, last = "", -1
        if last > epoch:
            return attrs.evolve(partition, leader_epoch=last, epoch_path=segment)
        path = join_path(partition.path, kind.value) if entries else ""
        return attrs.evolve(partition, leader_epoch=epoch, epoch_path=path)

    def _contents(
        self,
        directory: str,
        kind: FileKind,
        files: Set[str],
        read: Callable[[bytes], _Contents],
        max_size: int = LARGEST_SMALL_FILE_BYTES,
    ) -> _Contents | None:
        """Return what a small file says; None if it is not there, or cannot be read, which is reported."""
        if kind.value not in files:
            return None
        path = join_path(directory, kind.value)
        try:
            return read(read_file(path, max_size))
        except DecodeError as error:
            self._report(error.located(path=path))
        except StorageError as error:
            self._report(error)
        return None


def _last_batches(path: str, files: Set[str]) -> tuple[str, int]:
    """Return the last segment that has batches, and the highest leader epoch of those after its last index entry.

    Raises:
        StorageError: a file cannot be read.
    """
    for name in sorted(files, reverse=True):  # Names of segments are in the order of their offsets.
        parsed = parse_file_name(name)
        if parsed is None or (parsed.kind, parsed.state) != (FileKind.LOG, FileState.CURRENT):
            continue
        segment = join_path(path, name)
        with open_source(segment) as source:
            start = IndexSeek(segment, parsed.base_offset).position_before(source, _MAX_OFFSET)
            epoch = max(_leader_epochs(source, start), default=None)
        if epoch is not None:
            return segment, epoch
    return "", -1


def _leader_epochs(source: ByteSource, position: int) -> Iterator[int]:
    """Yield the leader epochs of the complete batches from a byte position on, as far as their headers lead."""
    size = source.size()
    while True:
        data = source.read_at(position, limits.BATCH_OVERHEAD)
        head = read_head(data, position)
        if head is None or head.next_position > size:
            return
        yield RecordBatch(data).partition_leader_epoch
        position = head.next_position
