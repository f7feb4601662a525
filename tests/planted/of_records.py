# SPDX-License-Identifier: Apache-2.0
"""Records inside a batch: a bit flipped in one of their fields, or a field that cannot be, with a CRC that holds."""

from collections.abc import Callable

from raftlog.records.batches.batch import HEADER
from raftlog.records.batches.record import Header, read_record
from raftlog.records.varint import read_varint, read_varlong, varint
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, Ground
from tests.planted.segments import (
    Segment,
    change_record,
    data_batch,
    flip_bit,
    records_of,
    with_area,
    with_fields,
    with_records,
)
from tests.raft_frames import batch_with_a_record_longer_by

FAULTS = Faults("records")


def _fields(batch: bytes, start: int) -> dict[str, int]:
    """Return where the fields of the record are that starts at a position of a batch."""
    _, attributes = read_varint(batch, start)
    _, delta = read_varlong(batch, attributes + 1)
    _, key = read_varint(batch, delta)
    key_size, key_bytes = read_varint(batch, key)
    value = key_bytes + max(key_size, 0)
    _, value_bytes = read_varint(batch, value)
    return {"length": start, "offset_delta": delta, "key": key_bytes, "value": value_bytes}


def _flip(ground: Ground, field: str) -> Spot:
    segment, index = data_batch(ground, 2, ground.pick(("**/c-none-0/*.log", "**/txn-?/*.log")))
    batch, at = segment.batches[index], HEADER.size
    for _ in range(ground.below(segment.view(index).record_count)):
        _, at = read_record(batch, at)
    flip_bit(segment.path, segment.position(index) + _fields(batch, at)[field], ground.below(8))
    return segment.spot(index)


@FAULTS.kind("batch-crc", on=("topics",))
def flip_record_length(ground: Ground) -> Spot:
    """A bit of a record's length is flipped."""
    return _flip(ground, "length")


@FAULTS.kind("batch-crc", on=("topics",))
def flip_record_offset_delta(ground: Ground) -> Spot:
    """A bit of a record's offset delta is flipped."""
    return _flip(ground, "offset_delta")


@FAULTS.kind("batch-crc", on=("topics",))
def flip_record_key(ground: Ground) -> Spot:
    """A bit of a record's key is flipped."""
    return _flip(ground, "key")


@FAULTS.kind("batch-crc", on=("topics",))
def flip_record_value(ground: Ground) -> Spot:
    """A bit of a record's value is flipped."""
    return _flip(ground, "value")


@FAULTS.kind("batch-crc", on=("topics",))
def flip_compressed_data(ground: Ground) -> Spot:
    """A bit of compressed records is flipped."""
    segment = Segment(ground.log(1, ground.pick(("*/c-[glsz]*/*.log", "*/java-0/*.log"))))
    index = ground.below(len(segment.batches))
    at = HEADER.size + ground.below(len(segment.batches[index]) - HEADER.size)
    flip_bit(segment.path, segment.position(index) + at, ground.below(8))
    return segment.spot(index)


def _area(ground: Ground, change: Callable[[bytes], bytes]) -> Spot:
    """Change the bytes of a batch's records; length and CRC hold, and so do the indexes."""
    segment, index = data_batch(ground, 1, ground.data_logs())
    batch = segment.batches[index]
    spot = Spot(segment.path, offset=segment.view(index).base_offset)
    segment.batches[index] = with_area(batch, change(batch[HEADER.size :]))
    segment.save()
    return spot


