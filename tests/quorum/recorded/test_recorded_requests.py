# SPDX-License-Identifier: Apache-2.0
"""The requests that Kafka's replicas and tools sent to their leaders get the answers that Kafka's leaders gave.

Our core leads each recorded epoch and writes the recorded batches. When Kafka wrote them is not recorded, only when a
replica first got them: so a Fetch may find records in one of the two and not yet in the other. Everything else of an
answer is determined by the requests before it, to the byte: errors, epoch, leader and address, log start, high
watermark, snapshot to fetch, and the records.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import attrs
import pytest

from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
)
from tests.quorum.recorded.leader_replay import CONFIG, LeaderReplay, comparable_batch, recorded_log
from tests.quorum.recorded.recorded_roles import LOG_STARTS
from tests.quorum.recorded.recording import LISTENER, WIRE, Frame, api_versions_responses, batches, batches_of, frames
from tests.quorum.single_replica import SingleReplica

FRAMES: Final = tuple(frames())
ASKED: Final = (
    FetchRequest,
    FetchSnapshotRequest,
    DescribeQuorumRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
)
"""The requests that a leader is given."""

CLOCK_DIFFERENCE_MS: Final = 60
"""How far the times of Kafka's leader may be from those of the recording proxy."""


def asked_epoch(frame: Frame) -> int | None:
    """Return the epoch that a Fetch is for; None for another message."""
    message = frame.message
    return message.topics[0].partitions[0].current_leader_epoch if isinstance(message, FetchRequest) else None


def records_of(message: Any) -> list[Any]:
    """Return the records of the answer to a Fetch, in a form that can be compared."""
    partition = message.responses[0].partitions[0]
    return [comparable_batch(each) for each in batches_of(partition.records)]


def without_records(message: Any) -> Any:
    """Return all of the answer to a Fetch but the records."""
    return attrs.evolve(message, responses=()), attrs.evolve(message.responses[0].partitions[0], records=b"")


def comparable_description(message: DescribeQuorumResponse) -> Any:
    """Return a description of a quorum without the times, and without its order, which Kafka leaves open."""
    found = message.topics[0].partitions[0]
    sides = [
        {attrs.evolve(each, last_fetch_timestamp=0, last_caught_up_timestamp=0) for each in side}
        for side in (found.current_voters, found.observers)
    ]
    head = attrs.evolve(found, current_voters=(), observers=())
    return attrs.evolve(message, topics=(), nodes=()), head, sides, set(message.nodes)


def times_of(message: DescribeQuorumResponse) -> list[int]:
    """Return the times in a description, by replica."""
    found = message.topics[0].partitions[0]
    states = sorted((*found.current_voters, *found.observers), key=lambda each: each.replica_id)
    return [at for each in states for at in (each.last_fetch_timestamp, each.last_caught_up_timestamp)]


def verdict(ours: Any, recorded: Any) -> str:
    """Return how an answer compares with the recorded one."""
    if isinstance(recorded, DescribeQuorumResponse):
        is_near = max(abs(a - b) for a, b in zip(times_of(ours), times_of(recorded), strict=True)) < CLOCK_DIFFERENCE_MS
        is_equal = is_near and comparable_description(ours) == comparable_description(recorded)
        return "description equal" if is_equal else "description differs"
    if ours is None or not isinstance(recorded, FetchResponse):
        return _other_verdict(ours, recorded)
    if without_records(ours) != without_records(recorded):
        return "fetch differs"
    mine, theirs = records_of(ours), records_of(recorded)
    if mine == theirs:
        return "fetch equal"
    is_prefix = mine[: len(theirs)] == theirs or theirs[: len(mine)] == mine
    return "written earlier or later" if is_prefix else "records differ"


def _other_verdict(ours: Any, recorded: Any) -> str:
    if isinstance(recorded, FetchSnapshotResponse):
        return "snapshot equal" if _with_bytes(ours) == _with_bytes(recorded) else "snapshot differs"
    if not isinstance(recorded, FetchResponse):
        return "change equal" if ours == recorded else "change differs"
    partition = recorded.responses[0].partitions[0]
    return "not answered" if partition.records else "answered early, without news"


def _with_bytes(message: FetchSnapshotResponse) -> Any:
    """Return a part of a snapshot so that it can be compared."""
    (partition,) = message.topics[0].partitions
    part = attrs.evolve(partition, unaligned_records=bytes(partition.unaligned_records))
    return attrs.evolve(message, topics=()), message.topics[0].name, part


def recorded_versions(replica_id: int) -> ApiVersionsResponse:
    """Return what a replica has answered to an ApiVersions, each time the same."""
    return next(each for each in api_versions_responses(replica_id) if each.supported_features)


