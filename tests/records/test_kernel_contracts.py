# SPDX-License-Identifier: Apache-2.0
"""Invalid arguments of the kernel: each form refuses them, without a read or write out of bounds."""

import array
import ast
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.columns.columns import Chunk, read_columns
from tests.checkout import ROOT
from tests.records.kernel_forms import FORMS, examples, ints, longs, using
from tests.strategies import batch_bytes

_forms = pytest.mark.parametrize("kernel", FORMS)
_compiled_alone = pytest.mark.parametrize("kernel", FORMS[1:])


# Objects


def _columns(*numbers: int) -> memoryview:
    column = ints(6)
    for index, number in enumerate(numbers):
        column[index] = number
    return column


@_forms
@pytest.mark.parametrize(
    "columns",
    [
        (-1, 1, -1, 1, -1, 1),
        (0, 6, 0, 6, 0, 3),
        (6, 0, 6, 0, 6, 1),
        (5, 1, 5, 1, 5, 1),
        (2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1),
        (-(2**31), 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2**31 - 1),
    ],
)
def test_a_record_is_cut_out_of_its_data_alone(kernel: Any, columns: tuple[int, ...]) -> None:
    """A position or a size that is not in the data is refused when the field is asked for."""
    (record,) = kernel.Records(b"\x02k\x02vw", 1, longs(2), _columns(*columns), 0, 1)
    for name in ("key", "value", "headers"):
        with pytest.raises(ValueError):
            getattr(record, name)


@_forms
def test_fields_at_the_ends_of_the_data(kernel: Any) -> None:
    """Fields may use all of the data, but nothing after its last byte."""
    (record,) = kernel.Records(b"\x02k\x02v", 1, longs(2), _columns(0, 4, 4, 0, 0, 1), 0, 1)
    assert (record.key, record.value, record.headers) == (b"\x02k\x02v", b"", ((b"k", b"v"),))


@_forms
def test_pieces_are_cut_out_of_their_data_alone(kernel: Any) -> None:
    """Up to its last byte; null is None, wherever it is said to be."""

    def column(*numbers: int) -> memoryview:
        found = ints(len(numbers))
        found[:] = memoryview(array.array("i", numbers))
        return found

    assert kernel.pieces(b"abc", column(0, 1, 3, 99, -5), column(3, 2, 0, -1, -7)) == [b"abc", b"bc", b"", None, None]
    assert kernel.pieces(b"", column(), column()) == []
    for position, size in [(0, 4), (3, 1), (4, 0), (-1, 1), (-1, 0), (2**31 - 1, 2**31 - 1), (-(2**31), 2**31 - 1)]:
        with pytest.raises(ValueError):
            kernel.pieces(b"abc", column(0, position), column(1, size))
    for count in (1, 3):
        with pytest.raises(ValueError):
            kernel.pieces(b"abc", column(0, 0), column(*[1] * count))


@_forms
def test_rows_are_in_their_columns(kernel: Any) -> None:
    """An iterator that would continue after its columns, or start before them, is refused."""
    for capacity, long_count, int_count, first, end in [
        (2, 4, 12, -1, 1),
        (2, 4, 12, 0, 3),
        (2, 3, 12, 0, 2),
        (2, 4, 11, 0, 2),
        (-1, 4, 12, 0, 0),
        (2**62, 4, 12, 0, 2),
    ]:
        with pytest.raises(ValueError):
            kernel.Records(b"", capacity, longs(long_count), ints(int_count), first, end)
    assert len(list(kernel.Records(b"", 2, longs(4), ints(12), 0, 2))) == 2
    assert not list(kernel.Records(b"", 2, longs(4), ints(12), 2, 2))


def _records(kernel: Any) -> tuple[Any, Any]:
    with using(kernel):
        (chunk,) = read_columns(batch_bytes(bytes.fromhex("10000000026b0276 00".replace(" ", "")), count=1))
    assert isinstance(chunk, Chunk)
    assert chunk.records is not None
    iterator = kernel.Records(bytes(chunk.records.data), 2, chunk.records.longs, chunk.records.ints, 0, 1)
    return next(iterator), iterator


