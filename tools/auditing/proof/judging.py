# SPDX-License-Identifier: Apache-2.0
"""Judges the directories of a quorum: the one source of verdict and advice for findings, verbs, tables and the page."""

from collections.abc import Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.case import Case
from raftlog.tools.auditing.proof.copies import Copy, of_voters
from raftlog.tools.auditing.proof.elections import Electability, chance, electable
from raftlog.tools.auditing.proof.lineage import Lineage, parting
from raftlog.tools.auditing.proof.proofs import Proof
from raftlog.tools.auditing.proof.restart import Way, never_to_start, set_to_start, stay_down, way_on
from raftlog.tools.auditing.proof.verdict import Reason, Ruling, rule
from raftlog.voters.voter_set import VoterSet


@attrs.frozen
class Fork:
    """A log that is not of the lineage to keep.

    Attributes:
        copy: the replica.
        offset: the first offset at which it is known to differ.
        epoch: of its record there; None if it is not known.
        has_rewritten: whether it has a later epoch in place of what is proven to be committed.
    """

    copy: Copy
    offset: int
    epoch: int | None
    has_rewritten: bool


@attrs.frozen
class LastChange:
    """The last change of voters in the lineage to keep, if nothing proves that it was committed.

    Attributes:
        offset: of its record.
        before: the voters before it.
        present_before: how many of those are here.
        may_be_cut: whether no majority of the new voters can have it, even if all that are absent do.
    """

    offset: int
    before: VoterSet
    present_before: int
    may_be_cut: bool


@attrs.frozen
class Judgement:
    """What the files of a quorum say together.

    Attributes:
        copies: the directories.
        ruling: the verdict.
        proofs: what is proven, the most advanced first.
        conflict: two proofs of different lineages, or None.
        parting_offset: the first offset at which these two are known to differ; None without a conflict.
        lineage: the one to keep.
        voters: in force at its end.
        forks: logs that are not of it, by path.
        lacking: voters that lack what is proven, by path.
        seed: the copy to go on from; None if no copy that Kafka starts on has all that is proven.
        way: how to go on.
        start, stay_down: the replicas to start, and those not to be started with them, by path.
        start_leaders: which of those to start could be elected then, by path.
        never_start: those not to be started even later, on the directories that they have, by path.
        chances: who could be elected as all stand, by path; None for no voters.
        last_change: the last change of voters, if unproven; else None.
    """

    copies: tuple[Copy, ...]
    ruling: Ruling
    proofs: tuple[Proof, ...]
    conflict: tuple[Proof, Proof] | None
    parting_offset: int | None
    lineage: Lineage
    voters: VoterSet
    forks: tuple[Fork, ...]
    lacking: tuple[Copy, ...]
    seed: Copy | None
    way: Way
    start: tuple[Copy, ...]
    stay_down: tuple[Copy, ...]
    start_leaders: tuple[Copy, ...]
    never_start: tuple[Copy, ...]
    chances: dict[str, Electability | None]
    last_change: LastChange | None

    @property
    def proven(self) -> OffsetAndEpoch:
        """End of what is proven, exclusive, with the epoch of the last record; offset 0 and epoch -1 if nothing is."""
        return self.proofs[0].point if self.proofs else OffsetAndEpoch(0, -1)

    @property
    def winners(self) -> tuple[Copy, ...]:
        """The replicas that Kafka's rule could elect if all that are here are started."""
        chances = ((copy, self.chances[copy.path]) for copy in self.copies)
        return tuple(copy for copy, found in chances if found is not None and found.by_present)

    def may_be_held(self, point: OffsetAndEpoch) -> bool:
        """Whether a majority of the voters can have all records below a point, if those that are not here do."""
        there = of_voters(self.copies, self.voters)
        holders = sum(each.lineage.contains(point) for each in there)
        return len(self.voters) > 0 and holders + len(self.voters) - len(there) >= self.voters.majority_size

    def fork_of(self, path: str) -> Fork | None:
        """Return where the replica in a log directory left the lineage to keep; None if it did not."""
        return next((fork for fork in self.forks if fork.copy.path == path), None)


def judge_quorum(copies: Sequence[Copy], leader_id: int | None = None) -> Judgement:
    """Judge the directories of a quorum.

    Args:
        copies: of stopped nodes; at least one.
        leader_id: the leader of the latest epoch that any file has seen; None if it is not known.
    """
    case = Case(copies, leader_id)
    ruling = rule(case)
    start = [] if ruling.reason is Reason.NAME_DOUBTED else set_to_start(case, ruling.must_hold)
    conflict = case.conflict
    forks = _forks(case)
    return Judgement(
        tuple(copies),
        ruling,
        tuple(case.proofs),
        conflict,
        None if conflict is None else parting(conflict[0].lineage, conflict[1].lineage),
        case.lineage,
        case.voters,
        tuple(forks),
        tuple(sorted(case.lacking, key=lambda each: each.path)),
        case.seed,
        way_on(case, ruling, start),
        tuple(start),
        tuple(stay_down(case, start, ruling.must_hold)),
        tuple(electable(start, case.voters)),
        tuple(never_to_start(start, (fork.copy for fork in forks))),
        {
            each.path: chance(each, copies, case.usual_voters, absent_may_vote=case.proven <= each.end)
            for each in copies
        },
        _last_change(case),
    )


def _forks(case: Case) -> list[Fork]:
    found = []
    for copy in sorted(case.copies, key=lambda each: each.path):
        lineage = case.lineage_of(copy)
        offset = parting(lineage, case.lineage)
        if offset is not None:
            found.append(Fork(copy, offset, lineage.epoch_at(offset), case.has_rewritten(copy)))
    return found


def _last_change(case: Case) -> LastChange | None:
    seed = case.seed
    records = [] if seed is None else [each for each in seed.voters if each.is_record and each.offset >= 0]
    if seed is None or not records or records[-1].offset < case.proven.offset:
        return None
    last = records[-1]
    before, epoch = seed.voters_before(last.offset), seed.lineage.epoch_at(last.offset)
    if before is None or epoch is None or before.voters.voter_keys == last.voters.voter_keys:
        return None
    there = of_voters(case.copies, last.voters)
    holders = [each for each in there if each.lineage.contains(OffsetAndEpoch(last.offset + 1, epoch))]
    possible = len(holders) + len(last.voters) - len(there)
    present = len(of_voters(case.copies, before.voters))
    return LastChange(last.offset, before.voters, present, possible < last.voters.majority_size)
