# SPDX-License-Identifier: Apache-2.0
"""Lines of text stay within their buffer, whatever the input, even if it changes while it is read."""

from typing import Any

import pytest

from tests.records.kernel_forms import FORMS, ints, longs
from tests.strategies import batch_bytes

_forms = pytest.mark.parametrize("kernel", FORMS)
_BATCH_TEMPLATES = (b"a\0" * 13).ljust(512, b"\0") * 64
_RECORD_TEMPLATE = b"\0 \0 \0 \0 \0[\0]\0 k \0 v \0".ljust(512, b"\0")
_LOG = batch_bytes(count=1)


def _arguments(**others: Any) -> list[Any]:
    """Arguments of ``chunk_lines`` for the line of the first record of the first batch, with replacements."""
    ends, sizes = longs(1), ints(1)
    ends[0], sizes[0] = 1, 61
    arguments = {
        "log": _LOG,
        "positions": longs(1),
        "sizes": sizes,
        "first": 0,
        "last": 1,
        "file_position": 0,
        "batch_templates": _BATCH_TEMPLATES,
        "view": bytes(100),
        "first_row": -1,
        "ends": ends,
        "capacity": 1,
        "longs": longs(2),
        "ints": ints(6),
        "record_templates": _RECORD_TEMPLATE * 2,
        "payloads": True,
        "secret_kinds": bytes(256),
        "texts": b"",
        "text_ends": longs(0),
        "out": bytearray(5000),
    }
    return list((arguments | others).values())


def _of(count: int, *values: int, kind: str = "q") -> memoryview:
    column = (longs if kind == "q" else ints)(count)
    for index, value in enumerate(values):
        column[index] = value
    return column


@_forms
@pytest.mark.parametrize(
    "wrong",
    [
        {"positions": _of(1, -1)},
        {"positions": _of(1, 1)},
        {"positions": longs(0)},
        {"sizes": ints(0)},
        {"first": -1},
        {"last": 2},
        {"ends": _of(1, 2)},
        {"ends": _of(1, 2**62)},
        {"ends": longs(0)},
        {"capacity": 2},
        {"capacity": -1},
        {"capacity": 2**62},
        {"longs": longs(1)},
        {"ints": ints(5)},
        {"secret_kinds": bytes(255)},
        {"batch_templates": _BATCH_TEMPLATES[:511]},
        {"batch_templates": b"a" * 512 * 64},
        {"batch_templates": (b"a\0" * 12).ljust(512, b"a") * 64},
        {"record_templates": _RECORD_TEMPLATE},
        {"record_templates": b"a" * 1024},
        {"record_templates": (b"a\0" * 8).ljust(512, b"a") * 2},
        {"texts": b"abc", "text_ends": _of(1, 4)},
        {"texts": b"abc", "text_ends": _of(1, -1)},
        {"texts": b"abc", "text_ends": _of(1, 2**62)},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_missing_fields_are_not_written(kernel: Any, wrong: dict[str, Any]) -> None:
    """Batches, rows, texts and templates that are not as they must be are refused."""
    assert kernel.chunk_lines(*_arguments())[:2] == (1, -1)
    with pytest.raises(ValueError):
        kernel.chunk_lines(*_arguments(**wrong))


@_forms
@pytest.mark.parametrize(
    "columns",
    [(-5, 3), (99, 2), (0, 101), (2**31 - 1, 2**31 - 1), (0, -1, -5, 3), (0, -1, 99, 2), (0, -1, 0, -1, -1, 5)],
)
def test_a_payload_that_is_not_in_the_data_is_left(kernel: Any, columns: tuple[int, ...]) -> None:
    """The record is not written, and its batch is."""
    found = kernel.chunk_lines(*_arguments(ints=_of(6, *columns, kind="i")))
    alone = kernel.chunk_lines(*_arguments(ends=longs(1)))
    assert found == (0, 0, alone[2])


@_forms
def test_a_payload_at_the_end_of_the_data_is_written(kernel: Any) -> None:
    """The last byte counts."""
    arguments = _arguments(view=b"." * 98 + b"kv", ints=_of(6, 98, 1, 99, 1, kind="i"))
    batch, row, size = kernel.chunk_lines(*arguments)
    assert (batch, row) == (1, -1)
    assert bytes(arguments[-1][:size]).endswith(b"[] k k v v\n")


_FAR = b"\xbe\xbb\x7f"  # A varint: 1040095.


@_forms
@pytest.mark.parametrize("what", ["header key", "key", "value", "header count"])
def test_rows_that_change_after_measuring_do_not_overflow(kernel: Any, what: str) -> None:
    """The text of a template changes its measured size, as another thread may: nothing is written after the buffer,
    and the record is left to the reader.
    """
    shared = bytearray(1 << 20)
    out = memoryview(shared)[:3000]
    columns = memoryview(shared)[64:88].cast("i")
    column = _of(6, 200, -1, 200, -1, 200, 0, kind="i")
    if what == "header key":
        # A header key of one byte, whose size the template of the line overwrites.
        shared[4:8] = b"\x02k\x01\0"
        column[4], column[5] = 4, 1
        template = b"...." + _FAR + b"\0 \0 \0 \0 \0[\0]\0 k \0 v \0"
        columns = column
    else:
        index = {"key": 1, "value": 3, "header count": 5}[what]
        columns[:] = column
        columns[1] = columns[3] = 1
        overwritten = bytearray(b"." * 64 + bytes(memoryview(columns).cast("B")))
        overwritten[64 + 4 * index : 68 + 4 * index] = (900_000).to_bytes(4, "little")
        template = bytes(overwritten.replace(b"\0", b"\1")) + b"\0 \0 \0 \0 \0[\0]\0 k \0 v \0"
    templates = bytes(template.ljust(512, b"\0")) * 2
    before = bytes(shared[3000:])
    _, row, size = kernel.chunk_lines(
        *_arguments(view=memoryview(shared), first_row=0, ints=columns, record_templates=templates, out=out)
    )
    assert (row, size) == (0, 0)
    assert shared[3000:] == before


@_forms
@pytest.mark.parametrize(
    "templates",
    [b"a" * 512 * 64, (b"a\0" * 12).ljust(512, b"a") * 64, (b"a\0" * 13)[:-1]],
    ids=["no mark", "one mark too few", "too short"],
)
def test_a_template_ends_where_it_must(kernel: Any, templates: bytes) -> None:
    """One without all of its marks is refused; one that is not there leaves the batch to others."""
    with pytest.raises(ValueError, match="template"):
        kernel.batch_lines(_LOG, longs(1), ints(1), 0, 0, templates, bytearray(5000))
    assert kernel.batch_lines(_LOG, longs(1), ints(1), 0, 0, b"", bytearray(5000)) == (0, 0)
    for first in (-1, 2):
        with pytest.raises(ValueError):
            kernel.batch_lines(_LOG, longs(1), ints(1), first, 0, _BATCH_TEMPLATES, bytearray(5000))


@_forms
def test_templates_are_bytes(kernel: Any) -> None:
    """Nobody can change them while they are used."""
    if kernel.IS_COMPILED:
        with pytest.raises(TypeError):
            kernel.batch_lines(_LOG, longs(1), ints(1), 0, 0, bytearray(_BATCH_TEMPLATES), bytearray(5000))
