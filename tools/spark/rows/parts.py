# SPDX-License-Identifier: Apache-2.0
"""The parts of files that the driver sends to tasks, by path and byte positions."""

import attrs

from raftlog.records.columns.transactions import AbortedRange
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.terminal.standard_error import unicode_text


@attrs.frozen
class FilePart:
    """A part of a file of batches, from the start of one batch to the end of another.

    Attributes:
        path: of the file.
        topic, partition: by the directory's name, or None.
        start: byte position of its first batch, inclusive.
        end: byte position after its last batch, exclusive.
        may_be_torn: whether it may end in a torn write or in preallocated space.
        is_snapshot: whether the file is a KRaft snapshot.
        first_offset: records before this offset are not wanted; None for no bound.
        end_offset: records from this offset on are not wanted; None for no bound.
        aborted: the aborted transactions that may have records here; not used if all records are wanted.
        problem: why nothing can be read; then this stands for an error, and has no bytes.
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
        """The path as rows show it: file names need not be valid Unicode, but Spark's strings must be."""
        return unicode_text(self.path)

    @property
    def size_bytes(self) -> int:
        """Its size in bytes."""
        return self.end - self.start


Split = tuple[FilePart, ...]
"""The parts that one task reads, in order."""


def log_name(topic: str | None, partition: int | None) -> str:
    """Return the name of a log in a stream's positions, such as ``orders-0``."""
    return f"{topic}-{partition}"
