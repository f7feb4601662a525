# SPDX-License-Identifier: Apache-2.0
"""Each form of the kernel does what the reference and Python's own means do; test_columns_properties has the walks."""

import itertools
from typing import Any
from unittest import mock

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records import reference
from raftlog.records.batches.batch import RecordBatch, add_sequence
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.record import Header, RawRecord, encode_record
from raftlog.records.columns.columns import RECORD_COLUMNS, Chunk, read_columns
from raftlog.records.messages.java_text import decode_utf8
from tests.records.extreme_batches import extreme_batches
from tests.records.kernel_forms import BUILT_FORMS, INTERPRETED, examples, ints, longs, using
from tests.strategies import (
    batch_bytes,
    headers,
    legacy_batches,
    logs,
    mutated,
    nullable_bytes,
    planned_batches,
    ready_made_batches,
)

_GUARD = 64
_int64s = st.sampled_from([0, -1, 2**63 - 1, -(2**63), 10**18, -(10**18)]) | st.integers(-(2**63), 2**63 - 1)


def _guarded(size: int) -> tuple[bytearray, memoryview]:
    """Make space for output, with guard bytes around it."""
    room = bytearray(b"\xa5" * (size + 2 * _GUARD))
    return room, memoryview(room)[_GUARD : _GUARD + size]


def _is_untouched(room: bytearray, written: int) -> bool:
    tail = room[_GUARD + written :] if written >= 0 else room[-_GUARD:]
    return room[:_GUARD] == b"\xa5" * _GUARD and tail == b"\xa5" * len(tail)


@examples(30)
@given(st.binary(max_size=1500), st.integers(0, 20))
def test_the_checksum_is_that_of_the_package(data: bytes, start: int) -> None:
    """Instruction and tables give the CRC-32C that the package gives, wherever the bytes start."""
    view = memoryview(data)[start:]
    for form in BUILT_FORMS:
        assert form.checksum(view) == crc32c.crc32c(view)
        with mock.patch.object(form, "HAS_CRC_INSTRUCTION", False):
            assert form.checksum(view) == crc32c.crc32c(view)


def _scanned(data: bytes, start: int, capacity: int, small: int) -> tuple[list[int], list[int], int, str]:
    """The expected result of ``scan`` by the reference."""
    positions: list[int] = []
    sizes: list[int] = []
    at = start
    rule: str | None = ""
    while at < len(data) and len(positions) < capacity:
        rule = reference.rule_broken_by_header(data[at:])
        head = data[at : at + 17].ljust(17, b"\0")
        length = int.from_bytes(head[8:12], "big", signed=True)
        if rule == "batch-crc" and length + 12 >= small:
            rule = None
        if head[16] < 2 and (rule is None or (rule == "batch-length" and length >= 14)):
            rule = "batch-magic"  # The kernel leaves older messages to others.
        if rule is not None:
            break
        positions.append(at)
        sizes.append(length + 12)
        at += length + 12
    return positions, sizes, at, rule or ""


@examples(30)
@given(st.data(), st.integers(0, 8), st.sampled_from([0, 200, 2**31]))
def test_a_scan_finds_what_the_reference_finds(data: st.DataObject, capacity: int, small: int) -> None:
    """The batches, where they end, and the rule that the next thing breaks, are those of the reference."""
    log = b"".join(data.draw(logs(max_size=4)))
    start = data.draw(st.sampled_from([0, 0, 0, 1, len(log)]))
    if data.draw(st.booleans()):
        log = data.draw(mutated(log))
    log += data.draw(st.sampled_from([b"", b"\0", b"\0" * 100]) | legacy_batches())
    expected = _scanned(log, start, capacity, small)
    for form in BUILT_FORMS:
        positions, sizes, unchecked = longs(capacity), ints(capacity + 1), ints(capacity + 2)
        with mock.patch.object(form, "SMALL_BATCH", small):
            count, unchecked_count, end, rule = form.scan(log, start, positions, sizes, unchecked)
        assert unchecked[:unchecked_count].tolist() == [index for index in range(count) if sizes[index] >= small]
        assert (positions[:count].tolist(), sizes[:count].tolist(), end, form.RULE_IDS[rule]) == expected
        assert not any(positions[count:])
        assert not any(sizes[count:])


def test_a_scan_at_the_borders_of_lengths() -> None:
    """For each magic, lengths and inputs around the least that there can be are judged as the reference does."""
    lengths = (-(2**31), -13, -12, -1, 0, 4, 5, 13, 14, 21, 22, 47, 48, 49, 50, 2**31 - 1)
    for magic, length, size in itertools.product((0, 1, 2, 3, 255), lengths, (0, 16, 17, 18, 25, 26, 60, 61, 62, 100)):
        head = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(4) + bytes((magic,))
        data = head.ljust(size, b"\0")[:size]
        expected = _scanned(data, 0, 3, 0)
        for form in BUILT_FORMS:
            positions, sizes = longs(3), ints(3)
            with mock.patch.object(form, "SMALL_BATCH", 0):
                count, _, end, rule = form.scan(data, 0, positions, sizes, ints(3))
            assert (positions[:count].tolist(), sizes[:count].tolist(), end, form.RULE_IDS[rule]) == expected


