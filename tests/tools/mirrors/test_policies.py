# SPDX-License-Identifier: Apache-2.0
"""Names under a policy are what Kafka's own policies say, of which tests/golden/mirror-names has a table."""

import hashlib
import json
import re
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.errors import NamingPolicyError, RaftLogError
from raftlog.tools.mirrors.naming import KAFKA_LEVELS, DefaultPolicy, IdentityPolicy, KafkaLevel, NamingPolicy
from tests.tools.mirrors.policy_names import ALIASED, ALIASES, NAMES, RELEASES, SETTINGS
from tests.tools.mirrors.policy_table import TABLE, ours, recorded

SEPARATORS = st.sampled_from([".", "_", "-", "__", "..", "|", "*", "\\E", "[.]"])
PARTS = st.sampled_from(
    ["A", "B", "tx", "orders", "heartbeats", "my", "mm2", "mm2-offset-syncs", "checkpoints", "internal", "__x", "", "."]
)
TEXTS = st.text(st.sampled_from(".._-|*AB\\E[]x\n"), max_size=12)


def joined_names(separator: str) -> st.SearchStrategy[str]:
    """Names of parts that matter, between separators of several kinds."""
    between = st.sampled_from([separator, separator, ".", "_", "-", ""])
    pairs = st.lists(st.tuples(PARTS, between), max_size=5)
    return st.builds(lambda found, last: "".join(a + b for a, b in found) + last, pairs, PARTS)


def split_as_java_does(text: str, separator: str) -> list[str]:
    """Return the parts that ``String.split`` gives of a quoted separator: empty ones at the end are dropped."""
    parts = re.split(re.escape(separator), text)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


def policies(separator: str, level: KafkaLevel) -> list[NamingPolicy]:
    """Every kind of policy with a separator."""
    return [
        *(DefaultPolicy(separator, enabled, level) for enabled in (True, False)),
        *(IdentityPolicy(source, separator, kafka_level=level) for source in (None, "A")),
    ]


def test_every_answer_is_that_of_kafka() -> None:
    """For each name, alias and setting, at both levels, all functions say what the policies of real releases said."""
    wrong = [
        (setting, release, question, answers[release])
        for setting, question, answers in recorded()
        for release, level in RELEASES.items()
        if ours(setting, level, question) != answers[release]
    ]
    assert not wrong, wrong[:3]


def test_the_table_is_whole() -> None:
    """It has all names and aliases under all settings, at least 300 names, and the manifest is about these bytes."""
    assert len(NAMES) >= 300
    asked = [*((name,) for name in NAMES), *((alias, topic) for alias in ALIASES for topic in ALIASED)]
    expected = [(setting, question) for setting in SETTINGS for question in asked]
    assert [(setting, question) for setting, question, _ in recorded()] == expected
    manifest = json.loads((TABLE.parent / "manifest.json").read_text())
    assert manifest["kafka"] == list(RELEASES)
    assert manifest["files"][TABLE.name]["sha256"] == hashlib.sha256(TABLE.read_bytes()).hexdigest()


def test_the_releases_part_only_on_internal_names() -> None:
    """Under the default settings they part on names that end with ``.internal`` or ``-internal``, and are not MM2's."""
    of_default = [asked for asked in recorded() if asked[0] == SETTINGS[0]]
    both = [(question[0], *(answers[release][3] or "" for release in RELEASES)) for _, question, answers in of_default]
    parted = {name for name, old, new in both if len(old) > 4 and old[3] != new[3]}
    assert {
        "orders.internal",
        "checkpoints.internal",
        "A.mm2-offsets.A.internal",
        "orders-internal",
    } <= parted
    assert not parted & {"internal-looking", "mm2-x", "A.__consumer_offsets", "mm2foo.internal"}
    for name in parted:
        assert name.endswith((".internal", "-internal"))
        assert not name.startswith(("mm2", "__", "."))
        assert not name.endswith(".checkpoints.internal")


@given(SEPARATORS, st.data())
def test_a_source_is_what_javas_split_finds(separator: str, data: st.DataObject) -> None:
    """The source is the first part of several, the upstream topic the rest, and the original topic the last."""
    name = data.draw(joined_names(separator) | TEXTS)
    policy = DefaultPolicy(separator)
    parts = split_as_java_does(name, separator)
    source = parts[0] if len(parts) > 1 else None
    assert policy.topic_source(name) == source
    upstream = None if source is None else name.removeprefix(source + separator)
    assert policy.upstream_topic(name) == upstream
    assert policy.original_topic(name) == (name if upstream is None else policy.original_topic(upstream))
    assert policy.topic_source(policy.original_topic(name)) is None


