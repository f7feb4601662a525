# SPDX-License-Identifier: Apache-2.0
"""Directories of brokers are compared with a state: every kind of difference is found, and nothing else."""

from collections.abc import Iterator
from uuid import UUID

import attrs
import pytest
from hypothesis import given

from raftlog.records.files.file_names import DirectoryState
from raftlog.tools.beliefs.comparison import compare
from raftlog.tools.beliefs.difference_kinds import KINDS
from raftlog.tools.beliefs.differences import BrokerDifference
from raftlog.tools.beliefs.given import GivenDirectory
from raftlog.tools.image.tables import Tables
from tests.tools.beliefs.made_beliefs import (
    CLUSTER,
    DIRECTORY_IDS,
    TOPIC_IDS,
    broker,
    directory,
    entry,
    partition,
    stories,
    tables,
)
from tests.tools.beliefs.naive_beliefs import Found, naive_differences, naive_held

D1, D2 = DIRECTORY_IDS[1], DIRECTORY_IDS[2]
A, B = TOPIC_IDS[:2]


def found(difference: BrokerDifference) -> Found:
    """What the naive model says of it."""
    return (
        *(difference.kind.name, difference.node_id, difference.topic, difference.partition),
        difference.path,
    )


@given(stories())
def test_all_differences_are_those_of_a_naive_model(story: tuple[Tables, list[GivenDirectory]]) -> None:
    """Whatever is registered, assigned and on the disks; each is told once, but directories that were not given."""
    state, directories = story
    comparison = compare(state, CLUSTER, directories)
    shown = [found(each) for each in comparison.differences]
    assert set(shown) == naive_differences(state, CLUSTER, directories)
    once = [each for each in shown if each[0] != "directory-not-given"]
    assert len(once) == len(set(once))
    assert comparison.is_harmful == any(KINDS[each[0]].is_harmful for each in shown)


@given(stories())
def test_the_counts_of_each_broker_are_those_of_a_naive_model(story: tuple[Tables, list[GivenDirectory]]) -> None:
    """A replica of a given broker is found, missing or not judged, and none of these twice."""
    state, directories = story
    comparison = compare(state, CLUSTER, directories)
    own = [each for each in directories if each.cluster_id in (CLUSTER, None)]
    for each in comparison.brokers:
        of_node = [one for one in own if one.node_id == each.node_id]
        assert (each.is_registered, each.given_directories) == (each.node_id in state.brokers, len(of_node))
        entries = [one for of_topic in state.partitions.values() for one in of_topic.values()]
        assert each.replicas == sum(each.node_id in one.replicas for one in entries)
        assert each.partitions == sum("." not in str(name.name) for one in of_node for name in one.partitions)
        missing = [
            one
            for one in comparison.differences
            if one.node_id == each.node_id
            and one.kind.name in ("replica-lost", "replica-aside", "replica-unclean", "replica-empty", "replica-behind")
        ]
        held = naive_held(state, each.node_id, of_node)
        assert each.unjudged == (each.replicas - held - len(missing) if of_node else 0)


ONE = tables({"a": (A, {0: entry()})}, {1: broker(D1)})
"""A topic with one partition, whose only replica is on broker 1."""
TWO = tables({"a": (A, {0: entry((1, 2), (1, 2))})}, {1: broker(D1), 2: broker(D2)})
"""The same with a replica on broker 2 too."""
MANY = tables({"a": (A, {0: entry()})}, {1: broker(D1, D2)})
"""The first, where the broker has two directories."""
RECREATED = tables({"a": (B, {0: entry()})}, {1: broker(D1)})
FIRST = directory(partition("a"))
"""What the first agrees with."""
SECOND = directory(partition("a", parent="d2"), node_id=2, directory_id=D2, path="d2")
EMPTY = directory()


def set_aside(state: DirectoryState, topic_id: UUID = A) -> GivenDirectory:
    """The directory with the partition renamed."""
    return directory(partition("a", topic_id=topic_id, state=state))


Example = tuple[str, Tables, list[GivenDirectory], list[str]]
"""What it is, the state, the directories, and the kinds of differences."""


