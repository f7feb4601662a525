# SPDX-License-Identifier: Apache-2.0
"""The core as an embedder sees it: no input breaks a promise, and only misuse raises an error."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import TruncationBelowHighWatermarkError
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.election_states import check_transition
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    Effect,
    EnterEpoch,
    FlushLog,
    RaiseHighWatermark,
    ReadLog,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.quorum.seam.log_view import LogView, control_record_view, log_view
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.file_logs import make_snapshot
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_request,
    end_quorum_epoch_response,
    fetch_request,
    fetch_response,
    records_at,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import LISTENER, DictatedDraws, SingleReplica, log_with, replica_key, voter_set_of

IDENTITY = ReplicaIdentity(
    key=LOCAL,
    cluster_id=CLUSTER,
    endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
    listener=LISTENER,
    bootstrap_servers=(HostPort("b1", 9991),),
)
RECEIVED = ReceivedRequest("token", 2, LISTENER)


def replica(
    *voter_ids: int, log: tuple[tuple[int, int], ...] = ((1, 3),), stored: QuorumStateData | None = None
) -> SingleReplica:
    """Return replica 1 with a log of three records of epoch 1, in a quorum of voters."""
    voters = voter_set_of(map(replica_key, voter_ids))
    return SingleReplica(IDENTITY, QuorumConfig(), log=log_with(log, voters), stored=stored)


class SlowDisk:
    """LocalReplica 1, whose disk does nothing before it is told to: effects on it wait, in their order.

    After each input it checks what no replica may break: promises that are stored, and messages that promise what is
    not stored.
    """

    def __init__(self) -> None:
        self.twin = replica(1, 2, 3)
        self.raft = Raft(
            IDENTITY,
            QuorumConfig(),
            DictatedDraws(),
            StartingPoint(log=self._view()),
            monotonic_ms=0,
            wall_ms=0,
        )
        self.durable: QuorumStateData | None = None
        self.waiting: list[Effect] = []
        self.sent: list[SendRequest] = []
        self.marks: list[int] = []
        self.now_ms = 0
        self.collect()

    def _view(self) -> LogView:
        return log_view(self.twin.log, control_record_view(self.twin.machine))

    @property
    def end(self) -> OffsetAndEpoch:
        """The log end, exclusive."""
        return OffsetAndEpoch(self.twin.log.end_offset.offset, self.twin.log.last_fetched_epoch)

    def collect(self) -> None:
        """Take the effects, and check the messages among them."""
        for effect in self.raft.take_effects():
            match effect:
                case SendRequest():
                    self.sent.append(effect)
                    self.check_request(effect.message)
                case SendResponse():
                    self.check_response(effect.message)
                case _:
                    self.waiting.append(effect)

    def check_request(self, message: RaftRequest) -> None:
        """A candidate's vote for itself is durable, and so are the log that it claims, and all that a Fetch claims."""
        durable_epoch = -1 if self.durable is None else self.durable.leader_epoch
        match message:
            case VoteRequest():
                asked = message.topics[0].partitions[0]
                assert asked.replica_epoch <= durable_epoch
                if not asked.pre_vote:
                    assert asked.last_offset == self.twin.log.flushed_offset == self.twin.log.end_offset.offset
                    assert self.durable is not None
                    assert asked.replica_epoch < durable_epoch or self.durable.voted_id == 1
            case FetchRequest():
                part = message.topics[0].partitions[0]
                assert part.current_leader_epoch <= durable_epoch
                assert part.fetch_offset == self.twin.log.flushed_offset == self.twin.log.end_offset.offset

    def check_response(self, message: RaftResponse) -> None:
        """A vote that is granted is durable, and so is the epoch that an answer names."""
        topics = getattr(message, "topics", ())
        if not topics:
            return
        answer = topics[0].partitions[0]
        assert self.durable is not None
        assert answer.leader_epoch <= self.durable.leader_epoch
        if getattr(answer, "vote_granted", False) and answer.leader_epoch == self.durable.leader_epoch:
            self.votes_told = (answer.leader_epoch, self.durable.voted_id)

    def work(self) -> None:
        """Let the disk do what waits longest."""
        if not self.waiting:
            return
        effect, log = self.waiting.pop(0), self.twin.log
        match effect:
            case StoreElectionState():
                if self.durable is not None:
                    check_transition(effect.state, self.durable, may_vote=True)
                self.durable = effect.state
                self.raft.stored(effect.number)
                return
            case RaiseHighWatermark():
                self.marks.append(effect.offset)
                log.update_high_watermark(effect.offset)
                return
            case ReadLog():
                read = log.read(effect.offset, Isolation.UNCOMMITTED, effect.max_size_bytes)
                self.raft.log_read(effect.number, bytes(read.records))
                return
            case EnterEpoch():
                log.initialize_leader_epoch(effect.epoch)
            case AppendAsLeader():
                log.append_as_leader(effect.batches, effect.epoch)
            case AppendAsFollower():
                log.append_as_follower(effect.records, effect.epoch)
            case FlushLog():
                log.flush()
            case TruncateToEndOffset():
                try:
                    log.truncate_to_end_offset(effect.end_offset)
                except TruncationBelowHighWatermarkError as error:  # A peer's high watermark may be inside a batch.
                    self.raft.effect_failed(effect.number, str(error))
                    return
        self.twin.machine.truncate_new_entries(log.end_offset.offset)
        number = getattr(effect, "number", 0)
        self.raft.log_changed(number, self._view())

    def response(self, draw: random.Random, sent: SendRequest) -> RaftResponse:
        """Return any response to a request."""
        epoch = max(0, self.raft.role.epoch + draw.choice((-1, 0, 0, 0, 1)))
        leader = draw.choice((-1, 2, 3))
        error = draw.choice((0, 0, 0, 0, 6, 7, 8, 42, 74, 75, 125, 999))
        match sent.message:
            case VoteRequest() if draw.random() < 0.7:
                return vote_response(is_granted=True, epoch=self.raft.role.epoch)
            case VoteRequest():
                return vote_response(is_granted=draw.random() < 0.5, epoch=epoch, leader=leader, error=error)
            case EndQuorumEpochRequest():
                return end_quorum_epoch_response(epoch, leader, error)
            case BeginQuorumEpochRequest():
                return begin_quorum_epoch_response(epoch, leader, error)
        role, end = self.raft.role, self.twin.log.end_offset.offset
        if isinstance(role, Follower) and draw.random() < 0.7:
            epoch, leader, error = role.epoch, role.leader.id, 0
        records = records_at(end, max(epoch, 1), draw.randint(1, 3)) if draw.random() < 0.5 else b""
        diverging = OffsetAndEpoch(draw.randint(0, end), draw.randint(0, 3)) if draw.random() < 0.2 else None
        mark = draw.randint(-1, end + 2)
        return fetch_response(epoch, leader, error=error, records=records, high_watermark=mark, diverging=diverging)


