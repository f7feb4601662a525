# SPDX-License-Identifier: Apache-2.0
"""Settings of Python's garbage collector for processes that raftlog starts."""

import gc
from typing import Final

_GARBAGE_THRESHOLD: Final = 10_000
"""How many new objects trigger a collection: startup creates many objects, and nearly all of them stay."""


def collect_garbage_seldom() -> None:
    """Make collections rare, so that loaded modules are not scanned repeatedly. Only for a process of our own."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
