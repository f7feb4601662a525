# SPDX-License-Identifier: Apache-2.0
"""Requests reach their handlers, unless too many answers wait for a slow disk."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import Effect, SendResponse, StoreElectionState
from raftlog.quorum.seam.outbox import MAX_HELD_MESSAGES
from raftlog.records.messages.raft.election_messages import VoteResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from tests.quorum.driving.driven_replicas import IDENTITY
from tests.quorum.messages import vote_request
from tests.quorum.single_replica import SingleReplica, log_with, replica_key, voter_set_of


class SlowToStore(SingleReplica):
    """A replica whose election state is not stored until it is told to store it."""

    waiting: tuple[StoreElectionState, ...] = ()
    is_slow = False

    def _carry_out(self, effect: Effect) -> None:
        if self.is_slow and isinstance(effect, StoreElectionState):
            self.waiting = (*self.waiting, effect)
        else:
            super()._carry_out(effect)

    def store(self) -> None:
        """Store what waits."""
        waiting, self.waiting = self.waiting, ()
        for effect in waiting:
            super()._carry_out(effect)
        self.settle()


def _ask_for_votes(core: SingleReplica, count: int) -> None:
    """Deliver requests of one candidate, who asks again and again."""
    for token in range(count):
        core.request(token, vote_request(replica_key(2), 2, OffsetAndEpoch(3, 1)), version=2)


def _errors(answers: list[SendResponse]) -> list[int]:
    messages = [each.message for each in answers]
    return [each.error_code for each in messages if isinstance(each, VoteResponse)]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_requests_are_refused_while_too_many_answers_wait(more: int) -> None:
    """Each request is answered: those that may wait once the vote is stored, and one more at once, with an error.

    The error names neither epoch nor leader, since these are not stored yet.
    """
    core = SlowToStore(IDENTITY, QuorumConfig(), log=log_with([(1, 3)], voter_set_of(map(replica_key, (1, 2, 3)))))
    core.is_slow = True
    _ask_for_votes(core, MAX_HELD_MESSAGES + more)
    refused = core.take_responses()
    assert _errors(refused) == [ErrorCode.BROKER_NOT_AVAILABLE] * max(more, 0)
    assert not any(each.topics for each in (sent.message for sent in refused) if isinstance(each, VoteResponse))
    core.store()
    granted = core.take_responses()
    assert _errors(granted) == [ErrorCode.NONE] * (MAX_HELD_MESSAGES + min(more, 0))
    _ask_for_votes(core, 1)
    assert _errors(core.take_responses()) == [ErrorCode.NONE]
