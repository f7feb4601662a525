# SPDX-License-Identifier: Apache-2.0
"""The rows of the tables of an audit's results; ``raftlog.tools.catalogue.audit_columns`` has the columns."""

import datetime
from collections.abc import Iterable, Iterator, Sequence

from raftlog import __version__
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.timelines import EpochLead, VoterChange, epoch_timeline, voter_timeline
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Check
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.audit_columns import Row
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import RECORD_KINDS, input_file
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.standard_error import unicode_text


def finding_rows(judged: Judged) -> Iterator[Row]:
    """Yield the rows of ``findings`` for judged evidence, still without ``run_id``."""
    places = {path: part.place for part in judged.places for file in part.files for path in _paths(file.task)}
    for finding in judged.findings:
        yield _finding_row(finding, places.get(finding.path))


def timeline_rows(judged: Judged) -> list[tuple[str, Row]]:
    """Return the rows of the timelines for judged evidence, each with its table, still without ``run_id``."""
    rows: list[tuple[str, Row]] = []
    for cluster_id, replicas in judged.replicas.items():
        if any(replica.is_raft for replica in replicas):
            for of_one_log in by_history(replicas, lambda replica: replica):
                rows += rows_of_timelines(cluster_id, of_one_log[0].place, of_one_log)
    return rows


def _paths(task: SurveyTask) -> Iterator[str]:
    yield task.path
    yield from task.indexes.values()


def _finding_row(finding: Finding, place: Place | None) -> Row:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "file": unicode_text(finding.path),
        "log_directory": None if place is None else unicode_text(place.log_directory),
        "topic": None if place is None or not place.topic else unicode_text(place.topic),
        "partition": None if place is None or place.partition < 0 else place.partition,
        "position": finding.position,
        "size_bytes": finding.size_bytes,
        "offset": finding.offset,
        "epoch": finding.epoch,
        "reason": unicode_text(finding.reason),
        "command": unicode_text(command_of(finding)),
    }


def command_of(finding: Finding) -> str:
    """Return the command that shows the place of a finding."""
    path = shell_quoted(finding.path)
    if input_file(finding.path).kind in RECORD_KINDS and finding.position is not None:
        return f"raftlog explain {path} --position {finding.position}"
    return f"raftlog verify --all {path}"


def rows_of_timelines(
    cluster_id: str | None, place: Place, replicas: Sequence[PartitionEvidence]
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the timelines of one log, each with its table, still without ``run_id``.

    Args:
        cluster_id: of its cluster; empty or None if it is not known.
        place: of one of its replicas.
        replicas: all of them, and the log directories that contain them.
    """
    log = {"cluster_id": cluster_id or None, "topic": unicode_text(place.topic), "partition": place.partition}
    for change in voter_timeline(replicas):
        yield "voter_timeline", log | _timeline_row(change)
    for lead in epoch_timeline(replicas):
        yield "epochs", log | _timeline_row(lead)


def _timeline_row(entry: VoterChange | EpochLead) -> Row:
    """Return a row with null for unknown times."""
    row: Row = entry.to_json() | {"seen_in": list(map(unicode_text, entry.seen_in))}
    return row | {name: None for name in ("timestamp", "start_timestamp") if row.get(name, 0) < 0}


def check_row(check: Check) -> Row:
    """Return the row of a check, still without ``run_id``."""
    rule = check.rule
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "claim": rule.claim,
        "source": rule.source,
        "status": check.status.value,
        "findings": check.finding_count,
    }


def run_row(
    account: Account,
    sources: Iterable[str],
    reused_files: int,
    started: datetime.datetime,
    finished: datetime.datetime,
) -> Row:
    """Return the row of a run, still without ``run_id``."""
    counts = ("files", "bytes", "explained_bytes", "damaged_bytes", "padding_bytes", "small_file_bytes", "unread_bytes")
    return {
        "raftlog_version": __version__,
        "started": started,
        "finished": finished,
        "sources": list(map(unicode_text, sources)),
        "verdict": account.verdict,
        "reused_files": reused_files,
        **{name: getattr(account, name) for name in (*counts, "unreadable")},
        **{severity.value.replace("-", "_"): account.by_severity[severity] for severity in Severity},
    }
