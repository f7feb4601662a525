# SPDX-License-Identifier: Apache-2.0
"""An audit whose results go to a directory, with any engine."""

import datetime
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, Self

import attrs

from raftlog.tools.auditing.crash_isolation import attempted
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.audit_output import AuditOutput
from raftlog.tools.auditing.run.audit_tables import check_row, finding_rows, run_row, timeline_rows
from raftlog.tools.auditing.run.object_store_output import checked_output, open_output
from raftlog.tools.auditing.run.rule_status import Check, Checks
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.auditing.run.summary import summary_of
from raftlog.tools.catalogue.audit_columns import Row
from raftlog.tools.catalogue.findings import Finding


class Page(Protocol):
    """The report of an audit, or a part of it. Picklable."""

    @property
    def account(self) -> Account:
        """The account of all files and findings that were added."""
        ...

    @property
    def checks(self) -> Checks:
        """The subjects that there were to check."""
        ...

    def add(self, judged: Judged) -> Judged:
        """Add judged evidence, and return it with a finding for each failure of raftlog itself in adding it."""
        ...

    def blank(self) -> Self:
        """Return an empty report of the same audit, to be merged into this one later."""
        ...

    def merge(self, other: Any) -> None:
        """Add all that a report made by ``blank`` has collected, after what is here."""
        ...

    def html(self, run: str, finished: datetime.datetime) -> str:
        """Return the HTML page, which names the run and its end."""
        ...


@attrs.define
class AuditPart:
    """A part of an audit's results. Picklable: parts are made in any process, and merged in the order of partitions.

    Attributes:
        page: the report of this part.
        rows: of the tables, each with the name of its table, still without ``run_id``.
    """

    page: Page
    rows: list[tuple[str, Row]] = attrs.field(factory=list)

    def add(self, judged: Judged) -> None:
        """Add judged evidence."""
        found, rows = _with_timelines(judged)
        found = self.page.add(found)
        self.rows += (("findings", row) for row in finding_rows(found))
        self.rows += rows


class AuditRun:
    """A run in progress: collects the results of an engine, and writes rows to their tables.

    Args:
        run_id: of its rows.
        output: the directory that it writes to.
        page: an empty report, to which everything is added.

    Attributes:
        run_id, output, page: as given.
    """

    def __init__(self, run_id: str, output: AuditOutput, page: Page) -> None:
        self.run_id: Final = run_id
        self.output: Final = output
        self.page: Final = page

    def take(self, part: AuditPart) -> None:
        """Add the results of the next partitions, in order.

        Raises:
            StorageError: the disk failed.
        """
        self.page.merge(part.page)
        self._write(part.rows)

    def take_judged(self, judged: Judged) -> None:
        """Add judged evidence of the next partitions, in order."""
        self._write(part_of([judged], self.page).rows)

    def _write(self, rows: Iterable[tuple[str, Row]]) -> None:
        for table, row in rows:
            self.output.add(table, row)


Engine = Callable[[AuditRun], int]
"""Surveys and judges everything, adds the results to the run in order, and returns the number of files that were not
read because they had not changed since an earlier run."""


@attrs.frozen
class AuditOutcome:
    """The outcome of an audit.

    Attributes:
        run_id: of its rows in the tables.
        account: of all files and findings.
        reused_files: number of files that were not read because they had not changed.
    """

    run_id: str
    account: Account
    reused_files: int


def part_of(judged: Iterable[Judged], page: Page) -> AuditPart:
    """Return the results of judged partitions.

    Args:
        judged: the judged partitions, in order.
        page: the report to add them to.
    """
    part = AuditPart(page)
    for each in judged:
        part.add(each)
    return part


def audit_into(out: str, sources: Sequence[str], engine: Engine, page: Page) -> AuditOutcome:
    """Audit, and write the results to a directory.

    Args:
        out: the directory, which is created if it does not exist; or a URI in an object store.
        sources: as for ``find_tasks``.
        engine: surveys and judges them.
        page: the report, written at the end.

    Raises:
        LogDirectoryError: the directory is not an audit's output, is in use, or is audited itself.
        StorageError: it cannot be written. The evidence so far is kept for the next run.
        RaftLogError: the engine cannot continue.
    """
    out = checked_output(out, sources)
    started = datetime.datetime.now(datetime.UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with open_output(out, run_id) as output:
        run = AuditRun(run_id, output, page)
        outcome = AuditOutcome(run_id, page.account, engine(run))
        checks = tuple(page.checks.results(outcome.account))
        _complete(output, outcome, checks, sources, started, page)
    return outcome


def _with_timelines(judged: Judged) -> tuple[Judged, list[tuple[str, Row]]]:
    """Return the rows of the timelines too, or a finding if raftlog itself fails on them."""
    rows = attempted(judged.path, timeline_rows, judged)
    return (judged.with_findings([rows]), []) if isinstance(rows, Finding) else (judged, rows)


def _complete(
    output: AuditOutput,
    outcome: AuditOutcome,
    checks: Sequence[Check],
    sources: Sequence[str],
    started: datetime.datetime,
    page: Page,
) -> None:
    """Write the results that are known only at the end."""
    for check in checks:
        output.add("checks", check_row(check))
    finished = datetime.datetime.now(datetime.UTC)
    row = run_row(outcome.account, sources, outcome.reused_files, started, finished)
    output.add("runs", row)
    output.complete(summary_of(outcome.run_id, row, checks), page.html(outcome.run_id, finished))
