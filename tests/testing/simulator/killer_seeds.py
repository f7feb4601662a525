# SPDX-License-Identifier: Apache-2.0
"""Which planted bug each invariant of the simulator finds, and within how many seeds."""

import subprocess
import sys
from typing import Final, NamedTuple

from tests.checkout import ROOT


class Killer(NamedTuple):
    """An invariant that finds a bug.

    Attributes:
        invariant: its name.
        bug: that is planted.
        seeds: the invariant finds it in one of so many. Twice what was needed, or more, because each change of the
            core or of the simulator changes what a seed does.
        first: of the seeds.
    """

    invariant: str
    bug: str
    seeds: int
    first: int = 0


KILLERS: Final = (
    Killer("one-leader-per-epoch", "half-wins", 20),
    Killer("one-leader-per-epoch", "F1-pre-votes-count", 5),
    Killer("one-vote-per-epoch", "votes-again", 10),
    Killer("epochs-rise", "epoch-back", 5),
    Killer("one-batch-per-offset-and-epoch", "K1-core", 10),
    Killer("log-matching", "no-divergence", 120),
    Killer("leader-completeness", "any-candidate", 20),
    Killer("leader-completeness", "R-longer-log-votes", 60, first=150),
    Killer("committed-prefix", "K24-core", 15),
    Killer("high-watermark-is-kept", "truncates-committed", 15),
    Killer("high-watermark-rises", "high-watermark-back", 5),
    Killer("high-watermark-is-committed", "minority-commits", 5),
    Killer("high-watermark-is-committed", "R2", 30),
    Killer("high-watermark-is-committed", "K23", 20),
    Killer("high-watermark-is-committed", "R-unflushed", 30),
    Killer("fetch-is-durable", "unflushed-fetch", 5),
    Killer("queues-are-bounded", "any-number-of-appends", 20),
    Killer("quarantine", "votes-in-quarantine", 10),
    Killer("quarantine", "counted-in-quarantine", 10),
    Killer("stored-before-sent", "R12-told", 5),
    Killer("stored-before-sent", "F2-oldest-state", 5),
    Killer("acknowledged-is-committed", "R-acknowledged", 5),
    Killer("acknowledged-is-committed", "told-when-written", 5),
    Killer("failed-never", "R-unknown", 15),
    Killer("value-once", "written-twice", 5),
    Killer("reads-are-linearizable", "reads-unconfirmed", 40),
    Killer("reads-see-what-is-known", "reads-without-leader-change", 20),
    Killer("reads-are-committed", "reads-uncommitted", 5),
    Killer("one-outcome", "told-twice", 5),
    Killer("requests-end", "R-read-end", 12),
    Killer("offsets-in-order", "told-out-of-order", 5),
    Killer("one-uncommitted-voter-set", "voters-uncommitted", 90),
    Killer("voter-sets-overlap", "two-removed", 15),
    Killer("commit-before-voters", "F5-voters-before-commit", 8, first=30),
    Killer("high-watermark-in-log", "high-watermark-past-end", 15),
    Killer("voter-history", "snapshot-without-voters", 5),
    Killer("durable-records-are-kept", "flush-without-sync", 6),
    Killer("disk-damage-is-found", "damage-is-torn", 10),
    Killer("votes-are-kept", "vote-without-sync", 6),
    Killer("a-sound-directory-opens", "leftovers-are-refused", 6),
    Killer("log-start-is-covered", "snapshots-all-deleted", 10),
    Killer("snapshot-is-replay", "snapshot-voters", 50),
    Killer("snapshot-is-committed", "snapshot-epoch", 10),
    Killer("listener-is-replay", "wrong-snapshot", 10),
    Killer("listener-in-order", "delivered-twice", 5),
    Killer("listener-in-order", "F9-stopped-listener", 5),
    Killer("listener-is-committed", "delivered-early", 5),
    Killer("machine-fails", "machine-raises", 5),
    Killer("machine-check", "machine-checks", 5),
    Killer("machine-is-deterministic", "machine-uses-id", 5),
    Killer("machine-restores", "machine-forgets", 10),
    Killer("machine-restores", "machine-keeps", 10),
    Killer("leader-told-once", "leader-told-again", 5),
    Killer("leader-told-rightly", "leader-told-wrong", 5),
    Killer("leader-told-late", "leader-told-early", 5),
    Killer("autopilot-leads", "plans-of-others", 20),
    Killer("autopilot-one-change", "plans-meanwhile", 40, first=20),
    Killer("autopilot-tolerance", "steps-at-any-cost", 40),
    Killer("autopilot-operator", "removals-forgotten", 30),
    Killer("autopilot-hysteresis", "steady-at-once", 30),
    Killer("autopilot-windows", "lag-ignored", 30),
    Killer("autopilot-caught-up", "observers-in-sync", 30),
    Killer("autopilot-as-planned", "any-voters-expected", 60, first=20),
    Killer("autopilot-settles", "no-demotion", 30),
    Killer("no-error", "late-answer", 10),
    Killer("no-halt", "half-wins", 20),
    Killer("no-busy-loop", "no-pause", 5),
    Killer("recovery", "no-elections", 10),
    Killer("recovery", "F3-epoch-at-the-end", 10, first=5),
    Killer("recovery", "F4-majority-of-election", 6, first=2),
)
"""Each invariant at least once."""


def run_killer(killer: Killer) -> subprocess.CompletedProcess[str]:
    """Plant a bug in a new process, and run seeds until the invariant finds it; the exit code is 1 then."""
    seeds = f"{killer.first}..{killer.first + killer.seeds}"
    command = [sys.executable, "-m", "tests.testing.simulator.run", "--processes", "1", "--seeds", seeds]
    command += ["--plant", killer.bug, "--until", killer.invariant]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
