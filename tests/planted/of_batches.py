# SPDX-License-Identifier: Apache-2.0
"""Whole batches that are lost, doubled, out of place, or of another epoch."""

import zlib

import attrs

from raftlog.records.files.checkpoint_files import PartitionOffset, write_offset_checkpoint
from raftlog.records.messages.control import (
    ControlRecordType,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    control_key,
)
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, TOPICS, Ground
from tests.planted.of_bytes import last_log
from tests.planted.segments import (
    Segment,
    change_record,
    control_batch,
    control_batch_with,
    control_values,
    data_batch,
    in_the_middle,
    records_of,
    with_base_offset,
    with_control,
    with_epoch,
    with_fields,
    with_records,
)

FAULTS = Faults("batches")

_ALL = (*QUORUMS, *TOPICS)


@FAULTS.kind("offset-gap", on=QUORUMS)
def lost_batch(ground: Ground) -> Spot:
    """A data batch of a metadata log is missing; its indexes fit the remaining batches."""
    segment, index = data_batch(ground)
    following = segment.view(index + 1).base_offset
    del segment.batches[index]
    segment.save()
    return Spot(segment.path, segment.position(index), following)


@FAULTS.kind("offset-order", on=_ALL)
def doubled_batch(ground: Ground) -> Spot:
    """A log has a batch twice."""
    segment = Segment(ground.log())
    index = in_the_middle(ground, segment)
    segment.batches.insert(index + 1, segment.batches[index])
    segment.save(without=index + 1)
    return segment.spot(index + 1)


@FAULTS.kind("offset-order", on=_ALL)
def swapped_batches(ground: Ground) -> Spot:
    """Two batches that follow each other have changed places."""
    segment = Segment(ground.log())
    index = ground.between(1, len(segment.batches) - 2)
    segment.batches[index], segment.batches[index + 1] = segment.batches[index + 1], segment.batches[index]
    segment.save(without=index)
    return Spot(segment.path)


@FAULTS.kind("offset-order", "offset-gap", on=QUORUMS)
def stale_batch(ground: Ground) -> Spot:
    """A batch is replaced by an earlier one: a write went to the wrong position."""
    segment, index = data_batch(ground)
    segment.batches[index] = segment.batches[ground.below(index)]
    segment.save(without=index)
    return segment.spot(index)


@FAULTS.kind("offset-order", on=_ALL)
def offsets_too_low(ground: Ground) -> Spot:
    """All batches from one in a log's last segment on have offsets that are one too low; its indexes fit them."""
    segment = last_log(ground, 4)
    index = in_the_middle(ground, segment)
    batches = segment.views()[index:]
    segment.batches[index:] = [with_base_offset(bytes(batch.buffer), batch.base_offset - 1) for batch in batches]
    segment.save(without=index)
    return segment.spot(index)


@FAULTS.kind("epoch-order", on=QUORUMS)
def epoch_back(ground: Ground) -> Spot:
    """A batch has a lower epoch than its neighbours."""
    return _of_epoch(ground, -1)


@FAULTS.kind("epoch-order", on=_ALL)
def epoch_ahead(ground: Ground) -> Spot:
    """A batch has a higher epoch than its neighbours."""
    return _of_epoch(ground, ground.between(1, 5))


def _of_epoch(ground: Ground, change: int) -> Spot:
    segment = Segment(ground.log())
    index = ground.pick(
        index
        for index, batch in enumerate(segment.views()[1:-1], 1)
        if segment.view(index + 1).partition_leader_epoch == batch.partition_leader_epoch
    )
    segment.batches[index] = with_epoch(segment.batches[index], segment.view(index).partition_leader_epoch + change)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("epoch-order", on=QUORUMS)
def run_of_another_epoch(ground: Ground) -> Spot:
    """Several batches in a row have another epoch than their neighbours: a later one, or an earlier one."""
    segment = Segment(ground.log(12))
    length = ground.between(2, 7)
    index = ground.pick(
        index
        for index in range(1, len(segment.batches) - length)
        if len({view.partition_leader_epoch for view in segment.views()[index - 1 : index + length + 1]}) == 1
    )
    epoch = segment.view(index).partition_leader_epoch + ground.pick((-1, 1, 7))
    run = segment.batches[index : index + length]
    segment.batches[index : index + length] = [with_epoch(batch, epoch) for batch in run]
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("epoch-negative", on=QUORUMS)
def epoch_negative(ground: Ground) -> Spot:
    """A batch of a metadata log has epoch -1."""
    segment, index = data_batch(ground)
    segment.batches[index] = with_epoch(segment.batches[index], -1)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("epoch-opening", on=("static",))
