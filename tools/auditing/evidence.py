# SPDX-License-Identifier: Apache-2.0
"""What the files of a log say: values that travel between processes, and that every judgement is made from.

An audit has two halves. A *survey* reads one file (a segment with its indexes counts as one) and returns a
``FileEvidence``: what it found wrong inside, and what others may contradict. A *judgement* is a pure function over the
evidence of all files of a partition, of all replicas of one, or of all log directories. Neither knows which engine runs
it: evidence is text where it crosses a process or a machine.

Evidence grows with the epochs, control records and producers of a file, and with a row a ``BLOCK_SIZE`` offsets; not
with its batches.
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
    """A directory of files that is surveyed: a partition's, or a log directory itself.

    Attributes:
        log_directory: path of the directory that holds the partition's, as it was named or found; of files that were
            named one by one, the same by their paths.
        topic: by the directory's name; empty for a log directory itself, and where the name says nothing.
        partition: likewise; -1 where there is none.
    """

    log_directory: str
    topic: str = ""
    partition: int = -1

    @property
    def topic_partition(self) -> tuple[str, int]:
        """What replicas have in common."""
        return self.topic, self.partition


@attrs.frozen
class SurveyTask:
    """One file to survey, or a segment with its indexes.

    Attributes:
        place: where it is.
        path: of the file, or of the segment's ``.log``.
        kind: what its name says that it holds, or None.
        state: where it is in its life.
        base_offset: of a segment's files, or None.
        snapshot_id: of a KRaft snapshot, or None.
        is_raft: whether this is a log of raft, whose rules are stricter: by its topic, or the quorum-state beside it.
        indexes: paths of the segment's other files that are there, by kind.
        size_bytes: of the file, when it was listed.
        index_sizes_bytes: of the files of ``indexes``, by kind, when they were listed.
        was_named: whether the user named the file itself: what stands beside it need not have been looked at.
        snapshot_offsets: end offsets of the KRaft snapshots beside a segment that may end in it, ascending.
        next_base_offset: of the segment behind a segment, or None.
        fingerprint: a text that is another one once the file, or one of ``indexes``, was written to; may be empty.
        reads_messages: whether to read the messages in records of ``__cluster_metadata`` too.
        has_bootstrap: whether this is a file of ``__cluster_metadata``, and ``bootstrap.checkpoint`` stands in the log
            directory: what that sets, the log must set.
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
    snapshot_offsets: Sequence[int] = ()
    next_base_offset: int | None = None
    fingerprint: str = ""
    reads_messages: bool = False
    has_bootstrap: bool = False

    @property
    def indexes_size_bytes(self) -> int:
        """Size of the files of ``indexes`` together."""
        return sum(self.index_sizes_bytes.values())


@attrs.frozen
class EpochSeen:
    """An epoch that batches of a file are of, or that an entry of a leader-epoch-checkpoint names.

    Attributes:
        epoch: the epoch.
        start_offset: base offset of its first batch here, or what the entry says.
        position: byte position of that batch; -1 of an entry.
        end_offset: after its last batch here, exclusive; -1 of an entry.
        timestamp: max timestamp of its first batch in ms; -1 of an entry.
        opens_with_leader: whether its first batch here starts with a LeaderChange.
    """

    epoch: int
    start_offset: int
    position: int = -1
    end_offset: int = -1
    timestamp: int = -1
    opens_with_leader: bool = False


