# SPDX-License-Identifier: Apache-2.0
"""A follower that becomes a voter by what it appends."""

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Prospective, Unattached
from raftlog.quorum.seam.effects import AppendAsFollower
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints
from tests.quorum.leading.leaders import SlowDisk
from tests.quorum.messages import CLUSTER, LOCAL, begin_quorum_epoch_request, fetch_response, vote_request
from tests.quorum.single_replica import LISTENER, log_with, replica_key, voter_set_of


def test_a_new_voter_that_has_just_lost_its_leader_begins_an_election() -> None:
    """A later epoch is learned while the disk writes the record that makes this replica a voter."""
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
    )
    core = SlowDisk(identity, QuorumConfig(), log=log_with([(1, 3)], voter_set_of(map(replica_key, (2, 3)))))
    core.slow = AppendAsFollower
    core.request("", begin_quorum_epoch_request(2, 2), version=1)
    (sent,) = core.take_requests()
    voters = voters_record(voter_set_of(map(replica_key, (1, 2, 3))))
    records = write_control_batch([voters], base_offset=3, epoch=2, timestamp=0)
    core.respond(sent.number, fetch_response(2, 2, records=records))
    core.request("", vote_request(replica_key(3), 3, OffsetAndEpoch(0, 0)), version=2)
    assert core.raft.role == Unattached(3)
    core.let_go()
    assert core.machine.last_voter_set.is_voter(LOCAL)
    core.sleep(1_000)
    assert isinstance(core.raft.role, Prospective)