@given(SEPARATORS, st.data())
@example(".", None)
def test_a_remote_topic_has_its_upstream_topic(separator: str, data: st.DataObject | None) -> None:
    """``upstream(format(alias, topic)) == topic`` for every alias without the separator.

    The topic may not be made of separators alone; nor may, if they have several characters, one begin in the alias.
    """
    topic = "tx.orders" if data is None else data.draw(joined_names(separator) | TEXTS)
    alias = "A" if data is None else data.draw(TEXTS.filter(bool))
    policy = DefaultPolicy(separator)
    remote = policy.format_remote_topic(alias, topic)
    holds_it = (alias + separator).find(separator) < len(alias)
    if not holds_it and topic.replace(separator, ""):
        assert (policy.topic_source(remote), policy.upstream_topic(remote)) == (alias, topic)
    elif not topic.replace(separator, ""):
        assert holds_it or policy.topic_source(remote) is None


@pytest.mark.parametrize("level", KAFKA_LEVELS)
@given(separator=SEPARATORS, data=st.data())
def test_internal_names_are_known_again(level: KafkaLevel, separator: str, data: st.DataObject) -> None:
    """Every policy calls what it names internal so, and no internal topic's name depends on the level."""
    alias = data.draw(TEXTS.filter(bool))
    for policy, other in zip(policies(separator, level), policies(separator, "4.0"), strict=True):
        syncs, checkpoints = policy.offset_syncs_topic(alias), policy.checkpoints_topic(alias)
        assert (syncs, checkpoints) == (other.offset_syncs_topic(alias), other.checkpoints_topic(alias))
        assert policy.is_checkpoints_topic(checkpoints)
        for name in (syncs, checkpoints):
            assert policy.is_mm2_internal_topic(name)
            assert policy.is_internal_topic(name)


@given(SEPARATORS, st.data())
def test_the_identity_policy_changes_heartbeats_alone(separator: str, data: st.DataObject) -> None:
    """Names that end with ``heartbeats`` are as under the default policy; others stay, and have the set source."""
    name = data.draw(joined_names(separator))
    default, identity = DefaultPolicy(separator), IdentityPolicy("S", separator)
    if name.endswith("heartbeats"):
        assert identity.format_remote_topic("A", name) == default.format_remote_topic("A", name)
        assert identity.topic_source(name) == default.topic_source(name)
        assert identity.upstream_topic(name) == default.upstream_topic(name)
    else:
        assert identity.format_remote_topic("A", name) == identity.upstream_topic(name) == name
        assert identity.topic_source(name) == "S"
        assert IdentityPolicy(None, separator).topic_source(name) is None


def test_odd_names_have_the_answers_of_kafka() -> None:
    """Separators at the end do not count, one at the front does."""
    policy = DefaultPolicy()
    assert [policy.topic_source(name) for name in ("a.", "a..", ".", "..", "", "a")] == [None] * 6
    assert policy.topic_source(".hidden") == ""
    assert [DefaultPolicy("_").topic_source(name) for name in ("_schemas", "__consumer_offsets")] == ["", ""]
    assert policy.original_topic("A.tx.orders") == "orders"
    assert policy.is_heartbeats_topic("my.heartbeats")
    assert not policy.is_heartbeats_topic("myheartbeats")


def test_a_separator_is_no_pattern() -> None:
    """Neither characters of patterns nor several of them mean anything but themselves."""
    assert DefaultPolicy("|").upstream_topic("A|orders") == "orders"
    assert DefaultPolicy("[.]").topic_source("A.orders") is None
    assert DefaultPolicy("__").topic_source("A___orders") == "A"
    assert DefaultPolicy("__").upstream_topic("A___orders") == "_orders"


def test_an_alias_that_holds_the_separator_misleads_kafka() -> None:
    """As in Kafka, the source is then a part of the alias."""
    policy = DefaultPolicy(aliases=("eu.west",))
    assert policy.format_remote_topic("eu.west", "orders") == "eu.west.orders"
    assert policy.topic_source("eu.west.orders") == "eu"


@pytest.mark.parametrize("make", [DefaultPolicy, IdentityPolicy])
def test_bad_settings_are_refused(make: type[DefaultPolicy] | type[IdentityPolicy]) -> None:
    """An empty separator or alias, a zero byte in the separator, and an unknown level; the error is typed."""
    assert make(separator="x", aliases=("",) * 0).aliases == ()
    for settings, reason in (
        ({"separator": ""}, "the separator is empty"),
        ({"separator": ".\0"}, "zero byte"),
        ({"aliases": ("A", "")}, "an alias is empty"),
    ):
        with pytest.raises(NamingPolicyError, match=reason) as caught:
            make(**settings)
        assert isinstance(caught.value, RaftLogError)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(NamingPolicyError, match=re.escape("the level '5' is none of 3.x, 4.0")):
        make(kafka_level=cast("KafkaLevel", "5"))


def test_an_empty_source_is_refused() -> None:
    """The identity policy knows a source or None."""
    with pytest.raises(NamingPolicyError, match="an alias is empty"):
        IdentityPolicy("")


def test_policies_are_values() -> None:
    """Equal settings make equal policies, which are keys of a table."""
    assert DefaultPolicy(aliases=("A",)) == DefaultPolicy(".", True, "4.0", ("A",))
    assert len({DefaultPolicy(), DefaultPolicy("."), DefaultPolicy("_"), IdentityPolicy(), IdentityPolicy("A")}) == 4
