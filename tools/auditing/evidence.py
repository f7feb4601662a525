# SPDX-License-Identifier: Apache-2.0
"""Evidence: what a survey reports about the files of a log, and the only input of every judgement.

An audit has two phases. A *survey* reads one file (a segment with its indexes counts as one) and returns a
``FileEvidence``: the problems inside the file, and the facts that other files may contradict. A *judgement* is a pure
function over the evidence of one partition, of all replicas of a partition, or of all log directories. Neither depends
on the engine that runs it: evidence is sent as text between processes and machines.

The size of evidence grows with the epochs, control records and producers of a file, plus one row per ``BLOCK_SIZE``
offsets. It does not grow with the number of batches.
"""

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

    from raftlog.records.messages.control import ControlRecord, ControlValue

BLOCK_SIZE: Final = 4096
"""Offsets in a block: replicas are first compared block by block."""


@attrs.frozen(order=True)
class Place:
    """A surveyed directory: a partition's directory, or a log directory itself.

    Attributes:
        log_directory: path of the log directory that contains the partition's directory, as the user named it or as it
            was found. For files that were named one by one, it is derived from their paths.
        topic: from the directory's name; empty for a log directory itself, or if the name has no topic.
        partition: from the directory's name; -1 if ``topic`` is empty.
    """

    log_directory: str
    topic: str = ""
    partition: int = -1

    @property
    def topic_partition(self) -> tuple[str, int]:
        """The key under which replicas are matched."""
        return self.topic, self.partition


@attrs.frozen
class SurveyTask:
    """One file to survey, or a segment with its indexes.

    Attributes:
        place: the directory that contains the file.
        path: path of the file; for a segment, of its ``.log``.
        kind: what the file holds, according to its name, or None.
        state: whether the file is current, unfinished or to be deleted, according to its name.
        base_offset: for files of a segment, else None.
        snapshot_id: for KRaft snapshots, else None.
        is_raft: whether the file belongs to a raft log, whose rules are stricter. The topic decides, or a quorum-state
            in the same directory.
        indexes: paths of the segment's other files that exist, by kind.
        size_bytes: size of the file when it was listed.
        index_sizes_bytes: sizes of the files of ``indexes`` when they were listed, by kind.
        was_named: whether the user named the file itself; the other files of its directory may then be unknown.
        directory_was_named: whether the user named the file's directory itself, which is a partition's.
        snapshot_offsets: end offsets, ascending, of the KRaft snapshots in the directory that may end in this segment.
        next_base_offset: base offset of the following segment, or None.
        fingerprint: a text that changes whenever the file, or one of ``indexes``, is written to; may be empty.
        reads_messages: whether to read the messages in records of ``__cluster_metadata`` too.
        has_bootstrap: whether this is a file of ``__cluster_metadata`` and the log directory contains
            ``bootstrap.checkpoint``; the log must then set whatever that file sets.
        set_aside: for a checkpoint of offsets: names of the directories beside it of partitions that are being deleted,
            or that Kafka found stray.
    """

    place: Place
    path: str
    kind: FileKind | None
    state: FileState = FileState.CURRENT
    base_offset: int | None = None
    snapshot_id: OffsetAndEpoch | None = None
    is_raft: bool = False
    indexes: Mapping[FileKind, str] = attrs.field(factory=dict)
    size_bytes: int = 0
    index_sizes_bytes: Mapping[FileKind, int] = attrs.field(factory=dict)
    was_named: bool = False
    directory_was_named: bool = False
    snapshot_offsets: Sequence[int] = ()
    next_base_offset: int | None = None
    fingerprint: str = ""
    reads_messages: bool = False
    has_bootstrap: bool = False
    set_aside: Sequence[str] = ()

    @property
    def indexes_size_bytes(self) -> int:
        """Total size of the files of ``indexes``."""
        return sum(self.index_sizes_bytes.values())


@attrs.frozen
class EpochSeen:
    """An epoch of batches in a file, or of an entry in a leader-epoch-checkpoint.

    Attributes:
        epoch: the epoch.
        start_offset: base offset of its first batch in this file, or the start offset of the entry.
        position: byte position of that batch; -1 for an entry.
        end_offset: end of its last batch in this file, exclusive; -1 for an entry.
        timestamp: max timestamp of its first batch in ms; -1 for an entry.
        opens_with_leader: whether its first batch in this file starts with a LeaderChange.
        last_timestamp: max timestamp of its last batch in this file in ms; -1 for an entry.
    """

    epoch: int
    start_offset: int
    position: int = -1
    end_offset: int = -1
    timestamp: int = -1
    opens_with_leader: bool = False
    last_timestamp: int = -1


