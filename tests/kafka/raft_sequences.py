# SPDX-License-Identifier: Apache-2.0
"""Seeded sequences of inputs for one replica, given to Kafka's raft client and to raftlog's core side by side.

``raft_inputs`` makes the inputs, which follow the replica's state.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence

import attrs

from raftlog.errors import NotLeaderError, UnknownEpochError
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader
from raftlog.quorum.seam.effects import SendRequest
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import Record
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.messages.control import ControlValue, LeaderChangeMessage, read_control_record
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey
from tests.kafka.raft_inputs import LOCAL, TOPIC, RaftInputs
from tests.kafka.raft_oracle import KafkaStep, RaftOracle, SentByKafka, latest_version
from tests.quorum.single_replica import DictatedDraws, SingleReplica, log_with, replica_key, voter_set_of

BOOTSTRAP = (HostPort("b1", 9990), HostPort("b2", 9991))
_MOCK_LOG_BATCHES = 2
"""How many batches a read of Kafka's mock log returns at most."""

FATAL = {
    "must be in the set of voters": "a candidate that is no voter does not start; raftlog's waits (DECISIONS.md, 54)",
    "which is inconsistent with current leader": "two leaders in an epoch: raftlog's replica halts (DECISIONS.md, 54)",
}
"""What Kafka's client may die of, by a part of the message, and what raftlog does instead."""


class DisagreementError(AssertionError):
    """Kafka and raftlog did different things."""


def spelled(key: ReplicaKey) -> str:
    """Return a key as the oracle reads it: "2", or "2/7" for another directory."""
    number = 0 if key.directory_id is None else key.directory_id.int & (2**64 - 1)
    return str(key.id) if number == key.id else f"{key.id}/{number}"


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


