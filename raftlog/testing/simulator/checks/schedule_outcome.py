# SPDX-License-Identifier: Apache-2.0
"""What happened in a schedule: the violation, if there is one, and counts."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from raftlog.testing.simulator.violation import ViolationError


@attrs.frozen
class ScheduleOutcome:
    """What happened in a schedule.

    Attributes:
        violation: the error; None if all invariants held.
        delivered: how many messages arrived.
        lost: how many did not.
        acknowledged: how many appends were.
        unknown: how many appends have an unknown outcome.
        reads: how many reads were confirmed.
        leaders: how many epochs had a leader.
        voter_changes: how many voter sets leaders have written that differ from those before.
        snapshots: how many were frozen, by applications or after a fetch.
        cleanings: how often the log start moved to a snapshot.
        upgrades: 1 if kraft.version 1 was committed after it was 0.
        restarts: how often a log was replaced by a snapshot that was fetched.
        crashes: how many processes crashed.
        lossy_crashes: how many of them lost records that were not synced.
        quarantines: how many of them lost records that were.
        exits: how many processes have ended because their disk had failed.
        plans: how many steps autopilots have planned, some of them again and again.
        promotions: how many observers they have made voters.
        demotions: how many voters they have made observers again.
        returns: how many configured voters that were none they have added.
        beyond_atlas: 1 if disks could be damaged although no majority of sound copies was left.
        lost_majorities: how often that came to be: so many disks of voters were damaged that the others were no
            majority.
        injected: how many faults of each kind there were.
        is_on_files: whether the storage was the real one.
        events: how many events there were.
        healed_ms: how long the quorum took to recover when the faults had ended.
        ended_ms: the virtual time at the end.
        trace: equal for all runs of a seed.
        states: a checksum of the state after each committed record; 0 after a violation.
    """

    violation: ViolationError | None
    delivered: int
    lost: int
    acknowledged: int
    unknown: int
    reads: int
    leaders: int
    voter_changes: int
    snapshots: int
    cleanings: int
    restarts: int
    upgrades: int
    crashes: int
    lossy_crashes: int
    quarantines: int
    exits: int
    plans: int
    promotions: int
    demotions: int
    returns: int
    beyond_atlas: int
    lost_majorities: int
    injected: Mapping[str, int]
    is_on_files: bool
    events: int
    healed_ms: int
    ended_ms: int
    trace: int
    states: int

    @property
    def counts(self) -> bool:
        """Whether enough happened for the schedule to prove something."""
        is_busy = self.delivered >= 1500 and self.acknowledged >= 100
        return is_busy and self.leaders >= 3 and self.lossy_crashes >= 1

    @classmethod
    def untold(cls, violation: ViolationError, *, is_on_files: bool) -> Self:
        """Return the outcome of a schedule of which nothing is known but its violation: its process has ended.

        Args:
            violation: likewise.
            is_on_files: whether the storage was the real one.
        """
        none: dict[str, Any] = {each.name: 0 for each in attrs.fields(cls)}
        return cls(**(none | {"violation": violation, "injected": {}, "is_on_files": is_on_files}))
