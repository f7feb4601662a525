# SPDX-License-Identifier: Apache-2.0
"""Offset syncs that are read as columns, beside those that are read one by one."""

from collections.abc import Iterator

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.columns.column_values import Chunk
from raftlog.records.columns.columns import read_columns
from raftlog.records.messages.mirrors.mirror_records import (
    OFFSET_SYNC_VALUE_SIZE,
    MirrorRecordType,
    OffsetSync,
    OffsetSyncKey,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.reading.clusters import StoredChunk
from raftlog.tools.mirrors.reading.sync_columns import SyncColumns

PATH = "a.log"
_OFFSETS = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
_KEYS = st.builds(OffsetSyncKey, st.sampled_from(["", "a", "b", "\u00e9"]), st.sampled_from([0, 1, -1]))
_SOUND = st.builds(OffsetSync, _KEYS, _OFFSETS, _OFFSETS).map(write_mirror_record)
_KEY_BYTES = st.none() | _SOUND.map(lambda each: each[0]) | st.binary(max_size=9)
_VALUE_BYTES = st.none() | st.sampled_from([15, 16, 17]).flatmap(lambda size: st.binary(min_size=size, max_size=size))
Entry = tuple[bytes | None, bytes | None]


@attrs.frozen
class MadeBatch:
    """A batch of a topic of syncs: whose, after how many missing offsets, and its records."""

    producer_id: int
    gap: int
    entries: list[Entry]


_BATCHES = st.lists(
    st.builds(
        MadeBatch,
        st.integers(-1, 3),
        st.sampled_from([0, 0, 0, 1]),
        st.lists(_SOUND | st.tuples(_KEY_BYTES, _VALUE_BYTES), min_size=1, max_size=6),
    ),
    max_size=5,
)


def written(made: list[MadeBatch]) -> tuple[bytes, list[tuple[int, int, Entry]], int]:
    """The batches as they are stored; offset, producer id and fields of each record; and the end."""
    data, rows, offset = b"", [], 0
    for batch in made:
        offset += batch.gap
        builder = RecordBatchBuilder(offset, partition_leader_epoch=0, producer_id=batch.producer_id)
        for entry in batch.entries:
            builder.append(1000 + offset, *entry)
            rows.append((offset, batch.producer_id, entry))
            offset += 1
        data += builder.build()
    return data, rows, offset


def one_by_one(rows: list[tuple[int, int, Entry]]) -> Iterator[tuple[tuple[str, int], Sync] | Finding]:
    """What each record says."""
    for offset, producer_id, entry in rows:
        try:
            record = read_mirror_record(MirrorRecordType.OFFSET_SYNC, *entry)
        except InvalidRecordError as error:
            yield Finding(PATH, "mirror.sync", error.reason, offset=offset)
            continue
        if isinstance(record, OffsetSync):
            offsets = record.upstream_offset, record.downstream_offset
            yield (record.key.topic, record.key.partition), Sync(*offsets, producer_id, offset, 1000 + offset)


@given(_BATCHES, st.integers(1, 3))
def test_columns_are_what_each_record_says(made: list[MadeBatch], at_once: int) -> None:
    """Sound ones by partition and in order, findings about the others, and whether an offset is missing."""
    columns, everything = SyncColumns(), []
    offset = 0
    for first in range(0, len(made), at_once):
        some = [attrs.evolve(made[first], gap=made[first].gap + offset), *made[first + 1 : first + at_once]]
        data, rows, offset = written(some)
        everything += rows
        for chunk in read_columns(data):
            assert isinstance(chunk, Chunk)
            columns.add(StoredChunk(0, chunk, PATH))
    expected = list(one_by_one(everything))
    syncs: dict[tuple[str, int], list[Sync]] = {}
    for each in expected:
        if not isinstance(each, Finding):
            syncs.setdefault(each[0], []).append(each[1])
    assert {place: list(found) for place, found in columns.by_place().items()} == syncs
    assert columns.findings == [each for each in expected if isinstance(each, Finding)]
    assert columns.is_whole is (not any(each.gap for each in made))


def test_no_records_are_no_syncs() -> None:
    """Nor is an offset missing then."""
    columns = SyncColumns()
    assert columns.by_place() == {}
    assert columns.is_whole


@given(_SOUND)
def test_a_value_has_one_size(sound: Entry) -> None:
    """That by which columns know it."""
    assert len(sound[1] or b"") == OFFSET_SYNC_VALUE_SIZE
