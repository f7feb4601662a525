# SPDX-License-Identifier: Apache-2.0
"""Sets bytes aside before they are truncated or replaced: keeps them under names that nothing reads.

::

    00000000000000000042.log.damaged-511      the bytes of a segment from position 511 on, or all of it: damage
    00000000000000000042.log.torn-511         an unacknowledged torn tail, from position 511 on
    00000000000000000042.log.superseded-00000000000000000090-0000000007
                                              a sound file that the snapshot of that id has replaced

Kafka ignores such names, since they end in none of its suffixes. A second file of the same name gets the suffix ``-1``.
If an earlier open has already copied the same bytes, they are not copied again. Long runs of zeros become holes in a
copy, so that preallocated space takes no room. Bytes that the disk cannot read become zeros in the copy, and the
segment itself is kept, too.

At most ``MOST_TORN_TAILS`` torn tails are kept. All other files stay until an operator removes them.
"""

import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Final

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem, OpenFile, join, remove_if_there
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.window import ByteSource, after_hole
from raftlog.storage.reading.readable_bytes import ReadableBytes
from raftlog.storage.segments.indeterminate_writes import INDETERMINATE_WRITES
from raftlog.storage.segments.log_segment import LogSegment

MOST_TORN_TAILS: Final = 16
"""How many copies of torn tails a directory keeps: the one just made, and those of the greatest offsets."""
_COPY_SIZE: Final = 4 * 1024 * 1024
_HALF_COPIED: Final = re.compile(r"[0-9]{20}\.log\.(?:damaged|torn)-[0-9-]+\.tmp")
_SUPERSEDED: Final = re.compile(r"([0-9]{20})\.log\.superseded-([0-9]{20})-([0-9]{10})(?:-[0-9]+)?")
_TORN: Final = re.compile(r"([0-9]{20})\.log\.torn-([0-9]+)(?:-([0-9]+))?")


def is_half_copied(name: str) -> bool:
    """Whether a name is that of an unfinished copy. It may be removed, because the bytes are still in their segment."""
    return _HALF_COPIED.fullmatch(name) is not None


def damaged_path(file_system: FileSystem, path: str, position: int = 0) -> str:
    """Return an unused name for the damaged bytes of a file."""
    return _free_path(file_system, f"{path}.damaged-{position}")


def superseded_path(path: str, snapshot_id: OffsetAndEpoch) -> str:
    """Return the name under which a file is kept that a snapshot has replaced; further ones get a number."""
    return f"{path}.superseded-{snapshot_id.offset:020}-{snapshot_id.epoch:010}"


def superseded_segments(
    file_system: FileSystem, directory: str, snapshot_id: OffsetAndEpoch
) -> tuple[tuple[int, str], ...]:
    """Return the base offsets and paths of the segments that are kept because a snapshot has replaced them, in order.

    Raises:
        StorageError: the directory cannot be listed.
    """
    matches = [match for name in file_system.list(directory) if (match := _SUPERSEDED.fullmatch(name))]
    kept = [match for match in matches if OffsetAndEpoch(int(match[2]), int(match[3])) == snapshot_id]
    return tuple(sorted((int(match[1]), join(directory, match[0])) for match in kept))


def set_file_aside(file_system: FileSystem, path: str) -> str:
    """Rename a damaged file to a name that nothing reads, and return that; durable once its directory is synced.

    Raises:
        StorageError: it may have either name.
    """
    target = damaged_path(file_system, path)
    file_system.rename(path, target)
    return target


def supersede_file(file_system: FileSystem, path: str, snapshot_id: OffsetAndEpoch) -> str:
    """Rename a sound file that a snapshot replaces, and return its name; durable once its directory is synced.

    Raises:
        StorageError: it may have either name.
    """
    target = _free_path(file_system, superseded_path(path, snapshot_id))
    file_system.rename(path, target)
    return target


