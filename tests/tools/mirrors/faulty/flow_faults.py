# SPDX-License-Identifier: Apache-2.0
"""Faults of checkpoints, of groups' offsets, of heartbeats and of names, in files."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import attrs

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, UnknownCoordinatorRecord, read_coordinator_record
from raftlog.records.messages.mirrors.connect_records import ConfigType, read_connect_config
from raftlog.records.messages.mirrors.mirror_records import (
    Heartbeat,
    MirrorRecordType,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.tools.mirrors.naming.configured import CLASS_PROPERTY, IDENTITY_CLASS
from tests.tools.coordinators.made_records import coordinator_record
from tests.tools.mirrors.changed_mirror import log_bytes, with_contents
from tests.tools.mirrors.comparing.mirror_copies import Mirror, real_mirrors
from tests.tools.mirrors.comparing.planted_mirrors import copied_again
from tests.tools.mirrors.faulty.faulty_files import (
    CHECKPOINTS,
    COMMITS,
    FaultyFiles,
    Told,
    appended,
    joined_text,
    next_offset,
    records_in,
)
from tests.tools.mirrors.faulty.record_faults import AHEAD, GAP, ODD, checkpoint_of
from tests.tools.state.made_metadata import metadata_batch, record

METADATA: Final = "__cluster_metadata-0"
_DRAWN: Final = 500
_DRAWN_NAMES: Final = 100
_TOPICS: Final = {"orders": 2, "tx.orders": 1, "internal-looking": 1}
"""How many partitions each mirrored topic has."""
_NAMES: Final = ("orders", "x", "a.b", "heartbeats2", "\u0031_2")

Place = tuple[str, str, int | None, int | None]
"""A rule, what it is about, and an offset of the source and of the target; None for no offset."""
FlowFaults = Iterator[tuple[Callable[[], None], tuple[Place, ...]]]
"""What writes a fault, and what must be found then; one after the other."""


# Checkpoints and offsets of groups


def _ends(topic: str, partition: int) -> int:
    """Return the end of a partition and of its mirror: they have the same offsets."""
    return next(
        each.target.end_offset
        for each in real_mirrors()
        if (each.pair.target, each.pair.partition) == (topic, partition)
    )


def _with_checkpoint(files: FaultyFiles, number: int, **changes: Any) -> None:
    def change(record: RecordView) -> RecordView | Record:
        if record.offset != number:
            return record
        return with_contents(record, *write_mirror_record(attrs.evolve(checkpoint_of(record), **changes)))

    files.rewrite(files.target / CHECKPOINTS, change)


def _checkpoints(files: FaultyFiles) -> list[tuple[int, str, int, int, int]]:
    """Return number, source partition, both offsets, and the end, of each checkpoint."""
    found = []
    for each in records_in(files.target / CHECKPOINTS):
        read = checkpoint_of(each)
        name = f"{read.key.topic.removeprefix('A.')}-{read.key.partition}"
        end = _ends(read.key.topic, read.key.partition)
        found.append((each.offset, name, read.upstream_offset, read.downstream_offset, end))
    return found


def ahead_of_unread(files: FaultyFiles) -> FlowFaults:
    """A checkpoint is past a record that the group has not read, up to the target's end."""
    for number, name, upstream, _, end in _checkpoints(files):
        for downstream in range(upstream + 1, end + 1):
            write = partial(_with_checkpoint, files, number, downstream_offset=downstream)
            yield write, ((AHEAD, name, upstream, upstream),)


