# SPDX-License-Identifier: Apache-2.0
"""A replica that is named a snapshot again and again, and does nothing about it, is found."""

import pytest

from raftlog.records.messages.raft.fetch_messages import (
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
    FetchSnapshotRequest,
)
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.conduct.named_snapshots import MOST_NAMED, NamedSnapshotCheck
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.single_replica import replica_key


def naming(end_offset: int) -> FetchResponse:
    """Return an answer that names a snapshot, or none at -1."""
    snapshot_id = FetchResponseSnapshotId(end_offset=end_offset, epoch=3)
    part = FetchResponsePartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=9,
        snapshot_id=snapshot_id,
        aborted_transactions=None,
        records=None,
    )
    return FetchResponse(throttle_time_ms=0, responses=(FetchResponseFetchableTopicResponse(partitions=(part,)),))


def test_what_is_named_too_often_is_found() -> None:
    """After the last time that is allowed."""
    one = NamedSnapshotCheck(Ledger(replica_key(1)))
    for _ in range(MOST_NAMED):
        one.answered(naming(7), is_refused=False)
    with pytest.raises(ViolationError, match="named-snapshots-are-followed"):
        one.answered(naming(7), is_refused=False)


@pytest.mark.parametrize("what", ["another", "none", "fetched", "refused", "full", "moved", "nothing"])
def test_what_begins_the_count_anew(what: str) -> None:
    """Another snapshot or none, a request for it, a disk that refuses it, and a log that has changed."""
    ledger = Ledger(replica_key(1))
    one = NamedSnapshotCheck(ledger)
    for _ in range(MOST_NAMED):
        one.answered(naming(7), is_refused=False)
    if what in {"another", "none"}:
        one.answered(naming(8 if what == "another" else -1), is_refused=False)
    elif what == "fetched":
        one.sent(FetchSnapshotRequest(topics=()))
    elif what in {"refused", "full"}:
        ledger.refusals = int(what == "full")
        one.answered(naming(7), is_refused=what == "refused")
        ledger.refusals = 0
    elif what == "moved":
        ledger.start_offset = 3
    one.answered(FetchResponse(throttle_time_ms=0, responses=()), is_refused=False)
    if what == "nothing":
        with pytest.raises(ViolationError):
            one.answered(naming(7), is_refused=False)
    else:
        one.answered(naming(7), is_refused=False)
