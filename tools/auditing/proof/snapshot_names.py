# SPDX-License-Identifier: Apache-2.0
"""Which snapshots do not have the name that they were written under: the end in a name proves what was committed.

A name is no part of the bytes, and no CRC covers it. Its epoch is that of the snapshot's batches, and is checked where
these are read. Its end offset is nowhere inside; but the header has the timestamp of the last record that the snapshot
contains. An epoch has one leader, and so one clock and one record per offset, on whatever replica:

- the record before the end has that timestamp, if a log still has it. That settles it: the name is right or wrong;
- otherwise, what the epoch has before the end is not later, and what it has from the end on is not earlier. A clock
  that was set back breaks that, so an epoch whose own timestamps go back says nothing;
- a snapshot of the same epoch that ends before is not later, and one of the same bytes has the same end. Of two that
  break this, the one that ends first proves what it says, whichever has the wrong name.

Source: RecordsSnapshotWriter, which writes all batches with the epoch of the snapshot's id and offsets from 0;
MetadataLoader, MetadataProvenance#lastContainedLogTimeMs; BatchAccumulator, the clock of the leader.
"""

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch


@attrs.frozen
class NamedSnapshot:
    """A snapshot by its name, with what its bytes say.

    Attributes:
        path: of the file.
        id: by its name: the end offset, exclusive, and the epoch.
        timestamp: of the last record that it contains, in ms, by its header.
        content: a digest that is equal for the same bytes; None if it is not known.
    """

    path: str
    id: OffsetAndEpoch
    timestamp: int
    content: tuple[int, int] | None


@attrs.frozen(order=True)
class TimeSeen:
    """A record of a log.

    Attributes:
        epoch, offset: of the record.
        timestamp: the greatest of its batch, in ms.
    """

    epoch: int
    offset: int
    timestamp: int


def wrong_names(snapshots: Sequence[NamedSnapshot], times: Iterable[TimeSeen]) -> dict[str, str]:
    """Return the snapshots whose names something contradicts, by path, with what does.

    Args:
        snapshots: of the replicas of one log; those whose batches have the epoch of their name.
        times: of sound batches in the logs of these replicas, in any order. A timestamp below 0 is unknown.
    """
    known = sorted({each for each in times if each.timestamp >= 0})
    epochs = {epoch: _Clock(list(seen)) for epoch, seen in itertools.groupby(known, key=lambda each: each.epoch)}
    found: dict[str, str] = {}
    for epoch in sorted({each.id.epoch for each in snapshots}):
        mine = [each for each in snapshots if each.id.epoch == epoch and each.id.offset > 0 and each.timestamp >= 0]
        found |= _wrong_of_epoch(sorted(mine, key=lambda each: (each.id, each.path)), epochs.get(epoch, _NO_CLOCK))
    return found


class _Clock:
    """The timestamps of one epoch.

    Args:
        seen: by ascending offset.
    """

    def __init__(self, seen: Sequence[TimeSeen]) -> None:
        self._seen = seen
        self._offsets = [each.offset for each in seen]
        self.is_steady = all(one.timestamp <= other.timestamp for one, other in itertools.pairwise(seen))

    def at_end(self, snapshot: NamedSnapshot) -> Sequence[TimeSeen]:
        """Return the records before the end of a snapshot; more than one only if replicas differ."""
        last = snapshot.id.offset - 1
        return self._seen[bisect.bisect_left(self._offsets, last) : bisect.bisect_right(self._offsets, last)]

    def against(self, snapshot: NamedSnapshot) -> str | None:
        """Say what contradicts a name; None if nothing does."""
        last = self.at_end(snapshot)
        if last:
            return None if _is_confirmed(snapshot, last) else f"the record at offset {_text(last[0])}"
        if not self.is_steady:
            return None
        index = bisect.bisect_left(self._offsets, snapshot.id.offset)
        for before in self._seen[:index][-1:]:
            if before.timestamp > snapshot.timestamp:
                return f"offset {_text(before)}, before its end"
        for after in self._seen[index : index + 1]:
            if after.timestamp < snapshot.timestamp:
                return f"offset {_text(after)}, after its end"
        return None


_NO_CLOCK: Final = _Clock(())


def _text(seen: TimeSeen) -> str:
    return f"{seen.offset} of epoch {seen.epoch} with timestamp {seen.timestamp}"


def _is_confirmed(snapshot: NamedSnapshot, last: Iterable[TimeSeen]) -> bool:
    return any(each.timestamp == snapshot.timestamp for each in last)


def _wrong_of_epoch(snapshots: Sequence[NamedSnapshot], clock: _Clock) -> Mapping[str, str]:
    """Judge the snapshots of one epoch, by ascending end."""
    found: dict[str, str] = {}
    for each in snapshots:
        reason = clock.against(each)
        if reason is not None:
            found[each.path] = f"its last contained timestamp, {each.timestamp}, is contradicted by {reason}"
    left = [each for each in snapshots if each.path not in found]
    confirmed = {each.path for each in left if _is_confirmed(each, clock.at_end(each))}
    for one, other in itertools.combinations(left, 2):
        reason = _disagreement(one, other, clock)
        if reason is not None and not {one.path, other.path} <= confirmed:
            wrong, right = (one, other) if other.path in confirmed else (other, one)
            found.setdefault(wrong.path, f"{reason} {right.path}")
    return found


def _disagreement(one: NamedSnapshot, other: NamedSnapshot, clock: _Clock) -> str | None:
    """Say why two snapshots, of which the first ends first, cannot both have their names; None if they can."""
    if one.id == other.id:
        return None
    if one.content is not None and one.content == other.content:
        return "it has the bytes of"
    if clock.is_steady and one.timestamp > other.timestamp:
        return "its last contained timestamp does not fit its end and that of"
    return None
