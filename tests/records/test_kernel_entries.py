# SPDX-License-Identifier: Apache-2.0
"""Entries that the kernel sets from values of a shape, beside a model that goes field by field; both forms."""

import contextlib
import copy
import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.kernel_forms import BUILT_FORMS, FORMS, INTERPRETED, examples

_forms = pytest.mark.parametrize("kernel", FORMS)
_KINDS = (INTERPRETED.KEPT, INTERPRETED.COUNTED, INTERPRETED.GIVEN, INTERPRETED.NUMBER, INTERPRETED.MAPPED)
_Fields = list[tuple[int, int, int, Any]]


class Entry(NamedTuple):
    """An entry of two fields, as an image has them."""

    first: Any
    second: Any


class Lengths(dict[bytes, int]):
    """Has the sum of any bytes."""

    def __missing__(self, data: bytes) -> int:
        self[data] = sum(data)
        return self[data]


class Sound(NamedTuple):
    """Arguments of a shape, without the dicts of its mapped fields."""

    expected: bytes
    mask: bytes
    owner: int
    key: int
    fields: _Fields


@st.composite
def _fields(draw: st.DrawFn, size: int) -> _Fields:
    found: _Fields = []
    for what in draw(st.lists(st.sampled_from(_KINDS), min_size=2, max_size=2)):
        length = draw(st.sampled_from([1, 2, 4]) if what == INTERPRETED.NUMBER else st.integers(0, 5))
        item = {
            INTERPRETED.GIVEN: draw(st.sampled_from([(), (1, 2), None])),
            INTERPRETED.NUMBER: draw(st.sampled_from([None, -1, 0, 7])),
        }.get(what)
        found.append((what, draw(st.integers(0, size - length)), length, item))
    return found


@st.composite
def _shapes(draw: st.DrawFn) -> Sound:
    size = draw(st.integers(20, 24))
    byte = st.sampled_from([0, 0, 1, 7, 255])
    expected, mask = (bytes(draw(st.lists(byte, min_size=size, max_size=size))) for _ in range(2))
    owner, key = draw(st.integers(0, size - 16)), draw(st.integers(0, size - 4))
    return Sound(expected, mask, owner, key, draw(_fields(size)))


def _made(kernel: Any, shape: Sound) -> Any:
    fields = [(*field[:3], Lengths() if field[0] == kernel.MAPPED else field[3]) for field in shape.fields]
    return kernel.EntryShape(Entry, *shape[:4], fields)


def _fits(value: bytes, shape: Sound) -> bool:
    same = (each & mask == expected & mask for each, expected, mask in zip(value, shape.expected, shape.mask))  # noqa: B905
    return len(value) == len(shape.expected) and all(same)


def _model(values: list[bytes | None], shapes: list[Sound], tables: dict[bytes, Any]) -> int:
    """What becomes of the tables, and how many values have an effect; one after the other, field by field."""
    for index, value in enumerate(values):
        fitting = [] if value is None else [shape for shape in shapes if _fits(value, shape)]
        if value is None or not fitting:
            return index
        shape = fitting[0]
        table = tables.get(value[shape.owner : shape.owner + 16])
        number = int.from_bytes(value[shape.key : shape.key + 4], signed=True)
        if table is None:
            return index
        is_change = any(field[0] in (INTERPRETED.KEPT, INTERPRETED.COUNTED) for field in shape.fields)
        if is_change and number not in table:
            return index
        items = []
        for at, (what, position, length, item) in enumerate(shape.fields):
            data = value[position : position + length]
            match _KINDS.index(what):
                case 0:
                    items.append(table[number][at])
                case 1:
                    items.append(table[number][at] + 1)
                case 2:
                    items.append(item)
                case 3:
                    items.append(int.from_bytes(data, signed=True))
                    if items[-1] == item:
                        return index
                case _:
                    items.append(sum(data))
        table[number] = Entry(*items)
    return len(values)