@attrs.frozen
class ControlSeen:
    """A control record; transaction markers are excluded, except in raft logs.

    Attributes:
        offset, epoch, timestamp: of the record; the timestamp in ms.
        batch_offset: base offset of its batch.
        position: byte position of its batch.
        key, value: as they are stored.
    """

    offset: int
    epoch: int
    timestamp: int
    batch_offset: int
    position: int
    key: bytes
    value: bytes

    def read(self) -> "ControlRecord":
        """Return the decoded control record.

        Raises:
            InvalidRecordError: key or value cannot be decoded; surveys omit such records.
        """
        return _read_control_record(self.key, self.value)


@functools.lru_cache(maxsize=1024)
def _read_control_record(key: bytes, value: bytes) -> "ControlRecord":
    """Decode a control record; cached, because every judgement decodes the same few."""
    from raftlog.records.messages.control import read_control_record  # Most segments have none.

    return read_control_record(key, value)


@attrs.frozen
class BatchSeen:
    """The batch with the last record that a snapshot covers.

    Attributes:
        snapshot_offset: end offset of the snapshot, exclusive: the offset after that record.
        base_offset, last_offset: of the batch, both inclusive.
        epoch, max_timestamp: of the batch; the timestamp in ms.
        position: byte position of the batch.
        next_timestamp: max timestamp in ms of the batch at ``snapshot_offset``; -1 if it is not in the file.
    """

    snapshot_offset: int
    base_offset: int
    last_offset: int
    epoch: int
    max_timestamp: int
    position: int
    next_timestamp: int = -1


@attrs.frozen
class Block:
    """A digest of the sound batches of a file whose base offsets fall into the same range of ``BLOCK_SIZE`` offsets.

    Attributes:
        number: base offset // ``BLOCK_SIZE``.
        batch_count: number of batches.
        digest: the sum, modulo 2^64, of a hash of each batch's base offset, last offset, epoch and CRC, as a signed
            number. Digests of several files can be added, so the sum does not depend on how batches are divided into
            files.
        start_offset: base offset of the first batch.
        end_offset: end of the last batch, exclusive.
        position: byte position of the first batch.
    """

    number: int
    batch_count: int
    digest: int
    start_offset: int
    end_offset: int
    position: int


@attrs.frozen
class StableOffset:
    """A last stable offset of a transaction index that other segments may contradict.

    Attributes:
        offset: the last stable offset.
        marker_offset: offset of the ABORT marker of its entry.
        marker_epoch: leader epoch of that marker's batch.
        producer_id: producer of the aborted transaction.
    """

    offset: int
    marker_offset: int
    marker_epoch: int
    producer_id: int


@attrs.frozen
class ProducerSpan:
    """What one producer did in a segment: the facts that earlier or later segments may contradict.

    Numbers are -1 if there is no such batch, or if the value is unknown.

    Attributes:
        producer_id: the producer.
        first_epoch, last_epoch: its epoch in its first and last batch here, data or marker.
        first_offset, first_data_epoch, first_sequence: of its first data batch here.
        last_offset, last_data_epoch, last_sequence, last_timestamp: of its last data batch here, the offset and the
            sequence of its last record; the timestamp is the batch's greatest, in ms.
        first_marker_offset: of its first marker here.
        coordinator_epochs: of its first and last marker here.
        open_offset: first offset in this segment of the transaction that is open at the segment's end.
        indexed_offset: first offset, by the transaction index, of the transaction that the first marker ends.
        later_timestamp: the greatest timestamp of the segment, if it comes after the producer's last data batch.
        empty_marker_count: number of markers after its first one here that end no transaction.
        first_empty_marker_offset: of the first of these; -1 if there is none.
        is_transactional: whether its first data batch here is part of a transaction.
        is_marker_first: whether its first marker here comes before any batch of a transaction.
        is_marker_abort: whether its first marker here is an ABORT.
        has_faults: whether one of its epochs or sequences was reported as wrong.
    """

    producer_id: int
    first_epoch: int = -1
    last_epoch: int = -1
    first_offset: int = -1
    first_data_epoch: int = -1
    first_sequence: int = -1
    last_offset: int = -1
    last_data_epoch: int = -1
    last_sequence: int = -1
    last_timestamp: int = -1
    first_marker_offset: int = -1
    coordinator_epochs: tuple[int, int] = (-1, -1)
    open_offset: int = -1
    indexed_offset: int = -1
    later_timestamp: int = -1
    empty_marker_count: int = 0
    first_empty_marker_offset: int = -1
    is_transactional: bool = False
    is_marker_first: bool = False
    is_marker_abort: bool = False
    has_faults: bool = False


