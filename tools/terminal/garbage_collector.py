# SPDX-License-Identifier: Apache-2.0
"""Settings of Python's garbage collector for a process that is ours."""

import gc
from typing import Final

_GARBAGE_THRESHOLD: Final = 10_000
"""How many new objects make Python look for cycles among them: what a start makes stays, and there is much of it."""


def collect_garbage_seldom() -> None:
    """Set up this process, which is ours, so that what it has loaded is not looked through again and again."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