@examples(60)
@given(st.data())
def test_entries_are_set_as_the_shapes_say(data: st.DataObject) -> None:
    """Up to the first value that has no shape, or whose entry, table or number is not known."""
    shapes = data.draw(st.lists(_shapes(), min_size=1, max_size=2))
    values: list[bytes | None] = []
    for shape in data.draw(st.lists(st.sampled_from(shapes), max_size=5)):
        other = data.draw(st.binary(min_size=len(shape.expected), max_size=len(shape.expected)))
        if data.draw(st.booleans()):  # Else anything.
            zipped = zip(shape.expected, shape.mask, other, strict=True)
            other = bytes((expected & mask) | (each & ~mask & 255) for expected, mask, each in zipped)
        values.append(data.draw(st.sampled_from([other, other, other, shape.expected, shape.expected[:-1], None])))
    tables: dict[bytes, Any] = {}
    for shape in shapes:
        for value in filter(None, [*values, shape.expected]):
            if data.draw(st.sampled_from([True, True, True, False])):
                number = int.from_bytes(value[shape.key : shape.key + 4], signed=True)
                tables.setdefault(value[shape.owner : shape.owner + 16], {})[number] = Entry(5, 6)
    expected = copy.deepcopy(tables)
    count = _model(values, shapes, expected)
    for kernel in BUILT_FORMS:
        by_size = [
            tuple(_made(kernel, shape) for shape in shapes if len(shape.expected) == size)
            for size in range(data.draw(st.integers(max(len(each.expected) for each in shapes) + 1, 30)))
        ]
        found = copy.deepcopy(tables)
        assert kernel.set_entries(values, 0, by_size, found) == count
        assert found == expected
        for entry in (entry for table in found.values() for entry in table.values()):
            assert type(entry) is Entry
            assert hash(entry) == hash(Entry(*entry))


# One shape: an owner, a key, and a number of four bytes after a byte that says so.

_OWNER = bytes(range(16))
_VALUE = b"\x07" + _OWNER + bytes([0, 0, 0, 9]) + bytes([0, 0, 1, 0])
_MASK = b"\xff" + bytes(24)


def _one(kernel: Any, *fields: tuple[int, int, int, Any], kind: Any = Entry, mask: bytes = _MASK) -> Any:
    both = fields or ((kernel.NUMBER, 21, 4, None), (kernel.GIVEN, 0, 0, "x"))
    return kernel.EntryShape(kind, _VALUE, mask, 1, 17, both)


def _set(kernel: Any, shape: Any, value: Any, table: Any, first: int = 0) -> int:
    found: int = kernel.set_entries([value], first, [(), *[()] * (len(_VALUE) - 1), (shape,)], {_OWNER: table})
    return found


@_forms
def test_a_new_entry(kernel: Any) -> None:
    """It is of the type that was said, and needs none before it."""
    table: dict[int, Any] = {}
    assert _set(kernel, _one(kernel), _VALUE, table) == 1
    assert table == {9: Entry(256, "x")}
    assert type(table[9]) is Entry
    assert _set(kernel, _one(kernel, kind=tuple), _VALUE, table) == 1
    assert type(table[9]) is tuple


@_forms
def test_numbers_of_each_size(kernel: Any) -> None:
    """They are big-endian and signed."""
    for size, value, expected in [(1, 0x80, -128), (2, 0x8001, -32767), (4, 0x80000001, -(2**31) + 1), (2, 258, 258)]:
        table: dict[int, Any] = {}
        shape = _one(kernel, (kernel.NUMBER, 21, size, None), (kernel.NUMBER, 21, size, expected + 1))
        data = _VALUE[:21] + value.to_bytes(size) + bytes(4 - size)
        assert _set(kernel, shape, data, table) == 1
        assert table == {9: (expected, expected)}
        refusing = _one(kernel, (kernel.NUMBER, 21, size, None), (kernel.NUMBER, 21, size, expected))
        assert _set(kernel, refusing, data, table) == 0


