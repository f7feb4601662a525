# SPDX-License-Identifier: Apache-2.0
"""Taking segments apart into batches and records, changing them, and putting them together again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from raftlog.records.batches.batch import CRC_START, HEADER, RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import RawRecord, encode_record, read_record
from raftlog.records.checksum import crc32c
from raftlog.records.files.index_entries import OFFSET_INDEX, TIME_INDEX, OffsetIndexEntry, TimeIndexEntry
from raftlog.records.messages.control import (
    ControlValue,
    LeaderChangeMessage,
    read_control_record,
    write_control_record,
)
from tests.planted.fault import Spot
from tests.planted.ground import METADATA, Ground

FIELDS: Final = (
    ("base_offset", 0, 8),
    ("length", 8, 4),
    ("epoch", 12, 4),
    ("magic", 16, 1),
    ("crc", 17, 4),
    ("attributes", 21, 2),
    ("last_offset_delta", 23, 4),
    ("base_timestamp", 27, 8),
    ("max_timestamp", 35, 8),
    ("producer_id", 43, 8),
    ("producer_epoch", 51, 2),
    ("base_sequence", 53, 4),
    ("record_count", 57, 4),
)
"""Of a batch's header: name, where it starts, how many bytes it has."""
_NAMES: Final = tuple(name for name, _, _ in FIELDS)
_INTERVAL_BYTES: Final = 4096


