# SPDX-License-Identifier: Apache-2.0
"""Every byte of every scene, each bit flipped and the byte zeroed: ``make campaign``.

It prints how often there was which outcome, by kind of file, and how much of the space that is; for each case that
fails, the command that does it again. It ends with 1 if one has failed. The whole is half an hour of one core:
``--slice 2/5`` does a fifth of it, and five such runs, wherever they are, do all.
"""

import argparse
import collections
import concurrent.futures
import faulthandler
import functools
import gc
import itertools
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TextIO

import attrs

from raftlog.records.files import file_names
from raftlog.records.messages import control
from tests.faults.damage_outcomes import BLIND_SPOTS, Judge, Outcome
from tests.faults.damaged_directories import FLIPS, Damage, scenes
from tests.mutants.planting import swap

CHUNK: Final = 500
FAILED: Final = "FAILED"
_HANG_SECONDS: Final = 300
_LISTED_FAILURES: Final = 50
_PROGRESS_LINES: Final = 20
"""Of a run whose standard error is no terminal."""
_REMEMBERED: Final = 4096


@attrs.define
class Tally:
    """The outcomes of some cases.

    Attributes:
        outcomes: number of each outcome, by scene, file and word.
        blind_spots: number of cases in each.
        failures: scene, damage and problem.
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
        scene_name: the scene.
        damages: the bytes to change.
        again_every: in one of this many cases, another startup must find the same.
    """
    judge = Judge(scenes()[scene_name])
    tally = Tally(blind_spots=judge.blind_spots)
    for index, damage in enumerate(damages):
        try:
            outcome = judge.judge(damage, starts_again=index % again_every == 0).value
        except Exception as error:
            outcome = FAILED
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


@attrs.frozen
class Slice:
    """One of some equal parts of all cases: each so-manieth one.

    Attributes:
        number: which, from 1 on.
        count: of the parts.
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Slice":
        """Parse a text such as ``2/5``.

        Raises:
            ValueError: there is no such part.
        """
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"{text!r} is no slice: 1/5 to 5/5 are")
        return cls(int(match[1]), int(match[2]))


def chunks(names: Sequence[str], part: Slice) -> Iterator[tuple[str, list[Damage]]]:
    """Yield the cases of some scenes, in portions."""
    for name in names:
        cases = itertools.islice(scenes()[name].damages(), part.number - 1, None, part.count)
        while chunk := list(itertools.islice(cases, CHUNK)):
            yield name, chunk


def space(names: Sequence[str]) -> int:
    """Return how many cases some scenes have."""
    return sum(1 for name in names for _ in scenes()[name].damages())


def _prepare() -> None:
    """Make the cases of a process cheaper: they read the same names and control records again and again."""
    for owner, name in ((file_names, "parse_file_name"), (control, "read_control_record")):
        swap(owner, name, functools.lru_cache(_REMEMBERED))
    gc.disable()


def _run_chunk(chunk: tuple[str, list[Damage]]) -> Tally:
    faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
    try:
        return run(*chunk)
    finally:
        faulthandler.cancel_dump_traceback_later()
        gc.collect()


class Progress:
    """Tells how far a run is: on a terminal in one line, over and over, else in a line now and then."""

    def __init__(self, case_count: int, stream: TextIO) -> None:
        self._case_count = case_count
        self._stream = stream
        self._lines = 0
        self._started = time.monotonic()

    def show(self, done: int, failed: int) -> None:
        """Say how many cases are done, and how many of those have failed."""
        rate = done / max(time.monotonic() - self._started, 1e-9)
        text = f"{done:,} of {self._case_count:,}, {rate:,.0f} a second, {failed} failed"
        if self._stream.isatty():
            print(f"\r{text}", end="" if done < self._case_count else "\n", file=self._stream, flush=True)
        elif done * _PROGRESS_LINES >= (self._lines + 1) * self._case_count:
            self._lines = done * _PROGRESS_LINES // self._case_count
            print(text, file=self._stream, flush=True)


def campaign(names: Sequence[str], part: Slice, processes: int) -> Tally:
    """Judge all cases of some scenes, or a part of them, and show progress on standard error."""
    work = list(chunks(names, part))
    total, progress = Tally(), Progress(sum(len(cases) for _, cases in work), sys.stderr)
    spawn = multiprocessing.get_context("spawn")  # A fork would inherit the timer of a test, which has no thread then.
    with concurrent.futures.ProcessPoolExecutor(processes, spawn, _prepare) as pool:
        for tally in pool.map(_run_chunk, work):
            total.add(tally)
            progress.show(sum(total.outcomes.values()), len(total.failures))
    return total


def kind_of_file(name: str) -> str:
    """Return what the files of a scene are called together: those of segments and snapshots, by what they end with."""
    return f"*{name[name.index('.') :]}" if name[0].isdigit() else name


def table(tally: Tally) -> Iterator[str]:
    """Yield how often there was which outcome, by kind of file."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for (_, name, outcome), count in tally.outcomes.items():
        for row, column in itertools.product((kind_of_file(name), "all"), (outcome, "all")):
            counts[row, column] += count
    columns = [each for each in (*(outcome.value for outcome in Outcome), FAILED, "all") if counts["all", each]]
    yield " ".join([" " * 24, *(f"{column:>12}" for column in columns)])
    for row in [*sorted({row for row, _ in counts} - {"all"}), "all"]:
        yield " ".join([f"{row:24}", *(f"{counts[row, column] or '-':>12}" for column in columns)])


def report(tally: Tally, case_count: int) -> Iterator[str]:
    """Yield what is to be printed.

    Args:
        tally: of what was done.
        case_count: how much there is to do.
    """
    yield from table(tally)
    done = sum(tally.outcomes.values())
    yield f"{done:,} of {case_count:,} cases: {1000 * done // case_count / 10:g} % of the space"
    for blind in BLIND_SPOTS:
        yield f"undetectable: {blind.name}: {tally.blind_spots[blind.name]:,} cases. {blind.reason}"
    for scene, damage, error in tally.failures[:_LISTED_FAILURES]:
        yield f"{FAILED} {scene} {damage}: {error}\n    again: {replay(scene, damage)}"


def replay(scene_name: str, damage: Damage) -> str:
    """Return the command that does a case again."""
    return f".venv/bin/python -m tests.faults.campaign --scene {scene_name} --case {damage}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, or one case of it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    parser.add_argument("--scene", choices=list(scenes()), help="this one alone")
    parser.add_argument("--case", type=Damage.parse, help="this one alone, as FILE:POSITION:CHANGE")
    parser.add_argument("--slice", type=Slice.parse, default=Slice(), help="only such a part of the cases, as 2/5")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(Judge(scenes()[options.scene or "closed"]).judge(options.case).value)
        return 0
    names = [options.scene] if options.scene else list(scenes())
    tally = campaign(names, options.slice, options.processes)
    print("\n".join(report(tally, space(names))))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