@_forms
def test_what_another_kind_of_table_or_entry_has_stays(kernel: Any) -> None:
    """A dict that watches is not written to; an entry of another type or length is not changed."""

    class Watched(dict[int, Any]):
        def __setitem__(self, *_: Any) -> None:
            raise AssertionError

    change = _one(kernel, (kernel.KEPT, 0, 0, None), (kernel.COUNTED, 0, 0, None))
    for table in (Watched({9: Entry(1, 2)}), None, [1], {9: (1, 2)}, {9: None}, {8: Entry(1, 2)}):
        before = repr(table)
        assert _set(kernel, change, _VALUE, table) == 0
        assert repr(table) == before
    short = _one(kernel, (kernel.KEPT, 0, 0, None), (kernel.KEPT, 0, 0, None), (kernel.KEPT, 0, 0, None))
    assert _set(kernel, short, _VALUE, {9: Entry(1, 2)}) == 0
    table = {9: Entry("a", 2**70)}
    assert _set(kernel, change, _VALUE, table) == 1
    assert table == {9: Entry("a", 2**70 + 1)}


@_forms
def test_values_that_are_no_bytes_and_rows_that_are_not_there(kernel: Any) -> None:
    """They have no effect; a negative index is refused."""
    for value in (None, bytearray(_VALUE), memoryview(_VALUE), "x" * len(_VALUE), 5, _VALUE + b"x", _VALUE[:-1], b""):
        assert _set(kernel, _one(kernel), value, {}) == 0
    assert _set(kernel, _one(kernel), _VALUE, {}, 1) == 1
    assert _set(kernel, _one(kernel), _VALUE, {}, 2**40) == 2**40
    with pytest.raises(ValueError):
        _set(kernel, _one(kernel), _VALUE, {}, -1)
    for by_size in ([("x",)] * 40, [["x"]] * 40, [(None,)] * 40):
        with pytest.raises((TypeError, AttributeError)):
            kernel.set_entries([_VALUE], 0, by_size, {_OWNER: {}})


@_forms
def test_a_shape_in_the_row_of_another_size_fits_nothing(kernel: Any) -> None:
    """Its own size counts."""
    value = _VALUE + bytes(9)
    for each in (value, _VALUE[:9]):
        by_size = [(_one(kernel),)] * 40
        assert kernel.set_entries([each], 0, by_size, {_OWNER: {}}) == 0


@_forms
def test_shapes_that_contradict_themselves(kernel: Any) -> None:
    """Positions outside of the value, at the limits too, and things of other types."""
    fine: list[Any] = [Entry, _VALUE, _MASK, 1, 17, [(kernel.GIVEN, 0, 0, 1)]]
    kernel.EntryShape(*fine)
    kernel.EntryShape(*fine[:3], len(_VALUE) - 16, len(_VALUE) - 4, [(kernel.MAPPED, len(_VALUE), 0, {})])
    for index, wrong in [
        (2, _MASK[:-1]),
        (2, _MASK + b"x"),
        (3, -1),
        (3, len(_VALUE) - 15),
        (4, -1),
        (4, len(_VALUE) - 3),
        (5, [(5, 0, 0, None)]),
        (5, [(-1, 0, 0, None)]),
        (5, [(kernel.NUMBER, 0, 3, None)]),
        (5, [(kernel.NUMBER, 22, 4, None)]),
        (5, [(kernel.NUMBER, -1, 4, None)]),
        (5, [(kernel.MAPPED, 25, 1, {})]),
        (5, [(kernel.MAPPED, 26, 0, {})]),
        (5, [(kernel.MAPPED, 0, -1, {})]),
        (5, [(kernel.MAPPED, 2**62, 2**62, {})]),
    ]:
        with pytest.raises(ValueError):
            kernel.EntryShape(*fine[:index], wrong, *fine[index + 1 :])
    for index, wrong in [
        (0, dict),
        (0, int),
        (0, os.stat_result),
        (0, NoType()),
        (0, (tuple,)),
        (0, None),
        (1, bytearray(_VALUE)),
        (2, None),
        (5, [(kernel.MAPPED, 0, 1, None)]),
        (5, [(kernel.GIVEN, 0.0, 0, None)]),
        (5, [None]),
        (5, None),
    ]:
        with pytest.raises(TypeError):
            kernel.EntryShape(*fine[:index], wrong, *fine[index + 1 :])


class NoType:
    """Says that it is derived from tuples."""

    __bases__ = (tuple,)


