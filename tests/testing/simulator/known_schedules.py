# SPDX-License-Identifier: Apache-2.0
"""Whole schedules that several tests look at. Each takes a second, and is run once for all tests of a process.

Tests that change code, or count what a run does, run schedules by themselves.
"""

import functools

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs.schedule import Schedule, Token, record, run_seed
from raftlog.testing.simulator.runs.telling import ToldRun, tell


@functools.cache
def outcome_of(seed: int) -> ScheduleOutcome:
    """Return what happens in the schedule of a seed."""
    return run_seed(Token(seed))


@functools.cache
def recorded(seed: int) -> tuple[Schedule, ScheduleOutcome]:
    """Return the schedule of a seed as its choices, and what happened while they were recorded."""
    return record(Token(seed))


@functools.cache
def told(seed: int) -> ToldRun:
    """Return the story of the schedule of a seed, replayed by its choices."""
    return tell(recorded(seed)[0])
