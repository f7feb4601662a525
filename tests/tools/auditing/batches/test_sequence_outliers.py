# SPDX-License-Identifier: Apache-2.0
"""Which step is out of line."""

import itertools
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.auditing.batches.sequence_outliers import OutlierSearch


@attrs.frozen
class _Step:
    start: int
    end: int
    furthest_end: int
    is_corroborated: bool = True


STEP_LENGTH = 10


def _steps_starting_at(starts: Sequence[int]) -> list[_Step]:
    """Return steps of one length: each leads to where the next one starts, if that is ``STEP_LENGTH`` further on."""
    return [_Step(start, start + STEP_LENGTH, start + STEP_LENGTH) for start in starts]


def _starts_of_outliers(steps: list[_Step]) -> list[int]:
    """Take steps on a line from 0 on, and return where those that are out of line start; each has one verdict."""
    search: OutlierSearch[_Step] = OutlierSearch(0)
    verdicts = [verdict for step in steps for verdict in search.take(step)]
    verdicts += search.finish()
    assert [verdict.step for verdict in verdicts] == steps
    return [verdict.step.start for verdict in verdicts if not verdict.is_in_sequence]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=12))
def test_consecutive_steps_are_in_line(plan: list[tuple[int, int]]) -> None:
    """Steps that each start where the one before lets them are all in line, gaps or not."""
    steps, end = [], 0
    for gap, span in plan:
        steps.append(_Step(end + gap, end + gap + span, end + gap + span))
        end += gap + span
    assert _starts_of_outliers(steps) == []


@given(st.lists(st.integers(0, 300), max_size=12))
def test_consecutive_sequences_are_accepted(starts: list[int]) -> None:
    """Whatever the steps, each has one verdict, and those in line are consecutive."""
    steps = _steps_starting_at(starts)
    outliers = _starts_of_outliers(steps)
    search: OutlierSearch[_Step] = OutlierSearch(0)
    verdicts = [verdict for step in steps for verdict in search.take(step)] + list(search.finish())
    in_line = [verdict.step for verdict in verdicts if verdict.is_in_sequence]
    assert len(in_line) + len(outliers) == len(steps)
    assert all(before.end <= after.start for before, after in itertools.pairwise(in_line))


@pytest.mark.parametrize(
    ("starts", "outlier"),
    [
        pytest.param([0, 10, 3, 30, 40], 3, id="too low, in place of 20"),
        pytest.param([0, 10, 900, 30, 40], 900, id="too high, in place of 20"),
        pytest.param([0, 10, 900, 33, 43], 900, id="too high, with a gap after it"),
        pytest.param([0, 10, 10, 20, 30], 10, id="doubled"),
        pytest.param([900, 10, 20], 900, id="too high, at the start"),
        pytest.param([0, 10, 20, 5], 5, id="too low, at the end"),
    ],
)
def test_one_step_is_to_blame(starts: list[int], outlier: int) -> None:
    """Of several steps one does not fit: it alone is out of line, and none beside it."""
    assert _starts_of_outliers(_steps_starting_at(starts)) == [outlier]


def test_a_step_that_leads_further_than_what_it_holds() -> None:
    """A step is out of line whose end is beyond the next start, where that follows what it holds."""
    first, leading_too_far, *others = _steps_starting_at([0, 10, 20, 30])
    leading_too_far = attrs.evolve(leading_too_far, end=500)
    assert _starts_of_outliers([first, leading_too_far, *others]) == [leading_too_far.start]


def test_at_the_end_one_that_nothing_speaks_for_gives_way() -> None:
    """Of two last steps that contradict each other, the first is out of line if nothing vouches for it."""
    first, high, low = (_Step(start, end=start, furthest_end=start) for start in (1, 5, 3))
    assert _starts_of_outliers([first, attrs.evolve(high, is_corroborated=False), low]) == [high.start]
    assert _starts_of_outliers([first, attrs.evolve(high, is_corroborated=True), low]) == [low.start]


def test_many_steps_may_be_taken_at_once() -> None:
    """A line that was skipped ahead continues there, and earlier steps are not doubted again."""
    search: OutlierSearch[_Step] = OutlierSearch(0)
    assert search.continues_at(0)
    assert list(search.take(_Step(0, 10, 10))) == []
    assert [verdict.is_in_sequence for verdict in search.flush()] == [True]
    search.skip_to(50)
    assert (search.continues_at(49), search.continues_at(50)) == (False, True)
    assert [verdict.is_in_sequence for verdict in search.take(_Step(40, 45, 45))] == [False]
