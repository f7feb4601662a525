# SPDX-License-Identifier: Apache-2.0
"""Describes a quorum from its directories, as ``kafka-metadata-quorum describe`` describes a running one.

Facts that only a leader knows, such as the time of the last fetch, are left out, or replaced by a proven bound.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_copies import copies_of
from raftlog.tools.auditing.history.replicas import Replica, replicas
from raftlog.tools.auditing.proof.copies import Copy, latest_epoch, of_voters
from raftlog.tools.auditing.proof.judging import Judgement, judge_quorum
from raftlog.tools.auditing.proof.lineage import common_end
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
        forks_at: the first offset at which it is known to differ from the lineage to keep; None if it is of that.
        electable: whether the voters that are here could elect it, according to the last voter set in its own log;
            None if it is absent or not one of these voters. A replica whose state cannot be loaded does not start.
        electable_with_absent: whether they could elect it with the votes of absent voters.
        at_risk: the first of its offsets that an electable replica lacks or may lack, or None. If that replica is
            elected, the records from there on are lost.
        may_lose_committed: whether records at risk may be committed: the first of them is proven to be, or a majority
            may have it.
        damaged_from: the first offset that its log no longer has and its snapshots do not cover; or None.
        quarantined_from: the same if raftlog had made that offset durable, and therefore lets the replica neither vote
            nor lead; or None.
        has_state: whether its state can be loaded: Kafka does not start on a log whose only snapshots are unreadable.
        is_misled: whether Kafka would start from a snapshot whose name is wrong for certain.
    """

    key: ReplicaKey | None
    status: str
    path: str | None = None
    end: OffsetAndEpoch | None = None
    lag: int | None = None
    forks_at: int | None = None
    electable: bool | None = None
    electable_with_absent: bool | None = None
    at_risk: int | None = None
    may_lose_committed: bool = False
    damaged_from: int | None = None
    quarantined_from: int | None = None
    has_state: bool = True
    is_misled: bool = False


@attrs.frozen
class QuorumView:
    """A quorum as its files show it.

    Attributes:
        cluster_id: None if no meta.properties has it.
        leader_id: the leader of the latest epoch that any replica has seen; -1 if not known.
        leader_epoch: that epoch.
        judgement: the verdict and the advice, with what proves them.
        max_follower_lag: the greatest lag of the voters that are here.
        members: the leader first, then voters, then observers, each by id.
        present: number of voters that are here.
        quarantined: number of these that raftlog lets neither vote nor lead.
        stateless: number of these that Kafka does not start on.
    """

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    judgement: Judgement
    max_follower_lag: int
    members: tuple[Member, ...]
    present: int
    quarantined: int = 0
    stateless: int = 0

    @property
    def voters(self) -> VoterSet:
        """In force at the end of the lineage to keep."""
        return self.judgement.voters

    @property
    def high_watermark(self) -> int:
        """A lower bound: records below it are proven to be committed."""
        return self.judgement.proven.offset

    @property
    def has_majority(self) -> bool:
        """Whether the voters that are here can elect and commit."""
        return self.present - self.quarantined - self.stateless >= self.voters.majority_size


def quorum_view(evidence: Sequence[PartitionEvidence]) -> QuorumView | None:
    """Return the quorum of one raft log; None if none of its replicas is there.

    Args:
        evidence: of the replicas' partitions, and of the log directories that they are in.
    """
    found = replicas(evidence)
    return view_of(found) if found else None


def view_of(found: Sequence[Replica]) -> QuorumView:
    """Return the quorum of some replicas of one log, the most up to date first; at least one."""
    copies = copies_of(found)
    epoch = latest_epoch(copies)
    leader_id = _leader_id(found, copies, epoch)
    judgement = judge_quorum(copies, None if leader_id == UNKNOWN_ID else leader_id)
    voting = of_voters(copies, judgement.voters)
    led = [each for each in (*voting, *copies) if each.key is not None and each.key.id == leader_id]
    leader = next(iter(led), None)
    reference = leader or copies[0]
    members = [
        _member(replica, copy, _status(copy, leader, voting), reference, copies, judgement)
        for replica, copy in zip(found, copies, strict=True)
    ]
    absent = _absent(judgement.voters, voting)
    members += [Member(key, "Absent") for key in absent]
    cluster_ids = (each.directory.cluster_id for each in found)
    return QuorumView(
        next((each for each in cluster_ids if each is not None), None),
        leader_id,
        epoch,
        judgement,
        max((_lag(copy, reference) for copy in voting), default=0),
        tuple(sorted(members, key=_member_order)),
        len(voting),
        sum(not copy.votes for copy in voting if copy.can_start),
        sum(not copy.can_start for copy in voting),
    )


