# SPDX-License-Identifier: Apache-2.0
"""Reads what a replica of a partition says of itself in its small files: whose it is, of which topic, and how far."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, TypeVar
from uuid import UUID

import attrs

from raftlog.errors import DecodeError
from raftlog.file_system import join
from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import (
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from raftlog.records.files.file_names import DirectoryName, FileKind, FileName, FileState, parse_file_name
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.runs import NamedSegment

_Contents = TypeVar("_Contents")
_NO_OFFSET: Final = 1 << 63


@attrs.frozen
class PartitionCopy:
    """A replica of a partition.

    Attributes:
        number: of its source.
        source: its files.
        cluster_id, node_id, directory_id: from ``meta.properties``; None for what no file says.
        topic_id: from ``partition.metadata``; None if that is not there, or cannot be read.
        segments: by ascending base offset; with those of a compaction that was killed before it had renamed them.
        checkpoint: entries of ``leader-epoch-checkpoint``, ascending; none if it cannot be read, or they do not ascend.
        high_watermark: by ``replication-offset-checkpoint``: what is below it was committed; 0 if no file says it.
        start_offset: by ``log-start-offset-checkpoint``: what is below it was deleted; 0 if no file says it.
        cleaned_to: by ``cleaner-offset-checkpoint``: what is below it was compacted; None if it does not say it.
        named_end: the greatest offset in the name of a segment, an index or a producer snapshot: the log went as far. 0
            without such a file.
        unread: names of small files that are there and cannot be read.
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
    named_end: int = 0
    unread: tuple[str, ...] = ()

    @property
    def directory(self) -> str:
        """Of its log."""
        return self.source.path(self.source.log_name)

    @property
    def known_end(self) -> int:
        """The offset up to which its log is known to have gone, exclusive."""
        return max(self.high_watermark, self.named_end)

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
    epochs = files.read(join(source.log_name, FileKind.LEADER_EPOCH_CHECKPOINT.value), _read_ascending)
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
        _segments(source),
        epochs or (),
        offsets[0] or 0,
        offsets[1] or 0,
        offsets[2],
        _named_end(source),
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


def _segments(source: Source) -> tuple[NamedSegment, ...]:
    """Return the segments by ascending base offset.

    A segment that compaction has made replaces others, which are removed before it gets its name: a node that was
    killed between has it as ``.swap``. Kafka takes such a file, unless others of it are still ``.cleaned``.

    Source: LogSegments#replaceSegments, LogLoader#removeTempFilesAndCollectSwapFiles.
    """
    found = {offset: name for name, offset in _logs(source, FileState.CURRENT)}
    least_cleaned = min((offset for _, offset in _logs(source, FileState.CLEANED)), default=_NO_OFFSET)
    for name, offset in _logs(source, FileState.SWAP):
        if offset < least_cleaned:
            found.setdefault(offset, name)
    return tuple(NamedSegment(name, offset) for offset, name in sorted(found.items()))


def _logs(source: Source, state: FileState) -> Iterator[tuple[str, int]]:
    """Yield the names of segments in a state, and their base offsets."""
    for name, parsed in _parsed(source):
        if (parsed.kind, parsed.state) == (FileKind.LOG, state) and parsed.base_offset is not None:
            yield name, parsed.base_offset


def _named_end(source: Source) -> int:
    """Return the greatest offset in the name of a file that is in use."""
    named = (parsed for _, parsed in _parsed(source) if parsed.state is FileState.CURRENT)
    return max((parsed.base_offset for parsed in named if parsed.base_offset is not None), default=0)


def _parsed(source: Source) -> Iterator[tuple[str, FileName]]:
    """Yield the names of the files of a log, and what they say."""
    for file in source.files:
        directory, _, name = file.name.rpartition("/")
        parsed = parse_file_name(name)
        if directory == source.log_name and parsed is not None:
            yield name, parsed


def _read_ascending(data: bytes) -> tuple[EpochEntry, ...]:
    """Return the entries of ``leader-epoch-checkpoint``.

    Raises:
        DecodeError: it is damaged.
        ValueError: they do not ascend.
    """
    entries = read_leader_epoch_checkpoint(data)
    if not all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in itertools.pairwise(entries)):
        raise ValueError("the epochs do not ascend")
    return entries
