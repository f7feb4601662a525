# SPDX-License-Identifier: Apache-2.0
"""The outcome of reading: a value, or the typed error."""

from collections.abc import Callable
from typing import TypeVar

from raftlog.errors import DecodeError

T = TypeVar("T")


def outcome(read: Callable[[], T]) -> T | DecodeError:
    """Call a reader and give its value or its DecodeError; anything else that it raises is a failure."""
    try:
        return read()
    except DecodeError as error:
        return error