def _inputs(disk: SlowDisk, draw: random.Random) -> Callable[[], None]:
    """Return some input."""
    epoch = max(0, disk.raft.role.epoch + draw.choice((-1, 0, 0, 1, 2)))
    other, end = replica_key(draw.choice((2, 3, 4))), OffsetAndEpoch(draw.randint(0, 6), draw.randint(0, 3))

    def tick() -> None:
        disk.now_ms += draw.choice((0, 1, 20, 500, 1000, 3000))
        disk.raft.tick(disk.now_ms - draw.choice((0, 0, 5)), 0)

    def answer() -> None:
        if disk.sent:
            sent = draw.choice(disk.sent[-4:])
            disk.raft.receive_response(sent.number, disk.response(draw, sent))

    requests: list[RaftRequest] = [
        vote_request(other, epoch, end, is_pre_vote=draw.random() < 0.5),
        begin_quorum_epoch_request(other.id, epoch),
        end_quorum_epoch_request(other.id, epoch, (LOCAL,)),
        fetch_request(other, epoch, draw.choice((end, disk.end))),
    ]
    request = draw.choice(requests)
    return draw.choice(
        (tick, answer, answer, answer, disk.work, disk.work, lambda: disk.raft.receive_request(request, RECEIVED))
    )


@given(st.integers(0, 2**32))
def test_no_sequence_of_inputs_breaks_a_promise(seed: int) -> None:
    """With a slow disk, late and repeated answers, and clocks that go back: ``SlowDisk`` checks each message."""
    draw, disk = random.Random(seed), SlowDisk()
    epoch = 0
    for _ in range(60):
        _inputs(disk, draw)()
        disk.collect()
        assert disk.raft.role.epoch >= epoch
        assert disk.marks == sorted(disk.marks)
        epoch = disk.raft.role.epoch
        assert disk.raft.deadline_ms is None or disk.raft.deadline_ms > disk.now_ms - 5


