# SPDX-License-Identifier: Apache-2.0
"""One replica twice, Kafka's raft client and raftlog's core, which start on the same disk and must do the same."""

import random
from collections import Counter
from collections.abc import Sequence

import attrs

from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Resigned
from raftlog.quorum.seam.effects import DeliverBatches
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchResponse
from raftlog.records.messages.raft.raft_messages import RaftResponse, read_rpc, write_rpc
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, VoterSet
from tests.kafka.raft_comparison import (
    comparable,
    error_code,
    is_same,
    is_vote_granted,
    mark_of,
    readable_log,
    readable_snapshots,
    shown_effect,
    shown_log,
    shown_message,
    shown_request,
    shown_snapshots,
    shown_voters,
    spelled,
    with_mark,
    with_vote,
)
from tests.kafka.raft_draws import LOCAL, TOPIC
from tests.kafka.raft_inputs import RaftInputs
from tests.kafka.raft_oracle import KafkaStep, RaftOracle, SentByKafka
from tests.kafka.raft_snapshot_inputs import write_snapshot
from tests.quorum.single_replica import DictatedDraws, SingleReplica, log_with, replica_key, voter_set_of

BOOTSTRAP = (HostPort("b1", 9990), HostPort("b2", 9991))
NEVER_MS = 2**62
FATAL = {
    "must be in the set of voters": False,
    f"with leader OptionalInt[{LOCAL.id}] and epoch": False,
    "since it matches the local node.id": False,
    "which is inconsistent with current leader": True,
    "Unknown leader endpoints": False,
    "request from the leader itself": False,
    "fetch snapshot response with an invalid": False,
    "Unexpected acknowledgement from non-voter": False,
    "leads on as an observer": True,
    "counts time as the only voter": False,
}
"""What ends a sequence: Kafka's client dies, or the two go different ways; and whether raftlog's replica stops.

By a part of Kafka's message, the first that fits; each is in DECISIONS.md, 54.
"""


class DisagreementError(AssertionError):
    """Kafka and raftlog did different things."""


@attrs.define
class Outcome:
    """What came of a sequence.

    Attributes:
        steps: how many inputs both were given.
        inputs: how often each kind of input was given.
        roles: how often Kafka was in each role after an input.
        errors: how often each error code was in a response of the replica.
        fatal: which of ``FATAL`` Kafka's client died of, or None.
    """

    steps: int = 0
    inputs: Counter[str] = attrs.field(factory=Counter)
    roles: Counter[str] = attrs.field(factory=Counter)
    errors: Counter[int] = attrs.field(factory=Counter)
    fatal: str | None = None