@attrs.frozen
class LogExtent:
    """The range of offsets, epochs and timestamps of the sound batches of a segment or snapshot.

    Attributes:
        start_offset: base offset of the first batch, inclusive.
        end_offset: end of the last batch, exclusive.
        first_epoch, last_epoch: epochs of the first and the last batch.
        max_timestamp: the greatest timestamp in ms; -1 if there is none.
        batch_count, record_count: numbers of batches and records, according to the batches' headers.
    """

    start_offset: int
    end_offset: int
    first_epoch: int
    last_epoch: int
    max_timestamp: int
    batch_count: int
    record_count: int


@attrs.frozen
class ControllerSeen:
    """A metadata record that registers a controller, or takes its registration away.

    Attributes:
        offset: of the record; in a snapshot, relative to it.
        position: byte position of its batch.
        epoch: epoch of its batch.
        controller_id: node id of the controller.
        level: greatest metadata.version that it supports, 0 if it supports none; -1 if it is no longer registered.
    """

    offset: int
    position: int
    epoch: int
    controller_id: int
    level: int


@attrs.frozen
class OffsetHoles:
    """Offsets that are missing between sound batches of a segment; not collected for raft logs.

    Attributes:
        start_offset: the first missing offset.
        position: byte position of the batch after the first hole.
        missing_count: how many offsets are missing in total.
        hole_count: number of holes.
    """

    start_offset: int
    position: int
    missing_count: int
    hole_count: int


@attrs.frozen
class FileEvidence:
    """The evidence of one file, or of a segment with its indexes.

    Attributes:
        task: what was surveyed.
        findings: problems inside the file.
        coverage: the account of all bytes of a file of batches; None for other files, and if the file was unreadable.
        extent: range of its sound batches; None if no batch is sound.
        epochs: epochs of a file of batches or of a leader-epoch-checkpoint, in file order. An epoch that recurs later
            in the file is listed again.
        controls: control records of a segment or snapshot, in order.
        blocks: segments and snapshots only: in order.
        producers: segments only: by ascending id.
        snapshot_batches: segments only: the batches in which snapshots of the same directory end.
        contents: small files only: the fields, named as in ``dump-log --format jsonl``; None for other files, and if
            the file cannot be decoded.
        holes: segments only, except those of raft logs: missing offsets; None if none is missing.
        shows_compaction: segments only: whether a batch has other than one record per offset, or a delete horizon.
        stray_offsets: segments only: how many offsets belong to batches that are reported as out of order.
        sets_metadata_version: whether a record sets metadata.version. Only for the first segment and the snapshots of
            ``__cluster_metadata``, and for bootstrap.checkpoint; None for other files, and without data records.
        misplaced_from: segments only: the first offset in whose place a batch has another or an impossible one, or, in
            raft logs, at which offsets are missing; None if there is none.
        stable_offsets: segments only: last stable offsets of the transaction index that other segments decide.
        controllers: segments and snapshots of ``__cluster_metadata`` only, if messages were read: the registrations of
            controllers, in order.
    """

    task: SurveyTask
    findings: tuple[Finding, ...] = ()
    coverage: Coverage | None = None
    extent: LogExtent | None = None
    epochs: tuple[EpochSeen, ...] = ()
    controls: tuple[ControlSeen, ...] = ()
    blocks: tuple[Block, ...] = ()
    producers: tuple[ProducerSpan, ...] = ()
    snapshot_batches: tuple[BatchSeen, ...] = ()
    contents: dict[str, Any] | None = None
    holes: OffsetHoles | None = None
    shows_compaction: bool = False
    stray_offsets: int = 0
    sets_metadata_version: bool | None = None
    misplaced_from: int | None = None
    stable_offsets: tuple[StableOffset, ...] = ()
    controllers: tuple[ControllerSeen, ...] = ()

    @property
    def batches_digest(self) -> tuple[int, int]:
        """Equal for files of the same batches: their number, and the sum of the digests of its blocks, modulo 2^64."""
        digests = sum(block.digest for block in self.blocks) % (1 << 64)
        return sum(block.batch_count for block in self.blocks), digests

    def control_values(self) -> "Iterator[tuple[ControlSeen, ControlValue | None]]":
        """Yield the control records with their decoded values, in order; records that cannot be decoded are skipped."""
        for seen in self.controls:
            with contextlib.suppress(DecodeError):
                yield seen, seen.read().value

    def to_json(self) -> str:
        """Return this evidence as one line of JSON."""
        return _converter().dumps(self)

    @classmethod
    def from_json(cls, text: str) -> "FileEvidence":
        """Return the evidence that ``to_json`` serialised.

        Raises:
            Exception: the text was not written by ``to_json``.
        """
        return _converter().loads(text, cls)


