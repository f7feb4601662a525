# SPDX-License-Identifier: Apache-2.0
"""What is mirrored is what Kafka's connector mirrors; the table of test_policies.py has its answers too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming import (
    DEFAULT_EXCLUDES,
    DefaultPolicy,
    IdentityPolicy,
    TopicFilter,
    is_cycle,
    should_replicate,
)

CHAIN = st.lists(st.sampled_from(["A", "B", "C", "tx", ""]), max_size=5)


@given(CHAIN, st.sampled_from(["orders", "heartbeats"]), st.sampled_from(["A", "B", "x"]))
def test_a_cycle_is_a_chain_that_holds_the_target(chain: list[str], topic: str, target: str) -> None:
    """Every alias in front of the last part counts, and the topic itself does not."""
    name = ".".join([*chain, topic])
    assert is_cycle(name, DefaultPolicy(), target) == (target in chain)


def test_the_identity_policy_looks_at_its_source_alone() -> None:
    """Names do not say where a topic was; heartbeats do."""
    assert not is_cycle("B.orders", IdentityPolicy("A"), "B")
    assert not is_cycle("B.orders", IdentityPolicy(), "B")
    assert is_cycle("orders", IdentityPolicy("B"), "B")
    assert is_cycle("A.B.heartbeats", IdentityPolicy("A"), "B")


def test_each_level_has_its_exclusion() -> None:
    """Before 4.0 all that ends with ``internal`` after a dot or hyphen stays; later only what begins with ``mm2``."""
    old, new = TopicFilter.of_level("3.x"), TopicFilter.of_level("4.0")
    assert new == TopicFilter()
    for name, by_old, by_new in (
        ("orders", True, True),
        ("orders.internal", False, True),
        ("orders-internal", False, True),
        ("mm2-x.internal", False, False),
        ("orders.replica", False, False),
        ("__consumer_offsets", False, False),
        ("A.__consumer_offsets", True, True),
    ):
        assert (old.should_replicate_topic(name), new.should_replicate_topic(name)) == (by_old, by_new), name
    assert set(DEFAULT_EXCLUDES) == {"3.x", "4.0"}


def test_a_pattern_matches_whole_names() -> None:
    """As alternatives of one pattern; without a pattern, nothing passes, and nothing is excluded."""
    assert TopicFilter(("orders", "tx")).should_replicate_topic("tx")
    assert not TopicFilter(("orders", "tx")).should_replicate_topic("txn")
    assert not TopicFilter(()).should_replicate_topic("orders")
    assert TopicFilter(exclude=()).should_replicate_topic("__x")
    assert not TopicFilter(exclude=("o.*",)).should_replicate_topic("orders")


def test_lists_are_split_as_kafka_does() -> None:
    """At each comma, with the blanks around it; a blank value has no pattern."""
    assert TopicFilter.of_lists(" a , b.*,c ", " ") == TopicFilter(("a", "b.*", "c"), ())
    assert TopicFilter.of_lists("", "x") == TopicFilter((), ("x",))


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2", r"\p{Alpha}", "(?<!a*)b"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    """With the pattern and the reason; what Python reads literally is no pattern of Java, and does not get here."""
    if pattern == "a{2":
        assert TopicFilter((pattern,)).should_replicate_topic(pattern)
        return
    with pytest.raises(NamingPolicyError, match="no pattern of Python"):
        TopicFilter((pattern,))


def test_heartbeats_pass_whatever_the_filter_says() -> None:
    """Unless their replication is off; a cycle never passes."""
    policy, nothing = DefaultPolicy(), TopicFilter(())
    assert should_replicate("heartbeats", policy, "B", nothing)
    assert should_replicate("A.heartbeats", policy, "B", nothing)
    assert not should_replicate("heartbeats", policy, "B", nothing, heartbeats_replication_enabled=False)
    assert should_replicate("heartbeats", policy, "B", heartbeats_replication_enabled=False)
    assert not should_replicate("B.heartbeats", policy, "B", nothing)
    assert not should_replicate("orders", policy, "B", nothing)


def test_internal_topics_and_cycles_stay() -> None:
    """Even if the filter lets them pass; the filter in force is that of the policy's level."""
    everything = TopicFilter(exclude=())
    for name in ("__x", ".x", "mm2-offsets.A.internal", "A.checkpoints.internal", "B.orders", "A.B.orders"):
        assert everything.should_replicate_topic(name)
        assert not should_replicate(name, DefaultPolicy(), "B", everything)
    assert should_replicate("orders-internal", DefaultPolicy(), "B")
    assert not should_replicate("orders-internal", DefaultPolicy(kafka_level="3.x"), "B")
