# SPDX-License-Identifier: Apache-2.0
"""``raftlog quorum``: shows what ``kafka-metadata-quorum describe`` shows, from the directories of stopped nodes."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from raftlog.tools.audit_verbs.judgement_json import judgement_members
from raftlog.tools.audit_verbs.quorum_files import Log, make_quorum_parser, show_logs
from raftlog.tools.audit_verbs.two_looks import Reading
from raftlog.tools.auditing.contents.records_at_risk import RecordsAtRisk, at_risk_words, records_at_risk
from raftlog.tools.auditing.history.quorum_view import Member, QuorumView, quorum_view
from raftlog.tools.auditing.history.quorum_words import lag_or_fork, view_words
from raftlog.tools.auditing.history.timelines import voters_json
from raftlog.tools.auditing.history.verdict_words import committed_by
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR, EXIT_SUSPICIOUS
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.table_lines import table
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import ReplicaKey, VoterNode

_COLUMNS: Final = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastEpoch", "Status", "Directory")
_LABEL_WIDTH: Final = 24

EXIT_CODES: Final = {
    QuorumVerdict.NOTHING_MISSING: EXIT_CLEAN,
    QuorumVerdict.MISSING: EXIT_DAMAGE,
    QuorumVerdict.UNKNOWN: EXIT_SUSPICIOUS,
}
"""The exit code of each verdict."""
_BY_SEVERITY: Final = (QuorumVerdict.NOTHING_MISSING, QuorumVerdict.UNKNOWN, QuorumVerdict.MISSING)
EXIT_CODES_HELP: Final = (
    "Exit codes: 0 nothing committed is missing, 1 usage or I/O, 2 committed records are missing, or may be,"
    " 3 the files cannot tell, 130 interrupted. Of several quorums, the worst counts. Damage by which nothing committed"
    " is lost is the matter of 'raftlog verify'."
)


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog quorum`` with what follows it on the command line, and return the exit code."""
    verdicts: list[QuorumVerdict] = []

    def lines(log: Log, output_format: str, reading: Reading) -> Iterable[str] | None:
        view = quorum_view(log)
        if view is None:
            return None
        verdicts.append(view.judgement.ruling.verdict)
        at_risk = records_at_risk(view, log)
        return _text(view, at_risk, reading) if output_format == "text" else _json_lines(view, at_risk, reading)

    return show_logs(make_parser(), lines, arguments, lambda tally: exit_code(verdicts, tally), settled)


def settled(first: Log, last: Log) -> Log:
    """Return of two looks at a quorum that is running the one with the better verdict; of equal ones, the last.

    A snapshot that is read later than the logs of the voters proves records that these had no time to hold.
    """
    before, after = quorum_view(first), quorum_view(last)
    if before is None or after is None:
        return last
    severity, severity_before = (_BY_SEVERITY.index(view.judgement.ruling.verdict) for view in (after, before))
    return first if severity_before < severity else last


def exit_code(verdicts: Iterable[QuorumVerdict], tally: Tally) -> int:
    """Return the exit code of verdicts on quorums: that of the worst, unless a file that could not be read is worse.

    Damage of which no verdict knows a loss has no influence: ``raftlog verify`` is the verb for that.
    """
    codes = {EXIT_CODES[verdict] for verdict in verdicts}
    if not codes:
        return tally.exit_code
    if EXIT_DAMAGE in codes:
        return EXIT_DAMAGE
    return EXIT_ERROR if tally.errors else max(codes)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return make_quorum_parser(
        "quorum",
        "Show a quorum that is not running: whether committed records are missing, and what proves it; which copy to go"
        " on from, which nodes to start; the last leader, the voters, who could be elected.",
        EXIT_CODES_HELP,
    )


# For programs


