# SPDX-License-Identifier: Apache-2.0
"""The world of a leader, replica 1, that is asked to change its voters.

Each step also prints the voters in force, with the offset of their record. A voter in a directory that does not have
its number is written with the number: ``4/7``.
"""

from collections.abc import Callable
from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.effects import SendResponse
from raftlog.records.messages.raft.election_messages import VoteRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchResponse
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterResponse,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
)
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.messages import (
    LOCAL,
    add_voter_request,
    api_versions_response,
    fetch_request,
    remove_voter_request,
    update_voter_request,
)
from tests.quorum.single_replica import replica_key
from tests.scenarios.world import World, command
from tests.scenarios.worlds.election_world import ElectionWorld


class VoterChangeWorld(ElectionWorld):
    """Replica 1, with the timeouts of Kafka's defaults: a request to change voters is answered after 2,000 ms."""

    @command
    def lead(self, voters: tuple[int, ...]) -> str:
        """Start with records of epoch 1, win epoch 2, and commit what the leader has written."""
        self.start(voters, log="1x3", epoch=1)
        others = [each for each in voters if each != LOCAL.id]
        if others:
            self.sleep(1_000)
        for _ in range(2):
            for each in others:
                if each in self._sent and isinstance(self._sent[each].message, VoteRequest):
                    self.grant(each)
        for each in others:
            self._fetch_at_end(replica_key(each))
        return self._what_happened()

    @command
    def follow(self, replicas: tuple[int, ...], ms: int = 0, directory: int | None = None) -> str:
        """Let replicas fetch at the log end, now, and every 500 ms for some time."""
        for pause_ms in (0, *[500] * (ms // 500)):
            self._replica.sleep(pause_ms)
            for each in replicas:
                self._fetch_at_end(replica_key(each, directory))
        return self._what_happened()

    @command
    def append(self, count: int) -> str:
        """Append records as the leader, in one batch, which is written at once."""
        self._replica.append(*[b"r"] * count)
        self._replica.sleep(25)
        return self._what_happened()

    @command
    def add(self, voter: int, directory: int | None = None, ack: bool = True) -> str:
        """Ask to add a voter; the answer waits for the commit, or only until the record is written."""
        return self._request(add_voter_request(replica_key(voter, directory), ack_when_committed=ack))

    @command
    def versions(self, voter: int, lowest: int = 0, highest: int = 1) -> str:
        """A new voter names the levels of kraft.version that it supports."""
        return self._respond(voter, api_versions_response((lowest, highest)))

    @command
    def remove(self, voter: int, directory: int | None = None) -> str:
        """Ask to remove a voter."""
        return self._request(remove_voter_request(replica_key(voter, directory)))

    @command
    def update(self, voter: int, port: int) -> str:
        """A voter reports another port."""
        return self._request(update_voter_request(replica_key(voter), self._epoch(None), port=port))

    def _fetch_at_end(self, key: ReplicaKey) -> None:
        log = self._replica.log
        end = OffsetAndEpoch(log.end_offset.offset, log.last_fetched_epoch)
        message = fetch_request(key, self._epoch(None), end, max_wait_ms=0)
        self._replica.request(key.id, message, version=17)

    def _what_happened(self) -> str:
        replica = self._replica
        replica.responses = [each for each in replica.responses if not _is_plain(each)]
        machine = replica.machine
        names = " ".join(map(_spelled, sorted(machine.last_voter_set.voter_keys)))
        return f"{super()._what_happened()}\nvoters {names} at offset {machine.last_voter_set_offset}"

    def _text_of_answer(self, sent: SendResponse) -> str:
        message = sent.message
        if isinstance(message, AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse):
            kind = type(message).__name__.removesuffix("RaftVoterResponse").lower()
            return f"answer to {kind}: {ErrorCode(message.error_code).name}"
        return super()._text_of_answer(sent)


def _is_plain(sent: SendResponse) -> bool:
    """Whether a response to a Fetch tells nothing: no records, no error, no divergence."""
    message = sent.message
    if not isinstance(message, FetchResponse) or not message.responses:
        return False
    found = message.responses[0].partitions[0]
    return not found.error_code and not found.records and found.diverging_epoch.end_offset < 0


def _spelled(key: ReplicaKey) -> str:
    number = 0 if key.directory_id is None else key.directory_id.int & (2**64 - 1)
    return str(key.id) if number == key.id else f"{key.id}/{number}"


VOTER_CHANGE_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": VoterChangeWorld}
