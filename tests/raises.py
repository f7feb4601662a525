# SPDX-License-Identifier: Apache-2.0
"""The type of the error that a call raises, for tests that compare it."""

from collections.abc import Callable

from raftlog.errors import RaftLogError


def raised(call: Callable[[], object]) -> type[Exception] | None:
    """Return the type of the error that a call raises; None if it returns.

    Errors of raftlog, and those that misuse raises. Anything else, such as an ``InvariantViolation``, passes through.
    """
    try:
        call()
    except (RaftLogError, ValueError, LookupError, TypeError) as error:
        return type(error)
    return None
