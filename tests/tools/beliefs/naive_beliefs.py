# SPDX-License-Identifier: Apache-2.0
"""A slow model of what brokers' directories and a state say differently: one sentence per kind, over flat lists.

It shares no code with ``raftlog.tools.beliefs``: each kind is a set comprehension over all directories, all partitions
and all replicas.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from raftlog.tools.beliefs.given import GivenDirectory
from raftlog.tools.image.tables import Tables

Found = tuple[str, int | None, str | None, int | None, str | None]
"""Kind, broker, topic, partition and path."""


class _Place(NamedTuple):
    """A partition's directory in a log directory of a broker."""

    node: int
    home: Any
    topic: str
    number: int
    state: str
    topic_id: Any
    epoch: int
    path: str
    is_unread: bool


class _Replica(NamedTuple):
    """A replica that the metadata assigns to a broker."""

    node: int
    name: str
    topic_id: Any
    number: int
    home: Any
    epoch: int
    entry: Any


def naive_differences(tables: Tables, cluster: str | None, directories: Sequence[GivenDirectory]) -> set[Found]:
    """All differences."""
    anonymous = [each for each in directories if each.node_id is None]
    foreign = [
        each
        for each in directories
        if each.node_id is not None and cluster and each.cluster_id and each.cluster_id != cluster
    ]
    own = [each for each in directories if each not in anonymous and each not in foreign]
    found: set[Found] = {("no-identity", None, None, None, each.path) for each in anonymous}
    found |= {("foreign-cluster", each.node_id, None, None, each.path) for each in foreign}
    places = [_place(each, of) for of in own for each in of.partitions]
    assigned = list(_replicas(tables))
    nodes = {each.node_id for each in own}
    found |= set(_of_directories(tables, own))
    found |= set(_of_places(tables, places, assigned))
    found |= set(_missing(tables, own, places, assigned))
    known = {*tables.brokers, *(each.node for each in assigned)}
    found |= {("broker-not-given", node, None, None, None) for node in known if node not in nodes}
    return found


def _place(each: Any, of: GivenDirectory) -> _Place:
    assert of.node_id is not None
    name = each.name
    state = name.state.value.removeprefix("-")
    return _Place(
        *(of.node_id, of.directory_id, name.topic, name.partition, state),
        *(each.topic_id, each.leader_epoch, each.path, each.is_unread),
    )


def _replicas(tables: Tables) -> Iterator[_Replica]:
    for topic_id, partitions in tables.partitions.items():
        for number, entry in partitions.items():
            for node, home in zip(entry.replicas, entry.directories, strict=True):
                named = home if home.int >= 100 else None
                name = tables.topics[topic_id].name
                yield _Replica(node, name, topic_id, number, named, entry.leader_epoch, entry)


def _of_directories(tables: Tables, own: Sequence[GivenDirectory]) -> Iterator[Found]:
    for node in {each.node_id for each in own if each.node_id is not None}:
        of_node = [each for each in own if each.node_id == node]
        registration = tables.brokers.get(node)
        if registration is None and any(each.partitions or each.broker_epoch is not None for each in of_node):
            yield "unknown-broker", node, None, None, of_node[0].path
        for number, each in enumerate(of_node):
            if each.directory_id is not None and each.directory_id in [one.directory_id for one in of_node[:number]]:
                yield "directory-twice", node, None, None, each.path
            of_others = [one.directory_id for one in own if one.node_id != node]
            of_others += [
                one for other, broker in tables.brokers.items() if other != node for one in broker.directories
            ]
            if each.directory_id is not None and each.directory_id in of_others:
                yield "directory-of-other", node, None, None, each.path
            named = registration.directories if registration else ()
            if named and each.directory_id not in named:
                yield "unregistered-directory", node, None, None, each.path
            last = registration.epoch if registration else -1
            if each.broker_epoch is not None and each.broker_epoch >= 0:
                if each.broker_epoch > last:
                    yield "registered-later", node, None, None, each.path
                if each.broker_epoch < last:
                    yield "registered-earlier", node, None, None, each.path
        ids = [each.directory_id for each in of_node]
        if registration and any(named not in ids for named in registration.directories):
            yield "directory-not-given", node, None, None, None


def _wanted(place: _Place, assigned: Sequence[_Replica]) -> _Replica | None:
    """The replica that the metadata has on this broker for the topic id and number of a directory."""
    wanted = [
        each
        for each in assigned
        if (each.node, each.topic_id, each.number) == (place.node, place.topic_id, place.number)
    ]
    return wanted[0] if wanted else None


def _serves(place: _Place, assigned: Sequence[_Replica]) -> bool:
    """Whether a directory is, or becomes, the replica that the metadata wants on this broker."""
    wanted = _wanted(place, assigned)
    if wanted is None or wanted.name != place.topic:
        return False
    becomes = place.state == "future" and wanted.home is not None and wanted.home == place.home
    return place.state == "" or becomes


