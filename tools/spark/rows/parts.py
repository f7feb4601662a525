# SPDX-License-Identifier: Apache-2.0
"""Parts of files, by path and byte positions, which the driver assigns to tasks."""

import attrs

from raftlog.records.columns.transactions import AbortedRange
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.rows.file_witness import FileWitness
from raftlog.tools.terminal.standard_error import unicode_text


@attrs.frozen
class FilePart:
    """Some consecutive batches of a file, from the start of one to the end of one.

    Attributes:
        path: of the file, to open it.
        topic, partition: from the directory's name, or None.
        start: byte position of its first batch, inclusive.
        end: byte position after its last batch, exclusive.
        may_be_torn: whether it may end with a torn write or preallocated zeros, which are not damage.
        is_snapshot: whether the file is a KRaft snapshot.
        first_offset: the first wanted offset, inclusive; None for no bound.
        end_offset: the end of the wanted offsets, exclusive; None for no bound.
        aborted: the aborted transactions whose records to leave out.
        problem: a finding to report instead of reading, or None.
        witness: how the file looked when the query was planned; None if nobody looked.
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
    witness: FileWitness | None = None

    @property
    def file(self) -> str:
        """The path for rows, as valid Unicode: Spark accepts nothing else, and names of files may have any bytes."""
        return unicode_text(self.path)

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return self.end - self.start


Split = tuple[FilePart, ...]
"""The parts that one task reads, in order."""


def log_name(topic: str | None, partition: int | None) -> str:
    """Return the name of a log in streams, such as ``orders-0``."""
    return f"{topic}-{partition}"
