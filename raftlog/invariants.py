# SPDX-License-Identifier: Apache-2.0
"""Checks of what must hold unless raftlog has a bug. They run in production, and ``python -O`` keeps them.

Every function that moves a pointer (an offset, position or size that an object keeps) checks what it relies on before
the move, and what must hold after it. A check never depends on bytes of a file or on arguments of a caller that were
not checked before: bad input has its own errors (``raftlog.errors``). Where a call costs too much, a hot path writes
``if …: raise InvariantViolation(…)`` instead.

Source: TigerBeetle, TIGER_STYLE.md, on assertions.
"""

from typing import TypeVar

from raftlog.errors import InvariantViolation

T = TypeVar("T")


def invariant(holds: bool, message: str, *values: object) -> None:
    """Check what must hold, before or after a pointer moves.

    Args:
        holds: whether it does.
        message: what does not hold, naming the file or log, with ``{}`` for each value; formatted only on failure.
        values: the values that disagree.

    Raises:
        InvariantViolation: it does not hold.
    """
    if not holds:
        raise InvariantViolation(message.format(*values))


def present(value: T | None, what: str) -> T:
    """Return a value that must be there: what tells a type checker so, and fails where it is not.

    Raises:
        InvariantViolation: it is None.
    """
    if value is None:
        raise InvariantViolation(f"{what} is None")
    return value


def instance_of(value: object, kind: type[T]) -> T:
    """Return a value that must be of a type.

    Raises:
        InvariantViolation: it is of another one.
    """
    if not isinstance(value, kind):
        raise InvariantViolation(f"a {kind.__name__} must be here, and not {value!r:.200}")
    return value
