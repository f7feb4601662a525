# SPDX-License-Identifier: Apache-2.0
"""The findings of a report, the worst first, each with the command that shows its bytes."""

import functools
from collections.abc import Iterator
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.auditing.run.audit_tables import command_of
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.report.gathering import Gathering
from raftlog.tools.report.markup import Markup, element, escaped, joined
from raftlog.tools.report.severity_label import severity_label
from raftlog.tools.report.tables import framed

_COLUMNS: Final = (
    "Severity",
    "Rule",
    "File, and the command that shows it",
    "Position",
    "Offset",
    "Epoch",
    "What is wrong",
)
_MOST_CHARACTERS: Final = 3_000_000
"""The limit for all rows together, since paths may be long."""
_LONGEST_COMMAND: Final = 20_000


def findings(gathering: Gathering) -> Markup:
    """Return the worst findings as a table, with the number of findings that are left out."""
    total = gathering.findings.offered
    if not total:
        return element("p", "There are none.")
    rows = list(_rows(gathering.findings.values()))
    left_out = total - len(rows)
    hint = (
        f"The worst {len(rows):,} of {total:,} findings are shown, {left_out:,} are not;"
        " raftlog verify --all --findings FILE writes all of them, and the table above counts them."
    )
    head = element("thead", _row("th", _COLUMNS))
    caption = f"{len(rows):,} findings, the worst first"
    return joined(
        [
            element("p", hint, class_="note") if left_out else None,
            framed(caption, head, element("tbody", *rows), kind="findings cards"),
        ]
    )


def _row(name: str, cells: tuple[str, ...]) -> Markup:
    return element("tr", *(element(name, cell, scope="col") for cell in cells))


def _rows(shown: list[Finding]) -> Iterator[Markup]:
    room = _MOST_CHARACTERS
    for finding in shown:
        row = _finding_row(finding)
        room -= len(row)
        if room < 0:
            return
        yield row


def _finding_row(finding: Finding) -> Markup:
    command = element("code", escaped(command_of(finding), _LONGEST_COMMAND))
    return element(
        "tr",
        _severity(finding.severity),
        _rule(finding.rule),
        element("td", element("bdi", finding.path), element("br"), command, class_="t"),
        *map(_number, (finding.position, finding.offset, finding.epoch)),
        _reason(finding.reason),
    )


@functools.cache
def _severity(severity: Severity) -> Markup:
    return element("th", severity_label(severity), scope="row")


@functools.lru_cache
def _rule(rule: str) -> Markup:
    return element("td", element("a", rule, href=f"#rule-{rule}"))


@functools.lru_cache
def _number(value: int | None) -> Markup:
    return element("td", "-", class_="n none") if value is None else element("td", str(value), class_="n")


@functools.lru_cache
def _reason(reason: str) -> Markup:
    return element("td", element("bdi", reason), class_="t")
