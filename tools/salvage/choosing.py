# SPDX-License-Identifier: Apache-2.0
"""Chooses the log of the result: without a hole, and from a beginning that is known.

A hole is never stepped over. What is below the start of a log must be in a snapshot, as Kafka has it: so a stretch that
begins above offset 0 counts only with a sound snapshot that ends in it, or at one of its ends.
"""

from collections.abc import Iterable, Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.salvage.merging import Merged, Piece, Stretch


@attrs.frozen
class FoundSnapshot:
    """A sound snapshot of a source.

    Attributes:
        source: number of the source.
        name: its path below the log directory.
        offset: its end, exclusive.
        epoch: of the last record before it.
    """

    source: int
    name: str
    offset: int
    epoch: int

    @property
    def id(self) -> OffsetAndEpoch:
        """Its end offset and epoch."""
        return OffsetAndEpoch(self.offset, self.epoch)


@attrs.frozen
class Chosen:
    """The log of the result.

    Attributes:
        pieces: of the log; none if it is empty after a snapshot.
        snapshots: one for each id, ascending.
        start_offset: of the log, inclusive.
        end: of the log, exclusive, with the epoch of its last record.
        unused: stretches that are not part of it, by ascending offset.
    """

    pieces: tuple[Piece, ...]
    snapshots: tuple[FoundSnapshot, ...]
    start_offset: int
    end: OffsetAndEpoch
    unused: tuple[Stretch, ...]


def choose(merged: Merged, snapshots: Iterable[FoundSnapshot]) -> Chosen | None:
    """Return the log that reaches furthest; of equal ones, the one that starts first. None if there is none.

    Args:
        merged: what all replicas have.
        snapshots: of the same lineage, above offset 0, the preferred ones first. Those of a source that a conflict
            leaves out count only up to that conflict; beyond one that a majority has settled, with an empty log after
            them, if nothing else reaches as far: what they cover was committed.
    """
    left_out = {number: each for each in reversed(merged.conflicts) for number in each.left_out}
    usable: dict[OffsetAndEpoch, FoundSnapshot] = {}
    alone: list[FoundSnapshot] = []
    for snapshot in snapshots:
        conflict = left_out.get(snapshot.source)
        if conflict is None or snapshot.offset <= conflict.offset:
            usable.setdefault(snapshot.id, snapshot)
        elif conflict.is_settled:
            alone.append(snapshot)
    found = [each for stretch in merged.stretches if (each := _of_stretch(stretch, usable, merged.stretches))]
    found += [_of_snapshot(snapshot, merged.stretches) for snapshot in (*usable.values(), *alone)]
    return max(found, key=lambda each: (each.end.offset, -each.start_offset), default=None)


def _of_stretch(
    stretch: Stretch, usable: dict[OffsetAndEpoch, FoundSnapshot], stretches: Sequence[Stretch]
) -> Chosen | None:
    inside = [id_ for id_ in usable if stretch.start_offset <= id_.offset <= stretch.end_offset]
    if stretch.start_offset > 0 and not inside:
        return None
    return Chosen(
        stretch.pieces,
        tuple(usable[id_] for id_ in sorted(inside)),
        stretch.start_offset,
        OffsetAndEpoch(stretch.end_offset, stretch.pieces[-1].epoch),
        tuple(each for each in stretches if each is not stretch),
    )


def _of_snapshot(snapshot: FoundSnapshot, stretches: Sequence[Stretch]) -> Chosen:
    """Return an empty log after a snapshot."""
    return Chosen((), (snapshot,), snapshot.offset, snapshot.id, tuple(stretches))
