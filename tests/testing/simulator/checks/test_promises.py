# SPDX-License-Identifier: Apache-2.0
"""A message that promises more than its sender's disk holds is a violation."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.testing.simulator.checks.promises import PromiseCheck
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import (
    begin_quorum_epoch_request,
    fetch_request,
    fetch_response,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

ONE, TWO, END = replica_key(1), replica_key(2), OffsetAndEpoch(0, 0)


@pytest.fixture
def disks() -> QuorumDisks:
    """Three disks."""
    return QuorumDisks(3)


@pytest.fixture
def promises(disks: QuorumDisks) -> PromiseCheck:
    """The check of their messages."""
    return PromiseCheck(disks.witness)


def store(disks: QuorumDisks, leader_epoch: int, leader_id: int = -1, voted_id: int = -1) -> None:
    """Make an election state of replica 1 durable."""
    disks.witness.stored(disks.ledgers[1], QuorumStateData(1, leader_id, leader_epoch, voted_id))


def test_a_fetch_names_what_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A Fetch from the durable end is right, and one from the log end too early."""
    store(disks, leader_epoch=1)
    disks.append((1,), 1)
    promises.request_sent(disks.ledgers[1], fetch_request(ONE, 1, OffsetAndEpoch(0, 0)))
    with pytest.raises(ViolationError, match="fetch-is-durable"):
        promises.request_sent(disks.ledgers[1], fetch_request(ONE, 1, OffsetAndEpoch(1, 1)))


def test_a_candidate_has_voted_for_itself(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A request for votes is sent after the vote for oneself is durable; a pre-vote needs none."""
    store(disks, leader_epoch=1)
    ledger = disks.ledgers[1]
    promises.request_sent(ledger, vote_request(ONE, 1, END, is_pre_vote=True))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(ledger, vote_request(ONE, 1, END))
    store(disks, leader_epoch=1, voted_id=1)
    promises.request_sent(ledger, vote_request(ONE, 1, END))


def test_an_epoch_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A message names no later epoch than the stored one, or that of the last durable batch."""
    disks.append((1,), 2)
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], fetch_request(ONE, 2, END))
    disks.sync(1)
    promises.request_sent(disks.ledgers[1], fetch_request(ONE, 2, END))


def test_a_leader_has_stored_that_it_leads(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """An announcement is sent after the leadership is durable."""
    store(disks, leader_epoch=1, voted_id=1)
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.request_sent(disks.ledgers[1], begin_quorum_epoch_request(1, 1))
    store(disks, leader_epoch=1, leader_id=1)
    promises.request_sent(disks.ledgers[1], begin_quorum_epoch_request(1, 1))


def test_a_vote_is_durable(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A vote that is told is stored; one that is rejected, and a pre-vote, need nothing."""
    store(disks, leader_epoch=1)
    request, ledger = vote_request(TWO, 1, END), disks.ledgers[1]
    promises.response_sent(ledger, request, vote_response(is_granted=False, epoch=1))
    pre_vote = vote_request(TWO, 1, END, is_pre_vote=True)
    promises.response_sent(ledger, pre_vote, vote_response(is_granted=True, epoch=1))
    with pytest.raises(ViolationError, match="stored-before-sent"):
        promises.response_sent(ledger, request, vote_response(is_granted=True, epoch=1))
    store(disks, leader_epoch=1, voted_id=2)
    promises.response_sent(ledger, request, vote_response(is_granted=True, epoch=1))


def test_a_response_names_a_committed_high_watermark(disks: QuorumDisks, promises: PromiseCheck) -> None:
    """A leader tells no high watermark above what is committed."""
    store(disks, leader_epoch=1, leader_id=1)
    request, ledger = fetch_request(TWO, 1, END), disks.ledgers[1]
    promises.response_sent(ledger, request, fetch_response(1, 1, high_watermark=0))
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        promises.response_sent(ledger, request, fetch_response(1, 1, high_watermark=1))
