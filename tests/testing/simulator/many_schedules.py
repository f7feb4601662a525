# SPDX-License-Identifier: Apache-2.0
"""Schedules that tests run, in this process or in several, one seed after another."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from raftlog.errors import fresh_copy
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token
from raftlog.tools.simulate.outcomes import outcomes_of_workers
from raftlog.tools.simulate.workers import WorkerEndedError

R = TypeVar("R")


def outcomes(
    seeds: range, processes: int, run: Callable[[Token], R], options: ScheduleOptions | None = None
) -> Iterator[tuple[Token, R]]:
    """Yield what running each seed returns, in their order, whatever the number of processes.

    Args:
        seeds: to run.
        processes: how many processes run them; with 1 it is this one.
        run: runs one schedule, such as ``run_seed``.
        options: of all schedules.

    Raises:
        WorkerEndedError: a process has ended.
    """
    options = options or ScheduleOptions()
    if processes == 1:
        for seed in seeds:
            yield Token(seed, options), run(Token(seed, options))
        return
    for token, result in outcomes_of_workers(seeds, processes, run, options):
        if isinstance(result, WorkerEndedError):
            raise fresh_copy(result)
        yield token, result


def until_interrupted(some: Iterator[R]) -> Iterator[R]:
    """Yield what comes before an interrupt, so that the totals so far can be printed."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from some
