# SPDX-License-Identifier: Apache-2.0
"""Votes, announcements and resignations that Kafka's replicas got are answered as they answered.

What a replica was is told by what it had sent (``recorded_roles``). The answer to a pre-vote may depend on a timer:
whether a follower had given up its leader already is not recorded, if it says so only after the answer.
"""

from collections import Counter
from typing import Final

from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from tests.quorum.recorded.recorded_roles import possible_states, replica_as
from tests.quorum.recorded.recording import LISTENER, Frame, frames

FRAMES: Final = tuple(frames())
ASKED: Final = {
    each.token: each
    for each in FRAMES
    if isinstance(each.message, VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest)
}


def verdict(answer: Frame) -> str:
    """Return how the recorded answer compares with ours, in each role that the replica may have had."""
    request = ASKED[answer.token]
    answers = []
    for shown in possible_states(FRAMES, answer.receiver, answer.number):
        core = replica_as(answer.receiver, shown)
        core.request("", request.message, request.version, LISTENER)  # type: ignore[arg-type]
        answers.append([each.message for each in core.take_responses()])
    if all(each == answers[0] for each in answers):
        return "equal" if answers[0] == [answer.message] else "differs"
    return "depends on a timer" if [answer.message] in answers else "differs in all roles"


def test_elections_are_answered_as_kafkas_replicas_did() -> None:
    """Of 35 votes, 33 answers are determined, and equal; so are 7 of announcements and 6 of resignations.

    2 answers to pre-votes depend on a timer. Each is what our core answers in one of the two roles.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for each in FRAMES:
        if not each.is_request and each.token in ASKED:
            counts[type(each.message).__name__.removesuffix("Response"), verdict(each)] += 1
    assert dict(counts) == {
        ("Vote", "equal"): 33,
        ("Vote", "depends on a timer"): 2,
        ("BeginQuorumEpoch", "equal"): 7,
        ("EndQuorumEpoch", "equal"): 6,
    }
