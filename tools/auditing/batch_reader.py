# SPDX-License-Identifier: Apache-2.0
"""Reads a few batches of a surveyed file again."""

from collections.abc import Callable, Iterator

import attrs

from raftlog.errors import StorageError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.unread_files import unread
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

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
    return Rereading()(segment, start_offset, end_offset)


def batches_in_range(
    log: PartitionEvidence, start: int, end: int, read: BatchReader
) -> Iterator[tuple[FileEvidence, RecordBatch]]:
    """Yield the sound batches of a surveyed log that have offsets of a range, with their segments, in order.

    Args:
        log: the log.
        start: inclusive; the first batch may start before it.
        end: exclusive; the last batch may end after it.
        read: reads the batches.
    """
    for segment in log.segments:
        extent = segment.extent
        if extent is not None and extent.start_offset < end and extent.end_offset > start:
            # The range may start within a batch, so reading begins with the block that has it.
            before = [block.start_offset for block in segment.blocks if block.start_offset <= start]
            for batch in read(segment, max(before, default=0), end):
                if batch.next_offset > start:
                    yield segment, batch


@attrs.frozen
class Rereading:
    """Reads batches as ``read_batches`` does, and remembers what could not be read.

    Attributes:
        failures: findings for files that exist and could not be read.
    """

    failures: list[Finding] = attrs.field(factory=list)

    def __call__(self, segment: FileEvidence, start_offset: int, end_offset: int) -> Iterator[RecordBatch]:
        """Yield batches; the arguments are those of ``read_batches``."""
        try:
            yield from _batches(segment, start_offset, end_offset)
        except StorageError as error:
            failure = unread(error)
            if failure.rule in UNREADABLE_RULES and failure not in self.failures:
                self.failures.append(failure)


def _batches(segment: FileEvidence, start_offset: int, end_offset: int) -> Iterator[RecordBatch]:
    """Yield batches as ``read_batches`` does.

    Raises:
        StorageError: the file was deleted or became unreadable.
    """
    before = [block.position for block in segment.blocks if block.start_offset <= start_offset]
    with open_source(segment.task.path) as source:
        for piece in split(source, start=max(before, default=0)):
            if isinstance(piece, RecordBatch) and piece.base_offset >= start_offset:
                if piece.base_offset >= end_offset:
                    return
                yield piece
