# SPDX-License-Identifier: Apache-2.0
"""Replica 1 in each role, in epoch 3 of a quorum of 1 and 2, from which 3 was removed, and which 9 never was in."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from raftlog.log.memory_log import MemoryLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints
from tests.quorum.driving.driven_replicas import IDENTITY
from tests.quorum.following.followers import DATA, SNAPSHOT
from tests.quorum.following.observers import fetch_until_due, observer_of
from tests.quorum.leading.leaders import leader_of
from tests.quorum.leading.voter_requests import ask, catch_up, errors, fetch_at_end
from tests.quorum.messages import (
    add_voter_request,
    fetch_response,
    fetch_snapshot_response,
    remove_voter_request,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

EPOCH: Final = 3
VOTER, REMOVED, UNKNOWN = replica_key(2), replica_key(3), replica_key(9)
TAKEN: Final = OffsetAndEpoch(5, 2)
"""The id of a snapshot that the leader has taken."""


def _log() -> MemoryLog:
    """Return a log in which 3 is removed from the voters 1, 2 and 3."""
    before, after = (voter_set_of(map(replica_key, ids)) for ids in ((1, 2, 3), (1, 2)))
    log = log_with(((1, 3), (2, 2)), before)
    batches = BatchAccumulator(2, log.end_offset.offset, voters_in_force=before)
    batches.append_voters(voters_record(after), 0)
    with batches.drain() as drained:
        for each in drained:
            log.append_as_leader(each.data, 2)
    log.flush()
    return log


def _started(leader: int = -1, voted: int = -1, identity: ReplicaIdentity = IDENTITY) -> SingleReplica:
    directory = replica_key(voted).directory_id if voted > 0 else None
    stored = QuorumStateData(1, leader, EPOCH, voted, directory)
    core = SingleReplica(identity, QuorumConfig(), log=_log(), stored=stored)
    core.take_responses()
    return core


def unattached() -> SingleReplica:
    """Return a replica that has not voted in its epoch, and knows no leader."""
    core = _started()
    assert isinstance(core.raft.role, Unattached)
    return core


def prospective() -> SingleReplica:
    """Return a replica that has asked for pre-votes."""
    core = unattached()
    core.sleep(1_000)
    assert isinstance(core.raft.role, Prospective)
    return core


def candidate() -> SingleReplica:
    """Return a replica that has asked for votes."""
    core = _started(voted=1)
    assert isinstance(core.raft.role, Candidate)
    return core


def follower() -> SingleReplica:
    """Return a replica that follows 2, and has fetched."""
    core = _started(leader=2)
    core.respond(core.take_requests()[-1].number, fetch_response(EPOCH, 2, high_watermark=6))
    assert isinstance(core.raft.role, Follower)
    return core


def fetching_snapshot() -> SingleReplica:
    """Return a replica that follows 2, and has a part of a snapshot."""
    core = follower()
    core.respond(core.take_requests()[-1].number, fetch_response(EPOCH, 2, snapshot_id=SNAPSHOT))
    part = fetch_snapshot_response(EPOCH, 2, SNAPSHOT, 0, DATA[:100], len(DATA))
    core.respond(core.take_requests()[-1].number, part)
    return core


def updating() -> SingleReplica:
    """Return a replica that follows 2, and has told it where it listens."""
    elsewhere = Endpoints.of({LISTENER: ("elsewhere", 1)})
    core = _started(leader=2, identity=attrs.evolve(IDENTITY, endpoints=elsewhere))
    sent = fetch_until_due(core)
    core.requests.append(sent)
    return core


def leader() -> SingleReplica:
    """Return a leader whose voters have all that it has. It has a snapshot, and has appended a record."""
    core = leader_of((1, 2, 3))
    catch_up(core)
    assert ask(core, remove_voter_request(REMOVED)) == []
    fetch_at_end(core, VOTER)
    assert errors(core) == [0]
    core.take_snapshot(TAKEN.offset, b"x")
    assert core.log.latest_snapshot_id == TAKEN
    core.append(b"a")
    core.sleep(25)
    assert isinstance(core.raft.role, Leader)
    core.take_responses()
    return core


def leader_alone() -> SingleReplica:
    """Return a leader that is the only voter."""
    return leader_of((1,))


def leader_that_adds() -> SingleReplica:
    """Return a leader that has asked a new voter for its versions."""
    core = leader_of((1, 2))
    catch_up(core, replica_key(4))
    core.take_requests()
    assert ask(core, add_voter_request(replica_key(4))) == []
    return core


def leader_with_uncommitted_voters() -> SingleReplica:
    """Return a leader that has written the removal of 3, which is not committed."""
    core = leader_of((1, 2, 3))
    catch_up(core)
    assert ask(core, remove_voter_request(REMOVED)) == []
    return core


def resigned() -> SingleReplica:
    """Return a leader that has resigned."""
    core = leader()
    core.take_requests()
    core.raft.resign(EPOCH)
    core.settle()
    assert isinstance(core.raft.role, Resigned)
    return core


def stopped() -> SingleReplica:
    """Return a replica that has shut down."""
    core = follower()
    core.raft.shutdown(0)
    core.settle()
    assert core.raft.halt_reason is not None
    core.take_responses()
    return core


def observer() -> SingleReplica:
    """Return a replica that is no voter, and follows 2."""
    return observer_of(log_with(((1, 3),), voter_set_of(map(replica_key, (2, 3)))), auto_join=False)


def joining() -> SingleReplica:
    """Return a replica that has asked to be added to the voters."""
    core = observer_of(log_with(((1, 3),), voter_set_of(map(replica_key, (2, 3)))))
    sent = fetch_until_due(core)
    core.requests.append(sent)
    return core


def leaving() -> SingleReplica:
    """Return a replica that has asked to remove its predecessor, which had its id and another directory."""
    core = observer_of(log_with(((1, 3),), voter_set_of([replica_key(1, 7), *map(replica_key, (2, 3))])))
    sent = fetch_until_due(core)
    core.requests.append(sent)
    return core


REPLICAS: Final[Mapping[str, Callable[[], SingleReplica]]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            unattached,
            prospective,
            candidate,
            follower,
            fetching_snapshot,
            updating,
            leader,
            leader_alone,
            leader_that_adds,
            leader_with_uncommitted_voters,
            resigned,
            stopped,
            observer,
            joining,
            leaving,
        )
    }
)
