# SPDX-License-Identifier: Apache-2.0
"""Many schedules, one seed after another, in several processes, and what has happened in all of them."""

import concurrent.futures
import contextlib
import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token, run_seed
from raftlog.testing.simulator.simulation import ScheduleOutcome

_PER_TASK: Final = 5
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
)
"""The counts of an outcome that show what schedules came to. One that stays 0 over many schedules proves nothing."""

Run = Callable[[Token], ScheduleOutcome]


@attrs.define
class Totals:
    """What has happened in some schedules.

    Attributes:
        violations: by token.
        counting: how many schedules count.
        schedules: how many there were.
        virtual_ms: for how long, in virtual time.
        events: how many events there were.
        sums: of each of ``MARKS``.
        hits: in how many schedules each of ``MARKS`` was more than 0.
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
        for name in MARKS:
            count = getattr(outcome, name)
            self.sums[name] += count
            self.hits[name] += count > 0

    @property
    def missed(self) -> list[str]:
        """The marks that no schedule has hit."""
        return [name for name in MARKS if not self.hits[name]]


def outcomes(
    seeds: range, processes: int, options: ScheduleOptions | None = None, run: Run = run_seed
) -> Iterator[tuple[Token, ScheduleOutcome]]:
    """Yield the outcomes of seeds, in their order, whatever the number of processes.

    Args:
        seeds: to run.
        processes: how many processes run them; with 1 it is this one.
        options: of all schedules.
        run: runs one of them.
    """
    options = options or ScheduleOptions()
    tasks = [seeds[first : first + _PER_TASK] for first in range(0, len(seeds), _PER_TASK)]
    if processes == 1:
        for task in tasks:
            for seed in task:
                yield Token(seed, options), run(Token(seed, options))
        return
    pool = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))
    try:
        under_way = [pool.submit(_run_some, task, options, run) for task in tasks]
        for future in under_way:
            yield from future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # It waits: a process that ends at once would leave its workers behind.


def until_interrupted(
    some: Iterator[tuple[Token, ScheduleOutcome]],
) -> Iterator[tuple[Token, ScheduleOutcome]]:
    """Yield what comes before an interrupt, so that the totals so far can be printed."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from some


def _run_some(seeds: Sequence[int], options: ScheduleOptions, run: Run) -> list[tuple[Token, ScheduleOutcome]]:
    gc.set_threshold(_GC_THRESHOLD)
    return [(token, run(token)) for token in (Token(seed, options) for seed in seeds)]
