# SPDX-License-Identifier: Apache-2.0
"""The quorum of a raft log in a report: which voters are here, who could be elected, what may be lost."""

from collections.abc import Collection, Iterator

from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.tools.auditing.contents.records_at_risk import at_risk_words
from raftlog.tools.auditing.history.quorum_view import Member, QuorumView
from raftlog.tools.auditing.history.quorum_words import lag_or_fork, state_words
from raftlog.tools.auditing.history.verdict_words import advice_words, committed_by, copy_names, verdict_words
from raftlog.tools.report.gathering import LogFacts, ReplicaFacts
from raftlog.tools.report.markup import Markup, element, escaped, joined
from raftlog.tools.report.tables import Cell, facts, listed, ordered, table
from raftlog.uuid_text import uuid_to_text

_COLUMNS = (
    "Node",
    "Role",
    "Could lead",
    "Damage",
    "Log start",
    "Ends at",
    "Lag",
    "Last epoch",
    "At risk from",
    "Its quorum-state",
    "Directory, and its id",
)
_NOTE = (
    "Each log is judged as startup recovery will leave it, which may truncate it at damaged bytes. If the column Damage"
    " says that a replica is damaged, look at its findings too."
)
_MOST_ROWS = 240
_NUMERIC = frozenset({4, 5, 6, 7, 8})


def quorum(log: LogFacts, view: QuorumView, damaged: Collection[str] = ()) -> Markup:
    """Return the state of a quorum, derived from the ends of its logs, with a table of its replicas.

    Args:
        log: the raft log.
        view: of its quorum.
        damaged: log directories with damaged files, of whichever partition.
    """
    by_path = {replica.log_directory: replica for replica in log.replicas}
    majority = "here" if view.has_majority else "NOT here"
    status = facts(
        [
            ("Cluster", view.cluster_id or "not known"),
            (
                "Leader",
                "not known" if view.leader_id == UNKNOWN_ID else f"{view.leader_id} of epoch {view.leader_epoch}",
            ),
            (
                "Majority",
                f"{majority}: {view.present} of {len(view.voters)} voters, {view.voters.majority_size} suffice",
            ),
            ("High watermark", f"{view.high_watermark} or more: {committed_by(view.judgement)}"),
        ]
    )
    rest = len(view.members) - _MOST_ROWS
    rows = (_row(member, by_path.get(member.path or "")) for member in view.members[:_MOST_ROWS])
    return joined(
        [
            element("h3", "Quorum"),
            status,
            element("p", "To go on with this quorum:"),
            ordered([*_damage_beside(log, view, damaged), *advice_words(view.judgement)]),
            element("p", "Why, and what is known of it:"),
            listed([*verdict_words(view), *state_words(view), *at_risk_words(view, log.at_risk)]),
            element("p", _NOTE, class_="note"),
            table("Replicas, and voters that are not here", _COLUMNS, rows, _NUMERIC),
            element("p", f"{rest:,} more are not shown.", class_="note") if rest > 0 else None,
        ]
    )


def _damage_beside(log: LogFacts, view: QuorumView, damaged: Collection[str]) -> Iterator[str]:
    """Yield which of the directories to start have damage all the same, which the quorum does not need."""
    mine = {replica.log_directory for replica in log.replicas if replica.is_damaged}
    copies = [copy for copy in view.judgement.start if copy.path in mine or copy.path in damaged]
    if copies:
        yield (
            f"Look first at the damaged files of {copy_names(copies)}, as the start of this page says. This quorum does"
            " not need them, but a start may cut their logs there."
        )


def _row(member: Member, replica: ReplicaFacts | None) -> tuple[Cell, ...]:
    key, end = member.key, member.end
    return (
        "not known" if key is None else key.id,
        member.status,
        _electable_text(member),
        None if replica is None else _damage_text(member, replica),
        None if replica is None else replica.start_offset,
        None if end is None else end.offset,
        lag_or_fork(member),
        None if end is None else end.epoch,
        member.at_risk,
        None if replica is None else _state_text(replica.state),
        _directory_cell(member),
    )


def _directory_cell(member: Member) -> Markup:
    key, path = member.key, member.path
    shown = element("code", path) if path else escaped("not given")
    if key is None or key.directory_id is None:
        return shown
    return joined([shown, element("br"), element("code", uuid_to_text(key.directory_id))])


def _electable_text(member: Member) -> str | None:
    if member.electable is None:
        return None
    return "yes" if member.electable else "with absent voters" if member.electable_with_absent else "no"


def _damage_text(member: Member, replica: ReplicaFacts) -> str:
    if member.damaged_from is not None:
        quarantine = "" if member.quarantined_from is None else ", in quarantine"
        return f"from offset {member.damaged_from}{quarantine}"
    return "damaged" if replica.is_damaged else "none"


def _state_text(state: QuorumStateData | None) -> str:
    if state is None:
        return "missing or unreadable"
    leader = "no leader" if state.leader_id == UNKNOWN_ID else f"leader {state.leader_id}"
    vote = "" if state.voted_id == UNKNOWN_ID else f", voted for {state.voted_id}"
    return f"epoch {state.leader_epoch}, {leader}{vote}"
