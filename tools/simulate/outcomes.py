# SPDX-License-Identifier: Apache-2.0
"""Many schedules, one seed after another, in several processes, and their results in the order of the seeds."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token
from raftlog.tools.simulate.interrupts import Interrupts
from raftlog.tools.simulate.workers import ScheduleWorkers, WorkerEndedError

R = TypeVar("R")


def outcomes_of_workers(
    seeds: range,
    processes: int,
    run: Callable[[Token], R],
    options: ScheduleOptions,
    interrupts: Interrupts | None = None,
) -> Iterator[tuple[Token, R | WorkerEndedError]]:
    """Yield what running each seed returns, in their order; or the error, if the process that runs it has ended.

    Args:
        seeds: to run.
        processes: how many processes run them, none of them this one.
        run: runs one schedule.
        options: of all schedules.
        interrupts: after a signal that it notes, only those seeds follow that have ended.
    """
    early: dict[int, tuple[Token, R | WorkerEndedError]] = {}
    in_order = iter(seeds)
    awaited = next(in_order, None)
    with ScheduleWorkers(run, interrupts) as workers:
        for token, result in workers.results((Token(seed, options) for seed in seeds), processes):
            early[token.seed] = token, result
            while awaited in early:
                yield early.pop(awaited)
                awaited = next(in_order, None)
    yield from (early[seed] for seed in sorted(early))
