# SPDX-License-Identifier: Apache-2.0
"""Reads the log directories of brokers: names, small files, and the headers of each partition's last batches."""

from collections.abc import Callable, Hashable, Sequence, Set
from typing import Final, TypeVar

import attrs

from raftlog.errors import DecodeError, StorageError
from raftlog.file_paths import join_path, name_of
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource, Corruption, split
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
        self._to_report: Final = report
        self._unread: list[str] = []
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

    def _report(self, error: DecodeError | StorageError) -> None:
        self._unread.append(name_of(error.path or ""))
        self._to_report(error)

    def _unread_files(self) -> tuple[str, ...]:
        """Return the names of the files that could not be read since the last call."""
        found = tuple(dict.fromkeys(self._unread))
        self._unread.clear()
        return found

    def _directory(self, path: str) -> GivenDirectory:
        entries = list(self._listing.entries(path))
        files = {entry.name for entry in entries}
        parsed = (parse_directory_name(entry.name) for entry in entries if entry.is_directory())
        current = [name for name in parsed if name is not None]
        names = [name for name in current if name.topic != METADATA_TOPIC]
        names.sort(key=lambda name: (name.topic, name.partition, name.state.value, name.unique_id or ""))
        meta = self._contents(path, FileKind.META_PROPERTIES, files, read_meta_properties) or MetaProperties(0)
        limit = LARGEST_REGISTRATION_BYTES
        epoch = self._contents(path, FileKind.CLEAN_SHUTDOWN, files, registered_epoch, limit)
        ends = [
            self._metadata_end(join_path(path, str(name)))
            for name in current
            if name.topic == METADATA_TOPIC and name.state is DirectoryState.CURRENT
        ]
        unread = self._unread_files()
        partitions = tuple(
            attrs.evolve(self._partition(join_path(path, str(name)), name), unread_files=self._unread_files())
            for name in names
        )
        return GivenDirectory(
            path, meta.cluster_id, meta.node_id, meta.directory_id, epoch, partitions, unread, max(ends, default=-1)
        )

    def _metadata_end(self, path: str) -> int:
        """Return the offset after a metadata log's last sound batch, or the base offset of its last segment."""
        end = -1
        try:
            for base_offset, segment in reversed(
                _segments(path, {entry.name for entry in self._listing.entries(path)})
            ):
                end = max(end, base_offset)
                with open_source(segment) as source:
                    last = IndexSeek(segment, base_offset).end(source).batch
                if last is not None:
                    return max(end, last.last_offset + 1)
        except StorageError as error:
            self._report(error)
        return end

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
            segment, last = self._last_batches(partition.path, files)
        except StorageError as error:
            self._report(error)
            segment, last = "", -1
        path = join_path(partition.path, kind.value) if entries else ""
        found = attrs.evolve(partition, leader_epoch=epoch, epoch_path=path)
        if last <= epoch:
            return found
        return attrs.evolve(found, unconfirmed_epoch=last, unconfirmed_path=segment)

    def _last_batches(self, path: str, files: Set[str]) -> tuple[str, int]:
        """Return the last segment that has sound batches, and the highest leader epoch of the last ones.

        These are those from its last index entry on; if none of them is sound, all that it has.

        Raises:
            StorageError: a file cannot be read.
        """
        for base_offset, segment in reversed(_segments(path, files)):
            with open_source(segment) as source:
                start = IndexSeek(segment, base_offset).position_before(source, _MAX_OFFSET)
                epoch = self._leader_epoch(source, segment, start)
                if epoch < 0 and start:
                    epoch = self._leader_epoch(source, segment, 0)
            if epoch >= 0:
                return segment, epoch
        return "", -1

    def _leader_epoch(self, source: ByteSource, path: str, position: int) -> int:
        """Return the highest leader epoch of the sound batches from a byte position on; damage is reported.

        Only a batch whose header has a higher epoch than those before is read, for its CRC, and what follows where
        headers lead no further.
        """
        size, highest = source.size(), -1
        while position < size:
            data = source.read_at(position, limits.BATCH_OVERHEAD)
            head = read_head(data, position)
            stop = None if head is None or head.next_position > size else head.next_position
            if stop is None or RecordBatch(data).partition_leader_epoch > highest:
                for piece in split(source, start=position, stop=stop):
                    if isinstance(piece, RecordBatch):
                        highest = max(highest, piece.partition_leader_epoch)
                    elif isinstance(piece, Corruption):
                        self._report(DecodeError(piece.reason, piece.rule, path, piece.position))
            position = size if stop is None else stop
        return highest

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


def _segments(path: str, files: Set[str]) -> list[tuple[int, str]]:
    """Return base offset and path of each segment that was not deleted, by base offset."""
    found = []
    for name in files:
        parsed = parse_file_name(name)
        is_segment = parsed is not None and (parsed.kind, parsed.state) == (FileKind.LOG, FileState.CURRENT)
        if parsed is not None and is_segment and parsed.base_offset is not None:
            found.append((parsed.base_offset, join_path(path, name)))
    return sorted(found)
