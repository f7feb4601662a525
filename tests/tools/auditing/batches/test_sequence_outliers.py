# SPDX-License-Identifier: Apache-2.0
"""Which step is out of line."""

import itertools

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.auditing.batches.sequence_outliers import OutlierSearch


@attrs.frozen
class _Step:
    start: int
    end: int
    held_end: int
    is_vouched_for: bool = True


def _steps(*starts: int, span: int = 10) -> list[_Step]:
    return [_Step(start, start + span, start + span) for start in starts]


def _stray(steps: list[_Step], end: int | None = 0) -> list[int]:
    """Take steps, and return where those that are out of line start; verdicts come in order, one a step."""
    search: OutlierSearch[_Step] = OutlierSearch(end)
    verdicts = [verdict for step in steps for verdict in search.take(step)]
    verdicts += search.finish()
    assert [verdict.step for verdict in verdicts] == steps
    return [verdict.step.start for verdict in verdicts if not verdict.is_in_sequence]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=12))
def test_steps_that_go_on_are_in_line(plan: list[tuple[int, int]]) -> None:
    """Steps that each start where the one before lets them are all in line, gaps or not."""
    steps, end = [], 0
    for gap, span in plan:
        steps.append(_Step(end + gap, end + gap + span, end + gap + span))
        end += gap + span
    assert _stray(steps) == []


@given(st.lists(st.integers(0, 300), max_size=12))
def test_what_is_in_line_goes_on(starts: list[int]) -> None:
    """Whatever the steps, each has one verdict, and those in line go on from each other."""
    steps = _steps(*starts)
    stray = _stray(steps)
    search: OutlierSearch[_Step] = OutlierSearch(0)
    verdicts = [verdict for step in steps for verdict in search.take(step)] + list(search.finish())
    in_line = [verdict.step for verdict in verdicts if verdict.is_in_sequence]
    assert len(in_line) + len(stray) == len(steps)
    assert all(before.end <= after.start for before, after in itertools.pairwise(in_line))


def test_one_step_is_to_blame() -> None:
    """A step too low, too high, doubled, or before its time is out of line, and none beside it."""
    assert _stray(_steps(0, 10, 3, 30, 40)) == [3]
    assert _stray(_steps(0, 10, 900, 30, 40)) == [900]
    assert _stray(_steps(0, 10, 900, 33, 43)) == [900]
    assert _stray(_steps(0, 10, 10, 20, 30)) == [10]
    assert _stray(_steps(900, 10, 20)) == [900]
    assert _stray(_steps(0, 10, 20, 5)) == [5]


def test_a_step_that_leads_further_than_what_it_holds() -> None:
    """A step is out of line whose end is beyond the next start, where that follows what it holds."""
    steps = _steps(0, 10, 20, 30)
    steps[1] = attrs.evolve(steps[1], end=500)
    assert _stray(steps) == [10]


def test_at_the_end_one_that_nothing_speaks_for_gives_way() -> None:
    """Of two last steps that contradict each other, the first is out of line if nothing vouches for it."""
    last = [_Step(1, 1, 1), _Step(5, 5, 5, is_vouched_for=False), _Step(3, 3, 3)]
    assert _stray(last) == [5]
    assert _stray([*last[:1], attrs.evolve(last[1], is_vouched_for=True), *last[2:]]) == [3]


def test_many_steps_may_be_taken_at_once() -> None:
    """A line that was skipped to somewhere goes on there, and what was before is not doubted again."""
    search: OutlierSearch[_Step] = OutlierSearch(0)
    assert search.goes_on_with(0)
    assert list(search.take(_Step(0, 10, 10))) == []
    assert [verdict.is_in_sequence for verdict in search.flush()] == [True]
    search.skip_to(50)
    assert (search.goes_on_with(49), search.goes_on_with(50)) == (False, True)
    assert [verdict.is_in_sequence for verdict in search.take(_Step(40, 45, 45))] == [False]
