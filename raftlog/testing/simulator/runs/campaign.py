# SPDX-License-Identifier: Apache-2.0
"""Many schedules, one seed after another, in several processes, and what has happened in all of them."""

import concurrent.futures
import contextlib
import gc
import itertools
import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.disks.damage import DAMAGES
from raftlog.testing.simulator.disks.file_directory import CRASH_FAULTS
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token

_PER_TASK: Final = 5
_TASKS_A_PROCESS: Final = 4
"""So many are given to the processes ahead of what is yielded."""
_GC_THRESHOLD: Final = 200_000
"""A schedule makes many small objects, nearly none of them in cycles: the collector would look in vain."""

MARKS: Final = (
    "delivered",
    "lost",
    "acknowledged",
    "unknown",
    "reads",
    "leaders",
    "voter_changes",
    "snapshots",
    "cleanings",
    "restarts",
    "upgrades",
    "crashes",
    "lossy_crashes",
    "quarantines",
    "exits",
    "plans",
    "promotions",
    "demotions",
    "returns",
    "beyond_atlas",
    "lost_majorities",
)
"""The counts of an outcome that show what schedules came to. One that stays 0 over many schedules proves nothing."""

FAULTS: Final = (
    *("loss", "duplicate", "cut", "one-way-cut", "pause", "clock-error", "slow-sync"),
    *("crash", "armed-crash", "replaced-disk", "lost-disk", "lost-batches"),
    *CRASH_FAULTS,
    *DAMAGES,
    *ERRORS,
    *MISREADS,
)
"""The kinds of faults that are counted (``ScheduleOutcome.injected``). Of the model, ``lost-batches`` is bit rot."""

R = TypeVar("R")


@attrs.define
class Totals:
    """What has happened in some schedules.

    Attributes:
        violations: by token.
        counting: how many schedules count.
        schedules: how many there were.
        virtual_ms: for how long, in virtual time.
        events: how many events there were.
        sums: of each of ``MARKS`` and ``FAULTS``.
        hits: in how many schedules each of ``MARKS`` and ``FAULTS`` was more than 0.
    """

    violations: dict[Token, str] = attrs.field(factory=dict)
    counting: int = 0
    schedules: int = 0
    virtual_ms: int = 0
    events: int = 0
    sums: Counter[str] = attrs.field(factory=Counter)
    hits: Counter[str] = attrs.field(factory=Counter)

    def add(self, token: Token, outcome: ScheduleOutcome) -> None:
        """Add the outcome of a schedule."""
        if outcome.violation is not None:
            self.violations[token] = str(outcome.violation)
        self.counting += outcome.counts
        self.schedules += 1
        self.virtual_ms += outcome.ended_ms
        self.events += outcome.events
        for name, count in counts_of(outcome).items():
            self.sums[name] += count
            self.hits[name] += count > 0

    @property
    def missed(self) -> list[str]:
        """The marks that no schedule has hit, and the faults that none has had."""
        return [name for name in (*MARKS, *FAULTS) if not self.hits[name]]


def counts_of(outcome: ScheduleOutcome) -> dict[str, int]:
    """Return the count of each of ``MARKS`` and ``FAULTS``, in that order."""
    marks = {name: getattr(outcome, name) for name in MARKS}
    return marks | {name: outcome.injected.get(name, 0) for name in FAULTS}


def outcomes(
    seeds: range, processes: int, run: Callable[[Token], R], options: ScheduleOptions | None = None
) -> Iterator[tuple[Token, R]]:
    """Yield what running each seed returns, in their order, whatever the number of processes.

    Args:
        seeds: to run.
        processes: how many processes run them; with 1 it is this one.
        run: runs one schedule, such as ``run_seed``.
        options: of all schedules.
    """
    options = options or ScheduleOptions()
    tasks = (seeds[first : first + _PER_TASK] for first in range(0, len(seeds), _PER_TASK))
    if processes == 1:
        for task in tasks:
            for seed in task:
                yield Token(seed, options), run(Token(seed, options))
        return
    pool = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))
    try:
        under_way = deque(
            pool.submit(_run_some, task, options, run) for task in itertools.islice(tasks, _TASKS_A_PROCESS * processes)
        )
        while under_way:
            yield from under_way.popleft().result()
            under_way.extend(pool.submit(_run_some, task, options, run) for task in itertools.islice(tasks, 1))
    finally:
        pool.shutdown(cancel_futures=True)  # It waits: a process that ends at once would leave its workers behind.


def until_interrupted(some: Iterator[R]) -> Iterator[R]:
    """Yield what comes before an interrupt, so that the totals so far can be printed."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from some


def _run_some(seeds: Sequence[int], options: ScheduleOptions, run: Callable[[Token], R]) -> list[tuple[Token, R]]:
    gc.set_threshold(_GC_THRESHOLD)
    return [(token, run(token)) for token in (Token(seed, options) for seed in seeds)]
