# SPDX-License-Identifier: Apache-2.0
"""The hot loops: batch headers, checksums, records to columns, columns to objects, bytes and text, and encoding.

This is ordinary Python with types. Compiled by Cython it runs at the speed of C; otherwise it is interpreted, with the
same results. ``raftlog.records.kernel_choice`` picks the form: import that.

Loops take memoryviews, except for ``plain_append``, and trust no length: every index is checked against an end before
use. Wrong bytes raise no error; the result is the number of the broken rule, its index in ``RULE_IDS``.
``raftlog.records.reference`` states the same rules in slow and plain code.

No argument can make a function read or write out of bounds. Columns are checked as they are used, and each number is
read only once, since another thread may change them meanwhile. An impossible number is a ValueError; the contents of
output columns are then undefined (DECISIONS.md, 45).
"""

from __future__ import annotations

import array
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.cpython.bytearray import PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.object import PyObject
    from cython.cimports.cpython.ref import Py_INCREF
    from cython.cimports.cpython.tuple import PyTuple_GetItem, PyTuple_New, PyTuple_SetItem
    from cython.cimports.crc_instruction import crc32c_by_instruction, prepare_crc_instruction
    from cython.cimports.libc.string import memcpy
    from cython.cimports.python_objects import PyObject_GC_UnTrack
    from cython.cimports.wide_product import high_of_product

RULE_IDS = (
    "",
    "tail-torn",
    "batch-length",
    "batch-magic",
    "batch-crc",
    "varint-length",
    "varint-range",
    "record-length",
    "record-end",
    "record-field",
    "record-headers",
    "record-header-key",
    "batch-count",
    "batch-missing",
    "batch-trailing",
)
"""The rule of each number; 0 means none."""

_TAIL_TORN = cython.declare(cython.int, 1)
_BATCH_LENGTH = cython.declare(cython.int, 2)
_BATCH_MAGIC = cython.declare(cython.int, 3)
_BATCH_CRC = cython.declare(cython.int, 4)
_VARINT_LENGTH = cython.declare(cython.int, 5)
_VARINT_RANGE = cython.declare(cython.int, 6)
_RECORD_LENGTH = cython.declare(cython.int, 7)
_RECORD_END = cython.declare(cython.int, 8)
_RECORD_FIELD = cython.declare(cython.int, 9)
_RECORD_HEADERS = cython.declare(cython.int, 10)
_RECORD_HEADER_KEY = cython.declare(cython.int, 11)
_BATCH_COUNT = cython.declare(cython.int, 12)
_BATCH_MISSING = cython.declare(cython.int, 13)
_BATCH_TRAILING = cython.declare(cython.int, 14)
_NO_RULE = cython.declare(cython.int, 99)

IS_COMPILED: bool = bool(cython.compiled)
"""Whether this is the compiled form."""

HAS_CRC_INSTRUCTION: bool = bool(cython.compiled and prepare_crc_instruction())
"""Whether CRCs are computed by the processor's CRC instruction, not by tables."""

SMALL_BATCH = 1 << 62 if HAS_CRC_INSTRUCTION else 2048 if cython.compiled else 0
"""The CRC of batches below this size in bytes is checked here; for larger ones the crc32c package is faster."""

_BATCH_OVERHEAD = cython.declare(cython.Py_ssize_t, 61)
_LOG_OVERHEAD = cython.declare(cython.Py_ssize_t, 12)
_INT32_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
_CRC_POSITION = cython.declare(cython.Py_ssize_t, 17)
_USUAL_RECORDS = cython.declare(cython.uint, 1 << 20)
_MAX_VARINT_SIZE = cython.declare(cython.Py_ssize_t, 10)
_USUAL_RECORD_SIZE = cython.declare(cython.Py_ssize_t, 128)
_LARGE_FIELD = cython.declare(cython.Py_ssize_t, 256)
_SUM_PRIME = cython.declare(cython.ulonglong, 0x7FFFFFFF)

Batch = TypeVar("Batch", bound=tuple[int, ...])
Info = TypeVar("Info", bound=tuple[int, int])

Row = (
    tuple[int, bytes | None, bytes | None]
    | tuple[int, bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]
)
"""The fields of a record to write: timestamp in ms, key, value, and headers if it has any."""

Prepared = tuple[bytearray, bytearray, list[bytes]] | list[list[bytes]]
"""Prepared records, which ``encode`` assembles.

Compiled: the bytes of the records except for large keys and values, the positions of those (int64), and those fields
themselves, so that each is copied only once. Interpreted: slabs of rows, each as its parts, joined unless they are
large.
"""


def _crc_tables() -> array.array[int]:
    """Make the tables of CRC-32C for sixteen bytes at a time."""
    tables = array.array("I", bytes(4 * 16 * 256))
    for index in range(256):
        crc = index
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
        tables[index] = crc
    for index in range(256, 16 * 256):
        before = tables[index - 256]
        tables[index] = before >> 8 ^ tables[before & 0xFF]
    return tables


