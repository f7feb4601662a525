# SPDX-License-Identifier: Apache-2.0
"""Compares brokers' log directories with the metadata of a state, and says what each believes that the other does not.

All of it is a pure function of values. What was not given is never held against a broker: a replica counts as missing
only if all directories that its broker has registered were given, and, if it has registered none, the one that the
metadata has it in.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

import attrs

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.beliefs.difference_kinds import (
    BROKER_NOT_GIVEN,
    DIRECTORY_NOT_GIVEN,
    DIRECTORY_OF_OTHER,
    DIRECTORY_TWICE,
    FOREIGN_CLUSTER,
    KINDS,
    METADATA_AHEAD,
    NO_IDENTITY,
    REGISTERED_EARLIER,
    REGISTERED_LATER,
    UNKNOWN_BROKER,
    UNREAD,
    UNREGISTERED_DIRECTORY,
)
from raftlog.tools.beliefs.differences import BrokerDifference
from raftlog.tools.beliefs.given import GivenDirectory
from raftlog.tools.beliefs.missing_replicas import ReplicaCounts, missing_replicas, replica_counts
from raftlog.tools.beliefs.partition_directories import partition_differences
from raftlog.tools.image.tables import Tables
from raftlog.uuid_text import uuid_to_text

_ORDER: Final = {name: number for number, name in enumerate(KINDS)}


@attrs.frozen
class ComparedBroker:
    """A broker of the metadata, or one whose directories were given.

    Attributes:
        node_id: of the broker.
        is_registered, is_fenced: as the metadata says; a broker that is not registered is not fenced.
        registered_directories: how many directories its registration names.
        given_directories: how many of its directories were given.
        partitions: how many partitions' directories these have, without those that are set aside or deleted.
        replicas: how many replicas the metadata assigns to it.
        unjudged: how many of these may be in a directory that was not given, or whose id is not known.
    """

    node_id: int
    is_registered: bool
    is_fenced: bool
    registered_directories: int
    given_directories: int
    partitions: int
    replicas: int
    unjudged: int


@attrs.frozen
class BrokerComparison:
    """What brokers' directories and a state of the metadata believe of each other.

    Attributes:
        brokers: by node id.
        differences: by broker, then by kind, topic and partition.
    """

    brokers: Sequence[ComparedBroker]
    differences: Sequence[BrokerDifference]

    @property
    def is_harmful(self) -> bool:
        """Whether data would be set aside or be lost, a broker would not start, or one of both is older."""
        return any(each.kind.is_harmful for each in self.differences)


def compare(
    tables: Tables, cluster_id: str | None, directories: Sequence[GivenDirectory], log_end: int | None = None
) -> BrokerComparison:
    """Compare directories with a state.

    Args:
        tables: the state.
        cluster_id: of its cluster; None if that is not known.
        directories: of any brokers.
        log_end: where the given metadata logs end, exclusive; None if those of brokers are not to be compared with it.
    """
    own: dict[int, list[GivenDirectory]] = {}
    differences: list[BrokerDifference] = []
    for directory in directories:
        if directory.unread_files:
            seen = f"{', '.join(directory.unread_files)} cannot be read"
            differences.append(BrokerDifference(UNREAD, directory.node_id, seen, path=directory.path))
        problem = _identity_problem(directory, cluster_id)
        if problem is not None:
            differences.append(problem)
        elif directory.node_id is not None:
            own.setdefault(directory.node_id, []).append(directory)
    differences += missing_replicas(tables, own)
    differences += _other_owners(tables, own)
    for directory in (each for of_node in own.values() for each in of_node):
        if log_end is not None and directory.metadata_end > log_end:
            seen = f"its {METADATA_TOPIC} ends at offset {directory.metadata_end}, and the given log at {log_end}"
            differences.append(BrokerDifference(METADATA_AHEAD, directory.node_id, seen, path=directory.path))
    for node_id, of_node in own.items():
        differences += _directory_differences(tables, node_id, of_node)
        differences += partition_differences(tables, node_id, of_node)
    brokers = _compared_brokers(tables, own)
    differences += _not_given(tables, brokers, own)
    return BrokerComparison(brokers, sorted(differences, key=_sort_key))


def _sort_key(difference: BrokerDifference) -> tuple[int, int, str, int, str]:
    node_id = -1 if difference.node_id is None else difference.node_id
    topic, number = difference.topic or "", -1 if difference.partition is None else difference.partition
    return node_id, _ORDER[difference.kind.name], topic, number, difference.path or ""


def _identity_problem(directory: GivenDirectory, cluster_id: str | None) -> BrokerDifference | None:
    if directory.node_id is None:
        return BrokerDifference(NO_IDENTITY, None, "no node.id", path=directory.path)
    if None not in (cluster_id, directory.cluster_id) and cluster_id != directory.cluster_id:
        seen = f"cluster.id {directory.cluster_id}, and the metadata is of {cluster_id}"
        return BrokerDifference(FOREIGN_CLUSTER, directory.node_id, seen, path=directory.path)
    return None


def _other_owners(tables: Tables, own: dict[int, list[GivenDirectory]]) -> Iterator[BrokerDifference]:
    """Yield the directories whose ids another broker has registered, or has a given directory of."""
    owners: dict[UUID, dict[int, str]] = {}
    for node_id, of_node in own.items():
        for each in of_node:
            if each.directory_id is not None:
                owners.setdefault(each.directory_id, {})[node_id] = each.path
    for node_id, broker in tables.brokers.items():
        for directory_id in broker.directories:
            owners.setdefault(directory_id, {})[node_id] = "its registration"
    for node_id, of_node in own.items():
        for each in of_node:
            found = {} if each.directory_id is None else owners[each.directory_id]
            others = [f"broker {node} in {where}" for node, where in sorted(found.items()) if node != node_id]
            if others and each.directory_id is not None:
                seen = f"directory.id {uuid_to_text(each.directory_id)}, as {', '.join(others)}"
                yield BrokerDifference(DIRECTORY_OF_OTHER, node_id, seen, path=each.path)


def _directory_differences(
    tables: Tables, node_id: int, directories: Sequence[GivenDirectory]
) -> Iterator[BrokerDifference]:
    """Yield what a broker's registration and its directories say differently."""
    broker = tables.brokers.get(node_id)
    if broker is None and any(each.partitions or each.broker_epoch is not None for each in directories):
        yield BrokerDifference(UNKNOWN_BROKER, node_id, f"node.id {node_id}", path=directories[0].path)
    first: dict[object, GivenDirectory] = {}
    for each in directories:
        known = None if each.directory_id is None else first.setdefault(each.directory_id, each)
        if known is not None and known is not each:
            seen = f"directory.id {uuid_to_text(known.directory_id)}, as {known.path}" if known.directory_id else ""
            yield BrokerDifference(DIRECTORY_TWICE, node_id, seen, path=each.path)
        if broker is not None and broker.directories and each.directory_id not in broker.directories:
            seen = "no directory.id" if each.directory_id is None else f"directory.id {uuid_to_text(each.directory_id)}"
            yield BrokerDifference(UNREGISTERED_DIRECTORY, node_id, seen, path=each.path)
        yield from _epoch_difference(-1 if broker is None else broker.epoch, node_id, each)


