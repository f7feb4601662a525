# SPDX-License-Identifier: Apache-2.0
"""Leader epochs by example: what Kafka was seen to answer."""

from collections.abc import Mapping

import pytest

from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from tests.offset_notation import offset_and_epoch


def epochs_of(start_offsets: Mapping[int, int]) -> LeaderEpochs:
    """Return the epochs of a log, by the start offset of each epoch."""
    return LeaderEpochs(EpochEntry(epoch, start_offset) for epoch, start_offset in start_offsets.items())


def start_offsets(known: LeaderEpochs) -> dict[int, int]:
    """Return the start offset of each epoch."""
    return {entry.epoch: entry.start_offset for entry in known.entries}


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, None), (0, "0@0"), (2, "0@2"), (3, "48@3"), (4, "48@3"), (5, "50@5"), (6, None)],
)
def test_where_epochs_end(epoch: int, end: str | None) -> None:
    """An epoch ends where the next one starts, and the last one at the log end; before the first all are empty."""
    found = epochs_of({3: 0, 5: 48}).end_offset_for(epoch, log_end_offset=50)
    assert found == (None if end is None else offset_and_epoch(end))


def test_no_epochs_know_nothing() -> None:
    """No epoch, no end, nothing to truncate."""
    known = LeaderEpochs()
    assert (known.latest_epoch, known.earliest_entry, known.previous_epoch(), known.next_epoch(0)) == (None,) * 4
    assert known.end_offset_for(0, 10) is None
    assert known.epoch_for_offset(0) is None
    assert known.truncated_from_end(0) is known
    assert known.truncated_from_start(100) is known


@pytest.mark.parametrize(
    ("epoch", "start_offset", "entries"),
    [
        (5, 48, {3: 24, 5: 48}),
        (5, 60, {3: 24, 5: 48}),
        (5, 40, {3: 24, 5: 40}),
        (5, 20, {5: 20}),
        (6, 50, {3: 24, 5: 48, 6: 50}),
        (6, 48, {3: 24, 6: 48}),
        (4, 50, {3: 24, 4: 50}),
        (3, 50, {3: 50}),
        (0, 0, {0: 0}),
    ],
)
def test_assigned_epochs_drop_what_contradicts_them(epoch: int, start_offset: int, entries: dict[int, int]) -> None:
    """The same epoch changes nothing; for another, entries that are not lower in epoch and start are removed first."""
    known = epochs_of({3: 24, 5: 48})
    changed = known.with_epoch(epoch, start_offset)
    assert (changed is known) == (entries == {3: 24, 5: 48})
    assert (start_offsets(changed), start_offsets(known)) == (entries, {3: 24, 5: 48})


def test_truncation_keeps_the_epoch_at_the_start() -> None:
    """Entries that start at or above the end are removed; the epoch in force at the start then starts there."""
    known = epochs_of({3: 0, 5: 48, 7: 60})
    cut = known.truncated_from_end(60)
    assert cut.truncated_from_end(60) is cut
    started = cut.truncated_from_start(24)
    assert start_offsets(started) == {3: 24, 5: 48}
    assert started.truncated_from_start(24) is started
    assert started.truncated_from_start(10) is started
    assert start_offsets(started.truncated_from_start(48)) == {5: 48}
    assert start_offsets(known) == {3: 0, 5: 48, 7: 60}


def test_neighbours_and_ends() -> None:
    """The latest, the earliest, and those beside an epoch that need not be there itself."""
    known = epochs_of({3: 24, 5: 48})
    assert (known.latest_epoch, known.earliest_entry) == (5, EpochEntry(3, 24))
    previous = {None: 3, 3: None, 4: 3, 5: 3, 9: 5}
    assert {epoch: known.previous_epoch(epoch) for epoch in previous} == previous
    following = {2: 3, 3: 5, 4: 5, 5: None}
    assert {epoch: known.next_epoch(epoch) for epoch in following} == following
    at_offset = {23: None, 24: 3, 47: 3, 48: 5, 2**62: 5}
    assert {offset: known.epoch_for_offset(offset) for offset in at_offset} == at_offset


@pytest.mark.parametrize("entries", [[(3, 5), (3, 6)], [(3, 5), (4, 5)], [(4, 5), (3, 6)], [(-1, 0)], [(0, -1)]])
def test_entries_that_do_not_grow_are_refused(entries: list[tuple[int, int]]) -> None:
    """Epochs and starts grow, from 0 on."""
    with pytest.raises(ValueError, match="strictly increasing"):
        LeaderEpochs(EpochEntry(*entry) for entry in entries)


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_nothing_negative_is_assigned(epoch: int, start_offset: int) -> None:
    """It is refused, and changes nothing."""
    known = epochs_of({3: 24})
    with pytest.raises(ValueError, match="not an epoch"):
        known.with_epoch(epoch, start_offset)
    assert start_offsets(known) == {3: 24}


def test_many_epochs_at_once_are_those_one_by_one() -> None:
    """Entries that are given together have the outcome of each of them in turn; none changes nothing."""
    entries = [EpochEntry(6, 50), EpochEntry(6, 55), EpochEntry(4, 52), EpochEntry(9, 60)]
    known = epochs_of({3: 24, 5: 48})
    one_by_one = known
    for entry in entries:
        one_by_one = one_by_one.with_epoch(entry.epoch, entry.start_offset)
    assert known.with_epochs(entries) == one_by_one == epochs_of({3: 24, 4: 52, 9: 60})
    assert known.with_epochs([]) is known
