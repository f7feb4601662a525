# SPDX-License-Identifier: Apache-2.0
"""What an operator asks for: each voter that is given up is named, exactly, and new voters are well formed."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import QuorumVotersError, RepairRefusedError
from raftlog.tools.repair.voter_request import LostVoter, check_given_up, parse_lost, parse_new_voters
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import ReplicaKey

KEYS = st.builds(ReplicaKey, st.integers(1, 4), st.sampled_from([uuid.UUID(int=each << 64 | 7) for each in (1, 2)]))


def by_id(keys: list[ReplicaKey]) -> list[ReplicaKey]:
    """One key of each id: a voter set has no id twice."""
    return list({key.id: key for key in keys}.values())


SETS = st.lists(KEYS, max_size=4).map(by_id)


@given(SETS, SETS, st.lists(st.tuples(KEYS, st.booleans()), max_size=4))
def test_exactly_what_is_given_up_is_named(
    before: list[ReplicaKey], new: list[ReplicaKey], named: list[tuple[ReplicaKey, bool]]
) -> None:
    """By id, or by id and directory id: every voter that goes, none that stays, and nobody else.

    The model writes all names of a voter out: its id, and its key.
    """
    lost = parse_lost(str(key if has_directory else key.id) for key, has_directory in named)
    words = {str(key if has_directory else key.id) for key, has_directory in named}
    names = {key: {str(key), str(key.id)} for key in before}
    gone = [key for key in before if key not in new]
    is_right = all(names[key] & words for key in gone) and all(
        any(word in names[key] for key in gone) for word in words
    )
    try:
        check_given_up(before, new, lost)
    except (RepairRefusedError, ValueError):
        assert not is_right
    else:
        assert is_right


@given(SETS, SETS)
def test_the_refusal_says_what_to_say(before: list[ReplicaKey], new: list[ReplicaKey]) -> None:
    """What the message tells the operator to say is what is accepted."""
    try:
        check_given_up(before, new, [])
    except RepairRefusedError as error:
        words = str(error).partition("say --lost ")[2].split(" --lost ")
        check_given_up(before, new, parse_lost(words))
    else:
        assert set(before) <= set(new)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("0", LostVoter(0, None)),
        (" 2147483647 ", LostVoter(2**31 - 1, None)),
        ("2:AQIDBAUGBwgJCgsMDQ4PEA", LostVoter(2, ReplicaKey(2, uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10")))),
    ],
)
def test_forms_of_a_lost_voter(text: str, lost: LostVoter) -> None:
    """An id, from the least to the greatest, alone or with a directory id."""
    assert parse_lost([text]) == [lost]
    assert parse_lost([f"{text},{text}", text]) == [lost] * 3


@pytest.mark.parametrize("text", ["2147483648", "", "a", "1:", ":", "1:x", "+1", "1 2", "\u0661"])
def test_what_is_no_lost_voter(text: str) -> None:
    """Anything else is refused, and quoted."""
    with pytest.raises(ValueError, match="--lost"):
        parse_lost([text])


def test_new_voters_are_in_order_and_keep_what_was_given() -> None:
    """By id, with the directory id, the listener as it was written, and the address; an IPv6 host without brackets."""
    ids = [uuid_to_text(uuid.UUID(int=each << 64)) for each in (1, 2)]
    found = parse_new_voters(f"7@[::1]:9093:{ids[0]}, 2@host:1:{ids[1]}", "Name", is_static=False)
    assert [(each.id, each.directory_id, each.listener, each.host, each.port) for each in found] == [
        (2, ids[1], "Name", "host", 1),
        (7, ids[0], "Name", "::1", 9093),
    ]
    assert [str(each) for each in found] == [f"2@host:1:{ids[1]}", f"7@[::1]:9093:{ids[0]}"]


def test_static_voters_are_read_as_the_configuration_is() -> None:
    """Without directory ids, in any order; what Kafka's configuration refuses is refused."""
    found = parse_new_voters("3@[::1]:9093,1@host:65535", "CONTROLLER", is_static=True)
    assert [(each.id, each.directory_id, each.host, each.port) for each in found] == [
        (1, None, "host", 65535),
        (3, None, "::1", 9093),
    ]
    for text in ("1@host", "1@host:65536", "x@host:1", "1@host:1,1@host:2"):
        with pytest.raises(QuorumVotersError):
            parse_new_voters(text, "CONTROLLER", is_static=True)
