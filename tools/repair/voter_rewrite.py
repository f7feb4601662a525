# SPDX-License-Identifier: Apache-2.0
"""What a plan to rewrite the voters of a quorum says: the content of its file, made of numbers and texts."""

from collections.abc import Iterable

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import DynamicVoter, HostPort, ReplicaKey, VoterSet


@attrs.frozen
class PlannedVoter:
    """A voter of the new set.

    Attributes:
        id: its node id.
        directory_id: of the directory that it will start on; None in a request at kraft.version 0, which names none.
        listener: name of its listener for controllers.
        host, port: where that listens.
    """

    id: int
    directory_id: str | None
    listener: str
    host: str
    port: int

    @property
    def address(self) -> HostPort:
        """Where it listens."""
        return HostPort(self.host, self.port)

    @property
    def key(self) -> ReplicaKey:
        """Its id and directory id."""
        return ReplicaKey(self.id, None if self.directory_id is None else uuid_from_text(self.directory_id))

    def __str__(self) -> str:
        return f"{self.id}@{self.address}" + ("" if self.directory_id is None else f":{self.directory_id}")


def voter_set_of(voters: Iterable[PlannedVoter]) -> VoterSet:
    """Return voters as a record names them: with one listener, and kraft.version 0 to 1, as Kafka does."""
    return VoterSet.of(DynamicVoter(each.key, each.address).to_voter_node(each.listener) for each in voters)


@attrs.frozen
class Disk:
    """A directory about which the operator must know something.

    Attributes:
        node: id and directory id of its node; only the id if the other is not known.
        source: number of the source that it is; None if it was not given.
        reason: what about it.
    """

    node: str
    source: int | None
    reason: str


@attrs.frozen
class VoterRewrite:
    """A plan to rewrite voters.

    Attributes:
        cluster_id: of the quorum.
        kraft_version: 0 or 1, in force at the end of the log that is kept.
        kept_node: id and directory id of the node whose directory is kept.
        is_kept_voter: whether that node is one of the last voters.
        start_offset, end_offset: of the log that is kept, inclusive and exclusive.
        epoch: of its last record.
        snapshot: end offset and epoch of its newest snapshot; None if there is none.
        timestamp_ms: of the record, in ms of the Unix epoch: fixed here, so that each directory has the same bytes.
        before: the last voters, each with its directory id if that is known.
        before_offset: of the record that names them; -1 for the bootstrap snapshot; None if no record does.
        voters: the new ones.
        given_up: the last voters that are not among the new ones.
        quorum_epoch: of the new quorum-state: above all that a source has seen.
        verdict: whether committed records are missing, in a sentence.
        proven: what is proven to be committed, in a sentence.
        dropped: the records of other sources that the result will not have, in sentences.
        never_start: disks that must never start again.
        move_aside: disks of other nodes whose metadata log must be moved aside before they start.
        is_seen: whether the audit tells the new set from one that a leader has written.
        left_out: paths below the log directory of snapshots that end inside a batch of the log, and are not kept.
    """

    cluster_id: str
    kraft_version: int
    kept_node: str
    is_kept_voter: bool
    start_offset: int
    end_offset: int
    epoch: int
    snapshot: tuple[int, int] | None
    timestamp_ms: int
    before: tuple[str, ...]
    before_offset: int | None
    voters: tuple[PlannedVoter, ...]
    given_up: tuple[str, ...]
    quorum_epoch: int
    verdict: str
    proven: str
    dropped: tuple[str, ...]
    never_start: tuple[Disk, ...]
    move_aside: tuple[Disk, ...]
    is_seen: bool
    left_out: tuple[str, ...] = ()

    @property
    def end(self) -> OffsetAndEpoch:
        """End of the log that is kept, exclusive, with the epoch of its last record."""
        return OffsetAndEpoch(self.end_offset, self.epoch)

    @property
    def writes_record(self) -> bool:
        """Whether a record names the new voters: at kraft.version 0 the configuration does."""
        return self.kraft_version > 0

    @property
    def voter_set(self) -> VoterSet:
        """The new voters, as a record names them."""
        return voter_set_of(self.voters)

    @property
    def config_line(self) -> str:
        """The line of configuration that names the new voters at kraft.version 0."""
        return "controller.quorum.voters=" + ",".join(f"{voter.id}@{voter.address}" for voter in self.voters)

    def voter(self, node_id: int | None) -> PlannedVoter | None:
        """Return the new voter of a node id; without one, the only voter; None if there is none such."""
        if node_id is None:
            return self.voters[0] if len(self.voters) == 1 else None
        return next((voter for voter in self.voters if voter.id == node_id), None)