@_forms
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_records_do_not_pickle(kernel: Any, protocol: int) -> None:
    """A pickle could be made to say that a field is anywhere."""
    for each in _records(kernel):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(each, protocol)
        for name in ("__setstate__", "__setstate_cython__", "__reduce_cython__"):
            assert not hasattr(each, name)
    assert not hasattr(kernel, "__pyx_unpickle_Record")
    assert not hasattr(kernel, "__pyx_unpickle_Records")


@_forms
def test_a_copy_of_a_record_is_the_record(kernel: Any) -> None:
    """It does not change; an iterator does, and has no copy."""
    record, iterator = _records(kernel)
    assert copy.copy(record) is record
    assert copy.deepcopy([record])[0] is record
    for make in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            make(iterator)


@_compiled_alone
def test_a_record_of_nothing_has_no_fields(kernel: Any) -> None:
    """One that was not cut out of a log is harmless, and cannot be given positions."""
    for empty in (kernel.LazyRecord(), kernel.LazyRecord.__new__(kernel.LazyRecord)):
        with pytest.raises((TypeError, ValueError)):
            _ = empty.key
        with pytest.raises(AttributeError):
            empty._key_position = 5


# Columns

_LOG = batch_bytes() * 2


def _calls(kernel: Any) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Each loop over headers with sound arguments: positions are the second, and what it fills comes last."""
    positions, sizes = longs(2), ints(2)
    positions[1], sizes[0], sizes[1] = 61, 61, 61
    templates = (b"a\0" * 13).ljust(512, b"\0") * 64
    return {
        "header_field": (kernel.header_field, [_LOG, positions, 57, 4, longs(2)]),
        "all_attributes": (kernel.all_attributes, [_LOG, positions]),
        "last_offsets": (kernel.last_offsets, [_LOG, positions, longs(2)]),
        "header_facts": (kernel.header_facts, [_LOG, positions]),
        "timestamp_steps": (kernel.timestamp_steps, [_LOG, positions, 0]),
        "digest_blocks": (kernel.digest_blocks, [_LOG, positions, 12, longs(12)]),
        "record_areas": (kernel.record_areas, [_LOG, positions, sizes, longs(12)]),
        "batch_lines": (kernel.batch_lines, [_LOG, positions, sizes, 0, 0, templates, bytearray(5000)]),
        "skip_uneventful": (kernel.skip_uneventful, [_LOG, positions, sizes, 0, 0]),
    }


_LOOPS = ["header_field", "last_offsets", "header_facts", "timestamp_steps", "digest_blocks", "record_areas"]
_ALL_LOOPS = [*_LOOPS, "all_attributes", "batch_lines"]
_OF_OBJECTS = {"as_tuple"}
"""Functions of the kernel that are given no bytes and no columns."""


def test_every_function_is_fuzzed() -> None:
    """No function that takes bytes or columns is left out of what sanitizers watch."""
    tree = ast.parse((ROOT / "records/kernel.py").read_text("utf-8"))
    names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")}
    fuzzer = ast.parse((ROOT / "tests/records/fuzz_kernel.py").read_text("utf-8"))
    called = {each.attr for each in ast.walk(fuzzer) if isinstance(each, ast.Attribute)}
    assert names - called == _OF_OBJECTS


@_forms
@pytest.mark.parametrize("loop", _ALL_LOOPS)
def test_a_header_is_read_where_one_is(kernel: Any, loop: str) -> None:
    """The last position at which a whole header is, is read; one more, one before the start, or far off is refused."""
    call, arguments = _calls(kernel)[loop]
    call(*arguments)
    for position in (-1, 62, 2**62, -(2**63)):
        arguments[1][1] = position
        with pytest.raises(ValueError):
            call(*arguments)


@_forms
@pytest.mark.parametrize("loop", ["header_field", "last_offsets", "digest_blocks", "record_areas"])
def test_a_column_that_is_too_short_is_not_filled(kernel: Any, loop: str) -> None:
    """By one entry, or altogether."""
    call, arguments = _calls(kernel)[loop]
    for missing in (1, len(arguments[-1])):
        with pytest.raises(ValueError):
            call(*arguments[:-1], arguments[-1][missing:])


@_forms
@pytest.mark.parametrize("loop", ["record_areas", "batch_lines", "skip_uneventful"])
def test_there_is_a_size_for_each_position(kernel: Any, loop: str) -> None:
    """One fewer is refused."""
    call, arguments = _calls(kernel)[loop]
    with pytest.raises(ValueError):
        call(*arguments[:2], arguments[2][1:], *arguments[3:])


@_forms
@pytest.mark.parametrize(("position", "width"), [(-1, 4), (58, 4), (54, 8), (0, 3), (60, 2)])
def test_a_field_is_in_the_header(kernel: Any, position: int, width: int) -> None:
    """Other positions and widths are refused; the last byte of a header is in it."""
    with pytest.raises(ValueError):
        kernel.header_field(_LOG, longs(1), position, width, longs(1))
    kernel.header_field(_LOG, longs(1), 57, 4, longs(1))


@_forms
@pytest.mark.parametrize("block_bits", [-1, 64, 2**31 - 1])
def test_blocks_have_a_size(kernel: Any, block_bits: int) -> None:
    """A shift by no bits, up to all of them but one, is defined."""
    with pytest.raises(ValueError):
        kernel.digest_blocks(_LOG, longs(1), block_bits, longs(6))
    assert kernel.digest_blocks(_LOG, longs(1), 63, longs(6)) == 1


@_forms
def test_a_scan_starts_in_the_log(kernel: Any) -> None:
    """A start before the data is refused; one after it finds nothing."""
    with pytest.raises(ValueError):
        kernel.scan(_LOG, -1, longs(2), ints(2), ints(2))
    assert kernel.scan(_LOG, 500, longs(2), ints(2), ints(2)) == (0, 0, 500, 0)


_RECORDS = bytes.fromhex("0c000000010100") * 3


def _walkable(kernel: Any) -> list[Any]:
    log = batch_bytes(_RECORDS, count=3)
    sizes, areas = ints(1), longs(6)
    sizes[0] = len(log)
    kernel.record_areas(log, longs(1), sizes, areas)
    return [log, areas, 0, 0, 31, 4, longs(8), ints(24), longs(1)]


@_forms
@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        (1, longs(5)),
        (2, -1),
        (2, 2),
        (3, -1),
        (3, 5),
        (3, 2),
        (5, 5),
        (5, 2),
        (5, -1),
        (5, 2**62),
        (6, longs(7)),
        (7, ints(23)),
    ],
)
def test_a_walk_stays_in_its_columns(kernel: Any, argument: int, wrong: Any) -> None:
    """Rows that would not fit, and columns that are not so long, are refused before anything is written."""
    arguments = _walkable(kernel)
    assert kernel.walk(*arguments) == (1, 0)
    arguments[argument] = wrong
    with pytest.raises(ValueError):
        kernel.walk(*arguments)


@_forms
@pytest.mark.parametrize(("column", "wrong"), [(0, -1), (0, 83), (1, 83), (1, 60), (1, 2**62), (0, -(2**63))])
def test_a_record_area_is_in_the_data(kernel: Any, column: int, wrong: int) -> None:
    """A batch that starts before the data, or ends after it or before its start, is refused by walk and summarize."""
    arguments = _walkable(kernel)
    log, areas = arguments[:2]
    sizes = ints(1)
    sizes[0] = len(log)
    assert kernel.summarize(log, areas, log, longs(1), sizes, 0, longs(4))[:2] == (1, 0)
    areas[column] = wrong
    with pytest.raises(ValueError):
        kernel.walk(*arguments)
    with pytest.raises(ValueError):
        kernel.summarize(log, areas, log, longs(1), sizes, 0, longs(4))


@_forms
def test_a_summary_stays_in_its_columns(kernel: Any) -> None:
    """Sizes and positions that are not in the log, and columns that are too short, are refused."""
    log, sizes, beyond = batch_bytes(_RECORDS, count=3), ints(1), longs(1)
    beyond[0] = len(log) - 60
    sizes[0] = len(log)
    assert kernel.summarize(log, longs(0), log, longs(1), sizes, 0, longs(4))[:2] == (1, 0)
    too_long = ints(1)
    too_long[0] = len(log) + 1
    for arguments in [
        (log, longs(0), log, longs(1), too_long, 0, longs(4)),
        (log, longs(0), log, longs(1), ints(1), 0, longs(4)),
        (log, longs(0), log, longs(1), ints(0), 0, longs(4)),
        (log, longs(0), log, longs(1), sizes, 0, longs(3)),
        (log, longs(0), log, longs(1), sizes, -1, longs(4)),
        (log, longs(0), log, beyond, sizes, 0, longs(4)),
        (log, longs(2), log, longs(1), sizes, 0, longs(4)),
    ]:
        with pytest.raises(ValueError):
            kernel.summarize(*arguments)


@_forms
@pytest.mark.parametrize("size", [1, 31, 32, 33, 100])
def test_a_gather_takes_what_is_there(kernel: Any, size: int) -> None:
    """One byte before the data, after it, or more than the space is refused, whatever the size."""
    view = bytes(range(150))
    for position, room in [(-1, 400), (151 - size, 400), (-(2**31), 400), (2**31 - 1, 400), (0, size - 1)]:
        positions, sizes = ints(1), ints(1)
        positions[0], sizes[0] = position, size
        with pytest.raises(ValueError):
            kernel.gather(view, positions, sizes, ints(2), bytearray(1), bytearray(room))
    positions[0] = 150 - size
    out = bytearray(size)
    assert kernel.gather(view, positions, sizes, ints(2), bytearray(1), out) == 0
    assert out == view[-size:]


@_forms
def test_a_gather_has_room_for_each_row(kernel: Any) -> None:
    """Offsets are one more than rows, there is a bit for each, and a size."""
    for offsets, validity, sizes in [(9, 2, 9), (10, 1, 9), (10, 2, 8)]:
        with pytest.raises(ValueError):
            kernel.gather(b"", ints(9), ints(sizes), ints(offsets), bytearray(validity), bytearray())
    assert kernel.gather(b"", ints(9), ints(9), ints(10), bytearray(2), bytearray()) == 0


@_forms
@pytest.mark.parametrize(("position", "count"), [(-1, 1), (4, 1), (0, 2), (2**63 - 1, 1), (0, 2**40), (1, 1)])
def test_headers_are_in_the_data(kernel: Any, position: int, count: int) -> None:
    """Bytes after the data are not a header, and are not searched as often as a count claims."""
    data = b"\x02k\x02v"
    assert kernel.read_headers(data, 0, 1) == ((b"k", b"v"),)
    with pytest.raises(ValueError):
        kernel.read_headers(data, position, count)


@_forms
@examples(40)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-5, 5))
def test_batches_are_passed_over_in_the_log(kernel: Any, position: int, size: int, first: int) -> None:
    """Whatever positions, sizes and the first index are: a ValueError, or batches that are there."""
    positions, sizes = longs(1), ints(1)
    positions[0], sizes[0] = position, size
    try:
        kernel.skip_uneventful(_LOG, positions, sizes, first, 0)
    except ValueError:
        return
    assert first == 1 or (first == 0 and position >= 0 and size >= 61 and position + size <= len(_LOG))