class Segment:
    """The batches of a segment, or of a snapshot, to be changed.

    Args:
        path: of the file, which is sound.

    Attributes:
        path: of the file; may be changed when the file was renamed.
        batches: may be changed, and are then saved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        pieces = split(BufferSource(path.read_bytes()))
        self.batches: list[bytes] = [bytes(piece.buffer) for piece in pieces if isinstance(piece, RecordBatch)]

    def position(self, index: int) -> int:
        """Return where a batch starts."""
        return sum(map(len, self.batches[:index]))

    def elections(self) -> Iterator[tuple[int, LeaderChangeMessage]]:
        """Yield the epoch and the LeaderChange of each election."""
        for index in range(len(self.batches)):
            batch = self.view(index)
            for value in control_values(self.batches[index]) if batch.is_control else ():
                if isinstance(value, LeaderChangeMessage):
                    yield batch.partition_leader_epoch, value

    def view(self, index: int) -> RecordBatch:
        """Return the fields of a batch."""
        return RecordBatch(self.batches[index])

    def views(self) -> list[RecordBatch]:
        """Return the fields of all batches."""
        return [RecordBatch(batch) for batch in self.batches]

    def spot(self, index: int) -> Spot:
        """Return where a batch is."""
        return Spot(self.path, self.position(index), self.view(index).base_offset)

    def overwrite(self) -> None:
        """Write the batches, and leave indexes as they are."""
        self.path.write_bytes(b"".join(self.batches))

    def save(self, without: int | None = None) -> None:
        """Write the batches, and the indexes as if the writer had written these batches.

        Args:
            without: number of a batch that the indexes do not know.
        """
        self.overwrite()
        entries, times = self._index_entries(without)
        for suffix, data in ((".index", OFFSET_INDEX.encode(entries)), (".timeindex", TIME_INDEX.encode(times))):
            index = self.path.with_suffix(suffix)
            if index.exists():
                index.write_bytes(data)

    def _index_entries(self, without: int | None) -> tuple[list[OffsetIndexEntry], list[TimeIndexEntry]]:
        """Return what Kafka writes to the indexes of a segment.

        Source: LogSegment#append, LogSegment#onBecomeInactiveSegment.
        """
        entries: list[OffsetIndexEntry] = []
        times: list[TimeIndexEntry] = []
        base_offset = int(self.path.stem)
        position = since_entry = 0
        latest = TimeIndexEntry(-1, 0)
        for number, stored in enumerate(self.batches):
            if number != without:
                batch = RecordBatch(stored)
                relative = batch.last_offset - base_offset
                if batch.max_timestamp > latest.timestamp:
                    latest = TimeIndexEntry(batch.max_timestamp, relative)
                if since_entry > _INTERVAL_BYTES:
                    entries.append(OffsetIndexEntry(relative, position))
                    _append_time(times, latest)
                    since_entry = 0
            since_entry += len(stored)
            position += len(stored)
        _append_time(times, latest)
        return entries, times


def _append_time(times: list[TimeIndexEntry], entry: TimeIndexEntry) -> None:
    if entry.timestamp > (times[-1].timestamp if times else -1):
        times.append(entry)


def with_fields(batch: bytes, **fields: int) -> bytes:
    """Return a batch with other header fields, and a CRC that holds."""
    values = dict(zip(_NAMES, HEADER.unpack_from(batch), strict=True)) | fields
    return _sealed(HEADER.pack(*values.values()) + batch[HEADER.size :])


def with_area(batch: bytes, area: bytes, record_count: int | None = None) -> bytes:
    """Return a batch with other bytes in place of its records; its length and CRC hold."""
    values = dict(zip(_NAMES, HEADER.unpack_from(batch), strict=True))
    values["length"] = HEADER.size + len(area) - 12
    if record_count is not None:
        values["record_count"] = record_count
    return _sealed(HEADER.pack(*values.values()) + area)


def _sealed(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[CRC_START:]).to_bytes(4, "big") + batch[CRC_START:]


def records_of(batch: bytes) -> list[RawRecord]:
    """Return the records of a batch that is not compressed."""
    area, at = batch[HEADER.size :], 0
    records = []
    while at < len(area):
        record, at = read_record(area, at)
        records.append(record)
    return records


def with_records(batch: bytes, records: Sequence[RawRecord]) -> bytes:
    """Return a batch of other records; it ends with the last of them."""
    area = b"".join(map(encode_record, records))
    changed = with_area(batch, area, len(records))
    return with_fields(changed, last_offset_delta=records[-1].offset_delta) if records else changed


def change_record(batch: bytes, number: int, **fields: Any) -> bytes:
    """Return a batch one of whose records has other fields."""
    records = records_of(batch)
    records[number] = records[number]._replace(**fields)
    return with_records(batch, records)


def control_values(batch: bytes) -> list[ControlValue | None]:
    """Return what the control records of a batch say."""
    return [read_control_record(record.key, record.value).value for record in records_of(batch)]


def control_batch(like: bytes, values: Sequence[ControlValue], **fields: int) -> bytes:
    """Return a control batch with the offset, epoch and time of another batch."""
    batch = RecordBatch(like)
    builder = RecordBatchBuilder(
        batch.base_offset, is_control=True, partition_leader_epoch=batch.partition_leader_epoch
    )
    builder.extend([(batch.max_timestamp, *write_control_record(value)) for value in values])
    return with_fields(builder.build(), **fields) if fields else builder.build()


def with_control(batch: bytes, change: Callable[[Any], ControlValue], kind: type) -> bytes:
    """Return a control batch whose record of a kind says something else."""
    values = [change(value) if isinstance(value, kind) else value for value in control_values(batch)]
    records = [
        record if value is None else record._replace(value=write_control_record(value)[1])
        for record, value in zip(records_of(batch), values, strict=True)
    ]
    return with_records(batch, records)


def with_base_offset(batch: bytes, base_offset: int) -> bytes:
    """Return a batch that says to start elsewhere, which no CRC covers."""
    return base_offset.to_bytes(8, "big", signed=True) + batch[8:]


def with_epoch(batch: bytes, epoch: int) -> bytes:
    """Return a batch that says to be of another epoch, which no CRC covers."""
    return batch[:12] + epoch.to_bytes(4, "big", signed=True) + batch[16:]


def data_batch(
    ground: Ground,
    least_records: int = 1,
    pattern: str = f"**/{METADATA}/*.log",
    *,
    record_count: int | None = None,
    from_offset: int = 0,
    to_offset: int = 1 << 62,
    is_inside_epoch: bool = False,
) -> tuple[Segment, int]:
    """Return a segment, and the number of a data batch in its middle, without a codec.

    Args:
        ground: to choose on.
        least_records: of the batch.
        pattern: of the segment's path.
        record_count: of the batch, exactly.
        from_offset: least base offset of the batch.
        to_offset: below which that is.
        is_inside_epoch: whether the batch after it is of the same epoch.
    """
    segments = {path: Segment(path) for path in ground.files(pattern)}
    found = [
        (path, index)
        for path, segment in segments.items()
        for index, batch in enumerate(segment.views()[1:-1], 1)
        if not batch.is_control
        and batch.attributes & 7 == 0
        and batch.record_count >= least_records
        and record_count in {None, batch.record_count}
        and from_offset <= batch.base_offset < to_offset
        and (not is_inside_epoch or segment.view(index + 1).partition_leader_epoch == batch.partition_leader_epoch)
    ]
    path, index = ground.pick(found)
    return segments[path], index


def control_batch_with(
    ground: Ground, kind: type, pattern: str = f"**/{METADATA}/*.log", *, from_offset: int = 1
) -> tuple[Segment, int]:
    """Return a segment, and the number of a control batch in it with a record of a kind, not below an offset."""
    segments = {path: Segment(path) for path in ground.files(pattern)}
    found = [
        (path, index)
        for path, segment in segments.items()
        for index, batch in enumerate(segment.views())
        if batch.is_control
        and batch.base_offset >= from_offset
        and any(isinstance(value, kind) for value in control_values(segment.batches[index]))
    ]
    path, index = ground.pick(found)
    return segments[path], index


def forget_snapshots(log: Path, end_offset: int) -> None:
    """Remove the snapshots of a log that end after an offset."""
    for path in log.glob("*.checkpoint"):
        if int(path.name[:20]) > end_offset:
            path.unlink()


def flip_bit(path: Path, position: int, bit: int) -> None:
    """Flip a bit of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def in_the_middle(ground: Ground, segment: Segment) -> int:
    """Return the number of a batch that is neither the first nor the last of a segment."""
    return ground.between(1, len(segment.batches) - 1)
