# SPDX-License-Identifier: Apache-2.0
"""How much work something is, as a number that is the same on any machine under any load."""

import sys
from collections.abc import Callable
from typing import Any


def calls_made(function: Callable[[], Any]) -> int:
    """Call a function, and return how many calls of Python and C functions it made in this thread.

    Claims about speed are stated in calls, not in seconds. One call into compiled code counts as one, so that the size
    of its input must be counted in addition.
    """
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
