# SPDX-License-Identifier: Apache-2.0
"""Checksums: CRC-32C (Castagnoli) of batches of magic 2, CRC-32 (IEEE) of older ones."""

import functools
import zlib
from collections.abc import Callable

Checksum = Callable[..., int]


@functools.cache
def crc32c_function() -> Checksum:
    """Return what ``crc32c`` calls, for where a call more is felt."""
    # On first need: importing the package costs more than starting the interpreter.
    from crc32c import crc32c as of_package

    checksum: Checksum = of_package
    return checksum


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32C of some bytes; ``value`` is that of the bytes before them."""
    return crc32c_function()(data, value)


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32 of some bytes; ``value`` is that of the bytes before them."""
    return zlib.crc32(data, value)