def _of_places(tables: Tables, places: Sequence[_Place], assigned: Sequence[_Replica]) -> Iterator[Found]:
    served = {(each.node, each.topic_id, each.number) for each in places if _serves(each, assigned)}
    for each in places:
        wanted = _wanted(each, assigned)
        is_aside = each.state in ("stray", "delete")
        kinds: list[str | bool] = []
        if is_aside and wanted is not None and (each.node, each.topic_id, each.number) not in served:
            kinds = [{"stray": "stray-wanted", "delete": "deleted-wanted"}[each.state]]
        elif not is_aside and wanted is not None:
            kinds = _of_wanted(tables, each, wanted)
        elif not is_aside:
            kinds = [_of_stray(tables, each)]
        kinds = ["unread"] if each.is_unread else kinds
        for kind in kinds:
            if kind:
                yield str(kind), each.node, each.topic, each.number, each.path
    current = [each for each in places if each.state == "" and _serves(each, assigned)]
    for index, each in enumerate(current):
        earlier = [(one.node, one.topic_id, one.number) for one in current[:index]]
        if (each.node, each.topic_id, each.number) in earlier:
            yield "two-copies", each.node, each.topic, each.number, each.path


def _of_stray(tables: Tables, each: _Place) -> str:
    if each.topic_id is None:
        return "no-topic-id"
    if each.topic_id not in tables.topics:
        is_taken = each.topic in {topic.name for topic in tables.topics.values()}
        return "recreated-topic" if is_taken else "unknown-topic"
    return "not-assigned" if each.number in tables.partitions[each.topic_id] else "unknown-partition"


def _of_wanted(tables: Tables, each: _Place, wanted: _Replica) -> list[str | bool]:
    are_known = wanted.home is not None and each.home is not None
    is_name_taken = any(
        topic.name == each.topic and number == each.number and each.node in replica.replicas
        for topic_id, topic in tables.topics.items()
        for number, replica in tables.partitions[topic_id].items()
    )
    return [
        wanted.name != each.topic and ("swapped-name" if is_name_taken else "other-name"),
        each.epoch > wanted.epoch and "epoch-above",
        are_known and each.state == "" and wanted.home != each.home and "other-directory",
        are_known and each.state == "future" and wanted.home == each.home and "future-assigned",
    ]


def _is_held(replica: _Replica, places: Sequence[_Place], assigned: Sequence[_Replica]) -> bool:
    """Whether a replica is on its broker, or a directory of its name is, of which nothing can be read."""
    for each in places:
        if (each.node, each.number) == (replica.node, replica.number):
            if each.topic_id == replica.topic_id and _serves(each, assigned):
                return True
            if each.is_unread and each.state == "" and each.topic == replica.name:
                return True
    return False


def naive_held(tables: Tables, node: int, directories: Sequence[GivenDirectory]) -> int:
    """How many of the replicas that the metadata assigns to a broker are in its directories."""
    assigned = list(_replicas(tables))
    places = [_place(each, of) for of in directories for each in of.partitions]
    return sum(each.node == node and _is_held(each, places, assigned) for each in assigned)


def _missing(
    tables: Tables, own: Sequence[GivenDirectory], places: Sequence[_Place], assigned: Sequence[_Replica]
) -> Iterator[Found]:
    def is_missing(replica: _Replica) -> bool:
        homes = [each.directory_id for each in own if each.node_id == replica.node]
        if not homes or _is_held(replica, places, assigned):
            return False
        registration = tables.brokers.get(replica.node)
        registered = registration.directories if registration else ()
        is_named = bool(registered) or (replica.home is not None and replica.home in homes)
        return is_named and all(each in homes for each in registered)

    def is_aside(replica: _Replica) -> bool:
        """Whether a directory that does not serve has the partition's id, or its name and no id that is known."""
        of_node = [each for each in places if (each.node, each.number) == (replica.node, replica.number)]
        return any(
            (each.topic_id == replica.topic_id and each.state != "future")
            or (each.topic == replica.name and each.state == "" and each.topic_id not in tables.topics)
            for each in of_node
        )

    for each in assigned:
        if not is_missing(each):
            continue
        entry = each.entry
        candidates = [*entry.isr] or [*entry.eligible_leader_replicas] or [*entry.last_known_elr] or [*entry.replicas]
        same = [one for one in assigned if (one.topic_id, one.number) == (each.topic_id, each.number)]
        kind = "replica-behind"
        if each.node in candidates:
            all_gone = all(is_missing(one) for one in same if one.node in candidates)
            is_somewhere = any(_is_held(one, places, assigned) for one in same)
            kind = "replica-unclean" if is_somewhere else "replica-lost"
            kind = "replica-aside" if any(is_aside(one) for one in same if one.node in candidates) else kind
            kind = kind if all_gone else "replica-empty"
        yield kind, each.node, each.name, each.number, None
