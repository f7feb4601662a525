# SPDX-License-Identifier: Apache-2.0
"""The world of elections: the consensus core of replica 1, and the messages that it gets and sends.

A voter is written ``2``, a log end ``5@3``: end offset 5, exclusive, and the epoch of the last record. A log is written
as the records of its batches: ``1x3,2x2`` is three records of epoch 1, and two of epoch 2.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Candidate, Follower, Prospective, Resigned, Unattached, leader_id, voted_key
from raftlog.quorum.seam.effects import SendRequest, SendResponse
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.offset_notation import offset_and_epoch
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
from tests.scenarios.world import ArgumentTypes, CommandError, World, command
from tests.scenarios.worlds.slow_disk import SlowDisk, fail_next

_BOOTSTRAP: Final = (HostPort("b1", 9991), HostPort("b2", 9992))


class ElectionWorld(World):
    """LocalReplica 1, with the timeouts of Kafka's defaults. Its election timeout is 1,000 ms."""

    argument_types: ClassVar[ArgumentTypes] = {OffsetAndEpoch: offset_and_epoch}

    _replica: SingleReplica
    _sent: dict[int, SendRequest]
    _disk: SlowDisk | None = None

    @command
    def start(
        self,
        voters: tuple[int, ...],
        log: str = "",
        epoch: int = 0,
        leader: int = UNKNOWN_ID,
        voted: int = UNKNOWN_ID,
        may_vote: bool = True,
    ) -> str:
        """Start with a log and a stored election state; without an epoch the replica is a new one."""
        runs = [(int(each.split("x")[0]), int(each.split("x")[1])) for each in log.split(",") if each]
        directory = replica_key(voted).directory_id if voted >= 0 else None
        stored = QuorumStateData(1, leader, epoch, voted, directory) if epoch else None
        self._sent, self._disk = {}, None
        self._replica = SingleReplica(
            ReplicaIdentity(
                key=LOCAL,
                cluster_id=CLUSTER,
                endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
                listener=LISTENER,
                bootstrap_servers=_BOOTSTRAP,
            ),
            QuorumConfig(),
            log=log_with(runs, voter_set_of(map(replica_key, voters))),
            stored=stored,
            draws=DictatedDraws(),
            may_vote=may_vote,
        )
        return self._what_happened()

    @command
    def restart(self) -> str:
        """Start again with what is durable."""
        old = self._replica
        self._sent = {}
        if self._disk is not None:
            instance_of(old.log, MemoryLog).crash()
            self._disk = None
        self._replica = SingleReplica(
            old.identity, QuorumConfig(), log=old.log, stored=old.stored, draws=DictatedDraws()
        )
        return self._what_happened()

    @command
    def sleep(self, ms: int) -> str:
        """Let time pass."""
        self._replica.sleep(ms)
        return self._what_happened()

    @command
    def due(self) -> str:
        """Print when the core has something to do next, at the latest."""
        deadline_ms = self._replica.raft.deadline_ms
        return "nothing is due" if deadline_ms is None else f"due in {deadline_ms - self._replica.now_ms} ms"

    @command
    def resign(self, epoch: int, preferred: int | None = None) -> str:
        """Resign, in favour of a voter or of none."""
        self._replica.raft.resign(epoch, None if preferred is None else replica_key(preferred))
        self._replica.settle()
        return self._what_happened()

    # The disk, which is as fast as a call until it is slow

    @command
    def slow_disk(self) -> str:
        """Let work for the disk wait from now on. A restart ends this, and loses what was not durable."""
        if not hasattr(self, "_replica"):
            raise CommandError("no replica has started")
        self._disk = SlowDisk(self._replica)
        return self._what_happened()

    @command
    def done(self, kind: str) -> str:
        """The disk has done the work that waits: ``log``, which is a flush mostly, or ``election-state``."""
        if self._disk is None:
            raise CommandError("the disk is not slow")
        self._disk.end(kind)
        return self._what_happened()

    @command
    def fail(self, kind: str) -> str:
        """Let the next work of a kind fail: ``flush`` or ``election-state``."""
        fail_next(self._replica, kind)
        return f"the next {kind} will fail"

    # Requests

    @command
    def vote(
        self,
        candidate: int,
        epoch: int,
        end: OffsetAndEpoch,
        pre: bool = False,
        to: int = 1,
        directory: int | None = None,
        cluster: str = CLUSTER,
    ) -> str:
        """A candidate asks for a vote, or a pre-vote."""
        key = replica_key(candidate, directory)
        return self._request(vote_request(key, epoch, end, is_pre_vote=pre, to=replica_key(to), cluster_id=cluster))

    @command
    def begin(self, leader: int, epoch: int, to: int = 1) -> str:
        """A leader announces itself."""
        return self._request(begin_quorum_epoch_request(leader, epoch, to=replica_key(to)))

    @command
    def fetch(
        self,
        replica: int,
        end: OffsetAndEpoch,
        epoch: int | None = None,
        wait: int = 500,
        high_watermark: int | None = None,
        directory: int | None = None,
        cluster: str = CLUSTER,
    ) -> str:
        """A replica fetches; it knows the high watermark already, unless another one is given."""
        message = fetch_request(
            replica_key(replica, directory),
            self._epoch(epoch),
            end,
            max_wait_ms=wait,
            high_watermark=2**63 - 1 if high_watermark is None else high_watermark,
            cluster_id=cluster,
        )
        self._replica.request(replica, message, version=17)
        return self._what_happened()

    @command
    def end(self, leader: int, epoch: int, candidates: tuple[int, ...] = ()) -> str:
        """A leader resigns."""
        return self._request(end_quorum_epoch_request(leader, epoch, tuple(map(replica_key, candidates))))

    def _request(self, message: RaftRequest) -> str:
        self._replica.request("", message, version=2)
        return self._what_happened()

    # Responses

    @command
    def grant(self, voter: int, epoch: int | None = None) -> str:
        """A voter grants the vote that it was asked for."""
        return self._respond(voter, vote_response(is_granted=True, epoch=self._epoch(epoch)))

    @command
    def reject(self, voter: int, epoch: int | None = None, leader: int = UNKNOWN_ID, error: str = "NONE") -> str:
        """A voter rejects the vote that it was asked for."""
        answer = vote_response(is_granted=False, epoch=self._epoch(epoch), leader=leader, error=ErrorCode[error])
        return self._respond(voter, answer)

    @command
    def acknowledge(self, voter: int) -> str:
        """A voter acknowledges that this replica leads, or has resigned."""
        epoch = self._epoch(None)
        if voter in self._sent and isinstance(self._sent[voter].message, BeginQuorumEpochRequest):
            return self._respond(voter, begin_quorum_epoch_response(epoch, LOCAL.id))
        return self._respond(voter, end_quorum_epoch_response(epoch))

    @command
    def refuse(self, peer: int, epoch: int, leader: int = UNKNOWN_ID, error: str = "NOT_LEADER_OR_FOLLOWER") -> str:
        """A peer does not answer a Fetch with records."""
        return self._respond(peer, fetch_response(epoch, leader, error=ErrorCode[error]))

    @command
    def fetched(
        self, leader: int, records: str = "", high_watermark: int = -1, diverging: OffsetAndEpoch | None = None
    ) -> str:
        """The leader answers a Fetch."""
        batch = b""
        if records:
            epoch, count = map(int, records.split("x"))
            batch = records_at(self._replica.log.end_offset.offset, epoch, count)
        answer = fetch_response(
            self._epoch(None), leader, records=batch, high_watermark=high_watermark, diverging=diverging
        )
        return self._respond(leader, answer)

    @command
    def lose(self, peer: int) -> str:
        """The connection to a peer is lost while a request is in flight."""
        self._replica.raft.request_failed(self._take_sent(peer).number)
        self._replica.settle()
        return self._what_happened()

    @command
    def repeat(self, voter: int) -> str:
        """A voter's last answer arrives again."""
        number, message = self._last
        self._replica.respond(number, message)
        return self._what_happened()

    def _epoch(self, epoch: int | None) -> int:
        return self._replica.raft.role.epoch if epoch is None else epoch

    def _take_sent(self, peer: int) -> SendRequest:
        if peer not in self._sent:
            raise CommandError(f"no request was sent to {peer}; there are requests to {sorted(self._sent)}")
        return self._sent.pop(peer)

    def _respond(self, peer: int, message: RaftResponse) -> str:
        self._last = self._take_sent(peer).number, message
        self._replica.respond(*self._last)
        return self._what_happened()

    # What is printed

    def _what_happened(self) -> str:
        lines = [self._text_of_answer(each) for each in self._replica.take_responses()]
        for each in self._replica.take_requests():
            self._sent[each.destination.id] = each
            lines.append(f"-> {each.destination.id}: {self._text_of_request(each.message)}")
        lines.append(self._role_text())
        stored = self._replica.stored
        if stored is not None:
            lines.append(f"stored: {_stored_text(stored)}")
        if self._disk is not None and self._disk.waiting:
            lines.append(f"waiting for the disk: {', '.join(self._disk.waiting)}")
        return "\n".join(lines)

    def _text_of_answer(self, sent: SendResponse) -> str:
        return _answer_text(sent)

    def _text_of_request(self, message: RaftRequest) -> str:
        return _request_text(message)

    def _role_text(self) -> str:
        raft, log = self._replica.raft, self._replica.log
        if raft.halt_reason is not None:
            return f"halted: {raft.halt_reason}"
        mark = raft.high_watermark
        log_text = f"log end {log.end_offset.offset}@{log.last_fetched_epoch}"
        mark_text = "" if mark is None else f" high-watermark {mark}"
        return f"{' '.join(self._role_words())}; {log_text}{mark_text}"

    def _role_words(self) -> Iterator[str]:
        role = self._replica.raft.role
        yield f"{type(role).__name__} epoch {role.epoch}"
        leader, voted = leader_id(role), voted_key(role)
        if leader is not None:
            yield f"leader {leader}"
        if voted is not None:
            yield f"voted {voted.id}"
        match role:
            case Unattached() | Prospective() | Candidate() | Resigned():
                if role.election_deadline_ms is not None:
                    yield f"until {role.election_deadline_ms}"
            case Follower():
                yield f"until {role.fetch_deadline_ms}"


