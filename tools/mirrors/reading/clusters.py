# SPDX-License-Identifier: Apache-2.0
"""The logs of one cluster, as far as its log directories are here."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

import attrs

from raftlog.errors import DecodeError, InvalidRecordError, StorageError, fresh_copy
from raftlog.file_paths import join_path
from raftlog.invariants import present
from raftlog.records.batches.batch import CONTROL_FLAG
from raftlog.records.batches.iterator import Corruption, TornTail
from raftlog.records.batches.record import RecordView
from raftlog.records.columns.columns import RECORD_COLUMNS, Chunk, select_columns
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import read_partition_metadata
from raftlog.storage.reading.file_source import open_source, read_file
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from raftlog.tools.mirrors.reading.log_rows import (
    LogEnd,
    LogRows,
    LogTransactions,
    SegmentPlace,
    chunks_of,
    damage_of,
    find_end,
)
from raftlog.tools.mirrors.reading.replica_choice import ReplicaChoice, choose_replica
from raftlog.tools.spark.rows.options import SourceOptions, TopicPartition
from raftlog.tools.spark.source.planning import Partition, list_partitions
from raftlog.tools.spark.source.transactions import TransactionFollower

_Content = TypeVar("_Content")


@attrs.frozen(eq=False)
class PartitionLog:
    """One replica of a partition.

    Attributes:
        topic: its name.
        partition: its number.
        segments: by ascending offset.
        end: of the log.
        rows: reads its records.
        choice: why this replica.
        topic_id: by its ``partition.metadata``; None if that cannot be read.
    """

    topic: str
    partition: int
    segments: tuple[SegmentPlace, ...]
    end: LogEnd
    rows: LogRows
    choice: ReplicaChoice
    topic_id: UUID | None

    def producers(self, start: int, most: int) -> set[int]:
        """Return the producer ids of data batches from an offset on (inclusive); the first ones, if there are more.

        Raises:
            StorageError: a segment cannot be read.
        """
        found: set[int] = set()
        for chunk in chunks_of(self.segments, start, self.end.offset, ()):
            attributes = chunk.batches.column("attributes")
            for flags, producer_id in zip(attributes, chunk.batches.column("producer_id"), strict=True):
                if not flags & CONTROL_FLAG and len(found) < most:
                    found.add(producer_id)
        return found


@attrs.frozen(eq=False)
class StoredChunk:
    """Records of a small topic, with all their columns.

    Attributes:
        partition: the number of their partition.
        chunk: the records.
        path: of their segment.
    """

    partition: int
    chunk: Chunk
    path: str


@attrs.frozen
class StoredRecord:
    """A record of a small topic.

    Attributes:
        partition: the number of its partition.
        record: the record itself.
        producer_id: of its batch.
        path: of its segment.
    """

    partition: int
    record: RecordView
    producer_id: int
    path: str


class Cluster:
    """The logs of one cluster. Files are read when they are asked for, and must not change meanwhile.

    Args:
        paths: log directories, or directories of these.
        topic_ids: of its topics by their names, as its metadata say; those of the others are not known.

    Attributes:
        problems: findings about directories that could not be listed, and about replicas that are not sound, of all
            that was read so far.
        topics: the numbers of the partitions that are here, by topic.

    Raises:
        MissingFileError: a path does not exist.
        StorageError: a path cannot be read.
    """

    def __init__(self, paths: Sequence[str], topic_ids: Mapping[str, UUID] | None = None) -> None:
        listing = list_partitions(SourceOptions(paths=tuple(paths), snapshots="none"))
        self.problems: list[Finding] = list(listing.problems)
        self._topic_ids = topic_ids or {}
        self._replicas: dict[TopicPartition, list[Partition]] = {}
        for each in listing.partitions:
            if each.topic is not None and each.number is not None and each.segments:
                self._replicas.setdefault((each.topic, each.number), []).append(each)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(self._replicas):
            topics.setdefault(topic, []).append(number)
        self.topics: Mapping[str, Sequence[int]] = topics

    @property
    def segment_paths(self) -> frozenset[str]:
        """The paths of all segments, of all replicas."""
        return frozenset(
            segment.path for replicas in self._replicas.values() for each in replicas for segment in each.segments
        )

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the replica of a partition to compare, as ``choose_replica`` says; None if none is here.

        Raises:
            StorageError: a segment cannot be read.
            MissingExtraError: a package of an extra is not installed.
        """
        key = topic, partition
        if key not in self._logs:
            replicas = self._replicas.get(key, ())
            if not replicas:
                return None
            chosen, choice = choose_replica(replicas, self._topic_ids.get(topic))
            self.problems += choice.findings
            self._logs[key] = _replica(chosen, choice)
        return self._logs[key]

    def chunks(self, topic: str) -> Iterator[StoredChunk | Finding]:
        """Yield the data records of a topic, by partition and offset, and findings about batches that cannot be read.

        Raises:
            StorageError: a segment cannot be read.
        """
        for partition in self.topics.get(topic, ()):
            log = self.log(topic, partition)
            if log is None:
                continue
            for segment in log.segments:
                yield from _chunks_of(segment, partition, log.rows.start_offset)

    def records(self, topic: str) -> Iterator[StoredRecord | Finding]:
        """Yield what ``chunks`` does, record by record.

        Raises:
            StorageError: a segment cannot be read.
        """
        for each in self.chunks(topic):
            if isinstance(each, Finding):
                yield each
                continue
            for batch, producer_id in enumerate(each.chunk.batches.column("producer_id")):
                for record in each.chunk.objects(batch):
                    yield StoredRecord(each.partition, record, producer_id, each.path)

    def decoded(
        self, topic: str, read: Callable[[bytes | None, bytes | None], _Content], problems: list[Finding]
    ) -> Iterator[tuple[StoredRecord, _Content]]:
        """Yield the data records of a topic with what they say.

        Args:
            topic: its name.
            read: takes key and value of a record, and raises ``InvalidRecordError`` for one that says nothing.
            problems: gets the findings about what cannot be read.

        Raises:
            StorageError: a segment cannot be read.
        """
        for each in self.records(topic):
            if isinstance(each, Finding):
                problems.append(each)
                continue
            try:
                content = read(each.record.key, each.record.value)
            except InvalidRecordError as error:
                rule = error.rule or "message-field"
                problems.append(Finding(each.path, rule, error.reason, offset=each.record.offset))
                continue
            yield each, content


