# SPDX-License-Identifier: Apache-2.0
"""Kafka's two replication policies: how MirrorMaker names the topics that it makes, and reads the names that it finds.

Each function gives Kafka's answer, also where that is odd: ``a.`` has no source, and ``.hidden`` has the source "".
What raftlog concludes from a name is in ``topic_class``.

Source: KIP-690, KIP-949, KAFKA-17200; ReplicationPolicy, DefaultReplicationPolicy, IdentityReplicationPolicy.
"""

from typing import Final, Literal, Protocol, get_args

import attrs

from raftlog.errors import NamingPolicyError

KafkaLevel = Literal["3.x", "4.0"]
"""Whose names are internal: by the rule of Kafka's releases before 4.0, or from 4.0 on (KAFKA-17200)."""
KAFKA_LEVELS: Final[tuple[KafkaLevel, ...]] = get_args(KafkaLevel)

DEFAULT_SEPARATOR: Final = "."
_HEARTBEATS: Final = "heartbeats"
_CHECKPOINTS: Final = "checkpoints"
_INTERNAL: Final = "internal"
_OFFSET_SYNCS: Final = "mm2-offset-syncs"
_MM2_PREFIX: Final = "mm2"
_HIDDEN_PREFIXES: Final = ("__", ".")
_INTERNAL_SUFFIXES: Final = (".internal", "-internal")


class NamingPolicy(Protocol):
    """What MirrorMaker asks of a ``ReplicationPolicy``, and the settings that a classification needs."""

    @property
    def separator(self) -> str:
        """What stands between an alias and the name of the upstream topic."""
        ...

    @property
    def kafka_level(self) -> KafkaLevel:
        """The rule for internal topics."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of clusters that are known to be mirrored; empty if none is known. Kafka does not use them."""
        ...

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that the mirror of a topic has on the target cluster."""
        ...

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic is mirrored from; None if it is not a mirror."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name that a mirrored topic has on its source cluster; None if it is not a mirror."""
        ...

    def original_topic(self, topic: str) -> str:
        """Return the name that is left once all sources are stripped, without knowing any alias."""
        ...

    def heartbeats_topic(self) -> str:
        """Return the name of the topic for heartbeats."""
        ...

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether a topic has heartbeats, or is a mirror of such a topic."""
        ...

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the topic for offset syncs.

        Args:
            alias: of the target cluster if the topic lives on the source cluster, which is the default; else of the
                source cluster.
        """
        ...

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the name of the topic for checkpoints, which lives on the target cluster."""
        ...

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether a name is that of a topic for checkpoints, whatever its alias."""
        ...

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether a topic is one of MirrorMaker's own."""
        ...

    def is_internal_topic(self, topic: str) -> bool:
        """Whether a topic is one of Kafka's or MirrorMaker's own, and is never mirrored."""
        ...


