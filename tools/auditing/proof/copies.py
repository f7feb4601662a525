# SPDX-License-Identifier: Apache-2.0
"""What the proof is made of: the directory of each replica, as small values without files."""

from collections.abc import Iterable, Mapping

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.voters.voter_set import ReplicaKey, VoterSet


@attrs.frozen
class VotersFrom:
    """A voter set and the record that puts it in force.

    Attributes:
        offset: of the record; -1 for the bootstrap snapshot and for static voters; for a set that only a snapshot
            names, the last offset that the snapshot covers.
        voters: the set.
        path: of the file that has it.
        is_record: whether it is a record of the log, whose offset is exact.
        may_be_forced: whether the record is in the batch of a LeaderChange, before anything of its epoch is committed.
    """

    offset: int
    voters: VoterSet
    path: str = ""
    is_record: bool = True
    may_be_forced: bool = False


@attrs.frozen
class ActedOn:
    """A record that a broker has acted on, so that it was committed.

    Attributes:
        point: the offset after it, with its epoch.
        path: of the file in the broker's directory that shows it.
    """

    point: OffsetAndEpoch
    path: str


@attrs.frozen
class DoubtedName:
    """A snapshot whose name is contradicted or doubted.

    Attributes:
        path: of the file.
        reason: what contradicts it.
        is_certain: whether it is wrong; if not, a clock that was set back may explain what contradicts it, and the
            snapshot stands for the records before its end.
        proves: whether its end proves something all the same: it is then among ``Copy.snapshots``, too.
    """

    path: str
    reason: str
    is_certain: bool = True
    proves: bool = False


@attrs.frozen
class Copy:
    """A replica's directory, of a node that has stopped.

    Attributes:
        path: of the log directory.
        key: its id and directory id; None if no file has them.
        lineage: the records that it has without a gap, with those that a readable snapshot stands for.
        end: end of its log, exclusive, as an election after the next startup compares it.
        reach: how far its log is known to have reached; the end of ``lineage`` unless records are damaged or gone.
        is_reach_known: whether it reached no further; not if bytes at its end are damaged.
        snapshots: path by id, of snapshots whether readable or not, whose names nothing contradicts; never the
            bootstrap snapshot.
        state_epoch: epoch of its quorum-state; None if that is missing or cannot be read.
        leader_id: of the leader that quorum-state names for that epoch; None if it names none.
        voters: the sets in its log and snapshots, by ascending offset; static voters at offset -1.
        can_start: whether Kafka starts on it: not on a log without its state, whose snapshots cannot be read.
        votes: whether it may vote; a replica that raftlog keeps in quarantine may not.
        is_sound: whether nothing in it is damaged or gone, other than what a readable snapshot stands for, and Kafka
            does not start from a snapshot whose name is contradicted.
        has_damage: whether a batch of its log or snapshots is damaged.
        acted_on: the last of its records that a broker is known to have acted on; None if there is none above what is
            proven without brokers.
        doubted: by id, the snapshots whose names something contradicts, for certain or not.
        misled_by: the snapshot that Kafka would start from, if its name is wrong for certain; or None.
        if_renamed: what it is if all names that are only doubted, and prove nothing, are wrong; None without such.
    """

    path: str
    key: ReplicaKey | None
    lineage: Lineage
    end: OffsetAndEpoch
    reach: OffsetAndEpoch
    is_reach_known: bool = True
    snapshots: Mapping[OffsetAndEpoch, str] = attrs.field(factory=dict)
    state_epoch: int | None = None
    leader_id: int | None = None
    voters: tuple[VotersFrom, ...] = ()
    can_start: bool = True
    votes: bool = True
    is_sound: bool = True
    has_damage: bool = False
    acted_on: ActedOn | None = None
    doubted: Mapping[OffsetAndEpoch, DoubtedName] = attrs.field(factory=dict)
    misled_by: DoubtedName | None = None
    if_renamed: "Copy | None" = None

    @property
    def wrong_names(self) -> Mapping[OffsetAndEpoch, DoubtedName]:
        """The snapshots whose names are wrong for certain."""
        return {snapshot_id: each for snapshot_id, each in self.doubted.items() if each.is_certain}

    def is_voter_of(self, voters: VoterSet) -> bool:
        """Whether it is one of some voters, by id and directory id."""
        return self.key is not None and voters.is_voter(self.key)

    def voters_before(self, end_offset: int) -> VotersFrom | None:
        """Return the set in force by the records below an offset; None if nothing names it."""
        return next((each for each in reversed(self.voters) if each.offset < end_offset), None)

    @property
    def voters_in_force(self) -> VoterSet:
        """The set that it would count as a candidate, committed or not; empty if nothing names it."""
        found = self.voters_before(max(self.end.offset, 0) or 1)
        return VoterSet() if found is None else found.voters


def of_voters(copies: Iterable[Copy], voters: VoterSet) -> list[Copy]:
    """Return one copy of each voter that is there, the most up to date: a voter votes once, whatever was copied.

    Of equal copies, it is the first.
    """
    best: dict[int, Copy] = {}
    for copy in copies:
        if copy.key is not None and voters.is_voter(copy.key):
            other = best.get(copy.key.id)
            best[copy.key.id] = copy if other is None or copy.end > other.end else other
    return list(best.values())


def latest_epoch(copies: Iterable[Copy]) -> int:
    """Return the latest epoch that any file has seen, quorum-state included; -1 if there is none."""
    seen = [-1]
    for copy in copies:
        seen += [copy.reach.epoch, copy.lineage.end.epoch]
        seen += [] if copy.state_epoch is None else [copy.state_epoch]
        seen += [snapshot_id.epoch for snapshot_id in copy.snapshots]
        seen += [snapshot_id.epoch for snapshot_id, each in copy.doubted.items() if not each.is_certain]
    return max(seen)
