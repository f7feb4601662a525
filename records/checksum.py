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
    """Return what ``crc32c`` calls, for where a call more is felt."""
    # On first need, and without the package's own module, which reads its version from its metadata: to import that
    # costs more than starting the interpreter.
    checksum = _of_extension()
    if checksum is not None:
        return checksum
    from crc32c import crc32c as of_package

    return of_package


def _of_extension() -> Checksum | None:
    """Return the function of the package's compiled module; None where that is not what it is in all known releases."""
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        return None
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return getattr(module, "crc32c", None)


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32C of some bytes; ``value`` is that of the bytes before them."""
    return crc32c_function()(data, value)


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the unsigned CRC-32 of some bytes; ``value`` is that of the bytes before them."""
    return zlib.crc32(data, value)