def _json_lines(view: QuorumView, at_risk: Sequence[RecordsAtRisk], reading: Reading) -> Iterator[str]:
    yield json_line(
        "quorum",
        None,
        cluster_id=view.cluster_id,
        leader_id=view.leader_id,
        leader_epoch=view.leader_epoch,
        high_watermark_at_least=view.high_watermark,
        **judgement_members(view.judgement),
        records_at_risk=[_records(each) for each in at_risk],
        max_follower_lag=view.max_follower_lag,
        voters=voters_json(view.voters),
        voters_present=view.present,
        majority=view.voters.majority_size,
        has_majority=view.has_majority,
        read_within_ms=reading.within_ms,
    )
    for member in view.members:
        key = member.key
        members = {
            "node_id": None if key is None else key.id,
            "directory_id": None if key is None else _directory_id(key),
            **path_member("directory", member.path),
            "log_end_offset": None if member.end is None else member.end.offset,
            "lag": member.lag,
            "forks_at": member.forks_at,
            "last_epoch": None if member.end is None else member.end.epoch,
            "status": member.status,
            "electable": member.electable,
            "electable_with_absent": member.electable_with_absent,
            "at_risk_from": member.at_risk,
            "damaged_from": member.damaged_from,
            "quarantined_from": member.quarantined_from,
            "has_state": member.has_state,
            "is_misled": member.is_misled,
            "changed_while_read": member.path in reading.changed,
        }
        yield json_line("replica", None, **members)


def _records(found: RecordsAtRisk) -> dict[str, Any]:
    return {
        **path_member("directory", found.path),
        "start_offset": found.start_offset,
        "end_offset": found.end_offset,
        "read_to": found.read_to,
        **path_member("file", found.file),
        "first_timestamp": found.first_timestamp,
        "last_timestamp": found.last_timestamp,
        "kinds": [attrs.asdict(kind) for kind in found.kinds],
    }


def _directory_id(key: ReplicaKey) -> str | None:
    return None if key.directory_id is None else uuid_to_text(key.directory_id)


# For people


def _text(view: QuorumView, at_risk: Iterable[RecordsAtRisk], reading: Reading) -> Iterator[str]:
    yield from _status(view)
    yield ""
    yield from table([_COLUMNS, *map(_row, view.members)])
    yield ""
    yield from view_words(view)
    yield from at_risk_words(view, at_risk)
    if reading.within_ms is not None:
        yield (
            f"{len(reading.changed)} of these directories changed while they were read, within"
            f" {reading.within_ms / 1000:.3f} s: the nodes are running. Ends and lags are of different moments."
        )


def _status(view: QuorumView) -> Iterator[str]:
    observers = [member.key for member in view.members if member.status == "Observer" and member.key is not None]
    facts: dict[str, Any] = {
        "ClusterId": view.cluster_id or "not known",
        "LeaderId": view.leader_id,
        "LeaderEpoch": view.leader_epoch,
        "HighWatermark": f"{view.high_watermark} or more: {committed_by(view.judgement)}",
        "MaxFollowerLag": view.max_follower_lag,
        "CurrentVoters": json.dumps([_voter(node) for node in view.voters.voters.values()]),
        "CurrentObservers": json.dumps([_replica(key) for key in observers]),
    }
    for label, value in facts.items():
        yield f"{label + ':':{_LABEL_WIDTH}}{value}"


def _replica(key: ReplicaKey) -> dict[str, Any]:
    directory_id = _directory_id(key)
    return {"id": key.id} | ({} if directory_id is None else {"directoryId": directory_id})


def _voter(node: VoterNode) -> dict[str, Any]:
    addresses = [f"{name}://{address}" for name, address in node.listeners.listeners.items()]
    return _replica(node.voter_key) | ({"endpoints": addresses} if addresses else {})


def _row(member: Member) -> tuple[object, ...]:
    key, end, lag = member.key, member.end, lag_or_fork(member)
    return (
        "?" if key is None else key.id,
        (key and _directory_id(key)) or "-",
        "-" if end is None else end.offset,
        "-" if lag is None else lag,
        "-" if end is None else end.epoch,
        member.status,
        member.path or "not given",
    )
