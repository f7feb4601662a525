# SPDX-License-Identifier: Apache-2.0
"""How long a replica holds back after its log has refused something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.refusals.log_refusals import LogRefusals
from raftlog.quorum.refusals.pauses import doubled_pause_ms

CONFIG = QuorumConfig()
PAUSES_MS = [20, 40, 80, 160, 320, 640, 1_000, 1_000]
STANDING_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000, 16_000]


@given(st.integers(1, 10_000), st.integers(0, 100_000), st.integers(0, 100_000))
def test_a_pause_is_never_shorter_than_the_one_before_it(refusals: int, first_ms: int, longest_ms: int) -> None:
    """It doubles until the limit, never exceeds that, and is at least 1 ms: no loop without a pause."""
    pause_ms = doubled_pause_ms(refusals, first_ms, longest_ms)
    assert pause_ms == min(max(first_ms, 1) * 2 ** (refusals - 1), max(longest_ms, 1))
    assert 1 <= pause_ms <= max(longest_ms, 1)


@pytest.mark.parametrize("is_full", [False, True])
def test_pauses_double_with_each_refusal(is_full: bool) -> None:
    """Fetching pauses for half a fetch timeout at most, so that the leader hears of this replica in time."""
    refusals, now_ms = LogRefusals(), 7
    for count, pause_ms in enumerate(PAUSES_MS):
        refusals.refuse(f"refusal {count}", now_ms, CONFIG, is_full=is_full)
        assert refusals.pause_until_ms == now_ms + pause_ms
        assert refusals.stand_ms == (now_ms + STANDING_MS[count] if is_full else 0)
        assert (refusals.reason, refusals.is_full) == (f"refusal {count}", is_full)


def test_after_records_were_taken_pauses_begin_anew() -> None:
    """A disk that is full again some day is not to be punished for the last time."""
    refusals = LogRefusals()
    for _ in PAUSES_MS:
        refusals.refuse("full", 7, CONFIG, is_full=True)
    refusals.forget()
    assert (refusals.count, refusals.reason, refusals.is_full) == (0, None, False)
    assert (refusals.pause_until_ms, refusals.stand_ms) == (0, 0)
    refusals.refuse("full", 7, CONFIG, is_full=True)
    assert refusals.pause_until_ms == 7 + PAUSES_MS[0]
