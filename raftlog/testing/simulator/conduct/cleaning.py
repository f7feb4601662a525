# SPDX-License-Identifier: Apache-2.0
"""Whether a replica deletes the snapshots that it need not keep, and rests if it could delete none."""

from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check

CLEANING_MS: Final = 25_000
"""A log is cleaned every 2 s; not while a replica or a state machine reads what would go, which takes some seconds."""


class CleaningCheck:
    """The snapshots of one process.

    Args:
        ledger: of its directory.
        is_kept: whether the retention keeps older snapshots.
        is_slow: whether some syncs take fifty times as long.
        pause_ms: for how long a cleaning that has deleted nothing is the last.
    """

    def __init__(self, ledger: Ledger, *, is_kept: bool, is_slow: bool, pause_ms: int) -> None:
        self._ledger = ledger
        self._pause_ms = pause_ms
        self._last_cleaning: tuple[tuple[OffsetAndEpoch, ...], int] | None = None
        self._is_checked = not is_kept and not is_slow
        self._oldest: OffsetAndEpoch | None = None
        self._since_ms = 0

    def check(self, core_ms: int, *, is_full: bool) -> None:
        """Check that the oldest of several snapshots is not the same for too long.

        Args:
            core_ms: the present time by the clock of the process.
            is_full: whether the disk has no room: it refuses a cleaning, which writes before it deletes.
        """
        snapshots = self._ledger.snapshots
        oldest = snapshots[0] if self._is_checked and len(snapshots) > 1 else None
        if oldest is None or oldest != self._oldest or self._ledger.is_quarantined or is_full:
            self._oldest, self._since_ms = oldest, core_ms
            return
        is_due = core_ms - self._since_ms > CLEANING_MS
        check(not is_due, "logs-are-cleaned", "{}: {} since {}", self._ledger.key, snapshots, self._since_ms)

    def began(self, core_ms: int) -> None:
        """Check that a cleaning that begins is not the next after one that has deleted nothing.

        Args:
            core_ms: the time that the core was told last.
        """
        oldest, last = self._ledger.snapshots[:1], self._last_cleaning
        is_next = last is not None and last[0] == oldest and core_ms - last[1] < self._pause_ms
        check(not is_next, "cleaning-pauses", "{}: {} at {}, after {}", self._ledger.key, oldest, core_ms, last)
        self._last_cleaning = oldest, core_ms