_rows = st.lists(
    st.tuples(_int64s, nullable_bytes, nullable_bytes) | st.tuples(_int64s, nullable_bytes, nullable_bytes, headers),
    max_size=5,
)


def _encoded(form: Any, rows: list[Any], base_timestamp: int, offset_delta: int) -> tuple[bytes, int, int] | None:
    """The output of a form, and the smallest and largest timestamp, or None if it refuses."""
    try:
        prepared, size, smallest, largest, count = form.prepare(rows, base_timestamp, offset_delta)
    except OverflowError:
        return None
    encoded = form.encode(b"", [prepared], size, crc32c.crc32c)
    assert (len(encoded), count) == (size, len(rows))
    return encoded, smallest, largest


@examples(40)
@given(_rows, _int64s, st.integers(-(2**31), 2**31 - 1))
def test_rows_are_encoded_so_that_they_read(rows: list[Any], base_timestamp: int, offset_delta: int) -> None:
    """The reference reads back what was encoded, in the fewest bytes; what does not fit is refused whole."""
    fits = all(-(2**63) <= row[0] - base_timestamp < 2**63 for row in rows) and offset_delta + len(rows) <= 2**31
    for form in BUILT_FORMS:
        encoded = _encoded(form, rows, base_timestamp, offset_delta)
        assert (encoded is not None) == fits
        if encoded is None:
            continue
        area, smallest, largest = encoded
        records = reference.read_records(batch_bytes(area, base_timestamp=base_timestamp, count=len(rows)))
        assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == [
            (row[0], row[1], row[2], list(row[3]) if len(row) == 4 else []) for row in rows
        ]
        assert [record.offset for record in records] == list(range(offset_delta, offset_delta + len(rows)))
        if rows:
            assert (smallest, largest) == (min(row[0] for row in rows), max(row[0] for row in rows))
    assert len({_encoded(form, rows, base_timestamp, offset_delta) for form in BUILT_FORMS}) == 1


