# SPDX-License-Identifier: Apache-2.0
"""The counts of ``raftlog stats`` as tables for people."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from raftlog.tools.auditing.evidence import Place
from raftlog.tools.spark.rows.arrays import codec_label
from raftlog.tools.stats.counting import Groups, SizeSummary
from raftlog.tools.stats.covering import SnapshotStats
from raftlog.tools.stats.keys import OverwrittenKeys
from raftlog.tools.stats.log_stats import HOUR_MS, LogStats
from raftlog.tools.terminal.json_lines import text_or_base64
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.value_text import counted, time_text

TITLES: Final = {
    "partition": ("Partitions", "PARTITION"),
    "type": ("Types of records", "TYPE"),
    "key": ("Prefixes of keys", "PREFIX"),
    "producer": ("Producers", "PRODUCER ID"),
    "codec": ("Codecs", "CODEC"),
    "hour": ("Hours by the greatest timestamp of batches, UTC", "HOUR"),
}
"""The title of each grouping, and the name of its column."""
_BAR_WIDTH: Final = 40


def text_lines(stats: LogStats, most: int) -> Iterator[str]:
    """Yield all that was counted, in tables of at most ``most`` rows each."""
    batches, records, stored, unpacked = stats.totals
    yield from fit_lines(
        [
            f"{counted(stats.files, 'segment')}: {batches} batches of {counted(records, 'record')}, {stored} bytes"
            f" stored, {unpacked} uncompressed, ratio {ratio_text(stored, unpacked)}",
            *_other_bytes(stats),
        ]
    )
    yield from _size_lines(stats.batch_sizes.summary())
    for name, groups in stats.groups.items():
        if len(groups):
            yield from ["", *_group_lines(name, groups, most)]
    yield from _compaction_lines(stats.compaction, most)
    yield from _snapshot_lines(stats.snapshots)


def ratio_text(stored: int, unpacked: int) -> str:
    """Return how many times as large the uncompressed bytes are; a dash if there are none."""
    return f"{unpacked / stored:.2f}" if stored else "-"


def group_name(grouping: str, key: Any) -> str:
    """Return the name of a group for people."""
    match grouping:
        case "partition":
            return place_text(key)
        case "codec":
            return codec_label(key)
        case "producer":
            return "(none)" if key < 0 else str(key)
        case "hour":
            return "(no time)" if key < 0 else time_text(key * HOUR_MS).partition(":")[0]
        case "key":
            return "(no key)" if key is None else next(iter(_shown(key)))
        case _:
            return str(key)


def place_text(place: Place) -> str:
    """Return a partition with its directory, or what else the records were read from."""
    if not place.topic:
        return place.log_directory
    name = f"{place.topic}-{place.partition}" if place.partition >= 0 else place.topic
    return f"{name} in {place.log_directory}"


def _shown(key: bytes) -> Iterator[str]:
    ((name, text),) = text_or_base64("", key).items()
    yield f"base64 {text}" if name else repr(text)


def _other_bytes(stats: LogStats) -> Iterator[str]:
    if stats.damaged_bytes:
        batches = f", {stats.damaged_batches} batches of them with a valid CRC" if stats.damaged_batches else ""
        yield f"not counted: {stats.damaged_bytes} damaged bytes{batches}"
    if stats.legacy_bytes:
        yield f"not counted: {stats.legacy_bytes} bytes of messages of magic 0 and 1"
    if stats.padding_bytes:
        yield f"not counted: {stats.padding_bytes} zeros at the ends of files"


def _size_lines(sizes: SizeSummary) -> Iterator[str]:
    if not sizes.histogram:
        return
    about = "" if sizes.is_median_exact else "at most "
    yield f"Batches: {sizes.least} to {sizes.greatest} bytes, median {about}{sizes.median}"
    greatest = max(sizes.histogram.values())
    rows: list[Sequence[object]] = [("BYTES", "BATCHES", "")]
    for digits, count in sizes.histogram.items():
        span = f"{1 << (digits - 1)} to {(1 << digits) - 1}"
        rows.append((span, count, "#" * max(1, count * _BAR_WIDTH // greatest)))
    yield from ["", *table(rows, frozenset({0, 1}))]


def _group_lines(name: str, groups: Groups, most: int) -> Iterator[str]:
    title, column = TITLES[name]
    found = groups.rows()
    rest = len(found) - most
    yield f"{title}: {len(found)}{'' if groups.is_exact else ' and more'}"
    is_of_batches = len(groups.sums) > 2
    head = ("BATCHES", "RECORDS", "STORED", "UNCOMPRESSED", "RATIO") if is_of_batches else ("RECORDS", "BYTES")
    shown = [(group_name(name, key), sums) for key, sums in found[:most]]
    if name == "hour":
        shown.sort()
    if rest > 0:
        shown.append((f"({rest} more)", tuple(map(sum, zip(*(sums for _, sums in found[most:]), strict=True)))))
    if not groups.is_exact:
        shown.append(("(not told apart)", tuple(groups.rest)))
    rows = [(*sums, ratio_text(*sums[2:]), text) if is_of_batches else (*sums, text) for text, sums in shown]
    yield from table([(*head, column), *rows], frozenset(range(len(head))))


def _compaction_lines(found: Sequence[tuple[Place, OverwrittenKeys]], most: int) -> Iterator[str]:
    saving = sorted(found, key=lambda each: each[1].overwritten_bytes, reverse=True)
    saving = [each for each in saving if each[1].overwritten_records]
    if not saving:
        return
    yield from ["", "Compaction would remove, of keys and values, if the last segments were rolled:"]
    rows: list[Sequence[object]] = [("RECORDS", "OF", "BYTES", "OF", "KEYS", "PARTITION")]
    for place, keys in saving[:most]:
        least = "" if keys.is_exact else "at least "
        numbers = (
            f"{least}{keys.overwritten_records}",
            keys.records,
            f"{least}{keys.overwritten_bytes}",
            keys.record_bytes,
        )
        rows.append((*numbers, keys.key_count, place_text(place)))
    yield from table(rows, frozenset(range(5)))
    if len(saving) > most:
        yield f"and {len(saving) - most} more partitions"


def _snapshot_lines(found: Sequence[SnapshotStats]) -> Iterator[str]:
    for each in found:
        yield ""
        if each.newest is None:
            lines = [f"{place_text(each.place)}: no snapshot that covers anything; {each.later_bytes} bytes of batches"]
        else:
            id_ = f"ends at {each.newest.offset}, epoch {each.newest.epoch}"
            name = f"the newest readable snapshot {id_}: {each.size_bytes} bytes"
            lines = [
                f"{place_text(each.place)}: {name}",
                f"  it covers {each.covered_bytes} bytes of batches in whole segments, and {each.older_bytes} bytes of"
                f" older snapshots; {each.later_bytes} bytes of batches are in the last segment or not covered",
            ]
        if each.unreadable:
            lines.append(f"  {each.unreadable} newer snapshots cannot be read to their end, and cover nothing")
        yield from fit_lines(lines)
