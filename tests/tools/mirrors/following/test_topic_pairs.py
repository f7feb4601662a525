# SPDX-License-Identifier: Apache-2.0
"""Topics of two clusters whose names show a cycle, or that have no partner."""

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.following import ClusterTopics, MirrorFinding, MirrorFlow, find_cycles, find_unpaired
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy, TopicFilter, should_replicate
from tests.golden_files import GOLDEN

POLICY = DefaultPolicy(aliases=("A", "B", "C"))
IDENTITY = IdentityPolicy("A", aliases=("A", "B"))
ALL = TopicFilter()
ORDERS = TopicFilter(("orders", "tx.*"))
MIRRORED = ["orders", "tx.orders", "heartbeats", "internal-looking"]
LOCAL_NAMES = [*MIRRORED, "A", "Ab", "mm2-offset-syncs.B.internal", "__x"]


def names(findings: Iterable[MirrorFinding]) -> list[tuple[str, str]]:
    """Return rules and topics."""
    return [(each.rule, each.subject) for each in findings]


def cluster(alias: str, *topics: str, count: int = 2) -> ClusterTopics:
    """Return a cluster with topics of equally many partitions."""
    return ClusterTopics(alias, dict.fromkeys(topics, count))


@given(st.lists(st.tuples(st.lists(st.sampled_from("ABC"), max_size=3), st.sampled_from(MIRRORED)), max_size=6))
def test_a_chain_that_names_its_own_cluster_is_a_cycle(made: list[tuple[list[str], str]]) -> None:
    """Each topic is found among whose sources its own cluster is, in its cluster, and no other topic is."""
    topics = {".".join((*chain, name)): chain for chain, name in made}
    found = find_cycles(cluster("A", *topics), cluster("B", *topics), POLICY)
    expected = [topic for alias in "AB" for topic, chain in sorted(topics.items()) if alias in chain]
    assert [each.subject for each in found] == expected
    assert all((each.rule, each.severity) == ("mirror.cycle", Severity.DAMAGED) for each in found)


@pytest.mark.parametrize(
    ("topic", "is_cycle"),
    [
        ("B.A.orders", True),
        ("A.orders", True),
        ("B.C.A.heartbeats", True),
        ("B.orders", False),
        ("tx.A.orders", False),
        ("A", False),
        ("A.", False),
        ("A.checkpoints.internal", False),
        ("B.heartbeats", False),
    ],
)
def test_names_in_cluster_a(topic: str, is_cycle: bool) -> None:
    """Known aliases alone are sources, and internal topics have none."""
    assert names(find_cycles(cluster("A", topic), cluster("B"), POLICY)) == [("mirror.cycle", topic)] * is_cycle


@pytest.mark.parametrize(
    ("there", "back", "found"),
    [
        (ALL, ALL, ["orders", "payments"]),
        (ALL, ORDERS, ["orders"]),
        (ORDERS, ALL, ["orders"]),
        (ORDERS, TopicFilter(("payments",)), []),
        (ALL, None, []),
        (None, ALL, []),
    ],
    ids=["all", "back-less", "there-less", "apart", "back-unknown", "there-unknown"],
)
def test_two_flows_of_the_same_names_are_a_cycle(
    there: TopicFilter | None, back: TopicFilter | None, found: list[str]
) -> None:
    """Under the identity policy a topic goes round that both flows mirror; heartbeats have prefixes even there."""
    topics = ("heartbeats", "orders", "payments", "__consumer_offsets")
    here, other = cluster("A", *topics, "only-a"), cluster("B", *topics, "only-b")
    flows = (MirrorFlow("A", "B", IDENTITY, there), MirrorFlow("B", "A", IdentityPolicy("B"), back))
    assert names(find_cycles(here, other, IDENTITY, flows)) == [("mirror.cycle", each) for each in found]
    assert find_cycles(here, other, IDENTITY, flows[:1]) == find_cycles(here, other, IDENTITY, flows[1:]) == ()
    by_prefix = tuple(attrs.evolve(each, policy=POLICY) for each in flows)
    assert find_cycles(here, other, POLICY, by_prefix) == ()


@st.composite
def sound_pairs(draw: st.DrawFn) -> tuple[ClusterTopics, ClusterTopics, MirrorFlow]:
    """Return two clusters and the flow that has mirrored one to the other."""
    policy = draw(st.sampled_from([POLICY, DefaultPolicy("_", aliases=("A", "B")), DefaultPolicy(), IDENTITY]))
    topic_filter = draw(st.sampled_from([ALL, ORDERS, TopicFilter(("A.*", "heartbeats"))]))
    counts = st.dictionaries(st.sampled_from(LOCAL_NAMES), st.integers(1, 4))
    topics = draw(counts)
    mirrors = {
        policy.format_remote_topic("A", topic): count
        for topic, count in topics.items()
        if should_replicate(topic, policy, "B", topic_filter)
    }
    own = (
        {} if policy is IDENTITY else {"heartbeats": 1, "local": draw(st.integers(1, 4)), "mm2-offsets.A.internal": 25}
    )
    flow = MirrorFlow("A", "B", policy, topic_filter)
    return ClusterTopics("A", topics), ClusterTopics("B", {**own, **mirrors}), flow


