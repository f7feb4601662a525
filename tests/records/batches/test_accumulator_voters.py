# SPDX-License-Identifier: Apache-2.0
"""The accumulator as a guard of who votes: each VotersRecord must follow the voters in force."""

import attrs
import pytest

from raftlog.errors import (
    EmptyVoterSetError,
    InvalidControlBatchError,
    NoOverlappingMajorityError,
    TooManyVoterChangesError,
    VoterSetError,
)
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import voters
from tests.strategies import TIMESTAMP

EPOCH = 5
LEADER_CHANGE = LeaderChangeMessage(1, (Voter(1),), (Voter(1),))


def accumulator(voters_in_force: VoterSet | None) -> BatchAccumulator:
    """Make an accumulator of epoch 5 that starts at offset 10."""
    return BatchAccumulator(EPOCH, 10, voters_in_force=voters_in_force)


def append_set(one: BatchAccumulator, *ids: int) -> int:
    """Append a VotersRecord, alone in its batch."""
    return one.append_voters(voters_record(voters(*ids)), TIMESTAMP)


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ((), EmptyVoterSetError),
        ((1, 2, 3, 4), TooManyVoterChangesError),
        ((3,), NoOverlappingMajorityError),
        ((1, 2, 3), None),
        ((1, 2), None),
    ],
)
def test_a_voter_set_must_follow_the_one_in_force(ids: tuple[int, ...], error: type[VoterSetError] | None) -> None:
    """By both predicates, and it is in force for the next one; a refusal changes nothing."""
    one = accumulator(voters(1, 2))
    if error is None:
        append_set(one, *ids)
        assert (one.voters_in_force, one.next_offset) == (voters(*ids), 11)
        return
    one.append(EPOCH, [b"value"], TIMESTAMP)
    with pytest.raises(error):
        append_set(one, *ids)
    assert (one.voters_in_force, one.next_offset, one.needs_drain(TIMESTAMP)) == (voters(1, 2), 11, False)


def test_sets_follow_one_another_in_whatever_batches() -> None:
    """Also inside one batch, and in bytes that the caller wrote; a set that is refused does not count."""
    one = accumulator(VoterSet())
    append_set(one, 1, 2, 3)
    with pytest.raises(NoOverlappingMajorityError):
        one.append_control_records([voters_record(voters(*ids)) for ids in ((1, 2), (3, 4))], TIMESTAMP)
    assert one.voters_in_force == voters(1, 2, 3)
    one.append_control_records([voters_record(voters(*ids)) for ids in ((1, 2), (1, 2, 4), (1, 2))], TIMESTAMP)
    with pytest.raises(TooManyVoterChangesError):
        one.append_control_messages(
            lambda base_offset, timestamp: write_control_batch(
                [voters_record(voters(1, 2, 3, 4))], base_offset=base_offset, epoch=EPOCH, timestamp=timestamp
            ),
            TIMESTAMP,
        )
    assert one.voters_in_force == voters(1, 2)


def test_voters_are_not_changed_while_the_set_in_force_is_unknown() -> None:
    """Other control records are accepted; an empty set is refused like other sets."""
    one = accumulator(None)
    one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
    for ids in ((1, 2), ()):
        with pytest.raises(VoterSetError, match="voters_in_force was not given"):
            append_set(one, *ids)


def test_a_voters_record_names_each_voter_directory_and_listener_once() -> None:
    """Values that an audit calls damaged are not written, though readers accept them."""
    one = accumulator(VoterSet())
    record = voters_record(voters(1, 2))
    twice = attrs.evolve(record, voters=(*record.voters, record.voters[0]))
    with pytest.raises(InvalidControlBatchError, match="voter 1 is there twice"):
        one.append_voters(twice, TIMESTAMP)
