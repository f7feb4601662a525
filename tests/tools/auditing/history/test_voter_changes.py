# SPDX-License-Identifier: Apache-2.0
"""The changes from one voter set to another."""

import itertools

from hypothesis import given

from raftlog.testing import strategies
from raftlog.tools.auditing.history.voter_changes import VoterDifference, disjoint_majorities
from raftlog.voters.voter_set import VoterSet
from tests.tools.auditing.made_quorum import voter, voters

SETS = strategies.voter_sets()


@given(SETS, SETS)
def test_disjoint_majorities(one: VoterSet, other: VoterSet) -> None:
    """They are majorities of their sets without a common voter, and there are some where the sets do not overlap."""
    apart = disjoint_majorities(one, other)

    assert (apart is None) == one.has_overlapping_majority(other)
    if apart is not None:
        for majority, whole in zip(apart, (one, other), strict=True):
            assert set(majority) <= whole.voter_keys
            assert len(set(majority)) == len(majority) == whole.majority_size
        assert not set(apart[0]) & set(apart[1])


@given(SETS, SETS)
def test_a_difference_accounts_for_each_voter(before: VoterSet, after: VoterSet) -> None:
    """The one set's ids, without the removed and with the added ones, are the other's; equal sets differ in none."""
    difference = VoterDifference.between(before, after)

    assert (before.voter_ids - set(difference.removed)) | set(difference.added) == after.voter_ids
    assert not set(difference.updated) & {*difference.added, *difference.removed}
    assert (len(difference) == 0) == (before == after)


def test_kinds_of_witnesses() -> None:
    """A new directory makes another voter; new endpoints, and a directory that was not known, an update."""
    before = VoterSet.of([voter(1), voter(2), voter(3)])
    after = VoterSet.of([voter(1, port=1), voter(2, directory=1), voter(4)])

    assert VoterDifference.between(before, after) == VoterDifference((2, 4), (2, 3), (1,))
    assert str(VoterDifference.between(before, after)) == "added 2, 4, removed 2, 3, updated 1"


def test_small_sets_exhaustively() -> None:
    """For all pairs of sets of up to three of four voters, majorities apart are found where there are some."""
    sets = [voters(*ids) for size in (1, 2, 3) for ids in itertools.combinations(range(1, 5), size)]
    for one, other in itertools.product(sets, sets):
        pairs = itertools.product(majorities(one), majorities(other))
        assert (disjoint_majorities(one, other) is not None) == any(not set(a) & set(b) for a, b in pairs)


def majorities(voter_set: VoterSet) -> list[tuple[int, ...]]:
    """All smallest majorities, by ids."""
    return list(itertools.combinations(sorted(voter_set.voter_ids), voter_set.majority_size))
