# SPDX-License-Identifier: Apache-2.0
"""Compares each message, as it is sent, with what the sender's disk holds: a message must not promise more."""

from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    VoteRequest,
    VoteRequestPartitionData,
    VoteResponse,
)
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check


class PromiseCheck:
    """Compares messages with ledgers.

    Args:
        witness: has the ledgers.
    """

    def __init__(self, witness: DiskWitness) -> None:
        self._witness = witness

    def request_sent(self, sender: Ledger, request: RaftRequest) -> None:
        """Check a request that is sent now."""
        if isinstance(request, FetchRequest):
            asked = request.topics[0].partitions[0]
            is_durable = asked.fetch_offset <= sender.durable_end
            check(is_durable, "fetch-is-durable", "{} fetches from {}", sender, asked.fetch_offset)
            self._check_epoch(sender, asked.current_leader_epoch)
        elif isinstance(request, VoteRequest):
            ballot = request.topics[0].partitions[0]
            self._check_epoch(sender, ballot.replica_epoch)
            if not ballot.pre_vote:
                self._check_vote(sender, ballot.replica_epoch, sender.key.id)
        elif isinstance(request, BeginQuorumEpochRequest):
            begun = request.topics[0].partitions[0]
            self._check_epoch(sender, begun.leader_epoch)
            leader = None if sender.state is None else sender.state.leader_id
            check(leader == sender.key.id, "stored-before-sent", "{} leads epoch {}", sender, begun.leader_epoch)

    def response_sent(self, sender: Ledger, request: RaftRequest, response: RaftResponse) -> None:
        """Check a response that is sent now."""
        if isinstance(response, FetchResponse) and response.responses:
            answer = response.responses[0].partitions[0]
            committed = self._witness.history.end_offset
            is_committed = answer.high_watermark <= committed
            check(is_committed, "high-watermark-is-committed", "{}: {}", sender.key, answer.high_watermark)
            self._check_epoch(sender, answer.current_leader.leader_epoch)
        elif isinstance(request, VoteRequest) and isinstance(response, VoteResponse) and response.topics:
            given = response.topics[0].partitions[0]
            self._check_epoch(sender, given.leader_epoch)
            if given.vote_granted and not given.error_code:
                self._granted(sender, request.topics[0].partitions[0])

    def _granted(self, voter: Ledger, ballot: VoteRequestPartitionData) -> None:
        if not ballot.pre_vote:
            self._check_vote(voter, ballot.replica_epoch, ballot.replica_id)
            self._witness.voted(voter, ballot.replica_epoch, ballot.replica_id)

    def _check_vote(self, voter: Ledger, epoch: int, candidate_id: int) -> None:
        """Check that a vote is durable; the leader of the same epoch knows that it has won, and names itself."""
        state = voter.state
        has_voted = state is not None and state.leader_epoch >= epoch
        if has_voted and state is not None and state.leader_epoch == epoch:
            has_voted = candidate_id in (state.voted_id, state.leader_id)
        check(has_voted, "stored-before-sent", "{} votes for {} in epoch {}", voter, candidate_id, epoch)

    def _check_epoch(self, sender: Ledger, epoch: int) -> None:
        """Check that an epoch that a message names is durable; epochs of the log need no election state."""
        state = sender.state
        known = 0 if state is None else state.leader_epoch
        if known < epoch:
            last = sender.batch_before(sender.durable_end)
            known = max(known, last.epoch if last is not None else 0)
        check(epoch <= known, "stored-before-sent", "{} names epoch {}", sender, epoch)
