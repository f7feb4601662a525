# SPDX-License-Identifier: Apache-2.0
"""A bit flipped in a field of a batch's header, or the field changed with a CRC that holds."""

import functools

from raftlog.records.batches.batch import HEADER
from tests.planted.fault import Fault, Faults, Spot
from tests.planted.ground import METADATA, QUORUMS, TOPICS, Ground
from tests.planted.segments import (
    FIELDS,
    Segment,
    data_batch,
    flip_bit,
    in_the_middle,
    with_area,
    with_base_offset,
    with_fields,
)

FAULTS = Faults("headers")

_BOTH = tuple(name for pair in zip(("dynamic", "wire"), TOPICS, strict=True) for name in pair)
_TELLING = {
    "base_offset": ("offset-order", "offset-gap", "offset-negative", "segment-reach"),
    "length": ("batch-length", "batch-overrun", "batch-magic", "batch-crc"),
    "epoch": ("epoch-order", "epoch-negative", "epoch-opening"),
    "magic": ("batch-magic", "batch-crc"),
}
"""What tells of a flipped bit; of other fields the CRC does."""


def _flip(ground: Ground, start: int, size: int) -> Spot:
    segment = Segment(ground.log())
    index = in_the_middle(ground, segment)
    spot = Spot(segment.path, segment.position(index))
    flip_bit(segment.path, segment.position(index) + start + ground.below(size), ground.below(8))
    return spot


for _name, _start, _size in FIELDS:
    FAULTS.add(
        Fault(
            f"flip-{_name.replace('_', '-')}",
            f"A bit of a batch's {_name.replace('_', ' ')} is flipped",
            _TELLING.get(_name, ("batch-crc",)),
            _BOTH,
            functools.partial(_flip, start=_start, size=_size),
        )
    )


def _sealed(ground: Ground, **fields: int) -> Spot:
    """Change fields of a data batch in the middle of a log; the CRC holds, and so do the indexes."""
    segment, index = data_batch(ground, 1, ground.data_logs())
    segment.batches[index] = with_fields(segment.batches[index], **fields)
    segment.save()
    return segment.spot(index)


def _adjusted(ground: Ground, field: str, change: int, least_records: int = 1) -> Spot:
    """Add to a field of a data batch in the middle of a log; the CRC holds."""
    segment, index = data_batch(ground, least_records, ground.data_logs())
    value = getattr(segment.view(index), field) + change
    segment.batches[index] = with_fields(segment.batches[index], **{field: value})
    segment.save()
    return segment.spot(index)


@FAULTS.kind("raft-batch", on=QUORUMS)
def last_offset_delta_too_great(ground: Ground) -> Spot:
    """A batch's last offset is one higher than that of its last record; the CRC holds."""
    return _adjusted(ground, "last_offset_delta", 1)


@FAULTS.kind("batch-missing", on=(*QUORUMS, "topics"))
def record_count_too_great(ground: Ground) -> Spot:
    """A batch's record count is one too high; the CRC holds."""
    return _adjusted(ground, "record_count", 1)


@FAULTS.kind("batch-trailing", on=(*QUORUMS, "topics"))
def record_count_too_small(ground: Ground) -> Spot:
    """A batch's record count is one too low; the CRC holds."""
    return _adjusted(ground, "record_count", -1, least_records=2)


@FAULTS.kind("timestamp-max", on=(*QUORUMS, "topics"))
def max_timestamp_wrong(ground: Ground) -> Spot:
    """A batch's max timestamp is a minute above that of its records; the CRC holds, and so do the indexes."""
    return _adjusted(ground, "max_timestamp", 60_000)


@FAULTS.kind("batch-count", "batch-missing", on=(*QUORUMS, "topics"))
def record_count_cannot_be(ground: Ground) -> Spot:
    """A batch's record count is negative, or greater than its number of bytes; the CRC holds."""
    return _sealed(ground, record_count=ground.pick((-7, 1_000_000)))


@FAULTS.kind("batch-attributes", on=(*QUORUMS, "topics"))
def attribute_bit_unused(ground: Ground) -> Spot:
    """An unused attribute bit is set; the CRC holds."""
    return _sealed(ground, attributes=1 << ground.between(7, 15))


@FAULTS.kind("batch-attributes", on=("topics",))
def attribute_bit_unused_in_each_batch(ground: Ground) -> Spot:
    """An unused attribute bit is set in every batch of a log; the CRCs hold."""
    segment = Segment(ground.log(5, "*/c-*/*.log"))
    bit = 1 << ground.between(7, 15)
    for index, batch in enumerate(segment.views()):
        segment.batches[index] = with_fields(segment.batches[index], attributes=batch.attributes | bit)
    segment.overwrite()
    return segment.spot(0)


@FAULTS.kind("batch-codec", on=(*QUORUMS, "topics"))
def codec_unknown(ground: Ground) -> Spot:
    """The attributes have an unknown compression id; the CRC holds."""
    return _sealed(ground, attributes=ground.pick((5, 6, 7)))


