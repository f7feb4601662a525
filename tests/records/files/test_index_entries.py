# SPDX-License-Identifier: Apache-2.0
"""Indexes: entries, padding, partial entries and order, and every index that Kafka wrote."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.files.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    IndexFormat,
    IndexPadding,
    OffsetIndexEntry,
    PartialEntry,
    TimeIndexEntry,
)
from tests.golden_files import GOLDEN, KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
FORMATS: dict[str, IndexFormat[Any]] = {
    ".index": OFFSET_INDEX,
    ".timeindex": TIME_INDEX,
    ".txnindex": TRANSACTION_INDEX,
}

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
offset_entries = st.builds(OffsetIndexEntry, int32, int32)
time_entries = st.builds(TimeIndexEntry, int64, int32)
aborted = st.builds(AbortedTransaction, st.integers(-(2**15), 2**15 - 1), int64, int64, int64, int64)
formats_with_entries = st.one_of(
    st.tuples(st.just(OFFSET_INDEX), st.lists(offset_entries)),
    st.tuples(st.just(TIME_INDEX), st.lists(time_entries)),
    st.tuples(st.just(TRANSACTION_INDEX), st.lists(aborted)),
)
any_format = st.sampled_from([OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])


def is_zero(entry: tuple[int, ...]) -> bool:
    """Say whether an entry has nothing but zero bytes."""
    return not any(entry)


@given(formats_with_entries, st.integers(0, 3), st.binary(max_size=33))
@settings(deadline=None)
def test_scan_yields_what_was_written(given_entries: Any, padding: int, rest: bytes) -> None:
    """Entries, then the padding, then the partial entry come back, each at its place."""
    layout, entries = given_entries
    while entries and is_zero(entries[-1]):
        entries.pop()
    size = layout.entry_size
    rest = rest[: size - 1]
    data = layout.encode(entries) + bytes(padding * size) + rest
    expected = [*entries]
    if padding:
        expected.append(IndexPadding(len(entries) * size, padding * size))
    if rest:
        expected.append(PartialEntry((len(entries) + padding) * size, len(rest)))
    assert list(layout.scan(memoryview(data))) == expected
    zeros = layout.entries(bytes(padding * size))
    assert list(layout.entries(data)) == [*entries, *zeros]


@given(any_format, st.binary(max_size=300) | st.binary(max_size=20).map(lambda head: head + bytes(300)))
@settings(deadline=None)
def test_scan_explains_every_byte_and_read_agrees_or_refuses(layout: IndexFormat[Any], data: bytes) -> None:
    """Of any bytes, scan accounts for all; read returns the same entries or raises a rule with a position."""
    items = list(layout.scan(data))
    entries = [item for item in items if not isinstance(item, IndexPadding | PartialEntry)]
    explained = len(entries) * layout.entry_size
    for item in items[len(entries) :]:
        assert item.position == explained
        explained += item.size_bytes
    assert explained == len(data)
    assert layout.encode(entries) == data[: len(entries) * layout.entry_size]
    errors = [*layout.check_order(entries)]
    if len(data) % layout.entry_size or errors:
        with pytest.raises(DecodeError) as caught:
            layout.read(data)
        assert caught.value.rule in ("index-size", "index-order", "file-format")
        assert caught.value.position is not None
        assert 0 <= caught.value.position < len(data)
    else:
        assert layout.read(data) == entries


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000))))
@settings(deadline=None)
def test_order_errors_are_exact(pairs: list[tuple[int, int]]) -> None:
    """Each entry that is not after the one before it, and no other, is named by its position."""
    entries = [OffsetIndexEntry(*pair) for pair in pairs]
    wrong = [
        index
        for index in range(1, len(entries))
        if entries[index].relative_offset <= entries[index - 1].relative_offset
        or entries[index].position <= entries[index - 1].position
    ]
    assert [error.position for error in OFFSET_INDEX.check_order(entries)] == [index * 8 for index in wrong]


def test_kafkas_example() -> None:
    """The worked example of six batches has one offset entry and two time entries."""
    assert OFFSET_INDEX.read(bytes.fromhex("0000000f 000013e3")) == [OffsetIndexEntry(15, 5091)]
    times = TIME_INDEX.read(bytes.fromhex("0000018bcfe56803 0000000f 0000018bcfe56805 00000017"))
    assert times == [TimeIndexEntry(1700000000003, 15), TimeIndexEntry(1700000000005, 23)]


@pytest.mark.parametrize(
    ("layout", "entries", "problem"),
    [
        (OFFSET_INDEX, [OffsetIndexEntry(-1, 5)], "relative offset -1"),
        (OFFSET_INDEX, [OffsetIndexEntry(1, -5)], "position -5 is negative"),
        (OFFSET_INDEX, [OffsetIndexEntry(2, 5), OffsetIndexEntry(2, 6)], "relative offset 2 follows 2"),
        (OFFSET_INDEX, [OffsetIndexEntry(2, 5), OffsetIndexEntry(3, 5)], "position 5 follows 5"),
        (TIME_INDEX, [TimeIndexEntry(7, -1)], "relative offset -1 is negative"),
        (TIME_INDEX, [TimeIndexEntry(7, 3), TimeIndexEntry(8, 2)], "relative offset 2 follows 3"),
        (TIME_INDEX, [TimeIndexEntry(7, 3), TimeIndexEntry(7, 4)], "timestamp 7 follows 7"),
        (TRANSACTION_INDEX, [AbortedTransaction(0, 1, 2, 9, 9), AbortedTransaction(0, 2, 3, 9, 9)], "9 follows 9"),
    ],
)
def test_what_is_out_of_order_is_refused(layout: IndexFormat[Any], entries: list[Any], problem: str) -> None:
    """Reading names the entry that breaks the order."""
    with pytest.raises(DecodeError, match=problem) as caught:
        layout.read(layout.encode(entries))
    assert (caught.value.rule, caught.value.position) == ("index-order", (len(entries) - 1) * layout.entry_size)


def test_a_partial_entry_is_refused_when_read() -> None:
    """An index whose length is not a multiple of an entry breaks rule index-size, even if the rest is zeros."""
    with pytest.raises(DecodeError) as caught:
        OFFSET_INDEX.read(bytes.fromhex("0000000f 000013e3 000000"))
    assert (caught.value.rule, caught.value.position) == ("index-size", 8)


def test_an_unknown_transaction_version_is_refused_when_read() -> None:
    """A transaction index of another version is listed by scan, and refused by read."""
    data = TRANSACTION_INDEX.encode([AbortedTransaction(1, 1, 2, 3, 4)])
    assert next(TRANSACTION_INDEX.scan(data)) == AbortedTransaction(1, 1, 2, 3, 4)
    with pytest.raises(UnsupportedVersionError, match="version 1"):
        TRANSACTION_INDEX.read(data)


def test_a_number_that_does_not_fit_is_refused() -> None:
    """Encoding says ValueError, not struct.error."""
    with pytest.raises(ValueError):
        OFFSET_INDEX.encode([OffsetIndexEntry(2**31, 0)])


def indexes() -> Iterator[tuple[Path, IndexFormat[Any]]]:
    """Find every index that Kafka wrote, deleted ones included."""
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("*")):
        suffix = Path(path.name.removesuffix(".deleted")).suffix
        if suffix in FORMATS:
            yield path, FORMATS[suffix]


def test_every_index_of_kafka_reads_in_order_and_back() -> None:
    """All 192 golden indexes are in order, have neither padding nor rest, and encode to the same bytes."""
    compared = 0
    for path, layout in indexes():
        data = path.read_bytes()
        entries = layout.read(data)
        assert list(layout.scan(data)) == entries
        assert layout.encode(entries) == data
        compared += 1
    assert compared == 192


def test_every_preallocated_index_is_entries_and_padding() -> None:
    """The golden indexes of killed nodes, at the length they were left at, are entries, then padding, and no more."""
    compared = 0
    for name, facts in json.loads((GOLDEN / "killed" / "manifest.json").read_text())["files"].items():
        if "preallocated_to" in facts:
            stored = (GOLDEN / "killed" / name).read_bytes()
            layout = FORMATS[Path(name).suffix]
            *entries, padding = layout.scan(stored + bytes(facts["preallocated_to"] - len(stored)))
            assert entries == layout.read(stored)
            assert padding == IndexPadding(len(stored), facts["preallocated_to"] - len(stored))
            compared += 1
    assert compared == 6


def test_entries_are_what_kafkas_own_dump_says() -> None:
    """Every line of kafka-dump-log about an index is the entry that is read here."""
    compared = 0
    for folder in KAFKA_FOLDERS:
        for expected in sorted((folder / "expected").glob("*index.shallow.txt")):
            path_line, *lines = expected.read_text().splitlines()
            path = folder / path_line.removeprefix("Dumping ")
            base, layout = int(path.stem), FORMATS[path.suffix]
            for line, entry in zip(lines, layout.read(path.read_bytes()), strict=bool(path.stat().st_size)):
                numbers = [int(number) for number in re.findall(r": (-?\d+)", line)]
                relative = {OffsetIndexEntry: (base, 0), TimeIndexEntry: (0, base)}.get(type(entry), (0,) * 5)
                assert numbers == [mine + more for mine, more in zip(entry, relative, strict=True)]
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("index", [OFFSET_INDEX, TIME_INDEX], ids=["offset", "time"])
def test_padding_starts_after_the_last_nonzero_byte(index: IndexFormat[Any], first: int) -> None:
    """An entry with any nonzero byte is an entry, and only bytes after it are padding."""
    entry = bytes(first) + b"\1" + bytes(index.entry_size - first - 1)
    padding = bytes(3 * index.entry_size)
    *entries, last = index.scan(entry + padding)
    assert [index.encode([each]) for each in entries] == [entry]
    assert isinstance(last, IndexPadding)