class SideBySide:
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
        self.is_patient = self.random.random() < 0.5
        self.voters, self.is_dynamic = self._choose_voters()
        self._create()

    def _choose_voters(self) -> tuple[list[ReplicaKey], bool]:
        size = self.random.choice((1, 2, 3, 3, 3, 4, 5))
        is_observer = self.random.random() < 0.15
        first = 2 if is_observer else 1
        return [replica_key(each) for each in range(first, first + size)], self.random.random() < 0.7

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
        words += [
            "protocol=KIP_1186_PROTOCOL",
            "bootstrap=" + ",".join(f"{each.host}:{each.port}" for each in BOOTSTRAP),
        ]
        if runs:
            words.append("log=" + ",".join(f"{each}x{count}" for each, count in runs))
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
        voters = voter_set_of(self.voters, self.listener)
        keys = [ReplicaKey(each.id) for each in self.voters]
        identity = ReplicaIdentity(
            key=LOCAL,
            cluster_id=self.cluster_id,
            endpoints=Endpoints.of({self.listener: ("localhost", 9990 + LOCAL.id)}),
            listener=self.listener,
            bootstrap_servers=BOOTSTRAP,
            topic_name=TOPIC,
        )
        self.core = SingleReplica(
            identity,
            self.config,
            static_voters=None if self.is_dynamic else voter_set_of(keys, self.listener),
            log=log_with(runs, voters if self.is_dynamic else None, self.wall_ms),
            stored=stored,
            draws=DictatedDraws(draw),
            wall_ms=self.wall_ms,
        )
        self.inputs = RaftInputs(self.random, self.core, identity, [each.id for each in self.voters])
        self._compare(theirs)

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
        )
        self.cluster_id, self.listener, self.wall_ms = words[7], words[8], int(words[9])

    # Comparison

    def _compare(self, theirs: KafkaStep) -> None:
        """Compare what both did with an input, and match their requests with each other."""
        if theirs.fatal is not None:
            self._note_fatal(theirs.fatal)
            self._check("halted", True, self.core.raft.halt_reason is not None)
            return
        self.outcome.steps += 1
        self.outcome.roles[theirs.state[0]] += 1
        ours = self._our_state()
        self._check("state", list(theirs.state), ours)
        answers = [(str(each.token), _comparable(each.message)) for each in self.core.take_responses()]
        self.outcome.errors.update(_error_code(message) for _, message in answers)
        expected = self._with_present_mark(self._without_early(theirs.responses, answers), answers, int(ours[5]))
        self._check("responses", sorted(expected, key=repr), sorted(answers, key=repr))
        sent = self.core.take_requests()
        left = list(sent)
        for each in theirs.requests:
            twin = next((one for one in left if _is_same(each, one)), None)
            if twin is None:
                self._check("requests", [_shown(one) for one in theirs.requests], [_ours(one) for one in sent])
            else:
                left.remove(twin)
                self.pending.append((each, twin.number))
        self._check("requests", [], [_ours(one) for one in left])

    def _without_early(
        self, theirs: Sequence[tuple[str, RaftResponse]], ours: list[tuple[str, RaftResponse]]
    ) -> list[tuple[str, RaftResponse]]:
        """Take out of both lists the parked fetches that raftlog answers earlier than Kafka (DECISIONS.md, 54).

        They are those of a replica that leads no more, and one whose replica has sent another Fetch. Returns Kafka's
        responses without those, and changes the list of raftlog's.
        """
        expected = [(token, _comparable(each)) for token, each in theirs if token not in self.answered_early]
        tokens, latest = {token for token, _ in expected}, str(len(self.history) - 1)
        for token, message in list(ours):
            if not isinstance(message, FetchResponse) or token in tokens or token == latest:
                continue
            is_replaced = self.fetching.get(token) == self.fetching.get(latest)
            if is_replaced or _error_code(message) == ErrorCode.NOT_LEADER_OR_FOLLOWER:
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
        marked = {token for token, message in ours if token != latest and _mark(message) == present}
        return [(token, _with_mark(message, present) if token in marked else message) for token, message in theirs]

    def _note_fatal(self, message: str) -> None:
        self.outcome.fatal = next((part for part in FATAL if part in message), None)
        if self.outcome.fatal is None:
            self._check("fatal", message, None)

    def _check(self, what: str, theirs: object, ours: object) -> None:
        if theirs != ours:
            history = "\n".join(self.history)
            raise DisagreementError(f"{history}\n{what}:\n  Kafka   {theirs}\n  raftlog {ours}")

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
        return [role, *map(str, numbers), str(log.last_fetched_epoch)]

    # Inputs

    def run(self, count: int) -> Outcome:
        """Give up to ``count`` inputs; fewer if Kafka's client dies.

        Raises:
            DisagreementError: they did different things.
        """
        while self.outcome.steps < count and self.outcome.fatal is None:
            self._give_input()
        return self.outcome

    def _give_input(self) -> None:
        is_leader = isinstance(self.core.raft.role, Leader)
        disturbance = 0.2 if self.inputs.is_favoured else 1
        choices: list[tuple[Callable[[], None], float]] = [(self._sleep, 2), (self._draw, 1)]
        choices += [(self._vote, 4 * disturbance), (self._begin, disturbance), (self._end, disturbance)]
        choices += [(self._fetch, 12 if is_leader else 1), (self._append, 5 if is_leader else 0.3)]
        if self.pending:
            choices.append((self._respond, 7))
        functions, weights = zip(*choices, strict=True)
        self.random.choices(functions, weights)[0]()

    def _draw(self) -> None:
        self.core.draws.value = self.random.randrange(10_000)
        self._oracle.run("draw", self.core.draws.value)
        self.history.append(f"draw {self.core.draws.value}")

    def _sleep(self) -> None:
        raft, now_ms = self.core.raft, self.core.now_ms
        until = raft.deadline_ms
        choices = [1, self.config.retry_backoff_ms, self.random.randrange(30_000)]
        if until is not None:
            choices += [max(0, until - now_ms - 1), until - now_ms, until - now_ms]
        if isinstance(raft.role, Follower) and raft.role.update_deadline_ms > now_ms and self.is_patient:
            choices += [raft.role.update_deadline_ms - now_ms] * (9 if raft.role.has_fetched else 1)
        ms = self.random.choice(choices)
        self.history.append(f"sleep {ms}")
        self.outcome.inputs["sleep"] += 1
        expired = self._oracle.run("sleep", ms).responses
        theirs = self._oracle.run("poll")
        theirs = attrs.evolve(theirs, responses=(*expired, *theirs.responses))
        self.core.sleep(ms)
        self._compare(theirs)

    def _request(self, message: RaftRequest | None) -> None:
        if message is None:
            return
        self.outcome.inputs[type(message).__name__] += 1
        token = str(len(self.history))
        self.history.append(f"request {token} {message}")
        version = latest_version(message)
        theirs = self._oracle.request(token, message, version)
        self.core.request(token, message, version, self.listener)
        self._compare(theirs)

    def _respond(self) -> None:
        sent, number = self.pending.pop(self.random.randrange(len(self.pending)))
        message = self.inputs.response(sent.message)
        self.outcome.inputs[type(message).__name__] += 1
        self.history.append(f"response to {sent.destination} {type(sent.message).__name__}: {message}")
        theirs = self._oracle.respond(sent.correlation_id, message)
        self.core.respond(number, message)
        self._compare(theirs)

    def _append(self) -> None:
        role = self.core.raft.role
        epoch = max(0, role.epoch + self.random.choice((-1, 0, 0, 0, 0, 0, 0, 0, 0, 1)))
        count = self.random.randint(1, 3)
        self.history.append(f"append {epoch} {count}")
        self.outcome.inputs["append"] += 1
        theirs = self._oracle.run("append", epoch, count)
        self._check("appended", theirs.appended, _append(self.core, epoch, count))
        self._compare(theirs)

    def _vote(self) -> None:
        self._request(self.inputs.vote())

    def _begin(self) -> None:
        self._request(self.inputs.begin())

    def _end(self) -> None:
        self._request(self.inputs.end())

    def _fetch(self) -> None:
        message = self.inputs.fetch()
        directory = message.topics[0].partitions[0].replica_directory_id
        self.fetching[str(len(self.history))] = ReplicaKey(message.replica_state.replica_id, directory)
        self._request(message)


