# SPDX-License-Identifier: Apache-2.0
"""Descriptors of directories that are kept open, so that a sync never needs a new one.

To sync a directory it must be open. Who opens it just then may find that the process has no descriptor left (EMFILE):
in the middle of a change that cannot be taken back, though nothing of the disk has failed. A log syncs its directory
when it is opened, and from then on it needs none.
"""

import collections
import os
import threading
import weakref
from pathlib import Path
from typing import Final

_MOST_KEPT: Final = 16
"""More than the directories that one owner writes to."""


class DirectoryDescriptors:
    """The directories that were synced last. Any thread may use it."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self._kept: dict[str, int] = {}
        self._failures: collections.Counter[str] = collections.Counter()
        # At the end of the process they go with it.
        weakref.finalize(self, _close_all, self._kept).atexit = False
        _ALL.add(self)

    def sync(self, path: str) -> None:
        """Sync a directory (fsync); one after the other.

        Raises:
            OSError: it cannot be opened, and then nothing was synced; or the sync failed.
        """
        # Held as long as it lasts: nobody may close the descriptor meanwhile, and a copy would be one more.
        with self.guard:
            try:
                os.fsync(self._descriptor(path))
            except OSError:
                self._failures[path] += 1
                self._forget(path)  # It has told of the failure, and would never again.
                raise

    def failures(self, path: str) -> int:
        """Return how many syncs of a directory have failed."""
        return self._failures[path]

    def _descriptor(self, path: str) -> int:
        kept = self._kept.pop(path, None)
        if kept is not None and not _is_of(kept, path):
            os.close(kept)
            kept = None
        if kept is None:
            kept = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._kept[path] = kept  # The last of all.
        if len(self._kept) > _MOST_KEPT:
            os.close(self._kept.pop(next(iter(self._kept))))
        return kept

    def _forget(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            os.close(kept)

    def close(self) -> None:
        """Let go of all of them; they are opened again when they are needed."""
        with self.guard:
            _close_all(self._kept)


_ALL: Final[weakref.WeakSet[DirectoryDescriptors]] = weakref.WeakSet()


def _renew_guards() -> None:
    """A thread that is not in a forked child may have held one, in the middle of a sync."""
    for each in list(_ALL):
        each.guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_guards)


def _close_all(kept: dict[str, int]) -> None:
    while kept:
        os.close(kept.popitem()[1])


def _is_of(descriptor: int, path: str) -> bool:
    """Whether a descriptor is of the directory that has a path now.

    Raises:
        FileNotFoundError: no directory has it.
    """
    there, kept = Path(path).stat(), os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (kept.st_dev, kept.st_ino)
