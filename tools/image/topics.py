# SPDX-License-Identifier: Apache-2.0
"""Replays the records of topics, partitions and configs.

Source: TopicsDelta, TopicDelta, PartitionRegistration#merge, ConfigurationsDelta.
"""

import functools
import operator
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
_BROKER_RESOURCE: Final = 4
_POLICY: Final = "cleanup.policy"
_BROKER_POLICY: Final = "log.cleanup.policy"
MIGRATING: Final = ZERO_UUID
"""The directory of a replica whose broker did not tell it, as before metadata.version 3.7-IV2."""
_Id = TypeVar("_Id", int, UUID)
_fields: Final = operator.itemgetter(
    "partitionId",
    "topicId",
    "isr",
    "leader",
    "replicas",
    "removingReplicas",
    "addingReplicas",
    "leaderRecoveryState",
    "directories",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)
"""What both records of partitions have; at once, since most records of a large log are of these types."""
_entry: Final = functools.partial(tuple.__new__, PartitionEntry)
"""Makes an entry of all its fields in half of the time that ``PartitionEntry`` takes."""
NO_LEADER_CHANGE: Final = -2
"""The leader of a change that leaves the leader and its epoch as they are."""
NO_STATE_CHANGE: Final = -1
"""The leader recovery state of a change that leaves it as it is."""
RECOVERY_STATES: Final = frozenset({0, 1})
"""All leader recovery states that there are."""


def topic(tables: Tables, message: Message) -> None:
    """Create a topic without partitions. One with the same id is replaced."""
    topic_id, name = message["topicId"], message["name"]
    before = tables.partitions.get(topic_id)
    if before is not None:
        before.clear()
    tables.topics[topic_id] = Topic(name, topic_id)
    of_topic = tables.inner("partitions", topic_id)
    tables.partitions[topic_id] = tables.by_id_bytes[topic_id.bytes] = of_topic
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
    tables.by_id_bytes.pop(topic_id.bytes, None)
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
    number, topic_id, isr, leader, replicas, removing, adding, state, given, elr, last_elr = _fields(message)
    of_topic = _partitions(tables, topic_id)
    shared = tables.shared
    directories = given or (MIGRATING,) * len(replicas)
    _check_count(directories, replicas)
    of_topic[number] = _entry(
        (
            _shared(shared, replicas),
            _shared(shared, isr),
            _shared(shared, removing),
            _shared(shared, adding),
            leader,
            _checked_state(state),
            message["leaderEpoch"],
            message["partitionEpoch"],
            _shared(shared, directories),
            _shared(shared, elr or ()),
            _shared(shared, last_elr or ()),
        )
    )


def change_partition(tables: Tables, message: Message) -> None:
    """Change a partition: what the record leaves out stays.

    Raises:
        ReplayRefusedError: the partition is not there, or the record contradicts itself.
    """
    number, topic_id, isr, leader, replicas, removing, adding, state, given, elr, last_elr = _fields(message)
    of_topic = _partitions(tables, topic_id)
    before = of_topic.get(number)
    if before is None:
        raise ReplayRefusedError(f"topic {tables.topics[topic_id].name} has no partition {number}")
    shared = tables.shared
    has_led = leader != NO_LEADER_CHANGE
    now = before[0] if replicas is None else _shared(shared, replicas)
    directories = before[8]
    if given is not None or replicas is not None:
        directories = _changed_directories(tables, given, directories, now, has_replicas=replicas is not None)
    of_topic[number] = _entry(
        (
            now,
            before[1] if isr is None else _shared(shared, isr),
            before[2] if removing is None else _shared(shared, removing),
            before[3] if adding is None else _shared(shared, adding),
            leader if has_led else before[4],
            before[5] if state == NO_STATE_CHANGE else _checked_state(state),
            before[6] + 1 if has_led else before[6],
            before[7] + 1,
            directories,
            before[9] if elr is None else _shared(shared, elr),
            before[10] if last_elr is None else _shared(shared, last_elr),
        )
    )


def clear_elr(tables: Tables, message: Message) -> None:
    """Forget the eligible leader replicas of a topic, or of all; partitions without any stay as they are.

    Raises:
        ReplayRefusedError: there is no topic of that name, or there was one and another name took its id.
    """
    name = message["topicName"]
    if name and tables.topic_ids.get(name) not in tables.partitions:
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


def _partitions(tables: Tables, topic_id: UUID) -> dict[int, PartitionEntry]:
    of_topic = tables.partitions.get(topic_id)
    if of_topic is None:
        raise ReplayRefusedError(f"no topic has the id {uuid_to_text(topic_id)}")
    return of_topic


def _shared(shared: dict[tuple[Any, ...], tuple[Any, ...]], ids: Iterable[_Id]) -> tuple[_Id, ...]:
    """Return a list of a record, as the one object that all entries with that list have.

    A tuple is of a fast reader, which has seen to that.
    """
    if type(ids) is tuple:
        return ids
    found = tuple(ids)
    return shared.setdefault(found, found)


def _changed_directories(
    tables: Tables,
    given: Sequence[UUID] | None,
    before: tuple[UUID, ...],
    replicas: tuple[int, ...],
    *,
    has_replicas: bool,
) -> tuple[UUID, ...]:
    """Return the directories after a change of them or of the replicas.

    Raises:
        ReplayRefusedError: there are not as many as replicas.
    """
    if given and has_replicas:
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
    if state not in RECOVERY_STATES:
        raise ReplayRefusedError(f"there is no leader recovery state {state}")
    return state


def is_compacted(tables: Tables, topic: str) -> bool | None:
    """Whether records of a topic may be removed by key: by its config, or one of brokers; None if not known."""
    own = tables.configs.get((TOPIC_RESOURCE, topic), {}).get(_POLICY)
    if own is not None:
        return "compact" in own
    brokers: Iterable[dict[str, str]] = (
        configs for (kind, _), configs in tables.configs.items() if kind == _BROKER_RESOURCE
    )
    return any("compact" in configs.get(_BROKER_POLICY, "") for configs in brokers) or None
