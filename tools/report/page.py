# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one file without scripts or external resources, and the same for the same findings."""

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final

from raftlog import __version__
from raftlog.tools.auditing.crash_isolation import attempted
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Checks, CheckStatus
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.report.advice import colour_of, headline, next_steps, safe_texts
from raftlog.tools.report.counts_section import epoch_lengths, rules_found, severities, sizes, volumes
from raftlog.tools.report.drawing import definitions, share_bar
from raftlog.tools.report.files_section import byte_maps
from raftlog.tools.report.findings_section import findings
from raftlog.tools.report.gathering import MOST_LOGS, MOST_PLACES, Gathering, LogFacts, is_serious, worst_of
from raftlog.tools.report.markup import Markup, element, escaped, joined
from raftlog.tools.report.quorum_section import quorum
from raftlog.tools.report.severity_label import severity_label
from raftlog.tools.report.style import STYLE, STYLE_HASH
from raftlog.tools.report.tables import Cell, facts, listed, table
from raftlog.tools.report.timeline_section import timelines

GENERATOR: Final = "raftlog report"
"""The value of a page's generator tag, by which a report is recognized."""
HEAD: Final = (
    f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{GENERATOR}'
)
"""The start of every page."""
_POLICY: Final = f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
_MOST_SOURCES: Final = 50
_FEW_LOGS: Final = 3

_Content = Callable[[], Markup | None]


def document(title: str, verdict: Markup, sections: Sequence[tuple[str, Markup]]) -> str:
    """Return a page: valid Unicode, one file without scripts or external resources.

    Args:
        title: of the page.
        verdict: what is said first.
        sections: in order, each with the words of the link to it.
    """
    head = joined(
        [
            # The policy is constant, so that its quotes need no escaping.
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"{title} - raftlog"),
            element("style", Markup(STYLE)),
        ]
    )
    body = element(
        "body",
        definitions(),
        element("header", verdict, _contents([link for link, _ in sections])),
        element("main", *(content for _, content in sections)),
    )
    return f'{HEAD} {__version__}">{head}</head>\n{body}</html>\n'


