# SPDX-License-Identifier: Apache-2.0
"""Checksums."""

import zlib
from importlib.machinery import PathFinder

import pytest
from crc32c import crc32c as crc32c_of_package
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records import checksum, reference
from raftlog.records.checksum import crc32, crc32c


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=600), st.integers(0, 600))
def test_a_checksum_can_be_computed_in_parts(data: bytes, cut: int) -> None:
    """The checksum of two parts, one after the other, is that of the whole, for any kind of buffer."""
    assert crc32c(memoryview(data)[cut:], crc32c(bytearray(data[:cut]))) == crc32c(data) == reference.crc32c(data)
    assert crc32(memoryview(data)[cut:], crc32(bytearray(data[:cut]))) == crc32(data) == zlib.crc32(data)


def test_published_check_values() -> None:
    """Both give the check value that is published for them, and the one of RFC 3720 for 32 zeros."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32(b"123456789") == 0xCBF43926
    assert crc32c(b"") == crc32(b"") == 0


@given(st.binary(max_size=600))
def test_the_compiled_module_alone_gives_the_same(data: bytes) -> None:
    """The function from the package's compiled module is the one that the package offers."""
    alone = checksum._of_extension()

    assert alone is not None
    assert alone(data, 7) == crc32c_of_package(data, 7)


def test_a_package_made_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package has no such module, it is imported as a whole."""
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)

    assert checksum._of_extension() is None
    assert checksum.crc32c_function.__wrapped__() is crc32c_of_package
