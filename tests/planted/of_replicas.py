# SPDX-License-Identifier: Apache-2.0
"""Replicas that contradict each other, each of them sound in itself."""

import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint, write_leader_epoch_checkpoint
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.records.files.quorum_state import read_quorum_state, write_quorum_state
from raftlog.records.messages.control import LeaderChangeMessage, Voter, VotersRecord
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, Ground
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
)

FAULTS = Faults("replicas")

_ANOTHER = "dCVhb5d_SfOEuy3K6wxI3g"
"""A directory id that nothing has."""
_VOTERS = ("n2", "n3")
"""Log directories of the grounds' quorums that have a log up to its end."""


@FAULTS.kind("replica-batch", on=QUORUMS)
def batch_of_other_value(ground: Ground) -> Spot:
    """A batch on one replica has the value of another one; the CRC holds."""
    segment, index = data_batch(ground, record_count=1)
    value = records_of(segment.batches[index])[0].value
    data = [batch for batch in segment.views() if not batch.is_control]
    values = (record.value or b"" for batch in data for record in batch.records())
    segment.batches[index] = change_record(
        segment.batches[index], 0, value=ground.pick(each for each in values if each != value)
    )
    segment.save()
    offset = segment.view(index).base_offset
    others = [path for path in ground.files(f"*/{METADATA}/*.log") if path != segment.path and _has(path, offset)]
    return Spot(segment.path, offset=offset, other_path=others[0] if len(others) == 1 else None)


def _has(log: Path, offset: int) -> bool:
    views = Segment(log).views()
    return bool(views) and views[0].base_offset <= offset < views[-1].next_offset


@FAULTS.kind("offset-order", "offset-gap", "segment-start", on=QUORUMS)
def batch_renumbered(ground: Ground) -> Spot:
    """A batch on one of several replicas has another base offset, up to 20 below or above its own."""
    segment = Segment(ground.log(1, f"*/{METADATA}/*.log"))
    index = ground.below(len(segment.batches))
    position, own = segment.position(index), segment.view(index).base_offset
    offset = ground.pick(each for each in range(max(0, own - 20), own + 21) if each != own)
    segment.batches[index] = with_base_offset(segment.batches[index], offset)
    segment.overwrite()
    return Spot(segment.path, position, offset)


def on_replicas(ground: Ground, change: Callable[[bytes], bytes], least: int, most: int) -> Spot:
    """Change a data batch in the same way on so many replicas of a metadata log, as if its leader had written it so."""
    logs = ground.files(f"*/{METADATA}/*.log")
    holders: dict[int, list[tuple[Path, int]]] = {}
    for log in logs:
        for index, batch in enumerate(Segment(log).views()[1:-1], 1):
            if not batch.is_control:
                holders.setdefault(batch.base_offset, []).append((log, index))
    offset = ground.pick(offset for offset, held in holders.items() if len(held) >= least)
    held = sorted(ground.shuffled(holders[offset])[:most])
    for log, index in held:
        segment = Segment(log)
        segment.batches[index] = change(segment.batches[index])
        segment.save()
    first, index = held[0]
    return Spot(first, Segment(first).position(index), offset)


def _with_a_record_too_many(batch: bytes) -> bytes:
    return with_fields(batch, record_count=RecordBatch(batch).record_count + 1)


@FAULTS.kind("batch-missing", on=QUORUMS)
def record_count_wrong_on_two_replicas(ground: Ground) -> Spot:
    """A batch's record count is one too high on two replicas; the CRC holds."""
    return on_replicas(ground, _with_a_record_too_many, 2, 2)


@FAULTS.kind("batch-missing", on=QUORUMS)
def record_count_wrong_on_all_replicas(ground: Ground) -> Spot:
    """A batch's record count is one too high on all replicas; the CRC holds."""
    return on_replicas(ground, _with_a_record_too_many, 2, 9)


