# SPDX-License-Identifier: Apache-2.0
"""Voter sets: values, changes, and Kafka's rules for both."""

import pickle
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DuplicateVoterError
from raftlog.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text
from raftlog.voters.voter_set import (
    DynamicVoter,
    Endpoints,
    HostPort,
    ReplicaKey,
    SupportedVersionRange,
    VoterNode,
    VoterSet,
)

D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
D2 = uuid.UUID(bytes=bytes(range(0x10, 0x20)))
D1_TEXT = "AQIDBAUGBwgJCgsMDQ4PEA"

directory_ids = st.sampled_from([None, D1, D2]) | st.uuids()
keys = st.builds(ReplicaKey, st.integers(0, 4), directory_ids)
endpoints = st.dictionaries(
    st.sampled_from(["CONTROLLER", "ssl", "Plain"]), st.tuples(st.text(max_size=3), st.integers(0, 65535))
).map(Endpoints.of)
ranges = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda pair: SupportedVersionRange(*sorted(pair)))
nodes = st.builds(VoterNode, keys, endpoints, ranges)
voter_sets = st.lists(nodes, max_size=4, unique_by=lambda node: node.voter_key.id).map(VoterSet.of)


def node(voter_id: int, directory_id: uuid.UUID | None = None, port: int = 9093) -> VoterNode:
    """Make a voter on the loopback."""
    listeners = Endpoints.of({"CONTROLLER": ("localhost", port)})
    return VoterNode(ReplicaKey(voter_id, directory_id), listeners, SupportedVersionRange(0, 1))


# Uuids


@given(st.uuids(version=None) | st.integers(0, 2**128 - 1).map(lambda number: uuid.UUID(int=number)))
@settings(deadline=None)
def test_uuid_text_round_trips(value: uuid.UUID) -> None:
    """Every uuid is 22 characters that read back as the same uuid, padded or not."""
    text = uuid_to_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid_from_text(text + "==") == value


def test_uuid_text_is_kafkas() -> None:
    """The texts of the zero uuid, of the metadata topic's id and of a plain one are Kafka's."""
    assert uuid_to_text(ZERO_UUID) == "A" * 22
    assert uuid_to_text(uuid.UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_to_text(D1) == D1_TEXT
    assert uuid_to_text(D2) == "EBESExQVFhcYGRobHB0eHw"


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 22 + "=", "+" * 22, "A" * 22 + "\n", "é" * 22])
def test_other_text_is_no_uuid(text: str) -> None:
    """Text of another length or alphabet is a ValueError."""
    with pytest.raises(ValueError):
        uuid_from_text(text)


# Replica keys


@given(keys, keys)
@settings(deadline=None)
def test_replica_keys_are_ordered_by_signed_halves(one: ReplicaKey, other: ReplicaKey) -> None:
    """Keys compare by id, then by the two halves of the directory id as signed numbers, absent as zero."""

    def order(key: ReplicaKey) -> tuple[int, int, int]:
        whole = (key.directory_id or ZERO_UUID).int
        high, low = divmod(whole, 1 << 64)
        return key.id, (high ^ 1 << 63) - (1 << 63), (low ^ 1 << 63) - (1 << 63)

    assert (one < other) == (order(one) < order(other))
    assert (one <= other) == (order(one) <= order(other))
    assert (one == other) == (order(one) == order(other))


def test_the_zero_directory_id_is_none() -> None:
    """A zero uuid and no uuid make the same key."""
    assert ReplicaKey(1, ZERO_UUID) == ReplicaKey(1)
    assert ReplicaKey(1, ZERO_UUID).directory_id is None
    assert (str(ReplicaKey(1)), str(ReplicaKey(1, D1))) == ("1", f"1:{D1_TEXT}")


def test_a_directory_id_with_its_top_bit_set_comes_first() -> None:
    """The order is that of Java's signed longs: ffff... is below 0."""
    assert ReplicaKey(1, uuid.UUID(int=2**128 - 1)) < ReplicaKey(1) < ReplicaKey(1, D1) < ReplicaKey(2)
    with pytest.raises(TypeError):
        ReplicaKey(1) < 1  # type: ignore[operator]  # noqa: B015


# Endpoints and version ranges


