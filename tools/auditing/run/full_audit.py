# SPDX-License-Identifier: Apache-2.0
"""An audit that leaves its results in a directory, whichever engine reads and judges the files."""

import datetime
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, Self

import attrs

from raftlog.tools.auditing.crash_isolation import attempted
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.audit_output import AuditOutput, check_outside
from raftlog.tools.auditing.run.audit_tables import Row, check_row, finding_rows, run_row, timeline_rows
from raftlog.tools.auditing.run.rule_status import Check, Checks
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.auditing.run.summary import summary_of
from raftlog.tools.catalogue.findings import Finding


class Page(Protocol):
    """A page for people, of an audit. It pickles."""

    @property
    def account(self) -> Account:
        """Of all files and findings that it was told of."""
        ...

    @property
    def checks(self) -> Checks:
        """What there was to check."""
        ...

    def add(self, judged: Judged) -> Judged:
        """Take what was judged together, and return it with findings more of what raftlog failed over in doing so."""
        ...

    def blank(self) -> Self:
        """Return an empty page of the same audit, to be merged later."""
        ...

    def merge(self, other: Any) -> None:
        """Take all of a page that was begun by ``blank``, behind what is here."""
        ...

    def html(self, run: str) -> str:
        """Return the page, which names the run."""
        ...


@attrs.define
class AuditPart:
    """What came of some of what is audited. It pickles; parts are made anywhere, and merged in the order of places.

    Attributes:
        page: of this part.
        rows: for the tables, each with the name of its table; ``run_id`` is still to come.
    """

    page: Page
    rows: list[tuple[str, Row]] = attrs.field(factory=list)

    def add(self, judged: Judged) -> None:
        """Take what was judged together."""
        found, rows = _with_timelines(judged)
        found = self.page.add(found)
        self.rows += (("findings", row) for row in finding_rows(found))
        self.rows += rows


class AuditRun:
    """A run that is going on: gathers what engines hand in, and writes rows to their tables.

    Args:
        run_id: of its rows.
        output: the directory that it writes to.
        page: an empty one; it is told of everything.

    Attributes:
        run_id, output, page: as given.
    """

    def __init__(self, run_id: str, output: AuditOutput, page: Page) -> None:
        self.run_id: Final = run_id
        self.output: Final = output
        self.page: Final = page

    def take(self, part: AuditPart) -> None:
        """Take what came of the places that follow those so far.

        Raises:
            StorageError: the disk failed.
        """
        self.page.merge(part.page)
        self._write(part.rows)

    def take_judged(self, judged: Judged) -> None:
        """Take what was judged together, likewise."""
        self._write(part_of([judged], self.page).rows)

    def _write(self, rows: Iterable[tuple[str, Row]]) -> None:
        for table, row in rows:
            self.output.add(table, row)


Engine = Callable[[AuditRun], int]
"""Surveys and judges all there is, hands the run what comes of it in order, and returns how many files were not read,
because they had not changed since a run before."""


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


def part_of(judged: Iterable[Judged], page: Page) -> AuditPart:
    """Return what came of places that were judged.

    Args:
        judged: in the order of the places.
        page: is told of them.
    """
    part = AuditPart(page)
    for each in judged:
        part.add(each)
    return part


def audit_into(out: str, sources: Sequence[str], engine: Engine, page: Page) -> AuditOutcome:
    """Audit, and leave the results in a directory.

    Args:
        out: the directory; it is made if it is not there.
        sources: as for ``find_tasks``.
        engine: surveys and judges them.
        page: is told of everything, and asked for its text in the end.

    Raises:
        LogDirectoryError: the directory is not ours, is in use, or is one of those that are audited.
        StorageError: it cannot be written. What was surveyed is kept for the next run.
        RaftLogError: the engine cannot go on.
    """
    check_outside(out, sources)
    started = datetime.datetime.now(datetime.UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with AuditOutput(out, run_id) as output:
        run = AuditRun(run_id, output, page)
        outcome = AuditOutcome(run_id, page.account, engine(run))
        checks = tuple(page.checks.results(outcome.account))
        _complete(output, outcome, checks, sources, started, page)
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
    page: Page,
) -> None:
    """Write what is known only at the end."""
    for check in checks:
        output.add("checks", check_row(check))
    row = run_row(outcome.account, sources, outcome.reused_files, started, datetime.datetime.now(datetime.UTC))
    output.add("runs", row)
    output.complete(summary_of(outcome.run_id, row, checks), page.html(outcome.run_id))
