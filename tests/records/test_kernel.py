# SPDX-License-Identifier: Apache-2.0
"""The kernel by example: each form, and the choice between them."""

import itertools
import os
import platform
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records import reference
from raftlog.records.batches.batch import add_sequence, wrap_int64
from raftlog.records.batches.record import encode_record, read_record
from raftlog.records.messages.java_text import decode_utf8
from raftlog.records.rules import RULES
from tests.records.kernel_forms import COMPILED, FORMS, examples, ints, longs, needs_compiled
from tests.strategies import batch_bytes

_forms = pytest.mark.parametrize("kernel", FORMS)


class Scan(NamedTuple):
    """The result of a scan."""

    batches: int
    unchecked: int = 0
    end: int = 0
    broken_rule: int = 0


@_forms
def test_rules_have_ids(kernel: Any) -> None:
    """Every number that the kernel returns is that of a rule; 0 is none."""
    assert kernel.RULE_IDS[0] == ""
    assert set(kernel.RULE_IDS[1:]) <= set(RULES)
    assert len(set(kernel.RULE_IDS)) == len(kernel.RULE_IDS)


_crc_ways = pytest.mark.parametrize("by_instruction", [True, False], ids=["instruction", "tables"])


@_forms
@_crc_ways
def test_checksums_of_all_short_lengths(kernel: Any, by_instruction: bool) -> None:
    """For every length up to 1200, which is three lanes of the instruction and more, the package gives the same."""
    data = bytes(index * 89 % 251 for index in range(1201))
    with mock.patch.object(kernel, "HAS_CRC_INSTRUCTION", kernel.HAS_CRC_INSTRUCTION and by_instruction):
        for size in range(1201):
            assert kernel.checksum(memoryview(data)[size % 9 : size]) == crc32c.crc32c(data[size % 9 : size])


@_forms
@_crc_ways
def test_a_scan_checks_by_instruction_and_by_tables(kernel: Any, by_instruction: bool) -> None:
    """Batches of any size, up to more than what is fetched ahead, are found; one with a flipped bit is not."""
    log = b"".join(batch_bytes(bytes(size)) for size in (0, 1, 90, 700, 5000, 20_000))
    damaged = log[:-1] + b"\x80"
    positions, sizes, unchecked = longs(9), ints(9), ints(9)
    with (
        mock.patch.object(kernel, "SMALL_BATCH", 2**31),
        mock.patch.object(kernel, "HAS_CRC_INSTRUCTION", kernel.HAS_CRC_INSTRUCTION and by_instruction),
    ):
        assert kernel.scan(log, 0, positions, sizes, unchecked) == Scan(batches=6, end=len(log))
        count, _, end, rule = kernel.scan(damaged, 0, positions, sizes, unchecked)
    assert (count, end, kernel.RULE_IDS[rule]) == (5, len(log) - 20_061, "batch-crc")


@needs_compiled
@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="compilers elsewhere may lack it")
def test_the_instruction_is_used_where_the_processor_has_it() -> None:
    """A kernel that is compiled for this platform finds the instruction if the processor lists it."""
    has_instruction = " sse4_2 " in Path("/proc/cpuinfo").read_text("utf-8")
    assert has_instruction == COMPILED.HAS_CRC_INSTRUCTION


@_forms
def test_a_scan_stops_where_columns_are_full(kernel: Any) -> None:
    """No more batches are looked for than the shortest column holds."""
    size = len(batch_bytes())
    log = batch_bytes() * 5
    for columns in ((longs(3), ints(4), ints(4)), (longs(4), ints(3), ints(4)), (longs(4), ints(4), ints(3))):
        with mock.patch.object(kernel, "SMALL_BATCH", 2048):
            assert kernel.scan(log, 0, *columns) == Scan(batches=3, end=3 * size)
            assert kernel.scan(log, 3 * size, *columns) == Scan(batches=2, end=5 * size)
            assert kernel.scan(log, 5 * size, *columns) == Scan(batches=0, end=5 * size)


