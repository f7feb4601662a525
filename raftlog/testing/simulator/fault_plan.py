# SPDX-License-Identifier: Apache-2.0
"""Which faults a schedule has, and how many of them: drawn per seed, each on or off, so that none hides the others."""

import enum
from collections.abc import Mapping
from typing import Any, Final, Self

import attrs

from raftlog.testing.simulator.choices import Chance

APPEND_INTERVALS_MS: Final = {1: 120, 2: 120, 3: 320, 4: 450, 5: 550, 6: 650, 7: 750, 8: 850}
"""By the number of replicas: an append costs about four messages for each follower."""
FILES_SHARE: Final = 0.3
"""Of the schedules, this share is on the real storage."""
AIMED_SHARE: Final = 0.25
"""Of the schedules on the real storage, this share has aimed faults."""
AUTOPILOT_SHARE: Final = 0.35
"""Of the schedules that have an observer anyway, this share has an autopilot, and also an observer or two."""
_AUTOPILOT_SHARE_OF_OTHERS: Final = 0.15
MOST_REPLICAS: Final = max(APPEND_INTERVALS_MS)
_FEW: Final = 2
_VOTERS: Final = (3,) * 14 + (5, 5, 4, 2, 2, 1)


class Storage(enum.Enum):
    """What is under the replicas."""

    DRAWN = "drawn"
    """Either, for each schedule."""
    MODEL = "model"
    """The fast model of a log, in memory."""
    FILES = "files"
    """The real log, in files of a file system in memory, on disks with faults."""


