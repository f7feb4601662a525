# SPDX-License-Identifier: Apache-2.0
"""Finds the aborted and the open transactions of a log in files, whose records ``read_committed`` leaves out.

Transaction indexes name the aborted transactions, and the producer snapshot at the start of the newest segment names
those that were open there. If a log has both, only its newest segment is scanned; otherwise all segments are. As for
brokers, a segment without a transaction index has no aborted transactions.

Source: UnifiedLog#collectAbortedTransactions, ProducerStateManager.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from raftlog.errors import DecodeError, StorageError
from raftlog.file_paths import join_path, split_path
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import split_runs
from raftlog.records.columns.transactions import AbortedRange, Transactions, TransactionSearch, find_transactions
from raftlog.records.files.file_names import FileKind, FileState, parse_file_name
from raftlog.records.files.index_entries import TRANSACTION_INDEX
from raftlog.records.files.producer_snapshot import read_producer_snapshot
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.storage.reading.file_source import open_source, read_file

_LARGEST_FILE: Final = 256 * 1024 * 1024


class SegmentFiles(Protocol):
    """A segment and the files beside it, by path."""

    @property
    def path(self) -> str:
        """The path of the ``.log`` file."""
        ...

    @property
    def base_offset(self) -> int | None:
        """The first offset that it may hold, by its name; None if the name is not a segment's."""
        ...

    @property
    def indexes(self) -> Mapping[FileKind, str]:
        """Paths of its other existing files, by kind."""
        ...


@attrs.frozen
class _Files:
    path: str
    base_offset: int
    indexes: dict[FileKind, str]


def log_transactions(path: str) -> Transactions:
    """Find the transactions of the log that a segment belongs to, in all segments of its directory.

    This covers transactions that began in an earlier segment, and those whose marker is in a later one. A file without
    a segment's name is treated as a whole log. The last stable offset follows from the files only: they do not contain
    the high watermark.

    Args:
        path: of the segment, local or remote.

    Raises:
        StorageError: the directory or a segment cannot be read. Damage in a segment is skipped.
    """
    directory, name = split_path(path)
    parsed = parse_file_name(name)
    if parsed is None or parsed.kind is not FileKind.LOG or parsed.state is not FileState.CURRENT:
        with open_source(path) as source:
            return find_transactions(source)
    segments, producer_snapshots = _files_in(directory)
    search = search_by_files(segments, producer_snapshots)
    remaining = segments[-1:]
    if search is None:
        search, remaining = TransactionSearch(), segments
    for segment in remaining:
        with open_source(segment.path) as source:
            for piece in split_runs(source):
                if isinstance(piece, BatchRun):
                    search.take(piece)
    return search.result(segments[0].base_offset)


def search_by_files(
    segments: Sequence[SegmentFiles], producer_snapshots: Mapping[int, str]
) -> TransactionSearch | None:
    """Return a search that needs to scan only a log's newest segment; None if the other files do not suffice for that.

    Args:
        segments: all of the log's segments, by offset; at least one.
        producer_snapshots: paths of its producer snapshots, by offset.
    """
    newest = segments[-1]
    snapshot = None if newest.base_offset is None else producer_snapshots.get(newest.base_offset)
    if snapshot is None or any(FileKind.OFFSET_INDEX not in segment.indexes for segment in segments):
        return None
    search = TransactionSearch()
    try:
        for segment in segments:
            if (index := segment.indexes.get(FileKind.TRANSACTION_INDEX)) is not None:
                entries = TRANSACTION_INDEX.read(read_file(index, _LARGEST_FILE))
                search.add_aborted(
                    AbortedRange(each.producer_id, each.first_offset, each.last_offset) for each in entries
                )
        for entry in read_producer_snapshot(read_file(snapshot, _LARGEST_FILE), allow_trailing_bytes=True):
            if entry.current_transaction_first_offset >= 0:
                search.add_open(entry.producer_id, entry.current_transaction_first_offset)
    except (DecodeError, StorageError):
        return None
    search.reach(newest.base_offset or 0)
    return search


def _files_in(directory: str) -> tuple[list[_Files], dict[int, str]]:
    """Return the segments in a directory, by offset, and its producer snapshots."""
    logs: dict[int, str] = {}
    indexes: dict[int, dict[FileKind, str]] = {}
    snapshots: dict[int, str] = {}
    for entry in DirectoryListing().entries(directory or "."):
        name = parse_file_name(entry.name)
        if name is None or name.base_offset is None or name.state is not FileState.CURRENT:
            continue
        path = join_path(directory, entry.name)
        if name.kind is FileKind.LOG:
            logs[name.base_offset] = path
        elif name.kind is FileKind.PRODUCER_SNAPSHOT:
            snapshots[name.base_offset] = path
        else:
            indexes.setdefault(name.base_offset, {})[name.kind] = path
    return [_Files(logs[offset], offset, indexes.get(offset, {})) for offset in sorted(logs)], snapshots
