# SPDX-License-Identifier: Apache-2.0
"""Conclusions from the view of a quorum, in sentences for operators."""

from collections.abc import Iterable, Iterator

from raftlog.tools.auditing.history.quorum_view import Member, QuorumView
from raftlog.tools.auditing.history.verdict_words import advice_words, offsets_text, verdict_words
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from raftlog.tools.terminal.value_text import ids_text
from raftlog.voters.voter_set import ReplicaKey


def view_words(view: QuorumView) -> Iterator[str]:
    """Yield conclusions: the verdict, what to do, and what ``state_words`` says."""
    yield from verdict_words(view)
    yield from advice_words(view.judgement)
    yield from state_words(view)


def state_words(view: QuorumView) -> Iterator[str]:
    """Yield whether the quorum can continue, which voters Kafka could elect, and what may be lost."""
    majority = view.voters.majority_size
    absent = _names(member for member in view.members if member.status == "Absent")
    missing = f"; {absent} not given" if absent else ""
    missing += f"; {view.quarantined} in quarantine" if view.quarantined else ""
    missing += f"; {view.stateless} without their state" if view.stateless else ""
    if not len(view.voters):
        yield "No file here names the voters."
    elif view.has_majority:
        yield f"A majority is here: {view.present} of {len(view.voters)} voters; {majority} suffice{missing}."
        yield from _elections(view)
    else:
        yield f"No majority is here: {view.present} of {len(view.voters)} voters; {majority} are needed{missing}."
        unknown = view.judgement.ruling.verdict is QuorumVerdict.UNKNOWN
        more = ", and what the others have above the high watermark is not known" if unknown else ""
        yield f"They cannot elect a leader{more}."
    yield from _copies(view)
    yield from _damage(view)
    yield from _losses(view)


def lag_or_fork(member: Member) -> int | str | None:
    """Return how far a replica lags, or where it forks off; None if it is not here."""
    return member.lag if member.lag is None or member.forks_at is None else f"fork at {member.forks_at}"


def _elections(view: QuorumView) -> Iterator[str]:
    able = _names(member for member in view.members if member.electable)
    with_help = _names(member for member in view.members if member.electable is False and member.electable_with_absent)
    whole = [member for member in view.members if member.quarantined_from is None and member.has_state]
    unable = _names(member for member in whole if member.electable_with_absent is False)
    if able:
        yield f"Kafka could elect, if all voters here were started: {able}. No majority is more up to date."
    if with_help:
        yield f"Kafka could elect, with votes of voters that were not given: {with_help}, if these do not have more."
    if unable:
        yield f"Kafka would not elect: {unable}, as a majority is more up to date."


def _copies(view: QuorumView) -> Iterator[str]:
    """Yield the replicas that were given twice: one of the directories is a copy, which must not be started."""
    paths: dict[ReplicaKey, list[str]] = {}
    for member in view.members:
        if member.key is not None and member.path is not None:
            paths.setdefault(member.key, []).append(member.path)
    for key, found in paths.items():
        if len(found) > 1:
            where = ids_text(found)
            yield f"Given {len(found)} times: {key.id}, in {where}. Only the one that reaches furthest is used."


def _damage(view: QuorumView) -> Iterator[str]:
    """Yield what startup would do to damaged logs, so that an operator copies them before."""
    for member in view.members:
        if not member.has_state:
            yield (
                f"Without its state: {_name(member)}, whose log starts above 0 and has no readable snapshot of what was"
                " before. Kafka does not start on it."
            )
            continue
        if member.damaged_from is None:
            continue
        yield (
            f"Damaged: the log of {_name(member)} from offset {member.damaged_from} on, which is not counted here."
            " Kafka may truncate it there at startup: copy the directory first."
        )
        if member.quarantined_from is not None:
            yield (
                f"In quarantine: {_name(member)}, as raftlog had made more than that durable. It neither votes nor"
                " leads until a leader has sent it the rest."
            )


def _losses(view: QuorumView) -> Iterator[str]:
    """Yield what other replicas would drop: a loss only if it may be committed."""
    is_safe = view.judgement.ruling.verdict is QuorumVerdict.NOTHING_MISSING
    said = [
        f"{'May be lost' if member.may_lose_committed else 'May be dropped'}:"
        f" {offsets_text(member.at_risk, member.end.offset)} of {_name(member)}, as a replica without them could be"
        " elected."
        for member in view.members
        if member.at_risk is not None and member.end is not None
    ]
    yield from said
    if view.has_majority and is_safe and not said and all(member.damaged_from is None for member in view.members):
        yield "Nothing can be lost: every replica that could be elected has all records that are here."


def _names(members: Iterable[Member]) -> str:
    return ids_text(_name(member) for member in members)


def _name(member: Member) -> str:
    return str(member.key.id) if member.key is not None else f"the replica in {member.path or '?'}"
