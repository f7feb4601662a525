# SPDX-License-Identifier: Apache-2.0
"""An audit that leaves its results in a directory, and goes on where an earlier one was interrupted."""

import datetime
import secrets
from collections.abc import Sequence
from typing import Protocol

import attrs

from raftlog.tools.auditing.audit_output import AuditOutput, check_outside
from raftlog.tools.auditing.audit_tables import Row, check_row, finding_rows, run_row, timeline_rows
from raftlog.tools.auditing.checks import Check, Checks
from raftlog.tools.auditing.evidence import FileEvidence
from raftlog.tools.auditing.evidence_store import EvidenceStore, StoredSurvey
from raftlog.tools.auditing.judgement import Judged
from raftlog.tools.auditing.own_fault import attempted
from raftlog.tools.auditing.run import Account, audit
from raftlog.tools.auditing.run_progress import RunProgress
from raftlog.tools.auditing.summary import summary_of
from raftlog.tools.findings import Finding


class PageMaker(Protocol):
    """Makes a page for people of an audit."""

    def add(self, judged: Judged) -> Judged:
        """Take what was judged together, and return it with findings more of what raftlog failed over in doing so."""
        ...

    def html(self, run: str) -> str:
        """Return the page, which names the run."""
        ...


@attrs.frozen
class AuditOutcome:
    """How an audit came out.

    Attributes:
        run_id: of its rows in the tables.
        account: of all files and findings.
        reused_files: how many were not read, because they had not changed.
    """

    run_id: str
    account: Account
    reused_files: int


def audit_into(
    out: str,
    sources: Sequence[str],
    processes: int,
    page: PageMaker,
    *,
    is_fresh: bool = False,
    reads_messages: bool = False,
    label: str = "audit",
) -> AuditOutcome:
    """Audit, and leave the results in a directory.

    Args:
        out: the directory; it is made if it is not there.
        sources: as for ``find_tasks``.
        processes: how many read files.
        page: is told of everything, and asked for its text in the end.
        is_fresh: whether to read files too that have not changed since the last run.
        reads_messages: whether to read the messages in records of the metadata log too.
        label: who is at work, for the terminal.

    Raises:
        LogDirectoryError: the directory is not ours, is in use, or is one of those that are audited.
        StorageError: it cannot be written. What was surveyed is kept for the next run.
        MissingExtraError: a package of an extra is not installed.
    """
    check_outside(out, sources)
    started = datetime.datetime.now(datetime.UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with AuditOutput(out, run_id) as output, EvidenceStore(output.store_path, run_id) as store:
        if is_fresh:
            store.forget()
        account, checks = Account(), Checks()
        with RunProgress(label, sources) as progress:

            def surveyed(file: FileEvidence) -> None:
                store.take(file)
                progress.surveyed(file)

            survey = StoredSurvey(output.store_path)
            for judged in audit(sources, processes, survey, surveyed, reads_messages=reads_messages):
                found, rows = _with_timelines(judged)
                found = page.add(found)
                account.add(found)
                checks.add(found)
                for row in finding_rows(found):
                    output.add("findings", row)
                for table, row in rows:
                    output.add(table, row)
        store.drop_unseen()
        outcome = AuditOutcome(run_id, account, store.reused_files)
        _complete(output, outcome, tuple(checks.results(account)), sources, started, page)
    return outcome


def _with_timelines(judged: Judged) -> tuple[Judged, list[tuple[str, Row]]]:
    """Return the rows of timelines too; where raftlog fails over them, a finding more."""
    rows = attempted(judged.path, timeline_rows, judged)
    return (judged.with_findings([rows]), []) if isinstance(rows, Finding) else (judged, rows)


def _complete(
    output: AuditOutput,
    outcome: AuditOutcome,
    checks: Sequence[Check],
    sources: Sequence[str],
    started: datetime.datetime,
    page: PageMaker,
) -> None:
    """Write what is known only at the end."""
    for check in checks:
        output.add("checks", check_row(check))
    row = run_row(outcome.account, sources, outcome.reused_files, started, datetime.datetime.now(datetime.UTC))
    output.add("runs", row)
    output.complete(summary_of(outcome.run_id, row, checks), page.html(outcome.run_id))
