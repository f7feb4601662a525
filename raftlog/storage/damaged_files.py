# SPDX-License-Identifier: Apache-2.0
"""Setting damaged bytes aside: they are kept, for who wants to look at them, under names that nothing reads.

``<base offset>.log.damaged-<position>`` has the bytes of a segment from a position on, or all of it. Kafka ignores such
names: they end in none of its suffixes. Zeros stand there for what the disk does not give back, and then the segment
itself is kept, too.
"""

import contextlib
import re
from typing import Final

from raftlog.file_system import FileSystem, remove_if_there
from raftlog.records.window import ByteSource
from raftlog.storage.log_segment import LogSegment
from raftlog.storage.no_return import NO_RETURN
from raftlog.storage.readable_bytes import ReadableBytes

_COPY_SIZE: Final = 4 * 1024 * 1024
_HALF_COPIED: Final = re.compile(r"[0-9]{20}\.log\.damaged-[0-9-]+\.tmp")


def is_half_copied(name: str) -> bool:
    """Whether a name is that of a copy that was never finished, and may go: the bytes are still in their segment."""
    return _HALF_COPIED.fullmatch(name) is not None


def damaged_path(file_system: FileSystem, path: str, position: int = 0) -> str:
    """Return a name for the damaged bytes of a file that nothing has yet."""
    wanted = f"{path}.damaged-{position}"
    target, count = wanted, 0
    while file_system.exists(target):
        count += 1
        target = f"{wanted}-{count}"
    return target


def set_file_aside(file_system: FileSystem, path: str) -> str:
    """Give a damaged file a name that nothing reads, and return that; durable once its directory is synced.

    Raises:
        StorageError: it may have either name.
    """
    target = damaged_path(file_system, path)
    file_system.rename(path, target)
    return target


def set_aside_behind(
    file_system: FileSystem, directory: str, segment: LogSegment, later_segments: tuple[LogSegment, ...]
) -> tuple[str, ...]:
    """Set aside what stands behind the sound part of a segment, and all segments behind it; durable on return.

    A crash in between leaves the log damaged where it was, or ending there: it stays in quarantine either way.

    Returns:
        The paths that the bytes are at now.

    Raises:
        OutOfSpaceError: there is no room for the copy; the log is as it was.
        StorageError: some of it may be done.
    """
    aside = damaged_path(file_system, segment.path, segment.size_bytes)
    sound = f"{aside}-0.tmp"
    with contextlib.closing(file_system.open_for_reads(segment.path)) as file:
        source, size_bytes = ReadableBytes(file), file.size()
        paths = [aside] if size_bytes > segment.size_bytes else []
        if paths:
            _copy(file_system, source, range(segment.size_bytes, size_bytes), f"{aside}.tmp")
            file_system.rename(f"{aside}.tmp", aside)
        if source.failure is not None:
            _copy(file_system, file, range(segment.size_bytes), sound)
    with NO_RETURN:
        file_system.sync_directory(directory)
        # The segment is cut last: until then the damage can be found where it was, whatever else is gone.
        for later in reversed(later_segments):
            later.close()
            paths.append(set_file_aside(file_system, later.path))
            later.remove_indexes()
        file_system.sync_directory(directory)
        if source.failure is None:
            segment.cut_damage()
        else:
            # What the disk does not give back today it may give tomorrow: the file itself is kept.
            paths.append(set_file_aside(file_system, segment.path))
            segment.take_file(sound)
            file_system.sync_directory(directory)
    return tuple(paths)


def _copy(file_system: FileSystem, source: ByteSource, positions: range, target: str) -> None:
    """Copy a part of a file to another one, durably but for its name."""
    remove_if_there(file_system, target)
    copy = file_system.open(target, create=True)
    try:
        for position in positions[::_COPY_SIZE]:
            copy.append(source.read_at(position, min(_COPY_SIZE, positions.stop - position)))
        copy.sync()
    except BaseException:
        copy.close()
        remove_if_there(file_system, target)
        raise
    copy.close()
