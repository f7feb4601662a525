# SPDX-License-Identifier: Apache-2.0
"""The counts of ``raftlog stats`` as an HTML page with charts: bars, whose numbers are beside them as text."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog import __version__
from raftlog.tools.report.drawing import share_bar
from raftlog.tools.report.markup import Markup, element, joined
from raftlog.tools.report.page import document, section
from raftlog.tools.report.tables import Cell, facts, table
from raftlog.tools.stats.counting import Groups, SizeSummary
from raftlog.tools.stats.log_stats import LogStats
from raftlog.tools.stats.stats_text import TITLES, group_name, place_text, ratio_text
from raftlog.tools.terminal.value_text import counted

_MOST_ROWS: Final = 1000
"""Of a chart, whatever ``--top`` says: a page must open in a browser."""
_LEAST_HOURS: Final = 168
"""A week of hours is shown whatever ``--top`` says: hours are read one after the other."""
_MOST_SOURCES: Final = 50
_OF_BATCHES: Final = ("Stored bytes", "Share", "Batches", "Share of batches", "Records", "Uncompressed", "Ratio")
_OF_RECORDS: Final = ("Bytes", "Share", "Records", "Share of records")


def report_page(stats: LogStats, sources: Sequence[str], most: int) -> str:
    """Return the page. It is valid Unicode, whatever the names of files are.

    Args:
        stats: what was counted.
        sources: what was read, as the user named it.
        most: how many groups a chart shows, the largest ones; a week of hours and at most 1000 rows in any case.
    """
    batches, records, stored, unpacked = stats.totals
    title = f"{stored:,} bytes in {batches:,} batch{'' if batches == 1 else 'es'}"
    words = f"{counted(stats.files, 'segment')}, {counted(records, 'record')}, ratio {ratio_text(stored, unpacked)}"
    kind = "verdict damaged" if stats.damaged_bytes else "verdict"
    header = element("div", element("h1", title), element("p", words.capitalize()), class_=kind)
    parts = [("What was counted", _facts(stats, sources)), ("Sizes of batches", _sizes(stats.batch_sizes.summary()))]
    parts += [(TITLES[name][0], _groups(name, groups, most)) for name, groups in stats.groups.items()]
    parts += [("Compaction", _compaction(stats, most)), ("Snapshots", _snapshots(stats))]
    shown = [(name, content) for name, content in parts if content is not None]
    sections = [(name, section(number, name, content)) for number, (name, content) in enumerate(shown, 1)]
    return document(title, header, sections)


def _facts(stats: LogStats, sources: Sequence[str]) -> Markup:
    _, records, stored, unpacked = stats.totals
    more = f" and {len(sources) - _MOST_SOURCES:,} more" if len(sources) > _MOST_SOURCES else ""
    rows: list[tuple[str, Cell]] = [
        ("Read", ", ".join(sources[:_MOST_SOURCES]) + more),
        ("Records", f"{records:,}"),
        ("Stored", f"{stored:,} bytes"),
        ("Uncompressed", f"{unpacked:,} bytes"),
        ("Made by", f"raftlog {__version__}"),
    ]
    left_out = (
        ("damaged", stats.damaged_bytes),
        ("of messages of magic 0 and 1", stats.legacy_bytes),
        ("of zeros at the ends of files", stats.padding_bytes),
    )
    rows += [("Not counted", f"{size:,} bytes {what}") for what, size in left_out if size]
    return facts(rows)


def _sizes(sizes: SizeSummary) -> Markup | None:
    if not sizes.histogram:
        return None
    greatest = max(sizes.histogram.values())
    rows = [
        (span, f"{count:,}", share_bar(f"{count} batches of {span} bytes", count, greatest))
        for digits, count in sizes.histogram.items()
        for span in (f"{1 << (digits - 1):,} to {(1 << digits) - 1:,}",)
    ]
    about = "" if sizes.is_median_exact else "at most "
    caption = f"{sizes.least:,} to {sizes.greatest:,} bytes, median {about}{sizes.median:,}"
    return table(caption, ("Bytes", "Batches", "Share"), rows, (1,), "bars")


def _groups(name: str, groups: Groups, most: int) -> Markup | None:
    found = groups.rows()
    if not found:
        return None
    count = min(_MOST_ROWS, max(most, _LEAST_HOURS if name == "hour" else 0))
    shown = [(group_name(name, key), sums) for key, sums in found[:count]]
    if name == "hour":
        shown.sort()
    if rest := found[count:]:
        shown.append((f"({len(rest):,} more)", tuple(map(sum, zip(*(sums for _, sums in rest), strict=True)))))
    if not groups.is_exact:
        shown.append(("(not told apart)", tuple(groups.rest)))
    is_of_batches = len(groups.sums) > 2
    rows = _batch_rows(shown) if is_of_batches else _record_rows(shown)
    title, column = TITLES[name]
    number = f"{len(found):,}{'' if groups.is_exact else ' and more'}"
    columns = (column.capitalize(), *(_OF_BATCHES if is_of_batches else _OF_RECORDS))
    return table(f"{title}: {number}", columns, rows, (1, 3, 5, 6, 7) if is_of_batches else (1, 3))


def _batch_rows(shown: Sequence[tuple[str, Sequence[int]]]) -> Iterator[tuple[Cell, ...]]:
    most_batches, most_stored = (max(sums[index] for _, sums in shown) for index in (0, 2))
    for name, (batches, records, stored, unpacked) in shown:
        yield (
            name,
            f"{stored:,}",
            share_bar(f"{stored} bytes: {name}", stored, most_stored),
            f"{batches:,}",
            share_bar(f"{batches} batches: {name}", batches, most_batches),
            f"{records:,}",
            f"{unpacked:,}",
            ratio_text(stored, unpacked),
        )


def _record_rows(shown: Sequence[tuple[str, Sequence[int]]]) -> Iterator[tuple[Cell, ...]]:
    most_records, most_bytes = (max(sums[index] for _, sums in shown) for index in (0, 1))
    for name, (records, size) in shown:
        size_bar = share_bar(f"{size} bytes: {name}", size, most_bytes)
        yield (
            name,
            f"{size:,}",
            size_bar,
            f"{records:,}",
            share_bar(f"{records} records: {name}", records, most_records),
        )


def _compaction(stats: LogStats, most: int) -> Markup | None:
    found = sorted(stats.compaction, key=lambda each: each[1].overwritten_bytes, reverse=True)
    saving = [each for each in found if each[1].overwritten_records]
    if not saving:
        return None
    rows = [
        (
            place_text(place),
            f"{'' if keys.is_exact else 'at least '}{keys.overwritten_bytes:,}",
            share_bar(
                f"{keys.overwritten_bytes} of {keys.record_bytes} bytes: {place_text(place)}",
                keys.overwritten_bytes,
                keys.record_bytes,
            ),
            f"{keys.record_bytes:,}",
            f"{keys.overwritten_records:,}",
            f"{keys.records:,}",
        )
        for place, keys in saving[: min(most, _MOST_ROWS)]
    ]
    columns = ("Partition", "Bytes removed", "Share of its bytes", "Of bytes", "Records removed", "Of records")
    caption = "What compaction would remove of keys and values, if the last segments were rolled"
    rest = len(saving) - len(rows)
    note = element("p", f"{rest:,} more partitions are not shown.", class_="note") if rest else None
    return joined([table(caption, columns, rows, (1, 3, 4, 5)), note])


def _snapshots(stats: LogStats) -> Markup | None:
    if not stats.snapshots:
        return None
    rows = [
        (
            place_text(each.place),
            None if each.newest is None else f"{each.newest.offset}, epoch {each.newest.epoch}",
            f"{each.size_bytes:,}",
            f"{each.covered_bytes:,}",
            share_bar(
                f"{each.covered_bytes} bytes are covered: {place_text(each.place)}",
                each.covered_bytes,
                each.covered_bytes + each.later_bytes,
            ),
            f"{each.later_bytes:,}",
            f"{each.older_bytes:,}",
        )
        for each in stats.snapshots[:_MOST_ROWS]
    ]
    columns = ("Log", "Ends at", "Its bytes", "Covers", "Share", "Not covered", "Older snapshots")
    caption = "What the newest readable snapshot covers of a metadata log: bytes of batches in whole segments"
    return table(caption, columns, rows, (2, 3, 5, 6))
