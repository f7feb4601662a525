# SPDX-License-Identifier: Apache-2.0
"""Reads a few batches of a surveyed file again."""

from collections.abc import Callable, Iterator

from raftlog.errors import StorageError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.evidence import FileEvidence

BatchReader = Callable[[FileEvidence, int, int], Iterator[RecordBatch]]
"""Yields the sound batches of a segment with base offsets from one (inclusive) to another (exclusive)."""


def read_batches(segment: FileEvidence, start_offset: int, end_offset: int) -> Iterator[RecordBatch]:
    """Yield the sound batches of magic 2 of a surveyed segment whose base offsets are in a range, in order.

    Args:
        segment: the segment's evidence; its blocks determine where reading starts.
        start_offset: inclusive.
        end_offset: exclusive; reading ends at the first batch that starts at or after it.

    A file that was deleted or became unreadable after the survey yields no more batches.
    """
    before = [block.position for block in segment.blocks if block.start_offset <= start_offset]
    try:
        with open_source(segment.task.path) as source:
            for piece in split(source, start=max(before, default=0)):
                if isinstance(piece, RecordBatch) and piece.base_offset >= start_offset:
                    if piece.base_offset >= end_offset:
                        return
                    yield piece
    except StorageError:
        return
