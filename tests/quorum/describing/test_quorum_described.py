# SPDX-License-Identifier: Apache-2.0
"""Describing the quorum to a tool: only its leader does, and says of each replica what its last Fetch said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.describing.quorum_described import OBSERVER_SESSION_TIMEOUT_MS
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import read_rpc, write_rpc
from raftlog.records.messages.raft.voter_messages import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints, HostPort, VoterSet
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch, leader_of
from tests.quorum.messages import CLUSTER, LOCAL, begin_quorum_epoch_request, describe_quorum_request, vote_response
from tests.quorum.single_replica import LISTENER, SingleReplica, replica_key

START_WALL_MS = 1_000_000


def described(core: SingleReplica, version: int = 2, topic: str = METADATA_TOPIC) -> DescribeQuorumResponse:
    """Return the answer to a DescribeQuorum, as it arrives in a version."""
    core.request("", describe_quorum_request(topic), version)
    (answer,) = core.take_responses()
    assert isinstance(answer.message, DescribeQuorumResponse)
    return read_rpc(DescribeQuorumResponse, write_rpc(answer.message, version), version)


def partition(answer: DescribeQuorumResponse) -> DescribeQuorumResponsePartitionData:
    """Return the one partition of an answer."""
    return answer.topics[0].partitions[0]


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(2, 7), st.sampled_from(ENDS), st.integers(0, 100))))
def test_each_replica_is_described_by_its_last_fetch(size: int, fetches: list[tuple[int, OffsetAndEpoch, int]]) -> None:
    """Voters are listed even if they have never fetched, observers from their first Fetch on; all by their ids."""
    core = leader_of(tuple(range(1, size + 1)))
    ends, times, caught_up = dict.fromkeys(range(2, size + 1), -1), {}, {}
    for replica_id, end, ms in fetches:
        core.sleep(ms)
        fetch(core, replica_key(replica_id), end)
        ends[replica_id], times[replica_id] = end.offset, core.now_ms
        if end.offset == LOG_END:
            caught_up[replica_id] = core.now_ms

    answer = partition(described(core))

    leader = DescribeQuorumResponseReplicaState(
        replica_id=1,
        replica_directory_id=LOCAL.directory_id or ZERO_UUID,
        log_end_offset=LOG_END,
        last_fetch_timestamp=core.now_ms,
        last_caught_up_timestamp=core.now_ms,
    )
    others = [
        DescribeQuorumResponseReplicaState(
            replica_id=each,
            replica_directory_id=replica_key(each).directory_id or ZERO_UUID,
            log_end_offset=ends[each],
            last_fetch_timestamp=times.get(each, -1),
            last_caught_up_timestamp=caught_up.get(each, -1),
        )
        for each in sorted(ends)
    ]
    mark = core.raft.high_watermark
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "")
    assert (answer.leader_id, answer.leader_epoch, answer.high_watermark) == (1, 3, -1 if mark is None else mark)
    assert list(answer.current_voters) == [leader, *(each for each in others if each.replica_id <= size)]
    assert list(answer.observers) == [each for each in others if each.replica_id > size]


def test_a_version_has_what_it_has_room_for() -> None:
    """Directory ids and addresses of the voters are in version 2, times from version 1 on."""
    core = leader_of((1, 2))
    fetch(core, replica_key(2), ENDS[3])
    old, timed, newest = (described(core, version) for version in range(3))
    assert [each.last_fetch_timestamp >= 0 for each in partition(old).current_voters] == [False, False]
    assert [each.last_fetch_timestamp >= 0 for each in partition(timed).current_voters] == [True, True]
    assert {each.replica_directory_id for each in partition(timed).current_voters} == {ZERO_UUID}
    assert [each.replica_directory_id for each in partition(newest).current_voters] == [
        replica_key(1).directory_id,
        replica_key(2).directory_id,
    ]
    assert (old.nodes, timed.nodes) == ((), ())
    assert [(each.node_id, each.listeners[0].port) for each in newest.nodes] == [(1, 9991), (2, 9992)]


@pytest.mark.parametrize(("idle_ms", "is_listed"), [(-1, True), (0, False), (1, False)])
def test_an_observer_is_forgotten_after_five_minutes(idle_ms: int, is_listed: bool) -> None:
    """At the limit it is forgotten; a voter never is."""
    core = leader_of((1,))
    fetch(core, replica_key(7), ENDS[3])
    core.sleep(OBSERVER_SESSION_TIMEOUT_MS + idle_ms)
    assert [each.replica_id for each in partition(described(core)).observers] == [7] * is_listed
    assert [each.replica_id for each in partition(described(core)).current_voters] == [1]


def test_a_voter_is_listed_however_long_it_has_not_fetched() -> None:
    """Voter 4 of four has not fetched for five minutes; the others keep the leader in office."""
    core = leader_of((1, 2, 3, 4))
    fetch(core, replica_key(4), ENDS[3])
    for _ in range(OBSERVER_SESSION_TIMEOUT_MS // 1000):
        core.sleep(1000)
        fetch(core, replica_key(2), ENDS[3])
        fetch(core, replica_key(3), ENDS[3])
    assert isinstance(core.raft.role, Leader)
    assert [each.replica_id for each in partition(described(core)).current_voters] == [1, 2, 3, 4]


@pytest.mark.parametrize("version", range(3))
def test_another_log_is_not_known(version: int) -> None:
    """Kafka's tools print the text, which older versions have no room for."""
    answer = partition(described(leader_of((1,)), version, topic="other"))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_message == ("This server does not host this topic-partition." if version == 2 else "")


def test_only_the_leader_describes_the_quorum() -> None:
    """A follower answers with the error for the partition, and does not name the leader."""
    core = leader_of((1, 2))
    core.request("", begin_quorum_epoch_request(2, 9), version=1)
    core.take_responses()
    answer = described(core)
    assert (answer.error_code, answer.nodes) == (ErrorCode.NONE, ())
    assert partition(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert str(partition(answer).error_message).startswith("For requests intended only for the leader")
    assert (partition(answer).leader_id, partition(answer).current_voters) == (0, ())


def test_static_voters_have_no_directory_ids() -> None:
    """With kraft.version 0 the directory id of a voter is not known, though its Fetch names one. So does Kafka."""
    voters = VoterSet.from_inet_addresses(LISTENER, {1: HostPort("localhost", 9991), 2: HostPort("localhost", 9992)})
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
    )
    core = SingleReplica(identity, QuorumConfig(), static_voters=voters, wall_ms=START_WALL_MS)
    core.sleep(1000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    fetch(core, replica_key(2), OffsetAndEpoch(1, 1))
    states = partition(described(core)).current_voters
    assert [(each.replica_id, each.replica_directory_id) for each in states] == [(1, ZERO_UUID), (2, ZERO_UUID)]
    assert [each.log_end_offset for each in states] == [1, 1]
    assert [each.last_fetch_timestamp for each in states] == [START_WALL_MS + 1000] * 2
