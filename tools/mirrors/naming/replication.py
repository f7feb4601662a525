# SPDX-License-Identifier: Apache-2.0
"""Whether MirrorMaker mirrors a topic: its filter, and the check that no topic goes round in a cycle.

Source: MirrorSourceConnector, DefaultTopicFilter, MirrorUtils#compilePatternList.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Self

import attrs

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming.policies import KafkaLevel, NamingPolicy

DEFAULT_EXCLUDES: Final[Mapping[KafkaLevel, tuple[str, ...]]] = {
    "3.x": (r".*[\-\.]internal", r".*\.replica", r"__.*"),
    "4.0": (r"mm2.*\.internal", r".*\.replica", r"__.*"),
}
"""The patterns that the topic filter of each level excludes if nothing else is configured (``topics.exclude``)."""

_NOTHING: Final = r"(?!)"


def _to_tuple(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(patterns)


def _joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that matches what one of several matches; that of none matches nothing.

    Raises:
        NamingPolicyError: they are no patterns of Python.
    """
    try:
        return re.compile("|".join(patterns) if patterns else _NOTHING, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise NamingPolicyError(f"the topics {', '.join(patterns)} are no pattern of Python: {error}") from None


@attrs.frozen
class TopicFilter:
    r"""MirrorMaker's topic filter: a topic passes if a whole pattern includes it, and none excludes it.

    The patterns are read as Python's. Those agree with Java's on names of ASCII characters, which are all that Kafka
    allows, in what filters of topics need; classes such as ``\p{Alpha}`` and flags inside of a pattern are refused. As
    in Kafka, the patterns are alternatives of one pattern.

    Attributes:
        topics: patterns of what to include; without any, nothing passes.
        exclude: patterns of what to exclude.

    Raises:
        NamingPolicyError: a pattern is none that Python knows.
    """

    topics: tuple[str, ...] = attrs.field(default=(".*",), converter=_to_tuple)
    exclude: tuple[str, ...] = attrs.field(default=DEFAULT_EXCLUDES["4.0"], converter=_to_tuple)
    _included: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)
    _excluded: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_included", _joined(self.topics))
        object.__setattr__(self, "_excluded", _joined(self.exclude))

    @classmethod
    def of_level(cls, kafka_level: KafkaLevel) -> Self:
        """Return the filter that a release has if nothing is configured."""
        return cls(exclude=DEFAULT_EXCLUDES[kafka_level])

    @classmethod
    def of_lists(cls, topics: str, exclude: str) -> Self:
        """Return a filter from the values of ``topics`` and ``topics.exclude``: patterns between commas.

        A comma always ends a pattern, as it does in Kafka, even one inside of braces.

        Raises:
            NamingPolicyError: a pattern is none that Python knows.
        """
        return cls(_list_of(topics), _list_of(exclude))

    def should_replicate_topic(self, topic: str) -> bool:
        """Whether a topic passes."""
        return self._included.fullmatch(topic) is not None and self._excluded.fullmatch(topic) is None


def is_cycle(topic: str, policy: NamingPolicy, target: str) -> bool:
    """Whether a topic comes from the target cluster, directly or through others, so that mirroring it would be a cycle.

    Under the identity policy names do not say so, and Kafka looks no further than the configured source.

    Args:
        topic: a topic of the source cluster.
        policy: how mirrors are named.
        target: the alias of the cluster that it would be mirrored to.
    """
    while (source := policy.topic_source(topic)) is not None:
        if source == target:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return False
        topic = upstream
    return False


def should_replicate(
    topic: str,
    policy: NamingPolicy,
    target: str,
    topic_filter: TopicFilter | None = None,
    *,
    heartbeats_replication_enabled: bool = True,
) -> bool:
    """Whether MirrorMaker mirrors a topic.

    Args:
        topic: a topic of the source cluster.
        policy: how mirrors are named.
        target: the alias of the cluster that it would be mirrored to.
        topic_filter: None for the one of the policy's level.
        heartbeats_replication_enabled: whether topics for heartbeats pass whatever the filter says
            (``heartbeats.replication.enabled``); Kafka 3.9 has no such setting, and lets them pass.
    """
    filter_in_force = TopicFilter.of_level(policy.kafka_level) if topic_filter is None else topic_filter
    passes = filter_in_force.should_replicate_topic(topic) or (
        heartbeats_replication_enabled and policy.is_heartbeats_topic(topic)
    )
    return passes and not policy.is_internal_topic(topic) and not is_cycle(topic, policy, target)


def _list_of(text: str) -> tuple[str, ...]:
    """Return the parts of a list as Kafka's configuration splits it: at commas, with the blanks around these."""
    text = text.strip()
    return tuple(re.split(r"\s*,\s*", text)) if text else ()
