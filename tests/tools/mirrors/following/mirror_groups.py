# SPDX-License-Identifier: Apache-2.0
"""The groups and heartbeats of the real pair of clusters, where the mirror of ``orders`` has the source's offsets."""

from typing import Final

from raftlog.records.messages.coordinator import UnknownCoordinatorRecord, read_coordinator_record
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    Heartbeat,
    MirrorRecordType,
    OffsetSync,
    read_mirror_record,
)
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.following import GroupCheckpoint, GroupCommit, GroupEvidence, StoredHeartbeat
from tests.records.messages.mirrors.mirror_corpus import A, B, records_of
from tests.tools.mirrors.comparing.made_mirrors import Entry
from tests.tools.mirrors.following.made_groups import NaiveMirror

ENDS: Final = (320, 150)
"""Of both partitions, on both sides."""


def corpus_syncs(partition: int, until_ms: int | None = None) -> tuple[Sync, ...]:
    """Return the syncs of a partition of ``orders`` that were written up to a time, in ms since the Unix epoch."""
    found = []
    for each in records_of(A, "mm2-offset-syncs.B.internal"):
        sync = read_mirror_record(MirrorRecordType.OFFSET_SYNC, each.key, each.value)
        assert isinstance(sync, OffsetSync)
        is_early = until_ms is None or each.timestamp <= until_ms
        if (sync.key.topic, sync.key.partition) == ("orders", partition) and is_early:
            found.append(Sync(sync.upstream_offset, sync.downstream_offset, 2, each.offset))
    return tuple(found)


def _checkpoints(partition: int) -> tuple[GroupCheckpoint, ...]:
    found = []
    for each in records_of(B, "A.checkpoints.internal"):
        checkpoint = read_mirror_record(MirrorRecordType.CHECKPOINT, each.key, each.value)
        assert isinstance(checkpoint, Checkpoint)
        if (checkpoint.key.topic, checkpoint.key.partition) == ("A.orders", partition):
            offsets = checkpoint.upstream_offset, checkpoint.downstream_offset
            found.append(GroupCheckpoint(checkpoint.key.group, *offsets, each.offset, each.timestamp))
    return tuple(found)


def _commits(node: str, topic: str, partition: int) -> tuple[GroupCommit, ...]:
    found = []
    for each in records_of(node, "__consumer_offsets"):
        key, value = (None if part is None else bytes(part) for part in (each.key, each.value))
        record = read_coordinator_record("__consumer_offsets", key, value)
        if isinstance(record, UnknownCoordinatorRecord) or record.key_type.name != "OffsetCommitKey":
            continue
        if (record.key["topic"], record.key["partition"]) == (topic, partition):
            committed = None if record.value is None else record.value["offset"]
            found.append(GroupCommit(record.key["group"], committed, each.offset))
    return tuple(found)


def corpus_evidence(partition: int) -> tuple[GroupEvidence, NaiveMirror]:
    """Return what both clusters say of the groups of a partition of ``orders``, and its records."""
    source = {each.offset: each.timestamp for each in records_of(A, "orders", partition)}
    target = {each.offset: each.timestamp for each in records_of(B, "A.orders", partition)}
    assert list(source.items()) == list(target.items())
    evidence = GroupEvidence(
        OffsetRange(0, ENDS[partition]),
        OffsetRange(0, ENDS[partition]),
        corpus_syncs(partition),
        _checkpoints(partition),
        _commits(A, "orders", partition),
        _commits(B, "A.orders", partition),
        newest_source_ms=max(source.values()),
        newest_target_ms=max(target.values()),
    )
    entries = tuple(Entry(offset, offset) for offset in source)
    return evidence, NaiveMirror(entries, entries)


def corpus_heartbeats(node: str, topic: str) -> list[StoredHeartbeat]:
    """Return the heartbeats of a topic."""
    found = []
    for each in records_of(node, topic):
        heartbeat = read_mirror_record(MirrorRecordType.HEARTBEAT, each.key, each.value)
        assert isinstance(heartbeat, Heartbeat)
        found.append(StoredHeartbeat(heartbeat.key, heartbeat.timestamp, each.offset))
    return found
