# SPDX-License-Identifier: Apache-2.0
"""Offsets of a mirror without a record, and which records of the source should be there."""

import bisect
from collections.abc import Iterator, Sequence

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.lockstep import first_rows, row_count, skipped
from raftlog.tools.mirrors.comparing.rows import DigestRows
from raftlog.tools.mirrors.reading.log_rows import LogRows


def find_holes(
    source: LogRows, target: LogRows, syncs: Sequence[Sync]
) -> Iterator[tuple[OffsetRange, OffsetRange | None]]:
    """Yield the offsets of a target that neither a record nor a control batch has, of all that was read of it.

    With each comes where their records are in the source, by the last sync before them; None if no sync says so.

    Raises:
        StorageError: a segment cannot be read.
    """
    ordered = sorted(syncs, key=lambda each: each.downstream)
    for hole in target.holes:
        at = bisect.bisect_right(ordered, hole.start, key=lambda each: each.downstream) - 1
        if at < 0:
            yield hole, None
            continue
        before = row_count(target.read(ordered[at].downstream, hole.start))
        rows = first_rows(skipped(source.read(ordered[at].upstream, source.end_offset), before), hole.offset_count)
        found = DigestRows.joined(rows).offsets
        yield hole, OffsetRange(int(found[0]), int(found[-1]) + 1) if len(found) else None
