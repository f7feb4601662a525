# SPDX-License-Identifier: Apache-2.0
"""Three real cores, and a network that delays, reorders, repeats and loses messages: a seed determines what happens.

Each replica has a clock of its own, which may stand still for a long time. Voters are removed and added. Of what the
cores answer, only what an application sees is judged: a read must not miss a record whose append was acknowledged
before the read began.
"""

import random
from collections import Counter
from typing import Final, NamedTuple

from raftlog.errors import NotLeaderError, RaftLogError
from raftlog.quorum.leading.voter_change import Refusal, change_refusal, write_voters
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import AppendOutcome, ReadOutcome
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.voters.voter_set import Endpoints
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import (
    LISTENER,
    DictatedDraws,
    SingleReplica,
    log_with,
    replica_key,
    voter_node,
    voter_set_of,
)

IDS: Final = (1, 2, 3)
_CONFIG: Final = QuorumConfig(append_linger_ms=0)
_MOST_DELIVERIES: Final = 200
_VERSIONS: Final = {"FetchRequest": 18, "VoteRequest": 2}


class _Token(NamedTuple):
    """The request that a response is for: its sender, how often that was started, and the number of the effect."""

    sender: int
    incarnation: int
    number: int


class _Message(NamedTuple):
    """A message under way."""

    sender: int
    receiver: int
    token: _Token
    content: RaftRequest | RaftResponse
    is_request: bool


