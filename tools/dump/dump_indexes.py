# SPDX-License-Identifier: Apache-2.0
"""Dumps the files beside a log: indexes, producer snapshots and the small files."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic

import attrs

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import ByteSource
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    Entry,
    IndexFormat,
    IndexPadding,
    OffsetIndexEntry,
    PartialEntry,
    TimeIndexEntry,
)
from raftlog.records.files.producer_snapshot import read_producer_snapshot
from raftlog.records.messages.releases import DIALECTS, NEWEST_DIALECT, Release
from raftlog.storage.reading.file_source import open_source, read_file
from raftlog.storage.reading.index_seek import BatchHead, head_at
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.dump.rendering import Renderer
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES, InputFile
from raftlog.tools.input.small_files import READABLE_KINDS, small_file_contents

_MAX_INDEX_SIZE: Final = 64 * 1024 * 1024
"""Larger indexes are refused; Kafka's have 10 MiB."""


@attrs.frozen
class IndexOptions:
    """How to treat indexes, by kafka-dump-log's options of these names.

    Attributes:
        dialect: the release whose sanity check to run.
    """

    index_sanity_check: bool = False
    verify_index_only: bool = False
    dialect: Release = NEWEST_DIALECT


def dump_other_file(file: InputFile, renderer: Renderer, options: IndexOptions) -> Iterator[str | Finding]:
    """Yield the contents of a file beside a log, whatever its kind.

    Raises:
        StorageError: the file cannot be read.
        DecodeError: it breaks its format.
    """
    match file.kind:
        case FileKind.OFFSET_INDEX:
            return dump_offset_index(file, renderer, options)
        case FileKind.TIME_INDEX:
            return dump_time_index(file, renderer, options)
        case FileKind.TRANSACTION_INDEX:
            return dump_transaction_index(file, renderer)
        case FileKind.PRODUCER_SNAPSHOT:
            return dump_producer_snapshot(file, renderer)
        case _:
            return dump_small_file(file, renderer)


def dump_offset_index(file: InputFile, renderer: Renderer, options: IndexOptions) -> Iterator[str | Finding]:
    """Yield the entries of an offset index, and its contradictions with its segment."""
    index = _Index(OFFSET_INDEX, read_file(file.path, _MAX_INDEX_SIZE))
    if len(index.data) < OFFSET_INDEX.entry_size:
        yield from index.problems(file.path)
        yield renderer.empty_index(file)
    elif options.index_sanity_check:
        yield from _sanity_check(file, renderer, index, options.dialect)
    else:
        yield from index.problems(file.path)
        for entry in () if options.verify_index_only else index:
            yield renderer.offset_entry(file, entry, _base_offset(file))
        yield from _against_log(file, lambda log: _check_offsets(file, index, log))


def dump_time_index(file: InputFile, renderer: Renderer, options: IndexOptions) -> Iterator[str | Finding]:
    """Yield the entries of a time index, and its contradictions with its segment."""
    index = _Index(TIME_INDEX, read_file(file.path, _MAX_INDEX_SIZE))
    if options.index_sanity_check:
        yield from _sanity_check(file, renderer, index, options.dialect)
        return
    yield from index.problems(file.path)
    for entry in () if options.verify_index_only else index:
        yield renderer.time_entry(file, entry, _base_offset(file))
    yield from _against_log(file, lambda log: _check_times(file, index, log))


