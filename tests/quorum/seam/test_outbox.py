# SPDX-License-Identifier: Apache-2.0
"""A message leaves only when every election state that was handed out before it is durable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.seam.effects import Destination, FlushLog, SendRequest, SendResponse, StoreElectionState
from raftlog.quorum.seam.outbox import Outbox
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import VoteResponse
from tests.quorum.messages import end_quorum_epoch_request

RESPONSE = VoteResponse(error_code=0, topics=())
ACTIONS = st.lists(st.sampled_from(("store", "request", "respond", "flush", "stored", "take")), max_size=40)


@given(ACTIONS)
def test_messages_wait_for_earlier_election_states_and_for_nothing_else(actions: list[str]) -> None:
    """The model keeps one list of all effects: a message may leave once no earlier state in it is not stored."""
    outbox, handed_out, unstored, taken = Outbox(), list[int](), list[int](), list[int]()
    waits_for: dict[int, int] = {}
    for action in [*actions, "take"]:
        match action:
            case "store":
                unstored.append(outbox.store(QuorumStateData(1)))
                handed_out.append(unstored[-1])
            case "request" | "respond":
                if action == "request":
                    outbox.request(Destination(2, "h", 1), end_quorum_epoch_request(1, 1))
                else:
                    outbox.respond("", RESPONSE)
                handed_out.append(max(handed_out, default=0) + 1)
                waits_for[handed_out[-1]] = unstored[-1] if unstored else 0
            case "flush":
                handed_out.append(outbox.on_log(FlushLog).number)
            case "stored" if unstored:
                outbox.stored(unstored.pop(0))
            case "take":
                taken += [each.number for each in outbox.take()]
                least = unstored[0] if unstored else max(handed_out, default=0) + 1
                may_leave = {number for number in handed_out if waits_for.get(number, 0) < least}
                assert set(taken) == may_leave
                assert len(taken) == len(set(taken))
    messages = [number for number in taken if number in waits_for]
    assert messages == sorted(messages)
    others = [number for number in taken if number not in waits_for]
    assert others == sorted(others)


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
