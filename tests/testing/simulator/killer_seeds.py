# SPDX-License-Identifier: Apache-2.0
"""Which planted bug each invariant of the simulator finds, and within how many seeds."""

import contextlib
import io
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple

from raftlog.testing.simulator.runs import schedule
from tests.mutants.planting import swap
from tests.testing.simulator import run


class Killer(NamedTuple):
    """An invariant that finds a bug.

    Attributes:
        invariant: its name.
        bug: that is planted.
        seeds: the invariant finds it in one of so many, because each change of the core or of the simulator changes
            what a seed does.
        first: of the seeds; one that was seen to find it, since each that does not takes a second or two.
        is_aimed: whether seeds may have aimed faults. Without them, a seed is what it was before there were any.
    """

    invariant: str
    bug: str
    seeds: int
    first: int = 0
    is_aimed: bool = True


KILLERS: Final = (
    Killer("one-leader-per-epoch", "half-wins", 20, first=3),
    Killer("one-leader-per-epoch", "F1-pre-votes-count", 20, first=2),
    Killer("one-vote-per-epoch", "votes-again", 20),
    Killer("candidates-are-voters", "voters-by-id", 20, first=13),
    Killer("candidates-name-their-log", "stands-unflushed", 20, first=5),
    Killer("votes-are-given", "refuses-equal-logs", 20),
    Killer("pre-votes-are-given", "K14-core", 40, first=15),
    Killer("pre-votes-keep-leaders", "K7", 20, first=1),
    Killer("pre-votes-come-first", "R8", 20),
    Killer("leaders-are-in-touch", "K5-end", 20, first=3),
    Killer("leaders-stay", "K6", 20, first=5),
    Killer("removed-leaders-resign", "K9-resigns", 40, first=8),
    Killer("epochs-rise", "epoch-back", 20),
    Killer("one-batch-per-offset-and-epoch", "K1-core", 20),
    Killer("log-matching", "no-divergence", 120, first=9),
    Killer("leader-completeness", "any-candidate", 20, first=1),
    Killer("leader-completeness", "R-longer-log-votes", 60, first=228),
    Killer("committed-prefix", "K24-core", 20, first=1),
    Killer("high-watermark-is-kept", "truncates-committed", 20, first=1),
    Killer("high-watermark-is-proven", "W-proven", 20, first=3),
    Killer("high-watermark-rises", "high-watermark-back", 20),
    Killer("high-watermark-is-committed", "minority-commits", 20),
    Killer("high-watermark-is-committed", "R2", 30, first=1),
    Killer("high-watermark-is-committed", "K31-high-watermark", 60, first=1006),
    Killer("high-watermark-is-committed", "K23", 20, first=1),
    Killer("high-watermark-is-committed", "R-unflushed", 30, first=1),
    Killer("fetch-is-durable", "unflushed-fetch", 20),
    Killer("queues-are-bounded", "any-number-of-appends", 20, first=74),
    Killer("quarantine", "votes-in-quarantine", 20),
    Killer("quarantine", "counted-in-quarantine", 20),
    Killer("forgotten-votes", "votes-after-a-loss", 120, first=101),
    Killer("fetched-batches-are-stored", "K33-read", 90, first=17),
    Killer("stored-before-sent", "R12-told", 20),
    Killer("stored-before-sent", "F2-oldest-state", 20),
    Killer("acknowledged-is-committed", "R-acknowledged", 20),
    Killer("acknowledged-is-committed", "told-when-written", 20),
    Killer("failed-never", "R-unknown", 20, first=2),
    Killer("value-once", "written-twice", 20),
    Killer("reads-are-linearizable", "reads-unconfirmed", 40, first=28),
    Killer("reads-see-what-is-known", "reads-without-leader-change", 20, first=1),
    Killer("reads-are-committed", "reads-uncommitted", 20),
    Killer("one-outcome", "told-twice", 20),
    Killer("requests-end", "R-read-end", 40, first=7),
    Killer("answered-once", "answered-twice", 20),
    Killer("requests-are-answered", "R-waiting-fetches", 20, first=1),
    Killer("requests-are-paced", "R-failed-update", 20),
    Killer("offsets-in-order", "told-out-of-order", 20),
    Killer("one-uncommitted-voter-set", "voters-uncommitted", 90, first=131),
    Killer("voter-sets-overlap", "two-removed", 20, first=2),
    Killer("commit-before-voters", "F5-voters-before-commit", 20, first=33),
    Killer("new-voters-keep-up", "R-caught-up", 20, first=2),
    Killer("new-voters-are-in-touch", "R11-removing", 200, first=613),
    Killer("new-voters-are-in-touch", "R11-adding", 60, first=286),
    Killer("new-voters-know-the-last", "K16", 60, first=36),
    Killer("high-watermark-in-log", "high-watermark-past-end", 20, first=2),
    Killer("voter-history", "snapshot-without-voters", 20),
    Killer("durable-records-are-kept", "flush-without-sync", 20, first=8),
    Killer("disk-damage-is-found", "damage-is-torn", 20, first=29),
    Killer("votes-are-kept", "vote-without-sync", 20, first=8),
    Killer("votes-have-room", "S-reserve", 20, first=5),
    Killer("a-sound-directory-opens", "leftovers-are-refused", 20, first=8),
    Killer("lost-votes-stay-lost", "W3-remembered", 60, first=101),
    Killer("starts-finish-restarts", "K31", 40, first=5),
    Killer("log-start-is-kept", "K28-inside", 20, first=2),
    Killer("snapshots-are-kept", "K29-name", 60, first=5),
    Killer("reports-are-true", "S-no-return", 20, first=247),
    Killer("losses-are-told", "K31-behind", 120, first=64),
    Killer("losses-are-true", "misses-too-much", 20, first=29),
    Killer("failed-reads-lose-nothing", "K31-empty", 60, first=93),
    Killer("opens-finish", "K31-once", 60, first=31),
    Killer("restarts-leave-nothing", "R18", 20, first=2),
    Killer("epochs-are-witnessed", "R14-roll", 120, first=170),
    Killer("log-start-is-covered", "snapshots-all-deleted", 20, first=6),
    Killer("snapshot-is-replay", "snapshot-voters", 50, first=9),
    Killer("snapshot-is-committed", "snapshot-epoch", 20, first=3),
    Killer("listener-is-replay", "wrong-snapshot", 20, first=6),
    Killer("listener-in-order", "delivered-twice", 20),
    Killer("listener-in-order", "F9-stopped-listener", 20),
    Killer("listeners-pause", "K20-listener", 20),
    Killer("snapshots-stay-while-read", "K27-listeners", 60, first=71),
    Killer("logs-are-cleaned", "K-cleaning", 20, first=22),
    Killer("cleaning-pauses", "K-cleaning-pause", 20, first=17),
    Killer("listener-is-committed", "delivered-early", 20),
    Killer("machine-fails", "machine-raises", 20),
    Killer("machine-check", "machine-checks", 20),
    Killer("machine-is-deterministic", "machine-uses-id", 20),
    Killer("machine-restores", "machine-forgets", 20, first=2),
    Killer("machine-restores", "machine-keeps", 20, first=3),
    Killer("leader-told-once", "leader-told-again", 20),
    Killer("leader-told-rightly", "leader-told-wrong", 20),
    Killer("leader-told-late", "leader-told-early", 20),
    Killer("autopilot-leads", "plans-of-others", 20, first=8),
    Killer("autopilot-one-change", "plans-meanwhile", 40, first=26),
    Killer("autopilot-tolerance", "steps-at-any-cost", 40, first=18),
    Killer("autopilot-operator", "removals-forgotten", 30, first=8),
    Killer("autopilot-hysteresis", "steady-at-once", 30, first=9),
    Killer("autopilot-windows", "lag-ignored", 30, first=8),
    Killer("autopilot-caught-up", "observers-in-sync", 30, first=8),
    Killer("autopilot-as-planned", "any-voters-expected", 60, first=57),
    Killer("autopilot-settles", "no-demotion", 30, first=9),
    Killer("no-error", "late-answer", 20),
    Killer("no-halt", "half-wins", 20),
    Killer("no-busy-loop", "no-pause", 20),
    Killer("recovery", "no-elections", 20),
    Killer("requests-are-paced", "F3-epoch-at-the-end", 20, first=12),
    Killer("recovery", "F4-majority-of-election", 60, first=16),
    Killer("recovery", "K-told-directory", 20, first=8),
    Killer("recovery", "R-epoch-without-records", 20, first=502793),
    Killer("quarantine", "R17-update", 60, first=159),
    Killer("forgotten-votes", "R-forgetful-counts", 60, first=101),
    Killer("requests-are-paced", "K-chunk-loop", 20, first=18000187),
    Killer("addressees-answer", "R10", 60, first=131),
    Killer("voter-sets-are-held", "R-two-to-one-read", 60, first=8),
    Killer("news-is-served", "R-two-to-one-parked", 20, first=2),
    Killer("halted-replicas-rest", "S-after-a-failure", 20, first=5),
    Killer("reads-are-confirmed", "R-read-fetch", 20),
    Killer("reads-are-confirmed", "R-read-answer", 20, first=2),
    Killer("reads-are-confirmed", "K9-read", 200, first=354),
    Killer("reads-are-confirmed", "F8-read-by-old-fetch", 20),
    Killer("refusals-pause", "S-full-stands", 60, first=93),
    Killer("refusals-pause", "R29-pause", 1, first=2, is_aimed=False),
    Killer("refusals-end", "S-full-forever", 60, first=25),
    Killer("refused-appends-fail", "S-full-failed", 60, first=8),
    Killer("elections-begin", "elections-late", 20),
    Killer("elections-begin", "R-put-off", 20, first=1),
    Killer("silent-leaders-are-left", "K19", 20),
    Killer("snapshots-stay-while-read", "K27-pinned", 60, first=264),
    Killer("partial-snapshots-go", "R28-partial", 60, first=14),
    Killer("requests-are-answered", "K18-lost", 60, first=67),
    Killer("requests-are-answered", "R4-core", 60, first=33),
    Killer("one-uncommitted-voter-set", "R4-uncommitted", 60, first=99),
    Killer("new-voters-keep-up", "R-caught-up-anew", 60, first=477),
    Killer("leader-told-late", "R23-told", 60, first=94),
    Killer("cut-opens-end-alike", "K31-alarm", 60, first=34),
    Killer("cut-opens-end-alike", "K31-hole", 60, first=34),
    Killer("cut-opens-end-alike", "K31-inside", 60, first=358),
    Killer("cut-opens-end-alike", "K31-durable", 60, first=34),
    Killer("disk-damage-is-found", "K31-hidden", 60, first=81),
    Killer("log-start-is-covered", "K31-nothing-left", 60, first=165),
    Killer("losses-are-true", "R14-crc", 60, first=81),
    Killer("disk-damage-is-found", "R17-unreadable", 60, first=93),
    Killer("quarantine", "R17-unread-mark", 60, first=51),
    Killer("quarantine", "R17-lower-mark", 60, first=50),
    Killer("disk-damage-is-found", "R17-early-epochs", 60, first=30000431),
    Killer("durable-records-are-kept", "R17-unread-epochs", 60, first=31000438),
    Killer("failed-reads-lose-nothing", "R17-unread-log", 60, first=33001572),
    Killer("snapshot-is-replay", "R28-unverified", 60, first=2),
    Killer("named-snapshots-are-followed", "R18-diverging", 20, first=110927),
    Killer("named-snapshots-are-followed", "R18-named-again", 20, first=32000005),
)
"""Each invariant at least once."""


class KillerRun(NamedTuple):
    """What came of a killer.

    Attributes:
        exit_code: 1 if the invariant has found the bug.
        printed: by the run.
    """

    exit_code: int
    printed: str


def run_killer(killer: Killer) -> KillerRun:
    """Plant a bug in a process of its own, and run seeds until the invariant finds it.

    The process is a fork of this one: to import the simulator anew takes as long as two schedules.

    Raises:
        BrokenProcessPool: the process has died.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(_run_here, killer).result()


def _run_here(killer: Killer) -> KillerRun:
    seeds = f"{killer.first}..{killer.first + killer.seeds}"
    arguments = ["--processes", "1", "--seeds", seeds, "--plant", killer.bug, "--until", killer.invariant]
    if not killer.is_aimed:
        swap(schedule, "with_aimed_faults", lambda _: lambda plan, _: plan)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exit_code = run.main(arguments)
    return KillerRun(exit_code, printed.getvalue())
