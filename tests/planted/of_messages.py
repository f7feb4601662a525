# SPDX-License-Identifier: Apache-2.0
"""Metadata records with sound batches and invalid messages."""

from collections.abc import Collection
from typing import Any

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import RawRecord
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from tests.planted.fault import Faults, Spot
from tests.planted.ground import METADATA, QUORUMS, Ground
from tests.planted.segments import Segment, change_record, control_batch_with, data_batch, forget_snapshots, records_of

FAULTS = Faults("messages")

_FRAME_VERSION, _TYPE, _VERSION = 0, 1, 2
"""Where a value has them, in a byte each."""
_WITH_STRUCTS = frozenset({0, 14, 27})
"""Types of messages with an array of structs, which are not read by another version's layout."""


@FAULTS.kind("message-field", on=QUORUMS)
def message_cut(ground: Ground) -> Spot:
    """The value of a metadata record ends in the middle of its message; the CRC holds."""
    segment, index, number = _chosen(ground, f"*/{METADATA}/*.log")
    value = _value(segment, index, number)
    return _changed(segment, index, number, value[: ground.between(3, len(value))])


@FAULTS.kind("message-field", on=QUORUMS)
def message_with_a_rest(ground: Ground) -> Spot:
    """The value of a metadata record has bytes after its message; the CRC holds."""
    segment, index, number = _chosen(ground, f"*/{METADATA}/*.log")
    return _changed(segment, index, number, _value(segment, index, number) + bytes(ground.between(1, 9)))


@FAULTS.kind("message-version", on=QUORUMS)
def message_of_a_later_version(ground: Ground) -> Spot:
    """A metadata record has a version that does not exist yet; the CRC holds."""
    return _with_byte(ground, _VERSION, ground.between(20, 100), _WITH_STRUCTS)


@FAULTS.kind("message-frame", on=QUORUMS)
def message_of_an_unknown_type(ground: Ground) -> Spot:
    """A metadata record has an unknown type; the CRC holds."""
    return _with_byte(ground, _TYPE, ground.between(60, 128))


@FAULTS.kind("message-frame", on=QUORUMS)
def message_of_another_frame(ground: Ground) -> Spot:
    """The value of a metadata record starts with another frame version; the CRC holds."""
    return _with_byte(ground, _FRAME_VERSION, ground.pick((0, 2, 7)))


@FAULTS.kind("message-field", on=("dynamic", "wire"))
def message_cut_in_a_snapshot(ground: Ground) -> Spot:
    """The value of a metadata record in a snapshot ends in the middle of its message; the CRC holds."""
    segment, index, number = _chosen(ground, f"*/{METADATA}/*.checkpoint", keeps_all=True)
    value = _value(segment, index, number)
    return _changed(segment, index, number, value[: ground.between(3, len(value))])


@FAULTS.kind("record-attributes", on=QUORUMS)
def record_with_attributes(ground: Ground) -> Spot:
    """A metadata record, or a control record, has a bit in its attributes; the CRC holds."""
    ground.alone()
    segment, index = data_batch(ground) if ground.below(4) else control_batch_with(ground, LeaderChangeMessage)
    number = ground.below(segment.view(index).record_count)
    segment.batches[index] = change_record(segment.batches[index], number, attributes=1 << ground.below(8))
    segment.save()
    return attrs.evolve(segment.spot(index), offset=segment.view(index).base_offset + number)


@FAULTS.kind("controller-caps", on=QUORUMS)
def controller_that_caps(ground: Ground) -> Spot:
    """A controller that is no voter is registered with a lower metadata.version than the voters; the CRC holds."""
    kept = ground.alone() / METADATA
    registrations = [
        read.message
        for path in (*kept.glob("*.log"), *kept.glob("*.checkpoint"))
        for stored in Segment(path).batches
        if not RecordBatch(stored).is_control
        for record in records_of(stored)
        if (read := read_metadata_record(record.value)).type.name == "RegisterControllerRecord"
    ]
    message: dict[str, Any] = {**registrations[0], "controllerId": ground.between(7, 99)}
    message["features"] = [each | {"maxSupportedVersion": 7} for each in message["features"]]
    segment, index = data_batch(ground, record_count=1, from_offset=50)
    forget_snapshots(kept, segment.view(index).base_offset)
    record = write_metadata_record(metadata_record("RegisterControllerRecord", message))
    return _changed(segment, index, 0, record)


def _with_byte(ground: Ground, at: int, byte: int, types: Collection[int] = range(128)) -> Spot:
    segment, index, number = _chosen(ground, f"*/{METADATA}/*.log", types)
    value = _value(segment, index, number)
    return _changed(segment, index, number, value[:at] + bytes([byte]) + value[at + 1 :])


def _chosen(
    ground: Ground, pattern: str, types: Collection[int] = range(128), *, keeps_all: bool = False
) -> tuple[Segment, int, int]:
    """Return a file of batches, and the numbers of a batch and of a record in it, whose message is of one of types."""
    if not keeps_all:
        ground.alone()
    segments = {path: Segment(path) for path in ground.files(pattern)}
    found = [
        (path, index, number)
        for path, segment in segments.items()
        for index, batch in enumerate(segment.views())
        if not batch.is_control and batch.attributes & 7 == 0
        for number, record in enumerate(records_of(segment.batches[index]))
        if _type(record) in types
    ]
    path, index, number = ground.pick(found)
    return segments[path], index, number


def _type(record: RawRecord) -> int:
    return (record.value or bytes(2))[_TYPE]


def _value(segment: Segment, index: int, number: int) -> bytes:
    return records_of(segment.batches[index])[number].value or b""


def _changed(segment: Segment, index: int, number: int, value: bytes) -> Spot:
    spot = Spot(segment.path, segment.position(index), segment.view(index).base_offset + number)
    segment.batches[index] = change_record(segment.batches[index], number, value=value)
    if segment.path.suffix == ".log":
        segment.save()
    else:
        segment.overwrite()
    return spot
