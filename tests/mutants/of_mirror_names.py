# SPDX-License-Identifier: Apache-2.0
"""Names of mirrors that are read in another way than MirrorMaker gives them."""

import re
from typing import Any, Final

from raftlog.tools.mirrors import found_topics, naming_options
from raftlog.tools.mirrors.naming import configured_policy, policies, replication, topic_class
from raftlog.tools.mirrors.naming.policies import IdentityPolicy
from tests.mutants.planting import Mutant, instead, instead_of_property, missing, swapped

_NAMES: Final = policies._PrefixedNames
TABLE: Final = "tests/tools/mirrors/test_policies.py::test_every_answer_is_that_of_kafka"
CLASSES: Final = "tests/tools/mirrors/test_topic_class.py"
REPLICATION: Final = "tests/tools/mirrors/test_replication.py"


def _with_empty_parts(self: Any, topic: str) -> str | None:
    source, found, _ = topic.partition(self.separator)
    return source if found else None


def _without_empty_source(right: Any) -> Any:
    return lambda self, topic: right(self, topic) or None


def _by_pattern(self: Any, topic: str) -> str | None:
    try:
        parts = re.split(self.separator, topic)
    except re.error:
        return None
    return parts[0] if len(parts) > 1 and any(parts[1:]) else None


def _internal_by_its_end(self: Any, topic: str) -> bool:
    return bool(topic.endswith(f"{self.internal_separator}internal"))


def _internal_by_its_start(right: Any) -> Any:
    return lambda self, topic: right(self, topic) and not topic.endswith("-internal")


def _only_heartbeats(topic: str) -> bool:
    return topic == "heartbeats" or topic.endswith(".heartbeats")


def _nearest_alone(topic: str, policy: Any, target: str) -> bool:
    return bool(policy.topic_source(topic) == target)


def _part_of_a_name(self: Any, topic: str) -> bool:
    return self._included.match(topic) is not None and self._excluded.match(topic) is None


def _any_prefix(name: str, policy: Any) -> Any:
    return topic_class._stripped_guessed(name, policy)


def _shortest_first(right: Any) -> Any:
    return lambda name, aliases, policy: right(name, aliases[::-1], policy)


def _all_aliases_alike(right: Any) -> Any:
    def wrong(kind: Any, name: str, alias: str, policy: Any) -> Any:
        found = right(kind, name, alias, policy)
        return topic_class.TopicClass(kind, alias, None, name, 0, found.confidence, alias)

    return wrong


def _with_underscores(_: Any) -> Any:
    return re.compile("mm2-(?:offsets|status|configs)_(.+)_internal")


def _configured_first(given: Any, configured: Any, known_aliases: Any) -> Any:
    return configured_policy({**naming_options._properties(given), **configured}, given.kafka_level, known_aliases)


MUTANTS: Final = (
    Mutant(
        "R-mirror-split",
        "separators at the end of a name begin no part",
        "DefaultReplicationPolicy#topicSource",
        instead(_NAMES, "topic_source", _with_empty_parts),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-empty-source",
        "a separator in front of a name has an empty source before it",
        "DefaultReplicationPolicy#topicSource",
        swapped(_NAMES, "topic_source", _without_empty_source),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-pattern",
        "a separator is a literal",
        "DefaultReplicationPolicy#configure",
        instead(_NAMES, "topic_source", _by_pattern),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-level",
        "since 4.0 a name must begin with mm2 as well to be internal",
        "KAFKA-17200",
        instead(_NAMES, "is_mm2_internal_topic", _internal_by_its_end),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-hyphen",
        "before 4.0 names that end with -internal are internal too",
        "KAFKA-17200",
        swapped(_NAMES, "is_internal_topic", _internal_by_its_start),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-internal-separator",
        "internal names have dots if the internal separator is off",
        "KIP-949",
        instead_of_property(_NAMES, "internal_separator", lambda self: self.separator),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-identity",
        "under the identity policy every name that ends with heartbeats gets a prefix",
        "IdentityReplicationPolicy#looksLikeHeartbeat",
        instead(policies, "_looks_like_heartbeats", _only_heartbeats),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-identity-source",
        "under the identity policy every other name has the configured source",
        "IdentityReplicationPolicy#topicSource",
        instead(IdentityPolicy, "topic_source", _NAMES.topic_source),
        (TABLE,),
    ),
    Mutant(
        "R-mirror-cycle",
        "every source of a chain may close a cycle",
        "MirrorSourceConnector#isCycle",
        instead(replication, "is_cycle", _nearest_alone),
        (f"{REPLICATION}::test_a_cycle_is_a_chain_that_holds_the_target", TABLE),
    ),
    Mutant(
        "R-mirror-filter",
        "a pattern of a filter matches a whole name",
        "DefaultTopicFilter#shouldReplicateTopic",
        instead(replication.TopicFilter, "should_replicate_topic", _part_of_a_name),
        (f"{REPLICATION}::test_a_pattern_matches_whole_names", TABLE),
    ),
    Mutant(
        "R-mirror-alias",
        "only known aliases are stripped",
        "ReplicationPolicy#originalTopic",
        instead(topic_class, "_stripped_known", _any_prefix),
        (f"{CLASSES}::test_each_name_has_its_class",),
    ),
    Mutant(
        "R-mirror-longest",
        "of aliases that begin alike the longest is stripped",
        "KIP-690",
        swapped(topic_class, "_strip_one", _shortest_first),
        (f"{CLASSES}::test_each_name_has_its_class", CLASSES),
    ),
    Mutant(
        "R-mirror-connect",
        "Connect's topics have dots under every separator",
        "MirrorMakerConfig#workerConfig",
        swapped(topic_class, "_CONNECT", _with_underscores),
        (f"{CLASSES}::test_each_name_has_its_class",),
    ),
    Mutant(
        "R-mirror-syncs",
        "the alias of an offset-syncs topic may be of the target",
        "DefaultReplicationPolicy#offsetSyncsTopic",
        swapped(topic_class, "_with_alias", _all_aliases_alike),
        (f"{CLASSES}::test_each_name_has_its_class",),
    ),
    Mutant(
        "R-mirror-options",
        "an option counts more than what is configured",
        "MirrorMakerConfig#connectorBaseConfig",
        instead(naming_options, "naming_policy", _configured_first),
        ("tests/tools/mirrors/test_naming_options.py::test_each_option_counts_more_than_its_property",),
    ),
    Mutant(
        "R-mirror-topic-id",
        "directories of one name with several topic ids are of several topics",
        "KIP-516",
        missing(found_topics._TopicSearch, "_topic_id"),
        ("tests/tools/mirrors/test_found_topics.py",),
    ),
)
