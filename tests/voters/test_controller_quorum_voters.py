# SPDX-License-Identifier: Apache-2.0
"""Static voters in Kafka's words, and the voter set that is made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import QuorumVotersError, VoterNotFoundError
from raftlog.voters.controller_quorum_voters import parse_controller_quorum_voters, static_voter_set
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

hosts = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,9}", fullmatch=True).filter("0.0.0.0".__ne__) | st.ip_addresses(v=6).map(
    str
)
voters = st.dictionaries(
    st.integers(0, 2**31 - 1), st.none() | st.builds(HostPort, hosts, st.integers(0, 65535)), max_size=5
)
blanks = st.sampled_from(["", " ", "  ", "\t"])


@given(voters, st.data())
def test_what_is_written_is_read(addresses: dict[int, HostPort | None], data: st.DataObject) -> None:
    """Each entry, in order, IPv6 in brackets, with blanks around it; 0.0.0.0 is an address that is not known."""
    entries = [f"{voter_id}@{address or '0.0.0.0:1'}" for voter_id, address in addresses.items()]
    text = ",".join(data.draw(blanks) + entry + data.draw(blanks) for entry in entries)
    parsed = parse_controller_quorum_voters(text)
    assert list(parsed.items()) == list(addresses.items())
    assert static_voter_set(text, "controller") == VoterSet.of(
        VoterNode(
            ReplicaKey(voter_id),
            Endpoints() if address is None else Endpoints.of({"CONTROLLER": address}),
            SupportedVersionRange(0, 0),
        )
        for voter_id, address in addresses.items()
    )


@given(st.text(st.sampled_from("12@:,.[]ab0 -"), max_size=12))
def test_any_other_text_is_refused_where_it_is_wrong(text: str) -> None:
    """Whatever is there, it is read, or one error names a place in it."""
    error: QuorumVotersError | None = None
    parsed: dict[int, HostPort | None] = {}
    try:
        parsed = parse_controller_quorum_voters(text)
    except QuorumVotersError as caught:
        error = caught
    if error is None:
        assert len(parsed) == (text.count(",") + 1 if text.strip() else 0)
    else:
        assert 0 <= error.position <= len(text)
        assert error.text == text
        assert f"character {error.position}: {error.reason}" in str(error)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (",", 0),
        ("1@a:1,", 6),
        ("1@a:1,,2@b:2", 6),
        ("1", 1),
        ("1@a:1, 2", 8),
        ("@a:1", 0),
        ("x@a:1", 0),
        ("-1@a:1", 0),
        ("+1@a:1", 0),
        ("\u0661@a:1", 0),
        ("2147483648@a:1", 0),
        ("1@a:1, 1@b:2", 7),
        ("1@a", 2),
        ("1@:1", 2),
        ("1@a b:1", 2),
        ("1@::1:9093", 2),
        ("1@[]:1", 2),
        ("1@[::1]9093", 2),
        ("1@a@b:1", 2),
        ("1@a:", 4),
        ("1@a:x", 4),
        ("1@a:65536", 4),
        ("1@[::1]:65536", 8),
    ],
)
def test_the_place_of_what_is_wrong_is_named(text: str, position: int) -> None:
    """The first character that cannot be what it should."""
    with pytest.raises(QuorumVotersError) as caught:
        parse_controller_quorum_voters(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "voter_id", "address"),
    [
        ("2147483647@a:0", 2147483647, HostPort("a", 0)),
        ("0@a:65535", 0, HostPort("a", 65535)),
        ("1@[fe80::1%eth0]:9093", 1, HostPort("fe80::1%eth0", 9093)),
        ("1@0.0.0.0:9093", 1, None),
        ("1@0.0.0.0:0", 1, None),
        ("1@0.0.0.01:9", 1, HostPort("0.0.0.01", 9)),
    ],
)
def test_values_at_the_limits(text: str, voter_id: int, address: HostPort | None) -> None:
    """The least and the greatest numbers, and the host that means none."""
    assert parse_controller_quorum_voters(text) == {voter_id: address}


@pytest.mark.parametrize("text", ["", "  "])
def test_no_voters(text: str) -> None:
    """A blank value names no voters."""
    assert parse_controller_quorum_voters(text) == {}
    assert static_voter_set(text, "CONTROLLER") == VoterSet()


def test_where_voters_listen() -> None:
    """The requested voters, in that order; one that is missing, or has no such listener, is an error."""
    voter_set = static_voter_set("1@a:1,2@b:2,3@0.0.0.0:3", "controller")
    assert list(voter_set.voter_nodes([2, 1], "Controller").items()) == [(2, ("b", 2)), (1, ("a", 1))]
    assert voter_set.voter_nodes([], "CONTROLLER") == {}
    for ids, listener in (([4], "CONTROLLER"), ([1, 3], "CONTROLLER"), ([1], "SSL")):
        with pytest.raises(VoterNotFoundError, match=f"voter {ids[-1]} at listener {listener}"):
            voter_set.voter_nodes(ids, listener)


def test_addresses_need_a_listener() -> None:
    """Also where no voter has an address."""
    for addresses in ({}, {1: None}, {1: HostPort("a", 1)}):
        with pytest.raises(ValueError, match="blank"):
            VoterSet.from_inet_addresses(" ", addresses)
    with pytest.raises(ValueError, match="port"):
        VoterSet.from_inet_addresses("CONTROLLER", {1: HostPort("a", 65536)})
    assert VoterSet.from_inet_addresses("C", {1: None}).is_voter(ReplicaKey(1))
