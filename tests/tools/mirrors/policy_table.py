# SPDX-License-Identifier: Apache-2.0
"""The table of names as real replication policies answered, and our answers in the same form.

A line of the table is either a setting, or a name with the answers of the releases, or an alias and a topic with
theirs. An answer that all releases give is there once.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from raftlog.tools.mirrors.naming import KafkaLevel, NamingPolicy, TopicFilter, is_cycle, should_replicate
from tests.golden_files import GOLDEN
from tests.tools.mirrors.policy_names import RELEASES, TARGET, Setting

TABLE: Final = GOLDEN / "mirror-names/policies.jsonl"
Answer = list[str | None]
Asked = tuple[Setting, tuple[str, ...], dict[str, Answer]]
"""A setting, what was asked (a name, or an alias and a topic), and what each release answered."""


def recorded() -> Iterator[Asked]:
    """Yield the questions of the table with their answers."""
    setting = Setting()
    for line in TABLE.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if isinstance(entry, dict):
            setting = Setting(**entry)
            continue
        question, *answers = entry
        yield setting, tuple(question), dict(zip(RELEASES, answers * (3 - len(answers)), strict=True))


def as_line(question: Sequence[str], answers: Sequence[Answer]) -> str:
    """Return a line of the table."""
    kept = list(answers) if any(each != answers[0] for each in answers) else [answers[0]]
    return to_json([list(question), *kept])


def to_json(entry: Any) -> str:
    """Return a line of JSON."""
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"


def ours(setting: Setting, level: KafkaLevel, question: Sequence[str]) -> Answer:
    """Return what our policy answers."""
    policy = setting.policy(level)
    if len(question) == 1:
        return of_name(
            policy, setting.topic_filter(level), question[0], mirrors_heartbeats=setting.heartbeats != "false"
        )
    alias, topic = question
    return [
        policy.format_remote_topic(alias, topic),
        policy.heartbeats_topic(),
        policy.offset_syncs_topic(alias),
        policy.checkpoints_topic(alias),
    ]


def of_name(policy: NamingPolicy, topic_filter: TopicFilter, name: str, *, mirrors_heartbeats: bool) -> Answer:
    """Return what our policy and filter say of a name: source, upstream, original, and digits (MirrorNames.java)."""
    answers = (
        policy.is_heartbeats_topic(name),
        policy.is_checkpoints_topic(name),
        policy.is_mm2_internal_topic(name),
        policy.is_internal_topic(name),
        is_cycle(name, policy, TARGET),
        topic_filter.should_replicate_topic(name),
        should_replicate(name, policy, TARGET, topic_filter, heartbeats_replication_enabled=mirrors_heartbeats),
    )
    digits = "".join(str(int(answer)) for answer in answers)
    return [policy.topic_source(name), policy.upstream_topic(name), policy.original_topic(name), digits]
