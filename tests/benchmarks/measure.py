# SPDX-License-Identifier: Apache-2.0
"""Measuring: contenders take turns, and the median of their rounds counts.

The process that measures holds nothing: what it starts would have its peak memory counted in.
"""

import itertools
import os
import re
import statistics
import sys
from collections.abc import Iterator, Mapping
from typing import Final, Literal, Protocol

import attrs

Mode = Literal["compiled", "interpreted"]

MODES: Final[tuple[Mode, Mode]] = ("compiled", "interpreted")
PEAK_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes in one of ``ru_maxrss``."""


class Contender(Protocol):
    """Something that can be measured."""

    def measure(self) -> float:
        """Do the work once, and return the figure."""
        ...

    def peak_memory_bytes(self) -> int:
        """Return the most memory that the work takes; ask after it has been measured."""
        ...


def medians(contenders: Mapping[str, Contender], rounds: int) -> dict[str, float]:
    """Measure contenders in turn, a number of times, and return the median of each."""
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            figures[name].append(contender.measure())
    return {name: statistics.median(each) for name, each in figures.items()}


def environment(mode: Mode) -> dict[str, str]:
    """Return the environment that makes a process run raftlog compiled or interpreted.

    Compiled bytecode is kept, as after any install: a start that compiles all modules anew is nobody's.
    """
    dropped = ("RAFTLOG_PURE", "PYTHONDONTWRITEBYTECODE")
    others = {name: value for name, value in os.environ.items() if name not in dropped}
    return others | ({"RAFTLOG_PURE": "1"} if mode == "interpreted" else {})


@attrs.frozen
class Timing:
    """What an operation returns that times itself, as it has to make something ready each time.

    Attributes:
        count: what it has seen.
        size_bytes: of that.
        cpu_s: the processor's time.
        wall_s: the time that passed.
        beside_s: the time that the least which does the same took; both were done step by step, in turns.
    """

    count: int
    size_bytes: int
    cpu_s: float
    wall_s: float
    beside_s: float | None = None


@attrs.frozen
class Limit:
    """A figure that is not measured."""

    figure: float

    def measure(self) -> float:
        """Return it."""
        return self.figure

    def peak_memory_bytes(self) -> int:
        """Return nothing."""
        return 0


@attrs.frozen
class Row:
    """One figure of one mode against one other: what ``results.json`` holds.

    Attributes:
        id: what the row is called from run to run.
        what: the work.
        against: the other.
        ratio: how many times better raftlog is.
        goal: the least ratio that is wanted, or 0 if the row is only reported.
        holds: whether the goal is reached.
        ours, theirs: the medians, in ``unit``.
        unit: of both.
        peak_memory_bytes: of ours.
    """

    id: str
    what: str
    against: str
    ratio: float
    goal: float
    holds: bool
    ours: float
    theirs: float
    unit: str
    peak_memory_bytes: int


@attrs.frozen
class Comparison:
    """Contenders at one piece of work.

    Attributes:
        id, what: of its rows.
        unit: of the figures.
        ours: raftlog, by mode.
        theirs: the others, by name.
        goals: the least ratio for a mode against another; those that are not here are only reported.
        less_is_better: whether the smaller figure wins.
        most_rounds: that it is worth; None is as many as of others.
    """

    id: str
    what: str
    unit: str
    ours: Mapping[Mode, Contender]
    theirs: Mapping[str, Contender]
    goals: Mapping[tuple[Mode, str], float]
    less_is_better: bool = False
    most_rounds: int | None = None

    def rows(self, rounds: int) -> Iterator[Row]:
        """Measure everything, and yield a row for each mode and each other."""
        contenders: Iterator[tuple[str, Contender]] = itertools.chain(self.ours.items(), self.theirs.items())
        figures = medians(dict(contenders), min(rounds, self.most_rounds or rounds))
        peaks = {mode: contender.peak_memory_bytes() for mode, contender in self.ours.items()}
        for mode, against in itertools.product(self.ours, self.theirs):
            ours, theirs = figures[mode], figures[against]
            ratio = theirs / ours if self.less_is_better else ours / theirs
            goal = self.goals.get((mode, against), 0)
            yield Row(
                id=re.sub("[^a-z0-9]+", "-", f"{self.id}-{against}-{mode}".lower()).removesuffix("-compiled"),
                what=self.what if mode == "compiled" else f"{self.what}, interpreted",
                against=against,
                ratio=ratio,
                goal=goal,
                holds=ratio >= goal,
                ours=ours,
                theirs=theirs,
                unit=self.unit,
                peak_memory_bytes=peaks[mode],
            )
