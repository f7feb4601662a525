# SPDX-License-Identifier: Apache-2.0
"""Shrinking: choices of a schedule become calm, as long as it violates the same invariant.

First all choices but those of one kind, since a crash or a cut alone is often enough; then whole kinds of choices and
kinds of faults, and then parts of what is left, halved again and again, as in Zeller's ddmin. If several are left then,
none of them can be left out, but another one, or one at another time, may be enough: each is tried alone, at its first
occasion. What the shrunk schedule has left is what the violation takes, or nearly so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import ChoiceName
from raftlog.testing.simulator.runs.replay_ranges import CHOICE_KINDS
from raftlog.testing.simulator.runs.schedule import SWITCHES, Schedule, replay
from raftlog.testing.simulator.violation import ViolationError

_AFTER_MS: Final = 5_000
"""A shrunk schedule may violate the invariant so much later than the whole one."""
_CALM_PLANS: Final = (
    *SWITCHES.values(),
    {"is_on_files": False},
    {"snapshot_interval": 0},
    {"listeners": 1},
    {"observers": 0},
    {"do_voters_ask_bootstrap": False},
    {"is_cut_one_way": False},
)

_FAULTS: Final[Mapping[ChoiceName, int | float]] = {
    ChoiceName(kind, (), 0): 1
    for kind, (method, replicas) in CHOICE_KINDS.items()
    if method == "happens" and not replicas
}
"""The first of each kind that is about no single replica."""


@attrs.frozen
class Shrunk:
    """A schedule that was shrunk.

    Attributes:
        schedule: what is left of it.
        violation: that it leads to.
        runs: how many schedules were tried.
        is_finished: whether no single choice that is left can become calm; False if the runs came to an end before.
    """

    schedule: Schedule
    violation: ViolationError
    runs: int
    is_finished: bool


Run = Callable[[Schedule, int | None], tuple[Schedule, ScheduleOutcome]]
"""Runs a schedule, until a time or to its end, as ``replay`` does."""


class RunsEndError(Exception):
    """No more schedules are tried. A ``Run`` may raise it."""


class _Shrinker:
    def __init__(self, schedule: Schedule, violation: ViolationError, max_runs: int, run: Run) -> None:
        self.best, self.violation, self.runs = schedule, violation, 0
        self._run = run
        self._max_runs = max_runs
        self._end_ms: int | None = None

    def is_kept(self, candidate: Schedule) -> bool:
        """Whether a schedule violates the same invariant; it is the best then."""
        if self.runs >= self._max_runs:
            raise RunsEndError
        used, outcome = self._run(candidate, self._end_ms)
        self.runs += 1
        if outcome.violation is None or outcome.violation.invariant != self.violation.invariant:
            return False
        self.best, self.violation = used, outcome.violation
        self._limit_time(outcome)
        return True

    def _limit_time(self, outcome: ScheduleOutcome) -> None:
        # A quorum that does not recover shows that at the very end only.
        if self.violation.invariant != "recovery":
            self._end_ms = outcome.ended_ms + _AFTER_MS

    def without(self, names: Iterable[ChoiceName]) -> bool:
        """Whether some choices may be calm."""
        gone = set(names)
        left = {name: value for name, value in self.best.deviations.items() if name not in gone}
        return len(left) < len(self.best.deviations) and self.is_kept(attrs.evolve(self.best, deviations=left))

    def shrink(self) -> None:
        """Shrink as far as possible."""
        self.is_kept(self.best)  # From now on it is known when the violation comes, and others run for as long.
        whole = self.best
        self._keep_one_kind()
        self._calm_parts()
        if self.best.deviation_count > 1 and self._keep_one_choice(whole):
            self._calm_parts()

    def _calm_parts(self) -> None:
        """Make kinds of choices and of faults calm, and parts of what is left, until nothing more can be."""
        while True:
            before = self.best
            self._calm_kinds()
            self._calm_plan()
            self._halve(list(self.best.deviations))
            if self.best.deviation_count == before.deviation_count and self.best.plan == before.plan:
                return

    def _keep_one_kind(self) -> None:
        """Calm all choices, or else all but those of one kind; the kinds with the fewest choices first."""
        for names in ((), *sorted(_by(self.best, lambda name: name.kind), key=len)):
            if self.without(self.best.deviations.keys() - set(names)):
                return

    def _keep_one_choice(self, whole: Schedule) -> bool:
        """Calm all choices of a schedule but one, which comes at its first occasion; whether one is enough.

        First the faults that are about no single replica are tried, also those that the schedule never came to, and
        then what it has, the rarest first.
        """
        rarest = sorted(_by(whole, lambda name: (name.kind, name.of)), key=len)
        found = {names[0]._replace(number=0): whole.deviations[names[0]] for names in rarest}
        for name, value in {**_FAULTS, **found}.items():
            if self.is_kept(attrs.evolve(whole, deviations={name: value})):
                return True
        return False

    def _calm_kinds(self) -> None:
        for of_kind in (_by(self.best, lambda name: name.kind), _by(self.best, lambda name: (name.kind, name.of))):
            for names in sorted(of_kind, key=len, reverse=True):
                self.without(names)

    def _calm_plan(self) -> None:
        for fields in _CALM_PLANS:
            plan = self.best.plan.changed(fields)
            if plan != self.best.plan:
                self.is_kept(attrs.evolve(self.best, plan=plan))

    def _halve(self, names: Sequence[ChoiceName]) -> None:
        """Calm parts of some choices, ever smaller ones; the later choices first, which depend on the earlier."""
        size = -(-len(names) // 2)
        while size:
            parts = [names[first : first + size] for first in range(0, len(names), size)]
            for part in reversed(parts):
                self.without(part)
            names = list(self.best.deviations)
            size = size // 2 if size > 1 else 0


def _by(schedule: Schedule, group: Callable[[ChoiceName], object]) -> list[list[ChoiceName]]:
    groups: dict[object, list[ChoiceName]] = {}
    for name in schedule.deviations:
        groups.setdefault(group(name), []).append(name)
    return list(groups.values())


def shrink(schedule: Schedule, violation: ViolationError, max_runs: int = 1000, run: Run = replay) -> Shrunk:
    """Make choices of a schedule calm, as long as it violates the same invariant.

    Args:
        schedule: that leads to a violation.
        violation: to be kept, by the name of its invariant.
        max_runs: how many schedules may be tried.
        run: runs one.
    """
    shrinker = _Shrinker(schedule, violation, max_runs, run)
    is_finished = True
    try:
        shrinker.shrink()
    except RunsEndError:
        is_finished = False
    return Shrunk(shrinker.best, shrinker.violation, shrinker.runs, is_finished)
