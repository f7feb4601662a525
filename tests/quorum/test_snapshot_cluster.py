# SPDX-License-Identifier: Apache-2.0
"""Snapshots and elections together: the class of bugs that Redis-Raft had 21 of (Jepsen, 2020; R28)."""

from tests.quorum.snapshot_cluster import IDS, SnapshotCluster

SEEDS = range(12)
STEPS = 800


def test_snapshots_with_failover() -> None:
    """Nothing committed is lost or changed, snapshots have what is committed, and in the end all logs are equal."""
    fetched = 0
    for seed in SEEDS:
        cluster = SnapshotCluster(seed)
        for _ in range(STEPS):
            cluster.step(loss=0.1)
        cluster.settle()
        replicas = [cluster.replicas[each] for each in IDS]
        ends = {(each.raft.high_watermark, each.log.end_offset.offset) for each in replicas}
        assert len(ends) == 1, f"seed {seed}: {ends}"
        assert len({each.log.last_fetched_epoch for each in replicas}) == 1, f"seed {seed}"
        assert len(cluster.leaders) > 2
        fetched += cluster.fetched
    assert fetched > 3