class BothReplicas:
    """One replica twice: Kafka's raft client, and raftlog's core.

    Args:
        oracle: Kafka's side.
        seed: of all choices.

    Raises:
        DisagreementError: they start differently.
    """

    def __init__(self, oracle: RaftOracle, seed: int) -> None:
        self._oracle = oracle
        self.random = random.Random(seed)
        self.outcome = Outcome()
        self.history: list[str] = []
        self.pending: list[tuple[SentByKafka, int]] = []
        self.answered_early: set[str] = set()
        self.fetching: dict[str, ReplicaKey] = {}
        self.versions: dict[str, int] = {}
        self.alone_in, self.has_read_ahead = -1, False
        self.memberships: set[bool] = set()
        self.is_patient = self.random.random() < 0.5
        self.is_controller = self.random.random() < 0.7
        self.voters, self.is_dynamic = self._choose_voters()
        self._create()

    def _choose_voters(self) -> tuple[list[ReplicaKey], bool]:
        is_observer, is_dynamic = self.random.random() < 0.2, self.random.random() < 0.6
        size = self.random.choice((1, 2, 3, 3, 3, 4, 4 if is_observer else 5))
        first = 2 if is_observer else 1
        keys = [replica_key(each) for each in range(first, first + size)]
        if is_dynamic and self.random.random() < 0.05:
            keys[0] = replica_key(keys[0].id, 9)
        # A replica that has been a voter joins again in Kafka, and not in raftlog (DECISIONS.md, 58).
        self.is_joining = LOCAL not in keys and self.random.random() < 0.5
        return keys, is_dynamic

    def _create(self) -> None:
        draw = self.random.randrange(10_000)
        epochs = sorted(self.random.sample(range(1, 6), self.random.choice((0, 0, 1, 2))))
        runs = [(epoch, self.random.randint(1, 3)) for epoch in epochs]
        choice = self.random.random()
        is_led, has_voted = choice < 0.3, 0.3 <= choice < 0.6
        # A replica that has voted has no records of that epoch yet.
        least = max(epochs, default=0) + has_voted
        epoch = max(least if has_voted else int(is_led), least + self.random.choice((-1, 0, 0, 0, 1, 2)))
        words = [f"local={spelled(LOCAL)}", f"voters={','.join(map(spelled, self.voters))}"]
        words += [f"epoch={epoch}", f"draw={draw}", f"kraft={int(self.is_dynamic)}"]
        words += [f"controller={int(self.is_controller)}", f"join={int(self.is_joining)}", "chunk=1048576"]
        words += [
            "protocol=KIP_1186_PROTOCOL",
            "bootstrap=" + ",".join(f"{each.host}:{each.port}" for each in BOOTSTRAP),
        ]
        if runs:
            words.append("log=" + ",".join(f"{each}x{count}" for each, count in runs))
        snapshot_id, is_deleted = self._choose_snapshot(runs), self.random.random() < 0.6
        if snapshot_id is not None:
            words += [f"snapshot={snapshot_id.offset}@{snapshot_id.epoch}", *(["deleted=1"] if is_deleted else [])]
        leader, voted = None, None
        if is_led:
            leader = self.random.choice([each.id for each in self.voters] + [LOCAL.id])
            words.append(f"leader={leader}")
        elif has_voted:
            voted = self.random.choice([*self.voters, LOCAL])
            words.append(f"voted={spelled(voted)}")
        self.history.append("new " + " ".join(words))
        theirs = self._oracle.run("new", *words)
        if theirs.fatal is not None:
            self._note_fatal(theirs.fatal)
            return
        self._configure(theirs.config)
        if not self.is_dynamic and voted is not None:
            voted = ReplicaKey(voted.id)
        stored = QuorumStateData(
            int(self.is_dynamic),
            leader_id=UNKNOWN_ID if leader is None else leader,
            leader_epoch=epoch,
            voted_id=UNKNOWN_ID if voted is None else voted.id,
            voted_directory_id=None if voted is None else voted.directory_id,
        )
        bootstrap = voter_set_of(self.voters, self.listener) if self.is_dynamic else None
        log = log_with(runs, bootstrap, self.wall_ms)
        log._retention = Retention(max_bytes=0)
        if snapshot_id is not None:
            log.update_high_watermark(snapshot_id.offset)
            write_snapshot(log, snapshot_id, bootstrap, self.wall_ms)
            if is_deleted:
                log.delete_before_snapshot(snapshot_id)
        self._start(log, stored, draw)
        self._compare(theirs)

    def _choose_snapshot(self, runs: Sequence[tuple[int, int]]) -> OffsetAndEpoch | None:
        """Return the id of a snapshot at the end of a batch, or None."""
        if not runs or self.random.random() < 0.7:
            return None
        count = self.random.randint(1, len(runs))
        return OffsetAndEpoch(sum(each for _, each in runs[:count]), runs[count - 1][0])

    def _start(self, log: MemoryLog, stored: QuorumStateData | None, draw: int) -> None:
        """Start raftlog's side on what its disk holds."""
        addresses = {each.id: HostPort("localhost", 9990 + each.id) for each in self.voters}
        identity = ReplicaIdentity(
            key=LOCAL,
            cluster_id=self.cluster_id,
            endpoints=Endpoints.of({self.listener: ("localhost", 9990 + LOCAL.id)}),
            listener=self.listener,
            can_become_voter=self.is_controller,
            bootstrap_servers=BOOTSTRAP,
            topic_name=TOPIC,
        )
        self.core = SingleReplica(
            identity,
            self.config,
            static_voters=None if self.is_dynamic else VoterSet.from_inet_addresses(self.listener, addresses),
            log=log,
            stored=stored,
            draws=DictatedDraws(draw),
            wall_ms=self.wall_ms,
        )
        # Cleaning is an input: Kafka's mock log does nothing when the client asks it to clean.
        self.core.raft._replica.snapshots.clean_ms = NEVER_MS
        # Kafka's client does not know at the start how far the log is committed (DECISIONS.md, 54).
        self.started_mark, self.kafkas_mark = self.core.raft.high_watermark, 0
        if not isinstance(self.core.raft.role, Leader):
            self.core.raft._replica.forget_high_watermark()
        self.inputs = RaftInputs(self.random, self.core, identity)
        self.inputs.may_change_local, self.inputs.has_directories = not self.is_joining, self.is_dynamic
        self._register()

    def _configure(self, words: Sequence[str]) -> None:
        numbers = list(map(int, words[:7]))
        self.config = QuorumConfig(
            election_timeout_ms=numbers[0],
            fetch_timeout_ms=numbers[1],
            request_timeout_ms=numbers[2],
            retry_backoff_ms=numbers[3],
            election_backoff_max_ms=numbers[4],
            fetch_max_wait_ms=numbers[5],
            fetch_max_bytes=numbers[6],
            append_linger_ms=0,
            auto_join=self.is_joining,
            new_voter_stabilization_ms=0,  # Kafka's checks alone (DECISIONS.md, 57 and 66).
            pause_after_refusal=False,  # As Kafka does (DECISIONS.md, 54).
        )
        self.cluster_id, self.listener, self.wall_ms = words[7], words[8], int(words[9])

    # Comparison

    def _compare(self, theirs: KafkaStep) -> None:
        """Compare what both did with an input, and match their requests with each other."""
        if theirs.fatal is not None:
            self._note_fatal(theirs.fatal)
            return
        self.outcome.steps += 1
        self.outcome.roles[theirs.state[0]] += 1
        self.kafkas_mark = max(self.kafkas_mark, int(theirs.state[5]))
        self._listen()
        self.memberships.add(self._is_voter())
        if theirs.state[0] == "Leader" and isinstance(self.core.raft.role, Resigned) and not self._is_voter():
            self.outcome.fatal = "leads on as an observer"  # After a removal whose request has expired.
            return
        if theirs.state[0] == "Resigned" and self._leads() and self.core.raft.role.epoch == self.alone_in:
            self.outcome.fatal = "counts time as the only voter"  # In its check of quorum (DECISIONS.md, 57).
            return
        if self._leads() and self.core.machine.last_voter_set.is_only_voter(LOCAL):
            self.alone_in = self.core.raft.role.epoch
        ours = self._our_state()
        if isinstance(self.core.raft.role, Resigned) and not self._is_voter():
            self.has_read_ahead = True
        elif ours[5] != "-1":
            self.has_read_ahead = False
        if self.has_read_ahead:
            # A leader that resigns as it commits its own removal: Kafka's listener has read that already, and ours
            # reads it when the high watermark is known again.
            ours[-1] = theirs.state[-1]
        self._check("state", list(theirs.state), ours)
        answers = [self._answer(str(each.token), each.message) for each in self.core.take_responses()]
        self.outcome.errors.update(error_code(message) for _, message in answers)
        expected = self._with_present_mark(self._without_early(theirs.responses, answers), answers, int(ours[5]))
        expected = self._with_granted_pre_votes(expected, answers)
        if sorted(expected, key=repr) != sorted(answers, key=repr):
            shown = [sorted(f"{token} {shown_message(each)}" for token, each in side) for side in (expected, answers)]
            self._check("responses", *shown)
            self._check("responses", expected, answers)
        sent = self.core.take_requests()
        left = list(sent)
        # Kafka sends them in the order of sets, which differs from one JVM to the next.
        for each in sorted(theirs.requests, key=lambda one: (one.destination, type(one.message).__name__)):
            twin = next((one for one in left if is_same(each, one, self.started_mark)), None)
            if twin is None:
                self._check(
                    "requests", [shown_request(one) for one in theirs.requests], [shown_effect(one) for one in sent]
                )
            else:
                left.remove(twin)
                self.pending.append((each, twin.number))
        self._check("requests", [], [shown_effect(one) for one in left])
        self.started_mark = None

    def _answer(self, token: str, message: RaftResponse) -> tuple[str, RaftResponse]:
        """Return a response of raftlog's as the peer reads it, in the version of the request."""
        version = self.versions[token]
        return token, comparable(read_rpc(type(message), write_rpc(message, version), version))

    def _compare_logs(self) -> None:
        """Compare the logs record by record, the voters that they name, and their snapshots."""
        theirs, machine = self._oracle.run("log"), self.core.machine
        batches, ours = readable_log(theirs.log), readable_log(shown_log(self.core))
        self._check("log end", len(batches), len(ours))
        for each, one in zip(batches, ours, strict=True):
            self._check("log", each, one)
        voters = shown_voters(machine.last_voter_set, machine.last_kraft_version, self.listener)
        self._check("voters", list(theirs.voters), voters)
        snapshots = readable_snapshots(theirs.snapshots), readable_snapshots(shown_snapshots(self.core.log))
        self._check("snapshots", *snapshots)

    def _without_early(
        self, theirs: Sequence[tuple[str, RaftResponse]], ours: list[tuple[str, RaftResponse]]
    ) -> list[tuple[str, RaftResponse]]:
        """Take out of both lists the parked fetches that raftlog answers earlier than Kafka (DECISIONS.md, 54).

        They are those of a replica that leads no more, and one whose replica has sent another Fetch. So is a Fetch that
        commits the removal of the leader, which has resigned before the records are read. Returns Kafka's responses
        without those, and changes the list of raftlog's.
        """
        expected = [(token, comparable(each)) for token, each in theirs if token not in self.answered_early]
        tokens, latest = {token for token, _ in expected}, str(len(self.history) - 1)
        for token, message in list(ours):
            if not isinstance(message, FetchResponse):
                continue
            is_refused = error_code(message) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if is_refused and isinstance(self.core.raft.role, Resigned) and dict(expected).get(token) != message:
                served = [each for each in expected if each[0] == token and error_code(each[1]) == ErrorCode.NONE]
                expected = [each for each in expected if each not in served]
                ours[:] = [each for each in ours if each[0] != token or not served]
            if token in tokens or token == latest:
                continue
            is_replaced = self.fetching.get(token) == self.fetching.get(latest)
            if is_replaced or is_refused:
                self.answered_early.add(token)
                ours.remove((token, message))
        return expected

    def _with_present_mark(
        self, theirs: list[tuple[str, RaftResponse]], ours: list[tuple[str, RaftResponse]], present: int
    ) -> list[tuple[str, RaftResponse]]:
        """Return Kafka's responses, with the present high watermark where raftlog's names it (DECISIONS.md, 54).

        When several parked fetches are answered at once, Kafka names the high watermark that it knew when it turned to
        each of them, and the next one may raise it.
        """
        latest = str(len(self.history) - 1)
        marked = {token for token, message in ours if token != latest and mark_of(message) == present}
        return [(token, with_mark(message, present) if token in marked else message) for token, message in theirs]

    def _with_granted_pre_votes(
        self, theirs: list[tuple[str, RaftResponse]], ours: list[tuple[str, RaftResponse]]
    ) -> list[tuple[str, RaftResponse]]:
        """Return Kafka's responses, with those pre-votes that only raftlog grants (DECISIONS.md, 54).

        An observer that has once fetched in the epoch, and has lost touch with the leader, gives them.
        """
        role = self.core.raft.role
        if not isinstance(role, Follower) or not role.has_fetched or role.is_in_touch(self.core.now_ms):
            return theirs
        granted = {token for token, message in ours if is_vote_granted(message)}
        return [(token, with_vote(message) if token in granted else message) for token, message in theirs]

    def _note_fatal(self, message: str) -> None:
        self.outcome.fatal = next((part for part in FATAL if part in message), None)
        if self.outcome.fatal is None:
            self._check("fatal", message, None)
        elif hasattr(self, "core"):
            self._check("halted", FATAL[self.outcome.fatal], self.core.raft.halt_reason is not None)

    def _check(self, what: str, theirs: object, ours: object) -> None:
        if theirs != ours:
            history = "\n".join(self.history)
            raise DisagreementError(f"{history}\n{what}:\n  Kafka   {theirs}\n  raftlog {ours}")

    def _leads(self) -> bool:
        return isinstance(self.core.raft.role, Leader)

    def _is_voter(self) -> bool:
        return self.core.machine.last_voter_set.is_voter(LOCAL)

    def _our_state(self) -> list[str]:
        raft, stored, log = self.core.raft, self.core.stored, self.core.log
        assert stored is not None
        voted = "-"
        if stored.voted_key is not None:
            directory = stored.voted_key.directory_id
            voted = f"{stored.voted_id}/{'-' if directory is None else uuid_to_text(directory)}"
        mark = -1 if raft.high_watermark is None else raft.high_watermark
        role = type(raft.role).__name__
        numbers = [raft.role.epoch, stored.leader_epoch, stored.leader_id, voted, mark, log.end_offset.offset]
        return [role, *map(str, numbers), str(log.last_fetched_epoch), *map(str, (*self.told, self.read_offset))]

    def _listen(self) -> None:
        """Let the listener read all that it is given, and note what it is told."""
        while self.core.deliveries:
            delivery = self.core.deliveries.pop(0)
            if isinstance(delivery, DeliverBatches):
                self.read_offset = delivery.end_offset - 1
                self.core.close(delivery.number, delivery.end_offset)
            else:
                self.read_offset = -1
                self.core.close(delivery.number, delivery.snapshot_id.offset)
        for told in self.core.leader_changes:
            if told.listener == self.listener_number:
                self.told = told.epoch, -1 if told.leader_id is None else told.leader_id
        self.core.leader_changes.clear()

    def _register(self) -> None:
        """Register a listener on raftlog's side."""
        self.told, self.read_offset = (0, -1), -1
        self.listener_number: int = self.core.raft.register_listener()
        self.core.settle()

    def _replace_listener(self) -> None:
        self.history.append("another listener")
        self.outcome.inputs["listener"] += 1
        theirs = self._oracle.run("listen")
        self.core.raft.unregister_listener(self.listener_number)
        self._register()
        self._compare(theirs)
