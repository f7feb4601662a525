# SPDX-License-Identifier: Apache-2.0
"""Reports that records are missing which are, or may be, committed, where no single file and no two logs show it."""

from collections.abc import Iterator, Sequence

from raftlog.invariants import present
from raftlog.tools.auditing.history.log_lineages import log_lineage
from raftlog.tools.auditing.history.lost_branches import proofs_of
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.history.replicas import Replica
from raftlog.tools.auditing.history.verdict_words import has, proof_text, quorum_reason
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.auditing.proof.judging import Judgement
from raftlog.tools.auditing.proof.lineage import parting
from raftlog.tools.auditing.proof.verdict import QuorumVerdict, Reason
from raftlog.tools.catalogue.findings import Finding


def judge_committed(quorum: Sequence[Replica], view: QuorumView) -> Iterator[Finding]:
    """Report a loss by the verdict on a quorum (``raftlog.tools.auditing.proof``).

    Damage is reported by the rules about it, and by ``replica-lost`` a fork of which two logs show that it loses
    something, whosever they are. Voters are known by the directories of their logs, which only the verdict sees.

    Args:
        quorum: replicas of one log, the most up to date first.
        view: of them.
    """
    judgement = view.judgement
    ruling = judgement.ruling
    if ruling.verdict is not QuorumVerdict.MISSING or ruling.reason is Reason.DAMAGED_EVERYWHERE:
        return
    offset = judgement.parting_offset if ruling.missing_from is None else ruling.missing_from
    is_fork = ruling.reason in {Reason.TWO_LINEAGES, Reason.REWRITTEN}
    with_logs = [replica for replica in quorum if replica.evidence.segments]
    if is_fork and _have_forked(with_logs) and _is_shown(with_logs, judgement, present(offset, "a fork's offset")):
        return
    copy = _blamed(view)
    reason = quorum_reason(view)
    if judgement.conflict is not None:
        one, other = map(proof_text, judgement.conflict)
        reason += f"; {one} proves one, and {other} the other"
    elif judgement.proofs and ruling.reason not in {Reason.LEADER_IS_SHORTER, Reason.NAME_DOUBTED}:
        reason += f"; {proof_text(judgement.proofs[0])} proves it"
    yield Finding(_path_of(copy, quorum), "committed-lost", reason, offset=offset, epoch=judgement.proven.epoch)


def _blamed(view: QuorumView) -> Copy:
    """Return the replica that has lost the most, or that went on without what was committed."""
    judgement = view.judgement
    match judgement.ruling.reason:
        case Reason.VOTERS_LACK_PROVEN:
            gone = list(judgement.lacking)
        case Reason.LEADER_IS_SHORTER:
            gone = [copy for copy in judgement.copies if copy.key is not None and copy.key.id == view.leader_id]
        case Reason.REWRITTEN:
            gone = [fork.copy for fork in judgement.forks if fork.has_rewritten]
        case _:  # Of two lineages, the later one was begun without the records of the other.
            gone = [copy for copy in judgement.copies if judgement.conflict and has(copy, judgement.conflict[0])]
    return min(gone or judgement.copies, key=lambda copy: (copy.lineage.end, copy.path))


def _is_shown(quorum: Sequence[Replica], judgement: Judgement, offset: int) -> bool:
    """Whether the logs alone prove records, from an offset on, of the lineage that was left there."""
    left = judgement.proofs[0] if judgement.conflict is None else judgement.conflict[1]
    found = proofs_of([replica.evidence for replica in quorum])
    return any(each.point.offset > offset and parting(each.lineage, left.lineage) is None for each in found)


def _path_of(copy: Copy, quorum: Sequence[Replica]) -> str:
    """Return the path of the segment in which a replica's log ends."""
    segments = next(replica.evidence.segments for replica in quorum if replica.path == copy.path)
    return segments[-1].task.path if segments else copy.path


def _have_forked(quorum: Sequence[Replica]) -> bool:
    """Whether two logs have different epochs at one offset."""
    lineages = list({log_lineage(replica.evidence) for replica in quorum})
    for number, one in enumerate(lineages):
        for other in lineages[number + 1 :]:
            offset = parting(one, other)
            if offset is not None and None not in {one.epoch_at(offset), other.epoch_at(offset)}:
                return True
    return False
