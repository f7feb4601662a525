# SPDX-License-Identifier: Apache-2.0
"""A replica that is named a snapshot again and again, and does nothing about it, is found."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.raft.fetch_messages import FetchResponse, FetchSnapshotRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.conduct.named_snapshots import MOST_NAMED, NamedSnapshotCheck
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import fetch_response
from tests.quorum.single_replica import replica_key


def naming(end_offset: int) -> FetchResponse:
    """Return an answer that names a snapshot, or none at -1."""
    return fetch_response(3, snapshot_id=OffsetAndEpoch(end_offset, 3))


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
