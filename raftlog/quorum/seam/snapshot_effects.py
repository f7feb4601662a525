# SPDX-License-Identifier: Apache-2.0
"""Effects on snapshots: one that is fetched from a leader, one that the application writes, and reads for followers."""

from typing import NamedTuple

import attrs

from raftlog.offsets import OffsetAndEpoch


class SnapshotChunk(NamedTuple):
    """What was read of a snapshot.

    Attributes:
        size_bytes: of the whole snapshot.
        data: the bytes from the position that was asked for; fewer than asked for at the end, and none after it.
    """

    size_bytes: int
    data: bytes | memoryview


# Work on a snapshot that is fetched from a leader. Report each with ``Raft.log_changed``. If the bytes that came are
# refused, or do not fit on the disk, remove what was written, and report ``Raft.snapshot_refused``.


@attrs.frozen
class BeginFetchedSnapshot:
    """Begin to write a snapshot that is fetched from a leader. There is one at a time.

    Attributes:
        number: of this effect.
        snapshot_id: end offset (exclusive) and epoch.
    """

    number: int
    snapshot_id: OffsetAndEpoch


@attrs.frozen
class AppendToFetchedSnapshot:
    """Add bytes to the snapshot that is being fetched. They need not be durable.

    Attributes:
        number: of this effect.
        position: of the first byte in the file: where the bytes so far end.
        data: whole or cut-off batches.
    """

    number: int
    position: int
    data: bytes | memoryview


@attrs.frozen
class FreezeFetchedSnapshot:
    """Verify the snapshot that was fetched, and make it durable under its name.

    Attributes:
        number: of this effect.
    """

    number: int


@attrs.frozen
class AbandonFetchedSnapshot:
    """Remove what was written of the snapshot that is being fetched; there may be nothing.

    Attributes:
        number: of this effect.
    """

    number: int


@attrs.frozen
class RestartAtLatestSnapshot:
    """Drop the whole log, which the latest snapshot replaces.

    Attributes:
        number: of this effect.
    """

    number: int


@attrs.frozen
class CleanLog:
    """Delete the oldest snapshot, and the records below the next one, if the log exceeds its retention.

    Report it with ``Raft.log_changed``.

    Attributes:
        number: of this effect.
        wall_ms: time of day, in ms since the Unix epoch.
    """

    number: int
    wall_ms: int


# Effects beside the log, which may be carried out while work on the log is under way


@attrs.frozen
class ReadSnapshot:
    """Read bytes of a snapshot, for a follower. Report them with ``Raft.snapshot_read``.

    Attributes:
        number: of this effect.
        snapshot_id: end offset (exclusive) and epoch.
        position: of the first byte.
        max_size_bytes: of the result.
    """

    number: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_size_bytes: int


@attrs.frozen
class BeginSnapshot:
    """Begin a snapshot of this log's records, and let the application write it. There is one at a time.

    If the log refuses it, report that with ``Raft.snapshot_refused``; otherwise there is nothing to report.

    Attributes:
        number: that ``Raft.create_snapshot`` returned.
        snapshot_id: end offset (exclusive) and epoch.
        wall_ms: time of day, in ms since the Unix epoch.
    """

    number: int
    snapshot_id: OffsetAndEpoch
    wall_ms: int


@attrs.frozen
class FreezeSnapshot:
    """Finish the application's snapshot, and make it durable under its name.

    Report it with ``Raft.snapshot_frozen``, or with ``Raft.snapshot_refused``.

    Attributes:
        number: that ``Raft.create_snapshot`` returned.
        wall_ms: time of day, in ms since the Unix epoch.
    """

    number: int
    wall_ms: int


@attrs.frozen
class AbandonSnapshot:
    """Remove what was written of the application's snapshot. There is nothing to report.

    Attributes:
        number: that ``Raft.create_snapshot`` returned.
    """

    number: int


FetchedSnapshotWork = (
    BeginFetchedSnapshot
    | AppendToFetchedSnapshot
    | FreezeFetchedSnapshot
    | AbandonFetchedSnapshot
    | RestartAtLatestSnapshot
)
SnapshotEffect = ReadSnapshot | BeginSnapshot | FreezeSnapshot | AbandonSnapshot
