# SPDX-License-Identifier: Apache-2.0
"""A message that promises more than its sender's disk holds is a violation."""

import contextlib
import typing

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RAFT_MESSAGES, RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.checks.promises import NAMED_EPOCHS, PromiseCheck
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.messages import (
    add_voter_request,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    describe_quorum_request,
    end_quorum_epoch_request,
    end_quorum_epoch_response,
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    records_at,
    update_voter_request,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

ONE, TWO, END = replica_key(1), replica_key(2), OffsetAndEpoch(0, 0)


@pytest.fixture
def disks() -> QuorumDisks:
    """Three disks."""
    return QuorumDisks(3)


@pytest.fixture
def promises(disks: QuorumDisks) -> PromiseCheck:
    """The check of their messages."""
    return PromiseCheck(disks.witness)


def store(disks: QuorumDisks, leader_epoch: int, leader_id: int = -1, voted_id: int = -1) -> None:
    """Make an election state of replica 1 durable."""
    disks.witness.stored(disks.ledgers[1], QuorumStateData(1, leader_id, leader_epoch, voted_id))


def test_a_fetch_names_what_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A Fetch from the durable end is right, and one from the log end too early."""
    store(disks, leader_epoch=1)
    disks.append((1,), 1)
    promises.request_sent(disks.ledgers[1], fetch_request(ONE, 1, OffsetAndEpoch(0, 0), high_watermark=0))
    with pytest.raises(ViolationError, match="fetch-is-durable"):
        promises.request_sent(disks.ledgers[1], fetch_request(ONE, 1, OffsetAndEpoch(1, 1), high_watermark=0))


def test_a_candidate_has_voted_for_itself(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A request for votes is sent after the vote for oneself is durable; a pre-vote needs none."""
    store(disks, leader_epoch=1)
    ledger = disks.ledgers[1]
    promises.request_sent(ledger, vote_request(ONE, 1, END, is_pre_vote=True))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(ledger, vote_request(ONE, 1, END))
    store(disks, leader_epoch=1, voted_id=1)
    promises.request_sent(ledger, vote_request(ONE, 1, END))


def test_an_epoch_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A message names no later epoch than the stored one, or that of the last durable batch."""
    disks.append((1,), 2)
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], fetch_request(ONE, 2, END, high_watermark=0))
    disks.sync(1)
    promises.request_sent(disks.ledgers[1], fetch_request(ONE, 2, END, high_watermark=0))


def test_a_leader_has_stored_that_it_leads(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """An announcement is sent after the leadership is durable."""
    store(disks, leader_epoch=1, voted_id=1)
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], begin_quorum_epoch_request(1, 1))
    store(disks, leader_epoch=1, leader_id=1)
    promises.request_sent(disks.ledgers[1], begin_quorum_epoch_request(1, 1))


def test_a_vote_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A vote that is told is stored; a pre-vote needs nothing."""
    store(disks, leader_epoch=1)
    request, ledger = vote_request(TWO, 1, END), disks.ledgers[1]
    pre_vote = vote_request(TWO, 1, END, is_pre_vote=True)
    promises.response_sent(ledger, pre_vote, vote_response(is_granted=True, epoch=1))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.response_sent(ledger, request, vote_response(is_granted=True, epoch=1))
    store(disks, leader_epoch=1, voted_id=2)
    promises.response_sent(ledger, request, vote_response(is_granted=True, epoch=1))


@pytest.mark.parametrize("is_pre_vote", [False, True])
def test_a_candidate_is_a_voter(disks: QuorumDisks, promises: PromiseCheck, is_pre_vote: bool) -> None:
    """By its own log: by its id and directory, or at kraft.version 0 by its id."""
    store(disks, leader_epoch=1, voted_id=1)
    ledger, other = disks.ledgers[1], attrs.evolve(ONE, directory_id=TWO.directory_id)
    request = vote_request(ONE, 1, END, is_pre_vote=is_pre_vote)
    ledger.voter_sets.append(NamedVoters(-1, frozenset([other, TWO])))
    with pytest.raises(ViolationError, match="candidates-are-voters"):
        promises.request_sent(ledger, request)
    ledger.levels.append((-1, 0))
    promises.request_sent(ledger, request)


@pytest.mark.parametrize("is_pre_vote", [False, True])
def test_a_candidate_names_its_log(disks: QuorumDisks, promises: PromiseCheck, is_pre_vote: bool) -> None:
    """All of it, once it is durable, with the last epoch that it has written in, or has begun at its end."""

    def ask(end_offset: int, epoch: int) -> None:
        request = vote_request(ONE, 2, OffsetAndEpoch(end_offset, epoch), is_pre_vote=is_pre_vote)
        promises.request_sent(disks.ledgers[1], request)

    store(disks, leader_epoch=2, voted_id=1)
    disks.append((1,), 1)
    with pytest.raises(ViolationError, match="candidates-name-their-log"):
        ask(1, 1)
    disks.sync(1)
    ask(1, 1)
    for end_offset, epoch in ((0, 1), (2, 1), (1, 0), (1, 2)):
        with pytest.raises(ViolationError, match="candidates-name-their-log"):
            ask(end_offset, epoch)
    disks.lead(1, 2)
    ask(1, 2)
    disks.append((1,), 2)
    disks.sync(1)
    ask(2, 2)
    with pytest.raises(ViolationError, match="candidates-name-their-log"):
        ask(1, 2)


def refuse(disks: QuorumDisks, promises: PromiseCheck, end: OffsetAndEpoch = END, epoch: int = 2) -> None:
    """Let replica 1 refuse its vote to replica 2."""
    promises.response_sent(
        disks.ledgers[1], vote_request(TWO, epoch, end), vote_response(is_granted=False, epoch=epoch)
    )


def test_a_vote_is_refused_for_a_reason(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """Another vote, a leader, a later epoch, a better log, or something lost; an equal log is no reason, nor none."""
    reasons = ({"voted_id": 3}, {"voted_id": 1}, {"leader_id": 3}, {"leader_id": 1})
    for epoch, reason in enumerate(reasons, 1):
        store(disks, leader_epoch=epoch, **reason)
        refuse(disks, promises, epoch=epoch)
    store(disks, leader_epoch=9)
    refuse(disks, promises, epoch=8)
    for epoch, reason in enumerate(({}, {"voted_id": 2}), 10):
        store(disks, leader_epoch=epoch, **reason)
        with pytest.raises(ViolationError, match="votes-are-given"):
            refuse(disks, promises, epoch=epoch)


@pytest.mark.parametrize(
    ("end_offset", "epoch", "is_better"), [(1, 1, True), (1, 2, False), (2, 1, False), (9, 0, True)]
)
def test_a_better_log_is_a_reason(
    disks: QuorumDisks, promises: PromiseCheck, end_offset: int, epoch: int, is_better: bool
) -> None:
    """By the epoch of the last record first, and then by the log end."""
    store(disks, leader_epoch=3)
    disks.append((1,), 1, count=2)
    outcome = contextlib.nullcontext() if is_better else pytest.raises(ViolationError, match="votes-are-given")
    with outcome:
        refuse(disks, promises, OffsetAndEpoch(end_offset, epoch), 3)


def test_who_has_lost_something_refuses(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A record, or a vote; an error and a pre-vote are no refusals."""
    store(disks, leader_epoch=2)
    promises.response_sent(
        disks.ledgers[1], vote_request(TWO, 2, END), vote_response(is_granted=False, epoch=2, error=74)
    )
    pre_vote = vote_request(TWO, 2, END, is_pre_vote=True)
    promises.response_sent(disks.ledgers[1], pre_vote, vote_response(is_granted=False, epoch=2))
    disks.ledgers[1].is_vote_lost = True
    refuse(disks, promises)
    disks.ledgers[1].is_vote_lost, disks.ledgers[1].quarantine_end = False, 1
    refuse(disks, promises)


@pytest.mark.parametrize(("healed_epoch", "is_reason"), [(1, False), (2, True), (3, True)])
def test_a_refusal_may_have_been_decided_before_a_quarantine_ended(
    disks: QuorumDisks, promises: PromiseCheck, healed_epoch: int, is_reason: bool
) -> None:
    """In the epoch of the vote, or a later one: the answer leaves when the epoch is stored."""
    store(disks, leader_epoch=2)
    ledger = disks.ledgers[1]
    ledger.quarantine_end, ledger.requested_epoch = 1, healed_epoch
    ledger.synced_to(1)
    assert not ledger.is_quarantined
    with contextlib.nullcontext() if is_reason else pytest.raises(ViolationError, match="votes-are-given"):
        refuse(disks, promises)


def test_who_began_an_epoch_and_wrote_nothing_has_the_better_log(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """Its log is of that epoch, whatever its last record is of."""
    store(disks, leader_epoch=5)
    disks.append((1,), 1, count=2)
    disks.ledgers[1].epoch_start = (4, 1)
    with pytest.raises(ViolationError, match="votes-are-given"):
        refuse(disks, promises, OffsetAndEpoch(2, 3), 5)
    disks.ledgers[1].epoch_start = (4, 2)
    refuse(disks, promises, OffsetAndEpoch(2, 3), 5)


def test_a_response_names_a_committed_high_watermark(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A leader tells no high watermark above what is committed."""
    store(disks, leader_epoch=1, leader_id=1)
    request, ledger = fetch_request(TWO, 1, END), disks.ledgers[1]
    promises.response_sent(ledger, request, fetch_response(1, 1, high_watermark=0))
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        promises.response_sent(ledger, request, fetch_response(1, 1, high_watermark=1))


def described(epoch: int, high_watermark: int = 0) -> DescribeQuorumResponse:
    """Return what a leader tells of a quorum without voters."""
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=0,
        leader_id=1,
        leader_epoch=epoch,
        high_watermark=high_watermark,
        current_voters=(),
        observers=(),
    )
    topic = DescribeQuorumResponseTopicData(topic_name="t", partitions=(partition,))
    return DescribeQuorumResponse(error_code=0, topics=(topic,))


def updated(epoch: int) -> UpdateRaftVoterResponse:
    """Return the answer to a voter that has reported itself."""
    leader = UpdateRaftVoterResponseCurrentLeader(leader_id=1, leader_epoch=epoch, host="localhost", port=1)
    return UpdateRaftVoterResponse(throttle_time_ms=0, error_code=0, current_leader=leader)


REQUESTS: typing.Final[tuple[typing.Callable[[int], RaftRequest], ...]] = (
    lambda epoch: vote_request(ONE, epoch, END, is_pre_vote=True),
    lambda epoch: begin_quorum_epoch_request(1, epoch),
    lambda epoch: end_quorum_epoch_request(1, epoch),
    lambda epoch: fetch_request(ONE, epoch, END, high_watermark=-1),
    lambda epoch: fetch_snapshot_request(ONE, epoch, OffsetAndEpoch(3, 1)),
    lambda epoch: update_voter_request(ONE, epoch),
)
RESPONSES: typing.Final[tuple[typing.Callable[[int], RaftResponse], ...]] = (
    lambda epoch: vote_response(is_granted=False, epoch=epoch),
    lambda epoch: begin_quorum_epoch_response(epoch),
    lambda epoch: end_quorum_epoch_response(epoch),
    lambda epoch: fetch_response(epoch),
    lambda epoch: fetch_snapshot_response(epoch, 1, OffsetAndEpoch(3, 1)),
    updated,
    described,
)


def test_each_message_has_its_row() -> None:
    """A message without a row, or one that names an epoch and has a row that says it names none, is found here."""
    assert set(NAMED_EPOCHS) == set(RAFT_MESSAGES.values())
    naming = {type(each(1)) for each in (*REQUESTS, *RESPONSES)}
    assert naming == {each for each in NAMED_EPOCHS if names_leader_epoch(each)}
    assert {NAMED_EPOCHS[type(each(7))](each(7)) for each in (*REQUESTS, *RESPONSES)} == {7}


def names_leader_epoch(message: type) -> bool:
    """Whether a class of messages, or of their parts, has a field for the epoch of a leader."""
    for each in attrs.fields(message):
        is_of_vote = message.__name__.startswith("VoteRequest") and each.name == "replica_epoch"
        parts = (each.type, *typing.get_args(each.type))
        if each.name.endswith("leader_epoch") or is_of_vote:
            return True
        if any(attrs.has(part) and names_leader_epoch(part) for part in parts if isinstance(part, type)):
            return True
    return False


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_request_names_a_stored_epoch(
    disks: QuorumDisks, promises: PromiseCheck, request_of: typing.Callable[[int], RaftRequest]
) -> None:
    """The stored epoch, and not the next one."""
    store(disks, leader_epoch=4, leader_id=1)
    promises.request_sent(disks.ledgers[1], request_of(4))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], request_of(5))


