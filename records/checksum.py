# SPDX-License-Identifier: Apache-2.0
"""Checksums: CRC-32C (Castagnoli) of batches of magic 2, CRC-32 (IEEE) of older ones."""

import functools
import zlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

Checksum = Callable[..., int]


@functools.cache
def crc32c_function() -> Checksum:
    """Return the function that ``crc32c`` wraps, for hot loops that save one call by calling it directly."""
    # Loaded on first use, and without the package's own ``__init__``: that reads its version from the package metadata,
    # which takes longer than starting the interpreter.
    checksum = _of_extension()
    if checksum is not None:
        return checksum
    from crc32c import crc32c as of_package

    return of_package


def _of_extension() -> Checksum | None:
    """Return the function of the package's compiled module; None if the module differs from all known releases."""
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        return None
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return getattr(module, "crc32c", None)


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32C of some bytes; ``value`` is the CRC of the bytes before them."""
    return crc32c_function()(data, value)


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32 of some bytes; ``value`` is the CRC of the bytes before them."""
    return zlib.crc32(data, value)
