# SPDX-License-Identifier: Apache-2.0
"""Dumping what stands beside a log: indexes, producer snapshots and the small files."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from raftlog.errors import StorageError
from raftlog.records.checkpoint_files import read_leader_epoch_checkpoint, read_offset_checkpoint
from raftlog.records.file_names import FileKind
from raftlog.records.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    Entry,
    IndexFormat,
    OffsetIndexEntry,
    PartialEntry,
    TimeIndexEntry,
    ZeroPadding,
)
from raftlog.records.iterator import ByteSource
from raftlog.records.producer_snapshot import read_producer_snapshot
from raftlog.records.property_files import read_meta_properties, read_partition_metadata
from raftlog.records.quorum_state import read_quorum_state
from raftlog.storage.segment_reader import FileSource, read_file
from raftlog.tools.findings import Finding
from raftlog.tools.inputs import InputFile
from raftlog.tools.rendering import Renderer
from raftlog.tools.seek import MAX_INDEX_SIZE, BatchHead, head_at
from raftlog.uuid_text import uuid_to_text

_MAX_SMALL_FILE_SIZE: Final = 16 * 1024 * 1024


@attrs.frozen
class IndexOptions:
    """How to treat indexes: as kafka-dump-log's options of these names say."""

    index_sanity_check: bool = False
    verify_index_only: bool = False


def dump_offset_index(file: InputFile, renderer: Renderer, options: IndexOptions) -> Iterator[str | Finding]:
    """Yield the entries of an offset index, and what does not hold between it and its segment."""
    entries, findings = _read_index(file, OFFSET_INDEX, OffsetIndexEntry(0, 0))
    yield from findings
    if not entries:
        yield renderer.empty_index(file)
    elif options.index_sanity_check:
        if not findings:
            yield renderer.passed(file)
    else:
        base_offset = _base_offset(file)
        for entry in entries:
            if not options.verify_index_only:
                yield renderer.offset_entry(file, entry, base_offset)
        yield from _against_log(file, lambda log: _check_offsets(file, entries, log))


def dump_time_index(file: InputFile, renderer: Renderer, options: IndexOptions) -> Iterator[str | Finding]:
    """Yield the entries of a time index, and what does not hold between it and its segment."""
    entries, findings = _read_index(file, TIME_INDEX, TimeIndexEntry(0, 0))
    yield from findings
    if options.index_sanity_check:
        if not findings:
            yield renderer.passed(file)
        return
    base_offset = _base_offset(file)
    for entry in entries:
        if not options.verify_index_only:
            yield renderer.time_entry(file, entry, base_offset)
    yield from _against_log(file, lambda log: _check_times(file, entries, log))


def dump_transaction_index(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield the entries of a transaction index."""
    entries, findings = _read_index(file, TRANSACTION_INDEX, AbortedTransaction(0, 0, 0, 0, 0))
    for entry in entries:
        yield renderer.aborted_transaction(file, entry)
    yield from findings


def dump_producer_snapshot(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield the producers of a producer snapshot."""
    for entry in read_producer_snapshot(read_file(file.path, _MAX_SMALL_FILE_SIZE), allow_trailing_bytes=True):
        yield renderer.producer_state(file, entry)


def dump_small_file(file: InputFile, renderer: Renderer) -> Iterator[str | Finding]:
    """Yield what one of the small files says; a kind without content says nothing."""
    read = _SMALL_FILES.get(file.kind)
    if read is not None and file.kind is not None:
        yield renderer.small_file(file, file.kind, read(read_file(file.path, _MAX_SMALL_FILE_SIZE)))


def _base_offset(file: InputFile) -> int:
    return file.base_offset or 0


def _read_index(file: InputFile, index: IndexFormat[Entry], zero: Entry) -> tuple[list[Entry], list[Finding]]:
    """Return an index's entries up to its padding, as Kafka lists them, and what is wrong with them."""
    entries: list[Entry] = []
    findings = []
    for piece in index.scan(read_file(file.path, MAX_INDEX_SIZE)):
        match piece:
            case PartialEntry():
                reason = f"{piece.size_bytes} bytes after the last entry"
                findings.append(Finding(file.path, "index-size", reason, piece.position, piece.size_bytes))
            case ZeroPadding() if index is TRANSACTION_INDEX:
                reason = f"{piece.size_bytes} zero bytes at the end"
                findings.append(Finding(file.path, "tail-zero", reason, piece.position, piece.size_bytes))
            case ZeroPadding():
                # An index of nothing but padding lists one entry, as Kafka takes it.
                entries += [] if entries else [zero]
            case _:
                entries.append(piece)
    findings += [Finding.of_error(error, file.path) for error in index.check_order(entries)]
    return entries, findings


def _against_log(file: InputFile, check: Callable[[ByteSource], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check against the segment of an index, if it is there."""
    path = file.sibling(FileKind.LOG)
    if path is None:
        return
    try:
        with FileSource(path) as log:
            yield from check(log)
    except StorageError:
        yield Finding(file.path, "index-orphan", f"there is no {path} to check the index against")


def _check_offsets(file: InputFile, entries: list[OffsetIndexEntry], log: ByteSource) -> Iterator[Finding]:
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


def _check_times(file: InputFile, entries: list[TimeIndexEntry], log: ByteSource) -> Iterator[Finding]:
    """Walk the log's headers once, as entries ask for them."""
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


def _plain(value: Any) -> Any:
    """Turn a value of a small file into what JSON has."""
    if attrs.has(type(value)):
        return {name.lstrip("_"): _plain(item) for name, item in attrs.asdict(value, recurse=False).items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return uuid_to_text(value) if isinstance(value, uuid.UUID) else value


def _entries_of(read: Callable[[bytes], Any]) -> Callable[[bytes], dict[str, Any]]:
    return lambda data: {"entries": _plain(read(data))}


def _members_of(read: Callable[[bytes], Any]) -> Callable[[bytes], dict[str, Any]]:
    return lambda data: dict(_plain(read(data)))


_SMALL_FILES: Final[dict[FileKind | None, Callable[[bytes], dict[str, Any]]]] = {
    FileKind.LEADER_EPOCH_CHECKPOINT: _entries_of(read_leader_epoch_checkpoint),
    FileKind.RECOVERY_POINT_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.LOG_START_OFFSET_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.REPLICATION_OFFSET_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.QUORUM_STATE: _members_of(read_quorum_state),
    FileKind.META_PROPERTIES: _members_of(read_meta_properties),
    FileKind.PARTITION_METADATA: _members_of(read_partition_metadata),
}