@_forms
def test_a_scan_names_the_batches_that_are_not_small(kernel: Any) -> None:
    """Batches whose CRC was not looked at are listed, whether it holds or not; the others have one that holds."""
    small, large = batch_bytes(), batch_bytes(b"v" * 200)
    log = small + large + small + large[:-1] + b"w" + small[:17] + b"crc!" + small[21:]
    positions, sizes, unchecked = longs(9), ints(9), ints(9)
    with mock.patch.object(kernel, "SMALL_BATCH", len(large)):
        count, unchecked_count, _, rule = kernel.scan(log, 0, positions, sizes, unchecked)
    assert (count, kernel.RULE_IDS[rule]) == (4, "batch-crc")
    assert unchecked[:unchecked_count].tolist() == [1, 3]


@_forms
def test_a_gather_stays_within_both_buffers(kernel: Any) -> None:
    """Sizes around those that are copied in one go, up to the last byte of what is read and of what is written."""
    for size, rest in itertools.product((0, 1, 31, 32, 33, 100), (0, 1, 31, 32)):
        view = bytes(range(rest, rest + 2 * size)) + bytes(rest)
        data, data_offsets, positions, sizes = bytearray(2 * size + 1), ints(3), ints(2), ints(2)
        positions[1], sizes[0], sizes[1] = size, size, size
        written = memoryview(data)[: 2 * size]
        assert kernel.gather(view, positions, sizes, data_offsets, bytearray(1), written) == 0
        assert data == view[: 2 * size] + b"\0"
        assert data_offsets.tolist() == [0, size, 2 * size]


@_forms
def test_room_is_as_large_as_asked(kernel: Any) -> None:
    """Room for any number of bytes, which can be written."""
    for size in (0, 1, 100_000):
        made = kernel.room(size)
        made[:] = bytes(size)
        assert made == bytes(size)


@_forms
@pytest.mark.parametrize("row", [(0, None), (0, None, None, (), 0), (0,), ()], ids=str)
def test_an_odd_row_after_large_ones_is_refused(kernel: Any, row: tuple[Any, ...]) -> None:
    """A row with another number of fields is a ValueError, after any rows."""
    with pytest.raises(ValueError):
        kernel.prepare([(0, b"k", bytes(5000)), row], 0, 0)


@_forms
@pytest.mark.parametrize(
    ("field", "position", "width"),
    [("base_offset", 0, 8), ("attributes", 21, 2), ("crc", 17, 4), ("producer_epoch", 51, 2), ("record_count", 57, 4)],
)
@pytest.mark.parametrize("value", [0, 1, -1, 127, 128, -128, -129, 2**15 - 1, -(2**15)])
def test_header_fields_are_signed(kernel: Any, field: str, position: int, width: int, value: int) -> None:
    """Fields of 2, 4 and 8 bytes are read big-endian, with their sign."""
    batch = bytearray(batch_bytes())
    batch[position : position + width] = value.to_bytes(width, "big", signed=True)
    column = longs(1)
    kernel.header_field(bytes(batch), longs(1), position, width, column)
    assert column[0] == value


def _walked(kernel: Any, area: bytes, count: int, rows: int = 8) -> tuple[str, list[int], list[int]]:
    """Walk one batch; return the rule that it breaks, and all columns with guards around them."""
    batch = batch_bytes(area, count=count)
    areas = longs(6)
    kernel.record_areas(batch, longs(1), _one_int(len(batch)), areas)
    long_columns, int_columns = longs(2 * rows + 2), ints(6 * rows + 2)
    ends = longs(1)
    _, rule = kernel.walk(batch, areas, 0, 0, 31, rows, long_columns[1:-1], int_columns[1:-1], ends)
    assert (long_columns[0], long_columns[-1], int_columns[0], int_columns[-1]) == (0, 0, 0, 0)
    return kernel.RULE_IDS[rule], long_columns.tolist(), int_columns.tolist()


def _one_int(value: int) -> memoryview:
    column = ints(1)
    column[0] = value
    return column


@_forms
@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1])
@pytest.mark.parametrize("varint", [b"\xff" * 9, b"\x80" * 9, b"\xff\xff\xff\xff\x7f\0\0\0\0"], ids=bytes.hex)
def test_a_broken_record_ends_a_batch(kernel: Any, count: int, varint: bytes) -> None:
    """After a record whose length does not read, no other is tried, however many the header says there are."""
    rule, long_columns, _ = _walked(kernel, varint, count)
    assert rule in {"varint-length", "varint-range"}
    assert not any(long_columns)