def test_the_runs_with_a_slow_disk_reach_every_role() -> None:
    """The property above would prove nothing of roles that its runs never reach."""
    reached = set()
    for seed in range(100):
        draw, disk = random.Random(seed), SlowDisk()
        for _ in range(60):
            _inputs(disk, draw)()
            disk.collect()
            reached.add(type(disk.raft.role))
    assert reached >= {Unattached, Prospective, Candidate, Leader, Follower}


# The seam


def test_a_vote_is_told_when_it_is_stored() -> None:
    """Until the driver reports the state, there is no answer to take."""
    disk = SlowDisk()
    disk.work()
    disk.raft.take_effects()
    disk.raft.receive_request(vote_request(replica_key(2), 1, OffsetAndEpoch(3, 1)), RECEIVED)
    disk.raft.receive_request(vote_request(replica_key(2), 2, OffsetAndEpoch(3, 1)), RECEIVED)
    stores = [each for each in disk.raft.take_effects() if isinstance(each, StoreElectionState)]
    assert [each.state.voted_id for each in stores] == [-1, 2, -1, 2][-len(stores) :]
    for each in stores[:-1]:
        disk.raft.stored(each.number)
    assert not any(isinstance(each, SendResponse) and _is_granted(each, 2) for each in disk.raft.take_effects())
    disk.raft.stored(stores[-1].number)
    assert any(isinstance(each, SendResponse) and _is_granted(each, 2) for each in disk.raft.take_effects())


def _is_granted(sent: SendResponse, epoch: int) -> bool:
    message = sent.message
    assert isinstance(message, VoteResponse)
    answer = message.topics[0].partitions[0]
    return answer.vote_granted and answer.leader_epoch == epoch


def test_no_election_begins_while_the_log_is_written() -> None:
    """A candidate goes on after a crash, so it may ask for votes only with a log that a crash cannot shorten."""
    core = replica(1, 2, 3, stored=QuorumStateData(1, leader_id=2, leader_epoch=1))
    fetch = core.take_requests()[-1]
    core.raft.receive_response(fetch.number, fetch_response(1, 2, records=records_at(3, 1, 2)))
    append, flush = core.raft.take_effects()
    assert isinstance(append, AppendAsFollower)
    assert isinstance(flush, FlushLog)
    core.raft.tick(10_000, 0)
    assert isinstance(core.raft.role, Follower)
    core.log.append_as_follower(append.records, append.epoch)
    core.raft.log_changed(append.number, log_view(core.log, control_record_view(core.machine)))
    core.raft.tick(20_000, 0)
    assert isinstance(core.raft.role, Follower)
    core.log.flush()
    core.raft.log_changed(flush.number, log_view(core.log, control_record_view(core.machine)))
    assert isinstance(core.raft.role, Prospective)


def test_no_fetch_is_sent_while_the_log_is_written() -> None:
    """Append and flush are two effects; the next Fetch waits for the second one's report."""
    core = replica(1, 2, 3, stored=QuorumStateData(1, leader_id=2, leader_epoch=1))
    fetch = core.take_requests()[-1]
    core.raft.receive_response(fetch.number, fetch_response(1, 2, records=records_at(3, 1, 2)))
    append, flush = core.raft.take_effects()
    assert isinstance(append, AppendAsFollower)
    assert isinstance(flush, FlushLog)
    core.raft.tick(100, 0)
    assert core.raft.take_effects() == []
    core.log.append_as_follower(append.records, append.epoch)
    core.raft.log_changed(append.number, log_view(core.log, control_record_view(core.machine)))
    assert core.raft.take_effects() == []
    core.log.flush()
    core.raft.log_changed(flush.number, log_view(core.log, control_record_view(core.machine)))
    (again,) = core.raft.take_effects()
    assert isinstance(again, SendRequest)
    assert isinstance(again.message, FetchRequest)
    assert again.message.topics[0].partitions[0].fetch_offset == 5