def epoch_without_leader(ground: Ground) -> Spot:
    """The last batches of a metadata log have a new epoch that no LeaderChange opens."""
    ground.alone()
    segment = Segment(ground.file("*/*/*.log"))
    opening = max(index for index, batch in enumerate(segment.views()) if batch.is_control)
    index = ground.between(opening + 1, len(segment.batches))
    epoch = segment.view(index).partition_leader_epoch + 1
    segment.batches[index:] = [with_epoch(batch, epoch) for batch in segment.batches[index:]]
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("epoch-leader", on=QUORUMS)
def second_leader(ground: Ground) -> Spot:
    """A data batch after a LeaderChange is replaced by a second LeaderChange of the epoch, with another leader."""
    ground.alone()
    segment, opening = control_batch_with(ground, LeaderChangeMessage)
    index = ground.pick(index for index in range(opening + 1, opening + 9) if segment.view(index).record_count == 1)
    change = control_values(segment.batches[opening])[0]
    assert isinstance(change, LeaderChangeMessage)
    other = next(voter.id for voter in change.granting_voters if voter.id != change.leader_id)
    forged = [attrs.evolve(change, leader_id=other)]
    segment.batches[index] = control_batch(segment.batches[index], forged)
    segment.save()
    return segment.spot(index)


@FAULTS.kind("leader-elected", on=QUORUMS)
def leader_without_majority(ground: Ground) -> Spot:
    """A LeaderChange says that only the leader voted for it, of three voters or four; the CRC holds."""
    ground.alone()
    segment, index = control_batch_with(ground, LeaderChangeMessage)
    spot = segment.spot(index)
    segment.batches[index] = with_control(
        segment.batches[index],
        lambda value: attrs.evolve(value, granting_voters=(Voter(value.leader_id),)),
        LeaderChangeMessage,
    )
    segment.save()
    return spot


@FAULTS.kind("leader-voted", on=QUORUMS)
def leader_without_its_own_vote(ground: Ground) -> Spot:
    """A LeaderChange says that all voters but the leader granted their votes; the CRC holds."""
    ground.alone()
    segment, index = control_batch_with(ground, LeaderChangeMessage)
    spot = segment.spot(index)

    def change(value: LeaderChangeMessage) -> LeaderChangeMessage:
        granting = tuple(voter for voter in value.voters if voter.id != value.leader_id)
        return attrs.evolve(value, granting_voters=granting)

    segment.batches[index] = with_control(segment.batches[index], change, LeaderChangeMessage)
    segment.save()
    return spot


@FAULTS.kind("leader-voted", on=QUORUMS)
def leader_that_is_no_voter(ground: Ground) -> Spot:
    """A LeaderChange of an earlier epoch names a leader that is none of the voters; the CRC holds."""
    kept = ground.alone()
    segments = {path: Segment(path) for path in (kept / METADATA).glob("*.log")}
    found = [
        (batch.base_offset, path, index)
        for path, segment in segments.items()
        for index, batch in enumerate(segment.views())
        if batch.is_control
        and any(isinstance(value, LeaderChangeMessage) for value in control_values(segment.batches[index]))
    ]
    _, path, index = ground.pick(sorted(found)[:-1])
    segment = segments[path]
    spot = segment.spot(index)
    leader_id = ground.between(7, 99)
    segment.batches[index] = with_control(
        segment.batches[index], lambda value: attrs.evolve(value, leader_id=leader_id), LeaderChangeMessage
    )
    segment.save()
    return spot


@FAULTS.kind("leader-voters", on=DYNAMIC)
def leader_of_other_voters(ground: Ground) -> Spot:
    """A LeaderChange names a voter that is not in the voter set; the CRC holds."""
    ground.alone()
    segment, index = control_batch_with(ground, LeaderChangeMessage)
    spot = segment.spot(index)

    def change(value: LeaderChangeMessage) -> LeaderChangeMessage:
        others = (*value.voters[:-1], Voter(9))
        return LeaderChangeMessage(value.leader_id, others, value.granting_voters)

    segment.batches[index] = with_control(segment.batches[index], change, LeaderChangeMessage)
    segment.save()
    return spot


@FAULTS.kind("control-place", on=QUORUMS)
def control_out_of_place(ground: Ground) -> Spot:
    """A data batch of a metadata log is replaced by the header or footer of a snapshot."""
    ground.alone()
    segment, index = data_batch(ground, record_count=1)
    value = ground.pick((0, 1))
    record = SnapshotHeaderRecord(0) if value else SnapshotFooterRecord()
    segment.batches[index] = control_batch(segment.batches[index], [record])
    segment.save()
    return segment.spot(index)


