# SPDX-License-Identifier: Apache-2.0
"""The counts of a report: sizes of files, batches and epochs, and the number of findings per rule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.timelines import EpochLead
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.report.drawing import share_bar
from raftlog.tools.report.gathering import Gathering
from raftlog.tools.report.markup import Markup, element, joined
from raftlog.tools.report.severity_label import severity_label
from raftlog.tools.report.tables import Cell, framed, table
from raftlog.tools.report.worst import rank_of

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FEW: Final = 8
"""The least number of epochs whose lengths are drawn."""


def rules_found(gathering: Gathering) -> Markup:
    """Return a table of the number of findings per rule, with the rule's claim."""
    counts = gathering.account.by_rule
    if not counts:
        return element("p", "No rule found anything.")
    found = sorted(counts, key=lambda rule: (-rank_of(CATALOGUE[rule].severity), -counts[rule], rule))
    greatest = max(counts.values())
    head = element(
        "tr",
        *(element("th", name, scope="col") for name in ("Rule", "Severity", "Findings", "Share", "Claim", "First")),
    )
    rows = (_rule_row(gathering.first_of_rule[rule], counts[rule], greatest) for rule in found)
    caption = "Findings by rule; a claim is what is true of sound files"
    return framed(caption, element("thead", head), element("tbody", *rows), kind="rules cards")


def severities(gathering: Gathering) -> Markup:
    """Return a table of the number of findings per severity."""
    counts = gathering.account.by_severity
    greatest = max(counts.values(), default=0)
    rows = (
        (
            severity_label(severity),
            counts[severity],
            share_bar(f"{counts[severity]} {severity.value}", counts[severity], greatest),
        )
        for severity in reversed(Severity)
    )
    return table("Findings by severity", ("Severity", "Findings", "Share"), rows, (1,), "bars")


def sizes(gathering: Gathering) -> Markup:
    """Return histograms of the sizes of files of batches, and of their mean batch sizes."""
    drawn = [
        _histogram("Sizes of segments and snapshots", "Size", gathering.file_sizes, in_bytes=True),
        _histogram("Mean sizes of a file's batches", "Size", gathering.batch_sizes, in_bytes=True),
    ]
    return joined(drawn)


def volumes(gathering: Gathering) -> Markup | None:
    """Return a table of the largest partitions: what their logs are made of, by the headers of sound batches."""
    found = gathering.volumes.values()
    if not found:
        return None
    greatest = found[0].size_bytes
    rows: Iterator[tuple[Cell, ...]] = (
        (
            each.name,
            f"{each.size_bytes:,}",
            share_bar(f"{each.size_bytes} bytes of {each.name}", each.size_bytes, greatest),
            f"{each.batch_count:,}",
            f"{each.record_count:,}",
            f"{each.size_bytes // max(1, each.batch_count):,}",
            f"{each.record_count / max(1, each.batch_count):.1f}",
            each.path,
        )
        for each in found
    )
    columns = (
        "Partition",
        "Bytes",
        "Share",
        "Batches",
        "Records",
        "Bytes per batch",
        "Records per batch",
        "In directory",
    )
    shown = table("The largest logs, in sound batches", columns, rows, (1, 3, 4, 5, 6))
    rest = gathering.volumes.offered - len(found)
    more = f"{rest:,} smaller logs are not shown. " if rest else ""
    hint = "raftlog stats --report draws types, keys, producers, codecs and hours, too."
    return joined([shown, element("p", more + hint, class_="note")])


def epoch_lengths(leads: Sequence[EpochLead]) -> Markup | None:
    """Return a histogram of offsets per epoch; None for few epochs, whose table is enough."""
    if len(leads) < _FEW:
        return None
    lengths = Counter((lead.end_offset - lead.start_offset).bit_length() for lead in leads)
    return _histogram("Offsets of an epoch", "Offsets", lengths, in_bytes=False)


def _rule_row(first: Finding, count: int, greatest: int) -> Markup:
    rule = CATALOGUE[first.rule]
    position = "" if first.position is None else f", position {first.position}"
    return element(
        "tr",
        element("th", element("code", rule.id), scope="row", id=f"rule-{rule.id}"),
        element("td", severity_label(rule.severity)),
        element("td", f"{count:,}", class_="n"),
        element("td", share_bar(f"{count} {rule.id}", count, greatest), class_="g"),
        element("td", f"{rule.claim} ({rule.source})", class_="t"),
        element("td", element("bdi", f"{first.path}{position}"), class_="t"),
    )


def _histogram(caption: str, label: str, counts: Counter[int], *, in_bytes: bool) -> Markup | None:
    if not counts:
        return None
    return table(caption, (label, "Count", "Share"), _histogram_rows(counts, in_bytes=in_bytes), (1,), "bars")


def _histogram_rows(counts: Counter[int], *, in_bytes: bool) -> Iterator[tuple[Cell, ...]]:
    greatest = max(counts.values())
    for digits in range(min(counts), max(counts) + 1):
        name, count = _range_text(digits, in_bytes=in_bytes), counts[digits]
        yield name, count, share_bar(f"{name}: {count}", count, greatest)


def _range_text(digits: int, *, in_bytes: bool) -> str:
    """Return the range of numbers that have a given number of binary digits."""
    if digits <= 1:
        return str(digits)
    low, high = 1 << (digits - 1), 1 << digits
    return f"{_size_text(low)} to {_size_text(high)}" if in_bytes else f"{low} to {high - 1}"


def _size_text(size_bytes: int) -> str:
    unit = min((size_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size_bytes >> (10 * unit)} {_UNITS[unit]}"
