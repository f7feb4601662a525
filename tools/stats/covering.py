# SPDX-License-Identifier: Apache-2.0
"""Which snapshot of a metadata log can take the place of segments: the newest that can be read to its footer."""

from collections.abc import Iterable

import attrs

from raftlog.errors import DecodeError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.reader import verify_snapshot
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.evidence import Place, SurveyTask


@attrs.define
class SnapshotStats:
    """What the newest readable snapshot of a metadata log covers.

    The snapshot of formatting, which ends at 0, covers nothing and is not counted.

    Attributes:
        place: the directory of the log.
        newest: the id of the newest snapshot that can be read to its footer; None if there is none.
        size_bytes: of that snapshot.
        older_bytes: of all others whose end and epoch are not after its own.
        unreadable: how many newer ones cannot be read to their footer.
        covered_bytes: of batches in segments that a segment follows which starts at or below its end.
        later_bytes: of all other sound batches.
    """

    place: Place
    newest: OffsetAndEpoch | None = None
    size_bytes: int = 0
    older_bytes: int = 0
    unreadable: int = 0
    covered_bytes: int = 0
    later_bytes: int = 0

    def covers(self, next_base_offset: int | None) -> bool:
        """Whether a segment can go, by the base offset of the one after it; the last one, with None, never can."""
        return self.newest is not None and next_base_offset is not None and next_base_offset <= self.newest.offset


def snapshot_stats(place: Place, tasks: Iterable[SurveyTask]) -> SnapshotStats:
    """Find the newest snapshot of a log that can be read to its footer, and add up what it replaces.

    Args:
        place: the directory of the log.
        tasks: its current snapshots, in any order.

    Raises:
        MissingExtraError: a codec's package is not installed.
    """
    stats = SnapshotStats(place)
    named = {task.snapshot_id: task for task in tasks if task.snapshot_id is not None}
    for id_ in sorted(named.keys() - {BOOTSTRAP_SNAPSHOT_ID}, reverse=True):
        if stats.newest is None:
            if _is_readable(named[id_], id_):
                stats.newest, stats.size_bytes = id_, named[id_].size_bytes
            else:
                stats.unreadable += 1
        elif id_.offset <= stats.newest.offset:
            stats.older_bytes += named[id_].size_bytes
    return stats


def _is_readable(task: SurveyTask, id_: OffsetAndEpoch) -> bool:
    try:
        with open_source(task.path) as source:
            verify_snapshot(source, id_, path=task.path)
    except (DecodeError, StorageError):
        return False
    return True
