# SPDX-License-Identifier: Apache-2.0
"""The verdict: whether committed records are missing. ``docs/what-proves-what.md`` explains each reason."""

import enum
from collections.abc import Collection

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.case import Case
from raftlog.tools.auditing.proof.copies import Copy, DoubtedName
from raftlog.tools.auditing.proof.lineage import Lineage, common_end, completed, parting
from raftlog.voters.voter_set import VoterSet


class QuorumVerdict(enum.Enum):
    """Whether committed records are missing."""

    NOTHING_MISSING = "nothing-missing"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Reason(enum.Enum):
    """Why a verdict is given."""

    ENOUGH_VOTERS = "enough-voters"
    TWO_LINEAGES = "two-lineages"
    REWRITTEN = "rewritten"
    VOTERS_LACK_PROVEN = "voters-lack-proven"
    LEADER_IS_SHORTER = "leader-is-shorter"
    DAMAGED_EVERYWHERE = "damaged-everywhere"
    NAME_CONTRADICTED = "name-contradicted"
    NAME_DOUBTED = "name-doubted"
    TOO_FEW_VOTERS = "too-few-voters"
    NO_VOTERS_NAMED = "no-voters-named"


@attrs.frozen
class Ruling:
    """A verdict with its reason.

    Attributes:
        verdict: whether committed records are missing.
        reason: why.
        missing_from: the first offset that is or may be missing, on some voters or everywhere; None if none is, or if
            it is not known.
        must_hold: what a leader must have, so that nothing more is lost.
        rests_on_flush: whether the verdict holds only if the last leader has not lost, in a power cut, records that it
            counted before it had flushed them.
        rests_on_voters: whether it holds only if there was no change of voters that no log here has seen.
        doubted: for ``NAME_CONTRADICTED`` and ``NAME_DOUBTED``, the snapshots on whose names it depends whether, or
            which, records are missing, by path.
        misses_if_renamed: for ``NAME_DOUBTED``, whether records are missing if all such names are wrong.
    """

    verdict: QuorumVerdict
    reason: Reason
    missing_from: int | None
    must_hold: OffsetAndEpoch
    rests_on_flush: bool = False
    rests_on_voters: bool = False
    doubted: tuple[DoubtedName, ...] = ()
    misses_if_renamed: bool = False


def rule(case: Case) -> Ruling:
    """Give the verdict on a quorum."""
    by_names = _by_doubted_names(case)
    if by_names is not None:
        return by_names
    found = _missing(case)
    if found is not None:
        reason, missing_from, must_hold = found
        return Ruling(QuorumVerdict.MISSING, reason, missing_from, must_hold)
    if not len(case.voters):
        return Ruling(QuorumVerdict.UNKNOWN, Reason.NO_VOTERS_NAMED, None, case.proven)
    known = sum(each.is_reach_known for each in case.present)
    needed = least_of_every_majority(case.voters)
    if known < needed:
        return Ruling(QuorumVerdict.UNKNOWN, Reason.TOO_FEW_VOTERS, None, case.proven)
    doubted = _doubted_losses(case)
    if doubted:
        return Ruling(QuorumVerdict.UNKNOWN, Reason.NAME_CONTRADICTED, None, case.proven, doubted=doubted)
    with_directories = all(key.directory_id is not None for key in case.voters.voter_keys)
    return Ruling(
        QuorumVerdict.NOTHING_MISSING,
        Reason.ENOUGH_VOTERS,
        None,
        case.proven,
        rests_on_flush=known - (case.leader_id is None or bool(case.leaders)) < needed,
        rests_on_voters=with_directories and known < case.voters.majority_size,
    )


