# SPDX-License-Identifier: Apache-2.0
"""Runs many schedules of the simulator: ``python -m tests.testing.simulator.run --seeds 0..500 --processes 2``.

Prints each violation with the command that replays its seed, and at the end how much happened. The exit code is 1 if
there was a violation, and 2 if a planted bug has shown nothing, because it does not fit the code around it.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs import schedule
from raftlog.testing.simulator.runs.campaign import Totals
from raftlog.testing.simulator.runs.schedule import Token
from raftlog.testing.simulator.simulation import SCHEDULE_MS
from raftlog.testing.simulator.violation import ViolationError
from tests.mutants.kill_matrix import SLIPS
from tests.testing.simulator.many_schedules import outcomes, until_interrupted
from tests.testing.simulator.planted_bugs import BUGS

_CLOCK_S: Final = 0.01
"""Steps of the clock of CPU time."""


def run_seed(seed: int) -> ScheduleOutcome:
    """Run the schedule of a seed."""
    return schedule.run_seed(Token(seed))


def _run_token(token: Token) -> ScheduleOutcome:
    return run_seed(token.seed)


def command_of(seed: int, plant: str | None = None) -> str:
    """Return the command that replays a seed."""
    planted = "" if plant is None else f" --plant {plant}"
    return f"python -m tests.testing.simulator.run --seeds {seed}..{seed + 1} --processes 1{planted}"


def is_slip(violation: ViolationError | None) -> bool:
    """Whether a schedule ended because something did not fit the code around it, as by a wrong number of arguments."""
    if violation is None or violation.invariant != "no-error":
        return False
    last = violation.description.rstrip().splitlines()[-1]
    return last.partition(":")[0] in SLIPS


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
    for token, outcome in until_interrupted(outcomes(options.seeds, options.processes, _run_token)):
        seed = token.seed
        if options.plant is not None and is_slip(outcome.violation):
            print(f"seed {seed}: {options.plant} falls over by itself: {outcome.violation}", flush=True)
            return 2
        found = None if outcome.violation is None else outcome.violation.invariant
        if found is not None and options.until not in (None, found):
            continue
        totals.add(token, outcome)
        if found is not None:
            print(f"seed {seed}: {totals.violations[token]}\n  {command_of(seed, options.plant)}", flush=True)
            if options.until is not None:
                break
    seconds = time.monotonic() - started
    cpu_s = max(sum(os.times()[:4]) - cpu_before_s, _CLOCK_S)
    sums = {"schedules": totals.schedules, **totals.sums, "events": totals.events}
    print(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sums.items()))
    print(f"{totals.counting:,} schedules count; {len(totals.violations)} violations")
    virtual_s = sums["schedules"] * SCHEDULE_MS / 1000
    speed = f"{sums['schedules'] / seconds:.2f} schedules and {virtual_s / seconds:.0f} virtual s per second"
    print(f"{seconds:.1f} s: {speed}")
    print(f"{cpu_s:.1f} s of CPU: {sums['schedules'] / cpu_s:.2f} schedules per second of CPU")
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