@examples(40)
@given(st.lists(st.integers(0, 9000), min_size=1, max_size=6), st.sampled_from([0, 60, 8100, 2**31 - 4000]))
def test_large_rows_are_encoded(sizes: list[int], offset_delta: int) -> None:
    """However the output grows, rows of any size and number come out one after the other."""
    rows = [(5 - index, b"k" * size, b"v" * (size // 2)) for index, size in enumerate(sizes * 50)]
    expected = b"".join(
        encode_record(RawRecord(0, row[0], offset_delta + index, row[1], row[2], ())) for index, row in enumerate(rows)
    )
    for form in BUILT_FORMS:
        encoded = _encoded(form, rows, 0, offset_delta)
        assert encoded is not None
        assert encoded[0] == expected


@examples(30)
@given(planned_batches() | extreme_batches())
def test_objects_have_what_records_have(plan: Any) -> None:
    """A lazy record's attributes, and its repr, are those of the record that the plain reader returns."""
    data = plan if isinstance(plan, bytes) else plan.build()
    for form in BUILT_FORMS:
        with using(form):
            for chunk in read_columns(data, data_only=False):
                assert isinstance(chunk, Chunk)
                if chunk.errors:
                    continue
                objects = chunk.objects(0)
                records = list(RecordBatch(data).records())
                assert len(objects) == len(records)
                for each, record in zip(objects, records, strict=True):
                    assert (each.offset, each.timestamp, each.key, each.value, each.headers) == record[:5]
                    assert (each.is_control, each.is_transactional) == (record.is_control, record.is_transactional)
                    assert repr(each) == (
                        f"LazyRecord(offset={record.offset}, timestamp={record.timestamp}, key={record.key!r}, "
                        f"value={record.value!r}, headers={tuple(map(tuple, record.headers))!r})"
                    )


@st.composite
def _runs(draw: st.DrawFn) -> BatchRun:
    """Batches with any headers; their CRCs do not hold, but are not checked here."""
    batches = [
        data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
        for data in draw(st.lists(ready_made_batches | st.binary(min_size=61, max_size=80), min_size=1, max_size=4))
    ]
    positions, sizes = longs(len(batches)), ints(len(batches))
    at = 0
    for index, batch in enumerate(batches):
        positions[index], sizes[index] = at, len(batch)
        at += len(batch)
    return BatchRun(memoryview(b"".join(batches)), draw(st.sampled_from([0, 10**12])), positions, sizes)


_WORDS = [f"{'word' * (attributes % 7)}{attributes}" for attributes in range(64)]


def _batch_template(attributes: int) -> str:
    return " ".join(f"{_WORDS[attributes]}:{{}}" for _ in range(12)) + "\n"


def _marked(template: str) -> bytes:
    return (template + "{}").encode().replace(b"{}", b"\0")


_BATCH_TEMPLATES = b"".join(
    (b"" if attributes & 7 > 4 else _marked(_batch_template(attributes))).ljust(512, b"\0") for attributes in range(64)
)


def _batch_line(batch: RecordBatch) -> bytes | None:
    """The line of a batch, or None if it has no template, or needs another line."""
    if batch.attributes & 64 or batch.attributes & 7 > 4 or batch.record_count < 0:
        return None
    numbers = (
        batch.base_offset,
        batch.last_offset,
        batch.record_count,
        batch.base_sequence,
        batch.last_sequence,
        batch.producer_id,
        batch.producer_epoch,
        batch.partition_leader_epoch,
        batch.position,
        batch.max_timestamp,
        batch.size_bytes,
        batch.crc,
    )
    return _batch_template(batch.attributes & 63).format(*numbers).encode()


@examples(30)
@given(_runs(), st.integers(0, 3), st.sampled_from([0, 751, 752, 1200, 5000]))
def test_lines_of_batches_agree_with_headers(run: BatchRun, first: int, size: int) -> None:
    """Lines hold the numbers of the headers, as many lines as there is room for, and nothing else is written."""
    expected = b""
    index = first = min(first, len(run))
    while index < len(run) and size - len(expected) >= 512 + 12 * 20:
        line = _batch_line(run.batch(index))
        if line is None:
            break
        expected += line
        index += 1
    for form in BUILT_FORMS:
        room, out = _guarded(size)
        found = form.batch_lines(run.data, run.positions, run.sizes, first, run.position, _BATCH_TEMPLATES, out)
        assert found == (index, len(expected))
        assert bytes(out[: len(expected)]) == expected
        assert _is_untouched(room, len(expected))


_RECORD_TEMPLATE = "| offset: {} at: {} key: {} value: {} sequence: {} headers: [{}]\n"
_MARKED_RECORD_TEMPLATE = _marked(_RECORD_TEMPLATE[:-1] + "{} k: {} v: ")
_SECRET_KINDS = bytes(kind == ord("s") for kind in range(256))


def _record_line(batch: RecordBatch, record: Any, with_payloads: bool) -> bytes:
    """The line of a record."""
    payload = ""
    for field, name in ((record.key, " k: "), (record.value, " v: ")):
        if with_payloads and field is not None:
            payload += name + decode_utf8(field)
    line = _RECORD_TEMPLATE.format(
        record.offset,
        record.timestamp,
        -1 if record.key is None else len(record.key),
        -1 if record.value is None else len(record.value),
        add_sequence(batch.base_sequence, record.offset - batch.base_offset),
        ",".join(decode_utf8(key) for key, _ in record.headers),
    )
    return f"{line[:-1]}{payload}\n".encode()


_BOTH_RECORD_TEMPLATES = b"".join(
    (_MARKED_RECORD_TEMPLATE.replace(b" at", at)).ljust(512, b"\0") for at in (b" at", b" appended")
)


def _chunk_line(batch: RecordBatch, record: Any, with_payloads: bool, text: bytes | None) -> bytes | None:
    """The line of a record in a chunk, or None if the kernel leaves it to others."""
    line = _record_line(batch, record, with_payloads if text is None else False)
    if text == b"":
        return None
    if text is not None:
        line = line[:-1] + b" v: " + text + b"\n"
    elif with_payloads and record.key is None and (record.value or b"")[:2] == b"\1s" and len(record.value) > 2:
        return None
    return line.replace(b" at", b" appended", 1) if batch.attributes & 8 else line


def _expected_lines(
    run: BatchRun, rows: list[list[Any]], last: int, with_payloads: bool, texts: list[bytes] | None, size: int
) -> tuple[int, int, bytes]:
    """The expected result of ``chunk_lines`` from the start, made naively."""
    expected = b""
    row = 0
    for index in range(last):
        batch = run.batch(index)
        line = _batch_line(batch)
        if line is None or size - len(expected) < 512 + 12 * 20:
            return index, -1, expected
        expected += line
        for record in rows[index]:
            text = None if texts is None else texts[row]
            line = _chunk_line(batch, record, with_payloads, text)
            room = len(text) if text is not None else 0
            if text is None and with_payloads:
                room = 3 * (len(record.key or b"") + len(record.value or b""))
            room += sum(3 * len(key) + 1 for key, _ in record.headers)
            if line is None or size - len(expected) < 512 + 5 * 20 + room + 1:
                return index, row, expected
            expected += line
            row += 1
    return last, -1, expected


@examples(30)
@given(
    st.lists(extreme_batches() | ready_made_batches, min_size=1, max_size=3).map(b"".join),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from([0, 752, 1500, 20_000]),
    st.data(),
)
def test_lines_of_chunks_agree_with_batches_and_records(
    log: bytes, with_payloads: bool, last: int, size: int, data: st.DataObject
) -> None:
    """Lines hold the numbers and payloads of all before what is left to others, and nothing else is written."""
    with using(INTERPRETED):
        chunk = next(iter(read_columns(log, RECORD_COLUMNS, data_only=False)))
    assert isinstance(chunk, Chunk)
    if chunk.errors:
        return
    columns, run = chunk.records, chunk.batches.run
    assert columns is not None
    last = min(last, len(run))
    rows = [list(run.batch(index).records()) for index in range(len(run))]
    texts = data.draw(st.none() | st.lists(st.binary(max_size=5), min_size=columns.count, max_size=columns.count))
    text_ends = longs(0) if texts is None else longs(columns.count)
    for row in range(len(text_ends)):
        text_ends[row] = len(b"".join((texts or [])[: row + 1]))
    index, row, expected = _expected_lines(run, rows, last, with_payloads, texts, size)
    for form in BUILT_FORMS:
        room, out = _guarded(size)
        found = form.chunk_lines(
            run.data,
            run.positions,
            run.sizes,
            0,
            last,
            run.position,
            _BATCH_TEMPLATES,
            columns.data,
            -1,
            columns.ends,
            columns.capacity,
            columns.longs,
            columns.ints,
            _BOTH_RECORD_TEMPLATES,
            with_payloads,
            _SECRET_KINDS,
            b"".join(texts or []),
            text_ends,
            out,
        )
        assert found == (index, row, len(expected))
        assert bytes(out[: len(expected)]) == expected
        assert _is_untouched(room, len(expected))


@examples(30)
@given(st.lists(st.none() | st.binary(max_size=20), max_size=20))
def test_gathered_fields_are_those_of_an_arrow_column(fields: list[bytes | None]) -> None:
    """Offsets, validity bits and data are those of Arrow's binary layout, and nothing else is written."""
    data = b"".join(field or b"" for field in fields)
    positions, sizes = ints(len(fields)), ints(len(fields))
    at = 0
    for row, field in enumerate(fields):
        positions[row], sizes[row] = at, -1 if field is None else len(field)
        at += len(field or b"")
    for form in BUILT_FORMS:
        room, out = _guarded(form.total_size(sizes))
        data_offsets, validity = ints(len(fields) + 1), bytearray((len(fields) + 7) // 8)
        nulls = form.gather(data, positions, sizes, data_offsets, validity, out)
        assert nulls == fields.count(None)
        assert bytes(out) == data
        assert [validity[row // 8] >> row % 8 & 1 for row in range(len(fields))] == [f is not None for f in fields]
        assert [bytes(out[data_offsets[row] : data_offsets[row + 1]]) for row in range(len(fields))] == [
            field or b"" for field in fields
        ]
        assert _is_untouched(room, -1)


@examples(40)
@given(st.lists(st.builds(Header, st.binary(max_size=70), nullable_bytes), max_size=5))
def test_headers_read_back(some_headers: list[Header]) -> None:
    """The headers of an encoded record are read from where it has them."""
    record = encode_record(RawRecord(0, 0, 0, None, None, tuple(some_headers)))
    size = len(encode_record(RawRecord(0, 0, 0, None, None, ())))
    for form in BUILT_FORMS:
        position = len(record) - len(b"".join(_header(header) for header in some_headers))
        assert position >= size
        assert form.read_headers(record, position, len(some_headers)) == tuple(some_headers)


def _header(header: Header) -> bytes:
    """The bytes of one header: those that a second one adds to a record's."""
    one = RawRecord(0, 0, 0, b"k" * 700, None, (header,))
    two = RawRecord(0, 0, 0, b"k" * 700, None, (header, header))
    return encode_record(two)[len(encode_record(one)) :]


@pytest.mark.slow
def test_arbitrary_bytes_do_no_harm() -> None:
    """On arbitrary bytes a scan says what the reference says, and what it finds reads or is refused by a rule."""

    @examples(1500)
    @given(st.binary(max_size=300) | ready_made_batches.flatmap(lambda data: mutated(data, max_changes=8)))
    def check(data: bytes) -> None:
        for form in BUILT_FORMS:
            with mock.patch.object(form, "SMALL_BATCH", 0):
                positions, sizes = longs(8), ints(8)
                count, _, end, rule = form.scan(data, 0, positions, sizes, ints(8))
            expected = _scanned(data, 0, 8, 0)
            assert (positions[:count].tolist(), sizes[:count].tolist(), end, form.RULE_IDS[rule]) == expected

    check()