@attrs.frozen
class PartitionEvidence:
    """The evidence of all files of a place.

    Attributes:
        place: a partition's directory, or a log directory itself.
        files: sorted by path.
    """

    place: Place
    files: tuple[FileEvidence, ...]

    @functools.cached_property
    def segments(self) -> Sequence[FileEvidence]:
        """The current segments, by base offset."""
        found = [file for file in self.files if _is_current(file, FileKind.LOG)]
        return tuple(sorted(found, key=lambda file: file.task.base_offset or 0))

    @property
    def snapshots(self) -> Sequence[FileEvidence]:
        """The current KRaft snapshots, by ascending id."""
        return tuple(self.snapshots_by_id.values())

    @functools.cached_property
    def snapshots_by_id(self) -> Mapping[OffsetAndEpoch, FileEvidence]:
        """The current KRaft snapshots by id, in ascending order."""
        ids = ((file.task.snapshot_id, file) for file in self.files if _is_current(file, FileKind.SNAPSHOT))
        return dict(sorted(((id_, file) for id_, file in ids if id_ is not None), key=lambda each: each[0]))

    def small_file(self, kind: FileKind) -> FileEvidence | None:
        """Return the current file of a kind that occurs once per directory, or None."""
        return next((file for file in self.files if _is_current(file, kind)), None)

    @property
    def is_raft(self) -> bool:
        """Whether this is a raft log."""
        return any(file.task.is_raft for file in self.files)

    @property
    def end_offset(self) -> int:
        """End of the last sound batch, exclusive; for an empty log the start of its last segment, else 0."""
        ends = [file.extent.end_offset for file in self.segments if file.extent is not None]
        starts = [file.task.base_offset or 0 for file in self.segments]
        return max([*ends, *starts], default=0)

    @property
    def start_offset(self) -> int:
        """Base offset of the first segment, by its name; 0 if there is no segment."""
        return min((file.task.base_offset or 0 for file in self.segments), default=0)

    @property
    def last_epoch(self) -> int:
        """The greatest last epoch of the segments; -1 if no batch is sound."""
        return max((file.extent.last_epoch for file in self.segments if file.extent is not None), default=-1)


def _is_current(file: FileEvidence, kind: FileKind) -> bool:
    return file.task.kind is kind and file.task.state is FileState.CURRENT


def in_partitions(files: Iterable[FileEvidence]) -> Iterator[PartitionEvidence]:
    """Group consecutive files of one place; files of a place must be adjacent in the input."""
    for place, group in itertools.groupby(files, key=lambda file: file.task.place):
        yield PartitionEvidence(place, tuple(sorted(group, key=lambda file: file.task.path)))


def group_by_place(files: Iterable[FileEvidence]) -> list[PartitionEvidence]:
    """Group files by place, in any order of input, and return the places in order."""
    return list(in_partitions(sorted(files, key=lambda file: file.task.place)))


@functools.cache
def _converter() -> "JsonConverter":
    try:
        from cattrs.preconf.json import make_converter
    except ImportError as error:
        raise MissingExtraError("columns", "an audit") from error
    return make_converter()
