# SPDX-License-Identifier: Apache-2.0
"""An inode of ``MemoryFileSystem``, a file without its name: its current content, and which of it is durable.

The cost of a write is proportional to its bytes, and that of a sync to the bytes written since the previous one, not to
the file's length. The cost of an image is proportional to the length, but only after the durable content has changed.
"""

import itertools
from collections.abc import Callable

from raftlog.testing.file_system.crash_states import Change, Fate, FileImage, Truncate, Write, cut, write
from raftlog.testing.file_system.pending_changes import Pending


class Inode:
    """A file without its name.

    Attributes:
        number: the number by which names refer to it.
        is_read_only: whether it may not be opened for writes.
        content: the current content, as reads return it.
    """

    def __init__(self, number: int, durable: bytes = b"", *, is_read_only: bool = False) -> None:
        self.number = number
        self.is_read_only = is_read_only
        self.content: bytes | bytearray = durable
        # Copied on the first write, because most files of a state after a crash are only read.
        self._durable: bytes | bytearray = durable
        self._durable_image: bytes | None = durable
        self._pending: list[Pending[Change]] = []
        self._image: FileImage | None = None

    def change(self, change: Change) -> None:
        """Apply a write or a truncation, without making it durable."""
        if isinstance(self.content, bytes):
            self.content = bytearray(self.content)
        _apply(self.content, change)
        self._pending.append(Pending(change))
        self._image = None

    def open_changes(self) -> list[Pending[Change]]:
        """Return the changes that a sync would cover if it began now."""
        return [each for each in self._pending if each.fate is Fate.OPEN]

    def drop_cache(self, has_arrived: Callable[[Write], bool]) -> None:
        """Make reads return what the disk has: for a write whose sync has failed, its bytes or the previous ones.

        The file has been synced since, so its length is not in doubt; truncations remain doubtful.
        """
        content = bytearray(self._durable)
        pending: list[Pending[Change]] = []
        for each in self._pending:
            change, fate = each.change, each.fate
            if fate is Fate.DOUBTFUL and isinstance(change, Write):
                fate = Fate.SETTLED
                if not has_arrived(change):
                    end = change.position + len(change.data)
                    before = bytes(content[change.position : end])
                    change = Write(change.position, before.ljust(len(change.data), b"\0"))
            _apply(content, change)
            pending.append(Pending(change, fate))
        self._pending, self.content = pending, content
        self.tidy()
        self._image = None

    def tidy(self) -> None:
        """Apply settled changes to the durable content, up to the first change that is in doubt."""
        if not self._pending:
            return
        self._image = None
        if any(each.fate is Fate.DOUBTFUL for each in self._pending):
            self._drop_superseded()
        settled = list(itertools.takewhile(lambda each: each.fate is Fate.SETTLED, self._pending))
        if settled:
            if isinstance(self._durable, bytes):
                self._durable = bytearray(self._durable)
            for each in settled:
                _apply(self._durable, each.change)
            del self._pending[: len(settled)]
            self._durable_image = None

    def _drop_superseded(self) -> None:
        """Drop doubtful changes that no longer matter, because of changes that were settled later.

        That is a write whose every byte was overwritten or truncated since, and any truncation, since lengths become
        durable in order.
        """
        kept: list[Pending[Change]] = []
        ranges: list[tuple[int, int]] = []
        is_before_settled = False
        for each in reversed(self._pending):
            change = each.change
            if each.fate is Fate.DOUBTFUL and is_before_settled:
                if isinstance(change, Truncate):
                    each.fate = Fate.SETTLED
                elif _is_covered(change.position, change.position + len(change.data), ranges):
                    continue
            if each.fate is Fate.SETTLED:
                is_before_settled = True
                ranges.append(_range_of(change))
            kept.append(each)
        self._pending = kept[::-1]

    def image(self) -> FileImage:
        """Return the durable content and the changes since, as an immutable value."""
        if self._image is None or self._image.read_only != self.is_read_only:
            if self._durable_image is None:
                self._durable_image = bytes(self._durable)
            changes = tuple(each.change for each in self._pending)
            fates = tuple(each.fate for each in self._pending)
            self._image = FileImage(self._durable_image, changes, fates, self.is_read_only)
        return self._image


_NO_END = 1 << 62
"""A position beyond every file."""


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, Write):
        write(content, change)
    else:
        cut(content, change.size_bytes)


def _range_of(change: Change) -> tuple[int, int]:
    """Return the positions whose bytes a change decides, the second exclusive."""
    if isinstance(change, Write):
        return change.position, change.position + len(change.data)
    return change.size_bytes, _NO_END


def _is_covered(start: int, stop: int, ranges: list[tuple[int, int]]) -> bool:
    for first, end in sorted(ranges):
        if first > start:
            break
        start = max(start, end)
    return start >= stop
