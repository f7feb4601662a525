# SPDX-License-Identifier: Apache-2.0
"""Descriptors of directories that are kept open, so that a sync never needs a new one.

To sync a directory it must be open. Who opens it just then may find that the process has no descriptor left (EMFILE):
in the middle of a change that cannot be taken back, though nothing of the disk has failed. A log syncs its directory
when it is opened, and from then on it needs none.
"""

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
        self._guard = threading.Lock()
        self._kept: dict[str, int] = {}
        # At the end of the process they go with it.
        weakref.finalize(self, _close_all, self._kept).atexit = False

    def sync(self, path: str) -> None:
        """Sync a directory (fsync); one after the other.

        Raises:
            OSError: it cannot be opened, and then nothing was synced; or the sync failed.
        """
        # Held as long as it lasts: nobody may close the descriptor meanwhile, and a copy would be one more.
        with self._guard:
            try:
                os.fsync(self._descriptor(path))
            except OSError:
                self._forget(path)  # It has told of the failure, and would never again.
                raise

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
        with self._guard:
            _close_all(self._kept)


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
