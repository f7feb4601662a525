# SPDX-License-Identifier: Apache-2.0
"""Describes a quorum from its directories, as ``kafka-metadata-quorum describe`` describes a running one.

Facts that only a leader knows, such as the time of the last fetch, are left out, or replaced by a proven bound.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.high_watermark import majority_offset
from raftlog.quorum.voting import can_be_elected, is_up_to_date
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.replicas import Replica, replicas, voters_in_force
from raftlog.tools.auditing.history.timelines import epoch_timeline
from raftlog.voters.voter_set import ReplicaKey, VoterSet

_STATUSES: Final = ("Leader", "Follower", "Absent", "Observer")
"""The order in which members are listed."""


@attrs.frozen
class Member:
    """A replica, or a voter whose directory was not given.

    Attributes:
        key: its id and directory id; None if no file has them.
        status: Leader, Follower, Observer or Absent.
        path: its log directory; None if it is absent.
        end: end of its log after the next startup, exclusive, with the epoch of its last record; None if it is absent.
        lag: number of offsets by which its log is shorter than the leader's, or, if that is absent, than the longest.
        electable: whether the voters that are here could elect it, according to the last voter set in its own log;
            None if it is absent or not one of these voters.
        electable_with_absent: whether they could elect it with the votes of absent voters.
        at_risk: the first of its offsets that an electable replica lacks or may lack, or None. If that replica is
            elected, the records from there on are lost.
        damaged_from: the first offset that its log no longer has and its snapshots do not cover; or None.
        quarantined_from: the same if raftlog had made that offset durable, and therefore lets the replica neither vote
            nor lead; or None.
    """

    key: ReplicaKey | None
    status: str
    path: str | None = None
    end: OffsetAndEpoch | None = None
    lag: int | None = None
    electable: bool | None = None
    electable_with_absent: bool | None = None
    at_risk: int | None = None
    damaged_from: int | None = None
    quarantined_from: int | None = None


@attrs.frozen
class QuorumView:
    """A quorum as its files show it.

    Attributes:
        cluster_id: None if no meta.properties has it.
        leader_id: the leader of the latest epoch that any replica has seen; -1 if not known.
        leader_epoch: that epoch.
        high_watermark: a lower bound: records below it are committed.
        committed_by: the proof of that.
        max_follower_lag: the greatest lag of the voters that are here.
        voters: in force, by the most up-to-date log.
        members: the leader first, then voters, then observers, each by id.
        present: number of voters that are here.
        quarantined: number of these that raftlog lets neither vote nor lead.
    """

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    committed_by: str
    max_follower_lag: int
    voters: VoterSet
    members: tuple[Member, ...]
    present: int
    quarantined: int = 0

    @property
    def has_majority(self) -> bool:
        """Whether the voters that are here can elect and commit."""
        return self.present - self.quarantined >= self.voters.majority_size


def quorum_view(evidence: Sequence[PartitionEvidence]) -> QuorumView | None:
    """Return the quorum of one raft log; None if none of its replicas is there.

    Args:
        evidence: of the replicas' partitions, and of the log directories that they are in.
    """
    found = replicas(evidence)
    return _Quorum(found).view() if found else None


class _Quorum:
    """Derives the parts of a view from replicas, the most up-to-date replica first."""

    def __init__(self, found: list[Replica]) -> None:
        self._replicas = found
        self._best = found[0]
        self._voters = voters_in_force(self._best)
        by_voter = {each.key: each for each in reversed(found) if each.is_voter_of(self._voters)}
        self._voting = sorted(by_voter.values(), key=lambda replica: replica.end, reverse=True)
        self._epoch = max(max(each.end.epoch, each.state.leader_epoch if each.state else -1) for each in found)
        self._epoch_starts = {each.path: _epoch_starts(each) for each in found}
        self._leader_id = self._find_leader()
        self._high_watermark, self._committed_by = self._find_high_watermark()
        self._elections = {each.path: self._election(each) for each in found}

    def view(self) -> QuorumView:
        """Build the view."""
        leader = next((each for each in self._voting if self._is_leader(each)), None)
        leader = leader or next((each for each in self._replicas if self._is_leader(each)), None)
        members = [self._member(replica, leader) for replica in self._replicas]
        members += [Member(key, "Absent") for key in self._absent()]
        cluster_ids = (each.directory.cluster_id for each in self._replicas)
        return QuorumView(
            next((each for each in cluster_ids if each is not None), None),
            self._leader_id,
            self._epoch,
            self._high_watermark.offset,
            self._committed_by,
            max((_lag(replica, leader or self._best) for replica in self._voting), default=0),
            self._voters,
            tuple(sorted(members, key=_member_order)),
            len(self._voting),
            sum(replica.quarantined_from is not None for replica in self._voting),
        )

    def _find_leader(self) -> int:
        states = [each.state for each in self._replicas if each.state and each.state.leader_epoch == self._epoch]
        known = [state.leader_id for state in states if state.leader_id != UNKNOWN_ID]
        leads = epoch_timeline([replica.evidence for replica in self._replicas])
        known += [lead.leader_id for lead in leads if lead.epoch == self._epoch and lead.leader_id is not None]
        return next(iter(known), UNKNOWN_ID)

    def _is_leader(self, replica: Replica) -> bool:
        return replica.key is not None and replica.key.id == self._leader_id

    def _absent(self) -> list[ReplicaKey]:
        keys = [replica.key for replica in self._voting if replica.key]
        nodes = self._voters.voters.values()
        return [node.voter_key for node in nodes if not any(node.is_voter(key) for key in keys)]

    def _find_high_watermark(self) -> tuple[OffsetAndEpoch, str]:
        """Return an offset below which everything is committed, with its epoch, and the proof.

        A snapshot has only committed records, and records of the latest epoch in any log that a majority has are
        committed. If a voter that is here has seen a later epoch begin, an absent voter may have a log of that epoch.
        """
        snapshot_ids = [id_ for replica in self._replicas for id_ in replica.evidence.snapshots_by_id]
        by_snapshot = max(snapshot_ids, default=OffsetAndEpoch(0, -1), key=lambda snapshot_id: snapshot_id.offset)
        latest = max(max(each.end.epoch, each.evidence.last_epoch) for each in self._replicas)
        held = [end.offset for end in map(_whole_end, self._voting) if end.epoch == latest]
        by_majority = majority_offset(held, self._voters.majority_size)
        is_latest = len(self._voting) == len(self._voters) or all(map(partial(_knows_none_after, latest), self._voting))
        if is_latest and by_majority is not None and by_majority >= by_snapshot.offset:
            count = sum(end >= by_majority for end in held)
            return OffsetAndEpoch(by_majority, latest), f"{count} of {len(self._voters)} voters have the records below"
        return (
            by_snapshot,
            "the newest snapshot ends there" if by_snapshot.offset else "nothing is known to be committed",
        )

    def _member(self, replica: Replica, leader: Replica | None) -> Member:
        status = "Leader" if replica is leader else "Follower" if replica in self._voting else "Observer"
        election = self._elections[replica.path]
        return Member(
            replica.key,
            status,
            replica.path,
            replica.end,
            _lag(replica, leader or self._best),
            None if election is None else election[0],
            None if election is None else election[1],
            self._at_risk(replica),
            replica.damaged_from,
            replica.quarantined_from,
        )

    def _election(self, candidate: Replica) -> tuple[bool, bool] | None:
        """Return whether a replica could be elected by the voters here, and with absent ones; None for a non-voter.

        It asks the voters that its own log names. A replica grants its vote, voter or not, unless it is more up to date
        or in quarantine. An absent voter is assumed to have nothing but committed records.
        """
        voters = voters_in_force(candidate)
        voters = voters if len(voters) else self._voters
        by_voter = {each.key: each for each in reversed(self._replicas) if each.is_voter_of(voters)}
        if by_voter.get(candidate.key) is not candidate:
            return None  # Or it is a copy of a replica that reaches further.
        if candidate.quarantined_from is not None:
            return False, False
        ends = [voter.end for voter in by_voter.values() if voter.quarantined_from is None]
        absent = len(voters) - len(by_voter) if is_up_to_date(candidate.end, self._high_watermark) else 0
        by_present = can_be_elected(candidate.end, ends, voters.majority_size)
        return by_present, by_present or can_be_elected(candidate.end, ends, voters.majority_size, absent)

    def _at_risk(self, replica: Replica) -> int | None:
        """Return the first offset that is lost if another replica is elected, which may be an absent one."""
        elected = (each for each in self._replicas if (self._elections[each.path] or (False, False))[1])
        kept = [self._common_end(replica, candidate) for candidate in elected]
        kept += [self._high_watermark.offset] if len(self._voting) < len(self._voters) else []
        least = min(kept, default=replica.end.offset)
        return least if least < replica.end.offset else None

    def _common_end(self, one: Replica, other: Replica) -> int:
        """Return the end (exclusive) of what the other log has of the first one.

        They diverge after the last epoch that both have. Without a common epoch, one log starts after the other's end.

        Source: KafkaRaftLog#endOffsetForEpoch.
        """
        mine, theirs = self._epoch_starts[one.path], self._epoch_starts[other.path]
        shared = max(mine.keys() & theirs.keys(), default=None)
        ends = [one.end.offset, _whole_end(other).offset if one is not other else one.end.offset]
        if shared is not None:
            ends += (_end_of(shared, mine, one), _end_of(shared, theirs, other))
        return min(ends)


def _knows_none_after(epoch: int, replica: Replica) -> bool:
    return replica.state is not None and replica.state.leader_epoch <= epoch


def _whole_end(replica: Replica) -> OffsetAndEpoch:
    """Return the end (exclusive) of the records that a replica has without a gap."""
    lost = replica.damaged_from
    if lost is None or lost >= replica.end.offset:
        return replica.end
    epochs = [epoch for epoch, start in _epoch_starts(replica).items() if start < lost]
    return OffsetAndEpoch(lost, max(epochs, default=-1))


def _epoch_starts(replica: Replica) -> dict[int, int]:
    """Return the start offset of each epoch in a log, as after its next startup."""
    end = replica.end
    leads = epoch_timeline([replica.evidence])
    starts = {lead.epoch: lead.start_offset for lead in leads if lead.start_offset < end.offset}
    return starts if end.epoch in starts else {end.epoch: end.offset}


def _end_of(epoch: int, starts: dict[int, int], replica: Replica) -> int:
    later = min((other for other in starts if other > epoch), default=None)
    return replica.end.offset if later is None else starts[later]


def _lag(replica: Replica, leader: Replica) -> int:
    return max(0, leader.end.offset - replica.end.offset)


def _member_order(member: Member) -> tuple[int, int]:
    return _STATUSES.index(member.status), -1 if member.key is None else member.key.id
