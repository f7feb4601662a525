# SPDX-License-Identifier: Apache-2.0
"""Reads the metadata batches of a surveyed log and of its snapshots again, many at a time."""

from collections.abc import Iterable, Iterator
from typing import Final

from raftlog.errors import DecodeError, StateNotThereError, fresh_copy
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import CONTROL_FLAG
from raftlog.records.batches.iterator import ByteSource
from raftlog.records.columns.columns import Chunk, read_columns
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.image.cluster_image import (
    BatchPlace,
    ClusterImage,
    MetadataBatch,
    StoredControl,
    image_of_snapshot,
)

_VALUES: Final = ("value",)


def snapshot_image(snapshot: FileEvidence, end: OffsetAndEpoch) -> ClusterImage:
    """Return the image that a snapshot says.

    Raises:
        DecodeError: the file is damaged.
        StorageError: it was deleted, or cannot be read.
    """
    path = snapshot.task.path
    with open_source(path) as source:
        header = RecordsSnapshotReader(source, end, path=path).header
        return image_of_snapshot(_batches(source, path, 0, _VALUES), end, header.last_contained_log_timestamp)


def snapshot_batches(snapshot: FileEvidence) -> Iterator[MetadataBatch]:
    """Yield the batches of a snapshot in order, with control records and places; offsets are those in the file.

    Raises:
        DecodeError: the records of a batch cannot be unpacked.
        StorageError: it was deleted, or cannot be read.
    """
    with open_source(snapshot.task.path) as source:
        yield from _batches(source, snapshot.task.path, 0, _VALUES, with_controls=True)


def snapshot_time(snapshot: FileEvidence, end: OffsetAndEpoch) -> int:
    """Return when the last record that a snapshot covers was appended, in ms since the Unix epoch.

    Raises:
        DecodeError: the file is damaged.
        StorageError: it was deleted, or cannot be read.
    """
    path = snapshot.task.path
    with open_source(path) as source:
        return RecordsSnapshotReader(source, end, path=path).header.last_contained_log_timestamp


def log_batches(
    log: PartitionEvidence, start: int, end: int, *, with_values: bool = True, with_controls: bool = False
) -> Iterator[MetadataBatch]:
    """Yield the batches of a log that have offsets of a range, in order and without a gap.

    Args:
        log: the log.
        start: inclusive; a batch starts there.
        end: exclusive; the last batch may end after it.
        with_values: whether to read the records too.
        with_controls: whether to read control records too, and to say where each batch is.

    Raises:
        StateNotThereError: offsets are missing.
        DecodeError: the records of a batch cannot be unpacked.
        StorageError: a file was deleted, or cannot be read.
    """
    expected = start
    for segment in log.segments:
        extent = segment.extent
        if extent is None or extent.start_offset >= end or extent.end_offset <= start:
            continue
        before = [block.position for block in segment.blocks if block.start_offset <= expected]
        with open_source(segment.task.path) as source:
            columns = _VALUES if with_values else ()
            position = max(before, default=0)
            for batch in _batches(source, segment.task.path, position, columns, with_controls=with_controls):
                if expected >= end:
                    return
                if batch.next_offset <= expected:
                    continue
                if batch.base_offset != expected:
                    break
                yield batch
                expected = batch.next_offset
    if expected < end:
        problem = f"{log.place.log_directory}: the log has no batch that starts at offset {expected}"
        raise StateNotThereError(problem)


def _batches(
    source: ByteSource, path: str, position: int, columns: tuple[str, ...], *, with_controls: bool = False
) -> Iterator[MetadataBatch]:
    """Yield the sound batches of a file from a byte position on, without those of records that nothing can read."""
    for piece in read_columns(source, columns, start=position):
        if isinstance(piece, Chunk):
            for _, error in piece.errors:
                raise fresh_copy(error.located(path=path) if isinstance(error, DecodeError) else error)
            found = _batches_of(piece)
            yield from _with_controls(piece, path, found) if with_controls else found


def _batches_of(chunk: Chunk) -> Iterator[MetadataBatch]:
    batches, records = chunk.batches, chunk.records
    values = [] if records is None else records.values()
    ends = [0] * len(batches) if records is None else records.ends
    names = ("base_offset", "last_offset_delta", "partition_leader_epoch", "max_timestamp")
    first = 0
    for base, delta, epoch, timestamp, last in zip(*map(batches.column, names), ends, strict=True):
        yield MetadataBatch(base, base + delta + 1, epoch, timestamp, values[first:last])
        first = last


def _with_controls(chunk: Chunk, path: str, found: Iterable[MetadataBatch]) -> Iterator[MetadataBatch]:
    """Yield batches with their control records, and with their places.

    Raises:
        DecodeError: the control records of a batch cannot be unpacked.
    """
    run = chunk.batches.run
    columns = map(chunk.batches.column, ("attributes", "position"))
    for index, (batch, attributes, position) in enumerate(zip(found, *columns, strict=True)):
        controls: tuple[StoredControl, ...] = ()
        if attributes & CONTROL_FLAG:
            try:
                controls = tuple(StoredControl(each.key, each.value) for each in run.batch(index).records())
            except DecodeError as error:
                raise error.located(path=path) from None
        yield batch._replace(controls=controls, place=BatchPlace(path, position))
