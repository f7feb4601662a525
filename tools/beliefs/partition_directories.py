# SPDX-License-Identifier: Apache-2.0
"""Compares each partition's directory of a broker with the metadata: whether Kafka keeps it, and where it should be."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from raftlog.records.files.file_names import DirectoryState, FileKind
from raftlog.tools.beliefs.difference_kinds import (
    DELETED_WANTED,
    EPOCH_ABOVE,
    EPOCH_UNCONFIRMED,
    FUTURE_ASSIGNED,
    NO_TOPIC_ID,
    NOT_ASSIGNED,
    OTHER_DIRECTORY,
    OTHER_NAME,
    RECREATED_TOPIC,
    STRAY_WANTED,
    SWAPPED_NAME,
    TWO_COPIES,
    UNKNOWN_PARTITION,
    UNKNOWN_TOPIC,
    UNREAD,
    DifferenceKind,
)
from raftlog.tools.beliefs.differences import BrokerDifference
from raftlog.tools.beliefs.given import GivenDirectory, GivenPartition, PartitionKey
from raftlog.tools.image.entries import PartitionEntry
from raftlog.tools.image.tables import Tables
from raftlog.uuid_text import uuid_to_text

RESERVED_IDS: Final = 100
"""The uuids below it are ids of no directory: 0 for one that was not told, 1 for none yet, 2 for a lost one.

Source: DirectoryId.
"""
_SET_ASIDE: Final = {DirectoryState.STRAY: STRAY_WANTED, DirectoryState.DELETE: DELETED_WANTED}


def assigned_directory(entry: PartitionEntry, node_id: int) -> UUID | None:
    """Return the directory in which the metadata has a broker's replica; None if it names none."""
    index = entry.replicas.index(node_id)
    directory_id = entry.directories[index] if index < len(entry.directories) else UUID(int=0)
    return None if directory_id.int < RESERVED_IDS else directory_id


def current_directories(
    tables: Tables, node_id: int, directories: Sequence[GivenDirectory]
) -> dict[PartitionKey, list[GivenPartition]]:
    """Return the replicas of a broker that Kafka keeps, by partition.

    A copy in the making counts if it is in the directory in which the metadata has the replica, since Kafka makes it
    the replica. A replica whose topic cannot be read is not among them.
    """
    found: dict[PartitionKey, list[GivenPartition]] = {}
    for directory in directories:
        for each in directory.partitions:
            entry = _entry(tables, each)
            if entry is None or each.key is None or node_id not in entry.replicas or _other_name(tables, each):
                continue
            is_assigned = assigned_directory(entry, node_id) == directory.directory_id is not None
            if each.is_current or (each.name.state is DirectoryState.FUTURE and is_assigned):
                found.setdefault(each.key, []).append(each)
    return found


def partition_differences(
    tables: Tables, node_id: int, directories: Sequence[GivenDirectory]
) -> Iterator[BrokerDifference]:
    """Yield what the metadata says differently of the partitions' directories of one broker."""
    current = current_directories(tables, node_id, directories)
    for directory in directories:
        for each in directory.partitions:
            if each.is_unread or each.unread_files:
                names = ", ".join(each.unread_files) or FileKind.PARTITION_METADATA.value
                yield _difference(UNREAD, node_id, each, f"{names} cannot be read")
            if each.is_unread:
                continue
            if each.name.state in _SET_ASIDE:
                yield from _set_aside(tables, node_id, each, current)
                continue
            stray = _stray(tables, node_id, each)
            if stray is not None:
                yield stray
                continue
            entry = _entry(tables, each)
            if entry is not None:
                yield from _kept(tables, node_id, directory, each, entry)
    yield from _two_copies(tables, node_id, current)


def _entry(tables: Tables, partition: GivenPartition) -> PartitionEntry | None:
    key = partition.key
    return None if key is None else tables.partitions.get(key[0], {}).get(key[1])


def _other_name(tables: Tables, partition: GivenPartition) -> str | None:
    """Return the name of the topic that a current directory has the id of, if the directory has another name."""
    topic = None if partition.topic_id is None else tables.topics.get(partition.topic_id)
    return None if topic is None or topic.name == partition.name.topic else topic.name


def _assigned_topic(tables: Tables, node_id: int, partition: GivenPartition) -> UUID | None:
    """Return the topic of the replica that a directory is named after, if the broker has that replica.

    Kafka opens the directory for that replica, and compares the ids.
    """
    topic_id = tables.topic_ids.get(partition.name.topic)
    entry = None if topic_id is None else tables.partitions.get(topic_id, {}).get(partition.name.partition)
    return topic_id if entry is not None and node_id in entry.replicas else None


