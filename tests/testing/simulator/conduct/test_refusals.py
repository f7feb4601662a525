# SPDX-License-Identifier: Apache-2.0
"""How long a process holds back after a refusal, at, before and after the end of each pause."""

import contextlib

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.conduct.refusals import RefusalCheck
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import end_quorum_epoch_request, fetch_request, vote_request
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

CONFIG = QuorumConfig(election_timeout_ms=300, fetch_timeout_ms=600, retry_backoff_ms=100)
END = OffsetAndEpoch(0, 0)
FETCH, BID = fetch_request(replica_key(1), 1, END), vote_request(replica_key(1), 1, END, is_pre_vote=True)


def begun() -> tuple[QuorumDisks, Ledger, RefusalCheck]:
    """Return disks, the ledger of one, and the check of its process, which has just started."""
    disks = QuorumDisks(1)
    disks.ledgers[1].refusals = disks.ledgers[1].refused_in_epoch = 7  # In another run.
    return disks, disks.ledgers[1], RefusalCheck(disks.ledgers[1], CONFIG)


@pytest.mark.parametrize(
    ("count", "request_", "pause_ms"),
    [
        *((1, FETCH, 100), (2, FETCH, 200), (3, FETCH, 300), (9, FETCH, 300)),
        *((1, BID, 300), (2, BID, 600), (5, BID, 4800), (9, BID, 4800)),
    ],
)
def test_pauses_double_up_to_a_limit(count: int, request_: RaftRequest, pause_ms: int) -> None:
    """Nothing is sent a millisecond before the end of a pause, and anything at its end."""
    for past_ms in (0, pause_ms - 1, pause_ms):
        disks, ledger, found = begun()
        for _ in range(count):
            disks.witness.refused(ledger)
        assert not found.noted(1000, None)
        found.sent(end_quorum_epoch_request(1, 1), 1000, None)
        is_right = past_ms == pause_ms
        with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="refusals-pause"):
            found.sent(request_, 1000 + past_ms, None)


def test_the_longest_pause_begins_with_the_last_refusal() -> None:
    """There is none before the first refusal, and none after records were taken."""
    disks, ledger, found = begun()
    found.noted(100, None)
    assert found.longest_pause_until_ms == 0
    for at_ms in (1000, 3000):
        disks.witness.refused(ledger)
        found.noted(at_ms, None)
        found.noted(at_ms + 500, None)
        assert found.longest_pause_until_ms == at_ms + 16 * 300
    disks.append((1,), 1)
    found.noted(4000, None)
    assert found.longest_pause_until_ms == 0


def test_a_refusal_is_noted_as_a_request_is_sent() -> None:
    """A request that comes with the refusal has no pause before it."""
    disks, ledger, found = begun()
    found.sent(FETCH, 500, None)
    disks.witness.refused(ledger)
    with pytest.raises(ViolationError, match="refusals-pause"):
        found.sent(FETCH, 1000, None)


def test_records_that_are_taken_end_it() -> None:
    """Once: what comes later is no news, and pauses begin anew."""
    disks, ledger, found = begun()
    disks.witness.refused(ledger)
    disks.witness.refused(ledger)
    assert not found.noted(0, None)
    disks.append((1,), 1)
    assert found.noted(10, None)
    assert not found.noted(20, None)
    found.sent(FETCH, 20, None)
    disks.witness.refused(ledger)
    found.noted(30, None)
    found.sent(FETCH, 130, None)


@pytest.mark.parametrize(("offset", "is_ended"), [(1, False), (2, True)])
def test_a_snapshot_that_reaches_further_ends_it(offset: int, is_ended: bool) -> None:
    """A log that a snapshot replaces has grown if the snapshot ends after it; otherwise no pause ends."""
    disks = QuorumDisks(3)
    disks.lead(2, 1)
    disks.append((1, 2, 3), 1)
    disks.append((2, 3), 1)
    disks.sync(1, 2, 3)
    ledger = disks.ledgers[1]
    found = RefusalCheck(ledger, CONFIG)
    disks.witness.refused(ledger)
    found.noted(0, None)
    ledger.snapshots = (OffsetAndEpoch(offset, 1),)
    disks.witness.restarted(ledger, offset)
    assert found.noted(10, None) is is_ended


@pytest.mark.parametrize(("past_ms", "is_right"), [(99, False), (100, True)])
def test_a_refused_snapshot_is_followed_by_a_pause(past_ms: int, is_right: bool) -> None:
    """From the time at which the process says so; elections need none."""
    _, _, found = begun()
    found.noted(0, None)
    found.noted(1000, "bad")
    found.sent(BID, 1000, "bad")
    with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="refusals-pause"):
        found.sent(FETCH, 1000 + past_ms, "bad")
    found.sent(FETCH, 1000, None)