@given(sound_pairs(), st.data())
def test_each_topic_and_its_mirror_have_each_other(
    pair: tuple[ClusterTopics, ClusterTopics, MirrorFlow], data: st.DataObject
) -> None:
    """A sound pair has no finding; without a mirror, a source or as many partitions on both sides it has one."""
    source, target, flow = pair
    assert find_unpaired(source, target, flow, source.partitions) == ()
    mirrors = {flow.policy.format_remote_topic("A", topic): topic for topic in source.partitions if flow.mirrors(topic)}
    if not mirrors:
        return
    remote, topic = data.draw(st.sampled_from(sorted(mirrors.items())))
    count = target.partitions[remote]

    without = ClusterTopics("B", {name: each for name, each in target.partitions.items() if name != remote})
    assert names(find_unpaired(source, without, flow)) == [("mirror.unpaired", topic)]
    other = ClusterTopics("B", {**target.partitions, remote: count + data.draw(st.sampled_from([-1, 1]))})
    assert names(find_unpaired(source, other, flow)) == [("mirror.unpaired", topic)]
    orphaned = ClusterTopics("A", {name: each for name, each in source.partitions.items() if name != topic})
    assert names(find_unpaired(orphaned, target, flow, [topic])) == [("mirror.unpaired", remote)]


def test_nothing_is_demanded_of_a_flow_whose_filter_is_not_known() -> None:
    """Without a filter no topic needs a mirror; a mirror that is there still needs as many partitions."""
    flow = MirrorFlow("A", "B", POLICY)
    source = cluster("A", "orders", "payments")
    assert find_unpaired(source, cluster("B", "A.orders", "local"), flow) == ()
    (found,) = find_unpaired(source, cluster("B", "A.orders", count=1), flow)
    assert (found.rule, found.subject, found.severity) == ("mirror.unpaired", "orders", Severity.SUSPICIOUS)


def test_heartbeats_need_a_mirror_if_they_are_mirrored() -> None:
    """They pass every filter, unless the flow is told to leave them."""
    source, target = cluster("A", "heartbeats"), cluster("B", "heartbeats")
    flow = MirrorFlow("A", "B", POLICY, ORDERS)
    assert names(find_unpaired(source, target, flow)) == [("mirror.unpaired", "heartbeats")]
    assert find_unpaired(source, target, attrs.evolve(flow, heartbeats_replication_enabled=False)) == ()


@pytest.mark.parametrize("topic_filter", [None, ORDERS], ids=["unknown", "orders"])
def test_a_name_that_does_not_change_says_nothing(topic_filter: TopicFilter | None) -> None:
    """Under the identity policy a topic of the target is a mirror only if it is known that it was mirrored."""
    flow = MirrorFlow("A", "B", IDENTITY, topic_filter)
    source, target = cluster("A", "other"), cluster("B", "payments", "other", count=1)
    assert find_unpaired(source, target, flow) == ()
    expected = ["payments"] if topic_filter else ["other", "payments"]
    found = find_unpaired(source, target, flow, ["payments", "other"])
    assert [each.subject for each in found] == expected


def test_mirrors_of_other_clusters_are_left_alone() -> None:
    """A mirror from a third cluster has its source there, and a chain has the source next to it."""
    flow = MirrorFlow("A", "B", POLICY, ALL)
    target = cluster("B", "C.orders", "A.C.orders")
    assert names(find_unpaired(cluster("A"), target, flow)) == [("mirror.unpaired", "A.C.orders")]
    assert find_unpaired(cluster("A", "C.orders"), target, flow) == ()


def test_the_real_pair_is_sound() -> None:
    """All topics of two real clusters are paired, by the names that Kafka's own tool lists, and none is a cycle."""
    expected = GOLDEN / "mirror/expected"
    here, there = (
        cluster(alias, *(expected / f"topics-{alias.lower()}.txt").read_text("utf-8").split()) for alias in "AB"
    )
    policy = DefaultPolicy(aliases=("A", "B"))
    flow = MirrorFlow("A", "B", policy, ALL)
    assert "A.tx.orders" in there.partitions
    assert find_cycles(here, there, policy, [flow]) == ()
    assert find_unpaired(here, there, flow) == ()
    without = attrs.evolve(there, partitions={name: 2 for name in there.partitions if name != "A.tx.orders"})
    assert names(find_unpaired(here, without, flow)) == [("mirror.unpaired", "tx.orders")]
