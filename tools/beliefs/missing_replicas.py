# SPDX-License-Identifier: Apache-2.0
"""Finds the replicas that the metadata assigns to brokers and that none of their directories has."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from raftlog.records.files.file_names import DirectoryState
from raftlog.tools.beliefs.difference_kinds import (
    REPLICA_ASIDE,
    REPLICA_BEHIND,
    REPLICA_EMPTY,
    REPLICA_LOST,
    REPLICA_UNCLEAN,
    DifferenceKind,
)
from raftlog.tools.beliefs.differences import BrokerDifference
from raftlog.tools.beliefs.given import GivenDirectory, GivenPartition, PartitionKey
from raftlog.tools.beliefs.partition_directories import assigned_directory, current_directories
from raftlog.tools.image.entries import PartitionEntry
from raftlog.tools.image.tables import Tables

_Own = Mapping[int, Sequence[GivenDirectory]]
"""The directories that were given, by broker."""


def missing_replicas(tables: Tables, own: _Own) -> Iterator[BrokerDifference]:
    """Yield the replicas of given brokers that are certainly not there.

    Args:
        tables: the state.
        own: the directories of each broker.
    """
    holders = {node_id: _Holder(tables, node_id, directories) for node_id, directories in own.items()}
    for topic_id, of_topic in tables.partitions.items():
        for number, entry in of_topic.items():
            key = topic_id, number
            missing = [each for each in entry.replicas if each in holders and holders[each].misses(key, entry)]
            for node_id in missing:
                yield _difference(tables, holders, key, entry, node_id)


class ReplicaCounts(NamedTuple):
    """How many replicas the metadata assigns to a broker.

    Attributes:
        assigned: all of them.
        unjudged: those that are in no given directory, and may be in one that was not given.
    """

    assigned: int = 0
    unjudged: int = 0


def replica_counts(tables: Tables, own: _Own) -> dict[int, ReplicaCounts]:
    """Return the counts of each broker to which the metadata assigns replicas.

    Args:
        tables: the state.
        own: the directories of each broker; of one without any, no replica is counted as unjudged.
    """
    holders = {node_id: _Holder(tables, node_id, directories) for node_id, directories in own.items()}
    assigned: Counter[int] = Counter()
    unjudged: Counter[int] = Counter()
    for topic_id, of_topic in tables.partitions.items():
        for number, entry in of_topic.items():
            assigned.update(entry.replicas)
            for node_id in entry.replicas:
                holder = holders.get(node_id)
                unjudged[node_id] += holder is not None and holder.is_unjudged((topic_id, number), entry)
    return {node_id: ReplicaCounts(count, unjudged[node_id]) for node_id, count in assigned.items()}


class _Holder:
    """A broker with the replicas that it has."""

    def __init__(self, tables: Tables, node_id: int, directories: Sequence[GivenDirectory]) -> None:
        self._node_id = node_id
        self._has = set(current_directories(tables, node_id, directories))
        partitions = [each for directory in directories for each in directory.partitions]
        self._unread = {_place(each) for each in partitions if each.is_unread and each.is_current}
        self._aside = {each.key for each in partitions if each.name.state is not DirectoryState.FUTURE}
        self._aside_names = {
            _place(each) for each in partitions if each.is_current and each.topic_id not in tables.topics
        }
        self._names = {topic_id: topic.name for topic_id, topic in tables.topics.items()}
        given = {each.directory_id for each in directories}
        broker = tables.brokers.get(node_id)
        registered = set() if broker is None else set(broker.directories)
        self._given: set[UUID | None] = given
        self._all_given = bool(directories) and given >= registered
        self._is_complete = self._all_given and bool(registered)

    def has(self, key: PartitionKey) -> bool:
        """Whether it has the replica, or has a directory of its name that cannot be read."""
        return key in self._has or (self._names.get(key[0]), key[1]) in self._unread

    def misses(self, key: PartitionKey, entry: PartitionEntry) -> bool:
        """Whether a replica that is assigned to it is certainly in none of its directories."""
        if self.has(key):
            return False
        assigned = assigned_directory(entry, self._node_id)
        return self._is_complete or (self._all_given and assigned is not None and assigned in self._given)

    def has_aside(self, key: PartitionKey) -> bool:
        """Whether it has the records of a replica in a directory that Kafka does not take for it.

        It was set aside, or has the name of another topic, another id or none.
        """
        return not self.has(key) and (key in self._aside or (self._names.get(key[0]), key[1]) in self._aside_names)

    def is_unjudged(self, key: PartitionKey, entry: PartitionEntry) -> bool:
        """Whether a replica that is assigned to it may be in a directory that was not given."""
        return not self.has(key) and not self.misses(key, entry)


def _difference(
    tables: Tables, holders: Mapping[int, _Holder], key: PartitionKey, entry: PartitionEntry, node_id: int
) -> BrokerDifference:
    in_sync = entry.isr or entry.eligible_leader_replicas or entry.last_known_elr or entry.replicas
    with_records = [each for each in entry.replicas if each in holders and holders[each].has(key)]
    aside = [each for each in in_sync if each in holders and holders[each].has_aside(key)]
    kind = REPLICA_BEHIND if node_id not in in_sync else REPLICA_EMPTY
    if node_id in in_sync and all(each in holders and holders[each].misses(key, entry) for each in in_sync):
        kind = _kind_of_lost(is_aside=bool(aside), is_elsewhere=bool(with_records))
    seen = f"replicas {_ids(entry.replicas)}, in sync {_ids(in_sync)}, found on {_ids(with_records)}"
    seen += f", in other directories on {_ids(aside)}" if aside else ""
    return BrokerDifference(kind, node_id, seen, None, tables.topics[key[0]].name, *key)


def _kind_of_lost(*, is_aside: bool, is_elsewhere: bool) -> DifferenceKind:
    if is_aside:
        return REPLICA_ASIDE
    return REPLICA_UNCLEAN if is_elsewhere else REPLICA_LOST


def _place(partition: GivenPartition) -> tuple[str, int]:
    return partition.name.topic, partition.name.partition


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "none"