@FAULTS.kind("replica-leader", on=QUORUMS)
def leader_of_other_id(ground: Ground) -> Spot:
    """One replica has a different leader in an epoch than the other replicas."""
    segment, index = control_batch_with(ground, LeaderChangeMessage, f"n[34]/{METADATA}/*.log")
    spot = Spot(segment.path, offset=segment.view(index).base_offset)

    def change(value: LeaderChangeMessage) -> LeaderChangeMessage:
        others = [voter.id for voter in value.granting_voters if voter.id != value.leader_id]
        return attrs.evolve(value, leader_id=others[0])

    segment.batches[index] = with_control(segment.batches[index], change, LeaderChangeMessage)
    segment.overwrite()
    state = segment.path.with_name("quorum-state")
    known = read_quorum_state(state.read_bytes())
    if known.leader_epoch == segment.view(index).partition_leader_epoch:
        leader = control_values(segment.batches[index])[0]
        assert isinstance(leader, LeaderChangeMessage)
        state.write_bytes(write_quorum_state(attrs.evolve(known, leader_id=leader.leader_id)))
    return spot


def _fork(ground: Ground, below: int = 1 << 62) -> tuple[Segment, int]:
    """Let a replica go its own way from a batch in the middle of its last segment on: there it is of a new epoch."""
    log = max((ground.root / ground.pick(_VOTERS) / METADATA).glob("*.log"))
    segment = Segment(log)
    opening = max((number for number, batch in enumerate(segment.views()) if batch.is_control), default=0)
    index = ground.pick(
        number
        for number, batch in enumerate(segment.views())
        if number > opening
        and number < len(segment.batches) - 1
        and batch.record_count == 1
        and batch.base_offset < below
    )
    epoch = segment.view(index).partition_leader_epoch + 1
    voters = _voters(log)
    leader = LeaderChangeMessage(voters[-1].id, voters, voters)
    segment.batches[index] = with_epoch(control_batch(segment.batches[index], [leader]), epoch)
    segment.batches[index + 1 :] = [with_epoch(batch, epoch) for batch in segment.batches[index + 1 :]]
    segment.save()
    _report_of(log.parent, EpochEntry(epoch, segment.view(index).base_offset), leader.leader_id)
    return segment, index


def _voters(log: Path) -> tuple[Voter, ...]:
    """Return the voters at the end of a log."""
    found = [
        value
        for path in sorted(log.parent.glob("*.log"))
        for batch in Segment(path).batches
        if RecordBatch(batch).is_control
        for value in control_values(batch)
        if isinstance(value, VotersRecord)
    ]
    return tuple(Voter(voter.id) for voter in found[-1].voters)


def _report_of(log: Path, epoch: EpochEntry, leader_id: int) -> None:
    """Write a new epoch to the small files beside a log, and take away what was written of the old one."""
    checkpoint = log / "leader-epoch-checkpoint"
    entries = read_leader_epoch_checkpoint(checkpoint.read_bytes())
    checkpoint.write_bytes(write_leader_epoch_checkpoint([*entries, epoch]))
    for state in log.parent.parent.glob(f"*/{METADATA}/quorum-state"):  # Who voted knows the epoch.
        known = read_quorum_state(state.read_bytes())
        led = attrs.evolve(known, leader_epoch=epoch.epoch, leader_id=leader_id, voted_id=-1, voted_directory_id=None)
        state.write_bytes(write_quorum_state(led))
    for snapshot in log.glob("*.checkpoint"):
        if int(snapshot.name[:20]) > epoch.start_offset:
            snapshot.unlink()


@FAULTS.kind("replica-forked", "replica-lost", on=QUORUMS)
def replica_forked(ground: Ground) -> Spot:
    """A replica forks from a batch on: it has an epoch there that the other replicas do not have."""
    segment, index = _fork(ground)
    return Spot(segment.path, offset=segment.view(index).base_offset)


@FAULTS.kind("replica-forked", on=QUORUMS)
def replica_forked_above_all_snapshots(ground: Ground) -> Spot:
    """A replica forks from a batch on, and no snapshot reaches beyond that batch."""
    segment, index = _fork(ground)
    offset = segment.view(index).base_offset
    for snapshot in ground.files(f"*/{METADATA}/*.checkpoint"):
        if int(snapshot.name[:20]) > offset:
            snapshot.unlink()
    return Spot(segment.path, offset=offset)


