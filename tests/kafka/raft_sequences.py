# SPDX-License-Identifier: Apache-2.0
"""Seeded sequences of inputs for one replica, given to Kafka's raft client and to raftlog's core side by side.

``raft_inputs`` makes the inputs, which follow the replica's state.
"""

from collections.abc import Callable
from functools import partial

import attrs

from raftlog.errors import (
    InvalidSnapshotIdError,
    InvalidUpdateVersionError,
    NotLeaderError,
    UnknownEpochError,
    UnsupportedVersionError,
)
from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.roles.roles import Follower, Leader
from raftlog.quorum.snapshot_work import Pins
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest, read_rpc, write_rpc
from raftlog.records.messages.schema import message_types
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey
from tests.kafka.raft_both_replicas import NEVER_MS, BothReplicas, Outcome
from tests.kafka.raft_comparison import (
    shown_message,
)
from tests.kafka.raft_oracle import api_of
from tests.quorum.single_replica import SingleReplica


class SideBySide(BothReplicas):
    """A sequence of inputs for one replica."""

    def run(self, count: int) -> Outcome:
        """Give up to ``count`` inputs; fewer if Kafka's client dies.

        Raises:
            DisagreementError: they did different things.
        """
        while self.outcome.steps < count and self.outcome.fatal is None and not self.core.shutdowns:
            self._give_input()
        if self.outcome.fatal is None:
            self._compare_logs()
        return self.outcome

    def _give_input(self) -> None:
        is_leader = isinstance(self.core.raft.role, Leader)
        disturbance = 0.2 if self.inputs.is_favoured else 1
        to_leaders: list[tuple[Callable[[], RaftRequest], float]]
        choices: list[tuple[Callable[[], None], float]] = [(self._sleep, 2), (self._draw, 1)]
        choices += [(self._vote, 4 * disturbance), (self._begin, disturbance), (self._end, disturbance)]
        choices += [(self._fetch, 12 if is_leader else 1), (self._append, 5 if is_leader else 0.3)]
        choices += [(self._restart, 0.15), (self._replace_listener, 0.2)]
        choices += [(self._resign, 0.3 if is_leader else 0.1), (self._shut_down, 0.05)]
        to_leaders = [(self.inputs.update_voter, 2), (self.inputs.describe, 1), (self.inputs.fetch_snapshot, 2)]
        to_leaders += [(self.inputs.add_voter, 2.5), (self.inputs.remove_voter, 1.2)]
        for draw, weight in to_leaders:
            choices.append((partial(self._request_drawn, draw), weight if is_leader else 0.1))
        choices += [(self._take_snapshot, 1.2), (self._clean, 0.4)]
        choices.append((self._upgrade, (0.2 if self.is_dynamic else 2) if is_leader else 0.1))
        if self.pending:
            choices += [(self._respond, 7), (self._fail, 0.5)]
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
        if self.random.random() < 0.03:
            choices = [60_000, 300_000, 300_001]  # A leader forgets observers after five minutes.
        if until is not None and until < NEVER_MS:
            choices += [max(0, until - now_ms - 1), until - now_ms, until - now_ms]
        if (
            isinstance(raft.role, Follower)
            and raft.role.update_deadline_ms > now_ms
            and (self.is_patient or self.is_joining)
        ):
            choices += [raft.role.update_deadline_ms - now_ms] * (9 if raft.role.has_fetched else 1)
        ms = self.random.choice(choices)
        self.history.append(f"sleep {ms}")
        self.outcome.inputs["sleep"] += 1
        expired = self._oracle.run("sleep", ms).responses
        theirs = self._oracle.run("poll")
        theirs = attrs.evolve(theirs, responses=(*expired, *theirs.responses))
        self.core.sleep(ms)
        self._compare(theirs)

    def _restart(self) -> None:
        """Crash both, and start them again on what was flushed; not where they differ as decided (DECISIONS.md 54)."""
        stored = self.core.stored
        own_id = self.core.identity.key.id
        if stored is not None and stored.voted_id == own_id and stored.leader_id not in (own_id, UNKNOWN_ID):
            return
        if not self.is_controller and len(self.memberships) > 1:
            return  # As a new voter it has flushed what Kafka's client has not.
        self._compare_logs()
        self.history.append("restart")
        self.outcome.inputs["restart"] += 1
        self.pending.clear()
        theirs = self._oracle.run("restart")
        if theirs.fatal is not None:
            self._note_fatal(theirs.fatal)
            return
        self._configure(theirs.config)
        log = instance_of(self.core.log, MemoryLog)
        log.crash()
        self._start(log, self.core.stored, self.core.draws.value)
        self._compare(theirs)

    def _request_drawn(self, draw: Callable[[], RaftRequest]) -> None:
        self._request(draw())

    def _request(self, message: RaftRequest | None) -> None:
        """Deliver a request, mostly in its latest version; one that cannot be written in another version is not."""
        if message is None:
            return
        message = self.inputs.misshapen(message)
        versions = message_types("raft-rpcs")[type(message).__name__].versions
        version = versions.highest
        if isinstance(message, FetchRequest) and message.replica_id >= 0:
            version = self.random.choice((13, 14))
        elif isinstance(message, FetchRequest) and not self.is_dynamic:
            version = self.random.choice((17, 18))
        elif self.random.random() < 0.3:
            version = self.random.randint(versions.lowest, versions.highest)
        try:
            data = write_rpc(message, version)
        except UnsupportedVersionError:
            return
        message = read_rpc(type(message), data, version)
        self.outcome.inputs[type(message).__name__] += 1
        token = str(len(self.history))
        self.versions[token] = version
        self.history.append(f"request {token} version {version} {shown_message(message)}")
        if isinstance(message, FetchRequest) and message.topics and message.topics[0].partitions:
            directory = message.topics[0].partitions[0].replica_directory_id
            self.fetching[token] = ReplicaKey(_sender_id(message), directory)
        theirs = self._oracle.request(token, api_of(message), version, data)
        self.core.request(token, message, version, self.listener)
        self._compare(theirs)

    def _fail(self) -> None:
        """Let a request fail as the network does, or the authentication, or the search for a version."""
        sent, number = self.pending.pop(self.random.randrange(len(self.pending)))
        error = self.random.choice(("BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "UNSUPPORTED_VERSION"))
        self.outcome.inputs["failure"] += 1
        self.history.append(f"failed: request to {sent.destination} {type(sent.message).__name__}: {error}")
        theirs = self._oracle.run("fail", sent.correlation_id, error)
        self.core.raft.request_failed(number, is_version_unsupported=error == "UNSUPPORTED_VERSION")
        self.core.settle()
        self._compare(theirs)

    def _respond(self) -> None:
        sent, number = self.pending.pop(self.random.randrange(len(self.pending)))
        message = self.inputs.misshapen(self.inputs.response(sent.message))
        self.outcome.inputs[type(message).__name__] += 1
        self.history.append(f"response to {sent.destination} {type(sent.message).__name__}: {shown_message(message)}")
        theirs = self._oracle.respond(sent, message)
        self.core.respond(number, message)
        if self.random.random() < 0.1:
            # Kafka's network cannot deliver a response twice; raftlog's core must not mind.
            self.core.respond(number, message)
        self._compare(theirs)

    def _append(self) -> None:
        role = self.core.raft.role
        epoch = max(0, role.epoch + self.random.choice((-1, 0, 0, 0, 0, 0, 0, 0, 0, 1)))
        count = self.random.randint(1, 3)
        self.history.append(f"append {epoch} {count}")
        self.outcome.inputs["append"] += 1
        theirs = self._oracle.run("append", epoch, count)
        self._check("called", theirs.called, _append(self.core, epoch, count))
        self._compare(theirs)

    def _upgrade(self) -> None:
        epoch = max(0, self.core.raft.role.epoch + self.random.choice((-1, 0, 0, 0, 0, 0, 0, 1)))
        version, is_check = KRaftVersion(int(self.random.random() < 0.9)), self.random.random() < 0.1
        self.history.append(f"upgrade {epoch} {version} {is_check}")
        self.outcome.inputs["upgrade"] += 1
        theirs = self._oracle.run("upgrade", epoch, int(version), int(is_check))
        called = "done"
        try:
            self.core.raft.upgrade_kraft_version(version, epoch=epoch, validate_only=is_check)
        except (NotLeaderError, UnknownEpochError, InvalidUpdateVersionError) as error:
            called = _EXCEPTIONS[type(error)]
        self.core.settle()
        if called == "InvalidUpdateVersionException":
            # Kafka throws another exception if a voter has not told its directory id.
            theirs = attrs.evolve(theirs, called=theirs.called.replace("IllegalStateException", called))
        self._check("called", theirs.called, called)
        self._compare(theirs)

    def _take_snapshot(self) -> None:
        """Let the application take a snapshot: mostly of what is committed, and with some records, or none."""
        log, draw = self.core.log, self.random
        ends, known = self.inputs.batch_ends(), max(self.kafkas_mark, log.state.start_offset)
        offset = draw.choice(ends if draw.random() < 0.15 else [each for each in ends if each <= known][-3:])
        if self._is_decided(offset):
            return
        stamps = {each.next_offset: each.max_timestamp for each in log.batches(isolation=Isolation.UNCOMMITTED)}
        epoch, count = self.inputs.epoch_before(offset), self.random.choice((0, 1, 1, 30))
        self.history.append(f"snapshot {offset}@{epoch} {count}")
        self.outcome.inputs["snapshot"] += 1
        theirs = self._oracle.run("snapshot", offset, epoch, stamps.get(offset, 0), count)
        self._check("called", theirs.called, self._our_snapshot(offset, count))
        self._compare(theirs)

    def _is_decided(self, offset: int) -> bool:
        """Whether the two differ on a snapshot there, as decided (DECISIONS.md, 54).

        It would hold nothing, be older than the latest one, be that one, as long as Kafka does not know that it is
        committed, or end where a record of voters or of kraft.version is: Kafka forgets what was before, and has
        nothing if that is truncated.
        """
        log = self.core.log
        latest = 0 if log.latest_snapshot_id is None else log.latest_snapshot_id.offset
        is_empty = offset == log.state.start_offset and all(each.offset != offset for each in log.snapshot_ids)
        batches = log.batches(isolation=Isolation.UNCOMMITTED)
        is_record_next = any(each.base_offset == offset and each.is_control for each in batches)
        is_unusual = is_empty or is_record_next or offset < latest
        return is_unusual or self.kafkas_mark < offset == latest

    def _our_snapshot(self, offset: int, count: int) -> str:
        before = self.core.log.snapshot_ids
        try:
            self.core.take_snapshot(offset, *[b"s"] * count)
        except InvalidSnapshotIdError:
            return "IllegalArgumentException"
        return "done" if self.core.log.snapshot_ids != before else "NoSuchElementException"

    def _clean(self) -> None:
        """Let both delete all snapshots but the newest, and what that covers, unless it may not be committed yet.

        A snapshot that a replica fetches stays in raftlog's log (DECISIONS.md, 56). A log does not become empty while
        this replica fetches a snapshot: Kafka's mock log would not be restarted at it. Nor does it if only the
        bootstrap snapshot has named the voters: Kafka's next leader would write them again (DECISIONS.md, 54).
        """
        log, work, role = self.core.log, self.core.raft._replica.snapshots, self.core.raft.role
        mark, latest = self.core.raft.high_watermark, log.latest_snapshot_id
        if latest is None or len(log.snapshot_ids) < 2 or mark is None or mark < latest.offset:
            return
        is_fetching = isinstance(role, Follower) and role.fetching_snapshot is not None
        is_of_bootstrap = self.core.machine.last_voter_set_offset == -1
        if latest.offset == log.end_offset.offset and (is_fetching or is_of_bootstrap):
            return
        self.history.append("clean")
        self.outcome.inputs["clean"] += 1
        theirs = self._oracle.run("clean")
        work.pins = Pins()
        work.clean_ms = self.core.now_ms
        self.core.tick()
        work.clean_ms = NEVER_MS
        self._compare(theirs)

    def _resign(self) -> None:
        epoch = self.core.raft.role.epoch + self.random.choice((-1, 0, 0, 0, 1))
        self.history.append(f"resign {epoch}")
        self.outcome.inputs["resign"] += 1
        theirs = self._oracle.run("resign", epoch)
        called = "done"
        try:
            self.core.raft.resign(epoch)
        except (NotLeaderError, ValueError):
            called = "IllegalArgumentException"
        self.core.settle()
        self._check("called", theirs.called, called)
        self._compare(theirs)

    def _shut_down(self) -> None:
        """Begin to shut down. The sequence ends when raftlog's replica has stopped.

        A leader that stops at once resigns first, unlike Kafka's (DECISIONS.md, 54).
        """
        timeout_ms, is_leader = self.random.randrange(20_000), isinstance(self.core.raft.role, Leader)
        self.history.append(f"shutdown {timeout_ms}")
        self.outcome.inputs["shutdown"] += 1
        theirs = self._oracle.run("shutdown", timeout_ms)
        self.core.raft.shutdown(timeout_ms)
        self.core.settle()
        if not (is_leader and self.core.shutdowns):
            self._compare(theirs)

    def _vote(self) -> None:
        self._request(self.inputs.vote())

    def _begin(self) -> None:
        self._request(self.inputs.begin())

    def _end(self) -> None:
        self._request(self.inputs.end())

    def _fetch(self) -> None:
        self._request(self.inputs.fetch())


_EXCEPTIONS: dict[type[Exception], str] = {
    NotLeaderError: "NotLeaderException",
    UnknownEpochError: "IllegalArgumentException",
    InvalidUpdateVersionError: "InvalidUpdateVersionException",
}


def _sender_id(message: FetchRequest) -> int:
    """Return the replica that fetches: from version 15 on it is named by a field of its own."""
    return message.replica_id if message.replica_id >= 0 else message.replica_state.replica_id


def _append(core: SingleReplica, epoch: int, count: int) -> str:
    try:
        return str(core.append(*[b"r"] * count, epoch=epoch).last_offset)
    except (NotLeaderError, UnknownEpochError) as error:
        return _EXCEPTIONS[type(error)]