@_forms
@pytest.mark.parametrize(
    ("record", "rule"),
    [
        ("02 00 0001010100", "record-headers"),  # both nulls stand beyond the record's end, where the headers do not
        ("0c 00 0000 0101 01", "record-headers"),
        ("0c 00 0000 0300 00", "record-field"),
        ("0c 00 0000 02 01 00", "varint-length"),
        ("00 00 0000 0101 00", "record-end"),
        ("01 00 0000 0101 00", "record-length"),
        ("10 00 0000 0101 02 03 00", "record-header-key"),
        ("0e 00 0000 0101 02 03", "record-header-key"),
        ("10 00 0000 0101 02 00 03", "record-field"),
        ("0c 00 8080", "record-length"),
        ("0c 00 8080808080 80", "varint-length"),
    ],
)
def test_a_record_breaks_the_rule_that_the_reference_says(kernel: Any, record: str, rule: str) -> None:
    """Where several rules are broken, the first by the reference's order is named."""
    area = bytes.fromhex(record)
    assert _walked(kernel, area, 1)[0] == rule
    with pytest.raises(DecodeError) as caught:
        reference.read_records(batch_bytes(area, count=1))
    assert caught.value.rule == rule


@_forms
@pytest.mark.parametrize("timestamp", [-(2**63), 2**63 - 1, -1, 0])
def test_log_append_time_may_be_anything(kernel: Any, timestamp: int) -> None:
    """A LogAppendTime batch's max timestamp is every record's, also where it is an odd one."""
    record = encode_record(read_record(bytes.fromhex("0c000a000101 00".replace(" ", "")), 0)[0])
    batch = batch_bytes(record * 2, count=2, attributes=8, max_timestamp=timestamp)
    areas, long_columns = longs(6), longs(2 * 3)
    assert kernel.record_areas(batch, longs(1), _one_int(len(batch)), areas) == (0, 2)
    assert kernel.walk(batch, areas, 0, 0, 2, 3, long_columns, ints(18), longs(1)) == (1, 0)
    assert long_columns.tolist() == [0, 0, 0, timestamp, timestamp, 0]


@_forms
@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(1, "key", None)], TypeError),
        ([(1, None, 5)], TypeError),
        ([(1, None)], ValueError),
        ([()], ValueError),
        ([(1, None, None, (), ())], ValueError),
        ([(2**63, None, None)], OverflowError),
        ([(-2, None, None)] * 2, OverflowError),
        ([(1, None, None, 7)], TypeError),
        ([(1, None, None, [(None, b"")])], TypeError),
        ([(1, None, None, [(b"k", "v")])], TypeError),
        ([(1, None, None, [(b"k",)])], ValueError),
        ([None], TypeError),
    ],
)
def test_rows_of_another_shape_are_refused(kernel: Any, rows: list[Any], problem: type[Exception]) -> None:
    """A value that is not a row is an error, after any rows."""
    with pytest.raises(problem):
        kernel.prepare([(2, b"k", b"v"), *rows], 2**63 - 1 if problem is OverflowError else 0, 0)


@_forms
def test_rows_may_change_once_they_are_prepared(kernel: Any) -> None:
    """Lists as rows and as headers may be used again."""
    headers = [(b"h", b"1")]
    row = [5, b"k", b"v", headers]
    rows = [row]
    prepared, size, *_ = kernel.prepare(rows, 5, 0)
    before = kernel.encode(b"", [prepared], size, crc32c.crc32c)
    headers.append((b"h", b"2"))
    row[1] = b"another"
    rows.append(row)
    assert kernel.encode(b"", [prepared], size, crc32c.crc32c) == before
    assert len(before) == size


@_forms
@pytest.mark.parametrize("difference", [-1, 1])
def test_records_of_another_size_are_not_written(kernel: Any, difference: int) -> None:
    """Nothing is written past the end of a batch, nor is a gap left in it."""
    prepared, size, *_ = kernel.prepare([(0, None, b"v")], 0, 0)
    with pytest.raises(ValueError, match="bytes"):
        kernel.encode(b"", [prepared], size + difference, crc32c.crc32c)