class ThreeReplicas:
    """Three replicas, and the messages between them.

    Attributes:
        counts: how often what happened, to see what a seed has tried.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        voters = voter_set_of(map(replica_key, IDS))
        self.draws = {each: DictatedDraws(self.random.randrange(1000)) for each in IDS}
        self.incarnations = dict.fromkeys(IDS, 0)
        self.messages: list[_Message] = []
        self.cut: set[tuple[int, int]] = set()
        self.paused: int | None = None
        self.acknowledged: dict[int, int] = {}
        self.appended: dict[tuple[int, int], tuple[int, int]] = {}
        self.floors: dict[tuple[int, int], int] = {}
        self.counts: Counter[str] = Counter()
        self.replicas = {
            each: SingleReplica(self._identity(each), _CONFIG, log=log_with([(1, 1)], voters), draws=self.draws[each])
            for each in IDS
        }

    def _identity(self, replica_id: int) -> ReplicaIdentity:
        endpoints = Endpoints.of({LISTENER: ("localhost", 9990 + replica_id)})
        return ReplicaIdentity(key=replica_key(replica_id), cluster_id=CLUSTER, endpoints=endpoints, listener=LISTENER)

    def run(self, steps: int) -> None:
        """Let things happen."""
        actions = {
            self.deliver: 60,
            self.tick: 25,
            self.append: 6,
            self.read: 8,
            self.repeat: 2,
            self.lose: 1,
            self.change_links: 0.7,
            self.restart: 0.3,
            self.change_voters: 1,
        }
        for action in self.random.choices(list(actions), list(actions.values()), k=steps):
            action()
            for each in IDS:
                self._collect(each)

    def deliver(self) -> None:
        """Deliver any message whose link is not cut."""
        ready = [each for each in self.messages if (each.sender, each.receiver) not in self.cut]
        if ready:
            # The next one mostly, so that something gets done; any other at times.
            message = ready[0] if self.random.random() < 0.7 else self.random.choice(ready)
            self.messages.remove(message)
            self._deliver(message)

    def deliver_all(self) -> None:
        """Deliver what is under way, oldest first, until only fetches wait at a leader."""
        for _ in range(_MOST_DELIVERIES):
            for each in IDS:
                self._collect(each)
            if not self.messages:
                return
            self._deliver(self.messages.pop(0))

    def repeat(self) -> None:
        """Deliver a message, which will be delivered again."""
        if self.messages:
            self._deliver(self.random.choice(self.messages))

    def lose(self) -> None:
        """Lose a message."""
        if self.messages:
            self.messages.remove(self.random.choice(self.messages))

    def tick(self) -> None:
        """Let the clock of one replica go on, unless it is a paused one."""
        chosen = self.random.choice(IDS)
        if chosen != self.paused:
            self.replicas[chosen].sleep(self.random.choice((1, 5, 30, 100, 600)))

    def change_links(self) -> None:
        """Heal all links, or cut off a replica in one or both directions: mostly a leader, whose clock stops."""
        self.cut, self.paused = set(), None
        if self.random.random() < 0.5:
            return
        leaders = [each for each in IDS if isinstance(self.replicas[each].raft.role, Leader)]
        others = set(IDS)
        lost = self.random.choice(leaders if leaders and self.random.random() < 0.8 else IDS)
        self.paused = lost if self.random.random() < 0.7 else None
        into = {(each, lost) for each in others}
        out = {(lost, each) for each in others}
        self.cut = self.random.choice((into, out, into | out))

    def restart(self) -> None:
        """Start a replica again. Its flushed log and its election state are there."""
        chosen = self.random.choice(IDS)
        old = self.replicas[chosen]
        self.incarnations[chosen] += 1
        self.replicas[chosen] = SingleReplica(
            old.identity, _CONFIG, log=old.log, stored=old.stored, draws=self.draws[chosen]
        )

    def change_voters(self) -> None:
        """Add a voter, or remove one, at a replica that believes that it leads; its own checks may refuse that."""
        core = self.replicas[self.random.choice(IDS)]
        replica, leadership = core.raft._replica, core.raft._replica.leadership
        received = ReceivedRequest("change", 1, LISTENER)
        if leadership is None or change_refusal(replica, leadership, received) is not None:
            return
        node, voters = voter_node(replica_key(self.random.choice(IDS))), replica.voters
        changed = voters.remove_voter(node.voter_key) if voters.is_voter(node.voter_key) else voters.add_voter(node)
        if changed is not None and not isinstance(write_voters(replica, leadership, changed), Refusal):
            self.counts["changes"] += 1
            core.tick()

    def append(self) -> None:
        """Append at a replica that believes that it leads."""
        chosen = self.random.choice(IDS)
        core = self.replicas[chosen]
        try:
            appended = core.append(b"value")
        except RaftLogError:
            return
        self.appended[chosen, appended.number] = (appended.last_offset, core.raft.role.epoch)

    def read(self) -> None:
        """Read at a replica that believes that it leads; deposed leaders are preferred."""
        leaders = [each for each in IDS if isinstance(self.replicas[each].raft.role, Leader)]
        if not leaders:
            return
        chosen = min(leaders, key=lambda each: self.replicas[each].raft.role.epoch)
        try:
            number = self.replicas[chosen].raft.read_barrier(timeout_ms=self.random.choice((50, 2000)))
        except NotLeaderError:
            return
        self.floors[chosen, number] = max(self.acknowledged, default=-1) + 1
        self.counts["deposed" if len(leaders) > 1 else "alone"] += 1
        self.replicas[chosen].settle()

    def _deliver(self, message: _Message) -> None:
        core = self.replicas[message.receiver]
        if message.is_request:
            version = _VERSIONS.get(type(message.content).__name__, 1)
            core.request(message.token, message.content, version)  # type: ignore[arg-type]
        elif self.incarnations[message.receiver] == message.token.incarnation:
            core.respond(message.token.number, message.content)  # type: ignore[arg-type]

    def _collect(self, replica_id: int) -> None:
        """Put what a replica sends on the network, and judge what it tells its application."""
        core = self.replicas[replica_id]
        for sent in core.take_requests():
            token = _Token(replica_id, self.incarnations[replica_id], sent.number)
            self.messages.append(_Message(replica_id, sent.destination.id, token, sent.message, True))
        for answer in core.take_responses():
            assert isinstance(answer.token, _Token)
            to = answer.token.sender
            self.messages.append(_Message(replica_id, to, answer.token, answer.message, False))
        # Reads first: an append that is acknowledged in the same step was so after the read began.
        for read in core.reads:
            self._judge(core, read.outcome, read.offset, self.floors.pop((replica_id, read.number)))
        core.reads.clear()
        for each in core.ended:
            offset, epoch = self.appended.pop((replica_id, each.number))
            if each.outcome is AppendOutcome.COMMITTED:
                self.acknowledged[offset] = epoch
                self.counts["acknowledged"] += 1
        core.ended.clear()
        assert core.raft.halt_reason is None

    def _judge(self, core: SingleReplica, outcome: ReadOutcome, offset: int, floor: int) -> None:
        self.counts[outcome.value] += 1
        if outcome is not ReadOutcome.CONFIRMED:
            return
        assert offset >= floor, f"a read of {offset}, but {floor} was acknowledged before it began"
        for acknowledged, epoch in self.acknowledged.items():
            if acknowledged < floor:
                assert core.log.epoch_at_offset(acknowledged) == epoch