def _answer_text(sent: SendResponse) -> str:
    message = sent.message
    if isinstance(message, FetchResponse):
        return f"answer to {sent.token}: {_fetched_text(message)}"
    topics = getattr(message, "topics", ())
    if not topics:
        return f"answer: {ErrorCode(getattr(message, 'error_code', 0)).name}"
    answer = topics[0].partitions[0]
    verdict = "ok"
    if answer.error_code:
        verdict = ErrorCode(answer.error_code).name
    elif hasattr(answer, "vote_granted"):
        verdict = "granted" if answer.vote_granted else "rejected"
    leader = "no leader" if answer.leader_id < 0 else f"leader {answer.leader_id}"
    return f"answer: {verdict}, epoch {answer.leader_epoch}, {leader}"


def _fetched_text(message: FetchResponse) -> str:
    if not message.responses:
        return ErrorCode(message.error_code).name
    found = message.responses[0].partitions[0]
    words = [ErrorCode(found.error_code).name] if found.error_code else []
    if found.diverging_epoch.end_offset >= 0:
        words.append(f"diverges, truncate to {found.diverging_epoch.end_offset}@{found.diverging_epoch.epoch}")
    if found.snapshot_id.end_offset >= 0:
        words.append(f"fetch snapshot {found.snapshot_id.end_offset}@{found.snapshot_id.epoch}")
    words += [f"offsets {each.base_offset}..{each.last_offset}" for each in _batches(bytes(found.records or b""))]
    words.append(f"epoch {found.current_leader.leader_epoch}")
    words.append("no leader" if found.current_leader.leader_id < 0 else f"leader {found.current_leader.leader_id}")
    words += [f"high-watermark {found.high_watermark}"] if found.high_watermark >= 0 else []
    return ", ".join(words)