@_forms
def test_a_batch_is_written_in_one_piece(kernel: Any) -> None:
    """All prepared records follow a header, whose CRC is filled in."""
    pieces = [kernel.prepare([(7, b"k", b"v")] * count, 7, first) for first, count in ((0, 2), (5, 70))]
    size = sum(piece[1] for piece in pieces)
    header = bytes(range(61))
    batch = kernel.encode(header, [piece[0] for piece in pieces], size, crc32c.crc32c)
    alone = [kernel.encode(b"", [piece[0]], piece[1], crc32c.crc32c) for piece in pieces]
    assert batch[:17] + batch[21:] == header[:17] + header[21:] + b"".join(alone)
    assert int.from_bytes(batch[17:21], "big") == crc32c.crc32c(batch[21:])


def _record_line(
    kernel: Any,
    payload: bytes,
    columns: memoryview,
    sizes: memoryview,
    base_offset: int,
    base_sequence: int,
    *,
    with_payloads: bool,
) -> bytes:
    """Write the line of the one record of a batch, whose own line was written before."""
    header = bytearray(61)
    struct.pack_into(">q", header, 0, base_offset)
    struct.pack_into(">i", header, 53, base_sequence)
    templates = b"\0 \0 \0 \0 \0\0\0 k \0 v \0".ljust(1024, b"\0")
    secret_kinds = bytes(kind == ord("s") for kind in range(256))
    ends, out = longs(1), bytearray(1000)
    ends[0] = 1
    batch, row, size = kernel.chunk_lines(
        header, longs(1), ints(1), 0, 1, 0, b"", payload, 0, ends, 1, columns, sizes, templates, with_payloads,
        secret_kinds, b"", longs(0), out,
    )  # fmt: skip
    assert (batch, row) == ((1, -1) if size else (0, 0))
    return bytes(out[:size])


@_forms
@pytest.mark.parametrize(
    ("payload", "is_written"),
    [(b"\1s\0", 0), (b"\1s", 1), (b"\1S\0", 1), (b"\2s\0", 1), (b"\1", 1), (b"", 1)],
)
@pytest.mark.parametrize("is_key", [False, True])
def test_values_that_may_be_secret_are_not_shown(kernel: Any, payload: bytes, is_written: int, is_key: bool) -> None:
    """The line of a value that starts like a record of a secret kind is not written; that of a key is."""
    columns = ints(6)
    columns[1], columns[3] = (len(payload), -1) if is_key else (-1, len(payload))
    for with_payloads in (True, False):
        line = _record_line(kernel, payload, longs(2), columns, 0, -1, with_payloads=with_payloads)
        assert (line != b"") == (bool(is_written) or is_key or not with_payloads)


_PARTS_OF_TEXT = [
    *(
        bytes([byte])
        for byte in b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff"
    ),
    "\u00e9\u20ac\U0001f600".encode(),
]


@_forms
@examples(75)
@given(st.lists(st.sampled_from(_PARTS_OF_TEXT) | st.binary(max_size=4), max_size=12).map(b"".join))
def test_payloads_are_the_text_that_java_makes_of_them(kernel: Any, payload: bytes) -> None:
    """Invalid UTF-8 is replaced as by ``decode_utf8``, wherever a character breaks off."""
    columns = ints(6)
    columns[1], columns[3] = len(payload), -1
    line = _record_line(kernel, payload, longs(2), columns, 0, -1, with_payloads=True)
    assert line.partition(b" k ")[2] == decode_utf8(payload).encode() + b"\n"


@_forms
@pytest.mark.parametrize("base_sequence", [-(2**31), -2, -1, 0, 5, 2**31 - 1])
@pytest.mark.parametrize("base_offset", [-(2**63), 0, 2**63 - 1])
@pytest.mark.parametrize("delta", [-(2**31), -1, 0, 1, 2**31 - 1])
def test_sequences_count_on(kernel: Any, base_sequence: int, base_offset: int, delta: int) -> None:
    """A record's sequence is the batch's and its offset's distance, also where either wraps; below 0 there is none."""
    columns = longs(2)
    columns[0] = wrap_int64(base_offset + delta)
    sizes = ints(6)
    sizes[1] = sizes[3] = -1
    line = _record_line(kernel, b"", columns, sizes, base_offset, base_sequence, with_payloads=False)
    assert line.split() == [b"%d" % columns[0], b"0", b"-1", b"-1", b"%d" % add_sequence(base_sequence, delta)]