@attrs.frozen(kw_only=True)
class FaultPlan:
    """The faults of one schedule. A rate of 0 switches a fault off; intervals are means, in ms of virtual time.

    Attributes:
        voters: how many voters there are at the start.
        observers: how many other replicas.
        delay_ms: of a message, on average.
        is_delay_even: whether all messages take about as long, so that few overtake others.
        loss: the share of messages that are lost.
        duplication: the share of messages that arrive twice.
        cut_interval_ms: between cuts of the network.
        is_cut_one_way: whether a cut stops messages in one direction only.
        crash_interval_ms: between crashes.
        armed_crashes: the share of crashes that wait until the replica has records that are not synced.
        rot: the share of crashes after which the disk has lost records that were durable. Only one replica at a time
            has lost any, and the others suffice for a majority.
        pause_interval_ms: between pauses of a process.
        change_interval_ms: between changes of the voters.
        kraft_version: at the start. At 0 the voters are static.
        upgrade_ms: when an operator upgrades kraft.version to 1, if it is 0; he tries until he succeeds. 0: never.
        clock_error_ppm: by how much clocks are too fast or too slow, at most.
        sync_ms: of a sync, on average.
        slow_sync: the share of syncs that take fifty times as long.
        append_interval_ms: between the times at which clients append, one to four of them at once.
        listeners: how many state machines each replica has.
        listener_delay_ms: how long one waits before it reads what it is given, and before it writes a snapshot.
        snapshot_interval: after so many records a state machine writes a snapshot, and the log is cleaned.
        retention_bytes: of the log and its snapshots, above which cleaning deletes what a snapshot has.
        do_voters_ask_bootstrap: whether voters know bootstrap servers, which they ask as fast as the network answers
            while there is no leader; other replicas always do.
        is_on_files: whether the storage is the real one, in files of a file system in memory. The faults below are for
            that; the fast model has none of them.
        disk_error_interval_ms: between errors of disks: of a read, a write or a sync, or no room for a while.
        failed_crashes: the share of processes ended by such an error whose machine crashes, too.
        misread_interval_ms: between reads that return wrong bytes.
        torn_crashes: the share of crashes in which sectors may have reached the disk in any order.
        lies: the share of crashes that lose what was synced.
        is_beyond_atlas: whether disks are damaged although no majority of sound copies may be left. The quorum then
            need not recover, but must not hide what it has lost.
        is_aimed: whether faults of disks are also aimed at rare moments, such as an open that moves files.
        autopilot_look_ms: between looks of each replica's autopilot; 0 if there are no autopilots.
        stabilize_ms: for how long a replica is in sync, or out of sync, before an autopilot changes its role.
        demote_later_ms: so much longer voters must be in sync before an observer is demoted.
        autopilot_max_lag: how many offsets a replica in sync is away from the log end, at most.
        is_promotion_by_min_sync: whether an observer is promoted only if there is but a majority of voters.
        is_promotion_by_leader: whether it is promoted only if an observer leads.
        is_memory_durable: whether the memory of an autopilot survives its process.
        replacement_interval_ms: between replacements of disks of replicas that are no voters, beside the operator's.
        disk_loss_interval_ms: between losses of the disk of a voter, which then starts on an empty one. There are none
            at kraft.version 0: such a replica could vote again.
        snapshot_crashes: the share of snapshots that were fetched, and are stored, after which the machine crashes
            before the log has restarted there.
    """

    voters: int
    observers: int
    delay_ms: float
    is_delay_even: bool
    loss: float
    duplication: float
    cut_interval_ms: int
    is_cut_one_way: bool
    crash_interval_ms: int
    armed_crashes: float
    rot: float
    pause_interval_ms: int
    change_interval_ms: int
    kraft_version: int
    upgrade_ms: int
    clock_error_ppm: int
    sync_ms: float
    slow_sync: float
    append_interval_ms: int
    listeners: int
    listener_delay_ms: float
    snapshot_interval: int
    retention_bytes: int
    do_voters_ask_bootstrap: bool
    is_on_files: bool = False
    disk_error_interval_ms: int = 0
    failed_crashes: float = 0.0
    misread_interval_ms: int = 0
    torn_crashes: float = 0.0
    lies: float = 0.0
    is_beyond_atlas: bool = False
    is_aimed: bool = False
    autopilot_look_ms: int = 0
    stabilize_ms: int = 0
    demote_later_ms: int = 0
    autopilot_max_lag: int = 0
    is_promotion_by_min_sync: bool = False
    is_promotion_by_leader: bool = False
    is_memory_durable: bool = False
    replacement_interval_ms: int = 0
    disk_loss_interval_ms: int = 0
    snapshot_crashes: float = 0.0

    def changed(self, fields: Mapping[str, Any]) -> Self:
        """Return the plan with other values of some fields."""
        return attrs.evolve(self, **fields)

    def with_voters(self, voters: int) -> Self:
        """Return the plan with another number of voters at the start; with few of them there is an observer, too."""
        return self._with_replicas(voters, max(self.observers, 1 if voters <= _FEW else 0))

    def with_observers(self, observers: int) -> Self:
        """Return the plan with another number of observers at the start; fewer, if there is no room for so many."""
        return self._with_replicas(self.voters, observers)

    def _with_replicas(self, voters: int, observers: int) -> Self:
        observers = min(observers, MOST_REPLICAS - voters)
        interval_ms = APPEND_INTERVALS_MS[voters + observers]
        return attrs.evolve(self, voters=voters, observers=observers, append_interval_ms=interval_ms)


def draw_fault_plan(chance: Chance) -> FaultPlan:
    """Draw the faults of a schedule."""

    def is_on(probability: float = 0.5) -> bool:
        return chance.random() < probability

    voters = chance.choice(_VOTERS)
    change_interval_ms = chance.choice((1_500, 5_000)) if is_on() else 0
    kraft_version = 0 if is_on(0.25) else 1
    observers = 1 if voters <= _FEW or change_interval_ms or is_on(0.25) else 0
    return FaultPlan(
        voters=voters,
        observers=observers,
        delay_ms=chance.choice((3.0, 6.0, 15.0)),
        is_delay_even=is_on(),
        loss=chance.choice((0.01, 0.03, 0.06)) if is_on() else 0.0,
        duplication=chance.choice((0.02, 0.06, 0.15)) if is_on() else 0.0,
        cut_interval_ms=chance.choice((6_000, 15_000)) if is_on(0.6) else 0,
        is_cut_one_way=is_on(),
        crash_interval_ms=chance.choice((5_000, 9_000, 14_000)),
        armed_crashes=chance.choice((0.6, 0.95)),
        rot=0.5 if is_on() else 0.0,
        pause_interval_ms=chance.choice((5_000, 15_000)) if is_on(0.4) else 0,
        change_interval_ms=change_interval_ms,
        kraft_version=kraft_version,
        upgrade_ms=chance.choice((5_000, 30_000)) if not kraft_version and is_on(0.75) else 0,
        clock_error_ppm=chance.choice((1_000, 100_000)) if is_on() else 0,
        sync_ms=chance.choice((1.0, 5.0, 20.0)),
        slow_sync=0.01 if is_on(0.3) else 0.0,
        listeners=2 if is_on(0.2) else 1,
        listener_delay_ms=chance.choice((30.0, 300.0, 1500.0)),
        snapshot_interval=chance.choice((40, 150)) if is_on(0.6) else 0,
        retention_bytes=chance.choice((0, 5_000, 15_000)),
        append_interval_ms=APPEND_INTERVALS_MS[voters + observers],
        do_voters_ask_bootstrap=is_on(0.2),
    )