@FAULTS.kind("replica-behind", on=QUORUMS)
def shorter_replica(ground: Ground) -> Spot:
    """A replica was stopped some batches before the other replicas."""
    log = max((ground.root / ground.pick(_VOTERS) / METADATA).glob("*.log"))
    segment = Segment(log)
    segment.batches = segment.batches[: -ground.between(1, 4)]
    segment.save()
    end_offset = segment.view(-1).next_offset
    for path in (*log.parent.glob("*.snapshot"), *log.parent.glob("*.checkpoint")):
        if int(path.name[:20]) > end_offset:
            path.unlink()
    return Spot(log, offset=end_offset)


@FAULTS.kind("committed-lost", on=QUORUMS)
def voters_cut_below_a_snapshot(ground: Ground) -> Spot:
    """All voters lack the last records of a snapshot that another node has; their files are sound."""
    removed = {"dynamic": "n1", "wire": "n2"}.get(ground.root.name)
    voters = [directory for directory in ground.root.iterdir() if directory.name not in {"n101", removed}]
    snapshot = max(ground.files(f"n101/{METADATA}/*.checkpoint"), key=lambda path: path.name)
    end = int(snapshot.name[:20]) - ground.between(1, 9)
    for directory in voters:
        _cut(directory / METADATA, end)
    logs = [max((directory / METADATA).glob("*.log")) for directory in voters]
    return Spot(min(logs, key=lambda log: (Segment(log).view(-1).next_offset, log)), offset=None)


@FAULTS.kind("committed-lost", on=("dynamic", "static"))
def voters_cut_below_a_topic(ground: Ground) -> Spot:
    """All voters lack the record of a topic of which a broker has a partition; their files are sound."""
    removed = {"dynamic": "n1"}.get(ground.root.name)
    if removed is not None:
        shutil.rmtree(ground.root / removed)
    offset = _act_on_last_topic(ground)
    logs = []
    for directory in ground.root.iterdir():
        if directory.name != "n101":
            _cut(directory / METADATA, offset - ground.below(4))
            logs.append(max((directory / METADATA).glob("*.log")))
    return Spot(min(logs, key=lambda log: (Segment(log).view(-1).next_offset, log)), offset=None)


@FAULTS.kind("replica-lost", on=("static",))
def replica_forked_below_a_topic(ground: Ground) -> Spot:
    """A replica has a later epoch in place of the record of a topic of which a broker has a partition."""
    offset = _act_on_last_topic(ground)
    segment, index = _fork(ground, below=offset)
    _cut(segment.path.parent, segment.view(index).next_offset)
    return Spot(segment.path, offset=segment.view(index).base_offset)


def _act_on_last_topic(ground: Ground) -> int:
    """Let a broker act on the last topic, forget later snapshots, and return the offset of the topic's record."""
    broker = ground.root / "n101"
    name, topic_id, offset = max(_topics(broker / METADATA), key=lambda topic: topic[2])
    for path in ground.files(f"*/{METADATA}/*.checkpoint"):
        if int(path.name[:20]) > offset - 8:
            path.unlink()
    partition = broker / f"{name}-0"
    partition.mkdir()
    metadata = write_partition_metadata(PartitionMetadata(0, topic_id))
    (partition / FileKind.PARTITION_METADATA.value).write_bytes(metadata)
    (partition / FileKind.LEADER_EPOCH_CHECKPOINT.value).write_bytes(write_leader_epoch_checkpoint([]))
    (partition / "00000000000000000000.log").write_bytes(b"")
    return offset


def _topics(log: Path) -> Iterator[tuple[str, uuid.UUID, int]]:
    """Yield the topics that a log has created, with the offsets of their records."""
    for path in log.glob("*.log"):
        for batch in Segment(path).views():
            for record in () if batch.is_control else batch.records():
                message = read_metadata_record(record.value)
                if message.type.name == "TopicRecord":
                    yield message.message["name"], message.message["topicId"], record.offset


