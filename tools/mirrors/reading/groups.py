# SPDX-License-Identifier: Apache-2.0
"""What the files of two clusters say of the consumer groups of mirrored topics, and of heartbeats."""

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, UnknownCoordinatorRecord, read_coordinator_record
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    Heartbeat,
    MirrorRecordType,
    read_mirror_record,
)
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following import GroupCheckpoint, GroupCommit, StoredHeartbeat
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.spark.rows.options import TopicPartition

_COMMIT: Final = "OffsetCommitKey"


@attrs.frozen
class FoundCommits:
    """What groups have committed in one cluster.

    Attributes:
        by_partition: by topic and partition, in the order of their topic.
        groups_with_gaps: those of whose commits some may be missing.
        is_there: whether the topic of the commits is.
    """

    by_partition: Mapping[TopicPartition, Sequence[GroupCommit]]
    groups_with_gaps: frozenset[str]
    is_there: bool


def find_commits(cluster: Cluster) -> FoundCommits:
    """Return the commits of all groups.

    Raises:
        StorageError: a segment cannot be read.
    """
    commits: dict[TopicPartition, list[GroupCommit]] = defaultdict(list)
    groups: dict[int, set[str]] = defaultdict(set)
    counts: dict[int, int] = defaultdict(int)
    for each in cluster.records(CONSUMER_OFFSETS):
        if isinstance(each, Finding):
            continue
        counts[each.partition] += 1
        try:
            record = read_coordinator_record(CONSUMER_OFFSETS, each.record.key, each.record.value)
        except DecodeError:
            continue
        if isinstance(record, UnknownCoordinatorRecord) or record.key_type.name != _COMMIT:
            continue
        committed = None if record.value is None else record.value["offset"]
        groups[each.partition].add(record.key["group"])
        place = commits[record.key["topic"], record.key["partition"]]
        place.append(GroupCommit(record.key["group"], committed, each.record.offset))
    gaps = {group for number, names in groups.items() if not _is_whole(cluster, number, counts) for group in names}
    return FoundCommits(commits, frozenset(gaps), CONSUMER_OFFSETS in cluster.topics)


def _is_whole(cluster: Cluster, number: int, counts: Mapping[int, int]) -> bool:
    log = cluster.log(CONSUMER_OFFSETS, number)
    return log is not None and log.rows.start_offset == 0 and log.end.offset == counts[number]


def find_checkpoints(target: Cluster, topic: str) -> tuple[dict[TopicPartition, list[GroupCheckpoint]], list[Finding]]:
    """Return the checkpoints of a flow, by topic and partition of the target, and what cannot be read.

    Raises:
        StorageError: a segment cannot be read.
    """
    found: dict[TopicPartition, list[GroupCheckpoint]] = defaultdict(list)
    problems: list[Finding] = []
    read_checkpoint = functools.partial(read_mirror_record, MirrorRecordType.CHECKPOINT)
    for each, read in target.decoded(topic, read_checkpoint, problems):
        if isinstance(read, Checkpoint):
            offsets = read.upstream_offset, read.downstream_offset
            checkpoint = GroupCheckpoint(read.key.group, *offsets, each.record.offset, each.record.timestamp)
            found[read.key.topic, read.key.partition].append(checkpoint)
    return found, problems


def find_heartbeats(cluster: Cluster, topic: str) -> tuple[list[StoredHeartbeat], list[OffsetRange]]:
    """Return the heartbeats of a topic, and the offsets between them that have no record. Others' records are none.

    Raises:
        StorageError: a segment cannot be read.
    """
    found: list[StoredHeartbeat] = []
    missing: list[OffsetRange] = []
    next_offset = None
    for each in cluster.records(topic):
        if isinstance(each, Finding):
            continue
        if next_offset is not None and each.record.offset > next_offset:
            missing.append(OffsetRange(next_offset, each.record.offset))
        next_offset = each.record.offset + 1
        try:
            read = read_mirror_record(MirrorRecordType.HEARTBEAT, each.record.key, each.record.value)
        except InvalidRecordError:
            continue
        if isinstance(read, Heartbeat):
            found.append(StoredHeartbeat(read.key, read.timestamp, each.record.offset))
    return found, missing