def set_aside_after(
    file_system: FileSystem, directory: str, segment: LogSegment, later_segments: tuple[LogSegment, ...]
) -> tuple[str, ...]:
    """Set aside what follows the sound part of a segment, and all segments after it; durable on return.

    A crash in between leaves the log damaged at the same position, or ending there: it stays in quarantine either way.

    Returns:
        The paths of the files that were set aside.

    Raises:
        OutOfSpaceError: there is no room for the copy; the log is as it was.
        StorageError: part of it may be done.
    """
    aside = f"{segment.path}.damaged-{segment.size_bytes}"
    sound = f"{aside}-0.tmp"
    with contextlib.closing(file_system.open_for_reads(segment.path)) as file:
        source, size_bytes = ReadableBytes(file), file.size()
        paths = []
        if size_bytes > segment.size_bytes:
            paths.append(_kept_copy(file_system, source, range(segment.size_bytes, size_bytes), aside))
        if source.failure is not None:
            _copy(file_system, file, range(segment.size_bytes), sound)
    with INDETERMINATE_WRITES:
        file_system.sync_directory(directory)
        # The segment is cut last, so that a crash before that leaves the damage where it was found.
        for later in reversed(later_segments):
            later.close()
            paths.append(set_file_aside(file_system, later.path))
            later.remove_indexes()
        file_system.sync_directory(directory)
        if source.failure is None:
            segment.cut_damage()
        else:
            # The disk may be able to read these bytes later, so the file itself is kept.
            paths.append(set_file_aside(file_system, segment.path))
            segment.take_file(sound)
            file_system.sync_directory(directory)
    return tuple(paths)


def cut_torn_tail(file_system: FileSystem, directory: str, segment: LogSegment) -> tuple[str, tuple[str, ...]]:
    """Copy the torn tail after the sound part of a segment, and truncate the segment; durable on return.

    Returns:
        The path of the copy, and those of older copies that were removed because there are too many.

    Raises:
        OutOfSpaceError: there is no room for the copy; nothing was truncated.
        StorageError: the tail may be truncated or not; if it is, the copy exists.
    """
    positions = range(segment.size_bytes, segment.file.size())
    copy = _kept_copy(file_system, segment.file, positions, f"{segment.path}.torn-{segment.size_bytes}")
    file_system.sync_directory(directory)
    segment.cut_damage()
    removed = _torn_tails_too_many(file_system, directory, copy)
    for path in removed:
        remove_if_there(file_system, path)
    return copy, removed


def _torn_tails_too_many(file_system: FileSystem, directory: str, kept: str) -> tuple[str, ...]:
    names = [match for name in file_system.list(directory) if (match := _TORN.fullmatch(name))]
    names.sort(key=lambda match: tuple(int(number or 0) for number in match.groups()))
    others = [path for match in names if (path := join(directory, match[0])) != kept]
    return tuple(others[: max(0, len(others) + 1 - MOST_TORN_TAILS)])


def _free_path(file_system: FileSystem, wanted: str) -> str:
    return next(path for path in _numbered(wanted) if not file_system.exists(path))


def _numbered(wanted: str) -> Iterator[str]:
    yield wanted
    for count in itertools.count(1):
        yield f"{wanted}-{count}"


def _kept_copy(file_system: FileSystem, source: ByteSource, positions: range, wanted: str) -> str:
    """Return the path of a copy of a part of a file: an existing one, or a new one; durable except for its name.

    An open that was killed between copying and truncating has left a copy, which is reused.
    """
    for path in _numbered(wanted):
        if not file_system.exists(path):
            _copy(file_system, source, positions, f"{path}.tmp")
            file_system.rename(f"{path}.tmp", path)
            return path
        if _has_bytes(file_system, path, source, positions):
            return path
    raise AssertionError("there is always another name")  # pragma: no cover


def _has_bytes(file_system: FileSystem, path: str, source: ByteSource, positions: range) -> bool:
    try:
        with contextlib.closing(file_system.open_for_reads(path)) as file:
            if file.size() != len(positions):
                return False
            return all(file.read_at(at - positions.start, len(data)) == data for at, data in _pieces(source, positions))
    except StorageError:
        return False


def _pieces(source: ByteSource, positions: range) -> Iterator[tuple[int, memoryview]]:
    """Yield parts of a file with their positions, skipping holes, which may be yielded in part."""
    at = positions.start
    while at < positions.stop:
        data = source.read_at(at, min(_COPY_SIZE, positions.stop - at))
        if not data:
            return  # The file has become shorter.
        yield at, data
        at = min(after_hole(source, at + len(data)), positions.stop)


def _copy(file_system: FileSystem, source: ByteSource, positions: range, target: str) -> None:
    """Copy a part of a file to another one, durable except for its name; long runs of zeros become holes."""
    remove_if_there(file_system, target)
    copy = file_system.open(target, create=True)
    try:
        _write_pieces(source, positions, copy)
        copy.sync()
    except BaseException:
        copy.close()
        remove_if_there(file_system, target)
        raise
    copy.close()


def _write_pieces(source: ByteSource, positions: range, copy: OpenFile) -> None:
    end = 0
    for at, data in _pieces(source, positions):
        written = bytes(data).rstrip(b"\0")
        if written:
            copy.write_at(at - positions.start, written)
            end = at - positions.start + len(written)
    if end < len(positions):
        copy.write_at(len(positions) - 1, b"\0")