def _of_directories() -> Iterator[Example]:
    """What Kafka sets aside, and what it has set aside."""
    yield "agree", ONE, [FIRST], []
    yield "another topic", ONE, [directory(partition("a"), partition("b", topic_id=B))], ["unknown-topic"]
    yield "recreated", RECREATED, [FIRST], ["recreated-topic", "replica-aside"]
    yield "the next partition", ONE, [directory(partition("a"), partition("a", 1))], ["unknown-partition"]
    yield (
        "on the other broker",
        ONE,
        [FIRST, directory(partition("a"), node_id=2)],
        ["unknown-broker", "not-assigned", *["directory-of-other"] * 2],
    )
    yield "no id", ONE, [directory(partition("a", topic_id=None))], ["no-topic-id", "replica-aside"]
    yield "unread", ONE, [directory(partition("a", topic_id=None, unread=True))], ["unread"]
    yield "a damaged batch", ONE, [directory(attrs.evolve(partition("a"), unread_files=("0.log",)))], ["unread"]
    yield "a damaged file of a directory", ONE, [attrs.evolve(FIRST, unread_files=("meta.properties",))], ["unread"]
    names = {"a": (A, {0: entry()}), "b": (B, {0: entry()})}
    swapped = directory(partition("a", topic_id=B), partition("b", topic_id=A))
    yield "swapped", tables(names, {1: broker(D1)}), [swapped], ["swapped-name", "replica-aside"] * 2
    elsewhere = {"a": (A, {0: entry()}), "b": (B, {0: entry((2,), (2,)), 1: entry()})}
    state = tables(elsewhere, {1: broker(D1), 2: broker(D2)})
    named = directory(partition("b"), partition("b", 1, B))
    yield "the name of another broker's replica", state, [named], ["other-name", "replica-aside", "broker-not-given"]
    yield "other name", ONE, [directory(partition("b"))], ["other-name", "replica-aside"]
    yield "stray", ONE, [set_aside(DirectoryState.STRAY)], ["stray-wanted", "replica-aside"]
    yield (
        "stray of another topic",
        ONE,
        [FIRST, directory(partition("b", topic_id=B, state=DirectoryState.STRAY))],
        ["directory-twice"],
    )
    yield "deleted", ONE, [set_aside(DirectoryState.DELETE)], ["deleted-wanted", "replica-aside"]
    both = directory(partition("a"), partition("a", state=DirectoryState.DELETE))
    yield "deleted and made again", ONE, [both], []


def _of_replicas() -> Iterator[Example]:
    """What is missing, is elsewhere or is later."""
    yield "the same leader epoch", ONE, [directory(partition("a", leader_epoch=5))], []
    yield "a later leader epoch", ONE, [directory(partition("a", leader_epoch=6))], ["epoch-above"]
    for epoch, kinds in ((5, []), (6, ["epoch-unconfirmed"])):
        unconfirmed = attrs.evolve(partition("a", leader_epoch=3), unconfirmed_epoch=epoch)
        yield f"leader epoch {epoch} in batches alone", ONE, [directory(unconfirmed)], kinds
    both = attrs.evolve(partition("a", leader_epoch=6), unconfirmed_epoch=7)
    yield "leader epoch 7 in batches, 6 confirmed", ONE, [directory(both)], ["epoch-above", "epoch-unconfirmed"]
    yield "an earlier leader epoch", ONE, [directory(partition("a", leader_epoch=4))], []
    yield "gone", ONE, [EMPTY], ["replica-lost"]
    yield "gone on one of two", TWO, [EMPTY, SECOND], ["replica-empty"]
    yield "gone on both", TWO, [EMPTY, directory(node_id=2, directory_id=D2, path="d2")], ["replica-lost"] * 2
    yield "gone, and the other not given", TWO, [EMPTY], ["replica-empty", "broker-not-given"]
    behind = tables({"a": (A, {0: entry((1, 2), (2,))})}, {1: broker(D1), 2: broker(D2)})
    outside = tables({"a": (A, {0: entry((1, 2), (1,))})}, {1: broker(D1), 2: broker(D2)})
    yield "gone, and one that is not in sync is there", outside, [EMPTY, SECOND], ["replica-unclean"]
    unregistered = tables({"a": (A, {0: entry()})}, {1: broker()})
    yield "gone, nothing registered, its directory given", unregistered, [EMPTY], ["replica-lost"]
    yield "gone, nothing registered, another one given", unregistered, [directory(directory_id=D2)], []
    aside = [set_aside(DirectoryState.STRAY), directory(node_id=2, directory_id=D2, path="d2")]
    yield "gone on both, one set aside", TWO, aside, ["stray-wanted", *["replica-aside"] * 2]
    yield "gone and not in sync", behind, [EMPTY, SECOND], ["replica-behind"]
    for number, kinds in ((2, ["directory-not-given"]), (99, ["directory-not-given"])):
        nowhere = tables({"a": (A, {0: entry(directories=(UUID(int=number),))})}, {1: broker(D1, D2)})
        yield f"in the reserved directory {number}", nowhere, [EMPTY], kinds
        yield f"found, for the reserved directory {number}", nowhere, [FIRST], kinds
    unnamed = tables({"a": (A, {0: entry(directories=(UUID(int=100),))})}, {1: broker(D1)})
    yield "in the directory 100", unnamed, [FIRST], ["other-directory"]
    half = ["directory-not-given"]
    yield "half of the directories", MANY, [FIRST], half
    yield "half, without it", MANY, [EMPTY], half
    yield "the other half", MANY, [directory(directory_id=D2)], half
    yield "both halves without it", MANY, [EMPTY, directory(directory_id=D2, path="d2")], ["replica-lost"]
    moved = directory(partition("a", parent="d2"), directory_id=D2, path="d2")
    yield "moved", MANY, [EMPTY, moved], ["other-directory"]
    yield "in both", MANY, [FIRST, moved], ["other-directory", "two-copies"]
    future = partition("a", state=DirectoryState.FUTURE)
    yield "a copy where it should be", ONE, [directory(future)], ["future-assigned"]
    yield (
        "a copy in the making",
        MANY,
        [
            FIRST,
            directory(partition("a", state=DirectoryState.FUTURE, parent="d2"), directory_id=D2, path="d2"),
        ],
        [],
    )


