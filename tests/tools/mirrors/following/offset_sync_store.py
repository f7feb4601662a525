# SPDX-License-Identifier: Apache-2.0
"""What Kafka's store of offset syncs gives: the oracle for checkpoints.

Source: OffsetSyncStore of Kafka 4.3: #updateSyncArray, #lookupLatestSync and #translateDownstream.
"""

from collections.abc import Iterable
from typing import Final, Self

import attrs

from raftlog.tools.mirrors.comparing.lifetimes import Sync

_SLOTS: Final = 64
_INT64_END: Final = 1 << 63


@attrs.define
class ThinnedSyncs:
    """The syncs of one partition that are held: the newest first, and then each as far apart as its age allows.

    Attributes:
        held: the slots; a sync may be in several. Empty before the first sync.
        keeps_last_only: whether the store still loads, without older checkpoints to go by.
    """

    held: list[Sync] = attrs.field(factory=list)
    keeps_last_only: bool = False

    @classmethod
    def loaded(cls, syncs: Iterable[Sync], *, has_checkpoints: bool) -> Self:
        """Return the store of a task that starts when these syncs are there."""
        store = cls(keeps_last_only=not has_checkpoints)
        for each in syncs:
            store.add(each)
        store.keeps_last_only = False
        return store

    def add(self, sync: Sync) -> None:
        """Take the next sync of the topic."""
        if not self.held or self.keeps_last_only or sync.upstream < self.held[0].upstream:
            self.held = [sync] * _SLOTS
            return
        former, held = list(self.held), self.held
        replacement, at = sync, 0
        held[0] = sync
        for current in range(1, _SLOTS):
            replacement, at = self._replacement(former, current, at, replacement)
            if _is_recent(held[current - 1], held[current], current - 1, current):
                return
            held[current] = replacement

    def _replacement(self, former: list[Sync], current: int, at: int, replacement: Sync) -> tuple[Sync, int]:
        """Return the sync for a slot, and the next former slot to look at."""
        held, previous, after = self.held, current - 1, current + 1
        while True:
            old = former[at]
            is_apart = _is_apart(held[previous], old, previous)
            fits_next = after >= _SLOTS or _is_apart(old, held[after], current)
            fits = _is_recent(held[previous], old, previous, current) and is_apart and fits_next
            is_skipped = (at + 1 < _SLOTS and old is former[at + 1]) or not is_apart
            replacement = old if fits else replacement
            at += fits or is_skipped
            if not (at < current and is_skipped):
                return replacement, at

    def translated(self, upstream: int) -> int | None:
        """Return the downstream offset for one of the source; -1 if it is before all syncs, None if there are none."""
        for each in self.held:
            if each.upstream <= upstream:
                return each.downstream + (each.upstream != upstream)
        return -1 if self.held else None


def _is_recent(newer: Sync, older: Sync, slot: int, older_slot: int) -> bool:
    bound = older.upstream + (1 << older_slot) - (1 << slot)
    return newer is older or bound >= _INT64_END or newer.upstream <= bound


def _is_apart(newer: Sync, older: Sync, slot: int) -> bool:
    bound = older.upstream + (1 << max(slot - 2, 0))
    return newer is older or (bound < _INT64_END and newer.upstream >= bound)
