# SPDX-License-Identifier: Apache-2.0
"""Every name has exactly one class, which the order of aliases and the level do not change."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.naming import (
    KAFKA_LEVELS,
    Confidence,
    DefaultPolicy,
    IdentityPolicy,
    NamingPolicy,
    TopicClass,
    TopicKind,
    classify,
)
from tests.tools.mirrors.policy_names import NAMES, SETTINGS
from tests.tools.mirrors.test_policies import SEPARATORS, joined_names

SURE, GUESS = Confidence.SURE, Confidence.GUESS
AB = DefaultPolicy(aliases=("A", "B"))
UNKNOWN = DefaultPolicy()
ALIASES = st.lists(st.sampled_from(["A", "B", "A.B", "A_", "tx", "mm2", "__x", "."]), max_size=4)
NO_MIRRORS = {
    TopicKind.KAFKA_INTERNAL,
    TopicKind.METADATA_QUORUM,
    TopicKind.MM2_OFFSET_SYNCS,
    TopicKind.MM2_CHECKPOINTS,
    TopicKind.CONNECT_INTERNAL,
    TopicKind.LOCAL,
}


def mirror(kind: TopicKind, source: str, upstream: str, original: str, hops: int, how: Confidence = SURE) -> TopicClass:
    return TopicClass(kind, source, upstream, original, hops, how)


def home(kind: TopicKind, name: str, how: Confidence = SURE) -> TopicClass:
    return TopicClass(kind, None, None, name, 0, how)


def internal(kind: TopicKind, name: str, alias: str, how: Confidence = SURE) -> TopicClass:
    source = None if kind is TopicKind.MM2_OFFSET_SYNCS else alias
    return TopicClass(kind, source, None, name, 0, how, alias)


REMOTE, LOCAL, HEARTBEATS = TopicKind.REMOTE, TopicKind.LOCAL, TopicKind.MM2_HEARTBEATS
EXAMPLES: tuple[tuple[NamingPolicy, str, TopicClass], ...] = (
    (AB, "orders", home(LOCAL, "orders")),
    (AB, "tx.orders", home(LOCAL, "tx.orders")),
    (AB, "A.tx.orders", mirror(REMOTE, "A", "tx.orders", "tx.orders", 1)),
    (AB, "B.A.orders", mirror(REMOTE, "B", "A.orders", "orders", 2)),
    (AB, "A.", home(LOCAL, "A.")),
    (AB, "A..", home(LOCAL, "A..")),
    (AB, "A..x", mirror(REMOTE, "A", ".x", ".x", 1)),
    (AB, "A", home(LOCAL, "A")),
    (AB, "A.__consumer_offsets", mirror(REMOTE, "A", "__consumer_offsets", "__consumer_offsets", 1)),
    (AB, "heartbeats", home(HEARTBEATS, "heartbeats")),
    (AB, "A.heartbeats", mirror(HEARTBEATS, "A", "heartbeats", "heartbeats", 1)),
    (AB, "B.A.heartbeats", mirror(HEARTBEATS, "B", "A.heartbeats", "heartbeats", 2)),
    (AB, "my.heartbeats", home(LOCAL, "my.heartbeats")),
    (AB, "myheartbeats", home(LOCAL, "myheartbeats")),
    (UNKNOWN, "my.heartbeats", mirror(HEARTBEATS, "my", "heartbeats", "heartbeats", 1, GUESS)),
    (UNKNOWN, "A.tx.orders", mirror(REMOTE, "A", "tx.orders", "orders", 2, GUESS)),
    (UNKNOWN, "a..b", mirror(REMOTE, "a", ".b", ".b", 1, GUESS)),
    (UNKNOWN, "orders", home(LOCAL, "orders")),
    (UNKNOWN, "a.", home(LOCAL, "a.")),
    (DefaultPolicy("_"), "_schemas", home(LOCAL, "_schemas")),
    (DefaultPolicy("_"), "A_orders", mirror(REMOTE, "A", "orders", "orders", 1, GUESS)),
    (AB, "__cluster_metadata", home(TopicKind.METADATA_QUORUM, "__cluster_metadata")),
    (AB, "__consumer_offsets", home(TopicKind.KAFKA_INTERNAL, "__consumer_offsets")),
    (AB, ".hidden", home(TopicKind.KAFKA_INTERNAL, ".hidden")),
    (AB, ".checkpoints.internal", home(TopicKind.KAFKA_INTERNAL, ".checkpoints.internal")),
    (AB, "mm2foo.internal", home(TopicKind.KAFKA_INTERNAL, "mm2foo.internal")),
    (AB, "mm2-offset-syncs..internal", home(TopicKind.KAFKA_INTERNAL, "mm2-offset-syncs..internal")),
    (AB, "mm2-x", home(LOCAL, "mm2-x")),
    (
        AB,
        "mm2-offset-syncs.B.internal",
        internal(TopicKind.MM2_OFFSET_SYNCS, "mm2-offset-syncs.B.internal", "B"),
    ),
    (
        AB,
        "mm2-offset-syncs.Q.internal",
        internal(TopicKind.MM2_OFFSET_SYNCS, "mm2-offset-syncs.Q.internal", "Q", GUESS),
    ),
    (
        UNKNOWN,
        "mm2-offset-syncs.Q.internal",
        internal(TopicKind.MM2_OFFSET_SYNCS, "mm2-offset-syncs.Q.internal", "Q"),
    ),
    (AB, "A.checkpoints.internal", internal(TopicKind.MM2_CHECKPOINTS, "A.checkpoints.internal", "A")),
    (AB, "my.checkpoints.internal", internal(TopicKind.MM2_CHECKPOINTS, "my.checkpoints.internal", "my", GUESS)),
    (UNKNOWN, "A.checkpoints.internal", internal(TopicKind.MM2_CHECKPOINTS, "A.checkpoints.internal", "A", GUESS)),
    (AB, "mm2-configs.A.internal", internal(TopicKind.CONNECT_INTERNAL, "mm2-configs.A.internal", "A")),
    (
        DefaultPolicy("_", aliases=("A",)),
        "mm2-offsets.A.internal",
        internal(TopicKind.CONNECT_INTERNAL, "mm2-offsets.A.internal", "A"),
    ),
    (DefaultPolicy("_"), "mm2-offsets_A_internal", home(TopicKind.KAFKA_INTERNAL, "mm2-offsets_A_internal")),
    (
        DefaultPolicy("_", False, aliases=("A",)),
        "A.checkpoints.internal",
        internal(TopicKind.MM2_CHECKPOINTS, "A.checkpoints.internal", "A"),
    ),
    (
        DefaultPolicy("_", False, aliases=("A",)),
        "A_heartbeats",
        mirror(HEARTBEATS, "A", "heartbeats", "heartbeats", 1),
    ),
    (
        DefaultPolicy(aliases=("eu", "eu.west")),
        "eu.west.orders",
        mirror(REMOTE, "eu.west", "orders", "orders", 1),
    ),
    (IdentityPolicy("A", aliases=("A",)), "orders", mirror(REMOTE, "A", "orders", "orders", 1, GUESS)),
    (IdentityPolicy("A", aliases=("A",)), "A.orders", mirror(REMOTE, "A", "A.orders", "A.orders", 1, GUESS)),
    (IdentityPolicy(), "orders", home(LOCAL, "orders", GUESS)),
    (IdentityPolicy("A", aliases=("A",)), "heartbeats", home(HEARTBEATS, "heartbeats")),
    (IdentityPolicy("A", aliases=("A",)), "A.heartbeats", mirror(HEARTBEATS, "A", "heartbeats", "heartbeats", 1)),
    (IdentityPolicy("A", aliases=("A",)), "myheartbeats", home(LOCAL, "myheartbeats")),
    (
        IdentityPolicy("A", aliases=("A",)),
        "A.myheartbeats",
        mirror(REMOTE, "A", "myheartbeats", "myheartbeats", 1),
    ),
    (IdentityPolicy("A"), "A.heartbeats", mirror(HEARTBEATS, "A", "heartbeats", "heartbeats", 1, GUESS)),
    (IdentityPolicy("A"), "__consumer_offsets", home(TopicKind.KAFKA_INTERNAL, "__consumer_offsets")),
)


@pytest.mark.parametrize("index", range(len(EXAMPLES)))
def test_each_name_has_its_class(index: int) -> None:
    """Kind, source, upstream and original topic, hops, confidence and alias."""
    policy, name, expected = EXAMPLES[index]
    assert classify(name, policy) == expected


def test_the_levels_part_where_kafka_does() -> None:
    """Names that only releases before 4.0 call internal are internal topics there, and others later."""
    old = DefaultPolicy(kafka_level="3.x", aliases=("A", "B"))
    for name, kind in (
        ("orders.internal", LOCAL),
        ("my.internal", LOCAL),
        ("checkpoints.internal", LOCAL),
        ("A.mm2-offsets.B.internal", REMOTE),
        ("orders-internal", LOCAL),
    ):
        assert classify(name, old) == home(TopicKind.KAFKA_INTERNAL, name)
        assert classify(name, AB).kind is kind


def chains(name: str, aliases: Sequence[str], separator: str) -> list[tuple[str, ...]]:
    """Return every way to take aliases from the front of a name until none is there, naively."""
    found = []
    for alias in aliases:
        rest = name[len(alias + separator) :]
        if name == f"{alias}{separator}{rest}" and rest.replace(separator, ""):
            found += [(alias, *chain) for chain in chains(rest, aliases, separator)]
    return found or [()]


@given(SEPARATORS, ALIASES, st.booleans(), st.booleans(), st.data())
def test_every_name_has_one_class(
    separator: str, aliases: list[str], enabled: bool, is_old: bool, data: st.DataObject
) -> None:
    """Whatever name and policy: aliases in another order change nothing, and its parts agree with each other."""
    name = data.draw(joined_names(separator) | st.text(max_size=20))
    make = data.draw(st.sampled_from([DefaultPolicy, IdentityPolicy]))
    policy = make(
        separator=separator,
        internal_separator_enabled=enabled,
        kafka_level="3.x" if is_old else "4.0",
        aliases=tuple(aliases),
    )
    found = classify(name, policy)
    assert found == classify(name, policy)
    assert found == classify(name, attrs.evolve(policy, aliases=tuple(reversed(aliases + aliases))))
    assert (found.kind in NO_MIRRORS) == (found.hops == 0) or found == home(HEARTBEATS, "heartbeats")
    assert (found.upstream is not None) == (found.hops > 0)
    assert found.original == name or found.hops > 0
    assert (found.confidence is SURE) or found.kind is not TopicKind.KAFKA_INTERNAL
    assert found.kind is not REMOTE or aliases or found.confidence is GUESS
    assert found.kind is not TopicKind.KAFKA_INTERNAL or policy.is_internal_topic(name)
    if found.kind in {REMOTE, LOCAL, HEARTBEATS}:
        assert not policy.is_internal_topic(name)


@given(SEPARATORS, ALIASES.filter(bool), st.data())
def test_known_aliases_are_stripped_longest_first(separator: str, aliases: list[str], data: st.DataObject) -> None:
    """The chain of a mirror is, of all ways to take known aliases from its name, the one with the longest first."""
    name = data.draw(joined_names(separator))
    policy = DefaultPolicy(separator, aliases=tuple(aliases))
    found = classify(name, policy)
    if found.kind not in {REMOTE, HEARTBEATS, LOCAL}:
        return
    chain = max(chains(name, aliases, separator), key=lambda each: [(len(alias), alias) for alias in each])
    assert found.hops == len(chain)
    assert found.source == (chain[0] if chain else None)
    assert name == "".join(f"{alias}{separator}" for alias in chain) + found.original
    assert found.upstream in {None, name.removeprefix(f"{found.source}{separator}")}
    assert found.confidence is SURE


@given(SEPARATORS, ALIASES, st.booleans(), st.data())
def test_levels_part_only_on_names_that_end_with_internal(
    separator: str, aliases: list[str], enabled: bool, data: st.DataObject
) -> None:
    """Every other name has one class at both; so have MirrorMaker's and Connect's own."""
    name = data.draw(joined_names(separator))
    old, new = (DefaultPolicy(separator, enabled, level, tuple(aliases)) for level in KAFKA_LEVELS)
    if classify(name, old) == classify(name, new):
        return
    assert name.endswith((".internal", "-internal", f"{new.internal_separator}internal"))
    assert classify(name, old) == home(TopicKind.KAFKA_INTERNAL, name)
    assert classify(name, new).kind in {REMOTE, LOCAL}
    assert old.is_internal_topic(name)
    assert not new.is_internal_topic(name)


def test_no_class_contradicts_kafka() -> None:
    """On every name of the table: kinds that stay at home are internal to Kafka, except Connect's with other dots.

    With no aliases known, heartbeats are where Kafka sees them, unless an empty part of the name would be an alias.
    """
    for setting in SETTINGS:
        policy = setting.policy("4.0")
        for name in NAMES:
            found = classify(name, policy)
            if found.kind in {REMOTE, LOCAL, HEARTBEATS}:
                assert not policy.is_internal_topic(name)
                is_odd = "" in name.split(policy.separator)
                assert (found.kind is HEARTBEATS) == (policy.is_heartbeats_topic(name) and not is_odd)
            elif found.kind is not TopicKind.CONNECT_INTERNAL:
                assert policy.is_internal_topic(name)
