# SPDX-License-Identifier: Apache-2.0
"""Producers and transactions: sequences, epochs and markers that no broker would have taken."""

from pathlib import Path

import attrs

from raftlog.records.batches.batch import TRANSACTIONAL_FLAG, RecordBatch
from raftlog.records.files.producer_snapshot import ProducerStateEntry, read_producer_snapshot, write_producer_snapshot
from raftlog.records.messages.control import EndTxnMarker
from tests.planted.fault import Faults, Spot
from tests.planted.ground import Ground
from tests.planted.segments import (
    Segment,
    change_record,
    flip_bit,
    records_of,
    with_base_offset,
    with_control,
    with_fields,
    with_records,
)

FAULTS = Faults("producers")

_TRANSACTIONS = ("topics", "mirror")
_DAY_MS = 24 * 60 * 60 * 1000


def _idempotent(ground: Ground) -> tuple[Segment, int]:
    """Return a segment of one producer's batches, and the number of one in its middle."""
    segment = Segment(ground.file("*/java-0/*.log"))
    return segment, ground.between(1, len(segment.batches) - 1)


@FAULTS.kind("batch-producer", on=("topics",))
def producer_without_a_sequence(ground: Ground) -> Spot:
    """A batch of a producer has no sequence; the CRC holds."""
    segment, index = _idempotent(ground)
    segment.batches[index] = with_fields(segment.batches[index], base_sequence=-1)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("batch-producer", on=("topics",))
def transaction_without_a_producer(ground: Ground) -> Spot:
    """A batch without a producer is part of a transaction; the CRC holds."""
    segment = Segment(ground.file("*/c-none-0/*.log"))
    index = ground.below(len(segment.batches))
    attributes = segment.view(index).attributes | TRANSACTIONAL_FLAG
    segment.batches[index] = with_fields(segment.batches[index], attributes=attributes)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("control-alone", on=("topics",))
def two_markers_in_a_batch(ground: Ground) -> Spot:
    """A control batch has two markers; the CRC holds."""
    segment = Segment(max(ground.files(f"*/{ground.pick(('txn-0', 'txn-1'))}/*.log")))
    index = max(index for index, batch in enumerate(segment.views()) if batch.is_control)
    record = records_of(segment.batches[index])[0]
    segment.batches[index] = with_records(segment.batches[index], [record, record._replace(offset_delta=1)])
    moved = [with_base_offset(batch, RecordBatch(batch).base_offset + 1) for batch in segment.batches[index + 1 :]]
    segment.batches[index + 1 :] = moved
    segment.save()
    return segment.spot(index)


@FAULTS.kind("sequence-gap", on=("topics",))
def sequence_ahead(ground: Ground) -> Spot:
    """A batch of an idempotent producer has a sequence that is too high; the CRC holds."""
    segment, index = _idempotent(ground)
    sequence = segment.view(index).base_sequence + ground.between(1, 9)
    segment.batches[index] = with_fields(segment.batches[index], base_sequence=sequence)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("sequence-twice", on=("topics",))
def sequence_twice(ground: Ground) -> Spot:
    """A batch of an idempotent producer is written a second time, at the end of the log."""
    segment, index = _idempotent(ground)
    again = with_fields(segment.batches[index], base_offset=segment.view(-1).next_offset)
    segment.batches.append(again)
    segment.save()
    return segment.spot(len(segment.batches) - 1)


@FAULTS.kind("producer-epoch", on=("topics",))
def producer_epoch_back(ground: Ground) -> Spot:
    """A batch has a higher producer epoch than its producer's next batch; CRCs hold."""
    segment, index = _idempotent(ground)
    segment.batches[index] = with_fields(segment.batches[index], producer_epoch=5)
    segment.overwrite()
    return segment.spot(index)


def _transactional(ground: Ground) -> Segment:
    """Return the last segment of a log with transactions; a marker of the last one is in it."""
    logs = {path.parent: path for path in ground.files("**/*.log") if path.parent.name in {"txn-0", "txn-1"}}
    logs |= {path.parent: path for path in ground.files("**/tx.orders-0/*.log")}
    return Segment(ground.pick(logs.values()))


def _continued(segment: Segment, number: int, *, later_ms: int = 0, **fields: int) -> bytes:
    """Return a batch like one of a segment, for after its end."""
    batch = segment.view(number)
    return with_fields(
        segment.batches[number],
        base_offset=segment.view(-1).next_offset,
        base_timestamp=batch.base_timestamp + later_ms,
        max_timestamp=batch.max_timestamp + later_ms,
        **fields,
    )


def _last_of(segment: Segment, *, is_transactional: bool) -> int:
    """Return the number of the last data batch that is, or is not, of a transaction."""
    return max(
        number
        for number, batch in enumerate(segment.views())
        if not batch.is_control and batch.is_transactional == is_transactional
    )


def _open_transaction(segment: Segment) -> None:
    """Write the first batch of another transaction of a producer after the end."""
    number = _last_of(segment, is_transactional=True)
    batch = segment.view(number)
    sequence = batch.base_sequence + batch.record_count
    epoch = segment.view(-1).producer_epoch if segment.view(-1).producer_id == batch.producer_id else 0
    segment.batches.append(
        _continued(segment, number, base_sequence=sequence, producer_epoch=max(batch.producer_epoch, epoch))
    )


