# SPDX-License-Identifier: Apache-2.0
"""The exact overlap predicate against brute force, and Kafka's guard beside it."""

import functools
import itertools
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet


@functools.cache
def voters(bits: int) -> VoterSet:
    """Make the voter set whose ids are the bits that are set."""
    ids = [index for index in range(bits.bit_length()) if bits >> index & 1]
    return VoterSet.of(VoterNode(ReplicaKey(each), Endpoints(), SupportedVersionRange(0, 1)) for each in ids)


@functools.cache
def majorities(bits: int) -> list[int]:
    """Enumerate every majority of a set of ids, both as bits: more than half of the set."""
    subsets = []
    subset = bits
    while subset:
        subsets.append(subset)
        subset = (subset - 1) & bits
    return [subset for subset in [*subsets, 0] if 2 * subset.bit_count() > bits.bit_count()]


def overlap_by_brute_force(one: int, other: int) -> bool:
    """Look at every majority of the one beside every majority of the other."""
    return all(mine & theirs for mine in majorities(one) for theirs in majorities(other))


def test_overlap_is_exact_for_every_pair_of_sets_of_up_to_8_voters() -> None:
    """For all sizes up to 8, and however many voters are common, the closed form is what all majorities say."""
    cases = 0
    for mine, theirs in itertools.product(range(9), repeat=2):
        for common in range(min(mine, theirs) + 1):
            one = (1 << mine) - 1
            other = ((1 << theirs) - 1) << (mine - common)
            assert (one & other).bit_count() == common
            assert voters(one).has_overlapping_majority(voters(other)) == overlap_by_brute_force(one, other)
            cases += 1
    assert cases == 285


def test_overlap_is_exact_for_every_pair_of_subsets_of_5_ids() -> None:
    """The same with every single pair of sets, so that nothing rests on sizes being all that matters."""
    for one, other in itertools.product(range(1 << 5), repeat=2):
        assert voters(one).has_overlapping_majority(voters(other)) == overlap_by_brute_force(one, other)


@given(st.integers(0, 255), st.integers(0, 255))
@settings(deadline=None)
def test_the_predicates_are_symmetric_and_reflexive(one: int, other: int) -> None:
    """Neither predicate minds which set came first, and no set is at odds with itself."""
    mine, theirs = voters(one), voters(other)
    assert mine.has_overlapping_majority(theirs) == theirs.has_overlapping_majority(mine)
    assert mine.passes_kafka_change_guard(theirs) == theirs.passes_kafka_change_guard(mine)
    assert mine.has_overlapping_majority(mine)
    assert mine.passes_kafka_change_guard(mine)


@given(st.integers(0, 255), st.integers(0, 7))
@settings(deadline=None)
def test_one_voter_more_or_less_always_overlaps(bits: int, index: int) -> None:
    """A change of one voter, which is all that a leader proposes, is safe by both predicates."""
    changed = voters(bits ^ 1 << index)
    assert voters(bits).has_overlapping_majority(changed)
    assert voters(bits).passes_kafka_change_guard(changed)


@pytest.mark.parametrize(
    ("one", "other", "kafka", "exact"),
    [
        ({1, 2, 3}, {1, 2, 3, 4}, True, True),
        ({1, 2, 3}, {1, 2, 4}, True, False),  # {1, 3} and {2, 4}
        ({1, 2, 3}, {1, 2, 3, 4, 5}, False, False),  # {1, 2} and {3, 4, 5}
        ({1, 2}, {3, 4}, False, False),
        ({1}, {2}, True, False),
        (set(), {1}, True, True),
        (set(), {1, 2}, False, True),  # the empty set decides nothing
        ({1, 2}, {1, 3}, True, True),  # both pairs need 1
        ({1, 2}, {1, 2, 3, 4}, False, True),  # {1, 2} meets any three of four
    ],
)
def test_kafkas_guard_is_not_safety(one: set[int], other: set[int], *, kafka: bool, exact: bool) -> None:
    """Kafka's own results, and where they are not those of the exact predicate, either way."""
    mine, theirs = (voters(sum(1 << each for each in ids)) for ids in (one, other))
    assert mine.passes_kafka_change_guard(theirs) == kafka
    assert mine.has_overlapping_majority(theirs) == exact


def test_a_new_directory_id_is_another_voter() -> None:
    """A voter whose directory id changed is common to neither predicate; one whose endpoint changed is."""

    def with_first(directory: int, port: int) -> VoterSet:
        first = VoterNode(
            ReplicaKey(1, uuid.UUID(int=directory)), Endpoints.of({"C": ("h", port)}), SupportedVersionRange(0, 1)
        )
        return VoterSet.of([first, *voters(0b1100).voters.values()])

    assert with_first(1, 1).has_overlapping_majority(with_first(1, 2))
    assert not with_first(1, 1).has_overlapping_majority(with_first(2, 1))
    assert with_first(1, 1).passes_kafka_change_guard(with_first(2, 1))
