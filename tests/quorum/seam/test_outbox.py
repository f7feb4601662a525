# SPDX-License-Identifier: Apache-2.0
"""A message leaves only when every election state that was handed out before it is durable."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.effects import Destination, FlushLog, SendRequest, SendResponse, StoreElectionState
from raftlog.quorum.seam.outbox import Outbox
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import VoteResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.messages import end_quorum_epoch_request, vote_request

RESPONSE = VoteResponse(error_code=0, topics=())
ACTIONS = st.lists(st.sampled_from(("store", "end", "vote", "respond", "flush", "stored", "take")), max_size=40)
REQUESTS: Final[dict[str, RaftRequest]] = {
    "end": end_quorum_epoch_request(1, 1),
    "vote": vote_request(ReplicaKey(2), 1, OffsetAndEpoch(0, 0)),
}


@given(ACTIONS, st.lists(st.integers(1, 2), min_size=40, max_size=40))
def test_messages_wait_for_earlier_election_states_and_for_nothing_else(actions: list[str], places: list[int]) -> None:
    """The model keeps one list of all effects: a message may leave once no earlier state in it is not stored.

    A request that could not leave before one of its kind to the same place was asked for never does.
    """
    outbox, handed_out, unstored, taken = Outbox(), list[int](), list[int](), list[int]()
    waits_for: dict[int, int] = {}
    asked: dict[tuple[str, int], int] = {}
    for action, place in zip([*actions, "take"], [*places, 1], strict=False):
        number = max(handed_out, default=0) + 1
        match action:
            case "store":
                unstored.append(outbox.store(QuorumStateData(1)))
                handed_out.append(unstored[-1])
            case "end" | "vote" | "respond":
                if action == "respond":
                    outbox.respond("", RESPONSE)
                else:
                    outbox.request(Destination(place, "h", 1), REQUESTS[action])
                    before = asked.get((action, place), 0)
                    if unstored and waits_for.get(before, 0) >= unstored[0]:
                        handed_out.remove(before)
                    asked[action, place] = number
                handed_out.append(number)
                waits_for[number] = unstored[-1] if unstored else 0
            case "flush":
                handed_out.append(outbox.on_log(FlushLog).number)
            case "stored" if unstored:
                outbox.stored(unstored.pop(0))
            case "take":
                taken += [each.number for each in outbox.take()]
                least = unstored[0] if unstored else number
                may_leave = {each for each in handed_out if waits_for.get(each, 0) < least}
                assert set(taken) == may_leave
                assert len(taken) == len(set(taken))
    messages = [number for number in taken if number in waits_for]
    assert messages == sorted(messages)
    others = [number for number in taken if number not in waits_for]
    assert others == sorted(others)


def test_of_requests_that_are_held_back_the_last_one_goes() -> None:
    """Slow writes of an election state are no reason to ask as often as they would have taken otherwise."""
    outbox, first, other = Outbox(), Destination(2, "h", 1), Destination(3, "h", 1)
    number = outbox.store(QuorumStateData(1))
    for place in (first, first, other, first):
        last = outbox.request(place, REQUESTS["vote"])
    outbox.request(first, REQUESTS["end"])
    outbox.stored(number)
    sent = [each for each in outbox.take() if isinstance(each, SendRequest)]
    assert [each.destination for each in sent] == [other, first, first]
    assert [each.number for each in sent] == [last - 1, last, last + 1]


def test_states_are_reported_in_their_order() -> None:
    """The result of an effect that was never handed out, or not yet due, is a mistake of the driver."""
    outbox = Outbox()
    with pytest.raises(ValueError, match="effect 1 is not the election state to be stored next"):
        outbox.stored(1)
    first, second = outbox.store(QuorumStateData(1)), outbox.store(QuorumStateData(1))
    with pytest.raises(ValueError, match=f"effect {second} is not"):
        outbox.stored(second)
    outbox.stored(first)
    with pytest.raises(ValueError, match=f"effect {first} is not"):
        outbox.stored(first)
    outbox.stored(second)


def test_a_halted_replica_sends_nothing_that_it_held_back() -> None:
    """The states that the messages wait for will not be durable."""
    outbox = Outbox()
    number = outbox.store(QuorumStateData(1))
    outbox.respond("", RESPONSE)
    outbox.discard_messages()
    outbox.stored(number)
    assert [type(each) for each in outbox.take()] == [StoreElectionState]
    outbox.respond("", RESPONSE)
    outbox.request(Destination(2, "h", 1), end_quorum_epoch_request(1, 1))
    assert [type(each) for each in outbox.take()] == [SendResponse, SendRequest]