def _chunks_of(segment: SegmentPlace, partition: int, start_offset: int) -> Iterator[StoredChunk | Finding]:
    with open_source(segment.path) as source:
        for piece in select_columns(source, RECORD_COLUMNS, RecordSelection(start_offset)):
            if isinstance(piece, Corruption | TornTail):
                yield damage_of(segment.path, piece)
            if not isinstance(piece, Chunk):
                continue
            for _, error in piece.errors:
                if not isinstance(error, DecodeError):
                    raise fresh_copy(error)
                yield Finding.of_error(error, segment.path)
            yield StoredChunk(partition, piece, segment.path)


def _replica(found: Partition, choice: ReplicaChoice) -> PartitionLog:
    segments = tuple(SegmentPlace(each.path, each.base_offset or 0) for each in found.segments)
    end = find_end(segments, found.start_offset)
    find = functools.partial(TransactionFollower().find, found.segments, found.producer_snapshots)
    rows = LogRows(segments, found.start_offset, end.offset, LogTransactions(find=find))
    topic, number = present(found.topic, "a topic"), present(found.number, "a partition")
    return PartitionLog(topic, number, segments, end, rows, choice, _topic_id(choice.directory))


def _topic_id(directory: str) -> UUID | None:
    """Return the topic id of a partition's directory; None if no file there says it."""
    try:
        path = join_path(directory, FileKind.PARTITION_METADATA.value)
        return read_partition_metadata(read_file(path, LARGEST_SMALL_FILE_BYTES)).topic_id
    except (DecodeError, StorageError):
        return None  # Without the id, the topic counts as the one that the metadata have.
