# SPDX-License-Identifier: Apache-2.0
"""Schedules: by a seed and options, named by a short token; or by a fault plan and the choices that are not calm."""

import random
import re
from collections.abc import Callable, Mapping
from typing import Final, Self

import attrs

from raftlog.errors import OptionError
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import ChoiceName, Choices, RecordedChoices, ReplayedChoices, SeededChoices
from raftlog.testing.simulator.fault_plan import (
    FaultPlan,
    Storage,
    draw_fault_plan,
    with_aimed_faults,
    with_autopilot,
    with_disk_losses,
    with_disks,
    with_snapshot_crashes,
)
from raftlog.testing.simulator.runs.possible_faults import impossible_faults, impossible_words
from raftlog.testing.simulator.simulation import Simulation

GENERATOR: Final = 1
"""The version of what a seed means. It rises when seeds of one release are other schedules in the next."""
MAX_VOTERS: Final = 7

SWITCHES: Final[Mapping[str, Mapping[str, object]]] = {
    "loss": {"loss": 0.0},
    "duplicates": {"duplication": 0.0},
    "reordering": {"is_delay_even": True},
    "cuts": {"cut_interval_ms": 0},
    "crashes": {"crash_interval_ms": 0, "snapshot_crashes": 0.0},
    "rot": {"rot": 0.0},
    "pauses": {"pause_interval_ms": 0},
    "clocks": {"clock_error_ppm": 0},
    "slow-syncs": {"slow_sync": 0.0},
    "voter-changes": {"change_interval_ms": 0, "disk_loss_interval_ms": 0},
    "upgrades": {"upgrade_ms": 0},
    "disk-errors": {"disk_error_interval_ms": 0},
    "misreads": {"misread_interval_ms": 0},
    "torn-writes": {"torn_crashes": 0.0},
    "lying-syncs": {"lies": 0.0},
    "beyond-atlas": {"is_beyond_atlas": False},
    "autopilot": {"autopilot_look_ms": 0, "replacement_interval_ms": 0},
    "lost-disks": {"disk_loss_interval_ms": 0},
}
"""Kinds of faults, each with the fields of a fault plan that switch it off."""
_TOKEN: Final = re.compile(
    r"s(?P<generator>\d+)-(?P<seed>\d+)(?:-v(?P<voters>\d+))?(?:-(?P<storage>model|files))?(?:-(?P<faults>[a-z-]+(?:\+[a-z-]+)*))?"
)


@attrs.frozen
class ScheduleOptions:
    """What all schedules of a run have in common.

    Attributes:
        voters: how many voters there are at the start, 1 to 7; None lets each schedule draw it.
        faults: the kinds of faults that a schedule may draw, of ``SWITCHES``.
        storage: what is under the replicas.
        kind: of the state machines. A token does not name it.

    Raises:
        OptionError: there are no such voters or faults, or no schedule can have any of these.
    """

    voters: int | None = None
    faults: frozenset[str] = frozenset(SWITCHES)
    storage: Storage = Storage.DRAWN
    kind: MachineKind = BUILT_IN

    def __attrs_post_init__(self) -> None:
        if self.voters is not None and not 1 <= self.voters <= MAX_VOTERS:
            raise OptionError("voters", f"{self.voters} is not from 1 to {MAX_VOTERS}")
        if unknown := sorted(self.faults - SWITCHES.keys()):
            raise OptionError("faults", f"no {', '.join(unknown)}; there are {', '.join(SWITCHES)}")
        impossible = impossible_faults(self.faults, self.voters, self.storage)
        if impossible and len(impossible) == len(self.faults):
            raise OptionError("faults", impossible_words(impossible))

    def applied(self, plan: FaultPlan) -> FaultPlan:
        """Return a plan with these voters, and without the faults that are switched off."""
        if self.voters is not None:
            plan = plan.with_voters(self.voters)
        off: dict[str, object] = {}
        for name, fields in SWITCHES.items():
            if name not in self.faults:
                off |= fields
        return plan.changed(off)