def _epoch_difference(registered: int, node_id: int, directory: GivenDirectory) -> Iterator[BrokerDifference]:
    epoch = directory.broker_epoch
    if epoch is None or epoch in (-1, registered):
        return
    known = f"the metadata has {registered}" if registered >= 0 else "the metadata has no registration"
    kind = REGISTERED_LATER if epoch > registered else REGISTERED_EARLIER
    yield BrokerDifference(kind, node_id, f"broker epoch {epoch}, {known}", path=directory.path)


def _compared_brokers(tables: Tables, own: dict[int, list[GivenDirectory]]) -> list[ComparedBroker]:
    counts = replica_counts(tables, own)
    found = []
    for node_id in sorted({*tables.brokers, *counts, *own}):
        broker, directories = tables.brokers.get(node_id), own.get(node_id, ())
        current = sum(partition.is_current for each in directories for partition in each.partitions)
        is_fenced = broker is not None and broker.fenced
        registered = 0 if broker is None else len(broker.directories)
        replicas = counts.get(node_id, ReplicaCounts())
        numbers = (registered, len(directories), current, *replicas)
        found.append(ComparedBroker(node_id, broker is not None, is_fenced, *numbers))
    return found


def _not_given(
    tables: Tables, brokers: Sequence[ComparedBroker], own: dict[int, list[GivenDirectory]]
) -> Iterator[BrokerDifference]:
    """Yield brokers and directories that the metadata names and nobody gave."""
    for each in brokers:
        if each.node_id not in own:
            yield BrokerDifference(BROKER_NOT_GIVEN, each.node_id, f"{each.replicas} replicas")
            continue
        broker, given = tables.brokers.get(each.node_id), {directory.directory_id for directory in own[each.node_id]}
        for directory_id in () if broker is None else broker.directories:
            if directory_id not in given:
                yield BrokerDifference(DIRECTORY_NOT_GIVEN, each.node_id, f"directory.id {uuid_to_text(directory_id)}")