def ahead_of_the_end(files: FaultyFiles) -> FlowFaults:
    for number, name, upstream, _, end in _checkpoints(files):
        for downstream in range(end + 1, end + 1 + _DRAWN // 4):
            write = partial(_with_checkpoint, files, number, downstream_offset=downstream)
            yield write, ((AHEAD, name, upstream, upstream),)


def of_no_sync(files: FaultyFiles) -> FlowFaults:
    """A checkpoint that is neither at a sync nor just after one; all of its group's records come after it."""
    syncs = {f"{each.pair.source}-{each.pair.partition}": each.syncs for each in real_mirrors()}
    for number, name, upstream, _, end in _checkpoints(files):
        translations = {each.downstream + step for each in syncs[name] for step in (0, 1)}
        for downstream in range(min(upstream, end) + 1):
            if downstream not in translations:
                write = partial(_with_checkpoint, files, number, downstream_offset=downstream)
                yield write, ((ODD, name, upstream, downstream),)


def of_no_commit(files: FaultyFiles) -> FlowFaults:
    """A checkpoint of an offset that the group has never committed, so high that nothing is skipped."""
    committed = {(each.topic, each.partition, each.offset) for each in _commits(files)}
    for number, name, _, downstream, end in _checkpoints(files):
        topic, partition = name.rsplit("-", 1)
        for upstream in range(downstream, end + 1):
            if (topic, int(partition), upstream) not in committed:
                write = partial(_with_checkpoint, files, number, upstream_offset=upstream)
                yield write, ((ODD, name, upstream, downstream),)


@attrs.frozen
class _Commit:
    topic: str
    partition: int
    offset: int


def _commits(files: FaultyFiles) -> Iterator[_Commit]:
    for each in records_in(files.source / COMMITS):
        read = read_coordinator_record(CONSUMER_OFFSETS, each.key, each.value)
        if not isinstance(read, UnknownCoordinatorRecord) and read.key_type.name == "OffsetCommitKey" and read.value:
            yield _Commit(read.key["topic"], read.key["partition"], read.value["offset"])


def offset_alone(files: FaultyFiles) -> FlowFaults:
    """A group has an offset on the target, and never had a checkpoint."""
    for number in range(_DRAWN):
        chance = random.Random(f"alone {number}")
        name, partition = chance.choice([("orders", 0), ("orders", 1), ("tx.orders", 0), ("internal-looking", 0)])
        offset = chance.randrange(_ends(f"A.{name}", partition) + 5)
        key = {"group": f"group-{chance.randrange(1000)}", "topic": f"A.{name}", "partition": partition}
        yield partial(_commit, files, key, offset), ((ODD, f"{name}-{partition}", None, offset),)


def _commit(files: FaultyFiles, key: dict[str, Any], offset: int) -> None:
    contents = coordinator_record("OffsetCommit", key, {"offset": offset, "metadata": "", "commitTimestamp": 5})
    end = next_offset(files.target / COMMITS)
    files.write(files.target / COMMITS, appended(log_bytes([(end, Record(end, 5, *contents))], -1)))


# Heartbeats


def _shift_heartbeats(files: FaultyFiles, partitions: Iterable[Path], first: int, by_ms: int) -> None:
    def change(record: RecordView) -> RecordView | Record:
        read = read_mirror_record(MirrorRecordType.HEARTBEAT, record.key, record.value)
        if record.offset < first:
            return record
        assert isinstance(read, Heartbeat)
        key, value = write_mirror_record(attrs.evolve(read, timestamp=read.timestamp + by_ms))
        return Record(record.offset, record.timestamp + by_ms, key, value)

    for partition in partitions:
        files.rewrite(partition, change)


def _delays(first: int) -> Iterator[int]:
    """Yield some times in ms by which heartbeats come too late, for more than three intervals."""
    chance = random.Random(first)
    yield from (4_001, 10_000, 60_000, 86_400_000, *(chance.randrange(4_001, 10**9) for _ in range(9)))


def gap_there(files: FaultyFiles) -> FlowFaults:
    """The flow to the target stood still, at each heartbeat, for some times."""
    for first in range(1, len(records_in(files.target / "heartbeats-0"))):
        for by_ms in _delays(first):
            write = partial(_shift_heartbeats, files, [files.target / "heartbeats-0"], first, by_ms)
            yield write, ((GAP, "A -> B", None, first - 1),)


def gap_back(files: FaultyFiles) -> FlowFaults:
    """The flow back stood still: both the source and the mirror of its heartbeats show it."""
    for first in range(1, len(records_in(files.source / "heartbeats-0"))):
        for by_ms in _delays(first):
            both = files.source / "heartbeats-0", files.target / "A.heartbeats-0"
            yield partial(_shift_heartbeats, files, both, first, by_ms), ((GAP, "B -> A", None, first - 1),)


def restart_after_outage(files: FaultyFiles) -> FlowFaults:
    """The flow there stood still, and its task has mirrored heartbeats again: of the flow back there is no gap."""
    (real,) = (each for each in real_mirrors() if each.pair.source == "heartbeats")
    for at in range(1, len(real.target.rows)):
        for number in range(_DRAWN // 50):
            for planted in copied_again(real, at, random.Random(f"restart {at} {number}")):
                again = ("mirror.copied-again", "heartbeats-0", planted.source, at)
                yield partial(_restart, files, planted.mirror, real, at), (again, (GAP, "A -> B", None, at - 1))


def _restart(files: FaultyFiles, mirror: Mirror, real: Mirror, at: int) -> None:
    files.write_mirror(mirror, real)
    _shift_heartbeats(files, [files.target / "heartbeats-0"], at, 60_000)


# Names


def _add_topic(files: FaultyFiles, cluster: Path, number: int, name: str, partitions: int = 1) -> None:
    topic_id = UUID(int=1000 + number)
    fields = {"topicId": topic_id, "replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 0}
    records = [record("TopicRecord", name=name, topicId=topic_id)]
    records += [record("PartitionRecord", partitionId=number, **fields) for number in range(partitions)]
    metadata = cluster / METADATA
    files.write(metadata, appended(metadata_batch(next_offset(metadata), records, 1_800_000_000_000)))


def _keep_names(files: FaultyFiles, back: Mapping[str, str]) -> None:
    """Mirror all topics under their own names, and configure the flow back likewise."""
    identity = {CLASS_PROPERTY: IDENTITY_CLASS}
    _configure(files, files.target, "mm2-configs.A.internal-0", identity)
    _configure(files, files.source, "mm2-configs.B.internal-0", {**identity, **back})
    for number, (name, partitions) in enumerate(_TOPICS.items()):
        _add_topic(files, files.target, number, name, partitions)
        for partition in range(partitions):
            files.copy(files.target / f"A.{name}-{partition}", files.target / f"{name}-{partition}")


def cycle_by_name(files: FaultyFiles) -> FlowFaults:
    """A topic whose name has its own cluster's alias among its sources, on either cluster."""
    for number in range(_DRAWN_NAMES):
        chance = random.Random(f"cycle {number}")
        name = chance.choice(_NAMES)
        if chance.randrange(2):
            name = f"B.A.{name}"
            topics = [(files.source, name)]
        else:  # The source has it from the target, and the target from the source.
            topics = [(files.target, name), (files.source, f"B.{name}"), (files.target, f"A.B.{name}")]
            name = f"A.B.{name}"
        yield partial(_add_topics, files, topics), (("mirror.cycle", name, None, None),)


def _add_topics(files: FaultyFiles, topics: Iterable[tuple[Path, str]]) -> None:
    for number, (cluster, name) in enumerate(topics):
        _add_topic(files, cluster, number, name)


def _configure(files: FaultyFiles, cluster: Path, topic: str, changes: Mapping[str, str]) -> None:
    def change(record: RecordView) -> RecordView | Record:
        config = read_connect_config(record.key, record.value)
        if config.type is not ConfigType.CONNECTOR or config.name != "MirrorSourceConnector":
            return record
        value = {"properties": {**(config.properties or {}), **changes}}
        return with_contents(record, record.key, json.dumps(value).encode())

    files.rewrite(cluster / topic, change)


def cycle_by_flows(files: FaultyFiles) -> FlowFaults:
    """Two flows mirror the same names under the identity policy: any of the topics, or none."""
    for mask in range(1 << len(_TOPICS)):
        both = [name for number, name in enumerate(_TOPICS) if mask >> number & 1]
        write = partial(_keep_names, files, {"enabled": "true", "topics": "|".join(both) or "none"})
        yield write, tuple(("mirror.cycle", name, None, None) for name in both)


def flow_back_disabled(files: FaultyFiles) -> FlowFaults:
    """Likewise, but the flow back is configured and not enabled."""
    yield partial(_keep_names, files, {"topics": ".*"}), ()


FLOW_KINDS: Final[Mapping[str, Callable[[FaultyFiles], FlowFaults]]] = {
    "a checkpoint past a record that was not read": ahead_of_unread,
    "a checkpoint past the end": ahead_of_the_end,
    "a checkpoint of no sync": of_no_sync,
    "a checkpoint of no commit": of_no_commit,
    "a group's offset without a checkpoint": offset_alone,
    "a gap of heartbeats": gap_there,
    "a gap of heartbeats, flow back": gap_back,
    "a restart after an outage, heartbeats": restart_after_outage,
    "a cycle by name": cycle_by_name,
    "a cycle under identity": cycle_by_flows,
    "a flow back that is not enabled": flow_back_disabled,
}


def verdicts(files: FaultyFiles, kind: str, *, step: int = 1) -> Iterator[str]:
    """Plant faults of a kind, each or each of some, and yield ``found``, or what went wrong."""
    for write, expected in itertools.islice(FLOW_KINDS[kind](files), 0, None, step):
        with files.changes():
            write()
            found = files.findings()
        is_right = Counter(map(_place, found)) == Counter(expected)
        yield "found" if is_right else f"{expected}: {joined_text(found) or 'missed'}"


def _place(each: Told) -> Place:
    source, target = (None if place is None else place.start for place in (each.source, each.target))
    return each.rule, each.subject, source, target
