# SPDX-License-Identifier: Apache-2.0
"""Keeps directories open, so that a sync never needs a new descriptor.

A directory must be open to be synced. Opening it just before the sync may fail because the process has no descriptor
left (EMFILE), in the middle of a change that cannot be undone, although the disk is fine. A log syncs its directory
when it is opened, and needs no further descriptor from then on.
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
    """The most recently synced directories. Any thread may use it."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self._kept: dict[str, int] = {}
        self._failures: collections.Counter[str] = collections.Counter()
        # Not at exit: the operating system closes them then.
        weakref.finalize(self, _close_all, self._kept).atexit = False
        _ALL.add(self)

    def sync(self, path: str) -> None:
        """Sync a directory (fsync); concurrent calls wait for each other.

        Raises:
            OSError: it cannot be opened, and then nothing was synced; or the sync failed.
        """
        # Held during the sync, so that no other thread closes the descriptor. A duplicate would be one descriptor more.
        with self.guard:
            try:
                os.fsync(self._descriptor(path))
            except OSError:
                self._failures[path] += 1
                self._forget(path)  # A descriptor reports a failure once only.
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
        self._kept[path] = kept  # The most recent one is last.
        if len(self._kept) > _MOST_KEPT:
            os.close(self._kept.pop(next(iter(self._kept))))
        return kept

    def _forget(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            os.close(kept)

    def close(self) -> None:
        """Close all descriptors; they are opened again when needed."""
        with self.guard:
            _close_all(self._kept)


_ALL: Final[weakref.WeakSet[DirectoryDescriptors]] = weakref.WeakSet()


def _renew_guards() -> None:
    """Replace the locks in a forked child: a thread that does not exist there may have held one during a sync."""
    for each in list(_ALL):
        each.guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_guards)


def _close_all(kept: dict[str, int]) -> None:
    while kept:
        os.close(kept.popitem()[1])


def _is_of(descriptor: int, path: str) -> bool:
    """Whether a descriptor still refers to the directory at a path.

    Raises:
        FileNotFoundError: there is no directory at this path.
    """
    there, kept = Path(path).stat(), os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (kept.st_dev, kept.st_ino)
