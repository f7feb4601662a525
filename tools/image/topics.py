# SPDX-License-Identifier: Apache-2.0
"""Replays the records of topics, partitions and configs.

Source: TopicsDelta, TopicDelta, PartitionRegistration#merge, ConfigurationsDelta.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from raftlog.errors import ReplayRefusedError
from raftlog.tools.image.entries import PartitionEntry, Topic
from raftlog.tools.image.tables import Resource, Tables
from raftlog.uuid_text import ZERO_UUID, uuid_to_text

Message = Mapping[str, Any]

TOPIC_RESOURCE: Final = 2
"""Kafka's number of the owner of a topic's configs."""
MIGRATING: Final = ZERO_UUID
"""The directory of a replica whose broker did not tell it, as before metadata.version 3.7-IV2."""
_Id = TypeVar("_Id", int, UUID)
_NO_LEADER_CHANGE: Final = -2
_NO_STATE_CHANGE: Final = -1
_RECOVERY_STATES: Final = frozenset({0, 1})


def topic(tables: Tables, message: Message) -> None:
    """Create a topic without partitions. One with the same id is replaced."""
    topic_id, name = message["topicId"], message["name"]
    before = tables.partitions.get(topic_id)
    if before is not None:
        before.clear()
    tables.topics[topic_id] = Topic(name, topic_id)
    tables.partitions[topic_id] = tables.inner("partitions", topic_id)
    tables.topic_ids[name] = topic_id


def remove_topic(tables: Tables, message: Message) -> None:
    """Remove a topic with its partitions and its configs.

    Raises:
        ReplayRefusedError: there is no such topic.
    """
    topic_id = message["topicId"]
    gone = tables.topics.get(topic_id)
    if gone is None:
        raise ReplayRefusedError(f"no topic has the id {uuid_to_text(topic_id)}")
    tables.partitions[topic_id].clear()
    del tables.partitions[topic_id]
    tables.topics.pop(topic_id)
    tables.topic_ids.pop(gone.name, None)
    configs = tables.configs.pop((TOPIC_RESOURCE, gone.name), None)
    if configs is not None:
        configs.clear()


def partition(tables: Tables, message: Message) -> None:
    """Register a partition, whatever was registered before.

    Raises:
        ReplayRefusedError: its topic is not there, or the record contradicts itself.
    """
    of_topic = _partitions(tables, message)
    shared = tables.shared
    replicas = _shared(shared, message["replicas"])
    directories = message["directories"] or (MIGRATING,) * len(replicas)
    _check_count(directories, replicas)
    of_topic[message["partitionId"]] = PartitionEntry(
        replicas,
        _shared(shared, message["isr"]),
        tuple(message["removingReplicas"]),
        tuple(message["addingReplicas"]),
        message["leader"],
        _checked_state(message["leaderRecoveryState"]),
        message["leaderEpoch"],
        message["partitionEpoch"],
        _shared(shared, directories),
        tuple(message["eligibleLeaderReplicas"] or ()),
        tuple(message["lastKnownElr"] or ()),
    )


def change_partition(tables: Tables, message: Message) -> None:
    """Change a partition: what the record leaves out stays.

    Raises:
        ReplayRefusedError: the partition is not there, or the record contradicts itself.
    """
    number = message["partitionId"]
    of_topic = _partitions(tables, message)
    before = of_topic.get(number)
    if before is None:
        raise ReplayRefusedError(f"topic {tables.topics[message['topicId']].name} has no partition {number}")
    replicas, isr, removing, adding, leader, state, leader_epoch, partition_epoch, directories, elr, last_elr = before
    shared = tables.shared
    if message["leader"] != _NO_LEADER_CHANGE:
        leader, leader_epoch = message["leader"], leader_epoch + 1
    if message["replicas"] is not None:
        replicas = _shared(shared, message["replicas"])
    if message["directories"] is not None or message["replicas"] is not None:
        directories = _changed_directories(tables, message, directories, replicas)
    if message["leaderRecoveryState"] != _NO_STATE_CHANGE:
        state = _checked_state(message["leaderRecoveryState"])
    of_topic[number] = PartitionEntry(
        replicas,
        isr if message["isr"] is None else _shared(shared, message["isr"]),
        removing if message["removingReplicas"] is None else _shared(shared, message["removingReplicas"]),
        adding if message["addingReplicas"] is None else _shared(shared, message["addingReplicas"]),
        leader,
        state,
        leader_epoch,
        partition_epoch + 1,
        directories,
        elr if message["eligibleLeaderReplicas"] is None else _shared(shared, message["eligibleLeaderReplicas"]),
        last_elr if message["lastKnownElr"] is None else _shared(shared, message["lastKnownElr"]),
    )


def clear_elr(tables: Tables, message: Message) -> None:
    """Forget the eligible leader replicas of a topic, or of all; partitions without any stay as they are.

    Raises:
        ReplayRefusedError: there is no topic of that name.
    """
    name = message["topicName"]
    if name and name not in tables.topic_ids:
        raise ReplayRefusedError(f"there is no topic {name}")
    for topic_id in [tables.topic_ids[name]] if name else tables.partitions:
        of_topic = tables.partitions[topic_id]
        for number, before in list(of_topic.items()):
            if before.eligible_leader_replicas or before.last_known_elr:
                of_topic[number] = before._replace(
                    partition_epoch=before.partition_epoch + 1, eligible_leader_replicas=(), last_known_elr=()
                )


def config(tables: Tables, message: Message) -> None:
    """Set a config, or, without a value, remove it."""
    owner: Resource = (message["resourceType"], message["resourceName"])
    name, value = message["name"], message["value"]
    of_owner = tables.configs.get(owner)
    if value is None:
        if of_owner is not None:
            of_owner.pop(name, None)
            if not of_owner:
                del tables.configs[owner]
    else:
        if of_owner is None:
            of_owner = tables.configs[owner] = tables.inner("configs", owner)
        of_owner[name] = value


def _partitions(tables: Tables, message: Message) -> dict[int, PartitionEntry]:
    of_topic = tables.partitions.get(message["topicId"])
    if of_topic is None:
        raise ReplayRefusedError(f"no topic has the id {uuid_to_text(message['topicId'])}")
    return of_topic


def _shared(shared: dict[tuple[Any, ...], tuple[Any, ...]], ids: Iterable[_Id]) -> tuple[_Id, ...]:
    """Return a list of a record, as the one object that all entries with that list have."""
    found = tuple(ids)
    return shared.setdefault(found, found)


def _changed_directories(
    tables: Tables, message: Message, before: tuple[UUID, ...], replicas: tuple[int, ...]
) -> tuple[UUID, ...]:
    """Return the directories after a change of them or of the replicas.

    Raises:
        ReplayRefusedError: there are not as many as replicas.
    """
    given = message["directories"]
    if given and message["replicas"] is not None:
        _check_count(given, replicas)
    found = before if given is None else tuple(given)
    if found.count(MIGRATING) == len(found):
        found = (MIGRATING,) * len(replicas)
    _check_count(found, replicas)
    return tables.shared.setdefault(found, found)


def _check_count(directories: Sequence[UUID], replicas: Sequence[int]) -> None:
    if len(directories) != len(replicas):
        raise ReplayRefusedError(f"it has {len(directories)} directories for {len(replicas)} replicas")


def _checked_state(state: int) -> int:
    if state not in _RECOVERY_STATES:
        raise ReplayRefusedError(f"there is no leader recovery state {state}")
    return state