@attrs.frozen
class ControlSeen:
    """A control record, other than a transaction's marker outside of raft.

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
        """Return what it says.

        Raises:
            InvalidRecordError: key or value cannot be read; a survey leaves such records out.
        """
        return _read_control_record(self.key, self.value)


@functools.lru_cache(maxsize=1024)
def _read_control_record(key: bytes, value: bytes) -> "ControlRecord":
    """Read a control record; each judgement asks for what the same few say."""
    from raftlog.records.messages.control import read_control_record  # Most segments have none.

    return read_control_record(key, value)


@attrs.frozen
class BatchSeen:
    """The batch that holds the last record which a snapshot stands for.

    Attributes:
        snapshot_offset: where that snapshot ends: the offset after that record.
        base_offset, last_offset: of the batch, both inclusive.
        epoch, max_timestamp: of the batch; the timestamp in ms.
        position: byte position of the batch.
    """

    snapshot_offset: int
    base_offset: int
    last_offset: int
    epoch: int
    max_timestamp: int
    position: int


@attrs.frozen
class Block:
    """A digest of the sound batches whose base offsets fall into the same ``BLOCK_SIZE`` offsets, in a file.

    Attributes:
        number: base offset // ``BLOCK_SIZE``.
        batch_count: how many batches there are.
        digest: the sum, modulo 2^64, of a hash of each batch's base offset, last offset, epoch and CRC: the same for
            the same batches, however they are divided into files, and sums add up over files. As a signed number.
        start_offset: base offset of the first.
        end_offset: after the last, exclusive.
        position: byte position of the first.
    """

    number: int
    batch_count: int
    digest: int
    start_offset: int
    end_offset: int
    position: int


@attrs.frozen
class ProducerSpan:
    """What one producer did in a segment, as far as what comes before or after may contradict it.

    Where there is no such batch, or it is not known, a number is -1.

    Attributes:
        producer_id: the producer.
        first_epoch, last_epoch: its epoch in its first and last batch here, data or marker.
        first_offset, first_data_epoch, first_sequence: of its first data batch here.
        last_offset, last_data_epoch, last_sequence, last_timestamp: of its last data batch here, the offset and the
            sequence of its last record; the timestamp is the batch's greatest, in ms.
        first_marker_offset: of its first marker here.
        coordinator_epochs: of its first and last marker here.
        open_offset: first offset of the transaction that is open at the end of this segment, as far as it is here.
        indexed_offset: where the transaction index says that the transaction begins which the first marker ends.
        later_timestamp: the greatest of the segment, if that is behind its last data batch.
        empty_marker_count: how many markers behind its first one here end no transaction.
        is_transactional: whether its first data batch here is part of a transaction.
        is_marker_first: whether no batch of a transaction is here before its first marker.
        is_marker_abort: whether its first marker here is an ABORT.
        has_faults: whether an epoch or a sequence of it was found to be wrong.
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
    is_transactional: bool = False
    is_marker_first: bool = False
    is_marker_abort: bool = False
    has_faults: bool = False


@attrs.frozen
class LogExtent:
    """What the sound batches of a segment or snapshot span.

    Attributes:
        start_offset: base offset of the first, inclusive.
        end_offset: after the last, exclusive.
        first_epoch, last_epoch: of the first and the last batch.
        max_timestamp: the greatest, in ms; -1 where there is none.
        batch_count, record_count: how many there are, by the batches' headers.
    """

    start_offset: int
    end_offset: int
    first_epoch: int
    last_epoch: int
    max_timestamp: int
    batch_count: int
    record_count: int


@attrs.frozen
class OffsetHoles:
    """Offsets that no batch of a segment has, though nothing is damaged there; not of raft's logs.

    Attributes:
        start_offset: the first of them.
        position: byte position of the batch behind the first hole.
        missing_count: how many offsets are missing.
        hole_count: at how many places.
    """

    start_offset: int
    position: int
    missing_count: int
    hole_count: int


