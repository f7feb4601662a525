# SPDX-License-Identifier: Apache-2.0
"""Replaces ``cython`` for the interpreted kernel: every type is None, and decorators do nothing."""

import contextlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

_Decorated = TypeVar("_Decorated")

compiled: Final = False


class _NoGil(contextlib.nullcontext[None]):
    """Serves as both ``with cython.nogil`` and ``@cython.nogil``."""

    def __call__(self, decorated: _Decorated) -> _Decorated:
        return decorated


nogil: Final = _NoGil()


def cfunc(decorated: _Decorated) -> _Decorated:
    """Leave a function as it is."""
    return decorated


inline = cclass = final = cfunc


def exceptval(*, check: bool) -> Callable[[_Decorated], _Decorated]:
    """Leave a function as it is."""
    return cfunc


def freelist(size: int) -> Callable[[_Decorated], _Decorated]:
    """Return a decorator that leaves a class as it is."""
    return cfunc


def declare(kind: object, value: Any = None, **_: object) -> Any:
    """Return the value that a name is declared with."""
    return value


def cast(kind: object, value: Any) -> Any:
    """Return the value."""
    return value


Py_ssize_t = longlong = uint = ulonglong = None
"""Types that are named inside loops, defined here so that their lookup is fast; ``__getattr__`` serves all others."""


def __getattr__(name: str) -> None:
    """Return None: any other name is a type, which the interpreter ignores."""
