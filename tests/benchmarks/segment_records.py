# SPDX-License-Identifier: Apache-2.0
"""Unpacks the records of segments, and imports no peer: the start of those who measure whole processes counts."""

from raftlog.records.columns.columns import Chunk
from raftlog.storage.reading.segment_reader import Segment


def count_records(segment: Segment) -> int:
    """Unpack all columns of a segment, and return how many records it has."""
    count = 0
    for chunk in segment.chunks():
        assert isinstance(chunk, Chunk)
        assert chunk.records is not None
        count += chunk.records.count
    return count