def test_listener_names_are_upper_case() -> None:
    """Names are kept and looked up in upper case, and order does not matter to equality."""
    one = Endpoints.of({"controller": ("a", 1), "ssl": ("b", 2)})
    other = Endpoints.of({"SSL": ("b", 2), "Controller": ("a", 1)})
    assert one == other
    assert hash(one) == hash(other)
    assert list(one.listeners) == ["CONTROLLER", "SSL"]
    assert list(other.listeners) == ["SSL", "CONTROLLER"]
    assert one.address("Ssl") == HostPort("b", 2)
    assert one.address("other") is None
    assert len(one) == 2


@pytest.mark.parametrize(
    "listeners",
    [{"": ("a", 1)}, {" \t": ("a", 1)}, {"a": ("a", 1), "A": ("b", 2)}, {"a": ("h", -1)}, {"a": ("h", 65536)}],
)
def test_bad_endpoints_are_refused(listeners: dict[str, tuple[str, int]]) -> None:
    """A blank name, one name twice, or an invalid port is a ValueError."""
    with pytest.raises(ValueError):
        Endpoints.of(listeners)


def test_version_ranges_are_inclusive() -> None:
    """Both ends are in the range, and an invalid range is refused."""
    both = SupportedVersionRange(0, 1)
    assert [both.contains(version) for version in (-1, 0, 1, 2)] == [False, True, True, False]
    for minimum, maximum in ((-1, 0), (1, 0)):
        with pytest.raises(ValueError):
            SupportedVersionRange(minimum, maximum)


# Voter sets as values


@given(voter_sets.flatmap(lambda voters: st.permutations(list(voters.voters.values()))))
@settings(deadline=None)
def test_the_order_of_voters_does_not_matter(given_nodes: list[VoterNode]) -> None:
    """The same nodes in any order make one value, whose voters are ordered by id."""
    one, other = VoterSet.of(given_nodes), VoterSet.of(reversed(given_nodes))
    assert one == other
    assert hash(one) == hash(other)
    assert list(one.voters) == sorted(node.voter_key.id for node in given_nodes)
    assert len(one) == len(given_nodes)
    assert one.voter_keys == {node.voter_key for node in given_nodes}
    assert one.voter_ids == set(one.voters)


@given(voter_sets)
@settings(deadline=None)
def test_voter_sets_read_back(voters: VoterSet) -> None:
    """A voter set survives pickling, used or not, and its repr makes it again."""
    assert pickle.loads(pickle.dumps(voters)) == voters
    assert voters.voters is not None
    assert pickle.loads(pickle.dumps(voters)) == voters
    names = {each.__name__: each for each in (VoterSet, VoterNode, ReplicaKey, Endpoints, SupportedVersionRange)}
    assert eval(repr(voters), {**names, "UUID": uuid.UUID}) == voters


def test_a_voter_set_cannot_be_changed() -> None:
    """Neither the set nor its mappings take an assignment."""
    voters = VoterSet.of([node(1)])
    with pytest.raises(TypeError):
        voters.voters[2] = node(2)  # type: ignore[index]
    with pytest.raises(TypeError):
        voters.voters[1].listeners.listeners["X"] = HostPort("h", 1)  # type: ignore[index]
    with pytest.raises(AttributeError):
        voters.voters = {}


def test_one_id_twice_is_refused() -> None:
    """Two voters of one id are an error, never one of the two."""
    with pytest.raises(DuplicateVoterError, match="voter 1 "):
        VoterSet.of([node(1, D1), node(2), node(1, D2)])


def test_a_voter_set_knows_its_voters() -> None:
    """Text, endpoints and sizes are those of the voters."""
    voters = VoterSet.of([node(2, port=2), node(1, D1)])
    assert str(voters) == f"{{1:{D1_TEXT}, 2}}"
    assert voters.listeners(2).address("controller") == HostPort("localhost", 2)
    assert voters.listeners(3) == Endpoints()
    assert [VoterSet.of(map(node, range(size))).majority_size for size in range(6)] == [1, 1, 2, 2, 3, 3]


# Voter sets and their changes


@given(voter_sets, keys)
@settings(deadline=None)
def test_a_replica_is_a_voter_by_id_and_known_directory(voters: VoterSet, key: ReplicaKey) -> None:
    """A replica votes if its id is there with no directory id, or with its own."""
    entry = voters.voters.get(key.id)
    expected = entry is not None and entry.voter_key.directory_id in (None, key.directory_id)
    assert voters.is_voter(key) == expected
    assert voters.is_only_voter(key) == (expected and len(voters) == 1)


