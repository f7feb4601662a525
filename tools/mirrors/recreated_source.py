# SPDX-License-Identifier: Apache-2.0
"""What topic ids say of a source: whether it is the topic that was mirrored.

MirrorMaker mirrors by names. A topic that is deleted and made anew has another id, which the metadata log and
``partition.metadata`` tell; the mirror goes on, or stands still, and has what the former topic had.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import MirrorFault
from raftlog.tools.mirrors.pair_findings import PairFinding, rule_of
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.clusters import PartitionLog
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata
from raftlog.tools.terminal.value_text import time_text
from raftlog.uuid_text import uuid_to_text

_RULE: Final = rule_of(MirrorFault.SOURCE_RECREATED)


def with_topic_ids(
    findings: Sequence[PairFinding],
    pair: MirrorPair,
    source: PartitionLog,
    metadata: ClusterMetadata | None,
    target: PartitionLog | None = None,
) -> Iterator[PairFinding]:
    """Yield findings about a pair with what topic ids add to them.

    Args:
        findings: of the pair. Those that the source was made anew get the ids, if these are known.
        pair: the partition and its mirror.
        source: the log that was compared.
        metadata: of its cluster; None if they are not here.
        target: the log that has the mirror, if that has to have the topic id of its source.
    """
    words = "" if metadata is None else _words(metadata, pair.source)
    for each in findings:
        yield attrs.evolve(each, reason=each.reason + words) if each.rule == _RULE else each
    now = None if metadata is None else metadata.tables.topic_ids.get(pair.source)
    own = source.topic_id
    other = None if target is None else target.topic_id
    if other is not None and own is not None and own != other:
        reason = f"the topic id of {pair.source}-{pair.partition} is {uuid_to_text(own)}, and {uuid_to_text(other)}"
        yield PairFinding(_RULE, Severity.DATA_LOSS, f"{reason} in the mirror: one of them was made anew", pair)
    if now is None or own is None or own == now or any(each.rule == _RULE for each in findings):
        return
    reason = (
        f"{pair.source}-{pair.partition} is a log of topic id {uuid_to_text(own)}, and the topic of that name has"
        f" {uuid_to_text(now)}: it was made anew, and no log of it is here"
    )
    yield PairFinding(_RULE, Severity.DATA_LOSS, reason, pair)


def _words(metadata: ClusterMetadata, topic: str) -> str:
    former, now = metadata.former_id(topic), metadata.tables.topic_ids.get(topic)
    if former is None or now is None:
        return ""
    since_ms = metadata.since_ms(topic)
    since = "" if since_ms is None else f" since {time_text(since_ms)}"
    return f": its topic id was {uuid_to_text(former)}, and is {uuid_to_text(now)}{since}"
