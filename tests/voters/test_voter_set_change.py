# SPDX-License-Identifier: Apache-2.0
"""Which voter set a writer may put in the place of another."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    EmptyVoterSetError,
    NoOverlappingMajorityError,
    TooManyVoterChangesError,
    VoterSetError,
)
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem, check_voter_set_change, voter_set_change_problems
from tests.log.control_batches import voters

voter_sets = st.sets(st.integers(1, 6)).map(lambda ids: voters(*sorted(ids)))


@given(voter_sets, voter_sets)
def test_a_writer_needs_both_predicates_and_voters(before: VoterSet, after: VoterSet) -> None:
    """A set is let pass exactly if it has voters, and overlaps the one before by the exact test and by Kafka's."""
    is_safe = before.has_overlapping_majority(after) and before.passes_kafka_change_guard(after)
    expected = len(after) > 0 and (len(before) == 0 or is_safe)
    passes = False
    with contextlib.suppress(VoterSetError):
        check_voter_set_change(before, after)
        passes = True
    assert passes == expected == (not voter_set_change_problems(before, after))


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ((1, 2), (1, 2, 3), None),
        ((1, 2), (1, 2, 3, 4), TooManyVoterChangesError),
        ((1, 2, 3, 4), (1, 2), TooManyVoterChangesError),
        ((1, 2, 3), (1, 2, 4), NoOverlappingMajorityError),
        ((1, 2, 3), (4, 5, 6), NoOverlappingMajorityError),
        ((1, 2, 3), (), EmptyVoterSetError),
        ((), (), EmptyVoterSetError),
        ((), (4, 5, 6), None),
    ],
)
def test_each_refusal_has_its_error(
    before: tuple[int, ...], after: tuple[int, ...], error: type[VoterSetError] | None
) -> None:
    """The worst problem is the one that is raised; each is a VoterSetError and a ValueError."""
    if error is None:
        check_voter_set_change(voters(*before), voters(*after))
        return
    with pytest.raises(error) as caught:
        check_voter_set_change(voters(*before), voters(*after))
    assert isinstance(caught.value, ValueError)
    assert str(voters(*after)) in str(caught.value)


def test_both_predicates_are_named_where_both_fail() -> None:
    """Each problem is reported."""
    assert voter_set_change_problems(voters(1, 2, 3), voters(4, 5, 6)) == (
        VoterSetProblem.NO_OVERLAPPING_MAJORITY,
        VoterSetProblem.TOO_MANY_CHANGES,
    )
