# SPDX-License-Identifier: Apache-2.0
"""Every byte of every scene, each bit flipped and the byte zeroed: ``make campaign``.

It prints how often there was which outcome, by file; for each case that fails, the command that does it again. It ends
with 1 if one has failed.
"""

import argparse
import collections
import concurrent.futures
import faulthandler
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from tests.faults.damage_outcomes import BLIND_SPOTS, Judge
from tests.faults.damaged_directories import FLIPS, Damage, scenes

CHUNK: Final = 500
_HANG_SECONDS: Final = 300
_LISTED_FAILURES: Final = 50


@attrs.define
class Tally:
    """What became of some cases.

    Attributes:
        outcomes: how often there was one, by scene, file and word.
        blind_spots: how often each was met.
        failures: scene, damage and what was wrong.
    """

    outcomes: collections.Counter[tuple[str, str, str]] = attrs.field(factory=collections.Counter)
    blind_spots: collections.Counter[str] = attrs.field(factory=collections.Counter)
    failures: list[tuple[str, Damage, str]] = attrs.field(factory=list)

    def add(self, other: "Tally") -> None:
        """Add what another one has counted."""
        self.outcomes.update(other.outcomes)
        self.blind_spots.update(other.blind_spots)
        self.failures.extend(other.failures)


def run(scene_name: str, damages: Iterable[Damage], again_every: int = 1) -> Tally:
    """Judge some cases of a scene.

    Args:
        scene_name: which.
        damages: of which bytes.
        again_every: every so many cases, another start must find the same.
    """
    judge = Judge(scenes()[scene_name])
    tally = Tally(blind_spots=judge.blind_spots)
    for index, damage in enumerate(damages):
        try:
            outcome = judge.judge(damage, starts_again=index % again_every == 0).value
        except Exception as error:
            outcome = "FAILED"
            tally.failures.append((scene_name, damage, f"{type(error).__name__}: {error}"))
        tally.outcomes[scene_name, damage.name, outcome] += 1
    return tally


def sample(count: int) -> dict[str, list[Damage]]:
    """Return so many cases of all scenes together, spread evenly over files, bytes and changes: the same each time."""
    sizes = {name: scene.size_bytes * (FLIPS + 1) for name, scene in scenes().items()}
    chosen: dict[str, list[Damage]] = {name: [] for name in sizes}
    for number in range(count):
        index = number * sum(sizes.values()) // count
        for name, size in sizes.items():
            if index < size:
                chosen[name].append(scenes()[name].damage(index))
                break
            index -= size
    return chosen


def chunks(names: Sequence[str], every: int) -> Iterator[tuple[str, list[Damage]]]:
    """Yield the cases of some scenes, in parts."""
    for name in names:
        cases = itertools.islice(scenes()[name].damages(), 0, None, every)
        while chunk := list(itertools.islice(cases, CHUNK)):
            yield name, chunk


def _run_chunk(chunk: tuple[str, list[Damage]]) -> Tally:
    faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
    try:
        return run(*chunk)
    finally:
        faulthandler.cancel_dump_traceback_later()


def campaign(names: Sequence[str], every: int, processes: int) -> Tally:
    """Judge all cases of some scenes, or every so-manieth, and tell on standard error how far it is."""
    work = list(chunks(names, every))
    total, started = Tally(), time.monotonic()
    case_count = sum(len(cases) for _, cases in work)
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        for tally in pool.map(_run_chunk, work):
            total.add(tally)
            done, seconds = sum(total.outcomes.values()), time.monotonic() - started
            rate, failed = done / max(seconds, 1e-9), len(total.failures)
            print(f"\r{done:,} of {case_count:,}, {rate:,.0f} a second, {failed} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return total


def report(tally: Tally) -> Iterator[str]:
    """Yield what is to be printed."""
    for (scene, name, outcome), count in sorted(tally.outcomes.items()):
        yield f"{scene:8} {name:42} {outcome:13} {count:7,}"
    by_outcome: collections.Counter[str] = collections.Counter()
    for (_, _, outcome), count in tally.outcomes.items():
        by_outcome[outcome] += count
    yield ""
    for outcome, count in by_outcome.most_common():
        yield f"{outcome:13} {count:9,}"
    for blind in BLIND_SPOTS:
        yield f"undetectable: {blind.name}: {tally.blind_spots[blind.name]:,} cases. {blind.reason}"
    for scene, damage, error in tally.failures[:_LISTED_FAILURES]:
        yield f"FAILED {scene} {damage}: {error}\n    again: {replay(scene, damage)}"


def replay(scene_name: str, damage: Damage) -> str:
    """Return the command that does a case again."""
    return f".venv/bin/python -m tests.faults.campaign --scene {scene_name} --case {damage}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, or one case of it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    parser.add_argument("--scene", choices=list(scenes()), help="this one alone")
    parser.add_argument("--case", type=Damage.parse, help="this one alone, as FILE:POSITION:CHANGE")
    parser.add_argument("--every", type=int, default=1, help="only every so-manieth case")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(Judge(scenes()[options.scene or "closed"]).judge(options.case).value)
        return 0
    tally = campaign([options.scene] if options.scene else list(scenes()), options.every, options.processes)
    print("\n".join(report(tally)))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
