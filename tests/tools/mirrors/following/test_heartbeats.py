# SPDX-License-Identifier: Apache-2.0
"""Gaps in heartbeats: timelines with outages, restarts and compaction, and those of a real pair of clusters."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.mirrors.mirror_records import HeartbeatKey
from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following import FlowSpan, StoredHeartbeat, flow_spans, heartbeat_gaps
from tests.records.messages.mirrors.mirror_corpus import A, B
from tests.tools.mirrors.following.mirror_groups import corpus_heartbeats

SEEDS = st.integers(0, 1 << 32)
INTERVAL = 1000
AB, BA = HeartbeatKey("A", "B"), HeartbeatKey("B", "A")


def timeline(chance: random.Random, count: int, *, outages: bool = True) -> list[int]:
    """Return the times of heartbeats, in ms, with some that are missing or late, mostly not for long."""
    now, times = 0, []
    for _ in range(count):
        distances = (1, 2, 3, 4, 9) if outages and chance.random() < 0.2 else (1,)
        now += chance.choice(distances) * INTERVAL + chance.choice((0, 0, 1))
        times.append(now)
    return times


def repeated(chance: random.Random, times: list[int]) -> list[int]:
    """Return times as a mirror has them whose task goes on from an earlier one, now and then."""
    found: list[int] = []
    at = 0
    while at < len(times):
        count = chance.randrange(1, 12)
        found += times[at : at + count]
        at += count
        at -= chance.choice((0, chance.randrange(min(at, count)))) if at < len(times) else 0
    return found


def stored(times: list[int], flow: HeartbeatKey = AB) -> list[StoredHeartbeat]:
    """Return heartbeats of one flow at adjacent offsets."""
    return [StoredHeartbeat(flow, each, offset) for offset, each in enumerate(times)]


def naive(times: list[int], interval: int) -> list[tuple[int, int]]:
    """Return each time without a heartbeat that is too long: the naive model."""
    return [pair for pair in pairwise(sorted(set(times))) if pair[1] - pair[0] > 3 * interval]


@given(SEEDS, st.integers(0, 80))
def test_gaps_are_the_times_without_heartbeats(seed: int, count: int) -> None:
    """Each gap of a flow is found once, from-to, also if a mirror repeats times; of several flows, each its own."""
    chance = random.Random(seed)
    times, others = (repeated(chance, timeline(chance, count)) for _ in range(2))
    both = [(each, AB) for each in times] + [(each, BA) for each in others]
    places = sorted(chance.sample(range(len(both)), len(times)))
    order = dict(zip(places, times, strict=True))
    rest = iter(others)
    mixed = [
        StoredHeartbeat(AB, order[offset], offset) if offset in order else StoredHeartbeat(BA, next(rest), offset)
        for offset in range(len(both))
    ]
    found = [(each.subject, each.since_ms, each.until_ms) for each in heartbeat_gaps(mixed, INTERVAL)]
    expected = [("A -> B", *each) for each in naive(times, INTERVAL)]
    assert found == expected + [("B -> A", *each) for each in naive(others, INTERVAL)]


@given(SEEDS, st.integers(0, 60), st.floats(0, 1))
def test_compaction_makes_no_gap(seed: int, count: int, share: float) -> None:
    """What is missing in the topic proves nothing: no gap is found that the whole topic does not show."""
    chance = random.Random(seed)
    whole = stored(repeated(chance, timeline(chance, count)))
    left = [each for each in whole if chance.random() < share or each is whole[-1]]
    gone = sorted({each.offset for each in whole} - {each.offset for each in left})
    missing = [OffsetRange(offset, offset + 1) for offset in gone if left and offset > left[0].offset]
    found = {(each.since_ms, each.until_ms) for each in heartbeat_gaps(left, INTERVAL, missing)}
    assert found <= set(naive([each.timestamp_ms for each in whole], INTERVAL))
    if not missing:
        assert found == set(naive([each.timestamp_ms for each in left], INTERVAL))


@pytest.mark.parametrize(("distance", "is_gap"), [(1, False), (2999, False), (3000, False), (3001, True), (9999, True)])
@pytest.mark.parametrize("interval", [None, INTERVAL])
def test_a_gap_is_longer_than_three_intervals(distance: int, is_gap: bool, interval: int | None) -> None:
    """Three intervals, configured or the median, are no gap yet; a millisecond more is, with its places."""
    times = [0, 1000, 2000, 3000]
    heartbeats = stored([*times, 3000 + distance, 4000 + distance])
    found = heartbeat_gaps(heartbeats, interval)
    assert len(found) == is_gap
    for each in found:
        assert (each.rule, each.subject, each.source) == ("mirror.heartbeat-gap", "A -> B", None)
        assert (each.target, each.evidence) == (OffsetRange(3, 5), 4)
        assert (each.since_ms, each.until_ms) == (3000, 3000 + distance)
        assert each.severity is Severity.SUSPICIOUS


@pytest.mark.parametrize(
    ("missing", "is_gap"),
    [
        ([], True),
        ([(2, 3)], True),
        ([(4, 5)], False),
        ([(5, 6)], False),
        ([(4, 6)], False),
        ([(7, 8)], True),
        ([(1, 3), (7, 9)], True),
        ([(1, 3), (5, 6), (7, 9)], False),
    ],
)
def test_only_what_is_missing_between_two_hides_a_gap(missing: list[tuple[int, int]], is_gap: bool) -> None:
    """An offset that is missing before or after a pair of heartbeats shows nothing of the time between them."""
    times = {0: 0, 3: 1000, 6: 9000, 9: 10_000}
    heartbeats = [StoredHeartbeat(AB, time, offset) for offset, time in times.items()]
    ranges = [OffsetRange(*each) for each in missing]
    assert len(heartbeat_gaps(heartbeats, INTERVAL, ranges)) == is_gap


@pytest.mark.parametrize("times", [[], [5], [5, 5], [9, 5], [5, 9]])
def test_few_heartbeats_have_no_gap(times: list[int]) -> None:
    """None, one, or two of any order have none if no interval is configured."""
    assert heartbeat_gaps(stored(times)) == ()


def test_time_that_runs_backwards_is_no_gap() -> None:
    """Neither the way back nor the way to where a task had been is one."""
    assert heartbeat_gaps(stored([0, 1000, 2000, 3000, 4000, 5000, 0, 5000, 6000, 7000])) == ()


@pytest.mark.parametrize(
    ("node", "topic", "flow", "count"),
    [(A, "heartbeats", BA, 40), (B, "A.heartbeats", BA, 40), (B, "heartbeats", AB, 41)],
)
def test_real_heartbeats_have_a_gap_only_if_some_are_taken(
    node: str, topic: str, flow: HeartbeatKey, count: int
) -> None:
    """A real pair's have none; without three in a row, there is one, in that flow, at that time."""
    whole = corpus_heartbeats(node, topic)
    assert len(whole) == count
    assert {each.flow for each in whole} == {flow}
    assert heartbeat_gaps(whole) == heartbeat_gaps(whole, 2000) == ()
    for first in range(1, count - 3):
        left = whole[:first] + whole[first + 3 :]
        (found,) = heartbeat_gaps(left)
        assert found.subject == f"{flow.source_cluster_alias} -> {flow.target_cluster_alias}"
        assert (found.since_ms, found.until_ms) == (whole[first - 1].timestamp_ms, whole[first + 3].timestamp_ms)
        assert heartbeat_gaps(left, missing=[OffsetRange(first, first + 3)]) == ()


@given(st.lists(st.integers(0, 10**6), max_size=9), st.lists(st.integers(0, 10**6), max_size=9))
def test_a_span_covers_all_heartbeats_of_a_flow(there: list[int], back: list[int]) -> None:
    """Each flow has one, from its earliest heartbeat to its latest, in whatever order they are."""
    found = flow_spans([*stored(there), *stored(back, BA)])
    expected = [("A -> B", there), ("B -> A", back)]
    assert found == tuple(FlowSpan(flow, min(times), max(times), len(times)) for flow, times in expected if times)