_CRC_TABLES = _crc_tables()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _big_endian(data: cython.pointer(cython.const[cython.uchar])) -> cython.uint:
    """Read four bytes, each relative to the same pointer, which compilers turn into a single load."""
    return (
        cython.cast(cython.uint, data[0]) << 24
        | cython.cast(cython.uint, data[1]) << 16
        | cython.cast(cython.uint, data[2]) << 8
        | data[3]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _little_endian(data: cython.pointer(cython.const[cython.uchar])) -> cython.uint:
    """Read four bytes, the lowest one first."""
    return (
        cython.cast(cython.uint, data[3]) << 24
        | cython.cast(cython.uint, data[2]) << 16
        | cython.cast(cython.uint, data[1]) << 8
        | data[0]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bytes_at(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.pointer(
    cython.const[cython.uchar]
):
    """Return a pointer to one or more bytes; in builds with bounds checks, the last one is checked."""
    cython.address(view[at + size - 1])
    return cython.address(view[at])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int32_of(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.int:
    """Read a big-endian int32."""
    if not cython.compiled:
        return _int32(source, at)
    return cython.cast(cython.int, _big_endian(source + at))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uint32_of(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    """Read a big-endian uint32."""
    if not cython.compiled:
        return _uint32(source, at)
    return _big_endian(source + at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int64_of(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.longlong:
    """Read a big-endian int64."""
    if not cython.compiled:
        return _int64(source, at)
    high: cython.ulonglong = _big_endian(source + at)
    return cython.cast(cython.longlong, high << 32 | _big_endian(source + at + 4))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _four_bytes(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    """Return four bytes as one number, the first of them the lowest."""
    if not cython.compiled:
        return int.from_bytes(source[at : at + 4], "little")
    return _little_endian(source + at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _two_bytes(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    """Return two bytes as one number, the first of them the lowest."""
    return source[at] | cython.cast(cython.uint, source[at + 1]) << 8


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _eight_bytes(source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.ulonglong:
    """Return eight bytes as one number, the first of them the lowest."""
    return _four_bytes(source, at) | cython.cast(cython.ulonglong, _four_bytes(source, at + 4)) << 32


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int16(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.int:
    """Read a big-endian int16."""
    return (cython.cast(cython.int, view[at] ^ 0x80) - 0x80) * 256 + view[at + 1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int32(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.int:
    """Read a big-endian int32."""
    if not cython.compiled:
        return int.from_bytes(view[at : at + 4], "big", signed=True)
    return _int32_of(_bytes_at(view, at, 4), 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uint32(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.uint:
    """Read a big-endian uint32."""
    if not cython.compiled:
        return int.from_bytes(view[at : at + 4], "big")
    return _uint32_of(_bytes_at(view, at, 4), 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int64(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.longlong:
    """Read a big-endian int64."""
    if not cython.compiled:
        return int.from_bytes(view[at : at + 8], "big", signed=True)
    return _int64_of(_bytes_at(view, at, 8), 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uint32_reversed(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.uint:
    """Read a little-endian uint32."""
    if not cython.compiled:
        return int.from_bytes(view[at : at + 4], "little")
    return _little_endian(_bytes_at(view, at, 4))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _crc_of_word(tables: cython.const[cython.uint][::1], distance: cython.Py_ssize_t, word: cython.uint) -> cython.uint:
    """Return the contribution of four bytes, lowest first, to the CRC ``distance`` bytes later."""
    return (
        tables[(distance + 3) * 256 + (word & 0xFF)]
        ^ tables[(distance + 2) * 256 + (word >> 8 & 0xFF)]
        ^ tables[(distance + 1) * 256 + (word >> 16 & 0xFF)]
        ^ tables[distance * 256 + (word >> 24)]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _crc32c(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    tables: cython.const[cython.uint][::1],
    by_instruction: cython.bint,
) -> cython.uint:
    """Compute the CRC-32C of ``[at, end)``, at least one byte: by tables in steps of sixteen bytes, then of four."""
    if cython.compiled and by_instruction:
        return crc32c_by_instruction(_bytes_at(view, at, end - at), end - at)
    ones: cython.uint = 0xFFFFFFFF
    crc: cython.uint = ones
    while at + 16 <= end:
        crc = (
            _crc_of_word(tables, 0, _uint32_reversed(view, at + 12))
            ^ _crc_of_word(tables, 4, _uint32_reversed(view, at + 8))
            ^ _crc_of_word(tables, 8, _uint32_reversed(view, at + 4))
            ^ _crc_of_word(tables, 12, _uint32_reversed(view, at) ^ crc)  # Last: no other needs it.
        )
        at += 16
    while at + 4 <= end:
        crc = _crc_of_word(tables, 0, _uint32_reversed(view, at) ^ crc)
        at += 4
    while at < end:
        crc = crc >> 8 ^ tables[(crc ^ view[at]) & 0xFF]
        at += 1
    return crc ^ ones


@cython.cfunc
@cython.inline
def _require(holds: cython.bint, what: str) -> None:
    """Refuse impossible arguments.

    Raises:
        ValueError: the condition is false; ``what`` is the text.
    """
    if not holds:
        raise ValueError(what)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _checked(position: cython.longlong, last: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return a position, or -1 if it is negative or after ``last``."""
    return -1 if position < 0 or position > last else cython.cast(cython.Py_ssize_t, position)


_NO_HEADER = "a position without a whole header"
_NO_BATCH = "a batch that is not in the log"
_NO_ROOM = "a column that is too short"
_NO_TEMPLATE = "a template that lacks a mark, or is too long"
_NO_FIELD = "a field that is not in the data, or has no room"


def checksum(view: cython.const[cython.uchar][::1]) -> int:
    """Return the CRC-32C of a buffer, by the code that checks small batches."""
    return _crc32c(view, 0, len(view), _CRC_TABLES, HAS_CRC_INSTRUCTION) if len(view) else 0


def scan(
    view: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    positions: cython.longlong[::1],
    sizes: cython.int[::1],
    unchecked: cython.int[::1],
) -> tuple[int, int, int, int]:
    """Find the adjacent sound batches of magic 2 from ``start`` on.

    The search ends at a small batch whose CRC does not match. The CRC of batches of ``SMALL_BATCH`` bytes and more is
    not checked.

    Args:
        view: the log.
        start: position of the first batch.
        positions, sizes: columns to fill; their length limits the number of batches.
        unchecked: a column of the same length to fill: the index of each batch whose CRC was not checked.

    Returns:
        The number of batches, that of unchecked ones, the position after the last one, and the number of the rule that
        the bytes there break: 0 if the columns are full or the end is reached.

    Raises:
        ValueError: the start is negative.
    """
    _require(start >= 0, "a start before the log")
    tables: cython.const[cython.uint][::1] = _CRC_TABLES
    by_instruction: cython.bint = HAS_CRC_INSTRUCTION
    end: cython.Py_ssize_t = len(view)
    capacity: cython.Py_ssize_t = min(len(positions), len(sizes), len(unchecked))
    small: cython.Py_ssize_t = SMALL_BATCH
    at: cython.Py_ssize_t = start
    count: cython.Py_ssize_t = 0
    unchecked_count: cython.Py_ssize_t = 0
    rule: cython.int = 0
    size: cython.Py_ssize_t
    with cython.nogil:
        while at < end and count < capacity:
            if end - at < 17:
                rule = _TAIL_TORN
                break
            size = cython.cast(cython.Py_ssize_t, _int32(view, at + 8)) + _LOG_OVERHEAD
            if size < 14 + _LOG_OVERHEAD:
                rule = _BATCH_LENGTH
                break
            if size > end - at:
                rule = _TAIL_TORN
                break
            if view[at + 16] != 2:
                rule = _BATCH_MAGIC
                break
            if size < _BATCH_OVERHEAD:
                rule = _BATCH_LENGTH
                break
            if size >= small:
                unchecked[unchecked_count] = count
                unchecked_count += 1
            elif _crc32c(view, at + 21, at + size, tables, by_instruction) != _uint32(view, at + 17):
                rule = _BATCH_CRC
                break
            positions[count] = at
            sizes[count] = size
            count += 1
            at += size
    return count, unchecked_count, at, rule


def header_field(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    field_position: cython.Py_ssize_t,
    width: cython.int,
    column: cython.longlong[::1],
) -> None:
    """Read one big-endian field of 2, 4 or 8 bytes of every batch header into a column.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.
        field_position: position of the field in the header.
        width: width of the field in bytes.
        column: the column to fill; as long as ``positions``.

    Raises:
        ValueError: no header has such a field, a header is out of bounds, or the column is too short.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t
    _require(width in (2, 4, 8) and 0 <= field_position <= _BATCH_OVERHEAD - width, "no field of a header")
    _require(len(column) >= count, _NO_ROOM)
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            at += field_position
            if width == 8:
                column[index] = _int64(view, at)
            elif width == 4:
                column[index] = _int32(view, at)
            else:
                column[index] = _int16(view, at)
            index += 1
    _require(index == count, _NO_HEADER)


def all_attributes(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
) -> int:
    """Return the bits of the lower attribute byte that are set in at least one batch.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.

    Raises:
        ValueError: a header is out of bounds.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    bits: cython.int = 0
    index: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            bits |= view[at + 22]
            index += 1
    _require(index == count, _NO_HEADER)
    return bits


def last_offsets(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    column: cython.longlong[::1],
) -> None:
    """Write the last offset of every batch, by its header, into a column; beyond 64 bits it wraps.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.
        column: the column to fill; as long as ``positions``.

    Raises:
        ValueError: a header is out of bounds, or the column is too short.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t
    _require(len(column) >= count, _NO_ROOM)
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            column[index] = _wrapped_sum(_int64(view, at), _int32(view, at + 23))
            index += 1
    _require(index == count, _NO_HEADER)


def header_facts(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
) -> tuple[int, int, int, int, int, int, int]:
    """Summarize the headers of batches in a few numbers.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.

    Returns:
        The bits that are set in the attributes of at least one batch; the bits that are set in the producer id,
        producer epoch and base sequence of every batch (-1: no batch has any of these); the least epoch; the least and
        the greatest timestamp (base timestamps count only for the least); the number of records, without negative
        counts; and flags: 1 a batch has a negative offset or delta, or ends beyond 64 bits; 2 a batch starts before the
        end of the preceding one; 4 a batch does not start at the end of the preceding one; 8 a batch does not have one
        record per offset; 16 an epoch is below that of the preceding batch; 32 a max timestamp is. If 1 is set, 2 and 4
        may be missing.

    Raises:
        ValueError: a header is out of bounds.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    all_attributes: cython.int = 0
    shared_producers: cython.longlong = -1
    least_epoch: cython.longlong = _INT32_MAX
    least_timestamp: cython.longlong = 0x7FFFFFFFFFFFFFFF
    greatest_timestamp: cython.longlong = ~least_timestamp
    record_count: cython.longlong = 0
    bits: cython.int = 0
    end_before: cython.longlong = 0
    epoch_before: cython.longlong = 0
    timestamp_before: cython.longlong = 0
    index: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t
    start: cython.longlong
    delta: cython.longlong
    epoch: cython.longlong
    timestamp: cython.longlong
    records: cython.longlong
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            start = _int64(view, at)
            delta = _int32(view, at + 23)
            epoch = _int32(view, at + 12)
            timestamp = _int64(view, at + 35)
            records = _int32(view, at + 57)
            if start < 0 or delta < 0 or start >= _INT64_MAX - delta:
                bits |= 1
            elif index > 0 and start != end_before:
                bits |= 6 if start < end_before else 4
            if records != delta + 1:
                bits |= 8
            if index > 0 and epoch < epoch_before:
                bits |= 16
            if index > 0 and timestamp < timestamp_before:
                bits |= 32
            all_attributes |= _int16(view, at + 21)
            shared_producers &= _int64(view, at + 43) & _int16(view, at + 51) & _int32(view, at + 53)
            least_epoch = min(least_epoch, epoch)
            least_timestamp = min(least_timestamp, timestamp, _int64(view, at + 27))
            greatest_timestamp = max(greatest_timestamp, timestamp)
            record_count += max(records, 0)
            end_before = _wrapped_sum(start, delta + 1)
            epoch_before = epoch
            timestamp_before = timestamp
            index += 1
    _require(index == count, _NO_HEADER)
    return all_attributes, shared_producers, least_epoch, least_timestamp, greatest_timestamp, record_count, bits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_batch(start: cython.ulonglong, delta: cython.ulonglong, epoch_and_crc: cython.ulonglong) -> cython.ulonglong:
    """Hash three numbers into one, so that each bit depends on all of their bits; ends with SplitMix64's mixing."""
    if not cython.compiled:
        value = start * 0x9E3779B97F4A7C15 + delta * 0xC2B2AE3D27D4EB4F + epoch_and_crc * 0x165667B19E3779F9
        value &= 0xFFFFFFFFFFFFFFFF
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        value = (value ^ value >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        return value ^ value >> 31
    mixed: cython.ulonglong = (
        start * cython.cast(cython.ulonglong, 0x9E3779B97F4A7C15)
        + delta * cython.cast(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
        + epoch_and_crc * cython.cast(cython.ulonglong, 0x165667B19E3779F9)
    )
    mixed = (mixed ^ mixed >> 30) * cython.cast(cython.ulonglong, 0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> 27) * cython.cast(cython.ulonglong, 0x94D049BB133111EB)
    return mixed ^ mixed >> 31


def timestamp_steps(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    greatest: cython.longlong,
) -> tuple[int, int, int]:
    """Count the batches whose max timestamp, if not negative, is below that of an earlier batch.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.
        greatest: the greatest max timestamp of the batches before these.

    Returns:
        How many there are, the largest difference, and the index of the first.

    Raises:
        ValueError: a header is out of bounds.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = 0
    batches: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t
    first: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    longest: cython.longlong = 0
    timestamp: cython.longlong
    with cython.nogil:
        while index < batches:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            timestamp = _int64(view, at + 35)
            if timestamp >= greatest:
                greatest = timestamp
            elif timestamp >= 0:
                if count == 0:
                    first = index
                count += 1
                longest = max(longest, greatest - timestamp)
            index += 1
    _require(index == batches, _NO_HEADER)
    return count, longest, first


def digest_blocks(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    block_bits: cython.int,
    blocks: cython.longlong[::1],
) -> int:
    """Sum the hashes of batches per block of offsets.

    The hash of a batch covers its base offset, last offset delta, epoch and CRC. Its base offset decides the block.

    Args:
        view: the log.
        positions: of the batches; each is followed by a whole header.
        block_bits: a block has 2 to this many offsets.
        blocks: six columns to fill, as long as ``positions`` each: the number of a block, how many batches it has, the
            sum of their hashes modulo 2^64, the base offset of the first, the greatest last offset, and the index of
            the first. A block that recurs after another one gets another row.

    Returns:
        How many rows were filled.

    Raises:
        ValueError: a header is out of bounds, the columns are too short, or ``block_bits`` is out of range.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t = len(positions)
    row: cython.Py_ssize_t = -1
    start: cython.longlong
    delta: cython.longlong
    last: cython.longlong
    word: cython.ulonglong
    _require(0 <= block_bits < 64, "blocks of 2 to the power of less than 0 or more than 63")
    _require(len(blocks) // 6 >= count, _NO_ROOM)
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            start = _int64(view, at)
            delta = _int32(view, at + 23)
            last = _wrapped_sum(start, delta)
            if row < 0 or blocks[row] != start >> block_bits:
                row += 1
                blocks[row] = start >> block_bits
                blocks[count + row] = 0
                blocks[2 * count + row] = 0
                blocks[3 * count + row] = start
                blocks[4 * count + row] = last
                blocks[5 * count + row] = index
            word = _uint32(view, at + 12)
            word = _mixed_batch(_bits_of(start), _bits_of(delta), word << 32 | _uint32(view, at + 17))
            blocks[count + row] += 1
            blocks[2 * count + row] = _wrapped_sum(blocks[2 * count + row], _from_bits(word))
            blocks[4 * count + row] = max(blocks[4 * count + row], last)
            index += 1
    _require(index == count, _NO_HEADER)
    return row + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bits_of(value: cython.longlong) -> cython.ulonglong:
    """Reinterpret a signed number as an unsigned one."""
    return value & 0xFFFFFFFFFFFFFFFF if not cython.compiled else cython.cast(cython.ulonglong, value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _from_bits(value: cython.ulonglong) -> cython.longlong:
    """Reinterpret an unsigned number as a signed one."""
    return _wrapped_sum(value, 0) if not cython.compiled else cython.cast(cython.longlong, value)


def record_areas(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.int][::1],
    areas: cython.longlong[::1],
) -> tuple[int, int]:
    """Fill the columns that ``walk`` needs: six, one after the other, each as long as ``positions``.

    They are: the start and the end of the stored record area, the record count, the base offset, the timestamp that
    deltas are added to, and a mask for timestamp deltas: all bits (-1), or none (0) if LogAppendTime gives every record
    the same timestamp.

    Args:
        view: the log.
        positions, sizes: of the batches.
        areas: the columns to fill.

    Returns:
        The number of compressed batches, and the number of records in all other batches: the headers' counts, limited
            to what their bytes can hold.

    Raises:
        ValueError: a header is out of bounds, or a column is too short.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t = len(positions)
    record_count: cython.longlong
    total: cython.longlong = 0
    compressed: cython.Py_ssize_t = 0
    append_time: cython.bint
    _require(len(sizes) >= count and len(areas) // 6 >= count, _NO_ROOM)
    with cython.nogil:
        while index < count:
            at = _checked(positions[index], last_header)
            if at < 0:
                break
            append_time = (view[at + 22] & 8) != 0
            areas[index] = at + _BATCH_OVERHEAD
            areas[count + index] = at + sizes[index]
            record_count = _int32(view, at + 57)
            areas[2 * count + index] = record_count
            areas[3 * count + index] = _int64(view, at)
            areas[4 * count + index] = _int64(view, at + (35 if append_time else 27))
            areas[5 * count + index] = 0 if append_time else -1
            if view[at + 22] & 7:
                compressed += 1
            elif record_count > 0:
                total += min(record_count, (sizes[index] - _BATCH_OVERHEAD) // 7)
            index += 1
    _require(index == count, _NO_HEADER)
    return compressed, total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uvarint(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, bits: cython.int
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    """Read an unsigned varint of at most 32 or 64 bits.

    A negative position is the negated number of a broken rule. It is passed through, so that a caller can check once,
    at the end.
    """
    if at < 0:
        return 0, at
    if at < end and view[at] < 0x80:  # Most are one byte and skip the loop.
        return view[at], at + 1
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    last_shift: cython.int = 28 if bits == 32 else 63
    while at < end and shift <= last_shift:
        byte = view[at]
        at += 1
        if shift == last_shift and byte < 0x80 and byte >> (bits - shift):
            return 0, -_VARINT_RANGE
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -_VARINT_LENGTH


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(raw: cython.ulonglong) -> cython.longlong:
    return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrapped_sum(left: cython.longlong, right: cython.longlong) -> cython.longlong:
    """Add with wraparound, as Java does."""
    if not cython.compiled:
        return (left + right + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000
    return cython.cast(cython.longlong, cython.cast(cython.ulonglong, left) + cython.cast(cython.ulonglong, right))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    area_end: cython.Py_ssize_t,
    least: cython.longlong,
    rule: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """Read a size of at least ``least`` that fits before ``end``, unless it is -1.

    A negative position is the negated number of a broken rule.
    """
    raw: cython.ulonglong
    size: cython.longlong
    raw, at = _uvarint(view, at, area_end, 32)
    size = _zigzag(raw)
    if at >= 0 and (size < least or (size > end - at and size != -1)):
        return 0, -rule
    return size, at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skip_headers(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    area_end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.Py_ssize_t:
    """Return the position after a record's headers, or the negated number of a broken rule."""
    size: cython.longlong
    while count > 0 and at >= 0:
        count -= 1
        size, at = _size(view, at, end, area_end, 0, _RECORD_HEADER_KEY)
        if at >= 0:
            size, at = _size(view, at + size, end, area_end, -1, _RECORD_FIELD)
        if size > 0:
            at += size
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _short_uvarint(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t
) -> tuple[cython.uint, cython.Py_ssize_t]:
    """Read an unsigned varint of one or two bytes, both in bounds; for a longer one, return a larger number."""
    if view[at] < 0x80:
        return view[at], at + 1
    return (view[at] & 0x7F) | cython.cast(cython.uint, view[at + 1]) << 7, at + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _plain_record(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, area_end: cython.Py_ssize_t
) -> tuple[
    cython.uint,
    cython.uint,
    cython.Py_ssize_t,
    cython.uint,
    cython.Py_ssize_t,
    cython.uint,
    cython.Py_ssize_t,
]:
    """Read a usual record: sound, without headers, with varints of one or two bytes. ``_walk_record`` reads all others.

    Returns:
        Timestamp delta, offset delta, position and size of key and value, all as stored, and the position after the
        record, or 0 if it is not a usual record.
    """
    size: cython.uint
    timestamp_delta: cython.uint
    offset_delta: cython.uint
    key: cython.Py_ssize_t
    key_size: cython.uint
    value: cython.Py_ssize_t
    value_size: cython.uint
    if area_end - at < 16:
        return 0, 0, 0, 0, 0, 0, 0
    size, at = _short_uvarint(view, at)
    end: cython.Py_ssize_t = at + (size >> 1)
    timestamp_delta, at = _short_uvarint(view, at + 1)  # After the attributes.
    offset_delta, at = _short_uvarint(view, at)
    key_size, key = _short_uvarint(view, at)
    at = key + (key_size >> 1)
    if end > area_end or at + 2 > end:
        return 0, 0, 0, 0, 0, 0, 0
    value_size, value = _short_uvarint(view, at)
    if value + (value_size >> 1) != end - 1 or view[end - 1] != 0:
        return 0, 0, 0, 0, 0, 0, 0
    if (size | timestamp_delta | offset_delta | key_size | value_size) >> 14 or size & 1:
        return 0, 0, 0, 0, 0, 0, 0
    if (key_size & 1 and key_size != 1) or (value_size & 1 and value_size != 1):  # Negative, and not null.
        return 0, 0, 0, 0, 0, 0, 0
    return timestamp_delta, offset_delta, key, key_size, value, value_size, end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _walk_record(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    area_end: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    timestamp_bits: cython.longlong,
    row: cython.Py_ssize_t,
    wanted: cython.int,
    capacity: cython.Py_ssize_t,
    longs: cython.longlong[::1],
    ints: cython.int[::1],
) -> cython.Py_ssize_t:
    """Read a record into a row; return the position after it, or the negated number of a broken rule."""
    raw: cython.ulonglong
    size: cython.longlong
    timestamp_delta: cython.uint
    offset_delta: cython.uint
    key: cython.Py_ssize_t
    key_size: cython.uint
    value: cython.Py_ssize_t
    value_size: cython.uint
    plain_end: cython.Py_ssize_t
    timestamp_delta, offset_delta, key, key_size, value, value_size, plain_end = _plain_record(view, at, area_end)
    if plain_end != 0:
        if wanted & 1:
            longs[row] = _wrapped_sum(base_offset, _zigzag(offset_delta))
        if wanted & 2:
            longs[capacity + row] = _wrapped_sum(base_timestamp, _zigzag(timestamp_delta) & timestamp_bits)
        if wanted & 4:
            ints[row] = key
            ints[capacity + row] = _zigzag(key_size)
        if wanted & 8:
            ints[2 * capacity + row] = value
            ints[3 * capacity + row] = _zigzag(value_size)
        if wanted & 16:
            ints[4 * capacity + row] = plain_end
            ints[5 * capacity + row] = 0
        return plain_end
    size, at = _size(view, at, area_end, area_end, 0, _RECORD_LENGTH)
    if at < 0:
        return at
    if size == 0:
        return -_RECORD_END
    end: cython.Py_ssize_t = at + cython.cast(cython.Py_ssize_t, size)
    raw, at = _uvarint(view, at + 1, area_end, 64)  # After the attributes.
    if wanted & 2:
        longs[capacity + row] = _wrapped_sum(base_timestamp, _zigzag(raw) & timestamp_bits)
    raw, at = _uvarint(view, at, area_end, 32)
    if wanted & 1:
        longs[row] = _wrapped_sum(base_offset, _zigzag(raw))
    size, at = _size(view, at, end, area_end, -1, _RECORD_FIELD)
    if wanted & 4:
        ints[row] = at
        ints[capacity + row] = size
    if size > 0:
        at += size
    size, at = _size(view, at, end, area_end, -1, _RECORD_FIELD)
    if wanted & 8:
        ints[2 * capacity + row] = at
        ints[3 * capacity + row] = size
    if size > 0:
        at += size
    size, at = _size(view, at, end, area_end, 0, _RECORD_HEADERS)
    if wanted & 16:
        ints[4 * capacity + row] = at
        ints[5 * capacity + row] = size
    if size > 0:
        at = _skip_headers(view, at, end, area_end, size)
    return at if at < 0 or at == end else -_RECORD_END


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _walk_batch(
    view: cython.const[cython.uchar][::1],
    areas: cython.const[cython.longlong][::1],
    batches: cython.Py_ssize_t,
    batch: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    wanted: cython.int,
    capacity: cython.Py_ssize_t,
    longs: cython.longlong[::1],
    ints: cython.int[::1],
) -> cython.Py_ssize_t:
    """Read the records of a batch into rows; return the row after them, or the negated number of a broken rule.

    If the area is out of bounds, or may have more records than rows are left, the result is ``-_NO_RULE``.
    """
    at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, areas[batch])
    area_end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, areas[batches + batch])
    left: cython.longlong = areas[2 * batches + batch]
    base_offset: cython.longlong = areas[3 * batches + batch]
    base_timestamp: cython.longlong = areas[4 * batches + batch]
    timestamp_bits: cython.longlong = areas[5 * batches + batch]
    if at < 0 or at > area_end or area_end > len(view) or area_end > _INT32_MAX:
        return -_NO_RULE
    if left < 0:
        return -_BATCH_COUNT
    if min(left, (area_end - at) // 7 + 1) > capacity - row:  # One more, which a bad record may have filled.
        return -_NO_RULE
    while left > 0:
        if at == area_end:
            return -_BATCH_MISSING
        at = _walk_record(
            view, at, area_end, base_offset, base_timestamp, timestamp_bits, row, wanted, capacity, longs, ints
        )
        if at < 0:
            return at
        row += 1
        left -= 1
    return row if at == area_end else -_BATCH_TRAILING


def walk(
    view: cython.const[cython.uchar][::1],
    areas: cython.const[cython.longlong][::1],
    first: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    wanted: cython.int,
    capacity: cython.Py_ssize_t,
    longs: cython.longlong[::1],
    ints: cython.int[::1],
    ends: cython.longlong[::1],
) -> tuple[int, int]:
    """Read the records of some batches into columns.

    Args:
        view: contains the uncompressed record areas.
        areas: the columns of ``record_areas``, each as long as ``ends``.
        first: index of the batch to start with.
        row: the row to start with.
        wanted: which columns to fill, as flags: 1 offsets, 2 timestamps, 4 keys, 8 values, 16 headers.
        capacity: the length of a column of records. One row per 7 bytes of the areas, plus one, is enough.
        longs: two columns to fill: offset, timestamp.
        ints: six columns to fill: key position, key size, value position, value size, header position, header count. A
            null key or value has size -1.
        ends: a column to fill: for each batch, the row after its last record.

    Returns:
        The index of the batch that could not be read (or the number of batches), and the number of the rule that it
        breaks (or 0). Ignore the rows of such a batch.

    Raises:
        ValueError: a record area is not in ``view``, or a column is too short.
    """
    batches: cython.Py_ssize_t = len(ends)
    batch: cython.Py_ssize_t = first
    _require(0 <= first <= batches and 0 <= row <= capacity, "a batch or a row that is not there")
    _require(len(areas) // 6 >= batches and capacity <= min(len(longs) // 2, len(ints) // 6), _NO_ROOM)
    with cython.nogil:
        while batch < batches:
            row = _walk_batch(view, areas, batches, batch, row, wanted, capacity, longs, ints)
            if row < 0:
                break
            ends[batch] = row
            batch += 1
    _require(row != -_NO_RULE, _NO_FIELD)
    return batch, 0 if batch == batches else -row


def summarize(
    view: cython.const[cython.uchar][::1],
    areas: cython.const[cython.longlong][::1],
    log: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    summaries: cython.longlong[::1],
) -> tuple[int, int, int]:
    """Read the records of some batches, and summarize each batch in four numbers.

    They are, column after column: the first record's offset, the last one's, the greatest timestamp, and flags: 1
    offsets do not increase, 2 they leave one out, 4 they go beyond those of the batch, 8 a timestamp is not the base
    timestamp, 16 the greatest is not the batch's max timestamp, 32 a record has headers, 64 a record has a key, 128 a
    record has no value or an empty one. A batch without records has 0, -1, -1 and 0.

    Args:
        view: contains the uncompressed record areas.
        areas: the columns of ``record_areas``; only the first three are used. Empty if ``view`` is the log and no batch
            is compressed.
        log: contains the batches.
        positions, sizes: of the batches in the log.
        first: index of the batch to start with.
        summaries: the columns to fill, each as long as ``positions``.

    Returns:
        The index of the batch that could not be read (or the number of batches), the number of the rule that it breaks
        (or 0), and the flags of all batches that were read. Ignore the row of the batch that could not be read.

    Raises:
        ValueError: a header is out of bounds, a record area is not in ``view``, or a column is too short.
    """
    last_header: cython.Py_ssize_t = len(log) - _BATCH_OVERHEAD
    batches: cython.Py_ssize_t = len(positions)
    batch: cython.Py_ssize_t = first
    is_in_log: cython.bint = len(areas) == 0
    header: cython.Py_ssize_t
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    count: cython.longlong
    rule: cython.int = 0
    bits: cython.longlong = 0
    longs: cython.longlong[::1] = array.array("q", (0, 0))
    ints: cython.int[::1] = array.array("i", (0, 0, 0, 0, 0, 0))
    _require(0 <= first <= batches, "a batch that is not there")
    _require(is_in_log or len(areas) // 3 >= batches, _NO_ROOM)
    _require(len(sizes) >= batches and len(summaries) // 4 >= batches, _NO_ROOM)
    with cython.nogil:
        while batch < batches:
            header = _checked(positions[batch], last_header)
            if header < 0:
                rule = _NO_RULE
                break
            if is_in_log:
                at = header + _BATCH_OVERHEAD
                end = header + sizes[batch]
                count = _int32(log, header + 57)
            else:
                at = cython.cast(cython.Py_ssize_t, areas[batch])
                end = cython.cast(cython.Py_ssize_t, areas[batches + batch])
                count = areas[2 * batches + batch]
            if at < 0 or at > end or end > len(view) or end > _INT32_MAX:
                rule = _NO_RULE
                break
            rule = _summarize_batch(view, at, end, count, log, header, batches, batch, summaries, longs, ints)
            if rule != 0:
                break
            bits |= summaries[3 * batches + batch]
            batch += 1
    _require(rule != _NO_RULE, _NO_FIELD)
    return batch, rule, bits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _summarize_batch(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    area_end: cython.Py_ssize_t,
    count: cython.longlong,
    log: cython.const[cython.uchar][::1],
    header: cython.Py_ssize_t,
    batches: cython.Py_ssize_t,
    batch: cython.Py_ssize_t,
    summaries: cython.longlong[::1],
    longs: cython.longlong[::1],
    ints: cython.int[::1],
) -> cython.int:
    """Summarize a batch, using columns of a single row as scratch space; return the number of a broken rule, or 0."""
    append_time: cython.bint = (log[header + 22] & 8) != 0
    base_offset: cython.longlong = _int64(log, header)
    base_timestamp: cython.longlong = _int64(log, header + (35 if append_time else 27))
    left: cython.longlong = count
    first_offset: cython.longlong = 0
    last_offset: cython.longlong = -1
    greatest: cython.longlong = -1
    bits: cython.longlong = 0
    offset: cython.longlong
    timestamp: cython.longlong
    timestamp_delta: cython.uint
    offset_delta: cython.uint
    _key: cython.Py_ssize_t
    key_size: cython.uint
    _value: cython.Py_ssize_t
    value_size: cython.uint
    plain_end: cython.Py_ssize_t
    if count < 0:
        return _BATCH_COUNT
    while left > 0:
        if at == area_end:
            return _BATCH_MISSING
        timestamp_delta, offset_delta, _key, key_size, _value, value_size, plain_end = _plain_record(view, at, area_end)
        if plain_end != 0:
            at = plain_end
            offset = _wrapped_sum(base_offset, _zigzag(offset_delta))
            timestamp = _wrapped_sum(base_timestamp, _zigzag(timestamp_delta))
            if key_size != 1:
                bits |= 64
            if value_size <= 1:
                bits |= 128
        else:
            at = _walk_record(view, at, area_end, base_offset, base_timestamp, -1, 0, 31, 1, longs, ints)
            if at < 0:
                return cython.cast(cython.int, -at)
            offset = longs[0]
            timestamp = longs[1]
            if ints[5] > 0:
                bits |= 32
            if ints[1] >= 0:
                bits |= 64
            if ints[3] <= 0:
                bits |= 128
        if timestamp != base_timestamp:
            bits |= 8
            if append_time:
                timestamp = base_timestamp
        if left == count:
            first_offset = offset
            greatest = timestamp
            if first_offset != base_offset:
                bits |= 4 if first_offset < base_offset else 2
        else:
            if offset <= last_offset:
                bits |= 1
            elif offset - 1 != last_offset:
                bits |= 2
            greatest = max(greatest, timestamp)
        last_offset = offset
        left -= 1
    if count > 0:
        if last_offset > _wrapped_sum(base_offset, _int32(log, header + 23)):
            bits |= 4
        if greatest != _int64(log, header + 35):
            bits |= 16
    summaries[batch] = first_offset
    summaries[batches + batch] = last_offset
    summaries[2 * batches + batch] = greatest
    summaries[3 * batches + batch] = bits
    return 0 if at == area_end else _BATCH_TRAILING


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotated(value: cython.ulonglong, count: cython.int) -> cython.ulonglong:
    """Rotate 64 bits to the right; in the interpreted form, a number may have more, which are ignored."""
    if not cython.compiled:
        value &= 0xFFFFFFFFFFFFFFFF
        return value >> count | value << (64 - count) & 0xFFFFFFFFFFFFFFFF
    return value >> count | value << (64 - count)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_up(
    left: cython.ulonglong, right: cython.ulonglong, word: cython.ulonglong, prime: cython.ulonglong
) -> tuple[cython.ulonglong, cython.ulonglong]:
    """Multiply ``right + word`` by a prime, and mix the lower 64 bits into ``left``, the higher ones into ``right``."""
    word = right + word
    if not cython.compiled:
        product = (word & 0xFFFFFFFFFFFFFFFF) * prime
        return left ^ product & 0xFFFFFFFFFFFFFFFF, right + (product >> 64)
    return left ^ word * prime, right + high_of_product(word, prime)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_block(
    a: cython.ulonglong,
    b: cython.ulonglong,
    c: cython.ulonglong,
    d: cython.ulonglong,
    first: cython.ulonglong,
    second: cython.ulonglong,
    third: cython.ulonglong,
    fourth: cython.ulonglong,
) -> tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong]:
    """Mix 32 bytes, as four numbers, into the four numbers of a state; ``T1HA2_UPDATE`` of t1ha2.

    In the interpreted form numbers may have more than 64 bits, of which the lower 64 are right.
    """
    even: cython.ulonglong = first + _rotated(third + d, 56) + fourth
    odd: cython.ulonglong = second + _rotated(fourth + c, 19) + third
    return (
        a ^ even * cython.cast(cython.ulonglong, 0xC060724A8424F345),
        b ^ odd * cython.cast(cython.ulonglong, 0xCB5AF53AE3AAAC31),
        c ^ a + _rotated(first, 57),
        d ^ b + _rotated(second, 38),
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _word_before(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return up to eight bytes before ``end`` as one number, the first of them the lowest; zeros follow them."""
    word: cython.ulonglong = 0
    index: cython.Py_ssize_t = min(end, at + 8)
    while index > at:
        index -= 1
        word = word << 8 | view[index]
    return word


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_bytes(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    masks: cython.const[cython.uchar][::1],
    a: cython.ulonglong,
    b: cython.ulonglong,
    c: cython.ulonglong,
    d: cython.ulonglong,
) -> tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong]:
    """Mix bytes that are in ``view``, at least one, and zeros up to a multiple of 32 into the state of a digest."""
    end: cython.Py_ssize_t = at + size
    source: cython.pointer(cython.const[cython.uchar])
    mask: cython.pointer(cython.const[cython.uchar])
    while end - at >= 32:
        source = _bytes_at(view, at, 32) if cython.compiled else view[at : at + 32]
        a, b, c, d = _mixed_block(
            a,
            b,
            c,
            d,
            _eight_bytes(source, 0),
            _eight_bytes(source, 8),
            _eight_bytes(source, 16),
            _eight_bytes(source, 24),
        )
        at += 32
    if at == end:
        return a, b, c, d
    if not cython.compiled or at > len(view) - 32:
        return _mixed_block(
            a,
            b,
            c,
            d,
            _word_before(view, at, end),
            _word_before(view, at + 8, end),
            _word_before(view, at + 16, end),
            _word_before(view, at + 24, end),
        )
    source = _bytes_at(view, at, 32)
    mask = _bytes_at(masks, 32 - (end - at), 32)
    return _mixed_block(
        a,
        b,
        c,
        d,
        _eight_bytes(source, 0) & _eight_bytes(mask, 0),
        _eight_bytes(source, 8) & _eight_bytes(mask, 8),
        _eight_bytes(source, 16) & _eight_bytes(mask, 16),
        _eight_bytes(source, 24) & _eight_bytes(mask, 24),
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_fields(
    view: cython.const[cython.uchar][::1],
    number: cython.longlong,
    key: cython.Py_ssize_t,
    key_size: cython.Py_ssize_t,
    value: cython.Py_ssize_t,
    value_size: cython.Py_ssize_t,
    masks: cython.const[cython.uchar][::1],
    a: cython.ulonglong,
    b: cython.ulonglong,
    c: cython.ulonglong,
    d: cython.ulonglong,
) -> tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong]:
    """Mix a number, a key and a value into the state of a digest; both are in ``view``, or null."""
    sizes: cython.ulonglong = _bits_of(value_size) << 32 | _bits_of(key_size) & cython.cast(cython.uint, 0xFFFFFFFF)
    third: cython.ulonglong = 0
    fourth: cython.ulonglong = 0
    mask: cython.pointer(cython.const[cython.uchar])
    if cython.compiled and key_size > 0 and key <= len(view) - 16:
        mask = _bytes_at(masks, 32 - min(key_size, 16), 16)
        third = _eight_bytes(_bytes_at(view, key, 16), 0) & _eight_bytes(mask, 0)
        fourth = _eight_bytes(_bytes_at(view, key, 16), 8) & _eight_bytes(mask, 8)
    elif key_size > 0:
        third = _word_before(view, key, key + key_size)
        fourth = _word_before(view, key + 8, key + key_size)
    a, b, c, d = _mixed_block(a, b, c, d, _bits_of(number), sizes, third, fourth)
    at: cython.Py_ssize_t = key + 16
    size: cython.Py_ssize_t = key_size - 16
    _step: cython.int
    for _step in range(2):  # One call for both fields, which compilers inline: the state stays in registers.
        if size > 0:
            a, b, c, d = _mixed_bytes(view, at, size, masks, a, b, c, d)
        at = value
        size = value_size
    return (a, b, c, d) if value_size > 0 else _mixed_block(a, b, c, d, 0, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed_size(key_size: cython.Py_ssize_t, value_size: cython.Py_ssize_t) -> cython.ulonglong:
    """Return how many bytes ``_mixed_fields`` mixes."""
    return 32 + (max(key_size, 16) + 15 & ~31) + (max(value_size, 1) + 31 & ~31)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_field(size: cython.Py_ssize_t, position: cython.Py_ssize_t, view_size: cython.Py_ssize_t) -> cython.bint:
    """Say whether a key or a value is null (size -1), or in bounds."""
    return size == -1 or (size >= 0 and 0 <= position <= view_size - size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _header_at(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t]:
    """Return the position and size of a header's key, those of its value (size -1 is null), and the position after it.

    The last is negative if there is no whole header.
    """
    raw: cython.ulonglong
    end: cython.Py_ssize_t = len(view)
    raw, at = _uvarint(view, at, end, 32)
    key_size: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, _zigzag(raw))
    key: cython.Py_ssize_t = at
    if at < 0 or key_size < 0 or key_size > end - at:
        return 0, 0, 0, 0, -1
    raw, at = _uvarint(view, at + key_size, end, 32)
    value_size: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, _zigzag(raw))
    if at < 0 or not _is_field(value_size, at, end):
        return 0, 0, 0, 0, -1
    return key, key_size, at, value_size, at + max(value_size, 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _headers_mixed_size(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, count: cython.Py_ssize_t
) -> cython.longlong:
    """Return how many bytes are mixed for the headers of a record, or -1 if they are out of bounds."""
    total: cython.longlong = 0
    _key: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    _value: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    if count < 0 or at < 0:
        return -1
    while count > 0:
        _key, key_size, _value, value_size, at = _header_at(view, at)
        if at < 0:
            return -1
        total += cython.cast(cython.longlong, _mixed_size(key_size, value_size))
        count -= 1
    return total


_MASKS = b"\xff" * 32 + bytes(32)
"""Starting at 32 - n, the mask of the first n of up to 32 bytes."""


def digest_records(
    view: cython.const[cython.uchar][::1],
    timestamps: cython.const[cython.longlong][::1],
    key_positions: cython.const[cython.int][::1],
    key_sizes: cython.const[cython.int][::1],
    value_positions: cython.const[cython.int][::1],
    value_sizes: cython.const[cython.int][::1],
    header_positions: cython.const[cython.int][::1],
    header_counts: cython.const[cython.int][::1],
    digests: cython.longlong[::1],
) -> None:
    """Hash the contents of each record to 128 bits: its timestamp, key, value and headers.

    Records with the same contents have the same digest, whatever their offsets, batches, codecs and producers. Records
    with other contents have other digests, unless someone has searched for two that agree: the hash is not
    cryptographic.

    It is t1ha2 (``t1ha2_atonce128``, seed 0) of ``encoded_contents`` of ``raftlog.records.reference``. Two contents
    never have the same encoding: it has the size of each field, with -1 for null. Zeros after each field make whole
    blocks of it, so that fields are hashed where they are. t1ha2 was chosen because it needs no special instructions
    and has 256 bits of state, into which it mixes 32 bytes by two multiplications. It fails one of some 250 tests of
    SMHasher3.

    Args:
        view: the bytes that positions refer to.
        timestamps: of the records, in ms; their number is that of the rows.
        key_positions, key_sizes, value_positions, value_sizes, header_positions, header_counts: columns of ``walk``.
            Size -1 is null; the position of a null field, or of no headers, does not count.
        digests: two columns to fill, each as long as ``timestamps``: the lower and the higher 64 bits.

    Raises:
        ValueError: a field or a header is out of bounds, a size is below -1, a count is negative, or a column is too
            short.

    Source: t1ha by Leonid Yuriev, ``src/t1ha2.c``.
    """
    rows: cython.Py_ssize_t = len(timestamps)
    row: cython.Py_ssize_t = 0
    view_size: cython.Py_ssize_t = len(view)
    masks: cython.const[cython.uchar][::1] = _MASKS
    key: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    header: cython.Py_ssize_t
    count: cython.Py_ssize_t
    headers_size: cython.longlong
    length: cython.ulonglong
    number: cython.longlong
    a: cython.ulonglong
    b: cython.ulonglong
    c: cython.ulonglong
    d: cython.ulonglong
    _require(len(key_positions) >= rows and len(key_sizes) >= rows and len(value_positions) >= rows, _NO_ROOM)
    _require(len(value_sizes) >= rows and len(header_positions) >= rows and len(header_counts) >= rows, _NO_ROOM)
    _require(len(digests) // 2 >= rows, _NO_ROOM)
    with cython.nogil:
        while row < rows:
            key = key_positions[row]
            key_size = key_sizes[row]
            value = value_positions[row]
            value_size = value_sizes[row]
            count = header_counts[row]
            header = header_positions[row] if count != 0 else 0
            if not (_is_field(key_size, key, view_size) and _is_field(value_size, value, view_size)):
                break
            length = _mixed_size(key_size, value_size)
            if count != 0:
                headers_size = _headers_mixed_size(view, header, count)
                if headers_size < 0:
                    break
                length += _bits_of(headers_size)
            a = 0
            b = length
            c = _rotated(length, 23) + _bits_of(-1)
            d = length ^ _bits_of(-1)
            number = timestamps[row]
            while True:
                a, b, c, d = _mixed_fields(view, number, key, key_size, value, value_size, masks, a, b, c, d)
                if count == 0:
                    break
                number = 0
                count -= 1
                key, key_size, value, value_size, header = _header_at(view, header)
                if header < 0:
                    break
            if header < 0:
                break
            a, b = _mixed_up(a, b, _rotated(c, 41) ^ d, cython.cast(cython.ulonglong, 0xEC99BF0D8372CAAB))
            b, c = _mixed_up(b, c, _rotated(d, 23) ^ a, cython.cast(cython.ulonglong, 0xCB5AF53AE3AAAC31))
            c, d = _mixed_up(c, d, _rotated(a, 19) ^ b, cython.cast(cython.ulonglong, 0xC060724A8424F345))
            d, a = _mixed_up(d, a, _rotated(b, 31) ^ c, cython.cast(cython.ulonglong, 0x9C06FAF4D023E3AB))
            digests[row] = _from_bits(a ^ b)
            digests[rows + row] = _from_bits(c + d)
            row += 1
    _require(row == rows, _NO_FIELD)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _moved_on(total: cython.ulonglong, base: cython.ulonglong, digit: cython.ulonglong) -> cython.ulonglong:
    """Return ``total * base + digit`` modulo 2**31 - 1, or a little more; so may ``total`` be."""
    total = total * base + digit
    total = (total & _SUM_PRIME) + (total >> 31)
    return (total & _SUM_PRIME) + (total >> 31)


def sum_digests(
    digests: cython.const[cython.longlong][::1],
    starts: cython.const[cython.longlong][::1],
    bases: cython.const[cython.longlong][::1],
    sums: cython.longlong[::1],
) -> None:
    """Sum adjacent runs of records so that their order counts.

    A sum has four lanes, one for each 32 bits of a digest, the lower ones first: the sum of each record's part times
    the power of the lane's base whose exponent is the record's place in its run, modulo 2**31 - 1.

    Args:
        digests: two 64-bit integers per record, one after the other.
        starts: the index of each run's first record, ascending. A run ends where the next one starts.
        bases: four numbers from 0 on, below the modulus, one per lane.
        sums: to fill: four numbers per run, one after the other.

    Raises:
        ValueError: a run is empty or out of bounds, a base is too large, or a column is too short.
    """
    end: cython.Py_ssize_t = len(digests) // 2
    run: cython.Py_ssize_t = len(starts) - 1
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t
    _require(len(bases) >= 4 and len(sums) // 4 > run, _NO_ROOM)
    first: cython.ulonglong = _bits_of(bases[0])
    second: cython.ulonglong = _bits_of(bases[1])
    third: cython.ulonglong = _bits_of(bases[2])
    fourth: cython.ulonglong = _bits_of(bases[3])
    _require(max(first, second, third, fourth) < _SUM_PRIME, "a base that is not below the modulus")
    a: cython.ulonglong
    b: cython.ulonglong
    c: cython.ulonglong
    d: cython.ulonglong
    word: cython.ulonglong
    with cython.nogil:
        while run >= 0:
            start = _checked(starts[run], end - 1)
            if start < 0:
                break
            a = b = c = d = 0
            row = end
            while row > start:  # From the last one on, so that each step is one multiplication per lane.
                row -= 1
                word = _bits_of(digests[2 * row])
                a = _moved_on(a, first, word & cython.cast(cython.uint, 0xFFFFFFFF))
                b = _moved_on(b, second, word >> 32)
                word = _bits_of(digests[2 * row + 1])
                c = _moved_on(c, third, word & cython.cast(cython.uint, 0xFFFFFFFF))
                d = _moved_on(d, fourth, word >> 32)
            sums[4 * run] = a % _SUM_PRIME
            sums[4 * run + 1] = b % _SUM_PRIME
            sums[4 * run + 2] = c % _SUM_PRIME
            sums[4 * run + 3] = d % _SUM_PRIME
            end = start
            run -= 1
    _require(run < 0, "a run of records that is empty, or not in the columns")


def gather(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.int][::1],
    sizes: cython.const[cython.int][::1],
    data_offsets: cython.int[::1],
    validity: cython.uchar[::1],
    data: cython.uchar[::1],
) -> int:
    """Copy keys or values into the three buffers of an Arrow binary column.

    Args:
        view: the bytes that positions refer to.
        positions, sizes: of the rows; size -1 is null.
        data_offsets: to fill: one more than rows.
        validity: to fill: one bit per row; all bytes must be zero.
        data: to fill: as long as all sizes together.

    Returns:
        How many rows are null.

    Raises:
        ValueError: a row is not in ``view``, or an output buffer is too short, or has more than 2^31 - 1 bytes.
    """
    row: cython.Py_ssize_t = 0
    rows: cython.Py_ssize_t = len(positions)
    source: cython.Py_ssize_t
    size: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    nulls: cython.Py_ssize_t = 0
    view_size: cython.Py_ssize_t = len(view)
    data_size: cython.Py_ssize_t = len(data)
    last_source: cython.Py_ssize_t = view_size - 32
    last_target: cython.Py_ssize_t = data_size - 32
    _require(len(sizes) >= rows and len(data_offsets) > rows and len(validity) >= (rows + 7) // 8, _NO_ROOM)
    _require(len(data) <= _INT32_MAX, "more bytes than an Arrow column has")
    with cython.nogil:
        while row < rows:
            data_offsets[row] = at
            size = sizes[row]
            if size < 0:
                nulls += 1
                row += 1
                continue
            validity[row >> 3] |= 1 << (row & 7)
            source = positions[row]
            if cython.compiled and size <= 32 and 0 <= source <= last_source and at <= last_target:
                memcpy(cython.address(data[at]), cython.address(view[source]), 32)  # A constant size is faster.
            elif source < 0 or size > view_size - source or size > data_size - at:
                break
            elif not cython.compiled:
                data[at : at + size] = view[source : source + size]
            elif size > 0:
                memcpy(cython.address(data[at]), cython.address(view[source]), size)
            at += size
            row += 1
        if row == rows:
            data_offsets[rows] = at
    _require(row == rows, _NO_FIELD)
    return nulls


def room(size: cython.Py_ssize_t) -> bytearray:
    """Return a buffer of this many bytes with undefined contents.

    Raises:
        ValueError: the size is negative.
    """
    _require(size >= 0, "room of a negative size")
    if not cython.compiled:
        return bytearray(size)
    made = bytearray()
    PyByteArray_Resize(made, size)
    return made


def total_size(sizes: cython.const[cython.int][::1]) -> int:
    """Sum sizes, counting -1 as nothing."""
    total: cython.longlong = 0
    row: cython.Py_ssize_t
    with cython.nogil:
        for row in range(len(sizes)):
            if sizes[row] > 0:
                total += sizes[row]
    return total


@cython.cfunc
@cython.inline
def _piece(data: bytes, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> bytes:
    """Return a copy of some bytes.

    Raises:
        ValueError: they are out of bounds.
    """
    if position < 0 or size > len(data) - position:
        raise ValueError(_NO_FIELD)
    if cython.compiled:
        start: cython.p_char = data
        return start[position : position + size]
    return data[position : position + size]


def pieces(
    data: bytes, positions: cython.const[cython.int][::1], sizes: cython.const[cython.int][::1]
) -> list[bytes | None]:
    """Copy keys or values.

    Args:
        data: the bytes that positions refer to.
        positions, sizes: of the rows; size -1 is null, which is None.

    Raises:
        ValueError: a row is not in the data, or there are more or fewer sizes than positions.
    """
    rows: cython.Py_ssize_t = len(positions)
    row: cython.Py_ssize_t
    size: cython.Py_ssize_t
    found: list[Any] = []
    _require(len(sizes) == rows, "columns of different lengths")
    if not cython.compiled:
        last = len(data)
        return [
            None if size < 0 else data[at : at + size] if 0 <= at <= last - size else _piece(data, at, size)
            for at, size in zip(positions, sizes, strict=True)
        ]
    for row in range(rows):
        size = sizes[row]
        found.append(None if size < 0 else _piece(data, positions[row], size))
    return found


@cython.freelist(64)
@cython.final
@cython.cclass
class LazyRecord:
    """One record, whose key, value and headers are copied from the log on demand.

    It has these attributes of ``raftlog.records.batches.record.Record``: offset, timestamp (ms), key, value, headers,
    is_control and is_transactional. It is immutable, so a copy is the record itself. It cannot be pickled, since it
    relies on positions that were checked.
    """

    _data: bytes
    _offset: cython.longlong
    _timestamp: cython.longlong
    _key_position: cython.int
    _key_size: cython.int
    _value_position: cython.int
    _value_size: cython.int
    _header_position: cython.int
    _header_count: cython.int
    _flags: cython.int

    @property
    def offset(self) -> int:
        """Log offset."""
        return self._offset

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch."""
        return self._timestamp

    @property
    def key(self) -> bytes | None:
        """The key, or None."""
        return None if self._key_size < 0 else _piece(self._data, self._key_position, self._key_size)

    @property
    def value(self) -> bytes | None:
        """The value, or None."""
        return None if self._value_size < 0 else _piece(self._data, self._value_position, self._value_size)

    @property
    def headers(self) -> tuple[tuple[bytes, bytes | None], ...]:
        """Pairs of a header's key and value, in order."""
        if self._header_count == 0:
            return ()
        return read_headers(self._data, self._header_position, self._header_count)

    @property
    def is_control(self) -> bool:
        """Whether it is a control record."""
        return self._flags & 0x20 != 0

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return self._flags & 0x10 != 0

    def __repr__(self) -> str:
        return (
            f"LazyRecord(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )

    def __copy__(self) -> LazyRecord:
        return self

    def __deepcopy__(self, memo: object) -> LazyRecord:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a record cut out of a log does not pickle: pickle a raftlog.records.batches.record.Record of its fields"
        )


def read_headers(
    data: bytes, position: cython.Py_ssize_t, count: cython.Py_ssize_t
) -> tuple[tuple[bytes, bytes | None], ...]:
    """Read the headers of a record that ``walk`` has accepted.

    Raises:
        ValueError: they are out of bounds.
    """
    view: cython.const[cython.uchar][::1] = memoryview(data)
    headers: list[tuple[bytes, bytes | None]] = []
    at: cython.Py_ssize_t = position
    raw: cython.ulonglong
    size: cython.longlong
    for _ in range(count):
        raw, at = _uvarint(view, at, len(view), 32)
        size = _zigzag(raw)
        if at < 0 or size < 0 or size > len(data) - at:
            raise ValueError(_NO_FIELD)
        key = data[at : at + size]
        raw, at = _uvarint(view, at + size, len(view), 32)
        size = _zigzag(raw)
        if at < 0 or size > len(data) - at:
            raise ValueError(_NO_FIELD)
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[at : at + size]))
            at += size
    return tuple(headers)


@cython.final
@cython.cclass
class Records:
    """Iterates over rows as objects. Each object is created on demand, and copies its fields on demand.

    Args:
        data: the bytes that positions refer to.
        capacity, longs, ints: the columns that ``walk`` filled, all of them.
        first, end: the rows.
        flags: the attributes of their batches that apply to records: control and transactional.

    Raises:
        ValueError: the columns have no such rows.
    """

    _data: bytes
    _capacity: cython.Py_ssize_t
    _longs: cython.const[cython.longlong][::1]
    _ints: cython.const[cython.int][::1]
    _row: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _flags: cython.int

    def __init__(
        self,
        data: bytes,
        capacity: cython.Py_ssize_t,
        longs: cython.const[cython.longlong][::1],
        ints: cython.const[cython.int][::1],
        first: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        flags: cython.int = 0,
    ) -> None:
        _require(0 <= capacity <= min(len(longs) // 2, len(ints) // 6), _NO_ROOM)
        _require(first >= 0 and end <= capacity, "rows that are not there")
        self._data = data
        self._capacity = capacity
        self._longs = longs
        self._ints = ints
        self._row = first
        self._end = end
        self._flags = flags

    def __iter__(self) -> Records:
        return self

    def __next__(self) -> LazyRecord:
        row: cython.Py_ssize_t = self._row
        if row >= self._end:
            raise StopIteration
        self._row = row + 1
        capacity: cython.Py_ssize_t = self._capacity
        record: LazyRecord = LazyRecord.__new__(LazyRecord)
        record._data = self._data
        record._offset = self._longs[row]
        record._timestamp = self._longs[capacity + row]
        record._key_position = self._ints[row]
        record._key_size = self._ints[capacity + row]
        record._value_position = self._ints[2 * capacity + row]
        record._value_size = self._ints[3 * capacity + row]
        record._header_position = self._ints[4 * capacity + row]
        record._header_count = self._ints[5 * capacity + row]
        record._flags = self._flags
        return record

    def __reduce__(self) -> NoReturn:
        raise TypeError("an iterator over records does not pickle")


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_uvarint(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Write an unsigned varint and return the position after it."""
    while value >= 0x80:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzagged(value: cython.longlong) -> cython.ulonglong:
    return cython.cast(cython.ulonglong, value) << 1 ^ cython.cast(cython.ulonglong, value >> 63)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _uvarint_size(value: cython.ulonglong) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


class _Varints(dict[int, bytes]):
    """Zigzag varints by value; caches those of usual sizes and deltas."""

    def __missing__(self, value: int) -> bytes:
        raw = value << 1 if value >= 0 else ~(value << 1)
        if raw >> 64:
            raise OverflowError(f"{value} does not fit in 64 bits")
        encoded = bytearray()
        while raw >= 0x80:
            encoded.append(raw & 0x7F | 0x80)
            raw >>= 7
        encoded.append(raw)
        if 0 <= value < 8192:
            self[value] = bytes(encoded)
        return bytes(encoded)


_VARINTS = _Varints()


def as_tuple(items: Sequence[Any]) -> tuple[Any, ...]:
    """Return a tuple of a sequence's items, so that its length and items cannot change any more.

    Raises:
        TypeError: it has no length, or is not iterable.
        ValueError: it yields more or fewer items than its length.
    """
    if type(items) is tuple:
        return items
    if type(items) is list:
        return tuple(items)
    count = len(items)
    fixed = tuple(itertools.islice(items, count + 1))  # No more, since the items may be endless.
    if len(fixed) != count:
        raise ValueError(f"a sequence that says it has {count} items, and gives {'more' if fixed[count:] else 'fewer'}")
    return fixed


@cython.cfunc
def _encode_headers(headers: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """Encode pairs of a header's key and value, preceded by their number."""
    pairs: tuple[Any, ...] = as_tuple(headers)
    parts = [_VARINTS[len(pairs)]]
    for key, value in pairs:
        if type(key) is not bytes or not (value is None or type(value) is bytes):
            raise TypeError("a header's key is not bytes, or its value is neither bytes nor None")
        parts += (_VARINTS[len(key)], key, b"\x01" if value is None else _VARINTS[len(value)] + value)
    return b"".join(parts)


def prepare(
    rows: Sequence[Row], base_timestamp: cython.longlong, offset_delta: cython.longlong
) -> tuple[Prepared, int, int, int, int]:
    """Check rows of (timestamp, key, value) or (timestamp, key, value, headers), and compute their encoded size.

    Args:
        rows: keys and values are bytes or None; headers are pairs of bytes and bytes or None.
        base_timestamp: the timestamp that stored deltas are relative to.
        offset_delta: that of the first row; it increases by one per row.

    Returns:
        The input of ``encode``, which no longer depends on ``rows``; its size in bytes; the smallest and the largest
        timestamp (for no rows, the largest and the smallest possible value); and the number of rows.

    Raises:
        OverflowError: an offset delta does not fit in 32 bits, or a timestamp, or its distance from ``base_timestamp``,
            not in 64.
        TypeError: a timestamp is not an integer; a key or value of a record, or the value of a header, is neither bytes
            nor None; or the key of a header is not bytes.
        ValueError: a row has the wrong number of fields; or there are more or fewer rows or headers than their length.
    """
    if type(rows) is not list or not cython.compiled:
        rows = as_tuple(rows)
    count: cython.Py_ssize_t = len(rows)
    if not -_INT32_MAX - 1 <= offset_delta <= _INT32_MAX + 1 - count:
        raise OverflowError(f"an offset delta of {offset_delta}, and {count} records")
    if not cython.compiled:
        return _prepare_interpreted(rows, base_timestamp, offset_delta)
    area: bytearray = room(count * _USUAL_RECORD_SIZE)
    marks: bytearray = room(count * 16)
    large: list[bytes] = []
    end: cython.Py_ssize_t = len(area)
    out: cython.p_uchar = cython.cast(cython.p_uchar, cython.cast(cython.p_char, area))
    places: cython.p_longlong = cython.cast(cython.p_longlong, cython.cast(cython.p_char, marks))
    at: cython.Py_ssize_t = 0
    large_size: cython.Py_ssize_t = 0
    smallest: cython.longlong = 0x7FFFFFFFFFFFFFFF
    largest: cython.longlong = ~smallest
    left: cython.Py_ssize_t = count  # Reading a row may run code that changes the list.
    for row in rows:
        left -= 1
        if left < 0:
            break
        fields: tuple[object, ...] = (
            row if type(row) is tuple and len(cython.cast(tuple, row)) == 3 else _fields_of(row)
        )
        if type(fields[0]) is not int:
            fields = (operator.index(fields[0]), *fields[1:])
        timestamp: cython.longlong = fields[0]
        if not (fields[1] is None or type(fields[1]) is bytes) or not (fields[2] is None or type(fields[2]) is bytes):
            raise TypeError("a key or a value is neither bytes nor None")
        timestamp_delta: cython.longlong = _wrapped_sum(timestamp, -base_timestamp)
        if (timestamp_delta < 0) != (timestamp < base_timestamp):
            raise OverflowError(f"a timestamp of {timestamp}, relative to {base_timestamp}")
        smallest = min(smallest, timestamp)
        largest = max(largest, timestamp)
        key: cython.pointer(PyObject) = cython.cast(cython.pointer(PyObject), fields[1])
        value: cython.pointer(PyObject) = cython.cast(cython.pointer(PyObject), fields[2])
        key_size: cython.Py_ssize_t = _length(key)
        value_size: cython.Py_ssize_t = _length(value)
        headers_size: cython.Py_ssize_t = 1 if len(fields) == 3 else len(cython.cast(bytes, fields[3]))
        size: cython.Py_ssize_t = (
            1
            + _uvarint_size(_zigzagged(timestamp_delta))
            + _uvarint_size(_zigzagged(offset_delta))
            + _field_size(key_size)
            + _field_size(value_size)
            + headers_size
        )
        apart: cython.Py_ssize_t = (key_size if key_size >= _LARGE_FIELD else 0) + (
            value_size if value_size >= _LARGE_FIELD else 0
        )
        large_size += apart
        if size - apart > end - at - _MAX_VARINT_SIZE:
            end = 2 * (end + size - apart + _MAX_VARINT_SIZE)
            PyByteArray_Resize(area, end)
            out = cython.cast(cython.p_uchar, cython.cast(cython.p_char, area))
        at = _put_uvarint(out, at, 2 * size)
        out[at] = 0  # The attributes.
        at = _put_uvarint(out, at + 1, _zigzagged(timestamp_delta))
        at = _put_uvarint(out, at, _zigzagged(offset_delta))
        at = _put_field(out, at, key, key_size, places, large)
        at = _put_field(out, at, value, value_size, places, large)
        if len(fields) == 3:
            out[at] = 0  # No headers.
            at += 1
        else:
            at = _put_bytes(out, at, cython.cast(bytes, fields[3]), headers_size)
        offset_delta += 1
    if left != 0:
        raise ValueError(f"there are more or fewer rows than the {count} that there were")
    PyByteArray_Resize(area, at)
    return (area, marks, large), at + large_size, smallest, largest, count


@cython.cfunc
def _fields_of(row: Row) -> tuple[object, ...]:
    """Return the fields of a row that is not a tuple, or that has headers, which are encoded."""
    fields: tuple[object, ...] = tuple(row)
    if len(fields) == 3:
        return fields
    timestamp, key, value, headers = fields
    return timestamp, key, value, _encode_headers(headers)


def encode(header: bytes, prepared: Sequence[Prepared], size: cython.Py_ssize_t, checksum: Callable[..., int]) -> bytes:
    """Write records, preceded by the header of a batch if there is one, copying each byte straight to its final place.

    Args:
        header: 61 bytes, in which the CRC is set here; or empty.
        prepared: the result of ``prepare``.
        size: size of the records in bytes, as ``prepare`` returned it.
        checksum: computes the CRC-32C of a buffer, given the CRC of the bytes before it.

    Raises:
        TypeError: ``prepared`` is not from ``prepare``.
        ValueError: the header or the records have the wrong size.
    """
    _require(len(header) in (0, _BATCH_OVERHEAD), "a header of another size")
    _require(0 <= size <= _INT64_MAX - _BATCH_OVERHEAD, "records of a negative size, or too many")
    if not cython.compiled:
        return _encode_interpreted(header, prepared, size, checksum)
    batch: bytes = PyBytes_FromStringAndSize(cython.NULL, len(header) + size)
    out: cython.p_uchar = batch
    at: cython.Py_ssize_t = _put_bytes(out, 0, header, len(header))
    for area, marks, large in prepared:
        at = _put_area(out, at, len(batch), area, marks, large)
    if at != len(batch):
        raise ValueError(f"the records do not take {size} bytes")
    index: cython.Py_ssize_t
    if len(header) > 0:
        crc: cython.uint = checksum(memoryview(batch)[_CRC_POSITION + 4 :])
        for index in range(4):
            out[_CRC_POSITION + index] = crc >> (24 - 8 * index) & 0xFF
    return batch


@cython.cfunc
def _put_area(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    area: bytearray,
    marks: bytearray,
    large: list[bytes],
) -> cython.Py_ssize_t:
    """Write prepared records, with each large field in its place between the other bytes."""
    if area is None or marks is None or large is None or len(marks) // 8 < len(large):
        raise TypeError("not what was prepared")
    source: cython.p_char = area
    places: cython.p_char = marks
    copied: cython.Py_ssize_t = 0
    place: cython.longlong = 0
    size: cython.Py_ssize_t
    index: cython.Py_ssize_t
    for index in range(len(large)):
        field: bytes = large[index]
        memcpy(cython.address(place), places + 8 * index, 8)
        if place < copied or place > len(area):
            raise ValueError("a large field lies outside its record")
        size = cython.cast(cython.Py_ssize_t, place) - copied
        if size > end - at or len(field) > end - at - size:
            raise ValueError("the records take more bytes than was said")
        memcpy(out + at, source + copied, size)
        at = _put_bytes(out, at + size, field, len(field))
        copied += size
    size = len(area) - copied
    if size > end - at:
        raise ValueError("the records take more bytes than was said")
    memcpy(out + at, source + copied, size)
    return at + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _length(field: cython.pointer(PyObject)) -> cython.Py_ssize_t:
    """Return the size of bytes, or -1 for None. A pointer avoids the cost of counting references to None."""
    if field == cython.cast(cython.pointer(PyObject), None):
        return -1
    return len(cython.cast(bytes, field))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _field_size(size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return how many bytes a key or value of this size takes, with its length."""
    return _uvarint_size(2 * size) + size if size >= 0 else 1


@cython.cfunc
@cython.inline
def _put_field(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    field: cython.pointer(PyObject),
    size: cython.Py_ssize_t,
    places: cython.p_longlong,
    large: list[bytes],
) -> cython.Py_ssize_t:
    """Write a key or value, preceded by its size; return the position after it. A large one is kept separately."""
    if size < 0:
        out[at] = 1
        return at + 1
    at = _put_uvarint(out, at, 2 * size)
    if size < _LARGE_FIELD:
        return _put_bytes(out, at, cython.cast(bytes, field), size)
    places[len(large)] = at
    large.append(cython.cast(bytes, field))
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_bytes(out: cython.p_uchar, at: cython.Py_ssize_t, data: bytes, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    memcpy(out + at, cython.cast(cython.p_char, data), size)
    return at + size


_ROWS_AT_ONCE = 64
"""How many rows make a slab: larger buffers cost more than they save."""

_LARGE_SLAB = 32 * 1024
"""The parts of a larger slab are not joined: all slabs together would be memory that malloc asks for and gives
back each time.
"""


def _prepare_interpreted(
    rows: tuple[Row, ...], base_timestamp: int, offset_delta: int
) -> tuple[Prepared, int, int, int, int]:
    """Do what ``prepare`` does, as fast as Python can."""
    slabs: list[list[bytes]] = []
    size = 0
    smallest, largest = 2**63 - 1, -(2**63)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[first : first + _ROWS_AT_ONCE]
        parts, timestamps = _encoded_rows(some, base_timestamp, offset_delta + first)
        slab = b"".join(parts)
        slabs.append([slab] if len(slab) < _LARGE_SLAB else parts)
        size += len(slab)
        smallest, largest = min(smallest, *timestamps), max(largest, *timestamps)
    if rows and not all(-(2**63) <= timestamp < 2**63 for timestamp in (smallest, largest, base_timestamp)):
        raise OverflowError("a timestamp does not fit in 64 bits")
    return slabs, size, smallest, largest, len(rows)


def _encode_interpreted(
    header: bytes, prepared: Sequence[list[list[bytes]]], size: int, checksum: Callable[..., int]
) -> bytes:
    """Do what ``encode`` does."""
    slabs = [slab for slabs in prepared for slab in slabs]
    parts = [header]
    if header:
        rest = header[_CRC_POSITION + 4 :]
        crc = checksum(rest)
        for slab in slabs:
            crc = checksum(b"".join(slab), crc)
        parts = [header[:_CRC_POSITION], crc.to_bytes(4, "big"), rest]
    for slab in slabs:
        parts += slab
    batch = b"".join(parts)
    if len(batch) != len(header) + size:
        raise ValueError(f"the records do not take {size} bytes")
    return batch


def _encoded_rows(rows: Sequence[Row], base_timestamp: int, offset_delta: int) -> tuple[list[bytes], list[int]]:
    parts: list[bytes] = []
    timestamps: list[int] = []
    extend = parts.extend
    varints = _VARINTS
    for row in rows:
        if type(row) is not tuple:
            row = tuple(row)
        if len(row) == 3:
            timestamp, key, value = row
            headers = b"\x00"
        else:
            timestamp, key, value, some_headers = row
            headers = _encode_headers(some_headers)
        if type(timestamp) is not int:
            timestamp = operator.index(timestamp)
        timestamps.append(timestamp)
        timestamp_delta = varints[timestamp - base_timestamp]
        stored_offset_delta = varints[offset_delta]
        offset_delta += 1
        key_size = value_size = b"\x01"
        if key is None:
            key = b""
        elif type(key) is bytes:
            key_size = varints[len(key)]
        else:
            raise TypeError("a key is neither bytes nor None")
        if value is None:
            value = b""
        elif type(value) is bytes:
            value_size = varints[len(value)]
        else:
            raise TypeError("a value is neither bytes nor None")
        size = (
            1
            + len(timestamp_delta)
            + len(stored_offset_delta)
            + len(key_size)
            + len(key)
            + len(value_size)
            + len(value)
            + len(headers)
        )
        extend(
            (varints[size], b"\x00", timestamp_delta, stored_offset_delta, key_size, key, value_size, value, headers)
        )
    return parts, timestamps


MARK = b"\x00"
"""Marks the place of a number in a template."""

TEMPLATE_SIZE = 512
"""How many bytes each template of ``batch_lines`` takes, padded with zeros."""

_TEMPLATE_SIZE = cython.declare(cython.Py_ssize_t, TEMPLATE_SIZE)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_number(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a decimal number and return the position after it; it takes 20 bytes at most."""
    rest: cython.ulonglong = _magnitude(value)
    if value < 0:
        out[at] = 45
        at += 1
    end: cython.Py_ssize_t = at + 1
    power: cython.ulonglong = rest
    while power >= 10000:  # Fewer steps, as each depends on the one before it.
        power //= 10000
        end += 4
    while power >= 10:
        power //= 10
        end += 1
    at = end
    while True:
        at -= 1
        out[at] = 48 + rest % 10
        rest //= 10
        if rest == 0:
            return end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _magnitude(value: cython.longlong) -> cython.ulonglong:
    if not cython.compiled:
        return abs(value)
    return ~cython.cast(cython.ulonglong, value) + 1 if value < 0 else cython.cast(cython.ulonglong, value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_text(
    out: cython.uchar[::1], at: cython.Py_ssize_t, template: cython.const[cython.uchar][::1], part: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Copy a template from ``part`` to the next mark; return the positions after the copy and after the mark.

    ``_has_marks`` has checked that there is one, and the whole template has room.
    """
    while template[part] != 0:
        out[at] = template[part]
        at += 1
        part += 1
    return at, part + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    value: cython.longlong,
    template: cython.const[cython.uchar][::1],
    part: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Write a number and the text after it in a template, up to the next mark; return positions like ``_put_text``."""
    return _put_text(out, _put_number(out, at, value), template, part)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _last_sequence(base_sequence: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """Add to a producer sequence: -1 (none) stays, and 0 follows 2147483647."""
    if base_sequence == -1:
        return -1
    sequence: cython.longlong = base_sequence + delta
    return sequence if sequence <= 0x7FFFFFFF else sequence & 0x7FFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _template_of(
    attributes: cython.int, templates: cython.const[cython.uchar][::1], checked: cython.ulonglong
) -> cython.Py_ssize_t:
    """Return the position of a batch's template, -1 if it has none, or -2 if that lacks marks or is too long.

    Args:
        attributes: the lower byte of the batch's attributes.
        templates: the templates of ``batch_lines``.
        checked: one bit per template that was found to have its marks.
    """
    part: cython.Py_ssize_t = (attributes & 63) * _TEMPLATE_SIZE
    if checked >> (attributes & 63) & 1 and not attributes & 64:
        return part
    if attributes & 64 or len(templates) <= part or templates[part] == 0:
        return -1
    return part if _has_marks(templates, part, 13) else -2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_marks(templates: cython.const[cython.uchar][::1], part: cython.Py_ssize_t, count: cython.int) -> cython.bint:
    """Whether a template has ``count`` marks before it ends; if so, later code need not check for its end."""
    end: cython.Py_ssize_t = part + _TEMPLATE_SIZE
    if end > len(templates):
        return False
    while part < end and count > 0:
        if templates[part] == 0:
            count -= 1
        part += 1
    return count == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_batch_line(
    view: cython.const[cython.uchar][::1],
    batch: cython.Py_ssize_t,
    size: cython.int,
    file_position: cython.longlong,
    templates: cython.const[cython.uchar][::1],
    part: cython.Py_ssize_t,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write the line of a batch, which has a template and enough room; return the position after it."""
    delta: cython.longlong = _int32(view, batch + 23)
    base_sequence: cython.longlong = _int32(view, batch + 53)
    at, part = _put_text(out, at, templates, part)
    at, part = _put(out, at, _int64(view, batch), templates, part)
    at, part = _put(out, at, _wrapped_sum(_int64(view, batch), delta), templates, part)
    at, part = _put(out, at, _int32(view, batch + 57), templates, part)
    at, part = _put(out, at, base_sequence, templates, part)
    at, part = _put(out, at, _last_sequence(base_sequence, delta), templates, part)
    at, part = _put(out, at, _int64(view, batch + 43), templates, part)
    at, part = _put(out, at, _int16(view, batch + 51), templates, part)
    at, part = _put(out, at, _int32(view, batch + 12), templates, part)
    at, part = _put(out, at, file_position + batch, templates, part)
    at, part = _put(out, at, _int64(view, batch + 35), templates, part)
    at, part = _put(out, at, size, templates, part)
    at, part = _put(out, at, _uint32(view, batch + 17), templates, part)
    return at


def batch_lines(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    file_position: cython.longlong,
    templates: bytes,
    out: cython.uchar[::1],
) -> tuple[int, int]:
    """Write a line of text for each batch.

    Args:
        view: the log.
        positions, sizes: of batches whose CRC holds.
        first: index of the batch to start with.
        file_position: position of the first byte of ``view`` in its file.
        templates: a line for each value of the low six attribute bits, ``TEMPLATE_SIZE`` bytes each, with marks for:
            base offset, last offset, count, base sequence, last sequence, producer id, producer epoch, leader epoch,
            position, max timestamp, size, CRC.
        out: to fill.

    Returns:
        The index of the first batch that was not written, because ``out`` is full or the batch has no template: it has
        a delete horizon, an unknown codec or a negative count; and how many bytes were written.

    Raises:
        ValueError: a header is out of bounds, a template lacks marks, or there are fewer sizes than positions.
    """
    texts: cython.const[cython.uchar][::1] = templates  # Bytes, which cannot change after the check.
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = first
    count: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t = 0
    batch: cython.Py_ssize_t = 0
    part: cython.Py_ssize_t = 0
    checked: cython.ulonglong = 0
    _require(0 <= first <= count, "a batch that is not there")
    _require(len(sizes) >= count, _NO_ROOM)
    with cython.nogil:
        while index < count and len(out) - at >= _TEMPLATE_SIZE + 12 * 20:
            batch = _checked(positions[index], last_header)
            if batch < 0:
                break
            part = _template_of(view[batch + 22], texts, checked)
            if part < 0 or view[batch + 57] & 128:
                break
            checked |= cython.cast(cython.ulonglong, 1) << (view[batch + 22] & 63)
            at = _put_batch_line(view, batch, sizes[index], file_position, texts, part, out, at)
            index += 1
    _require(batch >= 0, _NO_HEADER)
    _require(part != -2, _NO_TEMPLATE)
    return index, at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_ascii(view: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
    seen: cython.uchar = 0
    index: cython.Py_ssize_t
    for index in range(size):
        seen |= view[start + index]
    return seen < 0x80


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_record_line(
    view: cython.const[cython.uchar][::1],
    longs: cython.const[cython.longlong][::1],
    ints: cython.const[cython.int][::1],
    capacity: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_sequence: cython.longlong,
    templates: cython.const[cython.uchar][::1],
    part: cython.Py_ssize_t,
    template_end: cython.Py_ssize_t,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Write the line of a record up to its payload; return positions as ``_put_text`` does.

    The first is -1 if the header keys have no room left although they were measured: another thread has changed them.
    """
    sequence: cython.longlong = -1
    if base_sequence >= 0:
        sequence = (base_sequence + _wrapped_sum(longs[row], -base_offset)) & 0x7FFFFFFF
    at, part = _put_text(out, at, templates, part)
    at, part = _put(out, at, longs[row], templates, part)
    at, part = _put(out, at, longs[capacity + row], templates, part)
    at, part = _put(out, at, ints[capacity + row], templates, part)
    at, part = _put(out, at, ints[3 * capacity + row], templates, part)
    at, part = _put(out, at, sequence, templates, part)
    if ints[5 * capacity + row] > 0:
        at = _put_header_keys(
            out, at, len(out) - 1 - (template_end - part), view, ints[4 * capacity + row], ints[5 * capacity + row]
        )
        if at < 0:
            return -1, part
    return _put_text(out, at, templates, part)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _may_be_secret(
    view: cython.const[cython.uchar][::1],
    capacity: cython.Py_ssize_t,
    ints: cython.const[cython.int][::1],
    row: cython.Py_ssize_t,
    secret_kinds: cython.const[cython.uchar][::1],
) -> cython.bint:
    """Whether a record has no key, and a value that starts like a metadata record of certain kinds."""
    start: cython.Py_ssize_t = ints[2 * capacity + row]
    if ints[capacity + row] >= 0 or ints[3 * capacity + row] < 3 or not 0 <= start <= len(view) - 2 or view[start] != 1:
        return False
    return secret_kinds[view[start + 1]] != 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _payload_room(
    capacity: cython.Py_ssize_t, ints: cython.const[cython.int][::1], row: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return an upper bound on the bytes of a key and a value as text."""
    size: cython.Py_ssize_t = 0
    if ints[capacity + row] > 0:
        size += ints[capacity + row]
    if ints[3 * capacity + row] > 0:
        size += ints[3 * capacity + row]
    return _LARGEST_TEXT * size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _header_keys_room(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, count: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return an upper bound on the bytes of a record's header keys as text, commas included."""
    room: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    while count > 0 and at >= 0:
        size, at = _field(view, at)
        room += _LARGEST_TEXT * size + 1
        size, at = _field(view, at + size)
        at += size
        count -= 1
    return room


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_header_keys(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    view: cython.const[cython.uchar][::1],
    source: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write the keys of a record's headers as text before ``end``, with commas between them, or return -1."""
    size: cython.Py_ssize_t
    while count > 0:
        size, source = _field(view, source)
        at = _put_java_text(out, at, end - 1, view, source, size)
        if at < 0:
            return -1
        size, source = _field(view, source + size)
        source += size
        count -= 1
        if count > 0:
            out[at] = 44
            at += 1
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _field(view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Read the size of a header's key or value, 0 for null; ``walk`` has checked it.

    If another thread has changed it since, the size is arbitrary, and the position may be negative.
    """
    raw: cython.ulonglong
    raw, at = _uvarint(view, at, len(view), 32)
    return 0 if raw & 1 else cython.cast(cython.Py_ssize_t, raw >> 1), at


_LARGEST_TEXT = cython.declare(cython.Py_ssize_t, 3)
"""The most bytes of text for one byte: U+FFFD takes three."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _character_size(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the size of a UTF-8 character in bytes; negative for a malformed part that Java replaces as a unit."""
    first: cython.uchar = view[at]
    lowest: cython.uchar = 0x80
    highest: cython.uchar = 0xBF
    size: cython.Py_ssize_t = 1
    whole: cython.Py_ssize_t
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return -1
    if first < 0xE0:
        whole = 2
    elif first < 0xF0:
        whole = 3
    else:
        whole = 4
    if first == 0xE0:
        lowest = 0xA0
    elif first == 0xF0:
        lowest = 0x90
    elif first == 0xF4:
        highest = 0x8F
    while size < whole:
        if at + size >= end or view[at + size] < lowest or view[at + size] > highest:
            return -size
        lowest = 0x80
        highest = 0xBF
        size += 1
    return -size if first == 0xED and view[at + 1] >= 0xA0 else size  # An encoded surrogate is one unit for Java.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_java_text(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    view: cython.const[cython.uchar][::1],
    source: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write UTF-8 as Java shows it: each malformed part becomes U+FFFD, as in ``java_text.decode_utf8``.

    Return -1 if the text is not in ``view``, or might not fit before ``end``.
    """
    if source < 0 or size < 0 or size > len(view) - source or _LARGEST_TEXT * size > end - at:
        return -1
    if _is_ascii(view, source, size):
        return _put_view(out, at, view, source, size)
    source_end: cython.Py_ssize_t = source + size
    while source < source_end:
        size = _character_size(view, source, source_end)
        if size < 0:
            out[at] = 0xEF
            out[at + 1] = 0xBF
            out[at + 2] = 0xBD
            at += 3
            source -= size
        while size > 0:
            out[at] = view[source]
            at += 1
            source += 1
            size -= 1
    return at


def chunk_lines(
    log: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    file_position: cython.longlong,
    batch_templates: bytes,
    view: cython.const[cython.uchar][::1],
    first_row: cython.Py_ssize_t,
    ends: cython.const[cython.longlong][::1],
    capacity: cython.Py_ssize_t,
    longs: cython.const[cython.longlong][::1],
    ints: cython.const[cython.int][::1],
    record_templates: bytes,
    payloads: cython.bint,
    secret_kinds: cython.const[cython.uchar][::1],
    texts: cython.const[cython.uchar][::1],
    text_ends: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> tuple[int, int, int]:
    """Write a line of text for each batch, followed by one for each of its records.

    Args:
        log, positions, sizes, file_position, batch_templates: as for ``batch_lines``.
        first, last: index of the batch to start with, and of the one to stop before.
        view: the bytes that positions of keys and values refer to.
        first_row: the row to start with, or -1 to start with the line of the first batch.
        ends: for each batch, the row after its last record.
        capacity, longs, ints: the columns that ``walk`` filled, all of them.
        record_templates: two lines, for CreateTime and for LogAppendTime, ``TEMPLATE_SIZE`` bytes each, with marks for:
            offset, timestamp, key size, value size, sequence, header keys; then two parts, each closed by a mark: the
            text before a key, and before a value.
        payloads: whether to write keys and values, as text like Java's.
        secret_kinds: for each byte, whether a metadata record of this kind may hold a secret.
        texts, text_ends: texts to write instead of each row's key and value, and where each ends. An empty text stops
            before its row. Without any ends, keys and values are written.
        out: to fill.

    Returns:
        The batch and the row to start with next (row -1 is the batch's own line), and how many bytes were written. It
        stops if ``out`` is full, at a batch without a template, and at a record that the caller must handle: one with
        an empty text, one whose payload is to be written and may be a metadata record with a secret, or one whose bytes
        have changed since they were measured.

    Raises:
        ValueError: a header is out of bounds, a column is too short, a template lacks marks, or there are no such
            batches, rows or texts.
    """
    batch_texts: cython.const[cython.uchar][::1] = batch_templates  # As in ``batch_lines``.
    record_texts: cython.const[cython.uchar][::1] = record_templates
    last_header: cython.Py_ssize_t = len(log) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = first
    row: cython.Py_ssize_t = first_row
    last_row: cython.Py_ssize_t
    template_end: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    batch: cython.Py_ssize_t = 0
    part: cython.Py_ssize_t = 0
    checked: cython.ulonglong = 0
    text: cython.Py_ssize_t = 0
    text_size: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t
    has_texts: cython.bint = len(text_ends) > 0
    _require(first >= 0 and last <= min(len(positions), len(sizes), len(ends)), "a batch that is not there")
    _require(0 <= capacity <= min(len(longs) // 2, len(ints) // 6) and len(secret_kinds) >= 256, _NO_ROOM)
    _require(_has_marks(record_texts, 0, 9) and _has_marks(record_texts, _TEMPLATE_SIZE, 9), _NO_TEMPLATE)
    with cython.nogil:
        while index < last:
            batch = _checked(positions[index], last_header)
            if batch < 0:
                break
            if row < 0:
                if len(out) - at < _TEMPLATE_SIZE + 12 * 20:
                    break
                part = _template_of(log[batch + 22], batch_texts, checked)
                if part < 0:
                    break
                checked |= cython.cast(cython.ulonglong, 1) << (log[batch + 22] & 63)
                at = _put_batch_line(log, batch, sizes[index], file_position, batch_texts, part, out, at)
                row = cython.cast(cython.Py_ssize_t, ends[index - 1]) if index > 0 else 0
            last_row = cython.cast(cython.Py_ssize_t, ends[index])
            if row < 0 or last_row > capacity or (has_texts and last_row > len(text_ends)):
                batch = -1
                break
            while row < last_row:
                room = _header_keys_room(view, ints[4 * capacity + row], ints[5 * capacity + row])
                if has_texts:
                    text = cython.cast(cython.Py_ssize_t, text_ends[row - 1]) if row > 0 else 0
                    text_size = cython.cast(cython.Py_ssize_t, text_ends[row]) - text
                    room += text_size
                    if text_size == 0:
                        break
                    if text < 0 or text_size < 0 or text_size > len(texts) - text:
                        batch = -1
                        break
                elif payloads:
                    room += _payload_room(capacity, ints, row)
                    if _may_be_secret(view, capacity, ints, row, secret_kinds):
                        break
                if len(out) - at < _TEMPLATE_SIZE + 5 * 20 + room + 1:
                    break
                part = _TEMPLATE_SIZE if log[batch + 22] & 8 else 0
                template_end = part + _TEMPLATE_SIZE
                end, part = _put_record_line(
                    view,
                    longs,
                    ints,
                    capacity,
                    row,
                    _int64(log, batch),
                    _int32(log, batch + 53),
                    record_texts,
                    part,
                    template_end,
                    out,
                    at,
                )
                if has_texts and end >= 0:
                    end, part = _put_text(out, end, record_texts, _after_mark(record_texts, part))
                    end = _put_view(out, end, texts, text, text_size)
                elif payloads and end >= 0:
                    end = _put_payload(out, end, record_texts, part, template_end, view, ints, row, capacity)
                if end < 0:
                    break
                out[end] = 10
                at = end + 1
                row += 1
            if row < last_row:
                break
            index += 1
            row = -1
    _require(batch >= 0, "a batch, its rows or a text are not there")
    _require(part != -2, _NO_TEMPLATE)
    return index, row, at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_payload(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    templates: cython.const[cython.uchar][::1],
    part: cython.Py_ssize_t,
    template_end: cython.Py_ssize_t,
    view: cython.const[cython.uchar][::1],
    ints: cython.const[cython.int][::1],
    row: cython.Py_ssize_t,
    capacity: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write a key and a value, unless null, each after its part of the template; return -1 if they do not fit."""
    size: cython.Py_ssize_t = ints[capacity + row]
    value_part: cython.Py_ssize_t = _after_mark(templates, part)
    if size >= 0:
        at, part = _put_text(out, at, templates, part)
        at = _put_java_text(out, at, len(out) - 1 - (template_end - part), view, ints[row], size)
        if at < 0:
            return -1
    size = ints[3 * capacity + row]
    if size >= 0:
        at, part = _put_text(out, at, templates, value_part)
        at = _put_java_text(out, at, len(out) - 1 - (template_end - part), view, ints[2 * capacity + row], size)
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after_mark(templates: cython.const[cython.uchar][::1], part: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the position after the next mark."""
    while templates[part] != 0:
        part += 1
    return part + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_view(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    view: cython.const[cython.uchar][::1],
    source: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy bytes; the caller has checked their bounds and the room."""
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(out[at]), cython.address(view[source]), size)
        else:
            out[at : at + size] = view[source : source + size]
    return at + size


def plain_append(
    data: bytes | memoryview,
    epoch: cython.longlong,
    end_offset: cython.longlong,
    max_batch_size: cython.Py_ssize_t,
    kind: type[Batch],
    info_kind: type[Info],
) -> tuple[list[Batch], int, int, Info] | None:
    """Check usual data batches in one pass, as ``raftlog.log.append_validation.check_append`` does for a leader's.

    Args:
        data: adjacent batches, and nothing else; a memoryview must have one dimension, of bytes.
        epoch: the epoch that all of them must have.
        end_offset: the log end, exclusive.
        max_batch_size: in bytes.
        kind: the tuple type for each batch: base offset, epoch, last offset, max timestamp and size.
        info_kind: the tuple type for the first offset and the last one.

    Returns:
        The tuples of the batches, the offset after all of them, their greatest timestamp (at least -1), and the tuple
        of both offsets. None if anything is wrong, or unusual such as a control batch, so that the caller must check in
        full. Also None if the processor has no CRC instruction: CRC tables are cold in the cache here, and reading them
        again would cost more than this function saves.
    """
    if not HAS_CRC_INSTRUCTION:
        return None
    if not cython.compiled:
        view = memoryview(data)
        if view.nbytes != len(view):
            return None
        return _plain_append(view, len(view), epoch, end_offset, max_batch_size, kind, info_kind)
    buffer = cython.declare(cython.Py_buffer)  # Not a typed memoryview, which would create several objects.
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    try:
        if buffer.len != len(data):
            return None
        source = cython.cast(cython.pointer(cython.const[cython.uchar]), buffer.buf)
        return _plain_append(source, buffer.len, epoch, end_offset, max_batch_size, kind, info_kind)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
@cython.inline
def _plain_append(
    source: cython.pointer(cython.const[cython.uchar]),
    size: cython.Py_ssize_t,
    epoch: cython.longlong,
    end_offset: cython.longlong,
    max_batch_size: cython.Py_ssize_t,
    kind: object,
    info_kind: object,
) -> object:
    """Check unverified bytes for ``plain_append``."""
    batches: list[Batch] = []
    first_offset: cython.longlong = end_offset
    max_timestamp: cython.longlong = -1
    timestamp: cython.longlong
    max_end_offset: cython.longlong = _INT64_MAX
    at: cython.Py_ssize_t = 0
    batch_size: cython.Py_ssize_t
    delta: cython.longlong
    releases_gil: cython.bint = size >= _WORTH_RELEASING_GIL
    is_sound: cython.bint
    if size == 0 or size > _INT32_MAX:
        return None
    if end_offset < max_end_offset - _MAX_SPAN:
        max_end_offset = end_offset + _MAX_SPAN
    while at < size:
        if size - at < _BATCH_OVERHEAD:
            return None
        batch_size = cython.cast(cython.Py_ssize_t, _int32_of(source, at + 8)) + _LOG_OVERHEAD
        if not _BATCH_OVERHEAD <= batch_size <= min(size - at, max_batch_size):
            return None
        # Another magic, a control batch, or a compressed batch, whose records must be decompressed to be checked.
        if source[at + 16] != 2 or source[at + 22] & 39:
            return None
        if _int64_of(source, at) != end_offset or _int32_of(source, at + 12) != epoch:
            return None
        delta = _int32_of(source, at + 23)
        if delta < 0 or delta >= max_end_offset - end_offset or _int32_of(source, at + 57) != delta + 1:
            return None
        if releases_gil:
            with cython.nogil:
                is_sound = _is_raft_batch(source, at, at + batch_size, delta + 1)
        else:
            is_sound = _is_raft_batch(source, at, at + batch_size, delta + 1)
        if not is_sound:
            return None
        timestamp = _int64_of(source, at + 35)
        max_timestamp = max(max_timestamp, timestamp)
        batches.append(tuple.__new__(kind, (end_offset, epoch, end_offset + delta, timestamp, batch_size)))
        end_offset += delta + 1
        at += batch_size
    info = tuple.__new__(info_kind, (first_offset, end_offset - 1))
    return batches, end_offset, max_timestamp, info


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_raft_batch(
    source: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.bint:
    """Whether the CRC of a batch holds, computed by the CRC instruction, and its records are as raft writes them."""
    crc: cython.uint = (
        crc32c_by_instruction(source + at + 21, end - at - 21)
        if cython.compiled
        else _crc32c(source, at + 21, end, _CRC_TABLES, False)
    )
    return crc == _uint32_of(source, at + 17) and _are_raft_records(source, at + _BATCH_OVERHEAD, end, count)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_of(
    source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """Read a signed varint of at most 32 bits within ``[at, end)``; the position after it is -1 if there is none."""
    if at < end and source[at] < 0x80:  # Most have one or two bytes and skip the loop.
        return _zigzag(source[at]), at + 1
    if at + 1 < end and source[at + 1] < 0x80:
        return _zigzag((source[at] & 0x7F) | cython.cast(cython.uint, source[at + 1]) << 7), at + 2
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end and shift <= 28:
        byte = source[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                return 0, -1
            return _zigzag(value), at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has_usual_fields(
    source: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, index: cython.uint, key: cython.uint
) -> cython.bint:
    """Whether a timestamp delta of 0, the offset delta ``index`` and the one-byte key length ``key`` are stored."""
    fields: cython.uint = _uint32_of(source, at)
    if index < 64:  # A zero, a varint of one byte, and the key's length.
        return fields >> 8 == (index << 9 | key)
    if index < 8192:
        return fields == (0x800000 | (index & 63) << 17 | (index >> 6) << 8 | key)
    return fields == (0x808000 | (index & 63) << 17 | (index >> 6 & 127) << 8 | index >> 13) and source[at + 4] == key


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _offset_size(index: cython.uint) -> cython.Py_ssize_t:
    """Return how many bytes an offset delta below 2^20 takes."""
    return 1 if index < 64 else 2 if index < 8192 else 3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _usual_key_size(key: cython.uint) -> cython.Py_ssize_t:
    """Return how many bytes a key takes whose length is stored in one byte; a stored 1 means -1, which is null."""
    return 0 if key == 1 else key >> 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _stored_offset(index: cython.uint) -> cython.ulonglong:
    """Return an offset delta below 2^20 as stored, its first byte lowest."""
    if index < 64:
        return index << 1
    if index < 8192:
        return 0x80 | (index & 63) << 1 | index >> 6 << 8
    return 0x8080 | (index & 63) << 1 | (index >> 6 & 127) << 8 | index >> 13 << 16


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count_alike(
    source: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    index: cython.uint,
    count: cython.uint,
) -> cython.uint:
    """Return how many usual records with the same lengths follow one, so that no length has to be loaded first.

    The first eight bytes of a usual record hold its length, attributes, timestamp delta, offset delta and the length of
    its key. Except for the attributes and the offset delta, they must equal those of the record before.

    Args:
        source: the bytes that contain them.
        at, end: the range of the records; the one before them ends at ``at``.
        size: the size of that one, in bytes.
        index: the index of the first that may follow.
        count: the index after the last.
    """
    first: cython.uint = index
    # Here the offset delta gets one byte longer.
    if index in (64, 8192) or size < 8 or end - at < size or source[at] != source[at - size]:
        return 0
    count = min(count, 64 if index < 64 else 8192 if index < 8192 else _USUAL_RECORDS)
    count = cython.cast(cython.uint, min(count, index + (end - at) // size))
    attributes: cython.Py_ssize_t = 1 if source[at - size] < 0x80 else 2
    key: cython.Py_ssize_t = attributes + 2 + _offset_size(index)
    value: cython.Py_ssize_t = key + 1 + _usual_key_size(source[at - size + key])
    to_offset: cython.int = cython.cast(cython.int, 8 * attributes + 16)
    mask: cython.ulonglong = _UINT64_MAX >> (56 - 8 * key) ^ cython.cast(cython.ulonglong, 0xFF) << (to_offset - 16)
    fields: cython.ulonglong = _eight_bytes(source, at - size) & mask ^ _stored_offset(index - 1) << to_offset
    step: cython.ulonglong = cython.cast(cython.ulonglong, 2) << to_offset
    value_mask: cython.uint = 0xFF if source[at - size + value] < 0x80 else 0xFFFF
    value_size: cython.uint = _two_bytes(source, at - size + value) & value_mask
    expected: cython.ulonglong
    until: cython.uint
    while index < count:
        expected = fields | _stored_offset(index) << to_offset
        until = min(count, (index | 63) + 1)  # Up to there only the first byte of the offset changes.
        while index < until:
            if _eight_bytes(source, at) & mask != expected or _two_bytes(source, at + value) & value_mask != value_size:
                return index - first
            if source[at + size - 1] != 0:
                return index - first
            expected += step
            at += size
            index += 1
    return index - first


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after_usual_record(
    source: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    index: cython.uint,
) -> cython.Py_ssize_t:
    """Return the position after a usual record of raft, or -1 if it must be checked in full.

    A usual record has a value; the length of its key takes one byte, its other lengths at most two, and its offset at
    most three. No byte outside of ``[at, end)`` is read.
    """
    key: cython.uint
    if end - at < 10 or index >= _USUAL_RECORDS:  # The most bytes before the value, except for the key.
        return -1
    size: cython.Py_ssize_t = source[at]
    field: cython.Py_ssize_t = source[at + 1]
    at += 1
    if size >= 0x80:
        if field >= 0x80:
            return -1
        size = (size & 0x7F) | field << 7
        at += 1
    if size & 1 or (size >> 1) > end - at:
        return -1
    size >>= 1
    end = at + size  # Of the record.
    key = source[at + 2 + _offset_size(index)]
    if (key & 1 and key != 1) or key >= 0x80 or not _has_usual_fields(source, at + 1, index, key):
        return -1
    at += 3 + _offset_size(index) + _usual_key_size(key)
    if end - at < 2:
        return -1
    # Between here and the end: the value's length, the value, and one byte for no headers.
    size = end - at - 2
    field = source[at]
    if field >= 0x80:
        if source[at + 1] >= 0x80:
            return -1
        field = (field & 0x7F) | cython.cast(cython.Py_ssize_t, source[at + 1]) << 7
        size -= 1
    if field != 2 * size or source[end - 1] != 0:
        return -1
    return end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_raft_records(
    source: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.bint:
    """Check the records in ``[at, end)`` as ``are_raft_records`` does; no byte outside of that is read."""
    index: cython.longlong = 0
    number: cython.longlong
    record_end: cython.Py_ssize_t
    size: cython.Py_ssize_t
    alike: cython.uint
    while index < count:
        record_end = _after_usual_record(source, at, end, cython.cast(cython.uint, index))
        if record_end >= 0:
            size = record_end - at
            index += 1
            alike = _count_alike(
                source, record_end, end, size, cython.cast(cython.uint, index), cython.cast(cython.uint, count)
            )
            index += alike
            at = record_end + size * alike
            continue
        number, at = _varint_of(source, at, end)
        if at < 0 or number < 2 or number > end - at:
            return False
        record_end = at + cython.cast(cython.Py_ssize_t, number)
        if source[at + 1] != 0:  # After the attributes, the timestamp delta.
            return False
        number, at = _varint_of(source, at + 2, record_end)
        if at < 0 or number != index:
            return False
        number, at = _varint_of(source, at, record_end)  # The key.
        if at < 0 or number < -1 or number > record_end - at:
            return False
        if number > 0:
            at += cython.cast(cython.Py_ssize_t, number)
        number, at = _varint_of(source, at, record_end)  # The value.
        if at < 0 or number < -1 or number > record_end - at:
            return False
        if number > 0:
            at += cython.cast(cython.Py_ssize_t, number)
        if record_end - at != 1 or source[at] != 0:  # How many headers there are.
            return False
        at = record_end
        index += 1
    return at == end


def are_raft_records(
    view: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong
) -> bool:
    """Return whether data records are as raft writes them, and fill their bytes exactly.

    There must be one per offset from the batch's first on, each with the time of its batch and without headers. The
    result is also False for sound records with varints longer than needed, which the caller must check in full.

    Args:
        view: contains the records, uncompressed.
        at, end: their range, ``end`` exclusive.
        count: how many there must be.
    """
    if not 0 <= at < end <= len(view):
        return False
    if not cython.compiled:
        return _are_raft_records(view, at, end, count)
    return _are_raft_records(_bytes_at(view, at, end - at), 0, end - at, count)


_INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_UINT64_MAX = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_MAX_SPAN = cython.declare(cython.longlong, 1 << 31)
_WORTH_RELEASING_GIL = cython.declare(cython.Py_ssize_t, 1 << 16)
"""In bytes: the check of fewer takes less time than switching to another thread."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_uneventful_record(
    view: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    area_end: cython.Py_ssize_t,
    offset_delta: cython.ulonglong,
) -> cython.Py_ssize_t:
    """Return the position after a usual control record of raft; -1 for one about voters or kraft.version."""
    raw: cython.ulonglong
    raw, at = _uvarint(view, at, area_end, 32)
    if at < 0 or raw & 1 or cython.cast(cython.Py_ssize_t, raw >> 1) > area_end - at:
        return -1
    end: cython.Py_ssize_t = at + cython.cast(cython.Py_ssize_t, raw >> 1)
    if end - at < 2 or view[at + 1] != 0:  # After the attributes, the timestamp delta.
        return -1
    raw, at = _uvarint(view, at + 2, end, 32)
    if at < 0 or raw != 2 * offset_delta:
        return -1
    if end - at < 5 or view[at] != 8 or view[at + 1] != 0 or view[at + 2] != 0:  # A key of 4 bytes, of version 0.
        return -1
    if view[at + 3] != 0 or view[at + 4] == 5 or view[at + 4] == 6:  # KRAFT_VERSION, KRAFT_VOTERS
        return -1
    raw, at = _uvarint(view, at + 5, end, 32)
    if at < 0 or raw & 1 or cython.cast(cython.Py_ssize_t, raw >> 1) != end - 1 - at or view[end - 1] != 0:
        return -1
    return end


def skip_uneventful(
    view: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    next_offset: cython.longlong,
) -> tuple[int, int]:
    """Skip batches of a raft log, up to one that is not sound or may change voters or kraft.version.

    Skipped are data batches, and uncompressed control batches that have only records of other types, with a time delta
    of 0 and without headers. Each must start at the end of the preceding one, and have one record per offset.

    Args:
        view: the log.
        positions, sizes: of batches whose CRC holds.
        first: index of the batch to start with.
        next_offset: the offset at which it must start.

    Returns:
        How many batches were skipped, and the offset after them.

    Raises:
        ValueError: a batch is not in the log, or there are fewer sizes than positions.
    """
    last_header: cython.Py_ssize_t = len(view) - _BATCH_OVERHEAD
    index: cython.Py_ssize_t = first
    count: cython.Py_ssize_t = len(positions)
    start: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    records: cython.longlong
    delta: cython.longlong
    _require(0 <= first <= count, "a batch that is not there")
    _require(len(sizes) >= count, _NO_ROOM)
    with cython.nogil:
        while index < count:
            start = _checked(positions[index], last_header)
            if start < 0:
                break
            end = start + sizes[index]
            if end < start + _BATCH_OVERHEAD or end > len(view):
                start = -1
                break
            records = _int32(view, start + 57)
            if _int64(view, start) != next_offset or records < 1 or records - 1 != _int32(view, start + 23):
                break
            if next_offset > _INT64_MAX - records:
                break
            if view[start + 22] & 32:
                at = start + _BATCH_OVERHEAD
                delta = 0
                while delta < records and at >= 0 and (view[start + 22] & 7) == 0:
                    at = _skip_uneventful_record(view, at, end, delta)
                    delta += 1
                if delta < records or at != end:
                    break
            next_offset += records
            index += 1
    _require(start >= 0, _NO_BATCH)
    return index - first, next_offset


KEPT = 0
"""A field of an entry stays as it was."""
COUNTED = 1
"""It is one more than it was."""
GIVEN = 2
"""It is an object that all records of the shape have."""
NUMBER = 3
"""It is a big-endian, signed integer of 1, 2 or 4 bytes in the record."""
MAPPED = 4
"""It is what a dict has for bytes of the record."""

_KEPT = cython.declare(cython.longlong, KEPT)
_COUNTED = cython.declare(cython.longlong, COUNTED)
_GIVEN = cython.declare(cython.longlong, GIVEN)
_NUMBER = cython.declare(cython.longlong, NUMBER)
_MAPPED = cython.declare(cython.longlong, MAPPED)
_OWNER_SIZE = cython.declare(cython.Py_ssize_t, 16)
_KEY_SIZE = cython.declare(cython.Py_ssize_t, 4)
_NO_SHAPE = "a shape that contradicts itself"
_new_tuple: Callable[[Any, Any], Any] = tuple.__new__
"""It knows what a tuple of this Python has besides its items, such as a hash, and refuses types that it is not for."""


@cython.final
@cython.cclass
class EntryShape:
    """How the values of one shape set an entry, a tuple, in a dict of dicts of entries, or that they have no effect.

    It does not change once it is made, so what was checked then holds while any code runs that Python calls.

    Args:
        kind: the type of entries: ``tuple``, or a subclass that adds nothing to it but names.
        expected: a value of the shape.
        mask: as long as that; where it has the bit 1, values of the shape have the same bit.
        owner: the position of the 16 bytes that are the key of the outer dict.
        key: the position of the big-endian, signed 32-bit integer that is the key of the inner one.
        fields: of an entry, each as what it becomes (``KEPT`` and so on), its position and size in the value, and the
            object that is given, the dict, or, for a number, the one of which nothing is known, or None. Without any,
            nothing is set, and ``owner`` and ``key`` do not count.

    Raises:
        ValueError: a position is not in a value.
        TypeError: something is of another type, such as a type of tuples with other items than the visible ones; or
            the shape is made already.
    """

    _kind: type[tuple[Any, ...]]
    _expected: bytes
    _mask: bytes
    _owner: cython.Py_ssize_t
    _key: cython.Py_ssize_t
    _steps: cython.const[cython.longlong][::1]
    _objects: tuple[Any, ...]
    _is_new: cython.bint

    def __init__(
        self,
        kind: type[tuple[Any, ...]],
        expected: bytes,
        mask: bytes,
        owner: cython.Py_ssize_t,
        key: cython.Py_ssize_t,
        fields: Sequence[tuple[int, int, int, Any]],
    ) -> None:
        if type(expected) is not bytes or type(mask) is not bytes or not isinstance(kind, type):
            raise TypeError(_NO_SHAPE)
        _new_tuple(kind, ())
        size: cython.Py_ssize_t = len(expected)
        _require(len(mask) == size, _NO_SHAPE)
        rows = as_tuple(fields)
        is_inside: cython.bint = 0 <= owner <= size - _OWNER_SIZE and 0 <= key <= size - _KEY_SIZE
        _require(is_inside or len(rows) == 0, _NO_SHAPE)
        numbers: list[int] = []
        objects: list[Any] = []
        for row in rows:
            item: Any = _add_step(row, size, numbers)
            objects.append(item)
        items: tuple[Any, ...] = tuple(objects)
        steps: cython.const[cython.longlong][::1] = memoryview(array.array("q", numbers).tobytes()).cast("q")
        is_new: cython.bint = min(numbers[::3], default=GIVEN) >= GIVEN
        # From here on no code of others runs.
        if self._objects is not None if cython.compiled else hasattr(self, "_objects"):
            raise TypeError("a shape that is made already")
        self._kind = kind
        self._expected = expected
        self._mask = mask
        self._owner = owner
        self._key = key
        self._steps = steps
        self._is_new = is_new
        self._objects = items

    def __reduce__(self) -> NoReturn:
        raise TypeError("a shape does not pickle")

    @cython.cfunc
    def _fits(self, value: bytes, size: cython.Py_ssize_t) -> cython.bint:
        """Say whether a value has the shape."""
        if size != len(self._expected):
            return False
        if not cython.compiled:
            number = int.from_bytes
            return not (number(value) ^ number(self._expected)) & number(self._mask)
        data: cython.p_uchar = cython.cast(cython.p_uchar, cython.cast(cython.p_char, value))
        expected: cython.p_uchar = cython.cast(cython.p_uchar, cython.cast(cython.p_char, self._expected))
        mask: cython.p_uchar = cython.cast(cython.p_uchar, cython.cast(cython.p_char, self._mask))
        different: cython.uint = 0
        index: cython.Py_ssize_t
        for index in range(size):
            different |= (data[index] ^ expected[index]) & mask[index]
        return different == 0

    @cython.cfunc
    def _sets(self, value: bytes, tables: dict[bytes, Any]) -> cython.bint:
        """Set the entry that a value of the shape sets, if any; say no if that takes what is not known here."""
        if not self._objects:
            return True
        key: Any = _number_in(value, self._key, _KEY_SIZE)
        table: Any = tables.get(_piece(value, self._owner, _OWNER_SIZE))
        if type(table) is not dict:
            return False
        entries: dict[int, Any] = table
        before: Any = None
        if not self._is_new:
            before = entries.get(key)
            if type(before) is not self._kind or len(before) != len(self._objects):
                return False
        made: Any = self._made(value, before)
        if made is None:
            return False
        entries[key] = made
        return True

    @cython.cfunc
    def _made(self, value: bytes, before: Any) -> Any:
        """Return the new entry; None if a number is the one of which nothing is known."""
        steps: cython.const[cython.longlong][::1] = self._steps
        count: cython.Py_ssize_t = len(self._objects)
        index: cython.Py_ssize_t
        what: cython.longlong
        item: Any
        items: Any = PyTuple_New(count) if cython.compiled else []
        if cython.compiled:
            PyObject_GC_UnTrack(cython.cast(cython.p_void, items))  # Nobody may find it before it is full.
        for index in range(count):
            what = steps[3 * index]
            item = self._objects[index]
            if what == _KEPT:
                item = cython.cast(object, PyTuple_GetItem(before, index)) if cython.compiled else before[index]
            elif what == _COUNTED:
                item = before[index] + 1
            elif what == _NUMBER:
                number: Any = _number_in(value, steps[3 * index + 1], steps[3 * index + 2])
                if item is not None and number == item:
                    return None
                item = number
            elif what != _GIVEN:
                item = item[_piece(value, steps[3 * index + 1], steps[3 * index + 2])]
            if cython.compiled:
                Py_INCREF(item)  # The tuple takes this reference.
                PyTuple_SetItem(items, index, item)
            else:
                items.append(item)
        made: Any = _new_tuple(self._kind, items)
        if cython.compiled:
            PyObject_GC_UnTrack(cython.cast(cython.p_void, made))
        return made


@cython.cfunc
def _add_step(fields: Any, size: cython.Py_ssize_t, steps: list[int]) -> Any:
    """Add what becomes of a field of an entry, its position and its size to steps, and return its object.

    Each number is converted once, and what was checked is what is kept: one of another type may answer differently when
    it is asked again.
    """
    row: tuple[Any, ...] = as_tuple(fields)
    _require(len(row) == 4, _NO_SHAPE)
    what: cython.longlong
    position: cython.longlong
    length: cython.longlong
    what, position, length = array.array("q", row[:3])
    _require(_KEPT <= what <= _MAPPED, _NO_SHAPE)
    _require(what < _NUMBER or (0 <= position <= size and 0 <= length <= size - position), _NO_SHAPE)
    _require(what != _NUMBER or length in (1, 2, 4), _NO_SHAPE)
    if what == _MAPPED and not isinstance(row[3], dict):
        raise TypeError(_NO_SHAPE)
    steps += (what, position, length)
    return row[3]


@cython.cfunc
@cython.inline
def _number_in(value: bytes, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> int:
    """Return a big-endian, signed integer of 1, 2 or 4 bytes that is known to be in a value."""
    if not cython.compiled:
        return int.from_bytes(value[at : at + size], signed=True)
    data: cython.pointer(cython.const[cython.uchar]) = (
        cython.cast(cython.p_uchar, cython.cast(cython.p_char, value)) + at
    )
    if size == 1:
        return cython.cast(cython.schar, data[0])
    if size == 2:
        return cython.cast(cython.short, data[0] << 8 | data[1])
    return cython.cast(cython.int, _big_endian(data))


def set_entries(
    values: list[Any],
    first: cython.Py_ssize_t,
    shapes: list[Any],
    tables: dict[bytes, Any],
) -> int:
    """Set the entries of values in a row, up to one that has none of some shapes, or whose effect is not known.

    That is one that changes an entry that is not there, or in an inner table that is not there or is no plain dict, or
    has a number of which nothing is known. It has no effect here.

    Args:
        values: of records, bytes or None.
        first: the index of the value to start with.
        shapes: a tuple of shapes for each size of a value in bytes, from 0; a value has the first one that it fits.
        tables: to change.

    Returns:
        The index of the value without an effect; that after the last one if there is none.

    Raises:
        ValueError: the index is negative.
        TypeError: an argument is of another type.
    """
    at: cython.Py_ssize_t = first
    size: cython.Py_ssize_t
    _require(first >= 0, "a value that is not there")
    while at < len(values):
        found: Any = values[at]
        if type(found) is not bytes:
            break
        value: bytes = found
        size = len(value)
        if size >= len(shapes):
            break
        candidates: tuple[Any, ...] = shapes[size]
        is_set: cython.bint = False
        index: cython.Py_ssize_t = 0
        while index < len(candidates):
            shape: EntryShape = candidates[index]
            if shape is None:
                raise TypeError(_NO_SHAPE)
            index += 1
            if shape._fits(value, size):
                is_set = shape._sets(value, tables)
                break
        if not is_set:
            break
        at += 1
    return at
