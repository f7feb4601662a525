# SPDX-License-Identifier: Apache-2.0
"""Batches of one control record each: voter sets, and the elections between them."""

import uuid
from collections.abc import Iterator
from typing import Final

from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import ControlValue, LeaderChangeMessage, Voter
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

VOTER_IDS: Final = ((3001, 3002, 3003), (3001, 3002, 3003, 3004))
"""Of the voter sets, which take turns: a voter comes and goes."""


def control_batches(elections: int, epoch: int, timestamp: int) -> Iterator[bytes]:
    """Yield a batch for each voter set, and so many of elections after each; all have offset 0."""
    for ids in VOTER_IDS:
        for value in _control_values(ids, elections):
            yield write_control_batch([value], base_offset=0, epoch=epoch, timestamp=timestamp)


def opening_batch(epoch: int, timestamp: int) -> bytes:
    """Return the batch at offset 0 with which the leader of an epoch begins."""
    voters = tuple(map(Voter, VOTER_IDS[0]))
    value = LeaderChangeMessage(VOTER_IDS[0][0], voters, voters)
    return write_control_batch([value], base_offset=0, epoch=epoch, timestamp=timestamp)


def _control_values(ids: tuple[int, ...], elections: int) -> Iterator[ControlValue]:
    yield voters_record(VoterSet.of(map(_voter, ids)))
    voters = tuple(map(Voter, ids))
    for election in range(elections):
        yield LeaderChangeMessage(ids[election % len(ids)], voters, voters)


def _voter(voter_id: int) -> VoterNode:
    endpoints = Endpoints.of({"CONTROLLER": (f"controller-{voter_id}.example", 9093)})
    return VoterNode(ReplicaKey(voter_id, uuid.UUID(int=voter_id)), endpoints, SupportedVersionRange(0, 1))