def _of_brokers() -> Iterator[Example]:
    """Whose directories they are, and when these registered."""
    yield "another cluster", ONE, [FIRST, directory(cluster_id="other", path="d2")], ["foreign-cluster"]
    yield "no cluster id", ONE, [directory(partition("a"), cluster_id=None)], []
    yield "no meta.properties", ONE, [FIRST, directory(node_id=None, path="d2")], ["no-identity"]
    yield "unregistered", ONE, [FIRST, directory(directory_id=D2, path="d2")], ["unregistered-directory"]
    yield (
        "no directory.id",
        ONE,
        [directory(partition("a"), directory_id=None)],
        [
            "unregistered-directory",
            "directory-not-given",
        ],
    )
    yield "the registration of the last run", ONE, [directory(partition("a"), broker_epoch=30)], []
    yield "a later registration", ONE, [directory(partition("a"), broker_epoch=31)], ["registered-later"]
    yield "an earlier registration", ONE, [directory(partition("a"), broker_epoch=29)], ["registered-earlier"]
    yield "no registration yet", ONE, [directory(partition("a"), broker_epoch=-1)], []
    theirs = tables({"a": (A, {0: entry()})}, {1: broker(D1), 2: broker(D2)})
    yield (
        "a directory that another broker has registered",
        theirs,
        [FIRST, directory(directory_id=D2, path="d2")],
        ["directory-of-other", "unregistered-directory", "broker-not-given"],
    )
    yield "nothing given", ONE, [], ["broker-not-given"]
    yield "a controller", ONE, [FIRST, directory(node_id=9, directory_id=D2, path="d2")], []


EXAMPLES = [*_of_directories(), *_of_replicas(), *_of_brokers()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0])
def test_each_kind_is_found_where_it_is_and_only_there(example: Example) -> None:
    """At each border: with it, and one step beside it without."""
    _, state, directories, kinds = example
    shown = [each.kind.name for each in compare(state, CLUSTER, directories).differences]
    assert sorted(shown) == sorted(kinds)


@pytest.mark.parametrize(("end", "is_ahead"), [(-1, False), (9, False), (10, False), (11, True)])
def test_a_metadata_log_that_ends_after_the_state_is_told(end: int, is_ahead: bool) -> None:
    """At the end of the state it is not; without an end nothing is compared."""
    own = attrs.evolve(FIRST, metadata_end=end)
    shown = compare(ONE, CLUSTER, [own], 10).differences
    assert [each.kind.name for each in shown] == (["metadata-ahead"] if is_ahead else [])
    assert not compare(ONE, CLUSTER, [own]).differences


def test_every_kind_has_an_example() -> None:
    """And each says what follows."""
    assert {kind for example in EXAMPLES for kind in example[3]} | {"metadata-ahead"} == set(KINDS)
    assert all(kind.follows.endswith(".") and name == kind.name for name, kind in KINDS.items())


def test_differences_are_in_the_order_of_brokers_and_kinds() -> None:
    """By broker, kind, topic and partition number, not by the text of the number."""
    names = [partition("a", number, topic_id=B) for number in (10, 9)]
    shown = compare(ONE, CLUSTER, [SECOND, directory(*names, partition("b", 0, B), path="d3")]).differences
    numbers = [(each.node_id, each.topic, each.partition) for each in shown if each.kind.name.endswith("topic")]
    assert numbers == [(1, "b", 0), (1, "a", 9), (1, "a", 10)]
    assert [each.node_id for each in shown] == sorted(each.node_id or 0 for each in shown)


def test_without_a_cluster_id_of_the_metadata_all_are_compared() -> None:
    """It is not known whose directories they are."""
    shown = compare(ONE, None, [directory(partition("a"), cluster_id="other")]).differences
    assert list(shown) == []
