# SPDX-License-Identifier: Apache-2.0
"""Reads what a replica of a partition says of itself in its small files: whose it is, of which topic, and how far."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

import attrs

from raftlog.errors import DecodeError
from raftlog.file_system import join
from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import (
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from raftlog.records.files.file_names import DirectoryName, FileKind, parse_file_name
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from raftlog.tools.repair.sources import Source, current_files
from raftlog.tools.salvage.runs import NamedSegment

_Contents = TypeVar("_Contents")


@attrs.frozen
class PartitionCopy:
    """A replica of a partition.

    Attributes:
        number: of its source.
        source: its files.
        cluster_id, node_id, directory_id: from ``meta.properties``; None for what no file says.
        topic_id: from ``partition.metadata``; None if that is not there, or cannot be read.
        segments: by ascending base offset.
        checkpoint: entries of ``leader-epoch-checkpoint``, ascending; none if it cannot be read, or they do not ascend.
        high_watermark: by ``replication-offset-checkpoint``: what is below it was committed; 0 if no file says it.
        start_offset: by ``log-start-offset-checkpoint``: what is below it was deleted; 0 if no file says it.
        cleaned_to: by ``cleaner-offset-checkpoint``: what is below it was compacted; None if it does not say it.
        unread: names of small files that cannot be read.
    """

    number: int
    source: Source
    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None
    topic_id: UUID | None
    segments: tuple[NamedSegment, ...]
    checkpoint: tuple[EpochEntry, ...]
    high_watermark: int
    start_offset: int
    cleaned_to: int | None
    unread: tuple[str, ...] = ()

    @property
    def directory(self) -> str:
        """Of its log."""
        return self.source.path(self.source.log_name)

    @property
    def name(self) -> str:
        """For operators: its path, and its node."""
        node = "" if self.node_id is None else f" (broker {self.node_id})"
        return f"{self.directory}{node}"


def read_copy(number: int, source: Source, partition: DirectoryName) -> PartitionCopy:
    """Read the small files of a replica; what is damaged counts as not there.

    Args:
        number: of the source.
        source: its files.
        partition: its name.

    Raises:
        StorageError: a file cannot be read.
    """
    files = _SmallFiles(source)
    meta = files.read(FileKind.META_PROPERTIES.value, read_meta_properties)
    metadata = files.read(join(source.log_name, FileKind.PARTITION_METADATA.value), read_partition_metadata)
    epochs = files.read(join(source.log_name, FileKind.LEADER_EPOCH_CHECKPOINT.value), read_leader_epoch_checkpoint)
    offsets = [
        files.offset(kind, partition)
        for kind in (
            FileKind.REPLICATION_OFFSET_CHECKPOINT,
            FileKind.LOG_START_OFFSET_CHECKPOINT,
            FileKind.CLEANER_OFFSET_CHECKPOINT,
        )
    ]
    return PartitionCopy(
        number,
        source,
        None if meta is None else meta.cluster_id,
        None if meta is None else meta.node_id,
        None if meta is None else meta.directory_id,
        None if metadata is None else metadata.topic_id,
        tuple(sorted(_segments(source), key=lambda each: each.base_offset)),
        _ascending(epochs or ()),
        offsets[0] or 0,
        offsets[1] or 0,
        offsets[2],
        tuple(files.unread),
    )


class _SmallFiles:
    """Reads small files of a source, and notes those that are damaged."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names = {file.name for file in source.files}
        self.unread: list[str] = []

    def read(self, name: str, read: Callable[[bytes], _Contents]) -> _Contents | None:
        """Return what a file says; None if it is not there, or damaged."""
        if name not in self._names:
            return None
        with suppress(DecodeError, ValueError):
            return read(read_file(self._source.path(name), LARGEST_SMALL_FILE_BYTES))
        self.unread.append(name)
        return None

    def offset(self, kind: FileKind, partition: DirectoryName) -> int | None:
        """Return the offset that a checkpoint of the log directory has of a partition; None if it has none."""
        entries = self.read(kind.value, read_offset_checkpoint) or ()
        own = (partition.topic, partition.partition)
        return next((each.offset for each in entries if (each.topic, each.partition) == own), None)


def _segments(source: Source) -> Iterator[NamedSegment]:
    for file in current_files(source, [FileKind.LOG]):
        name = file.name.rpartition("/")[2]
        parsed = parse_file_name(name)
        if parsed is not None and parsed.base_offset is not None:
            yield NamedSegment(name, parsed.base_offset)


def _ascending(entries: tuple[EpochEntry, ...]) -> tuple[EpochEntry, ...]:
    pairs = itertools.pairwise(entries)
    is_ascending = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairs)
    return entries if is_ascending else ()
