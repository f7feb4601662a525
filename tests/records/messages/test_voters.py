# SPDX-License-Identifier: Apache-2.0
"""Voter sets on the wire."""

import uuid

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.control import (
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
    read_control_record,
    write_control_record,
)
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))

endpoints = st.dictionaries(
    st.sampled_from(["CONTROLLER", "SSL", "PLAIN"]), st.tuples(st.text(max_size=3), st.integers(0, 0xFFFF)), max_size=2
).map(Endpoints.of)
ranges = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: SupportedVersionRange(*sorted(pair)))
nodes = st.builds(VoterNode, st.builds(ReplicaKey, st.integers(0, 9), st.none() | st.uuids()), endpoints, ranges)
voter_sets = st.lists(nodes, max_size=5, unique_by=lambda node: node.voter_key.id).map(VoterSet.of)

VOTER = VotersRecordVoter(1, D1, (VotersRecordEndpoint("CONTROLLER", "localhost", 9093),), 0, 1)


@settings(deadline=None)
@given(voter_sets)
def test_voter_sets_survive_the_wire(voters: VoterSet) -> None:
    """A voter set is the same after it was written as a VotersRecord and read again."""
    record = read_control_record(*write_control_record(voters_record(voters))).value
    assert isinstance(record, VotersRecord)
    assert voter_set(record) == voters


@settings(deadline=None)
@given(voter_sets)
def test_voters_are_written_by_id(voters: VoterSet) -> None:
    """The record has the voters in the order of their ids."""
    ids = [voter.id for voter in voters_record(voters).voters]
    assert ids == sorted(ids)


def test_a_voter_set_of_kafka() -> None:
    """The record of one voter is the set of that voter, and the other way round."""
    listeners = Endpoints.of({"CONTROLLER": ("localhost", 9093)})
    voters = VoterSet.of([VoterNode(ReplicaKey(1, D1), listeners, SupportedVersionRange(0, 1))])
    assert voters_record(voters) == VotersRecord((VOTER,))
    assert voter_set(VotersRecord((VOTER,))) == voters


def test_names_are_upper_case_and_the_last_wins() -> None:
    """Listener names are normalised; of the same names, and of the same ids, the last counts."""
    twice = (VotersRecordEndpoint("controller", "a", 1), VotersRecordEndpoint("Controller", "b", 2))
    record = VotersRecord((VOTER, attrs.evolve(VOTER, directory_id=None, endpoints=twice)))
    voters = voter_set(record).voters
    assert list(voters) == [1]
    assert voters[1].voter_key == ReplicaKey(1, None)
    assert voters[1].listeners.listeners == {"CONTROLLER": HostPort("b", 2)}


@pytest.mark.parametrize(
    "voter",
    [
        attrs.evolve(VOTER, endpoints=(VotersRecordEndpoint(" ", "a", 1),)),
        attrs.evolve(VOTER, min_supported_version=2),
        attrs.evolve(VOTER, min_supported_version=-1),
    ],
)
def test_impossible_voter_sets_are_refused(voter: VotersRecordVoter) -> None:
    """A blank listener name, or a range that is none, is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError) as caught:
        voter_set(VotersRecord((voter,)))
    assert caught.value.rule == "control-value"
