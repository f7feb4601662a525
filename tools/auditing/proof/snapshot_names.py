# SPDX-License-Identifier: Apache-2.0
"""Which snapshots do not have the name that they were written under: the end in a name proves what was committed.

A name is no part of the bytes, and no CRC covers it. Its epoch is that of the snapshot's batches, and is checked where
these are read. Its end offset is nowhere inside; but the header has the timestamp of the last record that the snapshot
contains. An epoch has one leader, and so one timestamp per offset, in whatever log of one lineage. Two facts are
certain:

- the record before the end has another timestamp. One exception: a snapshot that ends where a transaction begins has
  the timestamp of the batch after its end;
- another snapshot has the same bytes, and a record confirms that one's name.

Others are only an order: what the epoch has before the end is later, what it has from the end on is earlier, or a
snapshot that ends before is later. A clock that was set back, in a part that nobody has, explains it as well. Then a
name is doubted: both may be. An epoch whose own timestamps go back says nothing of this kind.

Source: RecordsSnapshotWriter, which writes all batches with the epoch of the snapshot's id and offsets from 0;
MetadataBatchLoader#loadBatch, lastContainedLogTimeMs; BatchAccumulator, the clock of the leader.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.terminal.value_text import time_text


@attrs.frozen
class NamedSnapshot:
    """A snapshot by its name, with what its bytes say.

    Attributes:
        path: of the file.
        id: by its name: the end offset, exclusive, and the epoch.
        timestamp: of the last record that it contains, in ms, by its header.
        content: a digest that is equal for the same bytes; None if it is not known.
        lineage: as for ``TimeSeen``, of the log beside it.
    """

    path: str
    id: OffsetAndEpoch
    timestamp: int
    content: tuple[int, int] | None
    lineage: str = ""


@attrs.frozen
class TimeSeen:
    """A record of a log.

    Attributes:
        epoch, offset: of the record.
        timestamp: the greatest of its batch, in ms.
        lineage: equal for logs that are known to have the same records of this epoch; times of others say nothing.
    """

    epoch: int
    offset: int
    timestamp: int
    lineage: str = ""


@attrs.frozen
class NameFault:
    """What contradicts the name of a snapshot.

    Attributes:
        reason: in words.
        is_certain: whether the name is wrong; if not, a clock that was set back may explain it.
        proves: whether the end in the name is believed all the same: of two snapshots that contradict each other, the
            lower end says less.
    """

    reason: str
    is_certain: bool = True
    proves: bool = False


def name_faults_of(snapshots: Sequence[NamedSnapshot], times: Iterable[TimeSeen]) -> dict[str, NameFault]:
    """Return what contradicts the names of snapshots, by path.

    Args:
        snapshots: of the replicas of one log; those whose batches have the epoch of their name.
        times: of sound batches in the logs of these replicas, in any order. A timestamp below 0 is unknown.
    """
    known = sorted(
        {each for each in times if each.timestamp >= 0},
        key=lambda each: (each.epoch, each.lineage, each.offset, each.timestamp),
    )
    groups = itertools.groupby(known, key=lambda each: (each.epoch, each.lineage))
    starts = {(each.offset, each.timestamp) for each in known}
    clocks = {key: _Clock(list(seen), starts) for key, seen in groups}
    found: dict[str, NameFault] = {}
    for epoch in sorted({each.id.epoch for each in snapshots}):
        mine = [each for each in snapshots if each.id.epoch == epoch and each.id.offset > 0 and each.timestamp >= 0]
        found |= _faults_of_epoch(sorted(mine, key=lambda each: (each.id, each.path)), clocks)
    return found


class _Clock:
    """The timestamps of one epoch, in one lineage.

    Args:
        seen: by ascending offset.
        anywhere: offsets and timestamps of all records that are known, of whatever epoch.
    """

    def __init__(self, seen: Sequence[TimeSeen], anywhere: set[tuple[int, int]]) -> None:
        self._seen = seen
        self._anywhere = anywhere
        self._known = {offset for offset, _ in anywhere}
        self._offsets = [each.offset for each in seen]
        self.is_steady = all(one.timestamp <= other.timestamp for one, other in itertools.pairwise(seen))

    def is_confirmed(self, snapshot: NamedSnapshot) -> bool:
        """Whether the record before the end has the timestamp, or the batch after it has, and that before is here."""
        last = self._at_end(snapshot)
        return bool(last) and (_has_time(snapshot, last) or self._is_of_batch_after(snapshot))

    def against(self, snapshot: NamedSnapshot) -> NameFault | None:
        """Say what contradicts a name; None if nothing does."""
        if self.is_confirmed(snapshot) or self._is_of_batch_after(snapshot):
            return None
        last, end_offset = self._at_end(snapshot), snapshot.id.offset
        if last:
            reason = f"{_text(snapshot)}, but the record before its end is {_seen_text(last[0])}"
            if end_offset in self._known or snapshot.timestamp < last[0].timestamp:
                return NameFault(reason)
            return NameFault(f"{reason}: it was renamed, or the batch at its end, which is not here, has that", False)
        return self._against_order(snapshot) if self.is_steady else None

    def _against_order(self, snapshot: NamedSnapshot) -> NameFault | None:
        end_offset = snapshot.id.offset
        index = bisect.bisect_left(self._offsets, end_offset)
        for before in self._seen[:index][-1:]:
            if before.timestamp > snapshot.timestamp:
                reason = f"{_text(snapshot)}, but before its end is {_seen_text(before)}"
                return NameFault(f"{reason}{_or_clock(before.offset, end_offset)}", False)
        for after in self._seen[index : index + 1]:
            if after.timestamp < snapshot.timestamp:
                reason = f"{_text(snapshot)}, but after its end is {_seen_text(after)}"
                return NameFault(f"{reason}{_or_clock(end_offset - 1, after.offset)}", False)
        return None

    def _at_end(self, snapshot: NamedSnapshot) -> Sequence[TimeSeen]:
        """Return the records before the end of a snapshot; more than one only if replicas differ."""
        last = snapshot.id.offset - 1
        return self._seen[bisect.bisect_left(self._offsets, last) : bisect.bisect_right(self._offsets, last)]

    def _is_of_batch_after(self, snapshot: NamedSnapshot) -> bool:
        return (snapshot.id.offset, snapshot.timestamp) in self._anywhere


_NO_CLOCK: Final = _Clock((), set())


def ms_text(timestamp: int) -> str:
    """Return a time in ms, and what that is in UTC."""
    return f"{timestamp} ({time_text(timestamp)})"


def _text(snapshot: NamedSnapshot) -> str:
    return f"its last contained timestamp is {ms_text(snapshot.timestamp)}"


def _seen_text(seen: TimeSeen) -> str:
    return f"offset {seen.offset} of epoch {seen.epoch} with timestamp {ms_text(seen.timestamp)}"


def _or_clock(start: int, end: int) -> str:
    return f": it was renamed, or a clock was set back between the offsets {start} and {end}"


def _has_time(snapshot: NamedSnapshot, last: Iterable[TimeSeen]) -> bool:
    return any(each.timestamp == snapshot.timestamp for each in last)


def _faults_of_epoch(
    snapshots: Sequence[NamedSnapshot], clocks: Mapping[tuple[int, str], _Clock]
) -> Mapping[str, NameFault]:
    """Judge the snapshots of one epoch, by ascending end."""
    found: dict[str, NameFault] = {}
    confirmed: set[str] = set()
    for each in snapshots:
        clock = clocks.get((each.id.epoch, each.lineage), _NO_CLOCK)
        fault = clock.against(each)
        if fault is not None:
            found[each.path] = fault
        elif clock.is_confirmed(each):
            confirmed.add(each.path)
    sure = {(each.id, each.content) for each in snapshots if each.path in confirmed and each.content is not None}
    confirmed |= {each.path for each in snapshots if (each.id, each.content) in sure and each.path not in found}
    left = [each for each in snapshots if each.path not in found or not found[each.path].is_certain]
    for one, other in _pairs(left, confirmed):
        if one.id == other.id:
            continue
        clock = clocks.get((one.id.epoch, one.lineage), _NO_CLOCK)
        for path, fault in _faults_of_pair(one, other, clock, confirmed):
            _add(found, path, fault)
    return found


def _pairs(snapshots: Sequence[NamedSnapshot], confirmed: set[str]) -> Iterator[tuple[NamedSnapshot, NamedSnapshot]]:
    """Yield the pairs of which not both are confirmed, as most are, in their order."""
    unsure = [place for place, each in enumerate(snapshots) if each.path not in confirmed]
    for place, one in enumerate(snapshots):
        if one.path in confirmed:
            yield from ((one, snapshots[other]) for other in unsure[bisect.bisect_right(unsure, place) :])
        else:
            yield from ((one, other) for other in snapshots[place + 1 :])


def _add(found: dict[str, NameFault], path: str, fault: NameFault) -> None:
    """Add a fault, if it says more than what is known."""
    before = found.get(path)
    if before is None or (before.is_certain, not before.proves) < (fault.is_certain, not fault.proves):
        found[path] = fault


def _faults_of_pair(
    one: NamedSnapshot, other: NamedSnapshot, clock: _Clock, confirmed: set[str]
) -> Iterable[tuple[str, NameFault]]:
    """Yield what is wrong with two snapshots, of which the first ends first, and of which not both are confirmed."""
    are_same = one.content is not None and one.content == other.content
    if are_same and {one.path, other.path} & confirmed:
        wrong, right = (one, other) if other.path in confirmed else (other, one)
        yield wrong.path, NameFault(f"it has the bytes of {right.path}, whose name a record confirms")
        return
    is_late = one.lineage == other.lineage and clock.is_steady and one.timestamp > other.timestamp
    if not (are_same or is_late):
        return
    for each, rival in ((one, other), (other, one)):
        reason = f"it has the bytes of {rival.path}" if are_same else _order_text(each, rival, one, other)
        if each.path not in confirmed:
            yield each.path, NameFault(reason, False, proves=each is one)


def _order_text(each: NamedSnapshot, rival: NamedSnapshot, one: NamedSnapshot, other: NamedSnapshot) -> str:
    times = f"{_text(each)}, and that of {rival.path} is {ms_text(rival.timestamp)}"
    return f"{times}{_or_clock(one.id.offset - 1, other.id.offset)}"
