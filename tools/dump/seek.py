# SPDX-License-Identifier: Apache-2.0
"""Finds which files to read, and from which position on, by the names of segments and by their indexes."""

from collections.abc import Iterable

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import ByteSource
from raftlog.records.files.file_names import FileKind
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.dump.selection import Selection
from raftlog.tools.input.inputs import InputFile


def start_position(file: InputFile, source: ByteSource, selection: Selection) -> int:
    """Return the byte position of a batch before which no batch is selected."""
    from raftlog.storage.reading.index_seek import IndexSeek  # Slow to import, and rarely needed.

    seek = IndexSeek(file.path, file.base_offset)
    offset = selection.from_offset or 0
    if selection.since_ms is not None:
        offset = max(offset, seek.offset_before(source, selection.since_ms))
    return seek.position_before(source, offset) if offset else 0


def end_offset(file: InputFile) -> int | None:
    """Return the offset after a file's last batch whose CRC holds; for a file without batches, its first offset.

    Raises:
        StorageError: the file cannot be read.
    """
    from raftlog.storage.reading.index_seek import IndexSeek  # Slow to import, and rarely needed.

    with open_source(file.path) as source:
        last = IndexSeek(file.path, file.base_offset).end(source).batch
    return file.base_offset if last is None else last.last_offset + 1


def wanted_files(
    files: Iterable[InputFile], selection: Selection, last: int | None = None
) -> list[tuple[InputFile, Selection]]:
    """Return the files to read, each with what to select from it.

    Segments are left out if, by their names, they have no selected offset. A snapshot has its own offsets, so it is
    left out if offsets are selected, unless the user named it.

    Args:
        files: the files, with the segments of one log together, by offset.
        selection: what to select from each.
        last: instead of a first offset, how many offsets before the end of each log to select; or None.
    """
    files = list(files)
    if last is None and selection.from_offset is None and selection.to_offset is None:
        return [(file, selection) for file in files]
    first_offsets = {} if last is None else _first_of_last(files, last)
    wanted = []
    for file, following in zip(files, [*files[1:], None], strict=True):
        from_offset = first_offsets.get(_log_of(file), selection.from_offset)
        if not file.was_listed or _may_hold(file, following, from_offset, selection.to_offset):
            wanted.append((file, selection._replace(from_offset=from_offset)))
    return wanted


def _log_of(file: InputFile) -> str:
    """Return a key for the log that a file's offsets belong to: its directory for a segment, itself for a snapshot."""
    return file.directory if file.kind is FileKind.LOG else file.path


def _first_of_last(files: Iterable[InputFile], last: int) -> dict[str, int]:
    """Return the first of the last offsets of each log, from the segment with the highest base offset."""
    newest: dict[str, InputFile] = {}
    for file in files:
        log = _log_of(file)
        if file.kind is not FileKind.LOG and (file.was_listed or not file.holds_records):
            continue
        if log not in newest or _base_offset(file) >= _base_offset(newest[log]):
            newest[log] = file
    ends = {}
    for log, file in newest.items():
        try:
            ends[log] = end_offset(file)
        except StorageError:
            continue  # The error is reported when it is dumped.
    return {log: max(0, end - last) for log, end in ends.items() if end is not None}


def _base_offset(file: InputFile) -> int:
    return -1 if file.base_offset is None else file.base_offset


def _may_hold(file: InputFile, following: InputFile | None, from_offset: int | None, to_offset: int | None) -> bool:
    """Whether a file that was found in a directory may hold offsets from one (inclusive) to another (exclusive)."""
    if file.kind is not FileKind.LOG:
        return False
    if file.base_offset is None:
        return True
    starts_after = to_offset is not None and file.base_offset >= to_offset
    return not starts_after and not _ends_before(following, file, from_offset or 0)


def _ends_before(following: InputFile | None, file: InputFile, offset: int) -> bool:
    if following is None or following.kind is not FileKind.LOG or following.directory != file.directory:
        return False
    return following.base_offset is not None and following.base_offset <= offset
