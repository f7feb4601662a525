# SPDX-License-Identifier: Apache-2.0
"""What a start writes anew, because the page cache may hold what the disk does not.

After a sync that failed, pages are clean, and are read as if nothing had happened. The next process on the same boot
finds them, its own sync has nothing to write, and succeeds. So a start believes of what it reads only what says of
itself that a sync has returned, and writes the rest again before it is told of::

    batches below the durable point     believed: the flush mark and the recovery point are written after a sync
    batches at or above it              read from the disk: the file is synced, and what memory has of them dropped
                                        first. Where that cannot be had, written in place, the same bytes, and synced
    the length of the last segment      given again: one byte more and back, and synced. A truncation may not be there
    the recovery point                  replaced by itself, before anything is cut or removed by what it says
    a segment that begins at the        its name is given again: renamed to *.swap and back, and the directory synced.
    durable point or above              Below it the name is durable, as something in the file is
    snapshots                           likewise their names; their bytes were synced before they got them
    quorum-state and its copies         replaced by themselves (``quorum_state_store``)
    the flush mark                      believed: it is true when it is there, and need not be there
    leader-epoch-checkpoint, indexes    not believed: they are compared with the batches

Nothing of the log is written anew after it was closed in order, as long as it still ends where it did then.

Writing in place does not do where dropping can be had: ext4 keeps blocks that were reserved, and whose first write has
failed, marked as unwritten when the second one succeeds, and reads zeros there after the next mount.

A start that is cut short leaves the same bytes, or a ``*.swap`` that the next one renames back (Kafka does so too, with
segments).

Source: Rebello et al., "Can Applications Recover from fsync Failures?" (ATC 2020). Differs: DECISIONS.md 34; Kafka
believes what it reads.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem, join, replace_file
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch_run import RunFinder
from raftlog.records.files.file_names import FileState
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, StoredDurablePoint
from raftlog.storage.segments.log_segment import LogSegment

_PIECE_SIZE: Final = 1024 * 1024
"""Bytes that are read, checked and written at once, unless a batch is larger."""


def write_recovery_point_anew(file_system: FileSystem, directory: str, stored: StoredDurablePoint) -> None:
    """Replace the recovery point by itself, unless the log was closed in order.

    Otherwise a crash after what is cut or removed by it might bring back an older one, which tells of more.

    Raises:
        OutOfSpaceError, StorageError: it says the same as before, on the disk or in memory.
    """
    point = stored.recovery_point
    if point is not None and not point.is_clean:
        replace_file(file_system, join(directory, RECOVERY_POINT_NAME), point.encode())


def believed_end_offset(stored: StoredDurablePoint, snapshot_ids: Iterable[OffsetAndEpoch]) -> int:
    """Return the offset, exclusive, up to which a log may be read from memory, before anybody has looked inside.

    Args:
        stored: what was known of the durable point.
        snapshot_ids: of the snapshots that verify.
    """
    if stored.durable_end_offset is not None:
        return stored.durable_end_offset
    return max((each.offset for each in snapshot_ids), default=0)


def write_tails_anew(
    segments: Sequence[LogSegment],
    durable_end_offset: int,
    stored: StoredDurablePoint,
    from_disk_offsets: Mapping[int, int],
) -> None:
    """Write what segments hold at or above an offset once more, in place, and the last one's length, and sync it.

    Args:
        segments: that were scanned; what lies behind the sound part of one is left as it is.
        durable_end_offset: below which a sync has returned (exclusive).
        stored: what was known of the durable point.
        from_disk_offsets: from which on, by base offset of the segment, it was not read from memory: that is there.

    Raises:
        OutOfSpaceError, StorageError: the disk failed, or gives other bytes now than those that the scan found sound.
            The files hold what they did.
    """
    for segment in segments:
        if segment.next_offset > durable_end_offset < from_disk_offsets[segment.base_offset]:
            position, _ = segment.locate(max(segment.base_offset, durable_end_offset))
            _write_batches_anew(segment, position)
            segment.file.sync()
    if not _is_as_it_was_closed(stored, segments, durable_end_offset):
        _give_length_anew(segments[-1])


def _is_as_it_was_closed(stored: StoredDurablePoint, segments: Sequence[LogSegment], durable_end_offset: int) -> bool:
    return stored.is_clean and segments[-1].next_offset == durable_end_offset


def _give_length_anew(segment: LogSegment) -> None:
    """Have the file's length written down again, unless what is wrong behind its batches is cut later, or must stay.

    A byte that a crash leaves behind the batches is a torn tail.
    """
    if segment.file.size() == segment.size_bytes:
        segment.file.write_at(segment.size_bytes, b"\0")
        segment.file.truncate(segment.size_bytes)
        segment.file.sync()


def _write_batches_anew(segment: LogSegment, position: int) -> None:
    """Write the batches from a position on; each is checked as it is read, lest what was read before is written."""
    finder, size = RunFinder(), _PIECE_SIZE
    while position < segment.size_bytes:
        data = segment.file.read_at(position, min(size, segment.size_bytes - position))
        run, _ = finder.find(data, position)
        if run is not None:
            segment.file.write_at(position, data[: run.end - position])
            position, size = run.end, _PIECE_SIZE
            continue
        batch_size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big")
        if not len(data) < batch_size <= segment.size_bytes - position:
            operation = f"write anew at position {position}"
            raise StorageError(segment.path, operation, "a batch that was sound is so no more")
        size = batch_size


def give_names_anew(
    file_system: FileSystem,
    directory: str,
    stored: StoredDurablePoint,
    segments: Sequence[LogSegment],
    snapshot_ids: Iterable[OffsetAndEpoch],
    durable_end_offset: int,
) -> None:
    """Make the names durable on which a log relies, and of which a sync may have failed before.

    Args:
        file_system: where the directory is.
        directory: of the log. It was synced after whatever else was changed in it.
        stored: what was known of the durable point.
        segments: of the log.
        snapshot_ids: that the log has.
        durable_end_offset: as for ``write_tails_anew``.

    Raises:
        StorageError: a name may be the one or the other.
    """
    if _is_as_it_was_closed(stored, segments, durable_end_offset):
        return
    paths = [segment.path for segment in segments if segment.base_offset >= durable_end_offset]
    paths += [join(directory, snapshot_name(snapshot_id)) for snapshot_id in snapshot_ids]
    for path in paths:
        file_system.rename(path, path + FileState.SWAP.value)
        file_system.rename(path + FileState.SWAP.value, path)
    if paths:
        file_system.sync_directory(directory)
