# SPDX-License-Identifier: Apache-2.0
"""Rows and prepared records that cannot be: each form refuses them, and writes nothing where it may not."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import crc32c
import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from tests.records.kernel_forms import FORMS, using_to_write

_forms = pytest.mark.parametrize("kernel", FORMS)
_ROW = (5, b"k" * 300, b"v" * 300)  # A large key and a large value: both take a place in the table that is sized once.


class SaysOtherwise(list[Any]):
    """A list whose length is not how many items it gives."""

    def __init__(self, items: Sequence[Any], length: int) -> None:
        super().__init__(items)
        self.length = length

    def __len__(self) -> int:
        return self.length


class TupleOfMore(tuple[Any, ...]):
    """A tuple that iterates to more than it holds."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        yield from [_ROW] * 50


class GrowingHeaders(list[Any]):
    """Headers that change the rows that they belong to when they are read."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__([(b"h", b"1")])
        self.change = change

    def __len__(self) -> int:
        self.change()
        return 1


class Endless(SaysOtherwise):
    """A sequence without end."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield _ROW


def _odd_sequences(count: int) -> list[Any]:
    return [
        SaysOtherwise([_ROW] * count, count - 1),
        SaysOtherwise([_ROW] * count, count + 1),
        SaysOtherwise([_ROW] * 500, count),
        TupleOfMore([_ROW] * count),
        Endless([], count),
    ]


@_forms
@pytest.mark.parametrize("count", [1, 2, 5])
def test_rows_with_a_wrong_length_are_refused(kernel: Any, count: int) -> None:
    """One more, one fewer or far more rows than their length says: nothing is written past what it was sized for."""
    for rows in _odd_sequences(count):
        with pytest.raises(ValueError, match="items"):
            kernel.prepare(rows, 0, 0)
        builder = RecordBatchBuilder(0)
        with using_to_write(kernel):
            for refused in (builder.extend, builder.size_with):
                with pytest.raises(ValueError, match="items"):
                    refused(rows)
            assert (builder.size_bytes, builder.next_offset) == (61, 0)
    assert kernel.prepare(SaysOtherwise([_ROW] * count, count), 0, 0)[-1] == count


@_forms
def test_rows_that_have_no_length_are_refused(kernel: Any) -> None:
    """A generator would be used up by the first look at it."""
    with using_to_write(kernel), pytest.raises(TypeError):
        RecordBatchBuilder(0).extend(iter([_ROW]))  # type: ignore[arg-type]


@_forms
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("how", ["grow", "shrink", "replace"])
def test_rows_that_change_while_they_are_read(kernel: Any, how: str, count: int) -> None:
    """A list that grows or shrinks is refused, or taken as it was; the header of a batch counts what is in it."""
    rows: list[Any] = [_ROW] * count

    def change() -> None:
        if how == "grow":
            rows.extend([_ROW] * 1000)
        elif how == "shrink":
            del rows[1:]
        else:
            rows[1:] = [(7, None, None)] * (len(rows) - 1)

    rows.insert(0, (5, b"k", b"v", GrowingHeaders(change)))
    builder = RecordBatchBuilder(0)
    with using_to_write(kernel):
        try:
            builder.extend(rows)
        except ValueError:
            assert (builder.size_bytes, builder.next_offset) == (61, 0)
            assert how != "replace"
            return
        batch = RecordBatch(builder.build())
    assert len(list(batch.records())) == batch.record_count == count + 1
    assert batch.last_offset_delta == count


@_forms
@pytest.mark.parametrize(
    "headers", [SaysOtherwise([(b"h", b"1")] * 3, 2), SaysOtherwise([(b"h", b"1")], 2), Endless([], 1)], ids=type
)
def test_headers_with_a_wrong_length_are_refused(kernel: Any, headers: Any) -> None:
    """Their number precedes them."""
    with pytest.raises(ValueError, match="items"):
        kernel.prepare([(0, None, None, headers)], 0, 0)


_OTHER_BYTES = [
    bytearray(b"1234"),
    memoryview(b"1234"),
    memoryview(b"12345678").cast("i"),
    type("BytesOfAnotherType", (bytes,), {"__len__": lambda _: 1000})(b"1234"),
    "1234",
    1234,
    [1],
]


@_forms
@pytest.mark.parametrize("wrong", _OTHER_BYTES, ids=lambda wrong: type(wrong).__name__)
def test_keys_and_values_of_records_and_headers_are_bytes(kernel: Any, wrong: Any) -> None:
    """A value other than bytes may change, or its size may differ from its length: a TypeError in any field."""
    rows: list[Any] = [
        (0, wrong, None),
        (0, None, wrong),
        (0, wrong, None, ()),
        (0, None, None, [(wrong, b"v")]),
        (0, None, None, [(b"k", wrong)]),
        (0, None, None, [(b"k", b"v"), [b"k", wrong]]),
    ]
    for fields in rows:
        with pytest.raises(TypeError):
            kernel.prepare([fields], 0, 0)
        with using_to_write(kernel), pytest.raises(TypeError):
            RecordBatchBuilder(0).append(*fields)
    with pytest.raises(TypeError):
        kernel.prepare([(0, None, None, [(None, b"v")])], 0, 0)