def _by_doubted_names(case: Case) -> Ruling | None:
    """Rule where it depends on doubted names whether, or which, records are missing; None where they change nothing.

    They are taken to be wrong, all of them, and each alone to be right, and then all: one of these is true. Taken as it
    is used, a snapshot may hide what its log proves, and that its log has lost something.
    """
    doubted = {
        each.path: each
        for copy in case.copies
        for each in copy.doubted.values()
        if not each.is_certain and not each.proves
    }
    if not doubted:
        return None
    as_used = _missing(case)
    all_wrong = _missing(Case([each.if_renamed or each for each in case.copies], case.leader_id))
    by_path = {path: _missing(_if_right(case, [path])) for path in doubted}
    readings = [all_wrong, *by_path.values(), _missing(_if_right(case, doubted))]
    names = sorted(path for path in doubted if (by_path[path] is None) != (all_wrong is None)) or sorted(doubted)
    found = tuple(doubted[path] for path in names)
    if any(each is None for each in readings):
        if as_used is None and not any(readings):
            return None
        unknown = Ruling(QuorumVerdict.UNKNOWN, Reason.NAME_DOUBTED, None, case.proven, doubted=found)
        return attrs.evolve(unknown, misses_if_renamed=all_wrong is not None)
    if as_used is not None:
        return None
    starts = [each[1] for each in readings if each is not None and each[1] is not None]
    ruling = Ruling(QuorumVerdict.MISSING, Reason.NAME_DOUBTED, min(starts, default=None), case.proven, doubted=found)
    return attrs.evolve(ruling, misses_if_renamed=True)


def _if_right(case: Case, paths: Collection[str]) -> Case:
    """Return the case if some names that are doubted are right, and the others are wrong."""
    copies = []
    for copy in case.copies:
        right = {at: each.path for at, each in copy.doubted.items() if not each.is_certain and each.path in paths}
        trusting = attrs.evolve(copy, snapshots={**copy.snapshots, **right})
        copies.append(trusting if right or copy.if_renamed is None else copy.if_renamed)
    return Case(copies, case.leader_id)


def _doubted_losses(case: Case) -> tuple[DoubtedName, ...]:
    """Return the snapshots by each of whose names alone something would be missing, though it is contradicted."""
    found: dict[str, DoubtedName] = {}
    for copy in case.copies:
        for snapshot_id, doubted in copy.wrong_names.items():
            trusting = attrs.evolve(copy, snapshots={**copy.snapshots, snapshot_id: doubted.path})
            copies = [trusting if each is copy else each for each in case.copies]
            if _is_conflicting(case, copy, snapshot_id) or _missing(Case(copies, case.leader_id)) is not None:
                found[doubted.path] = doubted
    return tuple(found[path] for path in sorted(found))


def _is_conflicting(case: Case, copy: Copy, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether something else is proven of another lineage than a snapshot's, if its log does not know better."""
    if copy.lineage.epoch_at(snapshot_id.offset - 1) not in {None, snapshot_id.epoch}:
        return False
    lineage = completed(Lineage.of_point(snapshot_id), (each.lineage for each in case.copies))
    return any(parting(proof.lineage, lineage) is not None for proof in case.proofs)


def least_of_every_majority(voters: VoterSet) -> int:
    """Return how many voters it takes so that every majority includes one of them."""
    return len(voters) - voters.majority_size + 1


def _missing(case: Case) -> tuple[Reason, int | None, OffsetAndEpoch] | None:
    """Return why committed records are or may be missing, from which offset on, and what must be held; or None."""
    if case.conflict is not None:
        return Reason.TWO_LINEAGES, None, case.proven
    rewritten = [each for each in case.copies if case.has_rewritten(each)]
    if rewritten:
        return Reason.REWRITTEN, min(_shared_end(case, each) for each in rewritten), case.proven
    too_many = least_of_every_majority(case.voters_of_proof)
    if len(case.lacking) >= too_many and len(case.voters_of_proof):
        ends = sorted(_shared_end(case, each) for each in case.lacking)
        return Reason.VOTERS_LACK_PROVEN, ends[too_many - 1], case.proven
    longer = case.longer_than_leader
    if longer is not None and case.proven < longer:
        return Reason.LEADER_IS_SHORTER, case.leaders[0].lineage.end_offset, longer
    return _damaged(case)


def _shared_end(case: Case, copy: Copy) -> int:
    return common_end(case.lineage_of(copy), case.lineage)


def _damaged(case: Case) -> tuple[Reason, int | None, OffsetAndEpoch] | None:
    """Return that too many voters have lost what no replica has whole, or an unknown number of records; or None."""
    end, needed = case.lineage.end, least_of_every_majority(case.voters)
    lost = [each for each in case.present if not each.is_reach_known or max(each.reach, each.lineage.end) > end]
    if not lost or len(case.present) < needed or len(case.present) - len(lost) >= needed:
        return None
    apart = [parting(case.lineage_of(each), case.lineage) for each in lost]
    starts = (end.offset if offset is None else offset for offset in apart)
    return Reason.DAMAGED_EVERYWHERE, min(starts), end
