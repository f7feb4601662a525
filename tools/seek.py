# SPDX-License-Identifier: Apache-2.0
"""Which files to read, and from where on: by the names of segments, and by the indexes beside them.

An index is a hint: an entry is believed only if the batch that it names says the same, and without one reading starts
at the beginning.
"""

from collections.abc import Callable, Iterable

import attrs

from raftlog.errors import StorageError
from raftlog.records import limits
from raftlog.records.batch import RecordBatch
from raftlog.records.file_names import FileKind
from raftlog.records.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    Entry,
    IndexFormat,
    PartialEntry,
    ZeroPadding,
)
from raftlog.records.iterator import ByteSource, is_likely_header, split
from raftlog.records.legacy import LegacyBatch
from raftlog.storage.segment_reader import FileSource
from raftlog.tools.inputs import InputFile
from raftlog.tools.selection import Selection

_MAX_OFFSET = 2**63 - 1


@attrs.frozen
class BatchHead:
    """What a batch's header says, its CRC unchecked."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    next_position: int

    def spans(self, offset: int) -> bool:
        """Whether an offset is one of the batch's."""
        return self.base_offset <= offset <= self.last_offset


def head_at(source: ByteSource, position: int) -> BatchHead | None:
    """Read the header at a byte position, or return None if no batch of magic 2 seems to start there."""
    head = source.read_at(position, limits.BATCH_OVERHEAD) if position >= 0 else memoryview(b"")
    if len(head) < limits.BATCH_OVERHEAD or not is_likely_header(head):
        return None
    batch = RecordBatch(head)
    size = int.from_bytes(head[8:12], "big") + limits.LOG_OVERHEAD
    return BatchHead(batch.base_offset, batch.last_offset, batch.max_timestamp, position + size)


def start_position(file: InputFile, source: ByteSource, selection: Selection) -> int:
    """Return a byte position before which no batch is wanted, and at which one starts."""
    offset = selection.from_offset or 0
    if selection.since_ms is not None:
        offset = max(offset, _offset_before(file, source, selection.since_ms))
    return _position_before(file, source, offset) if offset else 0


def _position_before(file: InputFile, source: ByteSource, offset: int) -> int:
    """Return the position of the last indexed batch that starts at an offset or before it, or 0."""
    if file.base_offset is None:
        return 0
    wanted = offset - file.base_offset
    entry = _last_entry(file.sibling(FileKind.OFFSET_INDEX), OFFSET_INDEX, lambda each: each.relative_offset <= wanted)
    if entry is None:
        return 0
    head = head_at(source, entry.position)
    is_true = head is not None and head.spans(file.base_offset + entry.relative_offset)
    return entry.position if is_true else 0


def _offset_before(file: InputFile, source: ByteSource, timestamp: int) -> int:
    """Return the last indexed offset up to which every timestamp is before a given one, or 0."""
    if file.base_offset is None:
        return 0
    entry = _last_entry(file.sibling(FileKind.TIME_INDEX), TIME_INDEX, lambda each: each.timestamp < timestamp)
    if entry is None:
        return 0
    offset = file.base_offset + entry.relative_offset
    head = head_at(source, _position_before(file, source, offset))
    while head is not None and head.last_offset < offset:
        head = head_at(source, head.next_position)
    is_true = head is not None and head.spans(offset) and head.max_timestamp == entry.timestamp
    return offset if is_true else 0


def _last_entry(path: str | None, index: IndexFormat[Entry], is_before: Callable[[Entry], bool]) -> Entry | None:
    """Return the last of the entries for which a condition holds, by bisection; None if there is no telling."""
    if path is None:
        return None
    found = None
    try:
        with FileSource(path) as source:
            low, high = 0, source.size() // index.entry_size
            while low < high:
                middle = (low + high) // 2
                entry = next(index.scan(source.read_at(middle * index.entry_size, index.entry_size)), None)
                # An entry of zeros is padding, and says no more than that reading starts at the beginning.
                if entry is None or isinstance(entry, ZeroPadding | PartialEntry) or not is_before(entry):
                    high = middle
                else:
                    low, found = middle + 1, entry
    except StorageError:
        return None
    return found


def end_offset(file: InputFile) -> int | None:
    """Return the offset after the last batch of a file whose CRC holds, or where a file without batches would start.

    Raises:
        StorageError: the file cannot be read.
    """
    with FileSource(file.path) as source:
        end = file.base_offset
        for piece in split(source, start=_position_before(file, source, _MAX_OFFSET)):
            if isinstance(piece, RecordBatch | LegacyBatch):
                end = piece.last_offset + 1
        return end


def wanted_files(
    files: Iterable[InputFile], selection: Selection, last: int | None = None
) -> list[tuple[InputFile, Selection]]:
    """Say what to read of which files.

    Segments are left out if their names say that they hold no wanted offset. A snapshot numbers its records by itself:
    it is left out where offsets are asked for, unless it was named.

    Args:
        files: segments of one log stand together, by offset.
        selection: what is asked for of each.
        last: how many offsets before the end of each log are asked for, in the place of a first offset; or None.
    """
    files = list(files)
    if last is None and selection.from_offset is None and selection.to_offset is None:
        return [(file, selection) for file in files]
    first_offsets = {} if last is None else _first_of_last(files, last)
    wanted = []
    for file, following in zip(files, [*files[1:], None], strict=True):
        from_offset = first_offsets.get(_log_of(file), selection.from_offset)
        if not file.was_listed or _may_hold(file, following, from_offset, selection.to_offset):
            wanted.append((file, attrs.evolve(selection, from_offset=from_offset)))
    return wanted


def _log_of(file: InputFile) -> str:
    """What the offsets of a file are numbers of: all segments in a directory are one log, a snapshot is its own."""
    return file.directory if file.kind is FileKind.LOG else file.path


def _first_of_last(files: Iterable[InputFile], last: int) -> dict[str, int]:
    """Return the first of the last offsets of each log: the segment with the highest base offset says."""
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
            continue  # It is complained of when it is dumped.
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
