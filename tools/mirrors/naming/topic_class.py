# SPDX-License-Identifier: Apache-2.0
"""What a topic's name says of it: whose it is, and by how many mirrors it came.

Kafka's policies strip every prefix, whether it is an alias or not, and each of their questions has an answer of its
own. A classification gives each name exactly one kind, and says how sure that is. With the aliases of the clusters it
strips only those; without, each name with a separator may be a mirror.

Source: KIP-382 and KIP-690 for the names; MirrorMakerConfig for those of Connect's topics.
"""

import enum
import re
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.mirrors.naming.policies import NamingPolicy

_CONNECT: Final = re.compile(r"mm2-(?:offsets|status|configs)\.(.+)\.internal", re.DOTALL)
"""Always with dots, under every policy and separator; only Connect's own settings rename these topics."""
_HIDDEN_PREFIXES: Final = ("__", ".")


class TopicKind(enum.Enum):
    """What a topic is."""

    KAFKA_INTERNAL = "kafka_internal"
    """Internal by Kafka's rule (``is_internal_topic``) and none of the kinds below, such as ``__consumer_offsets``."""
    METADATA_QUORUM = "metadata_quorum"
    """The metadata log, which is no topic that clients see."""
    MM2_OFFSET_SYNCS = "mm2_offset_syncs"
    MM2_CHECKPOINTS = "mm2_checkpoints"
    MM2_HEARTBEATS = "mm2_heartbeats"
    """The topic for heartbeats or, with a source, a mirror of one."""
    CONNECT_INTERNAL = "connect_internal"
    """Offsets, status or configuration of MirrorMaker's Connect workers."""
    REMOTE = "remote"
    """The mirror of a topic of another cluster."""
    LOCAL = "local"
    """A topic that is no mirror."""


class Confidence(enum.Enum):
    """How sure a classification is."""

    SURE = "sure"
    """The name can mean nothing else, if policy and aliases are those of the cluster."""
    GUESS = "guess"
    """The name has the form, and another topic could have it: the alias is not a known one, or the policy is the
    identity, under which the name of a mirror does not differ."""


@attrs.frozen
class TopicClass:
    """What a topic's name says.

    Attributes:
        kind: what the topic is.
        source: the alias of the cluster that its records come from: the one next to it, in a chain of mirrors. None if
            there is none, and for offset syncs, whose alias may be of the source or of the target.
        upstream: the topic's name on the source cluster; None if it is no mirror.
        original: the topic's name on the first cluster of the chain; its own name if it is no mirror.
        hops: number of mirrors that its records came through.
        confidence: how sure this is.
        alias: of the other cluster, in the name of a topic of MirrorMaker or Connect that is no mirror; else None.
    """

    kind: TopicKind
    source: str | None
    upstream: str | None
    original: str
    hops: int
    confidence: Confidence
    alias: str | None = None


def classify(name: str, policy: NamingPolicy) -> TopicClass:
    """Return what a topic's name says, under a policy.

    Every text has a class; the order of the policy's aliases does not matter. Of aliases that begin alike, the longest
    is stripped. ``my.heartbeats`` is a mirror from ``my`` only if that is a known alias, or none is known.

    Kafka's functions know no aliases (``original_topic``).
    """
    if name == METADATA_TOPIC:
        return _at_home(TopicKind.METADATA_QUORUM, name)
    if (connect := _CONNECT.fullmatch(name)) is not None:
        return _with_alias(TopicKind.CONNECT_INTERNAL, name, connect[1], policy)
    start, _, end = policy.offset_syncs_topic("\0").partition("\0")
    if (alias := _between(name, start, end)) is not None:
        return _with_alias(TopicKind.MM2_OFFSET_SYNCS, name, alias, policy)
    if name.startswith(_HIDDEN_PREFIXES):
        return _at_home(TopicKind.KAFKA_INTERNAL, name)
    if (alias := _between(name, "", policy.checkpoints_topic(""))) is not None:
        return _with_alias(TopicKind.MM2_CHECKPOINTS, name, alias, policy)
    if policy.is_internal_topic(name):
        return _at_home(TopicKind.KAFKA_INTERNAL, name)
    return _mirror_or_not(name, policy)


def _mirror_or_not(name: str, policy: NamingPolicy) -> TopicClass:
    """Return the class of a topic that is not internal."""
    chain = list(_stripped_known(name, policy) if policy.aliases else _stripped_guessed(name, policy))
    original = chain[-1][1] if chain else name
    is_heartbeats = original == policy.heartbeats_topic()
    if chain:
        kind = TopicKind.MM2_HEARTBEATS if is_heartbeats else TopicKind.REMOTE
        confidence = Confidence.SURE if policy.aliases else Confidence.GUESS
        return TopicClass(kind, *chain[0], original, len(chain), confidence)
    if is_heartbeats:
        return _at_home(TopicKind.MM2_HEARTBEATS, name)
    if policy.upstream_topic(name) != name:
        return _at_home(TopicKind.LOCAL, name)
    source = policy.topic_source(name)  # Names do not change: each may be a mirror's, or not.
    if source is None:
        return TopicClass(TopicKind.LOCAL, None, None, name, 0, Confidence.GUESS)
    return TopicClass(TopicKind.REMOTE, source, name, name, 1, Confidence.GUESS)


def _stripped_known(name: str, policy: NamingPolicy) -> Iterator[tuple[str, str]]:
    """Yield each known alias in front of a name, and the name without it, from the nearest cluster to the first."""
    longest_first = sorted(policy.aliases, key=lambda alias: (-len(alias), alias))
    while (stripped := _strip_one(name, longest_first, policy)) is not None:
        yield stripped
        name = stripped[1]


def _strip_one(name: str, aliases: list[str], policy: NamingPolicy) -> tuple[str, str] | None:
    for alias in aliases:
        upstream = name.removeprefix(f"{alias}{policy.separator}")
        is_name = any(upstream.split(policy.separator))  # Kafka finds no source in front of separators alone.
        if upstream != name and is_name and policy.format_remote_topic(alias, upstream) == name:
            return alias, upstream
    return None


def _stripped_guessed(name: str, policy: NamingPolicy) -> Iterator[tuple[str, str]]:
    """Yield what Kafka takes for the sources of a name, up to an empty one: no cluster has such an alias."""
    while (source := policy.topic_source(name)) and (upstream := policy.upstream_topic(name)) != name:
        if upstream is None:
            return
        yield source, upstream
        name = upstream


def _at_home(kind: TopicKind, name: str) -> TopicClass:
    """Return the class of a topic that is sure to be no mirror."""
    return TopicClass(kind, None, None, name, 0, Confidence.SURE)


def _with_alias(kind: TopicKind, name: str, alias: str, policy: NamingPolicy) -> TopicClass:
    """Return the class of a topic of MirrorMaker or Connect.

    Names that begin with ``mm2-`` are not chosen by chance, so that an alias need not be known; one that contradicts
    the known ones makes a guess of it.
    """
    is_sure = alias in policy.aliases or (not policy.aliases and kind is not TopicKind.MM2_CHECKPOINTS)
    source = None if kind is TopicKind.MM2_OFFSET_SYNCS else alias
    return TopicClass(kind, source, None, name, 0, Confidence.SURE if is_sure else Confidence.GUESS, alias)


def _between(name: str, start: str, end: str) -> str | None:
    """Return what a name has between a start and an end; None if it does not have these, or nothing between."""
    if len(name) <= len(start) + len(end) or not (name.startswith(start) and name.endswith(end)):
        return None
    return name[len(start) : len(name) - len(end)]
