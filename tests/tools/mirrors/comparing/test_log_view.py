# SPDX-License-Identifier: Apache-2.0
"""What is asked of a log's sums has the answers that its records give one by one."""

import random
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DivergedLogError
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES, LogSums, SummedBlocks, sum_rows, unknown_blocks
from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.rows import DigestRows, Int64s
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, rows_of
from tests.tools.mirrors.comparing.summed_logs import sums_by_reading

SEEDS = st.integers(0, 1 << 32)
STEPS = (1, 1, 1, 1, 2, 3, 1 << 20)


def made(chance: random.Random, *, is_sound: bool = False) -> MemoryLog:
    """A log with aborted and unreadable records, and offsets without any; at times far apart."""
    entries, offset = [], chance.randrange(3)
    start = offset
    for _ in range(chance.randrange(30)):
        content = chance.choice([*range(3), UNREADABLE][: 3 if is_sound else None])
        entries.append(Entry(offset, content, not is_sound and content >= 0 and chance.random() < 0.3))
        offset += chance.choice(STEPS)
    return MemoryLog(entries, start, offset, chance.randrange(1, 9))


def offsets_of(*numbers: int) -> Int64s:
    """Some offsets as a column."""
    return np.array(numbers, np.int64)


def some_offsets(chance: random.Random, log: MemoryLog) -> list[int]:
    """Offsets of records, beside them, and of none."""
    there = [each.offset for each in log.entries] or [0]
    return sorted({max(0, chance.choice(there) + chance.randrange(-1, 2)) for _ in range(6)} | {log.end_offset})


@attrs.frozen
class Naive:
    """The same questions, asked of the records."""

    entries: Sequence[Entry]

    def between(self, start: int, end: int) -> list[Entry]:
        return [each for each in self.entries if start <= each.offset < end]


def viewed(log: MemoryLog, chance: random.Random, *, committed: bool) -> tuple[SummedView, Naive]:
    """A log by its sums, with edges somewhere, and by its records."""
    view = SummedView(log, sums_by_reading(log, offsets_of(*some_offsets(chance, log))), committed=committed)
    return view, Naive([each for each in log.entries if not (committed and each.is_aborted)])


@given(SEEDS, st.booleans())
def test_places_are_those_of_the_records(seed: int, committed: bool) -> None:
    """Counts, ranks, offsets by rank, and whether there is a record: at, beside and between edges."""
    chance = random.Random(seed)
    log = made(chance)
    view, naive = viewed(log, chance, committed=committed)
    offsets = some_offsets(chance, log)
    assert view.is_committed == (committed and log.has_aborted)
    assert view.have(offsets_of(*offsets)).tolist() == [bool(naive.between(each, each + 1)) for each in offsets]
    assert [view.offset_at(rank) for rank in range(len(naive.entries))] == [each.offset for each in naive.entries]
    for start in offsets:
        for end in offsets:
            inside = naive.between(start, end)
            place = OffsetRange(start, end)
            assert view.count(place) == len(inside)
            if start <= end:
                assert view.offset_after(place, len(inside)) == end
            for number, each in enumerate(inside):
                assert view.offset_after(place, number) == each.offset


@given(SEEDS, st.booleans())
def test_runs_are_equal_if_their_records_are(seed: int, committed: bool) -> None:
    """Any run of one log and any of another one, but for unknown records, which equal nothing."""
    chance = random.Random(seed)
    view, naive = viewed(made(chance), chance, committed=committed)
    other, naive_other = viewed(made(chance), chance, committed=False)
    ours, theirs = ([each.content for each in log.entries] for log in (naive, naive_other))
    for _ in range(10):
        rank, other_rank = chance.randrange(len(ours) + 1), chance.randrange(len(theirs) + 1)
        count = chance.randrange(min(len(ours) - rank, len(theirs) - other_rank, 3) + 1)
        left, right = ours[rank : rank + count], theirs[other_rank : other_rank + count]
        assert view.equals(rank, other, other_rank, count) == (left == right and UNREADABLE not in left)


