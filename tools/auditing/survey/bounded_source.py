# SPDX-License-Identifier: Apache-2.0
"""The front of a file that is being written to."""

import os
import stat

import attrs

from raftlog.records.batches.window import ByteSource, after_hole
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import SurveyTask


@attrs.frozen
class BoundedSource:
    """A file up to the size that it had when it was listed, so that all that is read later is at least as new.

    Attributes:
        source: the file; it may be longer or shorter now.
        limit: the size in bytes.
    """

    source: ByteSource
    limit: int

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a byte position, none of them beyond the limit."""
        return self.source.read_at(position, max(0, min(size, self.limit - position)))

    def size(self) -> int:
        """Return the size now, in bytes, or the limit if that is less."""
        return min(self.source.size(), self.limit)

    def after_hole(self, position: int) -> int:
        """Return the byte position after the hole at a position, at most the limit."""
        return max(position, min(after_hole(self.source, position), self.limit))


def as_listed(task: SurveyTask, opened: ByteSource) -> ByteSource:
    """Return what of a file is read: as much as it had when it was listed; all of a pipe, which has no size before.

    Args:
        task: the file.
        opened: its bytes.
    """
    return opened if _has_unknown_size(task) else BoundedSource(opened, task.size_bytes)


def _has_unknown_size(task: SurveyTask) -> bool:
    """Whether the file was not listed, or has no size before it is read."""
    return not task.fingerprint or task.path == STANDARD_INPUT or is_pipe(task.path)


def is_pipe(path: str) -> bool:
    """Whether a path leads to a pipe."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 - the path is kept as it was named
    except (OSError, ValueError):
        return False  # Opening it will report the error.