class _PrefixedNames:
    """What both policies of Kafka have in common: aliases as prefixes, and the names of internal topics."""

    __slots__ = ()

    separator: str
    internal_separator_enabled: bool
    kafka_level: KafkaLevel
    aliases: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not self.separator:
            raise NamingPolicyError("the separator is empty: no alias could be told from the name after it")
        if "\0" in self.separator:
            raise NamingPolicyError("the separator holds a zero byte, which no name of a topic has")
        if self.kafka_level not in KAFKA_LEVELS:
            raise NamingPolicyError(f"the level {self.kafka_level!r} is none of {', '.join(KAFKA_LEVELS)}")
        _check_aliases(self.aliases)

    @property
    def internal_separator(self) -> str:
        """What separates the parts of internal names: the separator, or a dot if that is not enabled (KIP-949)."""
        return self.separator if self.internal_separator_enabled else DEFAULT_SEPARATOR

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that the mirror of a topic has on the target cluster."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the part of a name before its first separator; None if nothing but separators is after it.

        Source: DefaultReplicationPolicy#topicSource, whose split is literal, and drops empty parts at the end only.
        """
        source, _, rest = topic.partition(self.separator)
        return source if any(rest.split(self.separator)) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the part of a name after its first separator; None if it has no source."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name that is left once all sources are stripped, without knowing any alias.

        ``A.tx.orders`` gives ``orders``, although ``tx`` need not be a cluster. Takes time in proportion to the name's
        length times its separators; Kafka's names have 249 characters at most.
        """
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """Return the name of the topic for heartbeats, which no setting changes."""
        return _HEARTBEATS

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether the original topic is that for heartbeats; so is that of ``my.heartbeats``."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the topic for offset syncs.

        Args:
            alias: of the target cluster if the topic lives on the source cluster, which is the default
                (``offset-syncs.topic.location``); else of the source cluster.
        """
        return f"{_OFFSET_SYNCS}{self.internal_separator}{alias}{self._internal_suffix}"

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the name of the topic for checkpoints, which lives on the target cluster."""
        return f"{source_alias}{self._checkpoints_suffix}"

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether a name ends as those of topics for checkpoints do, whatever its alias."""
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether a topic is one of MirrorMaker's own.

        At level 3.x, each name that ends with the internal separator and ``internal`` is one (KAFKA-17200).
        """
        ends_so = topic.endswith(self._internal_suffix)
        if self.kafka_level == "3.x":
            return ends_so
        return (ends_so and topic.startswith(_MM2_PREFIX)) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Whether a topic is MirrorMaker's own, or begins with ``__`` or a dot, and is therefore never mirrored.

        At level 3.x, names that end with ``.internal`` or ``-internal`` are internal too.
        """
        if self.kafka_level == "3.x" and topic.endswith(_INTERNAL_SUFFIXES):
            return True
        return topic.startswith(_HIDDEN_PREFIXES) or self.is_mm2_internal_topic(topic)

    @property
    def _internal_suffix(self) -> str:
        return f"{self.internal_separator}{_INTERNAL}"

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self.internal_separator}{_CHECKPOINTS}{self._internal_suffix}"


@attrs.frozen
class DefaultPolicy(_PrefixedNames):
    """MirrorMaker's default policy: the mirror of ``orders`` from the cluster ``A`` is ``A.orders``.

    An alias that holds the separator is accepted, as Kafka accepts it, and Kafka's functions then take a part of the
    alias for the source. Only ``classify`` knows better.

    Attributes:
        separator: stands between alias and name: ``replication.policy.separator``. Taken literally, also if it has
            several characters or those of a pattern.
        internal_separator_enabled: whether names of internal topics have that separator, not dots:
            ``replication.policy.internal.topic.separator.enabled``.
        kafka_level: the rule for internal topics.
        aliases: of the clusters that are known to be mirrored; empty if none is known. Only ``classify`` uses them.

    Raises:
        NamingPolicyError: the separator or an alias is empty, the separator holds a zero byte, or the level is unknown.
    """

    separator: str = DEFAULT_SEPARATOR
    internal_separator_enabled: bool = True
    kafka_level: KafkaLevel = "4.0"
    aliases: tuple[str, ...] = ()


@attrs.frozen
class IdentityPolicy(_PrefixedNames):
    """Mirrors have the names of their sources, except that each name that ends with ``heartbeats`` gets a prefix.

    Attributes:
        source: the alias of the source cluster: ``source.cluster.alias``; None if it is not known.
        separator: as in ``DefaultPolicy``, for heartbeats and internal topics.
        internal_separator_enabled: as in ``DefaultPolicy``.
        kafka_level: the rule for internal topics.
        aliases: as in ``DefaultPolicy``.

    Raises:
        NamingPolicyError: as for ``DefaultPolicy``, or the source is empty.
    """

    source: str | None = None
    separator: str = DEFAULT_SEPARATOR
    internal_separator_enabled: bool = True
    kafka_level: KafkaLevel = "4.0"
    aliases: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        _check_aliases(() if self.source is None else (self.source,))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name of the mirror: the same, but for names that end with ``heartbeats``."""
        return super().format_remote_topic(source_alias, topic) if _looks_like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the source that is configured, for each name that does not end with ``heartbeats``."""
        return super().topic_source(topic) if _looks_like_heartbeats(topic) else self.source

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name, but for names that end with ``heartbeats``."""
        return super().upstream_topic(topic) if _looks_like_heartbeats(topic) else topic


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(_HEARTBEATS)


def _check_aliases(aliases: tuple[str, ...]) -> None:
    if "" in aliases:
        raise NamingPolicyError("an alias is empty: it names no cluster")
