# SPDX-License-Identifier: Apache-2.0
"""Refuses the use of open logs and locks in forked children: only the process that opened them owns them.

A fork copies everything except the lock on a directory, since POSIX locks are not inherited. So the child's memory has
a log that seems writable, while the parent continues to write it. Each ``Owned`` object is disowned in the child during
the fork, so that checks of ownership cost nothing.

This works only for forks that Python knows of: ``os.fork``, ``multiprocessing``, and C code that uses Python's API.
"""

import contextlib
import os
import weakref
from typing import Final

from raftlog.errors import ForkedProcessError, fresh_copy


class Owned:
    """An object owned by the process that made it.

    Args:
        what: what it is, for the text of the error.

    Attributes:
        disowned: the error for use in a forked child; None in the owner.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.disowned: ForkedProcessError | None = None
        _OWNED.add(self)

    def check_owner(self) -> None:
        """Check that this process is the owner.

        Raises:
            ForkedProcessError: this process was forked from the owner.
        """
        if self.disowned is not None:
            raise fresh_copy(self.disowned)

    def disown(self) -> None:
        """Mark the object, in a forked child, as owned by the parent."""
        self.disowned = ForkedProcessError(
            f"{self._what}: opened by the process that this one was forked from; open it here when that one has ended"
        )


_OWNED: Final[weakref.WeakSet[Owned]] = weakref.WeakSet()


def _disown_all() -> None:
    for each in list(_OWNED):
        # An object that another thread was still constructing at the fork cannot be disowned, and is not used here.
        with contextlib.suppress(Exception):
            each.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