class Liar(int):
    """Says yes to every comparison."""

    def _yes(self, _: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = _yes

    def __hash__(self) -> int:
        return 4


@_forms
@pytest.mark.parametrize("wrong", [-1, 22, 2**40, -(2**62)])
def test_positions_that_compare_as_they_like(kernel: Any, wrong: int) -> None:
    """What counts is the number, which is read once."""
    row: Any
    for row in ((kernel.NUMBER, Liar(wrong), 4, None), (kernel.MAPPED, 0, Liar(wrong * 2), {})):
        with pytest.raises(ValueError):
            _one(kernel, row)
    with pytest.raises(ValueError):
        _one(kernel, (Liar(wrong), 0, 0, None))
    if kernel.IS_COMPILED:  # Where another form would cut out less, not read elsewhere.
        for owner, key in ((Liar(wrong), 17), (1, Liar(wrong))):
            with pytest.raises(ValueError):
                kernel.EntryShape(Entry, _VALUE, _MASK, owner, key, [(kernel.GIVEN, 0, 0, 1)])


@_forms
def test_rows_that_change_while_they_are_read(kernel: Any) -> None:
    """Each is read once."""

    class Changing:
        def __init__(self) -> None:
            self.reads = 0

        def __len__(self) -> int:
            return 4

        def __iter__(self) -> Iterator[Any]:
            self.reads += 1
            return iter((kernel.NUMBER, 21 if self.reads == 1 else 2**40, 4, None))

    table: dict[int, Any] = {}
    assert _set(kernel, _one(kernel, Changing(), (kernel.GIVEN, 0, 0, 1)), _VALUE, table) == 1  # type: ignore[arg-type]
    assert table == {9: (256, 1)}
    for size in (0, 3, 5):
        with pytest.raises(ValueError):
            _one(kernel, (kernel.GIVEN,) * size)


@_forms
def test_a_shape_is_made_once(kernel: Any) -> None:
    """Neither a key that is compared nor the fields themselves can make it anew."""
    arguments: list[Any] = [Entry, _VALUE, _MASK, 1, 17, [(kernel.NUMBER, 21, 4, None), (kernel.GIVEN, 0, 0, "x")]]
    number = (kernel.NUMBER, 1000, 4, None)
    longer: list[Any] = [Entry, _VALUE + bytes(999), _MASK + bytes(999), 900, 1000, [number, number]]
    shape = kernel.EntryShape(*arguments)
    refused = []

    class Key:
        def __hash__(self) -> int:
            return hash(_OWNER)

        def __eq__(self, other: object) -> bool:
            with pytest.raises(TypeError, match="made already"):
                shape.__init__(*longer)
            refused.append(other)
            return True

    table: dict[int, Any] = {}
    assert kernel.set_entries([_VALUE], 0, [*[()] * len(_VALUE), (shape,)], {Key(): table}) == 1
    assert (table, refused) == ({9: (256, "x")}, [_OWNER])
    empty = kernel.EntryShape.__new__(kernel.EntryShape)

    class Making(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            empty.__init__(*arguments)
            return super().__iter__()

    with pytest.raises(TypeError, match="made already"):
        empty.__init__(*longer[:-1], Making(longer[-1]))
    table.clear()
    assert _set(kernel, empty, _VALUE, table) == 1
    assert table == {9: (256, "x")}


@_forms
def test_what_a_dict_does_while_it_is_asked(kernel: Any) -> None:
    """It may shorten the list of values, take the table away, or fail."""
    values: list[Any] = [_VALUE] * 3
    tables: dict[bytes, Any] = {_OWNER: {}}

    class Clearing(dict[bytes, Any]):
        def __missing__(self, data: bytes) -> Any:
            values.clear()
            tables.clear()
            return data

    class Failing(dict[bytes, Any]):
        def __missing__(self, data: bytes) -> Any:
            raise LookupError

    fields: Callable[[Any], Any] = lambda items: ((kernel.GIVEN, 0, 0, 1), (kernel.MAPPED, 20, 2, items))  # noqa: E731
    shape = _one(kernel, *fields(Clearing()))
    assert kernel.set_entries(values, 0, [*[()] * len(_VALUE), (shape,)], tables) == 1
    table: dict[int, Any] = {}
    with pytest.raises(LookupError):
        _set(kernel, _one(kernel, *fields(Failing())), _VALUE, table)
    assert table == {}


_COUNT = 300
_VALUES = [_VALUE[:17] + number.to_bytes(4) + _VALUE[21:] for number in range(_COUNT)]


def _held(kernel: Any, token: object, *fields: tuple[int, int, int, Any]) -> tuple[list[int], list[int], int]:
    """Set entries by a shape again and again; return how often a token and their type are held, and how many were set.

    That is before, with the new entries in place of those that held the token, and without them.
    """
    shape = _one(kernel, *fields)
    table: dict[int, Any] = {number: Entry(token, "no number") for number in range(_COUNT)}
    tokens, kinds = [sys.getrefcount(token)], [sys.getrefcount(Entry)]
    done = 0
    for value in _VALUES:
        with contextlib.suppress(LookupError, TypeError):
            done += _set(kernel, shape, value, table)
    for _ in range(2):
        tokens.append(sys.getrefcount(token))
        kinds.append(sys.getrefcount(Entry))
        table.clear()
    return tokens, kinds, done


@_forms
def test_what_entries_refer_to_is_freed_with_them(kernel: Any) -> None:
    """Each entry that is set holds each of its items and its type once, and lets go of them."""
    number, none = (kernel.NUMBER, 21, 4, None), (kernel.GIVEN, 0, 0, None)
    for field in ((kernel.KEPT, 0, 0, None), (kernel.GIVEN, 0, 0, "token"), (kernel.MAPPED, 0, 1, "tokens")):
        for other in (number, none):
            token = object()
            items: Any = {"token": token, "tokens": {_VALUE[:1]: token}}.get(str(field[3]))
            tokens, kinds, done = _held(kernel, token, (*field[:3], items), other)
            assert done == _COUNT
            assert tokens == [tokens[0], tokens[0], tokens[0] - _COUNT]
            assert kinds == [kinds[0], kinds[0], kinds[0] - _COUNT]


class _Failing(dict[bytes, Any]):
    def __missing__(self, data: bytes) -> Any:
        raise LookupError


@_forms
def test_an_entry_that_is_given_up_holds_nothing(kernel: Any) -> None:
    """A number that is refused, a dict that fails, or a field that cannot be counted, after an item was taken."""
    ends = (kernel.NUMBER, 21, 4, 256), (kernel.MAPPED, 0, 1, _Failing()), (kernel.COUNTED, 0, 0, None)
    for end in ends:
        for first in ((kernel.KEPT, 0, 0, None), (kernel.GIVEN, 0, 0, "token")):
            token = object()
            tokens, kinds, done = _held(kernel, token, (*first[:3], token if first[3] else None), end)
            assert done == 0
            assert tokens == [tokens[0], tokens[0], tokens[0] - _COUNT]
            assert kinds == [kinds[0], kinds[0], kinds[0] - _COUNT]


@_forms
def test_entries_count_as_no_garbage(kernel: Any) -> None:
    """The search for cycles need not look at those that the compiled form makes."""
    for kind in (Entry, tuple):
        table: dict[int, Any] = {}
        for value in _VALUES:
            _set(kernel, _one(kernel, (kernel.NUMBER, 21, 4, None), (kernel.GIVEN, 0, 0, []), kind=kind), value, table)
        assert len(table) == _COUNT
        assert {gc.is_tracked(entry) for entry in table.values()} == {not kernel.IS_COMPILED}


@_forms
def test_a_shape_without_fields_sets_nothing(kernel: Any) -> None:
    """Its values are passed over, whatever the tables are; it may be shorter than a key."""
    for value in (b"", b"\1\2\3", _VALUE):
        shape = kernel.EntryShape(tuple, value, b"\xff" * len(value), -1, 99, [])
        by_size = [(shape,)] * 40
        assert kernel.set_entries([value, value, None], 0, by_size, {}) == 2
        assert kernel.set_entries([value + b"x"], 0, by_size, {}) == 0


@_forms
def test_shapes_do_not_pickle_and_an_empty_one_is_harmless(kernel: Any) -> None:
    """Their positions would not be checked again."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(_one(kernel), protocol)
    empty = kernel.EntryShape.__new__(kernel.EntryShape)
    with pytest.raises((TypeError, AttributeError)):
        _set(kernel, empty, _VALUE, {})
