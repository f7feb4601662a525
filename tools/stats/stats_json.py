# SPDX-License-Identifier: Apache-2.0
"""The counts of ``raftlog stats`` as JSON lines (``docs/stats-1.schema.json``)."""

from collections.abc import Iterator
from typing import Any

from raftlog.tools.auditing.evidence import Place
from raftlog.tools.spark.rows.arrays import codec_label
from raftlog.tools.stats.counting import Groups
from raftlog.tools.stats.log_stats import HOUR_MS, LogStats
from raftlog.tools.terminal.json_lines import json_line, path_member, text_or_base64


def json_lines(stats: LogStats) -> Iterator[str]:
    """Yield all that was counted, one object per line."""
    sizes = stats.batch_sizes.summary()
    yield json_line(
        "stats",
        None,
        segments=stats.files,
        **dict(zip(("batches", "records", "stored_bytes", "uncompressed_bytes"), stats.totals, strict=True)),
        damaged_batches=stats.damaged_batches,
        damaged_bytes=stats.damaged_bytes,
        padding_bytes=stats.padding_bytes,
        legacy_bytes=stats.legacy_bytes,
    )
    yield json_line(
        "batch_sizes",
        None,
        least=sizes.least,
        median=sizes.median,
        is_median_exact=sizes.is_median_exact,
        greatest=sizes.greatest,
        histogram=[
            {"from_bytes": 1 << (digits - 1), "to_bytes": 1 << digits, "batches": count}
            for digits, count in sizes.histogram.items()
        ],
    )
    for name, groups in stats.groups.items():
        yield from _group_lines(name, groups)
    for place, keys in stats.compaction:
        yield json_line(
            "compaction",
            None,
            **_place_members(place),
            records=keys.records,
            bytes=keys.record_bytes,
            overwritten_records=keys.overwritten_records,
            overwritten_bytes=keys.overwritten_bytes,
            keys=keys.key_count,
            records_without_key=keys.without_key,
            is_exact=keys.is_exact,
        )
    for each in stats.snapshots:
        yield json_line(
            "snapshot",
            None,
            **_place_members(each.place),
            end_offset=None if each.newest is None else each.newest.offset,
            epoch=None if each.newest is None else each.newest.epoch,
            size_bytes=each.size_bytes,
            older_bytes=each.older_bytes,
            unreadable=each.unreadable,
            covered_bytes=each.covered_bytes,
            later_bytes=each.later_bytes,
        )


def _group_lines(name: str, groups: Groups) -> Iterator[str]:
    for key, sums in groups.rows():
        members = dict(zip(groups.sums, sums, strict=True))
        yield json_line("group", None, by=name, is_rest=False, **_key_members(name, key), **members)
    if not groups.is_exact:
        members = dict(zip(groups.sums, groups.rest, strict=True))
        yield json_line("group", None, by=name, is_rest=True, **members)


def _key_members(name: str, key: Any) -> dict[str, Any]:
    match name:
        case "partition":
            return _place_members(key)
        case "key":
            return text_or_base64("prefix", key)
        case "producer":
            return {"producer_id": None if key < 0 else key}
        case "codec":
            return {"codec": codec_label(key)}
        case "hour":
            return {"start_ms": None if key < 0 else key * HOUR_MS}
        case _:
            return {"type": key}


def _place_members(place: Place) -> dict[str, Any]:
    topic = text_or_base64("topic", place.topic.encode("utf-8", "surrogateescape"))
    return {**path_member("directory", place.log_directory), **topic, "partition": place.partition}
