# SPDX-License-Identifier: Apache-2.0
"""Every sequence of four voter changes over ids 1 to 4 with two directories each, against sets of pairs.

The oracle knows no formula: a voter set is a set of (id, directory) pairs, majorities are enumerated, and what is in
force at an offset is found by looking at every record of the log. A new directory id is a removal and an addition, in
two records, because one record with both could have a majority that shares no voter with one of the set before.
"""

import functools
import itertools
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import attrs
import pytest

from raftlog.voters.history import HistoryEntry
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem, voter_set_change_problems
from raftlog.voters.voter_set_history import VoterSetHistory

IDS, DIRECTORIES = (1, 2, 3, 4), (1, 2)
CHANGES = 4
FIRST_OFFSET, GAP = 3, 2
"""Where the records are: other records are before, between and after them."""

Pair = tuple[int, int]
Pairs = frozenset[Pair]


class Change(NamedTuple):
    """The records of one change: one set, or two for a new directory id."""

    name: str
    sets: tuple[Pairs, ...]


def node(pair: Pair) -> VoterNode:
    return VoterNode(ReplicaKey(pair[0], uuid.UUID(int=pair[1])), Endpoints(), SupportedVersionRange(0, 1))


@functools.cache
def voter_set(pairs: Pairs) -> VoterSet:
    return VoterSet.of(map(node, pairs))


def all_sets() -> list[Pairs]:
    """Return every set of voters: each id is absent, or there with one of the directories."""
    choices = [[None, *((each, directory) for directory in DIRECTORIES)] for each in IDS]
    sets = [frozenset(pair for pair in chosen if pair) for chosen in itertools.product(*choices)]
    return [pairs for pairs in sets if pairs]


def initial_sets() -> list[Pairs]:
    """Return one set of each size. Every other set is one of them with other names for ids and directories."""
    return [frozenset((each, 1) for each in IDS[:size]) for size in range(1, len(IDS) + 1)]


@functools.cache
def changes(pairs: Pairs) -> tuple[Change, ...]:
    """Return every change that a leader may make to a set."""
    found = []
    for pair in itertools.product(IDS, DIRECTORIES):
        ids = {each for each, _ in pairs}
        if pair[0] not in ids:
            found.append(Change(f"add {pair}", (pairs | {pair},)))
        elif pair in pairs and len(pairs) > 1:
            moved = (pair[0], 3 - pair[1])
            found.append(Change(f"remove {pair}", (pairs - {pair},)))
            found.append(Change(f"update {pair}", (pairs - {pair}, pairs - {pair} | {moved})))
    return tuple(found)


