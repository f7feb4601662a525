# SPDX-License-Identifier: Apache-2.0
"""The output of ``raftlog topics``: a table for people, or JSON lines (``docs/topics-1.schema.json``)."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.tools.mirrors.found_topics import FoundTopic, FoundTopics, SearchedDirectory
from raftlog.tools.mirrors.naming import Confidence, DefaultPolicy, IdentityPolicy, TopicClass, classify
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.uuid_text import uuid_to_text

_COLUMNS: Final = ("TOPIC", "KIND", "ALIAS", "UPSTREAM", "HOPS", "", "PARTITIONS", "IN", "TOPIC ID")
_HOPS_COLUMN: Final = _COLUMNS.index("HOPS")
_NONE: Final = "-"


@attrs.frozen
class ClassifiedTopics:
    """Topics with what their names say.

    Attributes:
        found: the topics.
        policy: how their names were read.
    """

    found: FoundTopics
    policy: DefaultPolicy | IdentityPolicy

    @property
    def classes(self) -> Iterator[tuple[FoundTopic, TopicClass]]:
        """Each topic with its class."""
        return ((topic, classify(topic.name, self.policy)) for topic in self.found.topics)


def text_lines(topics: ClassifiedTopics) -> Iterator[str]:
    """Yield the lines for people: the policy, the log directories with their numbers, and a table of topics."""
    yield from fit_lines([_policy_line(topics.policy)])
    yield from fit_lines(_directory_lines(topics.found.directories))
    yield ""
    classes = list(topics.classes)
    if not classes:
        yield "There are no topics."
        return
    yield from table([_COLUMNS, *(_row(topic, says) for topic, says in classes)], frozenset({_HOPS_COLUMN}))
    if any(says.confidence is Confidence.GUESS for _, says in classes):
        yield ""
        yield from fit_lines([_guess_line(topics.policy)])


def json_lines(topics: ClassifiedTopics) -> Iterator[str]:
    """Yield the JSON lines: the policy, the log directories, and the topics."""
    policy = topics.policy
    yield json_line(
        "policy",
        None,
        policy=_policy_name(policy),
        separator=policy.separator,
        internal_separator=policy.internal_separator,
        aliases=list(policy.aliases),
        source=policy.source if isinstance(policy, IdentityPolicy) else None,
        kafka_level=policy.kafka_level,
    )
    for number, each in enumerate(topics.found.directories, 1):
        members = path_member("directory", each.path)
        yield json_line("directory", None, number=number, **members, cluster_id=each.cluster_id, node_id=each.node_id)
    for topic, says in topics.classes:
        yield _topic_line(topic, says)


def _topic_line(topic: FoundTopic, says: TopicClass) -> str:
    return json_line(
        "topic",
        None,
        topic=topic.name,
        cluster_id=topic.cluster_id,
        topic_kind=says.kind.value,
        source=says.source,
        upstream=says.upstream,
        original=says.original,
        hops=says.hops,
        confidence=says.confidence.value,
        alias=says.alias,
        topic_id=None if topic.topic_id is None else uuid_to_text(topic.topic_id),
        replicas=[{"partition": each.partition, "directory_number": each.directory} for each in topic.replicas],
    )


def _policy_line(policy: DefaultPolicy | IdentityPolicy) -> str:
    parts = [f"Policy {_policy_name(policy)}, separator {policy.separator!r}"]
    if policy.internal_separator != policy.separator:
        parts.append(f"in internal names {policy.internal_separator!r}")
    if isinstance(policy, IdentityPolicy) and policy.source is not None:
        parts.append(f"source {policy.source}")
    parts.append(f"aliases {', '.join(policy.aliases)}" if policy.aliases else "no known aliases")
    parts.append("internal names as before Kafka 4.0" if policy.kafka_level == "3.x" else "internal names as of 4.0")
    return f"{', '.join(parts)}."


def _directory_lines(directories: Sequence[SearchedDirectory]) -> Iterator[str]:
    for number, each in enumerate(directories, 1):
        known = [] if each.cluster_id is None else [f"cluster {each.cluster_id}"]
        known += [] if each.node_id is None else [f"node {each.node_id}"]
        yield f"{number}: {each.path} ({', '.join(known) or 'of an unknown cluster'})"


def _row(topic: FoundTopic, says: TopicClass) -> tuple[str, ...]:
    return (
        topic.name,
        says.kind.value,
        says.source or says.alias or _NONE,
        says.upstream or _NONE,
        str(says.hops),
        says.confidence.value,
        ranges(topic.partitions),
        ranges(topic.directories),
        _NONE if topic.topic_id is None else uuid_to_text(topic.topic_id),
    )


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers in short, such as ``0-3, 7``."""
    texts: list[str] = []
    first = last = None
    for number in [*numbers, None]:
        if number is not None and last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            texts.append(str(first) if first == last else f"{first}-{last}")
        first = last = number
    return ", ".join(texts)


def _guess_line(policy: DefaultPolicy | IdentityPolicy) -> str:
    if not policy.aliases:
        return "A guess is a name that could be another topic's too; --aliases says which clusters there are."
    if isinstance(policy, IdentityPolicy):
        return "A guess is a name that the identity policy leaves as it is, or one with an alias that is not known."
    return "A guess is a name with an alias that is not among the known ones."


def _policy_name(policy: DefaultPolicy | IdentityPolicy) -> str:
    return "identity" if isinstance(policy, IdentityPolicy) else "default"