def _leader_id(found: Sequence[Replica], copies: Sequence[Copy], epoch: int) -> int:
    """Return the leader of an epoch by a quorum-state, or else by a log; -1 if neither names it."""
    known = [copy.leader_id for copy in copies if copy.state_epoch == epoch and copy.leader_id is not None]
    if known:
        return known[0]
    from raftlog.tools.auditing.history.timelines import epoch_timeline  # Slow to import, and rarely needed.

    leads = epoch_timeline([replica.evidence for replica in found])
    return next((lead.leader_id for lead in leads if lead.epoch == epoch and lead.leader_id is not None), UNKNOWN_ID)


def _status(copy: Copy, leader: Copy | None, voting: Sequence[Copy]) -> str:
    if copy is leader:
        return "Leader"
    return "Follower" if any(copy is each for each in voting) else "Observer"


def _absent(voters: VoterSet, voting: Sequence[Copy]) -> list[ReplicaKey]:
    keys = [copy.key for copy in voting if copy.key]
    nodes = voters.voters.values()
    return [node.voter_key for node in nodes if not any(node.is_voter(key) for key in keys)]


def _member(
    replica: Replica, copy: Copy, status: str, reference: Copy, copies: Sequence[Copy], judgement: Judgement
) -> Member:
    chance, fork = judgement.chances[copy.path], judgement.fork_of(copy.path)
    at_risk = _at_risk(copy, copies, judgement)
    return Member(
        replica.key,
        status,
        replica.path,
        replica.end,
        _lag(copy, reference),
        None if fork is None else fork.offset,
        None if chance is None else chance.by_present,
        None if chance is None else chance.with_absent,
        at_risk,
        at_risk is not None and _may_lose_committed(copy, at_risk, judgement),
        replica.damaged_from,
        replica.quarantined_from,
        replica.has_state,
        replica.misled_by is not None,
    )


def _at_risk(copy: Copy, copies: Sequence[Copy], judgement: Judgement) -> int | None:
    """Return the first offset that is lost if another replica is elected, which may be an absent one.

    Absent voters have at least what is proven. They elect one of theirs without more only if they are a majority.
    """
    kept = []
    for other in copies:
        chance = judgement.chances[other.path]
        if chance is not None and chance.with_absent:
            kept.append(copy.end.offset if other is copy else common_end(copy.lineage, other.lineage))
    absent = len(judgement.voters) - len(of_voters(copies, judgement.voters))
    if absent >= judgement.voters.majority_size:
        kept.append(judgement.proven.offset)
    end_offset = copy.end.offset
    if copy.wrong_names:  # Nothing but a name that is contradicted may say that the log reaches further.
        end_offset = min(end_offset, copy.lineage.end_offset)
    least = min(kept, default=end_offset)
    return least if least < end_offset else None


def _may_lose_committed(copy: Copy, at_risk: int, judgement: Judgement) -> bool:
    fork, epoch = judgement.fork_of(copy.path), copy.lineage.epoch_at(at_risk)
    if fork is not None and fork.offset <= at_risk:
        return False
    is_proven = at_risk < judgement.proven.offset
    return is_proven or epoch is None or judgement.may_be_held(OffsetAndEpoch(at_risk + 1, epoch))


def _lag(copy: Copy, reference: Copy) -> int:
    return max(0, reference.end.offset - copy.end.offset)


def _member_order(member: Member) -> tuple[int, int]:
    return _STATUSES.index(member.status), -1 if member.key is None else member.key.id