@FAULTS.kind("control-type", on=QUORUMS)
def control_of_unknown_type(ground: Ground) -> Spot:
    """A data batch of a metadata log is replaced by a control record of an unknown type."""
    return _control_with(ground, key=b"\0\0\0\x2a")


@FAULTS.kind("control-key", on=QUORUMS)
def control_key_cut(ground: Ground) -> Spot:
    """A control record's key has three bytes; the CRC holds."""
    return _control_with(ground, key=control_key(ControlRecordType.LEADER_CHANGE)[:3])


@FAULTS.kind("control-version", on=QUORUMS)
def control_of_other_version(ground: Ground) -> Spot:
    """The key of a LeaderChange has an unknown version; the CRC holds."""
    ground.alone()
    segment, index = control_batch_with(ground, LeaderChangeMessage)
    key = b"\0\1" + control_key(ControlRecordType.LEADER_CHANGE)[2:]
    segment.batches[index] = change_record(segment.batches[index], 0, key=key)
    segment.save()
    return segment.spot(index)


def _control_with(ground: Ground, key: bytes) -> Spot:
    """Put a control record with another key in place of a data batch."""
    ground.alone()
    segment, index = data_batch(ground, record_count=1)
    made = control_batch(segment.batches[index], [SnapshotFooterRecord()])
    segment.batches[index] = change_record(made, 0, key=key)
    segment.save()
    return segment.spot(index)


@FAULTS.kind("control-value", on=QUORUMS)
def control_value_cut(ground: Ground) -> Spot:
    """A control record's value ends too early; the CRC holds."""
    ground.alone()
    segment, index = control_batch_with(ground, LeaderChangeMessage)
    spot = segment.spot(index)
    records = records_of(segment.batches[index])
    cut = records[0]._replace(value=(records[0].value or b"")[:3])
    segment.batches[index] = with_records(segment.batches[index], [cut, *records[1:]])
    segment.save()
    return spot


@FAULTS.kind("batch-magic", on=QUORUMS)
def legacy_batch_in_raft(ground: Ground) -> Spot:
    """A data batch of a metadata log is replaced by a valid message of magic 1."""
    segment, index = data_batch(ground, record_count=1)
    spot = segment.spot(index)
    offset = segment.view(index).base_offset.to_bytes(8, "big")
    body = b"\1\0" + segment.view(index).max_timestamp.to_bytes(8, "big") + b"\0\0\0\1k\0\0\0\1v"
    crc = zlib.crc32(body).to_bytes(4, "big")
    segment.batches[index] = offset + (len(body) + 4).to_bytes(4, "big") + crc + body
    segment.save(without=index)
    return spot


@FAULTS.kind("offset-missing", on=("topics",))
def batch_missing_in_a_topic(ground: Ground) -> Spot:
    """A topic that was never compacted lacks a batch, and the batch has no producer whose sequences would show it."""
    return _without_a_batch(ground)


@FAULTS.kind("offset-compacted", on=("topics",))
def batch_compacted(ground: Ground) -> Spot:
    """A topic that was compacted, according to the cleaner's checkpoint, lacks a batch."""
    cleaned = ground.root / "n1" / "cleaner-offset-checkpoint"
    cleaned.write_bytes(write_offset_checkpoint([PartitionOffset("c-none", 0, 300)]))
    return _without_a_batch(ground)


def _without_a_batch(ground: Ground) -> Spot:
    segment = Segment(ground.file("*/c-none-0/*.log"))
    index = in_the_middle(ground, segment)
    offset = segment.view(index).base_offset
    del segment.batches[index]
    segment.save()
    return Spot(segment.path, segment.position(index), offset)


@FAULTS.kind("timestamp-back", on=(*QUORUMS, "topics"))
def timestamp_back(ground: Ground) -> Spot:
    """A batch is a minute earlier than the one before it, as if a leader's clock was behind; the CRC holds."""
    segment, index = data_batch(ground, 1, ground.data_logs())
    ends = [int(path.name[:20]) for path in segment.path.parent.glob("*.checkpoint")]
    if segment.view(index).next_offset in ends:
        index += 1
    seen = segment.view(index)
    times = (seen.base_timestamp, seen.max_timestamp)
    base, last = (time - (times[1] - times[0]) - 60_000 for time in times)
    segment.batches[index] = with_fields(segment.batches[index], base_timestamp=base, max_timestamp=last)
    segment.save()
    return segment.spot(index)