@attrs.frozen
class FileEvidence:
    """What one file says, or a segment with its indexes.

    Attributes:
        task: what was surveyed.
        findings: what is wrong inside.
        coverage: where the bytes of a file of batches went; None of others, and of what could not be read.
        extent: of its batches; None where no batch is sound.
        epochs: in order, of a file of batches or of a leader-epoch-checkpoint. One that comes again later in the file
            comes again here.
        controls: in order; of a snapshot too.
        blocks: in order; of segments alone.
        producers: of segments alone, by ascending id.
        snapshot_batches: of segments alone: where the snapshots beside them end, as far as that is here.
        contents: of a small file: its fields, as ``dump-log --format jsonl`` names them; None where it is of no such
            kind, or does not read.
        holes: of segments alone, but not of raft's: offsets that are missing; None where none is.
        shows_compaction: of segments alone: whether a batch has fewer records than offsets, or a delete horizon.
        stray_offsets: of segments alone: how many offsets the batches have that are reported to be out of line.
        sets_metadata_version: whether a record sets metadata.version; of the first segment and the snapshots of
            ``__cluster_metadata``, and of bootstrap.checkpoint; None of others, and of those without data records.
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

    def control_values(self) -> "Iterator[tuple[ControlSeen, ControlValue | None]]":
        """Yield the control records with what they say, in order, but for those that do not read."""
        for seen in self.controls:
            with contextlib.suppress(DecodeError):
                yield seen, seen.read().value

    def to_json(self) -> str:
        """Return this as a line of text."""
        return _converter().dumps(self)

    @classmethod
    def from_json(cls, text: str) -> "FileEvidence":
        """Return what ``to_json`` made a text of.

        Raises:
            Exception: the text is something else.
        """
        return _converter().loads(text, cls)


@attrs.frozen
class PartitionEvidence:
    """What all files of a place say.

    Attributes:
        place: a partition's directory, or a log directory itself.
        files: sorted by path.
    """

    place: Place
    files: tuple[FileEvidence, ...]

    @property
    def segments(self) -> Sequence[FileEvidence]:
        """The current segments, by base offset."""
        found = [file for file in self.files if _is_current(file, FileKind.LOG)]
        return sorted(found, key=lambda file: file.task.base_offset or 0)

    @property
    def snapshots(self) -> Sequence[FileEvidence]:
        """The current KRaft snapshots, by ascending id."""
        return tuple(self.snapshots_by_id.values())

    @property
    def snapshots_by_id(self) -> dict[OffsetAndEpoch, FileEvidence]:
        """The same with their ids, ascending."""
        ids = ((file.task.snapshot_id, file) for file in self.files if _is_current(file, FileKind.SNAPSHOT))
        return dict(sorted(((id_, file) for id_, file in ids if id_ is not None), key=lambda each: each[0]))

    def small_file(self, kind: FileKind) -> FileEvidence | None:
        """Return the current file of a kind that is there once, or None."""
        return next((file for file in self.files if _is_current(file, kind)), None)

    @property
    def is_raft(self) -> bool:
        """Whether this is a log of raft."""
        return any(file.task.is_raft for file in self.files)

    @property
    def end_offset(self) -> int:
        """After the last sound batch, exclusive; of an empty log where its last segment starts, else 0."""
        ends = [file.extent.end_offset for file in self.segments if file.extent is not None]
        starts = [file.task.base_offset or 0 for file in self.segments]
        return max([*ends, *starts], default=0)

    @property
    def start_offset(self) -> int:
        """The base offset of the first segment, by its name; 0 where there is none."""
        return min((file.task.base_offset or 0 for file in self.segments), default=0)

    @property
    def last_epoch(self) -> int:
        """Of the last sound batch; -1 where there is none."""
        return max((file.extent.last_epoch for file in self.segments if file.extent is not None), default=-1)


def _is_current(file: FileEvidence, kind: FileKind) -> bool:
    return file.task.kind is kind and file.task.state is FileState.CURRENT


def in_partitions(files: Iterable[FileEvidence]) -> Iterator[PartitionEvidence]:
    """Put files together that are of one place and follow each other."""
    for place, group in itertools.groupby(files, key=lambda file: file.task.place):
        yield PartitionEvidence(place, tuple(sorted(group, key=lambda file: file.task.path)))


def group_by_place(files: Iterable[FileEvidence]) -> list[PartitionEvidence]:
    """Put the files of each place together, wherever they stand, and return the places in order."""
    return list(in_partitions(sorted(files, key=lambda file: file.task.place)))


@functools.cache
def _converter() -> "JsonConverter":
    try:
        from cattrs.preconf.json import make_converter
    except ImportError as error:
        raise MissingExtraError("columns", "an audit") from error
    return make_converter()