def _batches(records: bytes) -> Iterator[RecordBatch]:
    position = 0
    while position < len(records):
        batch = RecordBatch(records, position)
        yield batch
        position += batch.size_bytes


def _request_text(message: RaftRequest) -> str:
    match message:
        case VoteRequest():
            asked = message.topics[0].partitions[0]
            kind = "pre-vote" if asked.pre_vote else "vote"
            return f"{kind} epoch {asked.replica_epoch} log end {asked.last_offset}@{asked.last_offset_epoch}"
        case FetchRequest():
            part = message.topics[0].partitions[0]
            return f"fetch {part.fetch_offset}@{part.last_fetched_epoch} epoch {part.current_leader_epoch}"
        case BeginQuorumEpochRequest():
            begun = message.topics[0].partitions[0]
            return f"leader {begun.leader_id} of epoch {begun.leader_epoch}"
        case EndQuorumEpochRequest():
            ended = message.topics[0].partitions[0]
            ids = " ".join(str(each.candidate_id) for each in ended.preferred_candidates)
            return f"end of epoch {ended.leader_epoch}, candidates [{ids}]"
    return type(message).__name__


def _stored_text(stored: QuorumStateData) -> str:
    words = [f"epoch {stored.leader_epoch}"]
    words += [f"leader {stored.leader_id}"] if stored.leader_id >= 0 else []
    words += [f"voted {stored.voted_id}"] if stored.voted_id >= 0 else []
    return " ".join(words)


ELECTION_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": ElectionWorld}
