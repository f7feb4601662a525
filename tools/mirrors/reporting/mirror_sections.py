# SPDX-License-Identifier: Apache-2.0
"""The sections of the page of ``raftlog verify-mirror``: pairs, differences, groups, and when the flow stood still."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.auditing.run.audit_tables import command_of
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import MirrorFault, OffsetRange
from raftlog.tools.mirrors.following import FlowSpan, GroupMove, MirrorFinding
from raftlog.tools.mirrors.pair_findings import PairFinding
from raftlog.tools.mirrors.pair_report import PairReport
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.report.drawing import Bar, Lane, Scale, lanes_figure, legend
from raftlog.tools.report.markup import Markup, element, escaped, joined
from raftlog.tools.report.severity_label import severity_label
from raftlog.tools.report.tables import Cell, table
from raftlog.tools.report.worst import rank_of
from raftlog.tools.terminal.value_text import LAST_MS, counted, duration_text, time_text

MOST_LANES: Final = 24
MOST_ROWS: Final = 500
"""Of one table: a page must open in a browser."""
_WHOLE: Final = 1000
"""The length of a bar, of which each part is a share."""
_SHARES: Final = (
    ("compared", "plain", "compared"),
    ("unverifiable", "gap", "unverifiable"),
    ("lag", "snapshot", "not mirrored yet"),
    ("aborted", "padding", "aborted ones left out"),
)
_MISSING: Final = ("damage", "missing in the mirror")
"""Part of what was compared."""
_GAP: Final = "mirror.heartbeat-gap"
_DAY_MS: Final = 86_400_000
_MOVE_COLUMNS: Final = (
    *("Group", "Partition", "Committed", "Goes on at", "By", "Read again", "Skipped", "Missing"),
    *("Newest in source", "Newest in target"),
)


def pairs_section(reports: Sequence[PairReport], *, has_syncs: bool) -> Markup:
    """Return what became of the records of each pair: a bar, and a table.

    Args:
        reports: of all pairs.
        has_syncs: whether there are anchors to be told of.
    """
    if not reports:
        return element("p", "No partition of the source has its mirror here.")
    ordered = sorted(reports, key=lambda each: (-rank_of(each.worst), each.pair))
    lanes = [Lane(_lane_name(each), list(_bars(each))) for each in ordered]
    scale = Scale(0, _WHOLE, lambda share: f"{100 * share // _WHOLE}%")
    figure = element(
        "figure",
        element("figcaption", "What became of the records of each source."),
        lanes_figure(f"Records of {counted(len(reports), 'pair')} by what became of them", lanes[:MOST_LANES], scale),
        legend([(kind, word) for _, kind, word in _SHARES] + [_MISSING]),
        _left_out(len(lanes), MOST_LANES, "pairs are not drawn"),
    )
    columns = ["Pair", "Worst finding", *(word.capitalize() for *_, word in _SHARES), "First not mirrored"]
    columns += ["Anchors equal"] if has_syncs else []
    rows = ([*_pair_row(each), *([_anchors(each)] if has_syncs else [])] for each in ordered[:MOST_ROWS])
    shown = table("Pairs, the worst first", columns, rows, range(2, 8))
    return joined([figure, shown, _left_out(len(ordered), MOST_ROWS, "pairs are not shown")])


def _lane_name(report: PairReport) -> str:
    return f"{report.pair.source}-{report.pair.partition}: {counted(report.result.counts.total, 'record')}"


def _bars(report: PairReport) -> Iterator[Bar]:
    total, before = report.result.counts.total, 0
    lost = sum(each.count for each in report.result.differences if each.kind is MirrorFault.LOST)
    lost = min(lost, report.result.counts.compared)
    shares = [(getattr(report.result.counts, name), kind, word) for name, kind, word in _SHARES]
    compared, *others = shares
    for count, kind, word in ((compared[0] - lost, *compared[1:]), (lost, *_MISSING), *others):
        if count:
            start, end = (_WHOLE * value // total for value in (before, before + count))
            yield Bar(start, end, kind, f"{count:,} {word}")
            before += count


def _pair_row(report: PairReport) -> Iterator[Cell]:
    yield str(report.pair)
    yield severity_label(report.worst) if report.worst > Severity.HARMLESS else "-"
    yield from (f"{getattr(report.result.counts, name):,}" for name, *_ in _SHARES)
    yield report.result.next_source


def _anchors(report: PairReport) -> Cell:
    return f"{report.result.equal_anchors:,} of {report.result.anchors:,}"


def differences_section(reports: Sequence[PairReport]) -> Markup | None:
    """Return the findings about pairs, the worst first, with the places on both sides; None if there are none."""
    found = [each for report in reports for each in report.findings]
    found.sort(key=lambda each: -rank_of(each.severity))
    if not found:
        return None
    columns = ("Severity", "Rule", "What was found", "Pair", "In the source", "In the target")
    rows = map(_difference_row, found[:MOST_ROWS])
    more = _left_out(len(found), MOST_ROWS, "findings are not shown; --out writes all of them")
    return joined([table(f"{counted(len(found), 'finding')}, the worst first", columns, rows), more])


def _difference_row(each: PairFinding) -> tuple[Cell, ...]:
    places = (_place(each.source), _place(each.target))
    return severity_label(each.severity), element("code", each.rule), _text(each.reason), str(each.pair), *places


def _place(place: OffsetRange | None) -> Cell:
    if place is None:
        return None
    return offsets_text(place.start, place.end) if place.offset_count else f"before offset {place.start}"


def _text(reason: str) -> Markup:
    return element("bdi", escaped(reason, 2000), class_="words")


def moves_section(moves: Iterable[tuple[MirrorPair, Sequence[GroupMove]]]) -> Markup | None:
    """Return where groups go on in another cluster; None if there are none."""
    rows = [_move_row(pair, each) for pair, of_pair in moves for each in of_pair]
    if not rows:
        return None
    caption = "By group and partition; counts are of records, and a dash is what is not known"
    shown = table(caption, _MOVE_COLUMNS, rows[:MOST_ROWS], (2, 3, 5, 6, 7))
    return joined([shown, _left_out(len(rows), MOST_ROWS, "moves are not shown; --out writes all of them")])


def _move_row(pair: MirrorPair, each: GroupMove) -> tuple[Cell, ...]:
    times = (None if ms is None else time_text(ms) for ms in (each.newest_source_ms, each.newest_target_ms))
    partition = f"{pair.source}-{pair.partition}"
    counts = each.read_again, each.skipped, each.missing
    return (each.group, partition, each.committed, each.position, each.origin.value, *counts, *times)


def times_section(spans: Sequence[FlowSpan], findings: Sequence[MirrorFinding]) -> Markup | None:
    """Return when each flow was alive, and when it stood still; None if there are no heartbeats."""
    if not spans:
        return None
    times = [time for each in spans for time in (each.since_ms, each.until_ms)]
    times = [time for time in times if 0 <= time <= LAST_MS] or [0]  # Others would leave no room for these.
    start, end = min(times), max(times)
    gaps = [each for each in findings if each.rule == _GAP]
    lanes = [Lane(f"{each.flow}: {counted(each.count, 'heartbeat')}", list(_span_bars(each, gaps))) for each in spans]
    scale = Scale(start, max(end, start + 1), _clock if end - start < _DAY_MS else _day)
    figure = element(
        "figure",
        element("figcaption", f"Heartbeats from {time_text(start)} to {time_text(end)}, in UTC."),
        lanes_figure(f"{counted(len(gaps), 'gap')} of heartbeats", lanes[:MOST_LANES], scale),
        legend([("plain", "heartbeats in their interval"), ("gap", "none for more than three intervals")]),
        _left_out(len(lanes), MOST_LANES, "flows are not drawn"),
    )
    if not gaps:
        return joined([figure, element("p", "No flow stood still.")])
    rows = map(_gap_row, gaps[:MOST_ROWS])
    shown = table("Times without heartbeats", ("Flow", "From", "To", "Lasted", "What was found"), rows)
    return joined([figure, shown, _left_out(len(gaps), MOST_ROWS, "gaps are not shown")])


def _span_bars(span: FlowSpan, gaps: Sequence[MirrorFinding]) -> Iterator[Bar]:
    yield Bar(span.since_ms, max(span.until_ms, span.since_ms + 1), "plain", f"{span.flow}: {span.count} heartbeats")
    for since_ms, until_ms in (_times(each) for each in gaps if each.subject == span.flow):
        yield Bar(since_ms, until_ms, "gap", f"none from {time_text(since_ms)} to {time_text(until_ms)}")


def _times(gap: MirrorFinding) -> tuple[int, int]:
    return gap.since_ms or 0, gap.until_ms or 0


def _gap_row(gap: MirrorFinding) -> tuple[Cell, ...]:
    since_ms, until_ms = _times(gap)
    return gap.subject, time_text(since_ms), time_text(until_ms), duration_text(until_ms - since_ms), _text(gap.reason)


def _clock(time_ms: int) -> str:
    return time_text(time_ms)[11:19]


def _day(time_ms: int) -> str:
    return time_text(time_ms)[5:16].replace("T", " ")


def names_section(findings: Sequence[MirrorFinding]) -> Markup | None:
    """Return the findings about names of topics; None if there are none."""
    found = [each for each in findings if each.rule != _GAP]
    if not found:
        return None
    rows = (
        (severity_label(each.severity), element("code", each.rule), each.subject, _text(each.reason))
        for each in found[:MOST_ROWS]
    )
    shown = table(counted(len(found), "finding"), ("Severity", "Rule", "About", "What was found"), rows)
    return joined([shown, _left_out(len(found), MOST_ROWS, "findings are not shown")])


def replicas_section(reports: Sequence[PairReport]) -> Markup | None:
    """Return which replicas were compared, of partitions that have several; None if none has."""
    rows: list[tuple[Cell, ...]] = []
    for report in reports:
        for side, topic, choice in zip(
            ("source", "target"), (report.pair.source, report.pair.target), report.replicas, strict=True
        ):
            if choice.passed:
                passed = "; ".join(f"{each.directory}: {each.reason}" for each in choice.passed)
                name = f"{topic}-{report.pair.partition}"
                rows.append((name, side, _text(choice.directory), _text(choice.reason), _text(passed)))
    if not rows:
        return None
    columns = ("Partition", "Side", "Compared", "Why", "Not compared")
    shown = table("Partitions of which several replicas are here", columns, rows[:MOST_ROWS])
    return joined([shown, _left_out(len(rows), MOST_ROWS, "partitions are not shown")])


def files_section(problems: Sequence[Finding]) -> Markup | None:
    """Return the findings about files, with the command that shows each; None if there are none."""
    if not problems:
        return None
    rows = (
        (
            severity_label(each.severity),
            element("code", each.rule),
            joined([_text(each.path), element("br"), _command(each)]),
            each.offset,
            _text(each.reason),
        )
        for each in sorted(problems, key=lambda each: -rank_of(each.severity))[:MOST_ROWS]
    )
    columns = ("Severity", "Rule", "File, and the command that shows it", "Offset", "What is wrong")
    shown = table(counted(len(problems), "finding"), columns, rows, (3,))
    return joined([shown, _left_out(len(problems), MOST_ROWS, "findings are not shown")])


def _command(each: Finding) -> Markup:
    return element("code", escaped(command_of(each), 2000), class_="words")


def _left_out(count: int, shown: int, what: str) -> Markup | None:
    return element("p", f"{count - shown:,} more {what}.", class_="note") if count > shown else None