class Five:
    """An integer by its own word, another one each time."""

    def __init__(self) -> None:
        self.value = 4

    def __index__(self) -> int:
        self.value += 1
        return self.value


@_forms
def test_timestamps_are_integers(kernel: Any) -> None:
    """Neither a fraction nor a text is cut to one; one that says another number each time is still written soundly."""
    for wrong in (1.0, 1.5, "1", None, b"1"):
        with pytest.raises(TypeError):
            kernel.prepare([(wrong, b"k", b"v")], 0, 0)
        with using_to_write(kernel), pytest.raises(TypeError):
            RecordBatchBuilder(0).append(wrong, b"k", b"v")  # type: ignore[arg-type]
    with using_to_write(kernel):
        builder = RecordBatchBuilder(0)
        builder.append(Five(), b"k", b"v")  # type: ignore[arg-type]
        assert [record.timestamp for record in RecordBatch(builder.build()).records()] == [6]


@_forms
def test_rows_may_be_lists_and_other_sequences(kernel: Any) -> None:
    """A value with the right number of fields is a row, whatever its type."""
    rows = [[5, b"k", b"v"], SaysOtherwise([5, b"k", b"v", [[b"h", None]]], 4), (5, b"k", b"v", iter_of(b"h"))]
    prepared, size, *_, count = kernel.prepare(tuple(rows), 5, 0)
    assert (len(kernel.encode(b"", [prepared], size, crc32c.crc32c)), count) == (size, 3)


def iter_of(key: bytes) -> list[tuple[bytes, None]]:
    """Headers of a type of their own."""
    return SaysOtherwise([(key, None)], 1)


@_forms
@pytest.mark.parametrize("header_size", [1, 17, 20, 60, 62])
def test_a_header_has_61_bytes_or_none(kernel: Any, header_size: int) -> None:
    """The CRC is written where a header has it: there must be one."""
    with pytest.raises(ValueError):
        kernel.encode(bytes(header_size), [], 0, crc32c.crc32c)


@_forms
@pytest.mark.parametrize("size", [-1, -61, -62, -(2**31), -(2**63), 2**63 - 1, 2**63 - 62])
def test_records_of_no_possible_size_are_not_written(kernel: Any, size: int) -> None:
    """A negative or an impossibly large size is refused."""
    prepared = kernel.prepare([_ROW], 0, 0)[0]
    for header in (bytes(61), b""):
        with pytest.raises((ValueError, MemoryError, OverflowError)):
            kernel.encode(header, [prepared], size, crc32c.crc32c)


_compiled_alone = pytest.mark.parametrize("kernel", FORMS[1:])


@_compiled_alone
@pytest.mark.parametrize("index", [1, 3])
@pytest.mark.parametrize("place", [-1, -(2**63), 2**63 - 1, 10**6, 700])
def test_a_large_field_lies_inside_its_record(kernel: Any, place: int, index: int) -> None:
    """Where a large field belongs is checked before anything is copied up to there."""
    (area, marks, large), size, *_ = kernel.prepare([_ROW] * 2, 0, 0)
    for wrong, room in ((place, size), (len(area) + 1, size), (len(area) + 1, size + 1)):
        memoryview(marks).cast("q")[index] = wrong
        with pytest.raises(ValueError):
            kernel.encode(b"", [(area, marks, large)], room, crc32c.crc32c)


@_compiled_alone
def test_unprepared_batches_are_not_written(kernel: Any) -> None:
    """Each part has its type, and there is a place for each large field."""
    (area, marks, large), size, *_ = kernel.prepare([_ROW], 0, 0)
    for parts in [
        (None, marks, large),
        (area, None, large),
        (area, marks, None),
        (bytes(area), marks, large),
        (area, marks, tuple(large)),
        (area, marks, [None] * 2),
        (area, marks[:15], large),
        (area, bytearray(), large),
    ]:
        with pytest.raises(TypeError):
            kernel.encode(b"", [parts], size, crc32c.crc32c)
    with pytest.raises(ValueError):
        kernel.encode(b"", [(area, marks, [large[0], bytes(10**8)])], size, crc32c.crc32c)
    marks += bytes(8 * 100)
    with pytest.raises(ValueError):
        kernel.encode(b"", [(area, marks, large + [b"x" * 5000] * 100)], size, crc32c.crc32c)
    with pytest.raises(ValueError):
        kernel.encode(b"", [(area + bytes(5000), marks, large)], size, crc32c.crc32c)


@_forms
@pytest.mark.parametrize("size", [-1, -(2**31), -(2**63)])
def test_there_is_no_room_of_less_than_nothing(kernel: Any, size: int) -> None:
    """A negative size is refused before it is asked for."""
    with pytest.raises(ValueError):
        kernel.room(size)
    assert kernel.room(0) == b""