@pytest.mark.parametrize("response_of", RESPONSES)
def test_a_response_names_a_stored_epoch(
    disks: QuorumDisks, promises: PromiseCheck, response_of: typing.Callable[[int], RaftResponse]
) -> None:
    """The stored epoch, and not the next one, whatever the request was."""
    store(disks, leader_epoch=4, leader_id=1)
    promises.response_sent(disks.ledgers[1], add_voter_request(TWO), response_of(4))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.response_sent(disks.ledgers[1], add_voter_request(TWO), response_of(5))


def test_a_leader_that_resigns_has_stored_that_it_leads(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A resignation is of an epoch that the sender leads."""
    store(disks, leader_epoch=1, leader_id=2)
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], end_quorum_epoch_request(1, 1))


def test_other_messages_name_a_committed_high_watermark(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A Fetch, and an answer about the quorum, name none above what is committed."""
    store(disks, leader_epoch=1, leader_id=1)
    ledger, question = disks.ledgers[1], describe_quorum_request()
    promises.request_sent(ledger, fetch_request(ONE, 1, END, high_watermark=0))
    promises.response_sent(ledger, question, described(1, high_watermark=0))
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        promises.request_sent(ledger, fetch_request(ONE, 1, END, high_watermark=1))
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        promises.response_sent(ledger, question, described(1, high_watermark=1))


def rot(disks: QuorumDisks) -> None:
    """Let the disk of replica 1 lose one of two batches of epoch 1."""
    store(disks, leader_epoch=1, leader_id=1)
    disks.append((1,), 1, 2)
    disks.sync(1)
    disks.witness.rotted(disks.ledgers[1], 1)


BY_CANDIDATES_AND_LEADERS: typing.Final[tuple[RaftRequest, ...]] = (
    vote_request(ONE, 1, OffsetAndEpoch(2, 1), is_pre_vote=True),
    vote_request(ONE, 1, OffsetAndEpoch(2, 1)),
    begin_quorum_epoch_request(1, 1),
    fetch_request(ONE, 1, END, high_watermark=0),
    fetch_snapshot_request(ONE, 1, OffsetAndEpoch(3, 1)),
    update_voter_request(ONE, 1),
)
BY_VOTERS = (*BY_CANDIDATES_AND_LEADERS[:3], update_voter_request(ONE, 1))


@pytest.mark.parametrize("request_", BY_CANDIDATES_AND_LEADERS, ids=lambda each: type(each).__name__)
def test_a_replica_in_quarantine_neither_stands_nor_leads_nor_counts(
    disks: QuorumDisks, promises: PromiseCheck, request_: RaftRequest
) -> None:
    """It asks for no votes, and announces nothing; its id is in no Fetch. When it is whole, all of that is right."""
    rot(disks)
    ledger = disks.ledgers[1]
    with pytest.raises(ViolationError, match="quarantine"):
        promises.request_sent(ledger, request_)
    disks.append((1,), 1)
    disks.sync(1)
    promises.request_sent(ledger, request_)


@pytest.mark.parametrize("request_", BY_VOTERS, ids=lambda each: type(each).__name__)
def test_who_may_have_forgotten_a_vote_neither_stands_nor_leads(
    disks: QuorumDisks, promises: PromiseCheck, request_: RaftRequest
) -> None:
    """Nor does it vote, or promise to; it fetches, and says not as whom."""
    store(disks, leader_epoch=1, leader_id=1)
    disks.append((1,), 1, count=2)
    disks.sync(1)
    ledger = disks.ledgers[1]
    promises.request_sent(ledger, request_)
    ledger.is_vote_lost = True
    with pytest.raises(ViolationError, match="forgotten-votes"):
        promises.request_sent(ledger, request_)
    for is_pre_vote in (False, True):
        ballot = vote_request(TWO, 1, END, is_pre_vote=is_pre_vote)
        with pytest.raises(ViolationError, match="forgotten-votes"):
            promises.response_sent(ledger, ballot, vote_response(is_granted=True, epoch=1))
    nameless = ReplicaKey(-1, ONE.directory_id)
    promises.request_sent(ledger, fetch_request(nameless, 1, END, high_watermark=0))
    with pytest.raises(ViolationError, match="forgotten-votes"):
        promises.request_sent(ledger, fetch_request(ONE, 1, END, high_watermark=0))


def test_a_replica_in_quarantine_fetches_without_its_id(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """Nobody is counted for such a Fetch."""
    rot(disks)
    nameless = ReplicaKey(-1, ONE.directory_id)
    promises.request_sent(disks.ledgers[1], fetch_request(nameless, 1, END, high_watermark=0))
    promises.request_sent(disks.ledgers[1], fetch_snapshot_request(nameless, 1, OffsetAndEpoch(3, 1)))


@pytest.mark.parametrize("is_pre_vote", [False, True])
def test_a_replica_in_quarantine_does_not_vote(disks: QuorumDisks, promises: PromiseCheck, is_pre_vote: bool) -> None:
    """It may refuse; when it is whole, it may grant."""
    rot(disks)
    store(disks, leader_epoch=2, voted_id=2)
    ledger, request = disks.ledgers[1], vote_request(TWO, 2, END, is_pre_vote=is_pre_vote)
    promises.response_sent(ledger, request, vote_response(is_granted=False, epoch=2))
    granted = vote_response(is_granted=True, epoch=2)
    with pytest.raises(ViolationError, match="quarantine"):
        promises.response_sent(ledger, request, granted)
    disks.append((1,), 1)
    disks.sync(1)
    promises.response_sent(ledger, request, granted)


@pytest.mark.parametrize(
    ("asked", "is_right"),
    [
        *((ONE, True), (ReplicaKey(1, None), True), (ReplicaKey(-1, None), True), (TWO, False)),
        *((ReplicaKey(1, TWO.directory_id), False), (ReplicaKey(2, ONE.directory_id), False)),
    ],
)
def test_only_who_was_asked_answers(
    disks: QuorumDisks, promises: PromiseCheck, asked: ReplicaKey, is_right: bool
) -> None:
    """By a vote, a pre-vote, or an acknowledgement; a refusal and an error may come from anybody."""
    store(disks, leader_epoch=1, voted_id=2)
    ledger = disks.ledgers[1]
    pairs = (
        (vote_request(TWO, 1, END, to=asked), vote_response(is_granted=True, epoch=1)),
        (vote_request(TWO, 1, END, to=asked, is_pre_vote=True), vote_response(is_granted=True, epoch=1)),
        (begin_quorum_epoch_request(2, 1, to=asked), begin_quorum_epoch_response(1, 2)),
    )
    for request, response in pairs:
        with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="addressees-answer"):
            promises.response_sent(ledger, request, response)
    promises.response_sent(ledger, pairs[0][0], vote_response(is_granted=False, epoch=1, error=119))
    promises.response_sent(ledger, pairs[2][0], begin_quorum_epoch_response(1, 2, error=119))


@pytest.mark.parametrize(
    ("served", "left_out", "is_right"),
    [
        *(((0, 1), 0, True), ((0, 1, 2), 0, False), ((2,), 0, False), ((3,), 0, True)),
        *(((0, 1, 2), 1, True), ((0, 1, 2), 60, True), ((2, 3), 1, False)),
    ],
)
def test_a_voter_set_is_served_once_it_is_durable(
    disks: QuorumDisks, promises: PromiseCheck, served: tuple[int, ...], left_out: int, is_right: bool
) -> None:
    """Records before it are served, and those after it are none of this rule; nor is a batch that is cut off."""
    store(disks, leader_epoch=1, leader_id=1)
    disks.append((1,), 1, count=4)
    ledger = disks.ledgers[1]
    ledger.voter_sets.append(NamedVoters(2, frozenset([ONE])))
    request = fetch_request(TWO, 1, OffsetAndEpoch(served[0], 1))
    records = b"".join(records_at(each, 1, 1) for each in served)
    response = fetch_response(1, 1, records=records[: len(records) - left_out])
    with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="voter-sets-are-held"):
        promises.response_sent(ledger, request, response)
    disks.sync(1)
    promises.response_sent(ledger, request, response)


