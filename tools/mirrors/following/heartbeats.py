# SPDX-License-Identifier: Apache-2.0
"""When a flow stood still, as its heartbeats say.

A worker writes its heartbeats to the target of its flow. Their topic is compacted, and their key does not change: what
compaction has removed proves nothing. In a mirror of that topic, time runs backwards where a task has gone on from
before what it had mirrored, and the same times come again.

Source: MirrorHeartbeatTask.
"""

import bisect
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import attrs

from raftlog.records.messages.mirrors.mirror_records import HeartbeatKey
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following.mirror_findings import MirrorFinding

_RULE: Final = "mirror.heartbeat-gap"
_MOST_INTERVALS: Final = 3
"""A distance of so many intervals is not a gap yet."""


@attrs.frozen
class StoredHeartbeat:
    """A heartbeat as a topic holds it.

    Attributes:
        flow: from which cluster to which.
        timestamp_ms: when it was written, in ms since the Unix epoch.
        offset: of it, in the topic.
    """

    flow: HeartbeatKey
    timestamp_ms: int
    offset: int


@attrs.frozen
class FlowSpan:
    """The time that the heartbeats of a flow cover.

    Attributes:
        flow: from which cluster to which, in words.
        since_ms: of the first one, in ms since the Unix epoch.
        until_ms: of the last one.
        count: how many there are.
    """

    flow: str
    since_ms: int
    until_ms: int
    count: int


def flow_spans(heartbeats: Iterable[StoredHeartbeat]) -> tuple[FlowSpan, ...]:
    """Return the times that the heartbeats of one topic cover, by flow."""
    times: dict[str, list[int]] = {}
    for each in heartbeats:
        times.setdefault(_flow_text(each.flow), []).append(each.timestamp_ms)
    return tuple(FlowSpan(flow, min(found), max(found), len(found)) for flow, found in sorted(times.items()))


def _flow_text(flow: HeartbeatKey) -> str:
    return f"{flow.source_cluster_alias} -> {flow.target_cluster_alias}"


def heartbeat_gaps(
    heartbeats: Iterable[StoredHeartbeat], interval_ms: int | None = None, missing: Sequence[OffsetRange] = ()
) -> tuple[MirrorFinding, ...]:
    """Return the times without heartbeats that are longer than three intervals, by flow and then by time.

    Two heartbeats show a gap if they follow each other in the topic, nothing between them is missing there, and no
    heartbeat anywhere in it is of a time between theirs. A gap that the topic shows several times is returned once.

    Args:
        heartbeats: of one topic, in its order, of any flows.
        interval_ms: as configured (``emit.heartbeats.interval.seconds``), in ms; None, or 0, for the median of the
            distances of each flow, the lower one of two.
        missing: the offsets of the topic, between its first and its last record, that have no record any more, in
            order and without overlap.
    """
    by_flow: dict[tuple[str, str], list[StoredHeartbeat]] = {}
    for each in heartbeats:
        by_flow.setdefault((each.flow.source_cluster_alias, each.flow.target_cluster_alias), []).append(each)
    return tuple(
        finding for _, of_flow in sorted(by_flow.items()) for finding in _gaps_of_flow(of_flow, interval_ms, missing)
    )


def _gaps_of_flow(
    heartbeats: Sequence[StoredHeartbeat], interval_ms: int | None, missing: Sequence[OffsetRange]
) -> Iterator[MirrorFinding]:
    pairs = list(_following(heartbeats, missing))
    if not pairs:
        return
    interval = interval_ms or statistics.median_low(after.timestamp_ms - before.timestamp_ms for before, after in pairs)
    times = sorted({each.timestamp_ms for each in heartbeats})
    found: dict[int, MirrorFinding] = {}
    for before, after in pairs:
        start, end = before.timestamp_ms, after.timestamp_ms
        is_next = times[bisect.bisect_right(times, start)] == end
        if is_next and end - start > _MOST_INTERVALS * interval and start not in found:
            found[start] = _gap(before, after, interval)
    yield from (found[start] for start in sorted(found))


def _following(
    heartbeats: Sequence[StoredHeartbeat], missing: Sequence[OffsetRange]
) -> Iterator[tuple[StoredHeartbeat, StoredHeartbeat]]:
    """Yield each heartbeat with the next one, if that is later, and no offset between them is missing."""
    ends = [each.end for each in missing]
    for before, after in pairwise(heartbeats):
        place = bisect.bisect_right(ends, before.offset)
        is_whole = place == len(missing) or missing[place].start > after.offset
        if is_whole and before.timestamp_ms < after.timestamp_ms:
            yield before, after


def _gap(before: StoredHeartbeat, after: StoredHeartbeat, interval_ms: int) -> MirrorFinding:
    start, end = before.timestamp_ms, after.timestamp_ms
    return MirrorFinding(
        _RULE,
        _flow_text(before.flow),
        f"there is no heartbeat for {end - start} ms; the interval is {interval_ms} ms",
        target=OffsetRange(before.offset, after.offset + 1),
        evidence=after.offset,
        since_ms=start,
        until_ms=end,
    )
