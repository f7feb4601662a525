# SPDX-License-Identifier: Apache-2.0
"""A follower whose leader sends it records, for tests of listeners."""

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import DeliverBatches, DeliverBootstrap, Delivering, DeliverSnapshot
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints
from tests.quorum.messages import CLUSTER, LOCAL, begin_quorum_epoch_request, fetch_response, records_at
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

LEADER = 2
EPOCH = 3
RECORD_COUNT = 4
"""How many records the follower has at first, in two batches of epoch 1. It does not know what is committed."""

VOTERS = voter_set_of(map(replica_key, (1, LEADER)))


def follower(*, has_bootstrap: bool = False) -> SingleReplica:
    """Return replica 1, which follows replica 2 in epoch 3."""
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
    )
    log = log_with([(1, 2), (1, 2)], VOTERS if has_bootstrap else None)
    core = SingleReplica(identity, QuorumConfig(fetch_timeout_ms=10**8), log=log, static_voters=VOTERS)
    core.request("", begin_quorum_epoch_request(LEADER, EPOCH), version=1)
    assert isinstance(core.raft.role, Follower)
    return core


def fetched(core: SingleReplica, count: int, high_watermark: int) -> None:
    """Answer the Fetch with one batch of records, or with none, and with the leader's high watermark."""
    sent = [each for each in core.take_requests() if isinstance(each.message, FetchRequest)][-1]
    records = records_at(core.log.end_offset.offset, EPOCH, count) if count else b""
    core.respond(sent.number, fetch_response(EPOCH, LEADER, records=records, high_watermark=high_watermark))


def snapshot(core: SingleReplica, offset: int) -> OffsetAndEpoch:
    """Make a snapshot of what is committed, and delete the records that it covers."""
    snapshot_id = OffsetAndEpoch(offset, core.log.epoch_at_offset(offset - 1))
    raw = core.log.create_snapshot(snapshot_id)
    assert raw is not None
    with RecordsSnapshotWriter(
        raw,
        0,
        last_contained_log_timestamp=0,
        kraft_version=KRaftVersion.KRAFT_VERSION_1,
        voter_set=VOTERS,
    ) as writer:
        writer.freeze(0)
    core.log.delete_before_snapshot(snapshot_id)
    return snapshot_id


def text_of(delivery: Delivering) -> str:
    """Return what a listener is given."""
    match delivery:
        case DeliverBatches():
            return f"{delivery.offset}..{delivery.end_offset}"
        case DeliverSnapshot():
            return f"snapshot {delivery.snapshot_id.offset}@{delivery.snapshot_id.epoch}"
        case DeliverBootstrap():
            return "bootstrap"


def texts(core: SingleReplica, listener: int) -> list[str]:
    """Return what a listener was given so far."""
    return [text_of(each) for each in core.deliveries if each.listener == listener]
