# SPDX-License-Identifier: Apache-2.0
"""The epoch cache by example: what Kafka was seen to answer."""

import pytest

from raftlog.errors import InvariantViolation
from raftlog.log.epochs import LeaderEpochCache
from raftlog.offsets import EpochEntry, OffsetAndEpoch


def cache_of(*entries: tuple[int, int]) -> LeaderEpochCache:
    """Make a cache of epochs and their start offsets."""
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


def pairs(cache: LeaderEpochCache) -> list[tuple[int, int]]:
    """Return the epochs and their start offsets."""
    return [(entry.epoch, entry.start_offset) for entry in cache.entries()]


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, None), (0, (0, 0)), (2, (0, 2)), (3, (48, 3)), (4, (48, 3)), (5, (50, 5)), (6, None)],
)
def test_where_epochs_end(epoch: int, end: tuple[int, int] | None) -> None:
    """Of a log to 50 with epochs 3 from 0 and 5 from 48."""
    wanted = None if end is None else OffsetAndEpoch(*end)
    assert cache_of((3, 0), (5, 48)).end_offset_for(epoch, 50) == wanted


def test_an_empty_cache_knows_nothing() -> None:
    """No epoch, no end, nothing to truncate."""
    cache = LeaderEpochCache()
    assert (cache.latest_epoch, cache.earliest_entry, cache.previous_epoch(), cache.next_epoch(0)) == (None,) * 4
    assert cache.end_offset_for(0, 10) is None
    assert cache.epoch_for_offset(0) is None
    assert not cache.truncate_from_end(0)
    assert not cache.truncate_from_start(100)
    assert not cache.clear()


@pytest.mark.parametrize(
    ("epoch", "start_offset", "entries"),
    [
        (5, 48, [(3, 24), (5, 48)]),
        (5, 60, [(3, 24), (5, 48)]),
        (5, 40, [(3, 24), (5, 40)]),
        (5, 20, [(5, 20)]),
        (6, 50, [(3, 24), (5, 48), (6, 50)]),
        (6, 48, [(3, 24), (6, 48)]),
        (4, 50, [(3, 24), (4, 50)]),
        (3, 50, [(3, 50)]),
        (0, 0, [(0, 0)]),
    ],
)
def test_assigned_epochs_drop_what_contradicts_them(
    epoch: int, start_offset: int, entries: list[tuple[int, int]]
) -> None:
    """An epoch that goes on changes nothing; otherwise what is not below in epoch and in start goes first."""
    cache = cache_of((3, 24), (5, 48))
    assert cache.assign(epoch, start_offset) == (entries != [(3, 24), (5, 48)])
    assert pairs(cache) == entries


def test_truncation_keeps_the_epoch_at_the_start() -> None:
    """What starts at or above the end goes; the epoch in force at the start starts there then."""
    cache = cache_of((3, 0), (5, 48), (7, 60))
    assert cache.truncate_from_end(60)
    assert not cache.truncate_from_end(60)
    assert cache.truncate_from_start(24)
    assert pairs(cache) == [(3, 24), (5, 48)]
    assert not cache.truncate_from_start(24)
    assert not cache.truncate_from_start(10)
    assert cache.truncate_from_start(48)
    assert pairs(cache) == [(5, 48)]
    assert cache.clear()
    assert len(cache) == 0


def test_neighbours_and_ends() -> None:
    """The latest, the earliest, and those beside an epoch that need not be there itself."""
    cache = cache_of((3, 24), (5, 48))
    assert (cache.latest_epoch, cache.earliest_entry) == (5, EpochEntry(3, 24))
    assert [cache.previous_epoch(epoch) for epoch in (None, 3, 4, 5, 9)] == [3, None, 3, 3, 5]
    assert [cache.next_epoch(epoch) for epoch in (2, 3, 4, 5)] == [3, 5, 5, None]
    assert [cache.epoch_for_offset(offset) for offset in (23, 24, 47, 48, 2**62)] == [None, 3, 3, 5, 5]


@pytest.mark.parametrize("entries", [[(3, 5), (3, 6)], [(3, 5), (4, 5)], [(4, 5), (3, 6)], [(-1, 0)], [(0, -1)]])
def test_entries_that_do_not_grow_are_refused(entries: list[tuple[int, int]]) -> None:
    """Epochs and starts grow, from 0 on."""
    with pytest.raises(ValueError, match="grow"):
        cache_of(*entries)


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_nothing_negative_is_assigned(epoch: int, start_offset: int) -> None:
    """It is refused, and changes nothing."""
    cache = cache_of((3, 24))
    with pytest.raises(ValueError, match="not an epoch"):
        cache.assign(epoch, start_offset)
    assert pairs(cache) == [(3, 24)]


def test_a_broken_cache_is_found_out() -> None:
    """The check of the invariants sees epochs that do not grow."""
    cache = cache_of((3, 24), (5, 48))
    vars(cache)["_epochs"][0] = 9
    with pytest.raises(InvariantViolation):
        cache.check_invariants()


@pytest.mark.parametrize(
    ("epochs", "starts", "latest"),
    [
        ([3, 5], [24], 5),
        ([3], [24, 48], 3),
        ([3, 5], [24, 48], 3),
        ([3, 5], [24, 48], None),
        ([], [], 5),
        ([5, 5], [24, 48], 5),
        ([3, 5], [48, 48], 5),
        ([3, 5], [48, 24], 5),
        ([-1, 5], [24, 48], 5),
        ([3, 5], [-1, 48], 5),
    ],
)
def test_what_is_no_sound_cache(epochs: list[int], starts: list[int], latest: int | None) -> None:
    """Columns of two lengths, a latest epoch that is not the last, equal or negative numbers: each is seen."""
    cache = cache_of((3, 24), (5, 48))
    cache.check_invariants()
    vars(cache).update(_epochs=epochs, _start_offsets=starts, latest_epoch=latest)
    with pytest.raises(InvariantViolation):
        cache.check_invariants()
