# SPDX-License-Identifier: Apache-2.0
"""Who owns what is open: the process that has opened it, and no process that was forked from that.

A fork copies everything but the lock on a directory: locks of POSIX are not inherited. So the child has a log in its
memory that it may write, as it seems, while the parent goes on with it. What derives from ``Owned`` is told in the
child, at the fork, that it is not the owner any more; who asks pays nothing for that.

It takes a fork that Python knows of: ``os.fork``, ``multiprocessing``, and what C code does through Python's API.
"""

import contextlib
import os
import weakref
from typing import Final

from raftlog.errors import ForkedProcessError, fresh_copy


class Owned:
    """Something that the process that has made it owns.

    Args:
        what: it is, for the error's text.

    Attributes:
        disowned: what a child of that process gets for using it; None in the owner.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.disowned: ForkedProcessError | None = None
        _OWNED.add(self)

    def check_owner(self) -> None:
        """Refuse what only the owner may do.

        Raises:
            ForkedProcessError: this process was forked from the owner.
        """
        if self.disowned is not None:
            raise fresh_copy(self.disowned)

    def disown(self) -> None:
        """Take note, in a child, that this belongs to the parent."""
        self.disowned = ForkedProcessError(
            f"{self._what}: opened by the process that this one was forked from; open it here when that one is gone"
        )


_OWNED: Final[weakref.WeakSet[Owned]] = weakref.WeakSet()


def _disown_all() -> None:
    for each in list(_OWNED):
        # What had only half come to be in another thread, at the fork, is nobody's here.
        with contextlib.suppress(Exception):
            each.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