def _stray(tables: Tables, node_id: int, partition: GivenPartition) -> BrokerDifference | None:
    """Return why Kafka would set a directory aside, by the rules of ``LogManager#isStrayKraftReplica``; or None."""
    topic_id, name = partition.topic_id, partition.name
    if topic_id is None:
        return _difference(NO_TOPIC_ID, node_id, partition, "no topic id")
    own_id = f"topic id {uuid_to_text(topic_id)}"
    if topic_id not in tables.topics:
        other = tables.topic_ids.get(name.topic)
        if other is None:
            return _difference(UNKNOWN_TOPIC, node_id, partition, own_id)
        return _difference(RECREATED_TOPIC, node_id, partition, f"{own_id}, the metadata has {uuid_to_text(other)}")
    entry = _entry(tables, partition)
    if entry is None:
        count = len(tables.partitions[topic_id])
        return _difference(UNKNOWN_PARTITION, node_id, partition, f"the topic has {count} partitions")
    if node_id not in entry.replicas:
        replicas = ",".join(map(str, entry.replicas))
        return _difference(NOT_ASSIGNED, node_id, partition, f"the replicas are {replicas}")
    return None


def _kept(
    tables: Tables, node_id: int, directory: GivenDirectory, partition: GivenPartition, entry: PartitionEntry
) -> Iterator[BrokerDifference]:
    """Yield the differences of a directory that Kafka keeps."""
    other = _other_name(tables, partition)
    if other is not None:
        owner = _assigned_topic(tables, node_id, partition)
        kind, more = (OTHER_NAME, "") if owner is None else (SWAPPED_NAME, f", {uuid_to_text(owner)} has this name")
        yield _difference(kind, node_id, partition, f"the topic id is that of {other}{more}")
    if partition.leader_epoch > entry.leader_epoch:
        file = partition.epoch_path.rpartition("/")[2]
        seen = f"leader epoch {partition.leader_epoch} in {file}, the metadata has {entry.leader_epoch}"
        yield _difference(EPOCH_ABOVE, node_id, partition, seen)
    if partition.unconfirmed_epoch > entry.leader_epoch:
        file = partition.unconfirmed_path.rpartition("/")[2]
        known = f"leader-epoch-checkpoint has {partition.leader_epoch}, the metadata {entry.leader_epoch}"
        seen = f"leader epoch {partition.unconfirmed_epoch} in {file}, {known}"
        yield _difference(EPOCH_UNCONFIRMED, node_id, partition, seen)
    assigned = assigned_directory(entry, node_id)
    if assigned is None or directory.directory_id is None:
        return
    if partition.name.state is DirectoryState.FUTURE:
        if assigned == directory.directory_id:
            yield _difference(FUTURE_ASSIGNED, node_id, partition, f"directory.id {uuid_to_text(assigned)}")
    elif assigned != directory.directory_id:
        seen = f"directory.id {uuid_to_text(directory.directory_id)}, the metadata has {uuid_to_text(assigned)}"
        yield _difference(OTHER_DIRECTORY, node_id, partition, seen)


def _set_aside(
    tables: Tables, node_id: int, partition: GivenPartition, current: dict[PartitionKey, list[GivenPartition]]
) -> Iterator[BrokerDifference]:
    """Yield the difference of a directory that Kafka has renamed, if the metadata has that replica and nothing else."""
    entry = _entry(tables, partition)
    if entry is not None and node_id in entry.replicas and partition.key not in current:
        kind = _SET_ASIDE[partition.name.state]
        seen = f"the metadata has topic id {uuid_to_text(partition.topic_id)}" if partition.topic_id else ""
        yield _difference(kind, node_id, partition, seen)


def _two_copies(
    tables: Tables, node_id: int, current: dict[PartitionKey, list[GivenPartition]]
) -> Iterator[BrokerDifference]:
    for found in current.values():
        first = next((each for each in found if each.is_current), None)
        for each in found:
            if first is not None and each.is_current and each is not first:
                yield _difference(TWO_COPIES, node_id, each, f"it is also in {first.path}")


def _difference(kind: DifferenceKind, node_id: int, partition: GivenPartition, seen: str) -> BrokerDifference:
    name = partition.name
    return BrokerDifference(kind, node_id, seen, partition.path, name.topic, partition.topic_id, name.partition)
