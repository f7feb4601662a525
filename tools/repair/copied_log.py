# SPDX-License-Identifier: Apache-2.0
"""Copies the metadata log of a source into a new log directory, and gives that directory its owner.

What is copied is the log itself: segments with their indexes, snapshots, the epochs. The election state is not copied,
nor what raftlog keeps beside a log: the new directory looks as one that Kafka wrote.
"""

from collections.abc import Collection
from typing import Final

from raftlog.errors import SourceChangedError
from raftlog.file_system import FileSystem, OpenFile, join, replace_file
from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import SEGMENT_KINDS, FileKind, FileState, parse_file_name
from raftlog.records.files.property_files import MetaProperties, write_meta_properties
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.repair.sources import Source, SourceFile, current_files

_COPIED: Final = SEGMENT_KINDS | {
    FileKind.SNAPSHOT,
    FileKind.LEADER_EPOCH_CHECKPOINT,
    FileKind.PARTITION_METADATA,
    FileKind.BOOTSTRAP_SNAPSHOT,
}
_PIECE_BYTES: Final = 1 << 20


def copy_log(file_system: FileSystem, source: Source, directory: str, left_out: Collection[str] = ()) -> None:
    """Copy a source's log. Each file must have the bytes that it had when the plan was made.

    Args:
        file_system: of both.
        source: what is copied.
        directory: a new log directory, which exists and is empty.
        left_out: names of files that are not copied.

    Raises:
        SourceChangedError: a file has other bytes.
        StorageError: it cannot be read or written.
    """
    file_system.make_directory(join(directory, METADATA_DIRECTORY_NAME))
    for file in current_files(source, _COPIED):
        if file.name not in left_out:
            copy_file(file_system, source.path(file.name), join(directory, file.name), file)


def write_owner(file_system: FileSystem, directory: str, meta: MetaProperties) -> None:
    """Write the ``meta.properties`` of a new directory, which completes it.

    Raises:
        StorageError: it cannot be written.
    """
    replace_file(file_system, join(directory, FileKind.META_PROPERTIES.value), write_meta_properties(meta))


def forget_own_files(file_system: FileSystem, log_path: str) -> None:
    """Remove what raftlog keeps beside a log, and what opening the log has set aside: the source still has that.

    Args:
        file_system: of the log.
        log_path: its directory; the log is closed, and was flushed.

    Raises:
        StorageError: a file cannot be removed.
    """
    for name in file_system.list(log_path):
        parsed = parse_file_name(name)
        if parsed is None or parsed.state is not FileState.CURRENT:
            file_system.remove(join(log_path, name))


def copy_file(file_system: FileSystem, path: str, target: str, file: SourceFile) -> None:
    """Copy a file of a source, durably. A snapshot is read-only, as Kafka leaves it.

    Args:
        file_system: of both.
        path: of the file.
        target: of the copy, which must not exist.
        file: what it was when the plan was made.

    Raises:
        SourceChangedError: it has other bytes.
        StorageError: it cannot be read or written.
    """
    source = file_system.open_for_reads(path)
    try:
        copied = file_system.open(target, create=True)
        try:
            if _copy_bytes(source, copied) != (file.size_bytes, file.crc32c):
                raise SourceChangedError(path, "it has changed since the plan was made")
            copied.sync()
        finally:
            copied.close()
    finally:
        source.close()
    name = parse_file_name(target.rpartition("/")[2])
    if name is not None and name.kind is FileKind.SNAPSHOT:
        file_system.set_read_only(target)


def _copy_bytes(source: OpenFile, target: OpenFile) -> tuple[int, int]:
    """Copy all bytes; return how many there were, and their CRC."""
    position, crc = 0, 0
    while piece := source.read_at(position, _PIECE_BYTES):
        target.append(piece)
        crc = crc32c(piece, crc)
        position += len(piece)
    return position, crc
