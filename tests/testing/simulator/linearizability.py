# SPDX-License-Identifier: Apache-2.0
"""Runs schedules, and has an outside checker judge what clients were told.

``python -m tests.testing.simulator.linearizability --seeds 0..40 --processes 2``

With ``--plant`` a bug is planted, and our own checks take notes and let the run go on, so that both sides judge the
same history. Prints a line per schedule that either side finds something in, and the totals. The exit code is 1 if
there was any, and 2 if a planted bug does not fit the code around it.
"""

import argparse
import concurrent.futures
import gc
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator import violation
from raftlog.testing.simulator.checks.client_oracle import Told
from raftlog.testing.simulator.client_history import ClientHistory
from raftlog.testing.simulator.runs.schedule import Token, run_seed
from raftlog.testing.simulator.simulation import Simulation
from raftlog.tools.simulate.workers import GC_THRESHOLD
from tests.mutants.planting import Wrong, swap
from tests.testing.simulator.outside_checker import judge_log, judge_registers
from tests.testing.simulator.planted_bugs import BUGS
from tests.testing.simulator.run import is_slip

LOST: Final = "acknowledged-is-lost"
"""Noted if an append was acknowledged, and at the end of the run is not committed where its client was told."""
_noted: Final[set[str]] = set()
"""The invariants that did not hold in this run."""


def _noting(_: Wrong) -> Wrong:
    def check(holds: bool, invariant: str, description: str, *values: object) -> None:
        if not holds:
            _noted.add(invariant)

    return check


def _has_lost(simulation: Simulation, history: ClientHistory) -> bool:
    committed = simulation.oracle._offsets
    for append in (each.append for each in history.appends if each.told is Told.OK):
        base_offset = append.last_offset - append.count + 1
        if any(committed.get(append.first + index) != base_offset + index for index in range(append.count)):
            return True
    return False


@attrs.frozen
class Judgement:
    """What both sides say of a schedule.

    Attributes:
        seed: of the schedule.
        ours: our invariants that did not hold.
        refuted: which histories are not linearizable: ``log``, ``registers``.
        counts: of schedules, appends and reads, and of the steps of the outside checker's searches.
        is_slip: whether a planted bug does not fit the code around it.
    """

    seed: int
    ours: frozenset[str]
    refuted: tuple[str, ...]
    counts: Counter[str]
    is_slip: bool

    def __str__(self) -> str:
        return f"seed {self.seed}: refuted {','.join(self.refuted)}; ours {','.join(sorted(self.ours))}"


def judge_seed(seed: int) -> Judgement:
    """Run a schedule, and judge its history."""
    simulations: list[Simulation] = []
    histories: list[ClientHistory] = []

    def watch(simulation: Simulation) -> None:
        simulations.append(simulation)
        histories.append(ClientHistory(simulation.timeline))
        simulation.workload.history = histories[0]

    _noted.clear()
    outcome = run_seed(Token(seed), watch)
    (simulation,), (history,) = simulations, histories
    if outcome.violation is not None:
        _noted.add(outcome.violation.invariant)
    if _has_lost(simulation, history):
        _noted.add(LOST)
    results = {"log": judge_log(history), "registers": judge_registers(history)}
    refuted = tuple(name for name, result in results.items() if not result.ok)
    counts = Counter(
        schedules=1,
        on_files=int(simulation.plan.is_on_files),
        appends=len(history.appends),
        acknowledged=sum(each.told is Told.OK for each in history.appends),
        without_outcome=sum(each.told in (Told.UNKNOWN, Told.NOTHING) for each in history.appends),
        confirmed_reads=sum(each.confirmed is not None for each in history.reads),
        answered_reads=sum(each.answered is not None for each in history.reads),
        steps=sum(part.explored for result in results.values() for part in result.partitions),
    )
    return Judgement(seed, frozenset(_noted), refuted, counts, is_slip(outcome.violation))


def _judgements(seeds: range, processes: int) -> Iterator[Judgement]:
    if processes == 1:
        yield from map(judge_seed, seeds)
        return
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(judge_seed, seeds, chunksize=5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge schedules, print what was found, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.simulator.linearizability", description=__doc__)
    parser.add_argument("--seeds", default="0..40", metavar="A..B", help="from A, up to and without B")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(BUGS), help="a bug to plant first")
    parser.add_argument("--until-refuted", action="store_true", help="stop after the first history that is refuted")
    options = parser.parse_args(arguments)
    gc.set_threshold(GC_THRESHOLD)
    if options.plant is not None:
        BUGS[options.plant].plant()
        swap(violation, "check", _noting)
    first, _, end = options.seeds.partition("..")
    totals, found, refuted, before_s = Counter[str](), 0, 0, sum(os.times()[:4])
    for each in _judgements(range(int(first), int(end)), options.processes):
        totals.update(each.counts)
        refuted += bool(each.refuted)
        if each.refuted or each.ours:
            found += 1
            print(each, flush=True)
        if each.is_slip and options.plant is not None:
            return 2
        if each.refuted and options.until_refuted:
            break
    print(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in totals.items()))
    print(f"{refuted} schedules with a history that is not linearizable; {sum(os.times()[:4]) - before_s:.1f} s of CPU")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
