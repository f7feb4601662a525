# SPDX-License-Identifier: Apache-2.0
"""Compares each message, as it is sent, with what the sender's disk holds: a message must not promise more."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from raftlog.records.batches.batch import CRC_START, RecordBatch
from raftlog.records.checksum import crc32c
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteRequestPartitionData,
    VoteResponse,
)
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from raftlog.records.messages.raft.raft_messages import RaftMessage, RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.violation import check
from raftlog.uuid_text import ZERO_UUID

_LENGTH_POSITION: Final = 8
_NO_EPOCH: Final = -1
_NO_ID: Final = -1


def _of_its_partition(message: Any) -> int:
    return message.topics[0].partitions[0].leader_epoch if message.topics else _NO_EPOCH


def _of_none(_: Any) -> int:
    return _NO_EPOCH


NAMED_EPOCHS: Final[Mapping[type[RaftMessage], Callable[[Any], int]]] = MappingProxyType(
    {
        VoteRequest: lambda message: message.topics[0].partitions[0].replica_epoch,
        VoteResponse: _of_its_partition,
        BeginQuorumEpochRequest: _of_its_partition,
        BeginQuorumEpochResponse: _of_its_partition,
        EndQuorumEpochRequest: _of_its_partition,
        EndQuorumEpochResponse: _of_its_partition,
        FetchRequest: lambda message: message.topics[0].partitions[0].current_leader_epoch,
        FetchResponse: lambda message: (
            message.responses[0].partitions[0].current_leader.leader_epoch if message.responses else _NO_EPOCH
        ),
        FetchSnapshotRequest: lambda message: message.topics[0].partitions[0].current_leader_epoch,
        FetchSnapshotResponse: lambda message: (
            message.topics[0].partitions[0].current_leader.leader_epoch if message.topics else _NO_EPOCH
        ),
        UpdateRaftVoterRequest: lambda message: message.current_leader_epoch,
        UpdateRaftVoterResponse: lambda message: message.current_leader.leader_epoch,
        DescribeQuorumRequest: _of_none,
        DescribeQuorumResponse: _of_its_partition,
        AddRaftVoterRequest: _of_none,
        AddRaftVoterResponse: _of_none,
        RemoveRaftVoterRequest: _of_none,
        RemoveRaftVoterResponse: _of_none,
        ApiVersionsRequest: _of_none,
        ApiVersionsResponse: _of_none,
    }
)
"""How to read the leader epoch of a message, by its class; -1 if it names none. Each message has its row."""


def named_epoch(message: RaftMessage) -> int:
    """Return the leader epoch that a message names; -1 if it names none."""
    return NAMED_EPOCHS[type(message)](message)


class PromiseCheck:
    """Compares messages with ledgers.

    Args:
        witness: has the ledgers.
    """

    def __init__(self, witness: DiskWitness) -> None:
        self._witness = witness

    def request_sent(self, sender: Ledger, request: RaftRequest) -> None:
        """Check a request that is sent now."""
        epoch = named_epoch(request)
        self._check_epoch(sender, epoch)
        if sender.is_quarantined:
            _check_quarantine(sender, request)
        is_bid = isinstance(request, VoteRequest | BeginQuorumEpochRequest)
        check(not (is_bid and sender.is_vote_lost), "forgotten-votes", "{} sends {}", sender.key, request)
        is_named = sender.is_vote_lost and _fetching_id(request) != _NO_ID
        is_named = is_named or (sender.is_vote_lost and isinstance(request, UpdateRaftVoterRequest))
        check(not is_named, "forgotten-votes", "{} names itself in {}", sender.key, request)
        if isinstance(request, FetchRequest):
            asked = request.topics[0].partitions[0]
            is_durable = asked.fetch_offset <= sender.durable_end
            check(is_durable, "fetch-is-durable", "{} fetches from {}", sender, asked.fetch_offset)
            self._check_high_watermark(sender, asked.high_watermark)
        elif isinstance(request, VoteRequest):
            ballot = request.topics[0].partitions[0]
            _check_candidate(sender, ballot)
            if not ballot.pre_vote:
                self._check_vote(sender, epoch, sender.key.id)
        elif isinstance(request, BeginQuorumEpochRequest | EndQuorumEpochRequest):
            leader = None if sender.state is None else sender.state.leader_id
            check(leader == sender.key.id, "stored-before-sent", "{} leads epoch {}", sender, epoch)

    def response_sent(self, sender: Ledger, request: RaftRequest, response: RaftResponse) -> None:
        """Check a response that is sent now. One that refuses, and names the current epoch, promises that epoch."""
        self._check_epoch(sender, named_epoch(response))
        if isinstance(response, FetchResponse) and response.responses:
            served = response.responses[0].partitions[0]
            self._check_high_watermark(sender, served.high_watermark)
            if isinstance(request, FetchRequest) and served.records:
                _check_records(sender, request.topics[0].partitions[0].fetch_offset, served.records)
            _check_held(sender, served.records)
        elif isinstance(response, DescribeQuorumResponse) and response.topics:
            self._check_high_watermark(sender, response.topics[0].partitions[0].high_watermark)
        elif isinstance(request, BeginQuorumEpochRequest) and isinstance(response, BeginQuorumEpochResponse):
            if response.topics and not response.topics[0].partitions[0].error_code:
                _check_addressee(sender, request)
        elif isinstance(request, VoteRequest) and isinstance(response, VoteResponse) and response.topics:
            given, ballot = response.topics[0].partitions[0], request.topics[0].partitions[0]
            if given.vote_granted and not given.error_code:
                _check_addressee(sender, request)
                self._granted(sender, ballot)
            elif not given.error_code and not ballot.pre_vote:
                _check_refusal(sender, ballot)

    def _check_high_watermark(self, sender: Ledger, high_watermark: int) -> None:
        is_committed = high_watermark <= self._witness.history.end_offset
        check(is_committed, "high-watermark-is-committed", "{}: {}", sender.key, high_watermark)

    def _granted(self, voter: Ledger, ballot: VoteRequestPartitionData) -> None:
        check(not voter.is_quarantined, "quarantine", "{} votes for {}", voter.key, ballot)
        check(not voter.is_vote_lost, "forgotten-votes", "{} votes for {}", voter.key, ballot)
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


def _check_records(sender: Ledger, fetch_offset: int, records: bytes | memoryview) -> None:
    """Check that a replica sends what its log was given, byte by byte. The last batch may be cut off."""
    for index, (batch, is_cut_off) in enumerate(_served(records), sender.index_of(fetch_offset)):
        given = sender.batches[index] if index < len(sender.batches) else None
        is_sound = is_cut_off or crc32c(batch.buffer[CRC_START:]) == batch.crc
        is_given = is_sound and given == StoredBatch.of(batch)
        check(is_given, "fetched-batches-are-stored", "{} sends {}, and was given {}", sender.key, batch, given)


def _served(records: bytes | memoryview) -> Iterator[tuple[RecordBatch, bool]]:
    """Yield the batches of an answer whose headers are whole, each with whether it is cut off; only the last may be."""
    held, start = memoryview(records), 0
    while len(held) - start >= BATCH_OVERHEAD:
        size = LOG_OVERHEAD + int.from_bytes(held[start + _LENGTH_POSITION : start + LOG_OVERHEAD])
        batch = RecordBatch(held[start : start + size] if size >= BATCH_OVERHEAD else held[start:])
        yield batch, batch.size_bytes < size
        start += size


def _check_candidate(candidate: Ledger, asked: VoteRequestPartitionData) -> None:
    """Check that a replica that asks for votes is a voter by its own log, and asks with all of it, which is durable."""
    is_voter = candidate.names_as_voter(candidate.key)
    check(is_voter, "candidates-are-voters", "{} asks for votes, and its log names {}", candidate, candidate.voter_sets)
    end_offset, epochs = candidate.end_offset, _last_epochs(candidate)
    is_right = asked.last_offset == end_offset == candidate.durable_end and asked.last_offset_epoch in epochs
    check(is_right, "candidates-name-their-log", "{} asks for votes with {}", candidate, asked)


def _last_epochs(replica: Ledger) -> set[int]:
    """Return which epoch the last record of a replica's log may be said to have."""
    last = replica.batch_before(replica.end_offset)
    epochs = {0 if last is None else last.epoch}
    if replica.epoch_start[1] == replica.end_offset:  # It has begun to lead, and written nothing.
        epochs.add(replica.epoch_start[0])
    return epochs