@attrs.frozen
class Token:
    """Names a schedule: its seed, and the options it was drawn with.

    Attributes:
        seed: 0 or more.
        options: of the run.
    """

    seed: int
    options: ScheduleOptions = attrs.field(factory=ScheduleOptions)

    def __str__(self) -> str:
        voters, faults = self.options.voters, self.options.faults
        parts = [f"s{GENERATOR}", str(self.seed)]
        if voters is not None:
            parts.append(f"v{voters}")
        if self.options.storage is not Storage.DRAWN:
            parts.append(self.options.storage.value)
        if faults != SWITCHES.keys():
            parts.append("+".join(each for each in SWITCHES if each in faults) or "none")
        return "-".join(parts)

    @classmethod
    def parse(cls, text: str, kind: MachineKind = BUILT_IN) -> Self:
        """Return what a token names.

        Args:
            text: the token.
            kind: of the state machines, which a token does not name.

        Raises:
            OptionError: it is no token, or one of another generator, whose schedules cannot be drawn any more.
        """
        match = _TOKEN.fullmatch(text)
        if match is None:
            raise OptionError("token", f"{text!r} is no token; one looks like {cls(4711)}")
        if int(match["generator"]) != GENERATOR:
            raise OptionError("token", f"{text} is of generator {match['generator']}, and this release has {GENERATOR}")
        faults = frozenset(SWITCHES)
        if (named := match["faults"]) is not None:
            faults = frozenset() if named == "none" else frozenset(named.split("+"))
        storage = Storage(match["storage"] or Storage.DRAWN)
        voters = int(match["voters"]) if match["voters"] else None
        return cls(int(match["seed"]), ScheduleOptions(voters, faults, storage, kind))


@attrs.frozen
class Schedule:
    """A fault plan and choices, which determine a run.

    Attributes:
        plan: the fault plan.
        deviations: the choices that are not calm.
        kind: of the state machines.
    """

    plan: FaultPlan
    deviations: Mapping[ChoiceName, int | float] = attrs.field(factory=dict)
    kind: MachineKind = BUILT_IN

    @property
    def deviation_count(self) -> int:
        """How far the run is from one without faults: choices that are not calm."""
        return len(self.deviations)


Watch = Callable[[Simulation], None]
"""Is given a simulation before it runs."""


def run_seed(token: Token, watch: Watch | None = None, end_ms: int | None = None) -> ScheduleOutcome:
    """Run the schedule that a token names.

    Args:
        token: of the schedule.
        watch: is given the simulation first.
        end_ms: to end at this virtual time, without recovery; None for a whole schedule.
    """
    plan, choices = _drawn(token)
    return _run(choices, plan, token.options.kind, watch, end_ms)


def record(token: Token) -> tuple[Schedule, ScheduleOutcome]:
    """Run the schedule that a token names, and return its choices, too."""
    plan, choices = _drawn(token)
    recorded = RecordedChoices(choices)
    outcome = _run(recorded, plan, token.options.kind)
    return Schedule(plan, recorded.deviations, token.options.kind), outcome


def replay(
    schedule: Schedule, end_ms: int | None = None, watch: Watch | None = None
) -> tuple[Schedule, ScheduleOutcome]:
    """Run a schedule, and return it without the choices that it never came to.

    Args:
        schedule: what to run.
        end_ms: to end at this virtual time, without recovery; None for a whole schedule.
        watch: is given the simulation first.
    """
    choices = ReplayedChoices(schedule.deviations)
    outcome = _run(choices, schedule.plan, schedule.kind, watch, end_ms)
    return attrs.evolve(schedule, deviations=choices.used), outcome


def plan_of(token: Token) -> FaultPlan:
    """Return the fault plan of the schedule that a token names."""
    return _drawn(token)[0]


def _drawn(token: Token) -> tuple[FaultPlan, Choices]:
    def drawn_for(what: str) -> random.Random:
        # Of its own, so that what is new to plans does not change what the seeds of others mean.
        return random.Random(f"{what} of {token.seed}")  # noqa: S311 - no secret

    chance = random.Random(token.seed)  # noqa: S311 - no secret
    plan = with_disks(draw_fault_plan(chance), drawn_for("disks"), token.options.storage)
    plan = with_disk_losses(with_autopilot(plan, drawn_for("autopilot")), drawn_for("disk losses"))
    plan = with_aimed_faults(with_snapshot_crashes(plan, drawn_for("snapshot crashes")), drawn_for("aimed faults"))
    return token.options.applied(plan), SeededChoices(chance)


def _run(
    choices: Choices, plan: FaultPlan, kind: MachineKind, watch: Watch | None = None, end_ms: int | None = None
) -> ScheduleOutcome:
    simulation = Simulation(choices, plan, kind)
    if watch is not None:
        watch(simulation)
    return simulation.run(end_ms)
