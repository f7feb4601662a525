# SPDX-License-Identifier: Apache-2.0
"""Whole schedules are the same wherever they run: ``python -m tests.testing.simulator.determinism --seeds 0..50``.

Each seed is run to its end in two other processes, with other hashes of texts, alone and beside others. Each plan
without faults is run on the log in files and on its model, and the states of the state machine are compared, record by
record. Prints what differs, and how much was equal; the exit code is 1 if anything differs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator.checks.decoded import values_in
from raftlog.testing.simulator.choices import ReplayedChoices
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.runs import schedule
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token
from raftlog.testing.simulator.simulation import Simulation
from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.testing.simulator.many_schedules import outcomes

PLACES: Final = (("0", 1), ("4711", 2))
"""Where seeds are run: the hash seed of the process, and how many processes it has run them."""
MOST_UNDER_WAY: Final = 5
"""So many of the last records may be committed in one of two runs only, as they are under way at the end."""
LEAST_RECORDS: Final = 50
"""With fewer of them, two runs have shown nothing."""

Digest = list[int]
"""Of a schedule: its trace, the checksum of its states, how many events it had, and when it ended."""


def digest(token: Token) -> Digest:
    """Run a whole schedule, and return what must be the same everywhere."""
    outcome = schedule.run_seed(token)
    return [outcome.trace, outcome.states, outcome.events, outcome.ended_ms]


def digests(seeds: range, processes: int) -> list[Digest]:
    """Run seeds in so many processes."""
    return [each for _, each in outcomes(seeds, processes, digest)]


def elsewhere(seeds: range, hash_seed: str, processes: int) -> list[Digest]:
    """Run seeds in another process, with another hash of texts."""
    code = f"from tests.testing.simulator.determinism import digests; print(digests({seeds!r}, {processes}))"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code]
    timeout_s = HANG_S + 10 * len(seeds)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=timeout_s
    )
    return list(json.loads(done.stdout))


def differing_processes(seeds: range) -> Iterator[str]:
    """Yield the seeds that were not the same in all places."""
    one, other = (elsewhere(seeds, *place) for place in PLACES)
    for seed, *found in zip(seeds, one, other, strict=True):
        if found[0] != found[1]:
            yield f"seed {seed}: {found[0]} and {found[1]}"


@attrs.frozen
class CalmRun:
    """A run without faults.

    Attributes:
        values: of what it has committed, in order.
        states: a checksum of the state machine's state after each of them.
        trace: of the whole run.
    """

    values: Sequence[bytes]
    states: Sequence[int]
    trace: int


def calm_run(seed: int, *, is_on_files: bool) -> CalmRun:
    """Run the plan of a seed without faults and choices, on the log in files or on its model."""
    plan = ScheduleOptions(faults=frozenset()).applied(draw_fault_plan(random.Random(seed)))
    simulation = Simulation(ReplayedChoices({}), attrs.evolve(plan, is_on_files=is_on_files))
    outcome = simulation.run()
    assert outcome.violation is None
    values = list[bytes]()
    for batch in simulation.history.committed:
        content = simulation.history.content_of(batch)
        if not content.is_control:
            values += [value for _, value in values_in(content)]
    states = [zlib.crc32(b"".join(each)) for each in simulation.replay._states[1:]]
    assert len(states) == len(values)
    return CalmRun(values, states, outcome.trace)


def difference_of_storages(seed: int) -> str | None:
    """Return how the log in files and its model differ in a run without faults; None if they do not."""
    model, files = (calm_run(seed, is_on_files=is_on_files) for is_on_files in (False, True))
    shared = min(len(model.values), len(files.values))
    if max(len(model.values), len(files.values)) - shared > MOST_UNDER_WAY:
        return f"seed {seed}: {len(model.values)} records on the model, {len(files.values)} on files"
    same = [one == other for one, other in zip(model.values, files.values, strict=False)]
    same_states = [one == other for one, other in zip(model.states, files.states, strict=False)]
    if not all(same) or not all(same_states):
        first = next(index for index in range(shared) if not (same[index] and same_states[index]))
        return f"seed {seed}: record {first} or the state after it differs"
    return None if shared >= LEAST_RECORDS else f"seed {seed}: only {shared} records"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what differs, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.testing.simulator.determinism", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=range(50), metavar="A..B", help="from A, up to and without B")
    seeds = parser.parse_args(arguments).seeds
    in_processes = list(differing_processes(seeds))
    on_storages = [found for seed in seeds if (found := difference_of_storages(seed)) is not None]
    for line in (*in_processes, *on_storages):
        print(line)
    print(f"{len(seeds) - len(in_processes)} of {len(seeds)} whole schedules are the same in all processes")
    print(f"{len(seeds) - len(on_storages)} of {len(seeds)} runs without faults are the same on files and on the model")
    return 1 if in_processes or on_storages else 0


def _seeds(text: str) -> range:
    first, _, end = text.partition("..")
    return range(int(first), int(end))


if __name__ == "__main__":
    sys.exit(main())
