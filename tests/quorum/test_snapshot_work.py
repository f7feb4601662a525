# SPDX-License-Identifier: Apache-2.0
"""What must not be deleted, and how long a refused snapshot is not fetched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.snapshot_work import MAX_PIN_MS, MAX_PINS, Pins, SnapshotWork
from tests.quorum.single_replica import replica_key

ID, LATER = OffsetAndEpoch(10, 2), OffsetAndEpoch(20, 2)
OWNER = replica_key(2)


STEPS = st.lists(st.tuples(st.sampled_from((1, 2, 3)), st.integers(1, 9), st.integers(1, 9)), max_size=20)


@given(STEPS, st.integers(1, 9), st.integers(1, 9))
def test_the_log_starts_nowhere_above_what_is_pinned(
    steps: list[tuple[int, int, int]], start: int, now_ms: int
) -> None:
    """Whichever replicas pin what and how long, in any order: the log starts at none above a pin in force."""
    pins, held = Pins(), dict[int, tuple[int, int]]()
    for owner, offset, until_ms in steps:
        pins.hold(replica_key(owner), OffsetAndEpoch(offset, 1), 0, until_ms)
        held[owner] = (offset, until_ms)
    expected = all(start <= offset for offset, until_ms in held.values() if now_ms < until_ms)
    assert pins.allow(OffsetAndEpoch(start, 1), now_ms) == expected


@pytest.mark.parametrize(("now_ms", "is_allowed"), [(4, False), (5, True), (6, True)])
def test_a_pin_ends_in_time(now_ms: int, is_allowed: bool) -> None:
    """At its end, a pin holds nothing any more."""
    pins = Pins()
    pins.hold(OWNER, ID, now_ms=0, until_ms=5)
    assert pins.allow(LATER, now_ms) == is_allowed
    assert len(pins) == (0 if is_allowed else 1)


def test_a_pin_cannot_be_prolonged_for_ever() -> None:
    """A reader that fetches again and again holds a snapshot for an hour at most."""
    pins, step = Pins(), 1_000
    for now_ms in range(0, MAX_PIN_MS, step):
        pins.hold(OWNER, ID, now_ms, now_ms + 2 * step)
        assert not pins.allow(LATER, now_ms)
    pins.hold(OWNER, ID, MAX_PIN_MS - 1, MAX_PIN_MS + step)
    assert not pins.allow(LATER, MAX_PIN_MS - 1)
    assert pins.allow(LATER, MAX_PIN_MS)


def test_a_reader_holds_a_snapshot_anew_only_after_a_pause() -> None:
    """One that fetches on when the hour is over holds nothing, for hours; after a pause it has another hour."""
    pins, step = Pins(), 1_000
    for now_ms in range(0, 3 * MAX_PIN_MS, step):
        pins.hold(OWNER, ID, now_ms, now_ms + 2 * step)
        assert pins.allow(LATER, now_ms) == (now_ms >= MAX_PIN_MS)
    pause_end = 3 * MAX_PIN_MS + step
    pins.hold(OWNER, ID, pause_end - 1, pause_end + 2 * step)
    assert pins.allow(LATER, pause_end - 1)
    pause_end += 2 * step
    pins.hold(OWNER, ID, pause_end, pause_end + 2 * MAX_PIN_MS)
    assert not pins.allow(LATER, pause_end + MAX_PIN_MS - 1)
    assert pins.allow(LATER, pause_end + MAX_PIN_MS)


def test_another_snapshot_is_another_fetch() -> None:
    """The hour begins when a reader turns to another snapshot, or to the same one after a pause."""
    pins = Pins()
    pins.hold(OWNER, ID, 0, MAX_PIN_MS)
    pins.hold(OWNER, OffsetAndEpoch(11, 2), MAX_PIN_MS - 1, MAX_PIN_MS + 10)
    assert not pins.allow(LATER, MAX_PIN_MS + 9)
    pins.hold(OWNER, ID, 2 * MAX_PIN_MS, 3 * MAX_PIN_MS)
    assert not pins.allow(LATER, 3 * MAX_PIN_MS - 1)


def test_there_are_so_many_pins() -> None:
    """One more makes the one give way that was prolonged longest ago."""
    pins = Pins()
    pins.hold(OWNER, ID, 0, 5)
    for owner in range(1, MAX_PINS):
        pins.hold(replica_key(1000 + owner), OffsetAndEpoch(30, 2), 0, 5)
    assert len(pins) == MAX_PINS
    assert not pins.allow(LATER, 0)
    pins.hold(replica_key(1), OffsetAndEpoch(30, 2), 0, 5)
    assert len(pins) == MAX_PINS
    assert pins.allow(LATER, 0)


@given(st.integers(0, 1000), st.integers(0, 5000), st.integers(1, 100))
def test_a_pause_grows_to_its_limit(first_ms: int, longest_ms: int, count: int) -> None:
    """There is always a pause, none is above the limit (or 1 ms), and none is shorter than the one before it."""
    work, before = SnapshotWork(0), 0
    for _ in range(count):
        work.refuse("bad", 7, first_ms, longest_ms)
        pause_ms = work.pause_until_ms - 7
        assert max(1, before) <= pause_ms <= max(1, longest_ms)
        before = pause_ms
    work.accept()
    assert (work.pause_until_ms, work.refusals, work.refusal_reason) == (0, 0, None)