def _cut(log: Path, end: int) -> None:
    """Let a log end at an offset, or at the end of the batch before it, with all files beside it."""
    for path in sorted(log.glob("*.log")):
        segment = Segment(path)
        segment.batches = [
            batch for batch, view in zip(segment.batches, segment.views(), strict=True) if view.next_offset <= end
        ]
        if segment.batches:
            segment.save()
        else:
            for beside in log.glob(f"{path.stem}.*"):
                beside.unlink()
    for path in (*log.glob("*.snapshot"), *log.glob("*.checkpoint")):
        if int(path.name[:20]) > end:
            path.unlink()


def _second_replica(ground: Ground, partition: str = "c-none-0") -> Segment:
    """Give another broker a replica of each partition, and return the first segment of its replica of one."""
    return Segment(_second_directory(ground, node="2") / partition / "00000000000000000000.log")


@FAULTS.kind("replica-batch", on=("topics",))
def topic_batch_of_other_value(ground: Ground) -> Spot:
    """A batch on one of a topic's two replicas has another value; the CRC holds."""
    segment = _second_replica(ground)
    index = in_the_middle(ground, segment)
    value = records_of(segment.batches[index])[0].value or b""
    segment.batches[index] = change_record(segment.batches[index], 0, value=bytes(len(value)))
    segment.save()
    other = ground.root / "n1" / segment.path.relative_to(ground.root / "n2")
    return Spot(segment.path, offset=segment.view(index).base_offset, other_path=other)


@FAULTS.kind("replica-behind", on=("topics",))
def shorter_topic_replica(ground: Ground) -> Spot:
    """One of a topic's two replicas was stopped some batches before the other."""
    segment = _second_replica(ground)
    segment.batches = segment.batches[: -ground.between(1, 4)]
    segment.save()
    for path in (*segment.path.parent.glob("*.snapshot"), *(ground.root / "n2").glob("*-offset-checkpoint")):
        path.unlink()
    return Spot(segment.path, offset=segment.view(-1).next_offset)


@FAULTS.kind("replica-forked", on=("topics",))
def topic_replica_forked(ground: Ground) -> Spot:
    """One of a topic's two replicas forks from a batch on: it has an epoch there that the other does not have."""
    segment = _second_replica(ground)
    index = in_the_middle(ground, segment)
    entry = EpochEntry(segment.view(index).partition_leader_epoch + 1, segment.view(index).base_offset)
    changed = (change_record(batch, 0, value=b"of another leader") for batch in segment.batches[index:])
    segment.batches[index:] = [with_epoch(batch, entry.epoch) for batch in changed]
    segment.save()
    checkpoint = segment.path.with_name("leader-epoch-checkpoint")
    entries = read_leader_epoch_checkpoint(checkpoint.read_bytes())
    checkpoint.write_bytes(write_leader_epoch_checkpoint([*entries, entry]))
    other = ground.root / "n1" / segment.path.relative_to(ground.root / "n2")
    return Spot(segment.path, offset=entry.start_offset, other_path=other)


@FAULTS.kind("replica-lost", on=("topics",))
def topic_replica_without_a_batch(ground: Ground) -> Spot:
    """A replica lacks a batch of records without keys, and was compacted according to the cleaner's checkpoint."""
    spot = _lacking_a_batch(ground, "c-none-0")
    (ground.root / "n2" / "cleaner-offset-checkpoint").write_text("0\n1\nc-none 0 5\n")
    return spot


@FAULTS.kind("topic-id", on=("topics",))
def topic_replica_of_other_id(ground: Ground) -> Spot:
    """One of a topic's two replicas belongs to a deleted topic of the same name."""
    path = _second_replica(ground).path.with_name("partition.metadata")
    other = ground.root / "n1" / path.relative_to(ground.root / "n2")
    path.write_text(re.sub("topic_id: .*", f"topic_id: {_ANOTHER}", path.read_text()))
    return Spot(path, other_path=other)