def _first_record(area: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change what follows the length of the first record."""
    size, start = read_varint(area, 0)
    body = change(area[start : start + size])
    return varint(len(body)) + body + area[start + size :]


def _up_to_headers(body: bytes) -> bytes:
    """Return the bytes of a record, without its length, up to the count of its headers."""
    _, position = read_varlong(body, 1)
    _, position = read_varint(body, position)
    for _ in ("key", "value"):
        size, position = read_varint(body, position)
        position += max(size, 0)
    return body[:position]


@FAULTS.kind("record-length", on=(*QUORUMS, "topics"))
def record_too_long(ground: Ground) -> Spot:
    """A record's length reaches beyond its batch; the CRC holds."""
    return _area(ground, lambda area: varint(9000) + area[read_varint(area, 0)[1] :])


@FAULTS.kind("record-end", on=(*QUORUMS, "topics"))
def record_with_a_rest(ground: Ground) -> Spot:
    """A record's fields do not fill its length; the CRC holds."""
    return _area(ground, lambda area: _first_record(area, lambda body: body + b"rest"))


@FAULTS.kind("varint-length", on=(*QUORUMS, "topics"))
def varint_too_long(ground: Ground) -> Spot:
    """A record's length has six bytes; the CRC holds."""
    return _area(ground, lambda area: b"\xff" * 5 + area)


@FAULTS.kind("varint-range", on=(*QUORUMS, "topics"))
def varint_out_of_range(ground: Ground) -> Spot:
    """A record's length does not fit in 32 bits; the CRC holds."""
    return _area(ground, lambda area: b"\xff\xff\xff\xff\x7f" + area)


@FAULTS.kind("record-field", on=(*QUORUMS, "topics"))
def key_of_negative_length(ground: Ground) -> Spot:
    """A record's key has a length of -5; the CRC holds."""
    return _area(ground, lambda area: _first_record(area, lambda body: body[:3] + varint(-5) + body[4:]))


@FAULTS.kind("record-headers", on=(*QUORUMS, "topics"))
def headers_out_of_range(ground: Ground) -> Spot:
    """A record's header count is greater than its number of bytes, or -1; the CRC holds."""
    count = ground.pick((-1, 4000))
    return _area(ground, lambda area: _first_record(area, lambda body: _up_to_headers(body) + varint(count)))


@FAULTS.kind("record-header-key", on=(*QUORUMS, "topics"))
def header_without_key(ground: Ground) -> Spot:
    """A record has a header whose key is null; the CRC holds."""
    header = varint(1) + varint(-1) + varint(-1)
    return _area(ground, lambda area: _first_record(area, lambda body: _up_to_headers(body) + header))


def _raft_record(ground: Ground, **fields: object) -> Spot:
    """Change fields of one record of a metadata batch; length and CRC hold, and so do the indexes."""
    ground.alone()
    segment, index = data_batch(ground)
    spot = segment.spot(index)
    number = ground.below(segment.view(index).record_count)
    segment.batches[index] = change_record(segment.batches[index], number, **fields)
    segment.save()
    return spot


@FAULTS.kind("raft-record", on=QUORUMS)
def record_with_a_time(ground: Ground) -> Spot:
    """A metadata record has a timestamp delta; the CRC holds."""
    return _raft_record(ground, timestamp_delta=-ground.between(1, 1000))


@FAULTS.kind("raft-record", on=QUORUMS)
def record_with_a_header(ground: Ground) -> Spot:
    """A metadata record has a header; the CRC holds."""
    return _raft_record(ground, headers=(Header(b"trace", b"1"),))


@FAULTS.kind("raft-frame", on=QUORUMS)
def record_longer_than_its_batch(ground: Ground) -> Spot:
    """A metadata batch is compressed to fewer bytes than one of its records has; the CRC holds."""
    ground.alone()
    segment, index = data_batch(ground)
    spot = segment.spot(index)
    batch = segment.view(index)
    longer = {"difference": ground.between(1, 500), "before": batch.record_count - 1}
    forged = batch_with_a_record_longer_by(**longer, base_offset=batch.base_offset, epoch=batch.partition_leader_epoch)
    times = {"base_timestamp": batch.max_timestamp, "max_timestamp": batch.max_timestamp}
    segment.batches[index] = with_fields(forged, **times)
    segment.save()
    return spot


@FAULTS.kind("metadata-version-missing", on=DYNAMIC)
def metadata_without_version(ground: Ground) -> Spot:
    """A metadata log does not begin with the records of bootstrap.checkpoint; its snapshots are missing."""
    directory = ground.alone() / METADATA
    segment = Segment(directory / f"{0:020}.log")
    index = next(number for number, batch in enumerate(segment.views()) if not batch.is_control)
    records = segment.view(index).record_count
    for number in range(records):
        segment.batches[index] = change_record(segment.batches[index], number, value=bytes((1, 20, 0, 0)))
    segment.save()
    for path in directory.glob("*.checkpoint"):
        if path.name != f"{0:020}-{0:010}.checkpoint":
            path.unlink()
    return Spot(segment.path)


@FAULTS.kind("frame-empty", on=QUORUMS)
def record_with_a_key(ground: Ground) -> Spot:
    """A metadata record has a key; the CRC holds."""
    return _raft_record(ground, key=b"key")


@FAULTS.kind("frame-empty", on=QUORUMS)
def record_without_a_value(ground: Ground) -> Spot:
    """A metadata record has no value; the CRC holds."""
    return _raft_record(ground, value=None)


@FAULTS.kind("record-offset", on=(*QUORUMS, "topics"))
def record_offset_twice(ground: Ground) -> Spot:
    """Two records of a batch have the same offset; the CRC holds."""
    segment, index = data_batch(ground, 3, ground.data_logs())
    spot = segment.spot(index)
    segment.batches[index] = change_record(segment.batches[index], 1, offset_delta=0)
    segment.save()
    return spot


@FAULTS.kind("raft-batch", on=QUORUMS)
def record_missing(ground: Ground) -> Spot:
    """A record in the middle of a metadata batch is missing, and the header's count fits that; the CRC holds."""
    ground.alone()
    segment, index = data_batch(ground, 3)
    spot = segment.spot(index)
    records = records_of(segment.batches[index])
    segment.batches[index] = with_records(segment.batches[index], [*records[:1], *records[2:]])
    segment.save()
    return spot
