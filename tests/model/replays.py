# SPDX-License-Identifier: Apache-2.0
"""Replays traces of the simulator in the model: ``python -m tests.model.replays --seeds 0..1000 --processes 2``.

Prints each trace that is refused, and at the end how much was replayed. The exit code is 1 if a trace was refused.

With ``--plant``, a bug of the core is planted first. The simulator's own checks are then off: the model alone judges.
"""

import argparse
import concurrent.futures
import functools
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator import violation
from tests.model.refinement import NotInTheModelError, RefinementCheck
from tests.model.simulated_traces import TracedSimulation
from tests.mutants.catalogue import MUTANTS
from tests.mutants.planting import Mutant, swap
from tests.testing.simulator.planted_bugs import BUGS

SCHEDULE_MS: Final = 10_000
"""How long the simulator runs for a trace, in virtual time."""
PER_TASK: Final = 5
PLANTABLE: Final[dict[str, Mutant]] = {**MUTANTS, **BUGS}


@attrs.frozen
class Replayed:
    """A trace, as far as it was replayed.

    Attributes:
        seed: of its simulation.
        events: how many there were.
        steps: how many steps of the model were looked at.
        committed: the highest high watermark.
        voter_changes: how many voter sets leaders have written that differ from those before.
        replaced_disks: how many disks were replaced by empty ones.
        snapshots: how many were written, or fetched.
        restarts: how many logs began with a snapshot that was fetched.
        refusal: the event that is none of the model; None if there is none.
    """

    seed: int
    events: int
    steps: int
    committed: int
    voter_changes: int
    replaced_disks: int
    snapshots: int
    restarts: int
    refusal: str | None


def replayed(seed: int, *, is_planted: bool = False) -> Replayed:
    """Replay the trace of a seed. With a planted bug, the trace may end early, by any error."""
    traced, refusal = TracedSimulation(seed), None
    try:
        traced.run(SCHEDULE_MS)
    except Exception:
        if not is_planted:
            raise
    plan, witness = traced.simulation.plan, traced.simulation.witness
    check = RefinementCheck(traced.count, traced.first_voters)
    try:
        for event in traced.events:
            check.take(event)
    except NotInTheModelError as error:
        refusal = str(error)
    return Replayed(
        seed,
        events=len(traced.events),
        steps=check.steps,
        committed=max(replica.high_watermark for replica in check.replicas),
        voter_changes=witness.voter_changes,
        replaced_disks=traced.count - plan.voters - plan.observers,
        snapshots=witness.counts["snapshots"],
        restarts=witness.counts["restarts"],
        refusal=refusal,
    )


def plant(name: str) -> None:
    """Plant a bug for the rest of the process, and switch off the simulator's own checks but that of busy loops."""
    right = violation.check

    def check(holds: bool, invariant: str, description: str, *values: object) -> None:
        if invariant == "no-busy-loop":
            right(holds, invariant, description, *values)

    swap(violation, "check", lambda _: check)
    PLANTABLE[name].plant()


def _replayed_after(name: str | None, seeds: Sequence[int]) -> list[Replayed]:
    """Replay traces of seeds; with a planted bug, up to the first one that is refused."""
    if name is None:
        return [replayed(seed) for seed in seeds]
    plant(name)
    done: list[Replayed] = []
    for seed in seeds:
        done.append(replayed(seed, is_planted=True))
        if done[-1].refusal is not None:
            break
    return done


def _all_replayed(name: str | None, seeds: range, processes: int) -> Iterator[list[Replayed]]:
    tasks = [range(start, min(start + PER_TASK, seeds.stop)) for start in range(seeds.start, seeds.stop, PER_TASK)]
    if name is not None:
        yield _replayed_after(name, seeds)
    elif processes == 1:
        yield from map(functools.partial(_replayed_after, None), tasks)
    else:
        with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
            yield from pool.map(functools.partial(_replayed_after, None), tasks)


def main() -> int:
    """Replay traces, and return 1 if one was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.replays", description=__doc__)
    parser.add_argument("--seeds", required=True, metavar="FIRST..END", help="END is exclusive")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(PLANTABLE), help="a bug to plant first; one refused trace is enough")
    options = parser.parse_args()
    first, end = map(int, options.seeds.split(".."))
    done: list[Replayed] = []
    for some in _all_replayed(options.plant, range(first, end), options.processes):
        done += some
        for each in some:
            if each.refusal is not None:
                print(f"seed {each.seed}: {each.refusal}", flush=True)
    changes = [each.voter_changes for each in done]
    refused = [each.seed for each in done if each.refusal is not None]
    print(
        f"{len(done)} traces, {sum(each.events for each in done):,} events; {sum(changes)} voter changes in "
        f"{sum(map(bool, changes))} of them, {sum(each.replaced_disks for each in done)} disks replaced, "
        f"{sum(each.snapshots for each in done)} snapshots, {sum(each.restarts for each in done)} logs begun with one; "
        f"{len(refused)} traces refused{f': {refused}' if refused else ''}"
    )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
