# SPDX-License-Identifier: Apache-2.0
"""A source and its mirror in memory, as MirrorMaker's task would have made it, and as no files are needed for."""

import random
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, Rows

UNREADABLE = -1
"""The content of a record that cannot be read."""


@attrs.frozen
class Entry:
    """A data record.

    Attributes:
        offset: of it.
        content: stands for key, value, headers and timestamp.
        is_aborted: whether its transaction was aborted.
    """

    offset: int
    content: int
    is_aborted: bool = False


@attrs.frozen
class MemoryLog:
    """A log; reads rows a few at a time."""

    entries: Sequence[Entry]
    start_offset: int
    end_offset: int
    at_once: int = 7

    @property
    def has_aborted(self) -> bool:
        return any(each.is_aborted for each in self.entries)

    def read(self, start: int, end: int) -> Iterator[Rows]:
        found = [each for each in self.entries if start <= each.offset < end]
        for first in range(0, len(found), self.at_once):
            yield rows_of(found[first : first + self.at_once])


def rows_of(entries: Sequence[Entry]) -> Rows:
    digests = np.array([(each.content % (1 << 64), each.content * 7 % (1 << 64)) for each in entries], np.uint64)
    flags = [ABORTED * each.is_aborted + UNKNOWN * (each.content == UNREADABLE) for each in entries]
    offsets = np.array([each.offset for each in entries], np.int64)
    return Rows(offsets, digests.reshape(-1, 2), np.array(flags, np.uint8))


@attrs.define
class Task:
    """Mirrors records, and writes syncs as MirrorSourceTask does.

    Attributes:
        lag_max: as offset.lag.max.
        reads_committed: whether it leaves out records of aborted transactions.
        target: what it has written.
        syncs: what it has synced.
        next_offset: of the target.
    """

    lag_max: int = 10
    reads_committed: bool = False
    target: list[Entry] = attrs.field(factory=list)
    syncs: list[Sync] = attrs.field(factory=list)
    next_offset: int = 0
    producer_id: int = 0
    _last: Sync | None = None
    _upstream: int = -1

    def restart(self) -> None:
        """Go on as another task."""
        self.producer_id += 1
        self._last = None

    def mirror(self, entries: Sequence[Entry]) -> None:
        """Mirror records."""
        for each in entries:
            if each.is_aborted and self.reads_committed:
                continue
            self.sync(each.offset)
            self.target.append(Entry(self.next_offset, each.content))
            self.next_offset += 1

    def sync(self, upstream: int) -> None:
        """Sync, if it is time to."""
        last, downstream = self._last, self.next_offset
        is_due = last is None or downstream - (last.downstream + 1) >= self.lag_max or upstream != self._upstream + 1
        self._upstream = upstream
        if is_due:
            self._last = Sync(upstream, downstream, self.producer_id, len(self.syncs))
            self.syncs.append(self._last)

    def log(self) -> MemoryLog:
        """Return the target."""
        return MemoryLog(tuple(self.target), 0, self.next_offset)


def made_source(chance: random.Random, size: int, contents: int, *, start: int = 0) -> MemoryLog:
    """Return a log with control records between, and aborted transactions."""
    entries = []
    offset = start
    while len(entries) < size:
        is_aborted = chance.random() < 0.1
        run = chance.randrange(1, 6)
        for _ in range(run):
            entries.append(Entry(offset, chance.randrange(contents), is_aborted))
            offset += 1
        if is_aborted or chance.random() < 0.1:
            offset += 1  # A control record.
    return MemoryLog(tuple(entries), start, offset)