@pytest.mark.parametrize(
    ("is_voter", "can_become_voter", "kinds"),
    [
        (True, True, [AppendAsFollower, FlushLog]),
        (True, False, [AppendAsFollower, FlushLog]),
        (False, True, [AppendAsFollower, FlushLog]),
        (False, False, [AppendAsFollower]),
    ],
)
def test_observers_that_may_become_voters_flush(
    is_voter: bool, can_become_voter: bool, kinds: list[type[Effect]]
) -> None:
    """The leader counts a new voter at once, with all that it has (KAFKA-17332). Other observers are never counted."""
    voters = voter_set_of(map(replica_key, (1, 2) if is_voter else (2, 3)))
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=IDENTITY.endpoints,
        listener=LISTENER,
        can_become_voter=can_become_voter,
    )
    stored = QuorumStateData(1, leader_id=2, leader_epoch=1)
    core = SingleReplica(identity, QuorumConfig(), log=log_with([(1, 3)], voters), stored=stored)
    fetch = core.take_requests()[-1]
    core.raft.receive_response(fetch.number, fetch_response(1, 2, records=records_at(3, 1, 2)))
    assert [type(each) for each in core.raft.take_effects()] == kinds


# Misuse and failures


def test_a_result_that_is_not_due_is_misuse() -> None:
    """Reports of effects that were never handed out raise, and change nothing."""
    core = replica(1, 2, 3)
    role = core.raft.role
    with pytest.raises(ValueError, match="effect 77 is not"):
        core.raft.stored(77)
    with pytest.raises(ValueError, match="effect 77 is not the work on the log"):
        core.raft.log_changed(77, log_view(core.log, control_record_view(core.machine)))
    core.raft.log_read(77, b"")
    core.raft.receive_response(77, vote_response(is_granted=True, epoch=1))
    core.raft.request_failed(77)
    assert core.raft.role == role
    assert core.raft.take_effects() == []


def test_a_response_of_another_kind_is_misuse() -> None:
    """A decoder that mixes up correlation ids is a bug of the driver."""
    core = replica(1, 2, 3)
    fetch = core.take_requests()[-1]
    with pytest.raises(ValueError, match="VoteResponse to a FetchRequest"):
        core.raft.receive_response(fetch.number, vote_response(is_granted=True, epoch=1))


def test_a_message_that_is_no_request_is_misuse() -> None:
    """The error names its type."""
    response: Any = vote_response(is_granted=True, epoch=1)
    with pytest.raises(TypeError, match="VoteResponse"):
        replica(1, 2, 3).raft.receive_request(response, RECEIVED)


def test_a_failed_disk_stops_the_replica_for_good() -> None:
    """It sends nothing that waited, answers nothing, and has no deadline. The first reason is kept."""
    disk = SlowDisk()
    disk.work()
    disk.raft.take_effects()
    disk.raft.receive_request(vote_request(replica_key(2), 1, OffsetAndEpoch(3, 1)), RECEIVED)
    (store, *_) = disk.raft.take_effects()
    disk.raft.effect_failed(store.number, "no space")
    disk.raft.effect_failed(store.number, "again")
    assert disk.raft.halt_reason == f"effect {store.number}: no space"
    assert disk.raft.deadline_ms is None
    disk.raft.receive_request(vote_request(replica_key(3), 9, OffsetAndEpoch(3, 1)), RECEIVED)
    disk.raft.tick(10_000, 0)
    disk.raft.stored(store.number)
    assert disk.raft.take_effects() == []