@FAULTS.kind("transaction-open", on=_TRANSACTIONS)
def transaction_open(ground: Ground) -> Spot:
    """A log ends inside a transaction."""
    segment = _transactional(ground)
    _open_transaction(segment)
    segment.save()
    return Spot(segment.path, offset=segment.view(-1).base_offset)


@FAULTS.kind("transaction-hanging", on=_TRANSACTIONS)
def transaction_hanging(ground: Ground) -> Spot:
    """A log continues for a day after the last record of a transaction that no marker ends."""
    segment = _transactional(ground)
    _open_transaction(segment)
    offset = segment.view(-1).base_offset
    number = len(segment.batches) - 1
    latest = max(batch.max_timestamp for batch in segment.views())
    later = _continued(
        segment,
        number,
        later_ms=latest + _DAY_MS - segment.view(number).max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        attributes=0,
    )
    segment.batches.append(later)
    segment.save()
    return Spot(segment.path, offset=offset)


@FAULTS.kind("transaction-empty", on=_TRANSACTIONS)
def marker_twice(ground: Ground) -> Spot:
    """A second marker ends a transaction that has already ended."""
    segment = _transactional(ground)
    marker = max(number for number, batch in enumerate(segment.views()) if batch.is_control)
    again = with_fields(segment.batches[marker], base_offset=segment.view(-1).next_offset)
    segment.batches.append(again)
    segment.save()
    return Spot(segment.path)


@FAULTS.kind("transaction-mixed", on=_TRANSACTIONS)
def transaction_broken_into(ground: Ground) -> Spot:
    """A producer writes a plain batch in the middle of its transaction; CRCs hold."""
    segment = _transactional(ground)
    _open_transaction(segment)
    last = segment.view(-1)
    segment.batches.append(
        _continued(
            segment,
            len(segment.batches) - 1,
            base_sequence=last.base_sequence + last.record_count,
            attributes=last.attributes & ~TRANSACTIONAL_FLAG,
        )
    )
    segment.save()
    return segment.spot(len(segment.batches) - 1)


@FAULTS.kind("coordinator-epoch", on=("topics",))
def coordinator_epoch_back(ground: Ground) -> Spot:
    """A marker has a lower coordinator epoch than an earlier one; CRCs hold."""
    segment = _transactional(ground)
    first, second, *_ = (number for number, batch in enumerate(segment.views()) if batch.is_control)
    segment.batches[first] = with_control(
        segment.batches[first], lambda marker: EndTxnMarker(marker.committed, coordinator_epoch=5), EndTxnMarker
    )
    segment.overwrite()
    return segment.spot(second)


def _change_marker(ground: Ground, **fields: bytes) -> Spot:
    """Change the record of a transaction's marker."""
    segment = _transactional(ground)
    number = ground.pick(number for number, batch in enumerate(segment.views()) if batch.is_control)
    spot = segment.spot(number)
    segment.batches[number] = change_record(segment.batches[number], 0, **fields)
    segment.save()
    return spot


@FAULTS.kind("control-value", on=_TRANSACTIONS)
def marker_cut(ground: Ground) -> Spot:
    """The value of a transaction's marker ends too early; the CRC holds."""
    return _change_marker(ground, value=b"\0\0\0")


@FAULTS.kind("control-key", on=_TRANSACTIONS)
def marker_without_type(ground: Ground) -> Spot:
    """The key of a transaction's marker ends before its type; the CRC holds."""
    return _change_marker(ground, key=b"\0\0")


def _producer_snapshot(ground: Ground) -> tuple[Path, list[ProducerStateEntry]]:
    """Return a producer snapshot that has entries."""
    path = ground.pick(path for path in ground.files("**/*.snapshot") if path.stat().st_size > 10)
    return path, list(read_producer_snapshot(path.read_bytes()))


@FAULTS.kind("producer-snapshot", on=_TRANSACTIONS)
def producer_snapshot_wrong(ground: Ground) -> Spot:
    """A producer snapshot has another sequence, offset, epoch or transaction than the log; the CRC holds."""
    path, entries = _producer_snapshot(ground)
    number = ground.below(len(entries))
    entry = entries[number]
    field = ground.pick(("last_sequence", "last_offset", "producer_epoch", "current_transaction_first_offset"))
    entries[number] = attrs.evolve(entry, **{field: getattr(entry, field) + 1})
    path.write_bytes(write_producer_snapshot(entries))
    return Spot(path)


@FAULTS.kind("file-crc", on=_TRANSACTIONS)
def producer_snapshot_flipped(ground: Ground) -> Spot:
    """A bit of a producer snapshot's entries is flipped."""
    path, _ = _producer_snapshot(ground)
    flip_bit(path, ground.between(10, path.stat().st_size), ground.below(8))
    return Spot(path)


@FAULTS.kind("file-format", "file-crc", on=_TRANSACTIONS)
def producer_snapshot_cut(ground: Ground) -> Spot:
    """A producer snapshot ends too early."""
    path, _ = _producer_snapshot(ground)
    path.write_bytes(path.read_bytes()[: ground.between(0, path.stat().st_size)])
    return Spot(path)