class Report:
    """Collects the results of an audit as they arrive, and returns them as an HTML page.

    Args:
        sources: what was audited, as the user named it.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._gathering = Gathering()
        self._faults: list[Finding] = []

    def add(self, judged: Judged) -> Judged:
        """Add a judgement. Returns it with added findings for the parts of it that made raftlog fail here."""
        return self._gathering.add(judged)

    @property
    def account(self) -> Account:
        """Of all files and findings that were added."""
        return self._gathering.account

    @property
    def checks(self) -> Checks:
        """Which rules had something to check."""
        return self._gathering.checks

    @property
    def faults(self) -> tuple[Finding, ...]:
        """One per section that made raftlog fail in ``html``; the page has an error in its place."""
        return tuple(self._faults)

    def blank(self) -> "Report":
        """Return an empty report of the same audit, to be merged later."""
        return Report(self._sources)

    def merge(self, other: "Report") -> None:
        """Add all of a report from ``blank``, after what is here."""
        self._gathering.merge(other._gathering)  # noqa: SLF001 - one of the same class

    def html(self, run: str = "", finished: datetime.datetime | None = None) -> str:
        """Return the page. It is valid Unicode, whatever the names of files are.

        Args:
            run: name of the run to show; empty for none.
            finished: time of the audit to show, in UTC. Without both, the same files always give the same page.
        """
        title = headline(self._gathering)
        self._faults.clear()
        sections = [
            (link, section(number, name, self._attempted(name, content)))
            for number, (name, link, content) in enumerate(self._parts(run, finished), 1)
        ]
        return document(title, self._verdict(title), sections)

    def _attempted(self, name: str, content: "_Content") -> Markup | None:
        """Return the content of a section; or the error if making it makes raftlog fail."""
        made = attempted(name, content)
        if isinstance(made, Finding):
            self._faults.append(made)
            return element("p", made.reason.capitalize(), class_="note")
        return made

    def _parts(self, run: str, finished: datetime.datetime | None) -> list[tuple[str, str, "_Content"]]:
        """Return the names of the sections, each with the words of its link, and a function that makes its content."""
        gathering, drawn = self._gathering, _drawn_logs(self._gathering)
        named = Counter(log.name for log in drawn)
        links = (log.name if named[log.name] == 1 else log.label for log in drawn)
        logs = (
            (f"Log {log.label}", link, partial(_log, log, gathering.damaged_directories))
            for log, link in zip(drawn, links, strict=True)
        )
        parts: list[tuple[str, _Content]] = []
        if rest := gathering.logs.offered - len(drawn):
            shown = f"raft logs and the worst others have one, {MOST_LOGS} at most"
            hint = f"{rest:,} more logs have no section of their own: {shown}."
            parts.append(("Other logs", lambda: element("p", hint)))
        parts += [
            ("Files", lambda: joined([_places(gathering), byte_maps(gathering)])),
            ("What is in the logs", lambda: volumes(gathering)),
            ("Numbers", lambda: joined([severities(gathering), rules_found(gathering), sizes(gathering)])),
            ("Findings", lambda: findings(gathering)),
        ]
        return [
            *((name, name, content) for name, content in self._first_parts(run, finished)),
            *logs,
            *((name, name, content) for name, content in parts),
        ]

    def _first_parts(self, run: str, finished: datetime.datetime | None) -> Iterator[tuple[str, "_Content"]]:
        yield "What to do next", lambda: _steps(self._gathering)
        yield "What is safe", lambda: listed(safe_texts(self._gathering))
        yield "What was looked at", lambda: self._facts(run, finished)

    def _verdict(self, title: str) -> Markup:
        account = self._gathering.account
        return element(
            "div",
            element("h1", title),
            element("p", account.verdict_line().partition(": ")[2].capitalize()),
            class_=f"verdict {colour_of(self._gathering)}",
        )

    def _facts(self, run: str, finished: datetime.datetime | None) -> Markup:
        account = self._gathering.account
        more = f" and {len(self._sources) - _MOST_SOURCES:,} more" if len(self._sources) > _MOST_SOURCES else ""
        statuses = Counter(check.status for check in self._gathering.checks.results(account))
        rules = (
            f"{statuses[CheckStatus.PASS]} passed, {statuses[CheckStatus.FAIL]} found something,"
            f" {statuses[CheckStatus.SKIPPED]} had nothing to check, {statuses[CheckStatus.ERROR]} are not known"
        )
        rows: list[tuple[str, Cell]] = [
            ("Looked at", joined([*_codes(self._sources[:_MOST_SOURCES]), more])),
            ("Rules", rules),
            ("Made by", f"raftlog {__version__}"),
        ]
        if run:
            rows.append(("Run", run))
        if finished is not None:
            rows.append(("Finished", f"{finished:%Y-%m-%d %H:%M:%S} UTC"))
        return joined([facts(rows), _coverage(account)])


def _steps(gathering: Gathering) -> Markup:
    steps = list(next_steps(gathering))
    return listed(steps) if steps else element("p", "Nothing needs to be done.")


def _contents(names: Sequence[str]) -> Markup:
    links = (element("a", name, href=f"#part-{number}") for number, name in enumerate(names, 1))
    return element("nav", element("ul", *(element("li", link) for link in links)), aria_label="On this page")


def section(number: int, name: str, content: Markup | None) -> Markup:
    """Return a section of a page, by its number from 1."""
    section_id = f"part-{number}"
    return element("section", element("h2", name, id=section_id), content, aria_labelledby=section_id)


def _log(log: LogFacts, damaged: Collection[str]) -> Markup:
    view = None if log.view is None else quorum(log, log.view, damaged)
    return joined([view, timelines(log), epoch_lengths(log.leads)])


def _drawn_logs(gathering: Gathering) -> list[LogFacts]:
    """Return the logs that have a section: if there are many, raft logs and those with findings above harmless."""
    is_few = gathering.logs.offered <= _FEW_LOGS
    return [log for log in gathering.logs.values() if is_few or log.is_raft or is_serious(log.worst)]


def _coverage(account: Account) -> Markup:
    parts = (
        ("in sound batches", account.explained_bytes),
        ("damaged", account.damaged_bytes),
        ("padding: zeros at the end", account.padding_bytes),
        ("in indexes and small files", account.small_file_bytes),
        ("not read", account.unread_bytes),
    )
    rows: list[tuple[Cell, ...]] = [
        (name, f"{size:,}", share_bar(f"{size} bytes {name}", size, account.bytes)) for name, size in parts
    ]
    rows.append(("all bytes", f"{account.bytes:,}", share_bar(f"{account.bytes} bytes", account.bytes, account.bytes)))
    caption = f"Where every byte of {account.files:,} files went; the first five rows add up to the sixth"
    return table(caption, ("Bytes", "Count", "Share"), rows, (1,), "bars")


def _places(gathering: Gathering) -> Markup | None:
    places = gathering.places.values()
    if not places:
        return None
    rows = (
        (place.name or "log directory", severity_label(worst), place.file_count, f"{place.size_bytes:,}", place.path)
        for place in places
        if (worst := worst_of(place.counts)) is not None
    )
    columns = ("Partition", "Worst finding", "Files", "Bytes", "In directory")
    shown = table("Directories with findings above harmless", columns, rows, (2, 3))
    rest = gathering.places.offered - len(places)
    more = element("p", f"{rest:,} more such directories; the worst {MOST_PLACES} are shown.", class_="note")
    return joined([shown, more if rest else None])


def _codes(texts: Sequence[str]) -> Iterator[str | Markup]:
    for number, text in enumerate(texts):
        yield from ([", "] if number else [])
        yield element("code", escaped(text))