@functools.cache
def majorities(pairs: Pairs) -> tuple[Pairs, ...]:
    """Enumerate the smallest majorities; a larger one has a smallest one in it."""
    return tuple(map(frozenset, itertools.combinations(sorted(pairs), len(pairs) // 2 + 1)))


@functools.cache
def overlap(one: Pairs, other: Pairs) -> bool:
    return all(mine & theirs for mine in majorities(one) for theirs in majorities(other))


Records = tuple[tuple[int, Pairs], ...]


def in_force(records: Records, offset: int) -> VoterSet | None:
    """Look at every record up to an offset."""
    found = None
    for at, pairs in records:
        if at <= offset:
            found = voter_set(pairs)
    return found


def assert_says_what_a_scan_says(history: VoterSetHistory, records: Records, start: int, end: int) -> None:
    """Compare at every offset of [start, end), and just after it."""
    for offset in range(start, end + 1):
        assert history.value_at_or_before(offset) == in_force(records, offset)
    last = records[-1] if records else None
    assert history.last_voter_set_offset() == (last and last[0])
    assert history.last_value() == (voter_set(last[1]) if last else VoterSet())
    for high_watermark in range(start, end + 1):
        uncommitted = sum(at >= high_watermark for at, _ in records)
        newest = history.last_voter_set_offset()
        assert (newest is not None and newest >= high_watermark) == (uncommitted > 0)


@attrs.define
class Walk:
    """All sequences of changes from an initial set, as a depth-first walk over one history.

    Attributes:
        history: what is tested: it grows by additions, and is cut back by truncations.
        sequences: number of complete sequences.
    """

    history: VoterSetHistory
    sequences: int = 0

    def after(self, records: Records, left: int) -> Iterator[Records]:
        """Yield the records of each sequence of changes that begins with these."""
        if not left:
            self.sequences += 1
            yield records
            return
        for change in changes(records[-1][1]):
            longer = records
            for pairs in change.sets:
                longer = (*longer, (longer[-1][0] + GAP, pairs))
                self.history.add(longer[-1][0], voter_set(pairs))
            yield from self.after(longer, left - 1)
            self.history.truncate_new_entries(records[-1][0] + 1)
            newest = self.history.last_entry()
            assert newest is not None
            assert (newest.offset, newest.value) == (records[-1][0], voter_set(records[-1][1]))


def walk(initial: Pairs, length: int) -> tuple[Walk, Iterator[Records]]:
    """Return a walk over the sequences of so many changes, and the records of each in turn."""
    walk = Walk(history_of(((FIRST_OFFSET, initial),)))
    return walk, walk.after(((FIRST_OFFSET, initial),), length)


def history_of(records: Records) -> VoterSetHistory:
    history = VoterSetHistory(VoterSet())
    for at, pairs in records:
        history.add(at, voter_set(pairs))
    return history


def test_each_change_is_what_sets_of_pairs_say_and_overlaps() -> None:
    """For all 80 sets: which changes apply, the sets that they make, and that their majorities share a voter."""
    assert len(all_sets()) == 3 ** len(IDS) - 1
    for pairs in all_sets():
        mine = voter_set(pairs)
        for pair in itertools.product(IDS, DIRECTORIES):
            more, fewer = mine.add_voter(node(pair)), mine.remove_voter(node(pair).voter_key)
            assert more == (None if pair[0] in mine.voter_ids else voter_set(pairs | {pair}))
            is_removable = pair in pairs and len(pairs) > 1
            assert fewer == (voter_set(pairs - {pair}) if is_removable else None)
        for change in changes(pairs):
            for before, after in itertools.pairwise((pairs, *change.sets)):
                assert overlap(before, after)
                assert voter_set_change_problems(voter_set(before), voter_set(after)) == ()


def test_a_new_directory_in_one_record_is_named_if_majorities_may_be_disjoint() -> None:
    """Of all updates by one record exactly those are refused that brute force finds unsafe: of 1 and of 3 voters."""
    sizes = set()
    for pairs in all_sets():
        for each, directory in pairs:
            moved = pairs - {(each, directory)} | {(each, 3 - directory)}
            problems = voter_set_change_problems(voter_set(pairs), voter_set(moved))
            assert problems == (() if overlap(pairs, moved) else (VoterSetProblem.NO_OVERLAPPING_MAJORITY,))
            sizes |= set() if overlap(pairs, moved) else {len(pairs)}
    assert sizes == {1, 3}


def test_two_changes_of_one_set_may_have_disjoint_majorities() -> None:
    """One record at a time is not enough: two leaders may each change the set that they know.

    So a leader changes nothing before it has committed a record of its own epoch, nor while a change is uncommitted.
    With {1, 2}, one leader may add 3 and the other remove 1: {1, 3} and {2} share no voter.
    """
    found = set()
    for pairs in all_sets():
        steps = [change for change in changes(pairs) if len(change.sets) == 1]
        for one, other in itertools.combinations(steps, 2):
            if not overlap(one.sets[0], other.sets[0]):
                found.add((*sorted((one.name.split()[0], other.name.split()[0])), len(pairs)))
    assert found == {("add", "add", 2), ("add", "remove", 2), ("remove", "remove", 2), ("remove", "remove", 4)}


def check_sequences(initials: Sequence[Pairs]) -> int:
    """Check sets, history, truncation and violations along every sequence; return how many sequences there are."""
    sequences = 0
    for initial in initials:
        walked, leaves = walk(initial, CHANGES)
        for records in leaves:
            history = walked.history
            assert [(entry.offset, entry.value) for entry in history.entries()] == [
                (at, voter_set(pairs)) for at, pairs in records
            ]
            assert history.violations() == ()
        sequences += walked.sequences
    return sequences


def test_every_sequence_of_four_changes_leaves_the_history_that_a_scan_finds() -> None:
    """From one set of each size: additions and truncations give the records of the log, and no violation."""
    assert check_sequences(initial_sets()) == 14_484


@pytest.mark.volume
def test_every_sequence_of_four_changes_from_every_set() -> None:
    """The same from all 80 sets, so that nothing rests on names not mattering."""
    assert check_sequences(all_sets()) == 301_440


@pytest.mark.parametrize("length", [2, pytest.param(CHANGES, marks=pytest.mark.slow)])
def test_truncation_and_trimming_give_what_a_scan_of_the_log_gives(length: int) -> None:
    """After each sequence of changes, the log is trimmed at each offset; after two changes, also cut at each."""
    sequences = 0
    for initial in initial_sets():
        for records in walk(initial, length)[1]:
            end = records[-1][0] + GAP
            for cut in range(FIRST_OFFSET, end + 1) if length == 2 else [end]:
                check_trims(records, cut, end)
            sequences += 1
    assert sequences == {2: 236, CHANGES: 14_484}[length]


def check_trims(records: Records, cut: int, end: int) -> None:
    """Cut a history of records at an offset, and trim what is left at each start in turn."""
    kept = tuple((at, pairs) for at, pairs in records if at < cut)
    history = history_of(records)
    history.truncate_new_entries(cut)
    for start in range(FIRST_OFFSET, cut + 1):
        history.truncate_old_entries(start)
        history.check_invariants()
        oldest = max((at for at, _ in kept if at <= start), default=FIRST_OFFSET)
        assert list(history.entries()) == [HistoryEntry(at, voter_set(pairs)) for at, pairs in kept if at >= oldest]
        assert_says_what_a_scan_says(history, kept, start, end)