def _check_refusal(voter: Ledger, ballot: VoteRequestPartitionData) -> None:
    """Check that a replica that refuses a vote has a reason, whether it knows that it is a voter or not.

    It has given its vote to another one, knows a leader of the epoch, has the better log, or has lost something.
    """
    state, log_end = voter.state, (max(_last_epochs(voter)), voter.end_offset)
    has_better_log = log_end > (ballot.last_offset_epoch, ballot.last_offset)
    is_bound = state is not None and (
        state.leader_epoch > ballot.replica_epoch
        or state.leader_id != _NO_ID
        or state.voted_id not in (_NO_ID, ballot.replica_id)
    )
    was_quarantined = voter.healed_epoch >= ballot.replica_epoch  # It may have answered before.
    has_reason = has_better_log or is_bound or voter.needs_others or was_quarantined
    check(has_reason, "votes-are-given", "{} refuses {}", voter, ballot)


def _check_addressee(sender: Ledger, request: Any) -> None:
    """Check that a vote is given, or a leader acknowledged, by the replica that was asked, with that directory."""
    asked, key = request.topics[0].partitions[0], sender.key
    is_asked = request.voter_id in (_NO_ID, key.id) and asked.voter_directory_id in (ZERO_UUID, key.directory_id)
    check(is_asked, "addressees-answer", "{} answers {}", key, request)


def _check_held(leader: Ledger, records: bytes | memoryview | None) -> None:
    """Check that a voter set is served only once it is durable here (DECISIONS.md 66)."""
    offset = leader.voter_sets[-1].offset
    if not records or offset < leader.durable_end:
        return
    for batch, is_cut_off in _served(records):
        is_held = is_cut_off or batch.last_offset < offset or batch.base_offset > offset
        check(is_held, "voter-sets-are-held", "{} serves {} to {}", leader, batch.base_offset, batch.last_offset)


def _check_quarantine(sender: Ledger, request: RaftRequest) -> None:
    """Check that a replica that has lost records does not stand or lead, and that nothing it sends counts."""
    is_quiet = not isinstance(request, VoteRequest | BeginQuorumEpochRequest | UpdateRaftVoterRequest)
    check(is_quiet, "quarantine", "{} sends {}", sender.key, request)
    check(_fetching_id(request) == _NO_ID, "quarantine", "{} names itself in {}", sender.key, request)


def _fetching_id(request: RaftRequest) -> int:
    """Return which replica asks for records or a snapshot; -1 if none does, or it does not say."""
    if isinstance(request, FetchRequest):
        return request.replica_state.replica_id
    return request.replica_id if isinstance(request, FetchSnapshotRequest) else _NO_ID
