# SPDX-License-Identifier: Apache-2.0
"""States of the metadata and directories of brokers, made for a test."""

from uuid import UUID

from hypothesis import strategies as st

from raftlog.records.files.file_names import DirectoryName, DirectoryState
from raftlog.tools.beliefs.given import GivenDirectory, GivenPartition
from raftlog.tools.image.entries import Broker, PartitionEntry, Topic
from raftlog.tools.image.tables import Tables

CLUSTER = "cluster"
NODES = (1, 2, 3)
TOPIC_IDS = tuple(UUID(int=1000 + number) for number in range(4))
DIRECTORY_IDS = tuple(UUID(int=200 + number) for number in range(5))
_UNIQUE = "0" * 32


def entry(
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...] = (1,),
    *,
    elr: tuple[int, ...] = (),
    last_elr: tuple[int, ...] = (),
    leader_epoch: int = 5,
    directories: tuple[UUID, ...] | None = None,
) -> PartitionEntry:
    """A partition; without directories, each replica is in that of its broker's number."""
    found = tuple(DIRECTORY_IDS[each] for each in replicas) if directories is None else directories
    return PartitionEntry(replicas, isr, (), (), isr[0] if isr else -1, 0, leader_epoch, 9, found, elr, last_elr)


def broker(*directories: UUID, epoch: int = 30, fenced: bool = False) -> Broker:
    """A registration."""
    return Broker(epoch, UUID(int=9), (), (), None, fenced, False, False, tuple(sorted(directories)), None)


def tables(
    topics: dict[str, tuple[UUID, dict[int, PartitionEntry]]], brokers: dict[int, Broker] | None = None
) -> Tables:
    """A state with some topics; without brokers, the three nodes have one directory each."""
    found = Tables()
    for name, (topic_id, partitions) in topics.items():
        found.topics[topic_id] = Topic(name, topic_id)
        found.topic_ids[name] = topic_id
        found.partitions[topic_id] = dict(partitions)
    found.brokers.update({node: broker(DIRECTORY_IDS[node]) for node in NODES} if brokers is None else brokers)
    return found


def partition(
    topic: str,
    number: int = 0,
    topic_id: UUID | None = TOPIC_IDS[0],
    *,
    state: DirectoryState = DirectoryState.CURRENT,
    leader_epoch: int = 5,
    parent: str = "d1",
    unread: bool = False,
) -> GivenPartition:
    """A partition's directory."""
    name = DirectoryName(topic, number, state, None if state is DirectoryState.CURRENT else _UNIQUE)
    return GivenPartition(f"{parent}/{name}", name, topic_id, leader_epoch, "leader-epoch-checkpoint", unread)


def directory(
    *partitions: GivenPartition,
    node_id: int | None = 1,
    directory_id: UUID | None = DIRECTORY_IDS[1],
    cluster_id: str | None = CLUSTER,
    broker_epoch: int | None = None,
    path: str = "d1",
) -> GivenDirectory:
    """A log directory."""
    return GivenDirectory(path, cluster_id, node_id, directory_id, broker_epoch, tuple(partitions))


@st.composite
def states(draw: st.DrawFn) -> Tables:
    """States of two topics, in which anything may be registered."""
    ids = draw(st.permutations(TOPIC_IDS))
    topics = {}
    for name, topic_id in zip("ab", ids, strict=False):
        if draw(st.booleans()):
            topics[name] = topic_id, {number: draw(_entries()) for number in range(draw(st.integers(1, 2)))}
    some = st.lists(st.sampled_from(DIRECTORY_IDS), unique=True, max_size=2)
    brokers = {
        node: broker(*draw(some), epoch=draw(st.integers(1, 3))) for node in NODES if draw(st.integers(0, 3)) > 0
    }
    return tables(topics, brokers)


@st.composite
def _entries(draw: st.DrawFn) -> PartitionEntry:
    replicas = tuple(draw(st.lists(st.sampled_from(NODES), unique=True, min_size=1)))
    some = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    ids = st.sampled_from((*DIRECTORY_IDS, *(UUID(int=number) for number in (0, 1, 2, 99, 100))))
    directories = tuple(draw(st.lists(ids, min_size=len(replicas), max_size=len(replicas))))
    return entry(
        replicas,
        draw(some),
        elr=draw(some),
        last_elr=draw(some),
        leader_epoch=draw(st.integers(0, 2)),
        directories=directories,
    )


@st.composite
def stories(draw: st.DrawFn) -> tuple[Tables, list[GivenDirectory]]:
    """A state, and up to four log directories, most partitions of which are where the state has them."""
    state = draw(states())
    return state, [draw(_given_directories(state, f"d{number}")) for number in range(draw(st.integers(0, 4)))]


@st.composite
def _given_directories(draw: st.DrawFn, state: Tables, path: str) -> GivenDirectory:
    node_id = draw(st.sampled_from((*NODES, *NODES, None)))
    fitting = [
        (state.topics[topic_id].name, number, topic_id)
        for topic_id, of_topic in state.partitions.items()
        for number, each in of_topic.items()
        if node_id in each.replicas
    ]
    homes = {
        each.directories[each.replicas.index(node_id)]
        for of_topic in state.partitions.values()
        for each in of_topic.values()
        if node_id is not None and node_id in each.replicas
    }
    any_partition = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from((*TOPIC_IDS, None)))
    partitions = st.sampled_from(fitting) | any_partition if fitting else any_partition
    places = st.tuples(partitions, st.sampled_from((DirectoryState.CURRENT, *DirectoryState)))
    found = draw(st.lists(places, unique_by=lambda each: (each[0][:2], each[1]), max_size=4))
    return directory(
        *(
            partition(
                *each,
                state=stage,
                leader_epoch=draw(st.integers(-1, 3)),
                parent=path,
                unread=draw(st.integers(0, 5)) == 0,
            )
            for each, stage in found
        ),
        node_id=node_id,
        directory_id=draw(st.sampled_from((*sorted(homes), *DIRECTORY_IDS, None))),
        cluster_id=draw(st.sampled_from((*(CLUSTER,) * 6, "other", None))),
        broker_epoch=draw(st.sampled_from((None, -1, 1, 2, 3))),
        path=path,
    )
