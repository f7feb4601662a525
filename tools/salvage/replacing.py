# SPDX-License-Identifier: Apache-2.0
"""Takes records out of a log that are whole and that nodes die of.

If a snapshot covers the record, the log begins after it, and no byte changes. Otherwise a NoOpRecord takes its place,
at the same offset and in the same epoch. Every other node that has the record has other bytes there from then on, which
nobody notices: Raft takes two records of one offset and epoch for one.

Source: NoOpRecord, MetadataRecordType.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, RaftLogError, RepairRefusedError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import split
from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.payloads.format_features import sets_the_version
from raftlog.tools.salvage.choosing import Chosen
from raftlog.tools.salvage.merging import Piece

NO_OP: Final = write_metadata_record(metadata_record("NoOpRecord", {}, version=0))
"""The value of a record that changes nothing."""
_CODEC: Final = 7
_OF_TRANSACTIONS: Final = frozenset({"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"})


def begins_after(chosen: Chosen, batch: RecordBatch) -> Chosen | None:
    """Return a log that begins after a batch, with a snapshot for what is before; None if no snapshot covers that."""
    start = batch.next_offset
    snapshots = tuple(each for each in chosen.snapshots if each.offset >= start)
    if not snapshots:
        return None
    pieces = tuple(_after(chosen.pieces, batch))
    return attrs.evolve(chosen, pieces=pieces, snapshots=snapshots, start_offset=start)


def _after(pieces: Sequence[Piece], batch: RecordBatch) -> Iterator[Piece]:
    for piece in pieces:
        if piece.start_offset >= batch.next_offset:
            yield piece
        elif piece.end_offset > batch.next_offset:
            position = batch.position + batch.size_bytes
            yield attrs.evolve(piece, position=position, start_offset=batch.next_offset)


def with_batch_apart(pieces: Sequence[Piece], batch: RecordBatch) -> tuple[Piece, ...]:
    """Return the pieces of a log, of which one is a batch alone."""
    return tuple(part for piece in pieces for part in _parts(piece, batch))


def _parts(piece: Piece, batch: RecordBatch) -> Iterator[Piece]:
    start, end = batch.base_offset, batch.next_offset
    if not piece.start_offset <= start < piece.end_offset:
        yield piece
        return
    position, end_position = batch.position, batch.position + batch.size_bytes
    epoch = batch.partition_leader_epoch  # The batch before has it too: a LeaderChange begins each epoch.
    if piece.start_offset < start:
        yield attrs.evolve(piece, end_position=position, end_offset=start, epoch=epoch)
    yield Piece(piece.source, piece.file, position, end_position, start, end, epoch)
    if end < piece.end_offset:
        yield attrs.evolve(piece, position=end_position, start_offset=end)


def read_batch_at(path: str, piece: Piece, offset: int) -> RecordBatch:
    """Return the batch of a piece that has a record.

    Raises:
        DecodeError: it is not there: the file is not what it was.
        StorageError: the file cannot be read.
    """
    with FileSource(path) as source:
        for found in split(source, start=piece.position, stop=piece.end_position):
            if isinstance(found, RecordBatch) and found.base_offset <= offset < found.next_offset:
                return RecordBatch(bytes(found.buffer), found.position)
    raise DecodeError(f"offset {offset} is not there any more", path=path)


def replaced_batch(batch: RecordBatch, offsets: Collection[int]) -> bytes:
    """Return a batch in which the records at some offsets are NoOpRecords, and all else is as it was.

    Raises:
        RepairRefusedError: a record must not be replaced: it is a control record, begins or ends a transaction, sets
            metadata.version, or is not there; or the batch is none that a raft leader writes.
        DecodeError: the batch cannot be read.
    """
    first = min(offsets)
    if batch.is_control:
        raise RepairRefusedError(f"offset {first} is a control record: --replace takes records of metadata alone")
    if batch.attributes & ~_CODEC:
        raise RepairRefusedError(f"offset {first} is in a batch that no raft leader writes, and is not replaced")
    builder = RecordBatchBuilder(
        batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression_type=batch.compression_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        max_timestamp=batch.max_timestamp,
        last_offset_delta=batch.last_offset_delta,
    )
    missing = set(offsets)
    for record in batch.records():
        value = record.value
        if record.offset in missing:
            missing.remove(record.offset)
            _check_may_be_replaced(record.offset, value)
            value = NO_OP
        builder.append(record.timestamp, record.key, value, record.headers, offset=record.offset)
    if missing:
        raise RepairRefusedError(f"there is no record at offset {min(missing)}")
    return builder.build()


def _check_may_be_replaced(offset: int, value: bytes | None) -> None:
    if value is not None and sets_the_version(value):
        raise RepairRefusedError(f"offset {offset} sets metadata.version, without which Kafka does not start")
    try:
        name = read_metadata_record(value).type.name
    except RaftLogError:
        return  # That may be why it is replaced.
    if name in _OF_TRANSACTIONS:
        raise RepairRefusedError(f"offset {offset} is a {name}: without it, the records around it mean something else")