@given(voter_sets, nodes)
@settings(deadline=None)
def test_changes_do_what_kafkas_do(voters: VoterSet, new: VoterNode) -> None:
    """Each change applies exactly under Kafka's condition, to one voter alone, and leaves the old set as it was."""
    before, key = dict(voters.voters), new.voter_key
    replaced = VoterSet.of((before | {key.id: new}).values())
    without = VoterSet.of(each for each in before.values() if each.voter_key.id != key.id)
    has_id, has_key = key.id in before, key in voters.voter_keys
    assert voters.add_voter(new) == (None if has_id else replaced)
    assert voters.remove_voter(key) == (without if has_key and len(before) > 1 else None)
    assert voters.update_voter(new) == (replaced if voters.is_voter(key) else None)
    assert voters.update_voter_ignoring_directory_id(new) == (replaced if has_id else None)
    assert voters.voter_node_needs_update(new) == (voters.is_voter(key) and before[key.id] != new)
    assert dict(voters.voters) == before


def test_a_static_voter_matches_every_directory_but_not_the_other_way() -> None:
    """An entry without a directory id matches any; an entry with one does not match a key without."""
    assert VoterSet.of([node(1)]).is_voter(ReplicaKey(1, D1))
    assert not VoterSet.of([node(1, D1)]).is_voter(ReplicaKey(1))
    assert VoterSet.of([node(1), node(2)]).remove_voter(ReplicaKey(1, D1)) is None


def test_the_last_voter_stays() -> None:
    """No set becomes empty by removing a voter."""
    assert VoterSet.of([node(1)]).remove_voter(ReplicaKey(1)) is None


def test_a_version_is_supported_when_all_voters_support_it() -> None:
    """One voter that does not know a level is enough to rule it out."""
    old = VoterNode(ReplicaKey(2), Endpoints(), SupportedVersionRange(0, 0))
    assert VoterSet.of([node(1), old]).supports_version(0)
    assert not VoterSet.of([node(1), old]).supports_version(1)
    assert VoterSet().supports_version(1)


# The text form


@given(
    st.integers(0, 2**31 - 1),
    directory_ids,
    st.text(st.characters(exclude_characters=":]", exclude_categories=["Cs"])).filter(lambda host: host[:1] != "[")
    | st.ip_addresses(v=6).map(str),
    st.integers(0, 65535),
)
@settings(deadline=None)
def test_voter_text_round_trips(voter_id: int, directory_id: uuid.UUID | None, host: str, port: int) -> None:
    """A voter's text reads back as the same voter, IPv6 hosts included."""
    voter = DynamicVoter(ReplicaKey(voter_id, directory_id), HostPort(host, port))
    assert DynamicVoter.parse(f" {voter}\n") == voter


def test_voter_text_is_kafkas() -> None:
    """The examples of KIP-853's form read as what they say, and become voters of versions 0 to 1."""
    plain = DynamicVoter.parse(f"1@localhost:9093:{D1_TEXT}")
    assert plain.to_voter_node("controller") == node(1, D1)
    six = DynamicVoter.parse(f"2@[::1]:9093:{D1_TEXT}")
    assert six.address == HostPort("::1", 9093)
    assert str(six) == f"2@[::1]:9093:{D1_TEXT}"
    assert str(DynamicVoter(ReplicaKey(3), HostPort("h", 1))) == "3@h:1:AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        f"localhost:9093:{D1_TEXT}",
        f"@localhost:9093:{D1_TEXT}",
        f"-1@localhost:9093:{D1_TEXT}",
        f"x@localhost:9093:{D1_TEXT}",
        f"2147483648@localhost:9093:{D1_TEXT}",
        f"{'9' * 5000}@localhost:9093:{D1_TEXT}",
        "1@",
        "1@localhost",
        "1@localhost:9093",
        "1@localhost:9093:",
        "1@localhost:9093:short",
        f"1@localhost:65536:{D1_TEXT}",
        f"1@localhost:-1:{D1_TEXT}",
        f"1@[::1:9093:{D1_TEXT}",
        f"1@[::1]9093:{D1_TEXT}",
        f"1@::1:9093:{D1_TEXT}",
    ],
)
def test_other_text_is_no_voter(text: str) -> None:
    """Text that lacks a part, or has one that is none, is a ValueError."""
    with pytest.raises(ValueError):
        DynamicVoter.parse(text)
