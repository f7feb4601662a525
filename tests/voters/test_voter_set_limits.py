# SPDX-License-Identifier: Apache-2.0
"""Voter sets where a rule begins and ends to hold: the case at each limit, and the ones beside it."""

import itertools
import uuid

import pytest

from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import (
    DynamicVoter,
    Endpoints,
    ReplicaKey,
    SupportedVersionRange,
    VoterNode,
    VoterSet,
)

D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
D2 = uuid.UUID(bytes=bytes(range(0x10, 0x20)))
_HALVES = (-(2**63), -(2**56), -256, -1, 0, 1, 255, 256, 2**56, 2**63 - 1)


def _key(high: int, low: int) -> ReplicaKey:
    """Return a replica whose directory id has these halves, as Java's signed longs."""
    return ReplicaKey(1, uuid.UUID(int=(high % 2**64) << 64 | low % 2**64))


def _node(voter_id: int, directory_id: uuid.UUID | None = None, port: int = 9093, maximum: int = 1) -> VoterNode:
    """Return a voter on the loopback."""
    listeners = Endpoints.of({"CONTROLLER": ("localhost", port)})
    return VoterNode(ReplicaKey(voter_id, directory_id), listeners, SupportedVersionRange(0, maximum))


def test_keys_of_one_id_are_ordered_by_both_halves() -> None:
    """Of one id, the first half decides, and the second where the first is the same; both have a sign."""
    in_order = [_key(high, low) for high, low in itertools.product(_HALVES, repeat=2)]
    assert all(one < other for one, other in itertools.pairwise(in_order))
    assert not any(other <= one for one, other in itertools.pairwise(in_order))
    assert _key(0, 0) == ReplicaKey(1, ZERO_UUID) == ReplicaKey(1)


@pytest.mark.parametrize(
    ("mine", "asked", "is_voter"),
    [
        ((1, D1), (1, D1), True),
        ((1, D1), (1, D2), False),
        ((1, D1), (1, None), False),
        ((1, D1), (2, D1), False),
        ((1, None), (1, None), True),
        ((1, None), (1, D1), True),
        ((1, None), (2, None), False),
        ((1, None), (0, D1), False),
    ],
)
def test_a_voter_is_identified_by_id_and_directory(
    mine: tuple[int, uuid.UUID | None], asked: tuple[int, uuid.UUID | None], is_voter: bool
) -> None:
    """A node asked alone says what a set with that node says: the id must be the same, and the directory if known."""
    node = _node(*mine)
    assert node.is_voter(ReplicaKey(*asked)) == is_voter
    assert VoterSet.of([node, _node(9)]).is_voter(ReplicaKey(*asked)) == is_voter


@pytest.mark.parametrize(
    ("said", "needs_update"),
    [
        (_node(1, D1), False),
        (_node(1, D1, port=9094), True),
        (_node(1, D1, maximum=0), True),
        (_node(1, D2, port=9094), False),
        (_node(3, D1, port=9094), False),
    ],
    ids=["as it is", "another port", "other versions", "another directory", "no voter"],
)
def test_a_voters_own_statement_is_compared(said: VoterNode, needs_update: bool) -> None:
    """An entry needs an update if it is of that voter, and only if an endpoint or a version is another."""
    assert VoterSet.of([_node(1, D1), _node(2)]).voter_node_needs_update(said) == needs_update


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        (ReplicaKey(1, D1), [2, 3]),
        (ReplicaKey(2), [1, 3]),
        (ReplicaKey(3, D2), [1, 2]),
        (ReplicaKey(1), None),
        (ReplicaKey(1, D2), None),
        (ReplicaKey(2, D1), None),
        (ReplicaKey(4, D1), None),
    ],
)
def test_one_voter_is_removed(removed: ReplicaKey, left: list[int] | None) -> None:
    """A voter with exactly this key goes, and the others stay as they are; any other key changes nothing."""
    voters = VoterSet.of([_node(1, D1), _node(2), _node(3, D2)])
    expected = None if left is None else VoterSet.of(voters.voters[voter_id] for voter_id in left)
    assert voters.remove_voter(removed) == expected


@pytest.mark.parametrize(("count", "is_removed"), [(1, False), (2, True), (3, True)])
def test_all_but_the_last_voter_can_be_removed(count: int, is_removed: bool) -> None:
    """Of two voters one can go, of one none."""
    without = VoterSet.of(map(_node, range(count))).remove_voter(ReplicaKey(0))
    assert (without is not None) == is_removed
    assert without is None or without.voter_ids == set(range(1, count))


@pytest.mark.parametrize("voter_id", [0, 1, 2**30 - 1, 2**30, 2**31 - 2, 2**31 - 1])
def test_every_node_id_is_read(voter_id: int) -> None:
    """Ids from 0 to the greatest int32 are read from a voter's text."""
    voter = DynamicVoter.parse(f"{voter_id}@localhost:9093:AQIDBAUGBwgJCgsMDQ4PEA")
    assert voter.voter_key == ReplicaKey(voter_id, D1)


@pytest.mark.parametrize("voter_id", [2**31, 2**31 + 1, 2**32 - 1, 2**32])
def test_greater_ids_are_none(voter_id: int) -> None:
    """An id above the greatest int32 is refused."""
    with pytest.raises(ValueError, match="not a node id"):
        DynamicVoter.parse(f"{voter_id}@localhost:9093:AQIDBAUGBwgJCgsMDQ4PEA")


@pytest.mark.parametrize(("port", "is_port"), [(0, True), (1, True), (65535, True), (65536, False), (65537, False)])
def test_every_port_is_read(port: int, is_port: bool) -> None:
    """Ports from 0 to 65535 are read, and no other."""
    text = f"1@localhost:{port}:AQIDBAUGBwgJCgsMDQ4PEA"
    if is_port:
        assert DynamicVoter.parse(text).address.port == port
    else:
        with pytest.raises(ValueError, match="port"):
            DynamicVoter.parse(text)