class Replay:
    """Gives a leader of ours the requests that Kafka's got in its epoch, and compares the answers."""

    def __init__(self, leader_id: int, epoch: int) -> None:
        self.epoch = epoch
        self.leader = LeaderReplay(WIRE, leader_id, epoch, LOG_STARTS.get(leader_id, 0))
        self.frames = [each for each in FRAMES if each.receiver == leader_id]
        self.start = next(each for each in self.frames if asked_epoch(each) == epoch)
        self.asked: dict[Any, Frame] = {}
        self.answers: dict[Any, Any] = {}
        self.verdicts: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """Take the frames in their order, up to the end of the leadership."""
        for frame in self.frames:
            if frame.number >= self.start.number:
                self.leader.pass_time(frame.ms - self.start.ms, frame.ms)
                self._ask(frame) if frame.is_request else self._compare(frame)
        return self.verdicts

    def _ask(self, frame: Frame) -> None:
        message = frame.message
        if isinstance(message, FetchRequest) and asked_epoch(frame) != self.epoch:
            return
        if isinstance(message, ASKED):
            self.asked[frame.token] = frame
            if isinstance(message, AddRaftVoterRequest | RemoveRaftVoterRequest):
                self.leader.prepare_voters()
            self.leader.core.request(frame.token, message, frame.version, LISTENER)
            for each in self.leader.core.take_requests():
                if isinstance(each.message, ApiVersionsRequest):
                    self.leader.core.respond(each.number, recorded_versions(each.destination.id))

    def _compare(self, frame: Frame) -> None:
        message = frame.message
        if frame.token not in self.asked:
            return
        if isinstance(message, FetchResponse):
            if message.responses[0].partitions[0].error_code:
                self.verdicts["after the leadership"] += 1
                return
            written = batches_of(message.responses[0].partitions[0].records)
            if written:
                self.leader.write_up_to(written[-1].next_offset)
        self.answers |= {each.token: each.message for each in self.leader.core.take_responses()}
        self.verdicts[verdict(self.answers.pop(frame.token, None), message)] += 1


@pytest.mark.parametrize(
    ("leader_id", "epoch", "expected"),
    [
        (
            2,
            1,
            {
                "fetch equal": 842,
                "snapshot equal": 1,
                "description equal": 2,
                "change equal": 1,
                "written earlier or later": 4,
                "answered early, without news": 2,
            },
        ),
        (3, 3, {"fetch equal": 144, "description equal": 1, "after the leadership": 101}),
        (4, 4, {"fetch equal": 248, "description equal": 1, "change equal": 1}),
    ],
)
def test_a_leader_answers_as_kafkas_did(leader_id: int, epoch: int, expected: dict[str, int]) -> None:
    """Of 1,240 answers to fetches, 1,234 are determined, and equal; so are 4 descriptions and 2 changes of voters.

    Twice Kafka has answered a waiting Fetch with nothing new before its time was over: it does so when it writes
    to its log, and the recording does not say when that was.
    """
    assert dict(Replay(leader_id, epoch).run()) == expected


# Replicas that do not lead


def epoch_and_leader(frame: Frame) -> tuple[int, int] | None:
    """Return what a response says of its sender: the epoch that it knows, and the leader, or -1."""
    topics = getattr(frame.message, "responses", None) or getattr(frame.message, "topics", None)
    if frame.is_request or not topics or isinstance(frame.message, DescribeQuorumResponse):
        return None
    partition = topics[0].partitions[0]
    if isinstance(partition, FetchResponsePartitionData | FetchSnapshotResponsePartitionSnapshot):
        return partition.current_leader.leader_epoch, partition.current_leader.leader_id
    return partition.leader_epoch, partition.leader_id


def refused_fetches() -> Iterator[tuple[Frame, Frame, tuple[int, int] | None]]:
    """Yield each Fetch that was answered with an error, its response, and the epoch and leader that the replica knew.

    They are determined if the responses of that replica before and after this one name the same; otherwise None.
    """
    asked = {each.token: each for each in FRAMES if each.is_request}
    for receiver in sorted({each.receiver for each in FRAMES}):
        said = [each for each in FRAMES if each.receiver == receiver and epoch_and_leader(each) is not None]
        known = [None, *map(epoch_and_leader, said), None]
        for place, frame in enumerate(said):
            message, before, after = frame.message, known[place], known[place + 2]
            if isinstance(message, FetchResponse) and message.responses[0].partitions[0].error_code:
                yield asked[frame.token], frame, before if before == after else None


def replica_that_knows(replica_id: int, epoch: int, leader: int) -> SingleReplica:
    """Return our core for a replica that has stored an epoch and its leader; as its own leader it has resigned."""
    recorded = [each for each in batches(WIRE.whole_log) if each.partition_leader_epoch < epoch]
    stored = QuorumStateData(1, leader, epoch, -1, None) if epoch else None
    log = recorded_log(WIRE.whole_log, recorded, 0)
    return SingleReplica(WIRE.identity(replica_id), CONFIG, log=log, stored=stored)


def test_a_replica_that_does_not_lead_refuses_as_kafkas_did() -> None:
    """Of 385 answers with an error, 368 are determined, and equal in all that they say."""
    counts: Counter[str] = Counter()
    cores: dict[tuple[int, int, int], SingleReplica] = {}
    for request, response, known in refused_fetches():
        if known is None:
            counts["not determined"] += 1
            continue
        assert isinstance(request.message, FetchRequest)
        state = response.receiver, *known
        core = cores[state] = cores.get(state) or replica_that_knows(*state)
        core.request("", request.message, request.version, LISTENER)
        (answer,) = core.take_responses()
        is_equal = without_records(answer.message) == without_records(response.message)
        counts["refused alike" if is_equal else "differs"] += 1
    assert dict(counts) == {"refused alike": 368, "not determined": 17}