@FAULTS.kind("codec-stream", on=("topics",))
def compressed_stream_broken(ground: Ground) -> Spot:
    """The head of a compressed stream is overwritten; the CRC holds."""
    segment = Segment(ground.log(2, "*/c-[gz]*/*.log"))
    index = ground.below(len(segment.batches))
    batch = segment.batches[index]
    segment.batches[index] = with_area(batch, bytes(8) + batch[HEADER.size + 8 :])
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("timestamp-negative", on=(*QUORUMS, "topics"))
def timestamps_negative(ground: Ground) -> Spot:
    """A batch and its records have timestamps before 1970; the CRC holds."""
    segment, index = data_batch(ground, 1, ground.data_logs())
    seen = segment.view(index)
    base, span = -ground.between(1 << 32, 1 << 40), seen.max_timestamp - seen.base_timestamp
    segment.batches[index] = with_fields(segment.batches[index], base_timestamp=base, max_timestamp=base + span)
    segment.save()
    return segment.spot(index)


@FAULTS.kind("batch-bare", on=QUORUMS)
def producer_in_raft(ground: Ground) -> Spot:
    """A batch of a metadata log has a producer; the CRC holds."""
    return _sealed(ground, producer_id=7, producer_epoch=0, base_sequence=0)


@FAULTS.kind("batch-bare", on=QUORUMS)
def append_time_in_raft(ground: Ground) -> Spot:
    """A batch of a metadata log has the time at which it was appended, or a delete horizon; the CRC holds."""
    return _sealed(ground, attributes=ground.pick((0x08, 0x40)))


@FAULTS.kind("batch-span", on=("topics",))
def last_offset_delta_too_great_at_the_end(ground: Ground) -> Spot:
    """The last batch of a topic's log, whose records have no keys, claims more offsets than it has; the CRC holds."""
    segment = Segment(max(ground.files("*/java-0/*.log")))
    last = segment.view(-1)
    delta = last.last_offset_delta + ground.pick((1, 2, 500))
    segment.batches[-1] = with_fields(segment.batches[-1], last_offset_delta=delta)
    segment.save()
    return segment.spot(len(segment.batches) - 1)


@FAULTS.kind("codec-trailing", on=("topics",))
def bytes_after_a_compressed_stream(ground: Ground) -> Spot:
    """A batch has bytes after the end of its compressed stream; the CRC holds."""
    segment = Segment(ground.log(2, f"*/c-{ground.pick(('gzip', 'lz4'))}-0/*.log"))
    index = ground.below(len(segment.batches))
    batch = segment.batches[index]
    segment.batches[index] = with_area(batch, batch[HEADER.size :] + ground.pick((b"junk", bytes(9), b"\0")))
    segment.save()
    return segment.spot(index)


@FAULTS.kind("segment-reach", on=(*QUORUMS, "topics"))
def offset_out_of_reach(ground: Ground) -> Spot:
    """The offsets of a log's last batch are 2^32 too high."""
    segment = Segment(max(ground.files(ground.data_logs())))
    segment.batches[-1] = with_base_offset(segment.batches[-1], segment.view(-1).base_offset + (1 << 32))
    segment.overwrite()
    return segment.spot(len(segment.batches) - 1)


@FAULTS.kind("offset-negative", on=(*QUORUMS, "topics"))
def base_offset_negative(ground: Ground) -> Spot:
    """A batch in the middle of a log has a negative base offset."""
    segment, index = data_batch(ground, 1, ground.data_logs())
    segment.batches[index] = with_base_offset(segment.batches[index], -ground.between(1, 1 << 62))
    segment.overwrite()
    return segment.spot(index)


def _flip_at_a_border(ground: Ground, start: int, size: int, *, is_first: bool) -> Spot:
    """Flip a bit in the first or the last batch of a segment of a metadata log."""
    segment = Segment(ground.log(3, f"*/{METADATA}/*.log"))
    index = 0 if is_first else len(segment.batches) - 1
    position = segment.position(index)
    flip_bit(segment.path, position + start + ground.below(size), ground.below(8))
    # Where a log begins, nothing says which of its first two epochs is right.
    is_known = not is_first or segment.view(0).base_offset > 0
    return Spot(segment.path, position if is_known else None)


@FAULTS.kind("offset-gap", "offset-order", "offset-negative", "segment-reach", "segment-start", on=QUORUMS)
def flip_first_base_offset(ground: Ground) -> Spot:
    """A bit of the base offset is flipped in the first batch of a segment."""
    return _flip_at_a_border(ground, 0, 8, is_first=True)


@FAULTS.kind("offset-gap", "offset-order", "offset-negative", "segment-reach", "segment-start", on=QUORUMS)
def flip_last_base_offset(ground: Ground) -> Spot:
    """A bit of the base offset is flipped in the last batch of a segment."""
    return _flip_at_a_border(ground, 0, 8, is_first=False)


@FAULTS.kind("epoch-order", "epoch-negative", "epoch-opening", "replica-batch", on=QUORUMS)
def flip_first_epoch(ground: Ground) -> Spot:
    """A bit of the epoch is flipped in the first batch of a segment."""
    return _flip_at_a_border(ground, 12, 4, is_first=True)


@FAULTS.kind("epoch-order", "epoch-negative", "epoch-opening", "replica-batch", on=QUORUMS)
def flip_last_epoch(ground: Ground) -> Spot:
    """A bit of the epoch is flipped in the last batch of a segment."""
    return _flip_at_a_border(ground, 12, 4, is_first=False)
