# SPDX-License-Identifier: Apache-2.0
"""Retention: how large and how old a log with its snapshots may get, and what is deleted next.

Source: KafkaRaftLog#maybeClean.
"""

from collections.abc import Sequence
from typing import Self

import attrs

from raftlog.errors import DecodeError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.raw import RawSnapshotReader
from raftlog.snapshot.reader import RecordsSnapshotReader


@attrs.frozen
class Retention:
    """Limits above which old snapshots, and the records below them, are deleted; None is no limit.

    Attributes:
        max_bytes: of the log and all its snapshots (``metadata.max.retention.bytes``).
        max_age_ms: since the last record in a snapshot was appended (``metadata.max.retention.ms``).
    """

    max_bytes: int | None = 100 * 1024 * 1024
    max_age_ms: int | None = 7 * 24 * 3600 * 1000


@attrs.frozen
class StoredSnapshot:
    """The facts about a snapshot that retention depends on.

    Attributes:
        snapshot_id: end offset, exclusive, and epoch.
        size_bytes: of the file.
        last_contained_timestamp: from its header, in ms; None if that cannot be read.
    """

    snapshot_id: OffsetAndEpoch
    size_bytes: int
    last_contained_timestamp: int | None

    @classmethod
    def of(cls, raw: RawSnapshotReader) -> Self:
        """Read these facts from a snapshot.

        Raises:
            StorageError: the disk failed.
        """
        try:
            timestamp = RecordsSnapshotReader.of(raw).last_contained_log_timestamp
        except DecodeError:
            timestamp = None
        return cls(raw.snapshot_id, raw.size(), timestamp)


def snapshot_to_start_at(
    retention: Retention, snapshots: Sequence[StoredSnapshot], log_size_bytes: int, now_ms: int
) -> OffsetAndEpoch | None:
    """Return the snapshot that the log should start at, so that older ones can be deleted; None to delete nothing.

    It is always the second oldest. The caller deletes one snapshot at a time, and asks again until it gets None. So the
    newest snapshot is never deleted.

    Args:
        retention: the limits.
        snapshots: all of the log's, oldest first.
        log_size_bytes: of its segments.
        now_ms: wall clock.

    Source: KafkaRaftLog#maybeClean.
    """
    if len(snapshots) < 2:
        return None
    size_bytes = log_size_bytes + sum(each.size_bytes for each in snapshots)
    is_too_large = retention.max_bytes is not None and size_bytes > retention.max_bytes
    return snapshots[1].snapshot_id if is_too_large or _is_too_old(snapshots[0], retention, now_ms) else None


def _is_too_old(snapshot: StoredSnapshot, retention: Retention, now_ms: int) -> bool:
    if retention.max_age_ms is None or snapshot.last_contained_timestamp is None:
        return False
    return now_ms - snapshot.last_contained_timestamp > retention.max_age_ms
