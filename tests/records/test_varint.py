# SPDX-License-Identifier: Apache-2.0
"""Variable-length integers."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.varint import read_uvarint, read_varint, read_varlong, uvarint, varint, varlong
from tests.records.outcome import outcome

every = settings(deadline=None)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)


@every
@given(st.integers(0, (1 << 35) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_unsigned_varints_survive(value: int, head: bytes, tail: bytes) -> None:
    """An unsigned varint reads as it was written, at any position."""
    data = head + uvarint(value) + tail
    assert read_uvarint(data, len(head)) == (value, len(data) - len(tail))
    assert read_uvarint(memoryview(data), len(head)) == (value, len(data) - len(tail))


@every
@given(int32)
def test_varints_survive(value: int) -> None:
    """A value of 32 bits reads as it was written, in at most 5 bytes, and as a varlong too."""
    data = varint(value)
    assert read_varint(data, 0) == read_varlong(data, 0) == (value, len(data))
    assert len(data) <= 5


@every
@given(int64)
def test_varlongs_survive(value: int) -> None:
    """A value of 64 bits reads as it was written, in at most 10 bytes."""
    data = varlong(value)
    assert read_varlong(data, 0) == (value, len(data))
    assert len(data) <= 10


@every
@given(st.binary(max_size=12))
def test_any_bytes_give_a_value_or_a_typed_error(data: bytes) -> None:
    """Any bytes read as a value of the right size, or raise InvalidRecordError."""
    readers: list[tuple[Callable[[bytes, int], tuple[int, int]], int]] = [(read_varint, 31), (read_varlong, 63)]
    for read, bits in readers:
        result = outcome(partial(read, data, 0))
        if isinstance(result, DecodeError):
            assert isinstance(result, InvalidRecordError)
            assert result.position == 0
        else:
            assert -(1 << bits) <= result[0] < 1 << bits
            assert 0 < result[1] <= len(data)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), ((1 << 31) - 1, "feffffff0f")],
)
def test_known_varints(value: int, data: str) -> None:
    """Known values have their known bytes."""
    assert varint(value).hex() == varlong(value).hex() == data


def test_longer_forms_are_accepted() -> None:
    """Bytes that say nothing are accepted, up to the limit."""
    assert read_uvarint(b"\x81\x80\x80\x80\x00", 0) == (1, 5)
    assert read_varlong(b"\x82" + b"\x80" * 8 + b"\x00", 0) == (1, 10)


@pytest.mark.parametrize(
    ("read", "data", "rule"),
    [
        (read_uvarint, b"", "varint-length"),
        (read_uvarint, b"\x80", "varint-length"),
        (read_uvarint, b"\xff" * 5 + b"\x01", "varint-length"),
        (read_varint, b"\xff\xff\xff\xff\x1f", "varint-range"),
        (read_varlong, b"\xff" * 9 + b"\x02", "varint-range"),
        (read_varlong, b"\xff" * 11, "varint-length"),
    ],
)
def test_bad_varints_name_their_rule(read: Callable[[bytes, int], tuple[int, int]], data: bytes, rule: str) -> None:
    """A varint that is cut, too long or too large says which rule it breaks."""
    with pytest.raises(InvalidRecordError) as caught:
        read(data, 0)
    assert caught.value.rule == rule


@pytest.mark.parametrize(("write", "value"), [(uvarint, -1), (varint, 1 << 31), (varlong, -(1 << 63) - 1)])
def test_values_that_do_not_fit_are_refused(write: Callable[[int], bytes], value: int) -> None:
    """Writing a value out of range is a ValueError."""
    with pytest.raises(ValueError):
        write(value)
