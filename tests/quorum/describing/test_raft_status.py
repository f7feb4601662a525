# SPDX-License-Identifier: Apache-2.0
"""The status of one replica: what it says agrees with what it does, and it does not change afterwards."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import MAX_EPOCH, OffsetAndEpoch
from raftlog.quorum.describing.raft_status import VotersStatus
from raftlog.quorum.leading.reading import MAX_PENDING_READS
from raftlog.quorum.leading.serving import MAX_WAITING_FETCHES
from raftlog.quorum.leading.serving_snapshots import MAX_SNAPSHOT_READS
from raftlog.quorum.listening.delivering import MAX_LISTENERS
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader, Unattached
from raftlog.quorum.seam.effects import FlushLog
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.quorum.snapshot_work import MAX_PINS
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, HostPort, VoterSet
from tests.quorum.leading.leaders import ENDS, EPOCH_START, LOG_END, fetch, leader_of
from tests.quorum.messages import CLUSTER, LOCAL
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

IDENTITY = ReplicaIdentity(
    key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
)


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(2, 6), st.sampled_from(ENDS))))
def test_the_status_agrees_with_the_replica(size: int, fetches: list[tuple[int, OffsetAndEpoch]]) -> None:
    """A leader's: what its log has and its peers have fetched; a set of voters is committed with its offset."""
    voters = voter_set_of(map(replica_key, range(1, size + 1)))
    core = leader_of(tuple(range(1, size + 1)))
    before = core.raft.status
    ends: dict[int, int | None] = dict.fromkeys(range(2, size + 1))
    for replica_id, end in fetches:
        fetch(core, replica_key(replica_id), end)
        ends[replica_id] = end.offset

    status = core.raft.status

    assert (status.role, status.epoch, status.leader_id) == (core.raft.role, 3, 1)
    assert status.high_watermark == core.raft.high_watermark
    assert (status.log_start_offset, status.log_end, status.flushed_offset) == (0, OffsetAndEpoch(LOG_END, 3), LOG_END)
    assert {each.key.id: each.end_offset for each in status.fetchers} == ends
    assert all(each.is_voter == (each.key.id <= size) for each in status.fetchers)
    assert all(each.lag == (None if each.end_offset is None else LOG_END - each.end_offset) for each in status.fetchers)
    written = VotersStatus(voters, EPOCH_START + 2)
    if status.committed_offset == LOG_END:
        assert (status.committed_voters, status.uncommitted_voters) == (written, None)
    else:
        assert (status.committed_voters, status.uncommitted_voters) == (VotersStatus(voters, -1), written)
    assert (status.is_voter, status.has_been_voter, status.kraft_version) == (True, True, KRaftVersion.KRAFT_VERSION_1)
    if fetches:
        assert before.fetchers != status.fetchers or not before.fetchers


def test_what_is_not_flushed_is_told() -> None:
    """The log end is above the flushed offset while the disk is slow."""
    core = leader_of((1, 2), FlushLog)
    assert (core.raft.status.log_end.offset, core.raft.status.flushed_offset) == (LOG_END, EPOCH_START)


def test_a_replica_of_no_record_has_the_static_voters() -> None:
    """They come from no record, and no record says that this replica has been one."""
    static = VoterSet.from_inet_addresses(LISTENER, {1: HostPort("a", 1), 2: HostPort("b", 2)})
    status = SingleReplica(IDENTITY, QuorumConfig(), static_voters=static).raft.status
    assert (status.committed_voters, status.uncommitted_voters) == (VotersStatus(static, None), None)
    assert (status.is_voter, status.has_been_voter, status.kraft_version) == (True, False, KRaftVersion.KRAFT_VERSION_0)
    assert (status.high_watermark, status.committed_offset, status.fetchers) == (None, 0, ())


def test_why_a_replica_does_not_stand_for_election_is_told() -> None:
    """It may have forgotten a vote, or there is no epoch left; or it has stopped."""
    log, voters = log_with([(1, 1)]), voter_set_of((LOCAL, replica_key(2)))
    forgetful = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voters, log=log, may_vote=False)
    assert not forgetful.raft.status.may_vote
    assert not forgetful.raft.status.is_out_of_epochs
    for epoch, is_out in ((MAX_EPOCH - 1, False), (MAX_EPOCH, True)):
        stored = QuorumStateData(1, -1, epoch, -1, None)
        status = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voters, stored=stored).raft.status
        assert isinstance(status.role, Unattached)
        assert (status.is_out_of_epochs, status.may_vote, status.is_quarantined) == (is_out, True, False)
    core = leader_of((1,))
    core.raft.effect_failed(1, "the disk is gone")
    assert core.raft.status.halt_reason == "effect 1: the disk is gone"
    assert isinstance(core.raft.status.role, Leader)


def test_an_embedder_may_remember_for_the_replica_that_it_has_been_a_voter() -> None:
    """Its log does not say so any more."""
    voters = voter_set_of((replica_key(2),))
    for is_known in (False, True):
        core = SingleReplica(IDENTITY, QuorumConfig(), log=log_with([], voters), has_been_voter=is_known)
        assert core.raft.status.has_been_voter == is_known


def test_queues_are_told_with_their_limits() -> None:
    """What waits is counted; a replica that does not lead has no queues of a leader."""
    core = leader_of((1, 2, 3), config=QuorumConfig(max_uncommitted_appends=3))

    def lengths() -> dict[str, tuple[int, int]]:
        return {each.name: (each.length, each.limit) for each in core.raft.status.queues}

    assert lengths() == {
        "appends": (0, 3),
        "reads": (0, MAX_PENDING_READS),
        "fetches": (0, 2 * MAX_WAITING_FETCHES),
        "snapshot-reads": (0, MAX_SNAPSHOT_READS),
        "listeners": (0, MAX_LISTENERS),
        "snapshot-fetches": (0, MAX_PINS),
    }
    core.append(b"a")
    core.append(b"b")
    core.raft.read_barrier()
    core.raft.register_listener()
    fetch(core, replica_key(2), ENDS[3], wait=1000)
    waiting = {name: length for name, (length, _) in lengths().items() if length}
    assert waiting == {"appends": 2, "reads": 1, "fetches": 1, "listeners": 1}
    follower = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voter_set_of((LOCAL, replica_key(2))))
    assert {each.name for each in follower.raft.status.queues} == {"listeners", "snapshot-fetches"}
