# SPDX-License-Identifier: Apache-2.0
"""What the driver sends to tasks: parts of files, by path and byte positions."""

import attrs

from raftlog.records.columns.transactions import AbortedRange
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.terminal.standard_error import unicode_text


@attrs.frozen
class FilePart:
    """A part of a file that holds batches, from the start of one to the end of one.

    Attributes:
        path: of the file, to open it by.
        topic, partition: what the directory's name says, or None.
        start: byte position of its first batch, inclusive.
        end: byte position after its last batch, exclusive.
        may_be_torn: whether what stands at its end may be a write that was cut, or room for more.
        is_snapshot: whether the file is a KRaft snapshot.
        first_offset: what stands before this offset is not wanted; None for no bound.
        end_offset: nor is what stands from this one on; None for no bound.
        aborted: the aborted transactions that may have records here; of no use where all records are wanted.
        problem: why there is nothing to read: then this is no part, but what is said in its place.
    """

    path: str
    topic: str | None = None
    partition: int | None = None
    start: int = 0
    end: int = 0
    may_be_torn: bool = False
    is_snapshot: bool = False
    first_offset: int | None = None
    end_offset: int | None = None
    aborted: tuple[AbortedRange, ...] = ()
    problem: Finding | None = None

    @property
    def file(self) -> str:
        """The path as rows show it: names of files need not be Unicode, and all that Spark takes is."""
        return unicode_text(self.path)

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start


Split = tuple[FilePart, ...]
"""What one task reads, in order."""


def log_name(topic: str | None, partition: int | None) -> str:
    """Return what a stream calls a log, such as ``orders-0``."""
    return f"{topic}-{partition}"