_EXCEPTIONS = {NotLeaderError: "NotLeaderException", UnknownEpochError: "IllegalArgumentException"}


def _error_code(message: RaftResponse) -> int:
    """Return the error of a response: for the whole request, or of its partition."""
    topics = message.responses if isinstance(message, FetchResponse) else getattr(message, "topics", ())
    code: int = topics[0].partitions[0].error_code if topics else getattr(message, "error_code", 0)
    return code


def _append(core: SingleReplica, epoch: int, count: int) -> str:
    try:
        return str(core.append(*[b"r"] * count, epoch=epoch).last_offset)
    except (NotLeaderError, UnknownEpochError) as error:
        return _EXCEPTIONS[type(error)]


def _mark(message: RaftResponse) -> int:
    """Return the high watermark in a Fetch response; -1 in any other."""
    if not isinstance(message, FetchResponse) or not message.responses:
        return -1
    return message.responses[0].partitions[0].high_watermark


def _with_mark(message: RaftResponse, present: int) -> RaftResponse:
    """Return a Fetch response with a high watermark in the place of a lower one that it names."""
    if not isinstance(message, FetchResponse) or not 0 <= _mark(message) < present:
        return message
    topic = message.responses[0]
    partition = attrs.evolve(topic.partitions[0], high_watermark=present)
    return attrs.evolve(message, responses=(attrs.evolve(topic, partitions=(partition,)),))


def _comparable(message: RaftResponse) -> RaftResponse:
    """Return a Fetch response with a text in the place of its records."""
    if not isinstance(message, FetchResponse) or not message.responses:
        return message
    topic = message.responses[0]
    partition = topic.partitions[0]
    partition = attrs.evolve(partition, records=_shown_records(bytes(partition.records or b"")).encode())
    return attrs.evolve(message, responses=(attrs.evolve(topic, partitions=(partition,)),))


def _shown_records(records: bytes) -> str:
    """Return what records hold: no more batches than Kafka's mock log reads, granting voters sorted, no CRC.

    Kafka lists the voters that granted their vote in the order of a hash map.
    """
    shown: list[object] = []
    position = 0
    while len(shown) < _MOCK_LOG_BATCHES and position + BATCH_OVERHEAD <= len(records):
        size = LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + LOG_OVERHEAD])
        data, position = records[position : position + size], position + size
        if len(data) < size:
            shown.append((size, len(data)))
            continue
        batch = RecordBatch(data)
        batch.ensure_valid()
        values = [_sorted_votes(each) if batch.is_control else each for each in batch.records()]
        shown.append((batch, batch.max_timestamp, values))
    return repr(shown)


def _sorted_votes(record: Record) -> tuple[Record, ControlValue | None]:
    value = read_control_record(record.key, record.value).value
    if isinstance(value, LeaderChangeMessage):
        value = attrs.evolve(value, granting_voters=tuple(sorted(value.granting_voters, key=repr)))
    return record._replace(value=None), value


def _is_same(theirs: SentByKafka, ours: SendRequest) -> bool:
    return theirs.destination == tuple(ours.destination) and theirs.message == ours.message


def _shown(sent: SentByKafka) -> str:
    return f"{sent.destination} {sent.message}"


def _ours(sent: SendRequest) -> str:
    return f"{tuple(sent.destination)} {sent.message}"