@_forms
def test_no_rows_are_encoded_as_nothing(kernel: Any) -> None:
    """Of no rows, the smallest timestamp is above the largest."""
    prepared, size, smallest, largest, count = kernel.prepare([], 0, 0)
    assert (size, smallest, largest, count) == (0, 2**63 - 1, -(2**63), 0)
    assert kernel.encode(b"", [prepared], 0, crc32c.crc32c) == b""


@_forms
def test_an_empty_iteration(kernel: Any) -> None:
    """No rows give no objects; an exhausted iterator stays exhausted."""
    records = kernel.Records(b"", 1, longs(2), ints(6), 0, 0)
    assert iter(records) is records
    assert list(records) == list(records) == []


@_forms
def test_an_object_outlives_all_else(kernel: Any) -> None:
    """A record keeps its bytes alive after the columns and the iterator are released."""
    columns = ints(6)
    columns[1], columns[2], columns[3] = 3, 3, 2
    kept = [*kernel.Records(b"keyva", 1, longs(2), columns, 0, 1)]
    del columns
    assert (kept[0].key, kept[0].value, kept[0].headers) == (b"key", b"va", ())


@needs_compiled
@pytest.mark.parametrize("work", ["scan", "walk", "gather"])
def test_loops_leave_the_interpreter_to_others(work: str) -> None:
    """While a loop runs, another thread makes progress, although this one is never preempted."""
    call = _long_call(work)
    ticks = 0
    may_tick, is_done = threading.Lock(), False
    may_tick.acquire()

    def count() -> None:
        nonlocal ticks
        while may_tick.acquire() and not is_done:
            ticks += 1

    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(1000):
            if may_tick.locked():
                may_tick.release()  # The thread wakes, and waits for the interpreter, which only the call gives up.
            call()
            if ticks:
                return
        raise AssertionError("the other thread stood still")
    finally:
        is_done = True
        if may_tick.locked():
            may_tick.release()
        sys.setswitchinterval(switch_interval)
        thread.join()


def _long_call(work: str) -> Callable[[], object]:
    """A call that takes some ten milliseconds."""
    record = bytes.fromhex("0c000000010100")
    if work == "scan":
        log = batch_bytes() * 200_000
        positions, sizes, unchecked = longs(200_000), ints(200_000), ints(200_000)
        return lambda: COMPILED.scan(log, 0, positions, sizes, unchecked)
    count = 1_000_000
    if work == "walk":
        batch = batch_bytes(record * count, count=count)
        areas = longs(6)
        COMPILED.record_areas(batch, longs(1), _one_int(len(batch)), areas)
        columns, more_columns, ends = longs(2 * count + 2), ints(6 * count + 6), longs(1)
        return lambda: COMPILED.walk(batch, areas, 0, 0, 31, count + 1, columns, more_columns, ends)
    sizes = ints(count)
    return lambda: COMPILED.gather(b"", sizes, sizes, ints(count + 1), bytearray(count // 8 + 1), bytearray())


def _form_chosen(**environment: str) -> str:
    program = "from raftlog.records.kernel_choice import IS_COMPILED, kernel; print(IS_COMPILED, kernel.__name__)"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_the_environment_can_ask_for_the_interpreted_form() -> None:
    """With RAFTLOG_PURE=1 the source runs, whatever was built, and ``cython`` does not stay imported."""
    assert _form_chosen(RAFTLOG_PURE="1") == "False raftlog.records.kernel"


@pytest.mark.skipif(
    COMPILED is None or "RAFTLOG_KERNEL_PATH" in os.environ, reason="the kernel was not compiled in place"
)
def test_the_compiled_form_is_the_one_that_runs() -> None:
    """The built kernel is used, unless the environment says otherwise."""
    assert _form_chosen(RAFTLOG_PURE="0") == "True raftlog.records._kernel"


def test_the_stand_in_for_cython_is_removed() -> None:
    """After the interpreted form was imported, ``import cython`` finds what it found before."""
    assert getattr(sys.modules.get("cython"), "__name__", "Cython") != "raftlog.records.interpreted_cython"
