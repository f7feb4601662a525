# SPDX-License-Identifier: Apache-2.0
"""Counts the seeds until a simulated schedule finds each mutant: ``python -m tests.testing.simulator.kill_by_seeds``.

Each mutant is planted in a process of its own, and schedules run there, from several seeds on, until the first
violation of any invariant. Prints a table, and then the survivors; the exit code is 1 if there is one. A mutant that
falls over by itself, as by a wrong number of arguments, has shown nothing.
"""

import argparse
import functools
import gc
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

import attrs

from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token, run_seed
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from raftlog.tools.simulate.workers import GC_THRESHOLD
from tests.mutants import (
    of_accumulator,
    of_control_records,
    of_copies,
    of_core_snapshots,
    of_driving,
    of_elections,
    of_failures,
    of_following,
    of_listeners,
    of_logs,
    of_quarantine,
    of_quorum,
    of_quorum_state,
    of_reads,
    of_recovery,
    of_scenarios,
    of_settings,
    of_snapshots,
    of_upgrades,
    of_voter_changes,
)
from tests.mutants.planting import Mutant
from tests.testing.simulator.beyond_seeds import BEYOND
from tests.testing.simulator.fresh_mutants import FRESH_MUTANTS
from tests.testing.simulator.left_directories import audited
from tests.testing.simulator.planted_bugs import BUGS
from tests.testing.simulator.run import is_slip

RunSeed = Callable[[int], ViolationError | None]
SPREAD: Final = 1000
"""From one starting seed to the next."""
NO_END: Final = "no-end"
"""In place of an invariant, of a schedule that was still running after ``LIMIT_SECONDS``."""
LIMIT_SECONDS: Final = 60
_MAX_MEMORY_BYTES: Final = 2 * 1024**3

_CATALOGUED: Final = (
    of_quorum,
    of_scenarios,
    of_elections,
    of_following,
    of_driving,
    of_voter_changes,
    of_upgrades,
    of_reads,
    of_listeners,
    of_core_snapshots,
    of_control_records,
    of_accumulator,
    of_settings,
    of_failures,
    of_logs,
    of_snapshots,
    of_quorum_state,
    of_recovery,
    of_quarantine,
    of_copies,
)
"""Mutants of what a simulated replica runs: the core, its driver, the logs, snapshots, election states and recovery."""
MUTANTS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (*FRESH_MUTANTS, *BUGS.values(), *(mutant for module in _CATALOGUED for mutant in module.MUTANTS))
}


@attrs.frozen
class Attempt:
    """What came of one starting seed.

    Attributes:
        seeds: how many schedules ran.
        invariant: that the last one has violated; None if none did.
        slip: how the mutant fell over by itself in the last one; None if it did not.
    """

    seeds: int
    invariant: str | None = None
    slip: str | None = None

    @property
    def cost(self) -> str:
        """How many seeds the kill has taken, or would at least have taken."""
        return f"{self.seeds}" if self.invariant is not None else f">{self.seeds}"


@attrs.frozen
class SeedVerdict:
    """What came of a mutant.

    Attributes:
        name: of the mutant.
        attempts: one per starting seed, in their order; a single one if that has not killed the mutant.
    """

    name: str
    attempts: tuple[Attempt, ...]

    @property
    def slip(self) -> str | None:
        """How it fell over by itself; None if it did not."""
        return self.attempts[-1].slip

    @property
    def is_survivor(self) -> bool:
        """Whether no schedule has found it."""
        return self.attempts[0].invariant is None

    def __str__(self) -> str:
        if self.slip is not None:
            return f"| {self.name} | | | falls over by itself: {self.slip} |"
        if self.is_survivor:
            return f"| {self.name} | | | SURVIVED {self.attempts[0].seeds} seeds |"
        ordered = sorted(self.attempts, key=lambda each: (each.invariant is None, each.seeds))
        invariants = Counter(each.invariant for each in self.attempts if each.invariant is not None).most_common()
        found = ", ".join(f"`{each}`" if count == 1 else f"`{each}` {count}" for each, count in invariants)
        return f"| {self.name} | {ordered[(len(ordered) - 1) // 2].cost} | {ordered[-1].cost} | {found} |"


def attempt(run: RunSeed, seeds: range) -> Attempt:
    """Run schedules until one of them is violated, or the mutant falls over by itself."""
    for count, seed in enumerate(seeds, 1):
        violation = run(seed)
        if is_slip(violation):
            return Attempt(count, slip=str(violation).rstrip().splitlines()[-1])
        if violation is not None:
            return Attempt(count, invariant=violation.invariant)
    return Attempt(len(seeds))


def judge_by_seeds(name: str, run: RunSeed, starts: int, most: int) -> SeedVerdict:
    """Run schedules from each starting seed; from the others only if the first has found the mutant.

    Args:
        name: of the mutant, which is planted.
        run: a schedule.
        starts: how many starting seeds.
        most: schedules per starting seed.
    """
    attempts: list[Attempt] = []
    for first in range(0, starts * SPREAD, SPREAD):
        attempts.append(attempt(run, range(first, first + most)))
        if attempts[-1].slip is not None or attempts[0].invariant is None:
            break
    return SeedVerdict(name, tuple(attempts))


def _end(_: int, __: FrameType | None) -> None:
    raise ViolationError(NO_END, f"a schedule takes more than {LIMIT_SECONDS} s")


def _run(storage: Storage, seed: int) -> ViolationError | None:
    signal.alarm(LIMIT_SECONDS)
    simulations: list[Simulation] = []
    try:
        violation = run_seed(Token(seed, ScheduleOptions(storage=storage)), simulations.append).violation
        return next(filter(None, map(audited, simulations)), None) if violation is None else violation
    except Exception as error:  # Before the schedule has begun, as its directories are made.
        return ViolationError("no-error", "".join(traceback.format_exception(error)))
    finally:
        signal.alarm(0)


def _plant_and_judge(task: tuple[str, int, int, Storage]) -> SeedVerdict:
    """Judge a mutant in this process, which is ended after that."""
    name, starts, most, storage = task
    signal.signal(signal.SIGALRM, _end)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    gc.set_threshold(GC_THRESHOLD)
    MUTANTS[name].plant()
    return judge_by_seeds(name, functools.partial(_run, storage), starts, most)


def expected() -> list[str]:
    """Return the names of the mutants that schedules may find."""
    beyond = {name for names in BEYOND.values() for name in names}
    return [name for name in MUTANTS if name not in beyond]


def verdicts(
    names: Sequence[str], starts: int, most: int, processes: int, storage: Storage = Storage.DRAWN
) -> Iterator[SeedVerdict]:
    """Yield the verdict on each mutant, in order."""
    tasks = [(name, starts, most, storage) for name in names]
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap(_plant_and_judge, tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the survivors; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.simulator.kill_by_seeds", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; by default all that schedules may find")
    parser.add_argument("--starts", type=int, default=5, help="how many starting seeds: 0, 1000, 2000, ...")
    parser.add_argument("--most", type=int, default=200, help="schedules per starting seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--storage", type=Storage, choices=list(Storage), default=Storage.DRAWN, help="of the replicas")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in MUTANTS]
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(MUTANTS)}")
    os.nice(2)
    print("| mutant | median | worst | found by |\n|---|---:|---:|---|", flush=True)
    survivors = []
    names = options.names or expected()
    for verdict in verdicts(names, options.starts, options.most, options.processes, options.storage):
        print(verdict, flush=True)
        if verdict.is_survivor:
            survivors.append(verdict.name)
    print(f"{len(survivors)} survive: {', '.join(survivors)}" if survivors else "none survives")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