@pytest.mark.parametrize(
    ("fetch_offset", "records", "is_right"),
    [
        (0, b"", True),
        (0, records_at(0, 1, 1), True),
        (0, records_at(0, 1, 1) + records_at(1, 1, 1), True),
        (1, records_at(1, 1, 1), True),
        (0, records_at(0, 1, 1) + records_at(1, 1, 1)[:-1], True),
        (0, records_at(0, 1, 1) + records_at(1, 1, 1)[:60], True),
        (0, records_at(0, 1, 1) + records_at(1, 2, 1)[:-1], False),
        (0, records_at(1, 1, 1), False),
        (0, records_at(0, 2, 1), False),
        (0, records_at(0, 1, 2), False),
        (0, records_at(0, 1, 1)[:-1] + b"?", False),
        (0, bytes(100), False),
        (0, records_at(0, 1, 1) + records_at(1, 1, 1) + records_at(2, 1, 1), False),
    ],
)
def test_a_fetch_gets_what_the_log_was_given(
    disks: QuorumDisks, promises: PromiseCheck, fetch_offset: int, records: bytes, *, is_right: bool
) -> None:
    """From the offset on that was asked for, byte by byte; the last batch may be cut off."""
    store(disks, leader_epoch=1, leader_id=1)
    disks.append((1,), 1, 2)
    request = fetch_request(TWO, 1, OffsetAndEpoch(fetch_offset, 1), high_watermark=0)
    response = fetch_response(1, 1, records=records, high_watermark=0)
    if is_right:
        promises.response_sent(disks.ledgers[1], request, response)
    else:
        with pytest.raises(ViolationError, match="fetched-batches-are-stored"):
            promises.response_sent(disks.ledgers[1], request, response)
