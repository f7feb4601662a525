# SPDX-License-Identifier: Apache-2.0
"""Rewrites files on open, because the page cache may hold data that is not on disk.

After a failed sync, the kernel marks the pages as clean, and reads return them as if they were on disk. The next
process on the same boot reads them; its own sync has nothing to write, and succeeds. So an open trusts only data whose
sync is on record, and rewrites the rest before using it::

    batches below the synced end        trusted: the flush mark and the recovery point are written after a sync. It is
                                        the durable point, or less in a log that had lost records before
    batches at or above it              read from the disk, after the file is synced and its page cache dropped. If
                                        the cache cannot be dropped, the same bytes are written in place and synced
    the length of the last segment      extended by a byte, truncated and synced: a truncation may not be on disk
    the recovery point                  rewritten unchanged, before anything is truncated or removed because of it
    a segment that begins at the        renamed to *.swap and back, and the directory synced. The name of an earlier
    synced end or above                 segment is durable, since a batch in it is
    snapshots                           renamed likewise; their bytes were synced before they got their names
    quorum-state and its copies         replaced by themselves (``quorum_state_store``)
    the flush mark                      trusted: it is true if it exists, and need not exist
    leader-epoch-checkpoint, indexes    not trusted: they are compared with the batches

If the log was closed in order, and still ends where it did then, nothing of it is rewritten.

Rewriting in place is not enough where the cache can be dropped: if the first write to preallocated blocks has failed,
ext4 keeps them marked as unwritten when the second one succeeds, and reads zeros there after the next mount.

An interrupted open leaves the same bytes, or a ``*.swap`` file that the next one renames back (as Kafka does with
segments).

Source: Rebello et al., "Can Applications Recover from fsync Failures?" (ATC 2020). Differs: DECISIONS.md 34; Kafka
trusts what it reads.
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


def rewrite_recovery_point(file_system: FileSystem, directory: str, stored: StoredDurablePoint) -> None:
    """Rewrite the recovery point unchanged, unless the log was closed in order.

    Otherwise, if it is not on disk, a crash after a truncation or removal based on it may bring back an older one, with
    a higher durable end.

    Raises:
        OutOfSpaceError, StorageError: the file has the same content as before, perhaps in the page cache only.
    """
    point = stored.recovery_point
    if point is not None and not point.is_clean:
        replace_file(file_system, join(directory, RECOVERY_POINT_NAME), point.encode())


def trusted_end_offset(stored: StoredDurablePoint, snapshot_ids: Iterable[OffsetAndEpoch]) -> int:
    """Return the offset, exclusive, below which batches may be read from the page cache.

    Args:
        stored: the stored durable point.
        snapshot_ids: of the snapshots that verify.
    """
    synced = stored.synced_end_offset
    return synced if synced is not None else max((each.offset for each in snapshot_ids), default=0)


def rewrite_tails(
    segments: Sequence[LogSegment],
    synced_end_offset: int,
    stored: StoredDurablePoint,
    from_disk_offsets: Mapping[int, int],
) -> None:
    """Rewrite and sync the batches at or above an offset, in place, and the length of the last segment.

    Args:
        segments: scanned segments; bytes after the sound part of one are left as they are.
        synced_end_offset: batches below it are known to have been synced (exclusive).
        stored: the stored durable point.
        from_disk_offsets: by base offset of the segment, the offset from which on it was read from the disk. Those
            batches are on disk already.

    Raises:
        OutOfSpaceError, StorageError: the disk failed, or batches that the scan found sound read differently now. The
            content of the files has not changed.
    """
    for segment in segments:
        if segment.next_offset > synced_end_offset < from_disk_offsets[segment.base_offset]:
            position, _ = segment.locate(max(segment.base_offset, synced_end_offset))
            _rewrite_batches(segment, position)
            segment.file.sync()
    if not _is_as_it_was_closed(stored, segments, synced_end_offset):
        _rewrite_length(segments[-1])


def _is_as_it_was_closed(stored: StoredDurablePoint, segments: Sequence[LogSegment], synced_end_offset: int) -> bool:
    return stored.is_clean and segments[-1].next_offset == synced_end_offset


def _rewrite_length(segment: LogSegment) -> None:
    """Make the file's length durable, unless bytes follow the batches: those are truncated later, or must stay.

    If a crash leaves the extra byte, that is a torn tail.
    """
    if segment.file.size() == segment.size_bytes:
        segment.file.write_at(segment.size_bytes, b"\0")
        segment.file.truncate(segment.size_bytes)
        segment.file.sync()


def _rewrite_batches(segment: LogSegment, position: int) -> None:
    """Rewrite the batches from a position on; each is read and checked again before it is written."""
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
            operation = f"rewrite at position {position}"
            raise StorageError(segment.path, operation, "a batch that was sound has changed")
        size = batch_size


def restore_names(
    file_system: FileSystem,
    directory: str,
    stored: StoredDurablePoint,
    segments: Sequence[LogSegment],
    snapshot_ids: Iterable[OffsetAndEpoch],
    synced_end_offset: int,
) -> None:
    """Make the file names that a log relies on durable, since an earlier sync of the directory may have failed.

    Args:
        file_system: where the directory is.
        directory: of the log. All other changes in it have been synced.
        stored: the stored durable point.
        segments: of the log.
        snapshot_ids: of the log.
        synced_end_offset: as for ``rewrite_tails``.

    Raises:
        StorageError: a file may have its plain name, or end in ``.swap``.
    """
    if _is_as_it_was_closed(stored, segments, synced_end_offset):
        return
    paths = [segment.path for segment in segments if segment.base_offset >= synced_end_offset]
    paths += [join(directory, snapshot_name(snapshot_id)) for snapshot_id in snapshot_ids]
    for path in paths:
        file_system.rename(path, path + FileState.SWAP.value)
        file_system.rename(path + FileState.SWAP.value, path)
    if paths:
        file_system.sync_directory(directory)
