# SPDX-License-Identifier: Apache-2.0
"""Builds the directory of a salvaged partition: batches as they were, in files as Kafka has them, and audits it.

Segments end where those of the sources ended. ``partition.metadata`` is copied, and ``leader-epoch-checkpoint`` made
anew from the batches, and from the base's for the epochs before them. There are no indexes and no producer snapshots:
Kafka makes them as it loads such a log, and reads all of its batches then, whatever the recovery point is.

Source: LogLoader#loadSegmentFiles.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from raftlog.errors import RepairRefusedError, SourceChangedError
from raftlog.file_system import FileSystem, join, replace_file
from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.records.files.checkpoint_files import write_leader_epoch_checkpoint
from raftlog.records.files.file_names import FileKind, FileName, parse_file_name
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.copied_log import copy_file
from raftlog.tools.repair.reviewing import findings_of, is_serious
from raftlog.tools.repair.sources import Source, check_unchanged
from raftlog.tools.salvage.building import append_piece
from raftlog.tools.salvage.merging import Piece
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.uuid_text import uuid_from_text

_SEGMENT_BYTES: Final = 1 << 30
_MOST_RELATIVE: Final = (1 << 31) - 1

_OF_THE_PAST: Final = frozenset(
    {
        "batch-producer",
        "control-alone",
        "control-key",
        "control-value",
        "producer-epoch",
        "sequence-twice",
        "transaction-mixed",
    }
)
"""What producers and leaders have written cannot be undone: a source may show it. Damage of bytes, files and order must
be gone."""
_OF_A_LAST_BATCH: Final = "batch-span"
"""The same, of a batch that need not be the last of its segment in the source: only there does the audit see it."""


def build_partition(
    file_system: FileSystem, sources: Sequence[Source], salvage: PartitionSalvage, directory: str
) -> None:
    """Build a directory.

    Args:
        file_system: of the sources and of the directory.
        sources: of the plan.
        salvage: what is to be done.
        directory: a log directory, which exists and is empty.

    Raises:
        SourceChangedError: a source is not what it was when the plan was made.
        RepairRefusedError: the log that was made is not the one that was planned.
        StorageError: the disk failed.
    """
    log_path = join(directory, salvage.partition)
    file_system.make_directory(log_path)
    if salvage.topic_id_source is not None:
        _copy_topic_id(file_system, sources[salvage.topic_id_source], salvage.partition, log_path)
    elif salvage.topic_id is not None:
        made = PartitionMetadata(0, uuid_from_text(salvage.topic_id))
        replace_file(file_system, join(log_path, FileKind.PARTITION_METADATA.value), write_partition_metadata(made))
    names = []
    for base_offset, pieces in segments_of(salvage.pieces, salvage.start_offset):
        names.append(str(FileName(FileKind.LOG, base_offset=base_offset)))
        file = file_system.open(join(log_path, names[-1]), create=True)
        try:
            for piece in pieces:
                path = sources[piece.source].path(join(salvage.partition, piece.file))
                append_piece(file_system, path, piece, file)
            file.sync()
        finally:
            file.close()
    if not names:
        names.append(str(FileName(FileKind.LOG, base_offset=salvage.start_offset)))
        replace_file(file_system, join(log_path, names[0]), b"")
    epochs = _with_early(salvage.early_epochs, _check(log_path, names, salvage))
    path = join(log_path, FileKind.LEADER_EPOCH_CHECKPOINT.value)
    replace_file(file_system, path, write_leader_epoch_checkpoint(epochs))


def _with_early(early: Sequence[EpochEntry], epochs: Sequence[EpochEntry]) -> list[EpochEntry]:
    """Return epochs with those that began before the first batch, of which the last may be that of the batch."""
    return [*early, *(each for each in epochs if not early or each.epoch > early[-1].epoch)]


def _copy_topic_id(file_system: FileSystem, source: Source, partition: str, log_path: str) -> None:
    name = FileKind.PARTITION_METADATA.value
    file = next((each for each in source.files if each.name == join(partition, name)), None)
    if file is None:
        raise SourceChangedError(source.path(join(partition, name)), "the plan does not have it")
    copy_file(file_system, source.path(file.name), join(log_path, name), file)


def segments_of(pieces: Iterable[Piece], start_offset: int) -> Iterator[tuple[int, list[Piece]]]:
    """Yield the segments to write: their base offsets, and what is in them.

    A segment keeps the name that it had where nothing else comes before it, which compaction may have left below its
    first batch.

    Args:
        pieces: of the log, in order.
        start_offset: of the log, inclusive.
    """
    group: list[Piece] = []
    base, size_bytes, end = start_offset, 0, start_offset
    for piece in pieces:
        is_full = size_bytes + piece.size_bytes > _SEGMENT_BYTES or piece.end_offset - 1 - base > _MOST_RELATIVE
        if group and (piece.position == 0 or is_full):
            yield base, group
            group, size_bytes = [], 0
        if not group:
            base = _base_of(piece, end)
        group.append(piece)
        size_bytes += piece.size_bytes
        end = piece.end_offset
    if group:
        yield base, group


def _base_of(piece: Piece, end: int) -> int:
    """Return the base offset of a segment that begins with a piece, after the end of the one before."""
    named = parse_file_name(piece.file)
    if piece.position == 0 and named is not None and named.base_offset is not None:
        return max(named.base_offset, min(end, piece.start_offset))
    return piece.start_offset


def _check(log_path: str, names: Iterable[str], salvage: PartitionSalvage) -> list[EpochEntry]:
    """Read the log that was made, check that it is whole and the one that was planned, and return its epochs."""
    epochs: list[EpochEntry] = []
    end, count = OffsetAndEpoch(0 if salvage.pieces else salvage.start_offset, -1), 0
    for name in names:
        path = join(log_path, name)
        with FileSource(path) as source:
            for piece in split(source):
                if not isinstance(piece, RecordBatch) or piece.base_offset < end.offset:
                    raise RepairRefusedError(f"{path}: position {piece.position}: what was made is no sound log")
                epoch = piece.partition_leader_epoch
                if epoch < end.epoch:
                    raise RepairRefusedError(f"{path}: position {piece.position}: epoch {epoch} after {end.epoch}")
                if epoch > end.epoch:
                    epochs.append(EpochEntry(epoch, piece.base_offset))
                end, count = OffsetAndEpoch(piece.next_offset, epoch), count + 1
    if (end, count) != (salvage.end, salvage.batch_count):
        raise RepairRefusedError(
            f"the log that was made ends at {end} after {count} batches, and the plan is for {salvage.end} and"
            f" {salvage.batch_count}"
        )
    return epochs


def review_partition(directory: str, sources: Sequence[Source], salvage: PartitionSalvage) -> tuple[Finding, ...]:
    """Audit a new directory, and return what is not harmless.

    Args:
        directory: a log directory that was made.
        sources: that its log is from.
        salvage: the plan.

    Raises:
        RepairRefusedError: there is damage in it, other than what producers and leaders have written.
        SourceChangedError: a source has changed while it was read.
        MissingExtraError: a package of an extra is not installed.
    """
    findings = tuple(findings_of(directory))
    serious = [each for each in findings if is_serious(each)]
    paths = [path for source in sources if Path(path := source.path(salvage.partition)).is_dir()] if serious else []
    known = {each.rule for path in paths for each in findings_of(path)} & _OF_THE_PAST | {_OF_A_LAST_BATCH}
    for finding in serious:
        if finding.rule not in known:
            raise RepairRefusedError(f"the result is not sound, and was removed: {finding}")
    for source in sources:
        check_unchanged(source, reads=False)
    return findings
