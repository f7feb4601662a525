# SPDX-License-Identifier: Apache-2.0
"""The same counts as ``raftlog stats``, by plain loops over records that the reference reader reads."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import attrs

from raftlog.records import reference
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.messages.control import ControlRecordType
from raftlog.records.messages.metadata import read_metadata_record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@attrs.define
class Naive:
    """What was counted, by name of the grouping and of the group."""

    totals: list[int] = attrs.field(factory=lambda: [0, 0, 0, 0])
    groups: dict[str, dict[Any, list[int]]] = attrs.field(factory=lambda: defaultdict(dict))
    sizes: list[int] = attrs.field(factory=list)
    last: dict[bytes, int] = attrs.field(factory=dict)
    records: int = 0
    record_bytes: int = 0
    overwritten: list[int] = attrs.field(factory=lambda: [0, 0])

    def add(self, grouping: str, key: Any, *values: int) -> None:
        """Add to a group."""
        sums = self.groups[grouping].setdefault(key, [0] * len(values))
        for index, value in enumerate(values):
            sums[index] += value


def naive_stats(topic: str, batches: Iterable[bytes], prefix_bytes: int) -> Naive:
    """Count sound batches one by one, and their records one by one."""
    found = Naive()
    for data in batches:
        batch = RecordBatch(data)
        area = bytes(batch.record_area_and_rest()[0])
        plain = data[:21] + (batch.attributes & ~7).to_bytes(2, "big") + data[23:61] + area
        plain = plain[:8] + (len(plain) - 12).to_bytes(4, "big") + plain[12:]
        records = reference.read_records(plain)
        values = 1, len(records), len(data), 61 + len(area)
        found.totals = [left + right for left, right in zip(found.totals, values, strict=True)]
        found.sizes.append(len(data))
        found.add("producer", batch.producer_id if batch.producer_id >= 0 else None, *values)
        found.add("codec", CODECS[batch.attributes & 7], *values)
        hour = batch.max_timestamp - batch.max_timestamp % 3_600_000
        found.add("hour", hour if batch.max_timestamp >= 0 else None, *values)
        for record in records:
            size = len(record.key or b"") + len(record.value or b"")
            found.add("type", naive_type(topic, batch, record), 1, size)
            if not batch.is_control:
                found.add("key", None if record.key is None else record.key[:prefix_bytes], 1, size)
                _overwrite(found, record.key, size)
    return found


def _overwrite(found: Naive, key: bytes | None, size: int) -> None:
    found.records += 1
    found.record_bytes += size
    if key is None:
        return
    if key in found.last:
        found.overwritten[0] += 1
        found.overwritten[1] += found.last[key]
    found.last[key] = size


def naive_type(topic: str, batch: RecordBatch, record: reference.ReferenceRecord) -> str:
    """The name of a record's type."""
    if batch.is_control:
        number = int.from_bytes((record.key or b"")[2:4], "big") if len(record.key or b"") >= 4 else -1
        known = {each.value: each.name for each in ControlRecordType}
        return "unreadable" if number < 0 else f"control {known.get(number, number)}"
    if topic == METADATA_TOPIC:
        return read_metadata_record(record.value).type_name
    return "data"


def histogram(sizes: Iterable[int]) -> dict[int, int]:
    """How many sizes have each number of binary digits."""
    return dict(sorted(Counter(size.bit_length() for size in sizes).items()))
