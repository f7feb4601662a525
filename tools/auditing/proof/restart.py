# SPDX-License-Identifier: Apache-2.0
"""The advice that follows from a verdict: which nodes to start, which stay down, or that nothing is to be started."""

import enum
from collections.abc import Iterable, Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.case import Case
from raftlog.tools.auditing.proof.copies import Copy, of_voters
from raftlog.tools.auditing.proof.elections import electable
from raftlog.tools.auditing.proof.lineage import parting
from raftlog.tools.auditing.proof.verdict import QuorumVerdict, Reason, Ruling


class Way(enum.Enum):
    """How to go on."""

    START = "start"
    FIND_MORE = "find-more"
    SALVAGE = "salvage"
    START_NOTHING = "start-nothing"
    SETTLE_NAMES = "settle-names"


def set_to_start(case: Case, must_hold: OffsetAndEpoch) -> list[Copy]:
    """Return the voters to start together: whoever of them is elected has what must be held. Empty if there are none.

    Those that have it come first. Others, which lack it, join as long as these could not be elected without the first.
    """
    if case.seed is None or case.conflict is not None:
        return []
    voters = [each for each in of_voters(case.copies, case.voters) if _is_whole(each)]
    voters.sort(key=lambda each: (each.lineage.contains(must_hold), each.end), reverse=True)
    chosen: list[Copy] = []
    for voter in voters:
        able = electable([*chosen, voter], case.voters)
        if all(each.lineage.contains(must_hold) for each in able):
            chosen.append(voter)
    return sorted(chosen, key=lambda each: each.path) if electable(chosen, case.voters) else []


def _is_whole(copy: Copy) -> bool:
    return copy.can_start and copy.votes and copy.is_sound


def stay_down(case: Case, start: Sequence[Copy], must_hold: OffsetAndEpoch) -> list[Copy]:
    """Return the replicas not to be started with the others; without others, none is to be started.

    A sound observer of the lineage to keep may follow.
    """
    if not start:
        return sorted(case.copies, key=lambda each: each.path)
    keys, kept = {each.key for each in start}, case.lineage.cut(must_hold.offset)
    down = [
        each
        for each in case.copies
        if each not in start
        and (
            each.key in keys
            or each.is_voter_of(case.voters)
            or not _is_whole(each)
            or parting(case.lineage_of(each), kept) is not None
        )
    ]
    return sorted(down, key=lambda each: each.path)


def never_to_start(start: Sequence[Copy], forks: Iterable[Copy]) -> list[Copy]:
    """Return the replicas of another lineage that must not be started on their directories, even as followers.

    If the nodes to start have not seen such a replica's last epoch, their next leader may use its number once more. A
    Fetch compares numbers of epochs: where both sides have the same, it takes their records for the same.

    Args:
        start: the replicas to start; without any, there is nothing to say.
        forks: the replicas of other lineages.
    """
    seen = max((max(each.state_epoch or -1, each.reach.epoch, each.lineage.end.epoch) for each in start), default=None)
    return [] if seen is None else [each for each in forks if each.lineage.end.epoch > seen]


def way_on(case: Case, ruling: Ruling, start: Sequence[Copy]) -> Way:
    """Return how to go on."""
    if case.conflict is not None:
        return Way.START_NOTHING
    if ruling.reason is Reason.NAME_DOUBTED:
        return Way.SETTLE_NAMES
    if start:
        return Way.START
    has_absent = len(case.present) < len(case.voters)
    may_be_elsewhere = {Reason.DAMAGED_EVERYWHERE, Reason.LEADER_IS_SHORTER}
    if (
        ruling.verdict is QuorumVerdict.UNKNOWN
        or case.seed is None
        or (has_absent and ruling.reason in may_be_elsewhere)
    ):
        return Way.FIND_MORE if has_absent or case.seed is None else Way.SALVAGE
    return Way.SALVAGE
