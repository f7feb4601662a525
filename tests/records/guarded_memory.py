# SPDX-License-Identifier: Apache-2.0
"""Buffers that end, or start, at a protected page: a read or write beyond them ends the process."""

import ctypes
import mmap
import sys
from typing import Final, Literal

_NOTHING_ALLOWED: Final = 0  # PROT_NONE
_ROOM: Final = 1 << 23
IS_THERE: Final = sys.platform != "win32"
"""Whether this system has such pages, as we ask for them."""


class GuardedMemory:
    """Memory between two protected pages, for one buffer at a time.

    Args:
        size: the greatest size of a buffer.
    """

    def __init__(self, size: int = _ROOM) -> None:
        page = mmap.PAGESIZE
        self._size = -(-size // page) * page
        self._memory = mmap.mmap(-1, self._size + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for position in (0, page + self._size):
            if protect(start + position, page, _NOTHING_ALLOWED):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._room = memoryview(self._memory)[page : page + self._size]

    def holding(self, data: bytes | memoryview, at: Literal["start", "end"] = "end") -> memoryview:
        """Return a copy of some bytes that adjoins one of the pages; it replaces the previous buffer."""
        size = len(data)
        held = self._room[self._size - size :] if at == "end" else self._room[:size]
        held[:] = data
        return held
