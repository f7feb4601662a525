# SPDX-License-Identifier: Apache-2.0
"""The kernel by example: each form, and the choice between them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import crc32c
import pytest

from raftlog.errors import DecodeError
from raftlog.records import reference
from raftlog.records.batch import add_sequence, wrap_int64
from raftlog.records.record import encode_record, read_record
from raftlog.records.rules import RULES
from tests.records.kernel_forms import COMPILED, FORMS, ints, longs, needs_compiled
from tests.strategies import batch_bytes

_forms = pytest.mark.parametrize("kernel", FORMS)


@_forms
def test_rules_have_ids(kernel: Any) -> None:
    """Every number that the kernel returns is that of a rule; 0 is none."""
    assert kernel.RULE_IDS[0] == ""
    assert set(kernel.RULE_IDS[1:]) <= set(RULES)
    assert len(set(kernel.RULE_IDS)) == len(kernel.RULE_IDS)


@_forms
def test_checksums_of_all_short_lengths(kernel: Any) -> None:
    """For every length up to 600 the tables give what the package gives."""
    data = bytes(index * 89 % 251 for index in range(600))
    for size in range(601):
        assert kernel.checksum(data[:size]) == crc32c.crc32c(data[:size])


@_forms
def test_a_scan_stops_where_columns_are_full(kernel: Any) -> None:
    """No more batches are looked for than the shorter column holds."""
    log = batch_bytes() * 5
    positions, sizes = longs(3), ints(4)
    assert kernel.scan(log, 0, positions, sizes) == (3, 3 * 61, 0)
    assert kernel.scan(log, 3 * 61, positions, sizes) == (2, 5 * 61, 0)
    assert kernel.scan(log, 5 * 61, positions, sizes) == (0, 5 * 61, 0)


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
    """What is not a row is an error, and leaves the record area as it was, whatever was encoded before it."""
    area = bytearray(b"before")
    with pytest.raises(problem):
        kernel.encode([(2, b"k", b"v"), *rows], 2**63 - 1 if problem is OverflowError else 0, 0, area)
    assert area == b"before"


@_forms
@pytest.mark.parametrize(("payload", "is_written"), [(b"", 1), (b"\x00\x7f", 1), (b"\x80", 0), (b"a\xff", 0)])
@pytest.mark.parametrize("is_key", [False, True])
def test_payloads_that_are_not_ascii_are_left_to_others(
    kernel: Any, payload: bytes, is_written: int, is_key: bool
) -> None:
    """A line with a key or a value above 127 in it is not written; without payloads it is."""
    columns = ints(6)
    columns[1], columns[3] = (len(payload), -1) if is_key else (-1, len(payload))
    for with_payloads in (True, False):
        out = bytearray(200)
        row, size = kernel.record_lines(
            payload, 0, 1, 1, longs(2), columns, 0, -1, b":\0:\0:\0:\0:\0:\0 k \0 v \0", with_payloads, out
        )
        assert row == (is_written if with_payloads else 1)
        assert (size > 0, payload in out[:size]) == (row > 0, row > 0 and (with_payloads or not payload))


@_forms
@pytest.mark.parametrize("base_sequence", [-(2**31), -2, -1, 0, 5, 2**31 - 1])
@pytest.mark.parametrize("base_offset", [-(2**63), 0, 2**63 - 1])
@pytest.mark.parametrize("delta", [-(2**31), -1, 0, 1, 2**31 - 1])
def test_sequences_count_on(kernel: Any, base_sequence: int, base_offset: int, delta: int) -> None:
    """A record's sequence is the batch's and its offset's distance, also where either wraps; below 0 there is none."""
    columns, out = longs(2), bytearray(200)
    columns[0] = wrap_int64(base_offset + delta)
    sizes = ints(6)
    sizes[1] = sizes[3] = -1
    template = b"\0 \0 \0 \0 \0\0\0\0"
    row, size = kernel.record_lines(b"", 0, 1, 1, columns, sizes, base_offset, base_sequence, template, False, out)
    assert row == 1
    assert out[:size].split() == [b"%d" % columns[0], b"0", b"-1", b"-1", b"%d" % add_sequence(base_sequence, delta)]


@_forms
def test_no_rows_are_encoded_as_nothing(kernel: Any) -> None:
    """Of no rows, the smallest timestamp is above the largest."""
    area = bytearray()
    assert kernel.encode([], 0, 0, area) == (2**63 - 1, -(2**63))
    assert area == b""


@_forms
def test_an_empty_iteration(kernel: Any) -> None:
    """No rows are no objects; an iterator that has ended stays so."""
    records = kernel.Records(b"", 1, longs(2), ints(6), 0, 0)
    assert iter(records) is records
    assert list(records) == list(records) == []


@_forms
def test_an_object_outlives_all_else(kernel: Any) -> None:
    """A record that is kept keeps its bytes alive, after the columns and the iterator are gone."""
    columns = ints(6)
    columns[1], columns[2], columns[3] = 3, 3, 2
    kept = [*kernel.Records(b"keyva", 1, longs(2), columns, 0, 1)]
    del columns
    assert (kept[0].key, kept[0].value, kept[0].headers) == (b"key", b"va", ())


@needs_compiled
@pytest.mark.parametrize("work", ["scan", "walk", "gather"])
def test_loops_leave_the_interpreter_to_others(work: str) -> None:
    """While a loop runs, another thread goes on: it counts, though nobody ever takes the interpreter from this one."""
    call = _long_call(work)
    ticks = 0
    stop, started = threading.Event(), threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.wait(1e-4):
            ticks += 1
            started.set()

    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert started.wait(60)
        for _ in range(100):
            before = ticks
            call()
            if ticks > before:
                return
        raise AssertionError("the other thread stood still")
    finally:
        stop.set()
        sys.setswitchinterval(switch_interval)
        thread.join()


def _long_call(work: str) -> Callable[[], object]:
    """A call that takes some ten milliseconds."""
    record = bytes.fromhex("0c000000010100")
    if work == "scan":
        log = batch_bytes() * 200_000
        positions, sizes = longs(200_000), ints(200_000)
        return lambda: COMPILED.scan(log, 0, positions, sizes)
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
    """With RAFTLOG_PURE=1 the source runs, whatever was built, and ``cython`` is not left behind."""
    assert _form_chosen(RAFTLOG_PURE="1") == "False raftlog.records.kernel"


@pytest.mark.skipif(
    COMPILED is None or "RAFTLOG_KERNEL_PATH" in os.environ, reason="the kernel was not compiled in place"
)
def test_the_compiled_form_is_the_one_that_runs() -> None:
    """What was built is used, unless the environment says otherwise."""
    assert _form_chosen(RAFTLOG_PURE="0") == "True raftlog.records._kernel"


def test_the_stand_in_for_cython_is_not_left_behind() -> None:
    """After the interpreted form was imported, ``import cython`` finds what it found before."""
    assert getattr(sys.modules.get("cython"), "__name__", "Cython") != "raftlog.records.interpreted_cython"