def dump_transaction_index(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield the entries of a transaction index."""
    index = _Index(TRANSACTION_INDEX, read_file(file.path, _MAX_INDEX_SIZE))
    for entry in index:
        yield renderer.aborted_transaction(file, entry)
    yield from index.problems(file.path)


def dump_producer_snapshot(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield the producers of a producer snapshot."""
    for entry in read_producer_snapshot(read_file(file.path, LARGEST_SMALL_FILE_BYTES), allow_trailing_bytes=True):
        yield renderer.producer_state(file, entry)


def dump_small_file(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield the contents of one of the small files; nothing for a kind without contents."""
    if file.kind is not None and file.kind in READABLE_KINDS:
        contents = small_file_contents(file.kind, read_file(file.path, LARGEST_SMALL_FILE_BYTES))
        yield renderer.small_file(file, file.kind, contents)


def _base_offset(file: InputFile) -> int:
    return file.base_offset or 0


@attrs.frozen
class _Index(Generic[Entry]):
    """An index. Each loop over its entries decodes them again, since a list would take 14 times the file's size."""

    layout: IndexFormat[Entry]
    data: bytes

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries that Kafka lists: all before the first one, except entry 0, that is at the base offset."""
        for number, entry in enumerate(self.layout.entries(self.data)):
            if number > 0 and not isinstance(entry, AbortedTransaction) and entry.relative_offset == 0:
                return
            yield entry

    def problems(self, path: str) -> Iterator[Finding]:
        """Yield the errors inside the index, without a look at its segment."""
        for piece in self.layout.scan(self.data):
            if isinstance(piece, PartialEntry):
                reason = f"{piece.size_bytes} bytes after the last entry"
                yield Finding(path, "index-size", reason, piece.position, piece.size_bytes)
            elif isinstance(piece, IndexPadding) and self.layout is TRANSACTION_INDEX:
                reason = f"{piece.size_bytes} zero bytes at the end"
                yield Finding(path, "tail-zero", reason, piece.position, piece.size_bytes)
        for error in self.layout.check_order(self._entries_before_padding()):
            yield Finding.of_error(error, path)

    def _entries_before_padding(self) -> Iterator[Entry]:
        for piece in self.layout.scan(self.data):
            if isinstance(piece, IndexPadding | PartialEntry):
                return
            yield piece


def _sanity_check(
    file: InputFile, renderer: Renderer, index: "_Index[OffsetIndexEntry] | _Index[TimeIndexEntry]", dialect: Release
) -> Iterator[str | Finding]:
    """Check only what a broker checks at startup. Source: the sanityCheck of OffsetIndex and of TimeIndex."""
    reason = _sanity_fault(index, dialect)
    yield renderer.passed(file) if reason is None else Finding(file.path, "index-sanity", reason)


def _sanity_fault(index: "_Index[OffsetIndexEntry] | _Index[TimeIndexEntry]", dialect: Release) -> str | None:
    """Describe what fails the check, if anything; like a broker, look only at the first and the last entry."""
    size = index.layout.entry_size
    end = len(index.data) // size * size
    if end < len(index.data) and (index.layout is TIME_INDEX or dialect < DIALECTS["4.3"]):
        return f"{len(index.data) - end} bytes after the last entry"
    ends = [*index.layout.entries(index.data[:size]), *index.layout.entries(index.data[end - size : end])]
    match ends:
        case [_, last] if last.relative_offset < 0:
            return f"the last relative offset is {last.relative_offset}"
        case [TimeIndexEntry() as first, TimeIndexEntry() as last] if last.timestamp < first.timestamp:
            return f"the last timestamp, {last.timestamp}, is before the first, {first.timestamp}"
    return None


def _against_log(file: InputFile, check: Callable[[ByteSource], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check against the segment of an index, if it is there."""
    path = file.sibling(FileKind.LOG)
    if path is None:
        return
    try:
        log = open_source(path)
    except StorageError as error:
        yield Finding(file.path, "index-orphan", f"it cannot be checked against its log: {error}")
        return
    with log:
        yield from check(log)


def _check_offsets(file: InputFile, entries: Iterable[OffsetIndexEntry], log: ByteSource) -> Iterator[Finding]:
    base_offset = _base_offset(file)
    for index, entry in enumerate(entries):
        offset = base_offset + entry.relative_offset
        if entry == (0, 0):
            continue
        head = head_at(log, entry.position)
        if head is None or head.last_offset != offset:
            found = "no batch" if head is None else f"a batch that ends at offset {head.last_offset}"
            reason = f"entry for offset {offset} at position {entry.position} of the log, where there is {found}"
            yield Finding(file.path, "index-entry", reason, index * OFFSET_INDEX.entry_size, offset=offset)


def _check_times(file: InputFile, entries: Iterable[TimeIndexEntry], log: ByteSource) -> Iterator[Finding]:
    """Check entries in a single pass over the log's headers."""
    base_offset = _base_offset(file)
    position = 0
    head: BatchHead | None = None
    for index, entry in enumerate(entries):
        offset = base_offset + entry.relative_offset
        if entry == (0, 0):
            continue
        while head is None or head.last_offset < offset:
            head = head_at(log, position)
            if head is None:
                break
            position = head.next_position
        place = index * TIME_INDEX.entry_size
        if head is None or head.last_offset != offset:
            yield Finding(file.path, "index-entry", f"no batch ends at offset {offset}", place, offset=offset)
            if head is None:
                return
        elif head.max_timestamp != entry.timestamp:
            reason = f"timestamp {entry.timestamp}, that of the batch is {head.max_timestamp}"
            yield Finding(file.path, "index-timestamp", reason, place, offset=offset)
