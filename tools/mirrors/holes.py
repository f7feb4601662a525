# SPDX-License-Identifier: Apache-2.0
"""Offsets of a mirror without a record, and which records of the source should be there."""

from collections.abc import Iterator, Sequence

import numpy as np

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync, Syncs
from raftlog.tools.mirrors.comparing.log_view import SummedView


def find_holes(
    holes: Sequence[OffsetRange], source: SummedView, target: SummedView, syncs: Sequence[Sync]
) -> Iterator[tuple[OffsetRange, OffsetRange | None]]:
    """Yield the offsets of a target that neither a record nor a control batch has.

    With each comes where their records are in the source, by the last sync before them; None if no sync says so.

    Raises:
        StorageError: a segment cannot be read.
    """
    columns = Syncs.of(syncs)
    ordered = columns.where(np.argsort(columns.downstream, kind="stable"))
    for hole in holes:
        at = int(ordered.downstream.searchsorted(hole.start, side="right")) - 1
        if at < 0:
            yield hole, None
            continue
        rank = source.rank(ordered[at].upstream) + target.count(OffsetRange(ordered[at].downstream, hole.start))
        after = min(rank + hole.offset_count, source.rank(source.end_offset))
        yield hole, OffsetRange(source.offset_at(rank), source.offset_at(after - 1) + 1) if rank < after else None
