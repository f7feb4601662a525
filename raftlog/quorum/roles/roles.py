# SPDX-License-Identifier: Apache-2.0
"""The six roles of a replica, as values. ``transitions`` says which role follows which.

A deadline is a time of the monotonic clock, in ms; None means never. Only voters have an election deadline, because an
observer is no candidate.

Source: EpochState and its six subclasses; KIP-595, KIP-853, KIP-996.
"""

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.votes import Votes
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey


@attrs.frozen
class KnownLeader:
    """A leader, and where it listens.

    Attributes:
        id: of the leader.
        endpoints: at least one.

    Raises:
        ValueError: there are no endpoints.
    """

    id: int
    endpoints: Endpoints

    def __attrs_post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError(f"leader {self.id} without endpoints")


@attrs.frozen
class Unattached:
    """Knows an epoch, but not where its leader is; fetches from bootstrap servers to find out.

    Attributes:
        epoch: the latest epoch known.
        leader_id: of that epoch's leader, whose endpoints are not known; None if there is none yet.
        voted_key: the candidate that this replica has voted for in this epoch, or None.
        election_deadline_ms: when a voter begins an election.
    """

    epoch: int
    leader_id: int | None = None
    voted_key: ReplicaKey | None = None
    election_deadline_ms: int | None = None


@attrs.frozen
class Prospective:
    """Asks the voters if it could win an election, before it disturbs them with a new epoch.

    Attributes:
        epoch: the latest epoch known, which a pre-vote does not change.
        leader_id: of that epoch's leader, or None.
        leader: the leader with its endpoints, if they are known: this replica follows it again if it cannot win.
        voted_key: the candidate that this replica has voted for in this epoch, or None.
        votes: the answers so far.
        election_deadline_ms: when this replica gives up.
    """

    epoch: int
    leader_id: int | None
    leader: KnownLeader | None
    voted_key: ReplicaKey | None
    votes: Votes
    election_deadline_ms: int


@attrs.frozen
class Candidate:
    """Asks the voters for their votes, in an epoch in which it has voted for itself.

    Attributes:
        epoch: the one that it wants to lead.
        key: this replica.
        votes: the answers so far.
        election_deadline_ms: when this replica gives up.
    """

    epoch: int
    key: ReplicaKey
    votes: Votes
    election_deadline_ms: int


@attrs.frozen
class Leader:
    """Was elected. What the leader knows of its replicas is kept elsewhere, because it changes with every fetch.

    Attributes:
        epoch: the one that it leads.
        id: of this replica.
        granting_voters: ids of the voters whose votes elected it, ascending.
        voters: ids of the voters that it was elected by, ascending.
    """

    epoch: int
    id: int
    granting_voters: tuple[int, ...]
    voters: tuple[int, ...]


@attrs.frozen
class SnapshotFetch:
    """A snapshot that is being fetched.

    Attributes:
        snapshot_id: end offset (exclusive) and epoch.
        size_bytes: how many bytes have been fetched: the position of the next one.
    """

    snapshot_id: OffsetAndEpoch
    size_bytes: int = 0


@attrs.frozen
class Follower:
    """Fetches from a leader.

    Attributes:
        epoch: of the leader.
        leader: where it listens.
        voted_key: the candidate that this replica has voted for in this epoch, or None.
        fetch_deadline_ms: when a voter stops to rely on the leader, unless a fetch succeeds before.
        has_fetched: whether a fetch from this leader has succeeded.
        update_deadline_ms: when a voter checks if the leader must be told of changed endpoints, and an observer if it
            should join the voters.
        has_updated_leader: whether the leader of a quorum with kraft.version 0 knows this replica's endpoints.
        fetching_snapshot: the snapshot that is fetched instead of records, or None.
    """

    epoch: int
    leader: KnownLeader
    voted_key: ReplicaKey | None
    fetch_deadline_ms: int
    has_fetched: bool = False
    update_deadline_ms: int = 0
    has_updated_leader: bool = False
    fetching_snapshot: SnapshotFetch | None = None

    def is_in_touch(self, now_ms: int) -> bool:
        """Whether a fetch from this leader has succeeded within the fetch timeout."""
        return self.has_fetched and now_ms < self.fetch_deadline_ms

    def after_contact(self, fetch_deadline_ms: int) -> "Follower":
        """Return this role after a fetch has succeeded. It is called for each of them, so it copies by hand."""
        return Follower(
            self.epoch,
            self.leader,
            self.voted_key,
            fetch_deadline_ms,
            True,
            self.update_deadline_ms,
            self.has_updated_leader,
            self.fetching_snapshot,
        )


@attrs.frozen
class Resigned:
    """Led this epoch, and does so no more: it resigned, or it was restarted.

    Attributes:
        epoch: the one that it led.
        id: of this replica.
        preferred_candidates: the voters with the longest logs first; empty after a restart.
        unacknowledged: voters that have not acknowledged the resignation.
        election_deadline_ms: when this replica leaves the epoch.
    """

    epoch: int
    id: int
    preferred_candidates: tuple[ReplicaKey, ...]
    unacknowledged: tuple[ReplicaKey, ...]
    election_deadline_ms: int


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def leader_id(role: Role) -> int | None:
    """Return the id of the leader that a replica knows, which may be itself; None if it knows none."""
    match role:
        case Leader() | Resigned():
            return role.id
        case Follower():
            return role.leader.id
        case Candidate():
            return None
    return role.leader_id


def voted_key(role: Role) -> ReplicaKey | None:
    """Return the candidate that a replica has voted for in its epoch; None also for a leader, who won the vote."""
    match role:
        case Leader() | Resigned():
            return None
        case Candidate():
            return role.key
    return role.voted_key


def election_state(role: Role, kraft_version: KRaftVersion, voter_ids: tuple[int, ...]) -> QuorumStateData:
    """Return what a replica in a role must not forget.

    Args:
        role: the role.
        kraft_version: the level in force, which says in which version the state is written.
        voter_ids: of the voter set in force; written at level 0 only, for display.

    Source: EpochState#election, ElectionState#toQuorumStateData.
    """
    leader, voted = leader_id(role), voted_key(role)
    version = kraft_version.quorum_state_version
    return QuorumStateData(
        version,
        leader_id=UNKNOWN_ID if leader is None else leader,
        leader_epoch=role.epoch,
        voted_id=UNKNOWN_ID if voted is None else voted.id,
        voted_directory_id=None if voted is None or version == 0 else voted.directory_id,
        current_voters=voter_ids if version == 0 else (),
    )
