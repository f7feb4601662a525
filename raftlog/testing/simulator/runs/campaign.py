# SPDX-License-Identifier: Apache-2.0
"""What has happened in many schedules: the marks that they have hit, and the faults that they have had."""

from collections import Counter
from typing import Final

import attrs

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.disks.aiming import AIMED_FAULTS
from raftlog.testing.simulator.disks.damage import DAMAGES
from raftlog.testing.simulator.disks.file_directory import CRASH_FAULTS
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS
from raftlog.testing.simulator.runs.schedule import Token

MARKS: Final = (
    "delivered",
    "lost",
    "acknowledged",
    "unknown",
    "reads",
    "leaders",
    "voter_changes",
    "snapshots",
    "cleanings",
    "restarts",
    "upgrades",
    "crashes",
    "lossy_crashes",
    "quarantines",
    "exits",
    "plans",
    "promotions",
    "demotions",
    "returns",
    "beyond_atlas",
    "lost_majorities",
)
"""The counts of an outcome that show what schedules came to. One that stays 0 over many schedules proves nothing."""

FAULTS: Final = (
    *("loss", "duplicate", "cut", "one-way-cut", "pause", "clock-error", "slow-sync"),
    *("crash", "armed-crash", "snapshot-crash", "replaced-disk", "lost-disk", "lost-batches"),
    *AIMED_FAULTS,
    *CRASH_FAULTS,
    *DAMAGES,
    *ERRORS,
    *MISREADS,
)
"""The kinds of faults that are counted (``ScheduleOutcome.injected``). Of the model, ``lost-batches`` is bit rot."""


@attrs.define
class Totals:
    """What has happened in some schedules.

    Attributes:
        violations: by token.
        counting: how many schedules count.
        schedules: how many there were.
        virtual_ms: for how long, in virtual time.
        events: how many events there were.
        sums: of each of ``MARKS`` and ``FAULTS``.
        hits: in how many schedules each of ``MARKS`` and ``FAULTS`` was more than 0.
    """

    violations: dict[Token, str] = attrs.field(factory=dict)
    counting: int = 0
    schedules: int = 0
    virtual_ms: int = 0
    events: int = 0
    sums: Counter[str] = attrs.field(factory=Counter)
    hits: Counter[str] = attrs.field(factory=Counter)

    def add(self, token: Token, outcome: ScheduleOutcome) -> None:
        """Add the outcome of a schedule."""
        if outcome.violation is not None:
            self.violations[token] = str(outcome.violation)
        self.counting += outcome.counts
        self.schedules += 1
        self.virtual_ms += outcome.ended_ms
        self.events += outcome.events
        for name, count in counts_of(outcome).items():
            self.sums[name] += count
            self.hits[name] += count > 0

    @property
    def missed(self) -> list[str]:
        """The marks that no schedule has hit, and the faults that none has had."""
        return [name for name in (*MARKS, *FAULTS) if not self.hits[name]]


def counts_of(outcome: ScheduleOutcome) -> dict[str, int]:
    """Return the count of each of ``MARKS`` and ``FAULTS``, in that order."""
    marks = {name: getattr(outcome, name) for name in MARKS}
    return marks | {name: outcome.injected.get(name, 0) for name in FAULTS}