def test_a_voter_that_knows_no_pre_votes_makes_a_candidate_at_once() -> None:
    """The request could be sent in no version: as in Kafka, the replica then asks for votes."""
    core = replica(1, 2, 3)
    core.sleep(1000)
    asked = next(each for each in core.take_requests() if each.destination.id == 2)
    core.raft.request_failed(asked.number, is_version_unsupported=True)
    core.settle()
    assert isinstance(core.raft.role, Candidate)


def test_a_clock_that_goes_back_stands_still() -> None:
    """An election that was due stays due, and none begins early."""
    core = replica(1, 2, 3)
    core.raft.tick(999, 0)
    core.raft.tick(5, 0)
    assert isinstance(core.raft.role, Unattached)
    core.raft.tick(1000, 0)
    assert isinstance(core.raft.role, Prospective)


def test_the_deadline_is_that_of_the_role_or_of_a_request() -> None:
    """A Fetch to a bootstrap server times out after 2,000 ms, the election after 1,000."""
    core = replica(1, 2, 3)
    assert core.raft.deadline_ms == 1000
    core.sleep(1000)
    assert core.raft.deadline_ms == 2000


def test_a_quarantined_log_neither_votes_nor_stands() -> None:
    """It has lost records that may have been acknowledged (DECISIONS.md 15)."""
    core = replica(1, 2, 3)
    view = log_view(core.log, control_record_view(core.machine))
    damaged = LogView(view.state, view.flushed_offset, view.generation, view.control_records, is_quarantined=True)
    raft = Raft(IDENTITY, QuorumConfig(), DictatedDraws(), StartingPoint(log=damaged), monotonic_ms=0, wall_ms=0)
    for effect in raft.take_effects():
        if isinstance(effect, StoreElectionState):
            raft.stored(effect.number)
    raft.receive_request(vote_request(replica_key(2), 1, OffsetAndEpoch(9, 0), is_pre_vote=True), RECEIVED)
    raft.tick(50_000, 0)
    assert isinstance(raft.role, Unattached)
    assert raft.role.voted_key is None


def test_a_leader_resigned_by_a_restart_announces_it_until_acknowledged() -> None:
    """A voter that does not answer is asked again; one that has acknowledged is not."""
    core = replica(1, 2, 3, stored=QuorumStateData(1, leader_id=1, leader_epoch=1))
    assert isinstance(core.raft.role, Resigned)
    first = {each.destination.id: each for each in core.take_requests()}
    assert set(first) == {2, 3}
    core.respond(first[2].number, end_quorum_epoch_response(1))
    core.raft.request_failed(first[3].number)
    core.settle()
    core.sleep(20)
    assert [each.destination.id for each in core.take_requests()] == [3]


def test_an_error_code_that_kafka_does_not_send_is_a_failure() -> None:
    """The peer is asked again after the pause."""
    core = replica(1, 2, 3, stored=QuorumStateData(1, leader_id=2, leader_epoch=1))
    fetch = core.take_requests()[-1]
    core.respond(fetch.number, fetch_response(1, 2, error=ErrorCode.INVALID_REQUEST))
    assert isinstance(core.raft.role, Follower)
    assert [each.destination.id for each in core.take_requests()] == [-2]


def test_the_high_watermark_starts_at_the_newest_snapshot() -> None:
    """The first Fetch says so. A snapshot has committed records only; Kafka begins with none (DECISIONS.md 54)."""
    log = log_with([(1, 3), (1, 3)], voter_set_of(map(replica_key, (1, 2, 3))))
    log.update_high_watermark(3)
    make_snapshot(log, 3)
    core = SingleReplica(IDENTITY, QuorumConfig(), log=log)
    assert core.raft.high_watermark == 3
    fetch = core.take_requests()[-1].message
    assert isinstance(fetch, FetchRequest)
    assert fetch.topics[0].partitions[0].high_watermark == 3


def test_a_replica_without_committed_records_knows_no_high_watermark() -> None:
    """The first Fetch says -1, as Kafka's does."""
    core = replica(1, 2, 3)
    assert core.raft.high_watermark is None
    fetch = core.take_requests()[-1].message
    assert isinstance(fetch, FetchRequest)
    assert fetch.topics[0].partitions[0].high_watermark == -1