@FAULTS.kind("majority-missing", on=DYNAMIC)
def replicas_of_a_minority(ground: Ground) -> Spot:
    """The log directories of most voters are not among those audited."""
    voter = ground.pick(_VOTERS)
    for directory in ground.root.iterdir():
        if directory.name not in {voter, "n101"}:
            shutil.rmtree(directory)
    return Spot(ground.root / voter, other_path=ground.root / "n101")


@FAULTS.kind("cluster-twice", on=QUORUMS)
def cluster_of_the_same_id(ground: Ground) -> Spot:
    """Another cluster's only controller has the same cluster id, and its log directory is audited with the rest."""
    cluster = re.search("^cluster.id=.*", ground.file("*/meta.properties").read_text(), flags=re.MULTILINE)
    assert cluster is not None
    other = GOLDEN / "mirror/data" / ground.pick(("n1", "n2"))
    added = ground.root / "n999"
    shutil.copytree(other / METADATA, added / METADATA)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(other / name, added)
    meta = added / "meta.properties"
    meta.write_text(re.sub("^cluster.id=.*", cluster[0], meta.read_text(), flags=re.MULTILINE))
    return Spot(added / METADATA / "00000000000000000000.log", offset=0)


@FAULTS.kind("topic-id", on=("topics",))
def topics_of_another_cluster(ground: Ground) -> Spot:
    """A broker has the same topics under other ids: it belongs to another cluster, which has the same cluster id."""
    second = _second_directory(ground, node="2")
    files = sorted(second.glob("*/partition.metadata"))
    for number, path in enumerate(files):
        topic_id = uuid_to_text(uuid.UUID(int=number + 7))
        path.write_text(re.sub("topic_id: .*", f"topic_id: {topic_id}", path.read_text()))
    return Spot(files[0], other_path=ground.root / "n1" / files[0].relative_to(second))


def _second_directory(ground: Ground, **changes: str) -> Path:
    """Copy the log directory of a broker to another one, whose meta.properties says something else."""
    first = ground.root / "n1"
    second = Path(shutil.copytree(first, ground.root / "n2"))
    meta = second / "meta.properties"
    text = re.sub("^directory.id=.*", f"directory.id={_ANOTHER}", meta.read_text(), flags=re.MULTILINE)
    for key, value in changes.items():
        text = re.sub(f"^{key}.id=.*", f"{key}.id={value}", text, flags=re.MULTILINE)
    meta.write_text(text)
    shutil.rmtree(second / METADATA)
    return second


@FAULTS.kind("partition-twice", on=("topics",))
def partition_twice(ground: Ground) -> Spot:
    """One of a broker's partitions is in two of its log directories."""
    second = _second_directory(ground)
    kept = ground.pick(path for path in second.iterdir() if path.is_dir())
    for path in second.iterdir():
        if path.is_dir() and path != kept:
            shutil.rmtree(path)
        elif path.name.endswith("-offset-checkpoint"):
            path.unlink()
    log = min(kept.glob("*.log"))
    return Spot(log, other_path=ground.root / "n1" / kept.name / log.name)


def _lacking_a_batch(ground: Ground, partition: str) -> Spot:
    """Give a broker a replica of a partition that lacks a batch in its middle."""
    segment = _second_replica(ground, partition)
    index = in_the_middle(ground, segment)
    offset = segment.view(index).base_offset
    del segment.batches[index]
    segment.save()
    return Spot(segment.path, offset=offset)


@FAULTS.kind("replica-compacted", on=("topics",))
def replica_compacted(ground: Ground) -> Spot:
    """A broker's replica of a topic lacks a batch of keyed records, as if it was compacted earlier."""
    return _lacking_a_batch(ground, "__consumer_offsets-0")


@FAULTS.kind("offset-missing", on=("topics",))
def replica_without_a_batch(ground: Ground) -> Spot:
    """A broker's replica of a topic lacks a batch of records without keys, which compaction does not remove."""
    return _lacking_a_batch(ground, "c-none-0")