@given(SEEDS)
def test_windows_are_equal_if_their_records_are(seed: int) -> None:
    """Windows of a log, and those of one that has other offsets, and some records otherwise."""
    chance = random.Random(seed)
    log = made(chance, is_sound=True)
    moved = [attrs.evolve(each, offset=number) for number, each in enumerate(log.entries)]
    for _ in range(chance.randrange(3) if moved else 0):
        number = chance.randrange(len(moved))
        moved[number] = attrs.evolve(moved[number], content=chance.choice([0, 1, UNREADABLE]))
    other = MemoryLog(moved, 0, len(moved), chance.randrange(1, 9))
    numbers = sorted(chance.sample(range(len(moved)), min(len(moved), chance.randrange(1, 6)))) or [0]
    bounds = [*(log.entries[each].offset for each in numbers if moved), log.end_offset]
    other_bounds = [*(numbers if moved else ()), len(moved)]
    view, naive = viewed(log, chance, committed=False)
    theirs, naive_theirs = viewed(other, chance, committed=False)
    found, counts = view.equal_windows(offsets_of(*bounds), theirs, offsets_of(*other_bounds))
    for number, is_equal in enumerate(found.tolist()):
        left = [each.content for each in naive.between(*bounds[number : number + 2])]
        right = [each.content for each in naive_theirs.between(*other_bounds[number : number + 2])]
        assert is_equal == (left == right)
        assert counts[number] == len(left)


@given(SEEDS, st.booleans())
def test_contents_are_found_where_they_are_first(seed: int, committed: bool) -> None:
    """The first record with a content before an offset; none for one that no record has."""
    chance = random.Random(seed)
    log = made(chance)
    view, naive = viewed(log, chance, committed=committed)
    contents = [*range(4)]
    digests = list(rows_of([Entry(0, each) for each in contents]).digests)
    for end in some_offsets(chance, log):
        inside = naive.between(0, end)
        expected = [next((each.offset for each in inside if each.content == content), None) for content in contents]
        assert view.first_offsets(digests, end) == expected


@attrs.frozen
class ShortReads:
    """A log of which few offsets may be read at once."""

    log: MemoryLog

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        assert end - start < 1 << 20
        return self.log.read(start, end)


@pytest.mark.parametrize("is_asked_in_the_gap", [True, False])
def test_a_long_gap_is_not_read_through(is_asked_in_the_gap: bool) -> None:
    """Who looks for records reads what is before a gap and after it."""
    gap_end = 1 << 45
    entries = [Entry(each, each % 1000) for each in (*range(10), gap_end + 23)]
    before, after = (sum_rows(rows_of(some), NO_RANGES, offsets_of()) for some in (entries[:10], entries[10:]))
    gap = unknown_blocks((offsets_of(10), offsets_of(gap_end + 23)), offsets_of())
    log = MemoryLog(entries, 0, gap_end + 24)
    view = SummedView(ShortReads(log), LogSums(SummedBlocks.joined([before, gap, after])))
    end = gap_end if is_asked_in_the_gap else gap_end + 24
    digests = list(rows_of([Entry(0, content) for content in (4, entries[10].content, 11)]).digests)
    assert view.first_offsets(digests, end) == [4, None if is_asked_in_the_gap else gap_end + 23, None]


def test_what_no_block_needs_is_not_read_again() -> None:
    """Ranks of dense blocks and sums between edges come from the blocks alone, also where many are unknown."""
    entries = [Entry(each, each % 7) for each in range(100)]
    edges = offsets_of(0, 30, 60, 100)
    sums = sums_by_reading(MemoryLog(entries, 0, 100), edges)
    views = [SummedView(Unreadable(0, 100), sums) for _ in range(2)]
    found, counts = views[0].equal_windows(edges, views[1], edges)
    assert (found.tolist(), counts.tolist()) == ([True] * 3, [30, 30, 40])
    assert (views[0].rank(17), views[0].offset_at(17)) == (17, 17)


@attrs.frozen
class Unreadable:
    """A log that must not be read."""

    start_offset: int
    end_offset: int
    has_aborted: bool = False

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        raise AssertionError(f"{start} to {end} is read")


def test_a_log_that_changes_is_refused() -> None:
    """Records that are gone since a log was summed are told with their place."""
    entries = [Entry(each, each) for each in range(0, 20, 2)]
    sums: LogSums = sums_by_reading(MemoryLog(entries, 0, 20, at_once=10), offsets_of())
    view = SummedView(MemoryLog(entries[:-1], 0, 20), sums)
    with pytest.raises(DivergedLogError, match=r"from offset 0 to 19 \(exclusive\) have changed"):
        view.rank(3)
