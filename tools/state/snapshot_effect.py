# SPDX-License-Identifier: Apache-2.0
"""What controllers make of a new snapshot beside the log that it is made of: the rest of the log is replayed on it."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from raftlog.tools.state.damage import StateDamage, damage_of
from raftlog.tools.state.state_search import Span, StateSource


@attrs.frozen
class SnapshotEffect:
    """What becomes of controllers that have the snapshot beside the log as it is.

    Attributes:
        end_offset: of what was replayed, exclusive.
        newer_snapshot: the one that they begin with instead, if the directory has a newer one.
        faults: the first fault of each release that dies of the snapshot, or of what is after it.
        damage: what keeps the files from saying whether the others start.
    """

    end_offset: int
    newer_snapshot: OffsetAndEpoch | None
    faults: Mapping[str, LoadFault]
    damage: StateDamage | None


def faults_of(values: Sequence[bytes], end_offset: int) -> dict[str, LoadFault]:
    """Return the first fault of each release that does not load a snapshot of some records.

    Args:
        values: of the snapshot.
        end_offset: of the snapshot, exclusive.
    """
    return replayed([_batch(values)], end_offset, ()).finish()


def replayed(snapshot: Iterable[MetadataBatch], end_offset: int, rest: Iterable[MetadataBatch]) -> LoadCheck:
    """Replay the batches of a snapshot, and those of the log from its end on, for all releases; return the check."""
    check = LoadCheck(in_snapshot=True)
    for batch in snapshot:
        check.apply(batch)
    check.begin_log(end_offset)
    for batch in rest:
        check.apply(batch)
    return check


def effect_of(copy: StateSource, values: Sequence[bytes], snapshot_id: OffsetAndEpoch) -> SnapshotEffect:
    """Replay the log after a new snapshot to its end, or from a newer snapshot on, as a controller does.

    Raises:
        RaftLogError: a file cannot be read.
    """
    newest = copy.snapshots[-1] if copy.snapshots else None
    newer = newest if newest is not None and newest > snapshot_id else None
    base = newer or snapshot_id
    span = Span(copy, max(copy.log_end, base.offset), base)
    check = replayed(span.of_snapshot() if newer else [_batch(values)], base.offset, span.of_log())
    return SnapshotEffect(check.end_offset, newer, check.finish(), damage_of(copy, copy.end))


def _batch(values: Sequence[bytes]) -> MetadataBatch:
    return MetadataBatch(0, len(values), 0, 0, values)