def with_disks(plan: FaultPlan, chance: Chance, storage: Storage = Storage.DRAWN) -> FaultPlan:
    """Draw whether a schedule is on the real storage, unless that is given, and which faults its disks then have."""

    def is_on(probability: float = 0.5) -> bool:
        return chance.random() < probability

    is_on_files = is_on(FILES_SHARE)
    if storage is Storage.MODEL or (storage is Storage.DRAWN and not is_on_files):
        return plan
    return attrs.evolve(
        plan,
        is_on_files=True,
        disk_error_interval_ms=chance.choice((4_000, 12_000)) if is_on(0.6) else 0,
        failed_crashes=chance.choice((0.3, 0.7)),
        misread_interval_ms=chance.choice((4_000, 12_000)) if is_on() else 0,
        torn_crashes=0.5 if is_on() else 0.0,
        lies=0.4 if is_on() else 0.0,
        is_beyond_atlas=is_on(0.1),
    )


def with_disk_losses(plan: FaultPlan, chance: Chance) -> FaultPlan:
    """Draw whether voters lose their disks, where an operator changes the voters, and no autopilot does."""
    if not plan.change_interval_ms or not plan.kraft_version or plan.autopilot_look_ms or chance.random() >= 0.4:
        return plan
    return attrs.evolve(plan, disk_loss_interval_ms=chance.choice((3_000, 8_000)))


def with_snapshot_crashes(plan: FaultPlan, chance: Chance) -> FaultPlan:
    """Draw whether machines crash between a fetched snapshot and the restart of the log, if any are written."""
    if not plan.snapshot_interval or chance.random() >= 0.4:
        return plan
    return attrs.evolve(plan, snapshot_crashes=0.8)


def with_aimed_faults(plan: FaultPlan, chance: Chance) -> FaultPlan:
    """Draw whether faults of disks are also aimed at rare moments, on the real storage.

    Snapshots, and damage after crashes, are frequent then.
    """
    if not plan.is_on_files or chance.random() >= AIMED_SHARE:
        return plan
    return attrs.evolve(plan, is_aimed=True, rot=0.5, snapshot_interval=40, snapshot_crashes=0.8)


def with_autopilot(plan: FaultPlan, chance: Chance) -> FaultPlan:
    """Draw whether replicas have autopilots, and which ones; with them there are observers."""

    def is_on(probability: float = 0.5) -> bool:
        return chance.random() < probability

    if not is_on(AUTOPILOT_SHARE if plan.observers else _AUTOPILOT_SHARE_OF_OTHERS):
        return plan
    return attrs.evolve(
        plan.with_observers(max(plan.observers, chance.choice((1, 1, 2)))),
        autopilot_look_ms=chance.choice((100, 200)),
        stabilize_ms=chance.choice((500, 1_000, 3_000)),
        demote_later_ms=chance.choice((0, 500, 3_000)),
        autopilot_max_lag=chance.choice((8, 100)),
        is_promotion_by_min_sync=is_on(0.3),
        is_promotion_by_leader=is_on(0.1),
        is_memory_durable=is_on(),
        replacement_interval_ms=chance.choice((4_000, 12_000)) if is_on() else 0,
    )
