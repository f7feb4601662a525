# SPDX-License-Identifier: Apache-2.0
"""Runs many schedules of the simulator: ``python -m tests.testing.simulator.run --seeds 0..500 --processes 2``.

Prints each violation with the command that replays its seed, and at the end how much happened. The exit code is 1 if
there was a violation, and 2 if a planted bug has shown nothing, because it does not fit the code around it.
"""

import argparse
import concurrent.futures
import contextlib
import gc
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator.simulation import SCHEDULE_MS, ScheduleOutcome, Simulation
from raftlog.testing.simulator.violation import ViolationError
from tests.mutants.kill_matrix import SLIPS
from tests.testing.simulator.planted_bugs import BUGS

_PER_TASK: Final = 5
_GC_THRESHOLD: Final = 200_000
"""A schedule makes many small objects, nearly none of them in cycles: the collector would look in vain."""


def run_seed(seed: int) -> ScheduleOutcome:
    """Run the schedule of a seed."""
    return Simulation(random.Random(seed)).run()


def command_of(seed: int, plant: str | None = None) -> str:
    """Return the command that replays a seed."""
    planted = "" if plant is None else f" --plant {plant}"
    return f"python -m tests.testing.simulator.run --seeds {seed}..{seed + 1} --processes 1{planted}"


@attrs.define
class Totals:
    """What has happened in some schedules.

    Attributes:
        violations: by seed.
        counting: how many schedules count.
        sums: of the numbers of all outcomes.
    """

    violations: dict[int, str] = attrs.field(factory=dict)
    counting: int = 0
    sums: Counter[str] = attrs.field(factory=Counter)

    def add(self, seed: int, outcome: ScheduleOutcome) -> None:
        """Add the outcome of a seed."""
        if outcome.violation is not None:
            self.violations[seed] = str(outcome.violation)
        self.counting += outcome.counts
        self.sums["schedules"] += 1
        for name in (
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
            "events",
        ):
            self.sums[name] += getattr(outcome, name)


def is_slip(violation: ViolationError | None) -> bool:
    """Whether a schedule ended because something did not fit the code around it, as by a wrong number of arguments."""
    if violation is None or violation.invariant != "no-error":
        return False
    last = violation.description.rstrip().splitlines()[-1]
    return last.partition(":")[0] in SLIPS


def _run_some(seeds: Sequence[int]) -> list[tuple[int, ScheduleOutcome]]:
    gc.set_threshold(_GC_THRESHOLD)
    return [(seed, run_seed(seed)) for seed in seeds]


def outcomes(seeds: range, processes: int) -> Iterator[tuple[int, ScheduleOutcome]]:
    """Yield the outcomes of seeds, in their order."""
    tasks = [seeds[first : first + _PER_TASK] for first in range(0, len(seeds), _PER_TASK)]
    if processes == 1:
        for task in tasks:
            yield from _run_some(task)
        return
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        for some in pool.map(_run_some, tasks):
            yield from some


def _until_interrupted(some: Iterator[tuple[int, ScheduleOutcome]]) -> Iterator[tuple[int, ScheduleOutcome]]:
    """Yield what comes before an interrupt, so that the totals so far can be printed."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from some


def _seeds(text: str) -> range:
    first, _, end = text.partition("..")
    return range(int(first), int(end) if end else int(first) + 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run schedules, print what happened, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.simulator.run", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=range(100), metavar="A..B", help="from A, up to and without B")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--plant", choices=sorted(BUGS), help="a bug to plant first")
    parser.add_argument("--until", metavar="INVARIANT", help="stop at a violation of it, and report no other ones")
    options = parser.parse_args(arguments)
    if options.plant is not None:
        BUGS[options.plant].plant()
    totals, started, cpu_before_s = Totals(), time.monotonic(), sum(os.times()[:4])
    for seed, outcome in _until_interrupted(outcomes(options.seeds, options.processes)):
        if options.plant is not None and is_slip(outcome.violation):
            print(f"seed {seed}: {options.plant} falls over by itself: {outcome.violation}", flush=True)
            return 2
        found = None if outcome.violation is None else outcome.violation.invariant
        if found is not None and options.until not in (None, found):
            continue
        totals.add(seed, outcome)
        if found is not None:
            print(f"seed {seed}: {totals.violations[seed]}\n  {command_of(seed, options.plant)}", flush=True)
            if options.until is not None:
                break
    seconds, cpu_s = time.monotonic() - started, sum(os.times()[:4]) - cpu_before_s
    sums = totals.sums
    print(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sums.items()))
    print(f"{totals.counting:,} schedules count; {len(totals.violations)} violations")
    virtual_s = sums["schedules"] * SCHEDULE_MS / 1000
    speed = f"{sums['schedules'] / seconds:.2f} schedules and {virtual_s / seconds:.0f} virtual s per second"
    print(f"{seconds:.1f} s: {speed}")
    print(f"{cpu_s:.1f} s of CPU: {sums['schedules'] / cpu_s:.2f} schedules per second of CPU")
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
