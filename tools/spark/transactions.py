# SPDX-License-Identifier: Apache-2.0
"""Which transactions of a partition were aborted, and which are open: what ``read_committed`` leaves out.

Transaction indexes name the aborted ones, and the producer snapshot at the start of the newest segment the ones that
were open there, so that of a log that has both only that segment is scanned. Of any other log, all are.

Source: UnifiedLog#collectAbortedTransactions, ProducerStateManager.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError, StorageError
from raftlog.file_paths import split_path
from raftlog.records.columns import BatchColumns, Chunk, read_columns
from raftlog.records.control import ControlRecordType, read_control_key
from raftlog.records.file_names import FileKind
from raftlog.records.index_entries import TRANSACTION_INDEX
from raftlog.records.producer_snapshot import read_producer_snapshot
from raftlog.storage.file_source import open_source, read_file
from raftlog.tools.auditing.batch_table import BatchTable
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.batch_places import SeenBatch
from raftlog.tools.spark.parts import AbortedRange

_LARGEST_FILE: Final = 256 * 1024 * 1024


@attrs.frozen
class Transactions:
    """What is known of the transactions of a partition.

    Attributes:
        aborted: those that were aborted, by the offset of their marker.
        stable_end: the last stable offset: where the first open transaction starts; None if none is open.
    """

    aborted: tuple[AbortedRange, ...] = ()
    stable_end: int | None = None

    def between(self, first: int | None, end: int | None) -> tuple[AbortedRange, ...]:
        """Return the aborted ones that may have records from an offset (inclusive) to another (exclusive)."""
        return tuple(
            each
            for each in self.aborted
            if (first is None or each.last_offset >= first) and (end is None or each.first_offset < end)
        )


class TransactionFollower:
    """Finds out about the transactions of logs that grow: each time from where it was, if that is there still."""

    def __init__(self) -> None:
        self._searches: dict[str, _Search] = {}

    def find(self, segments: Sequence[SurveyTask], producer_snapshots: Mapping[int, str]) -> Transactions:
        """Find out about the transactions of a log.

        Args:
            segments: all of its segments, by offset.
            producer_snapshots: paths of its producer snapshots, by offset.

        Raises:
            StorageError: a segment cannot be read.
        """
        if not segments:
            return Transactions()
        directory, _ = split_path(segments[0].path)
        search = self._searches.pop(directory, None)
        if search is None or not search.go_on(segments):
            search = _Search()
            if not search.start_at_newest(segments, producer_snapshots):
                search = _Search()
                for segment in segments[:-1]:
                    search.scan(segment.path)
            search.scan(segments[-1].path)
        self._searches[directory] = search
        return search.result(segments[0].base_offset or 0)


class _Search:
    """What was found so far: the open transactions by producer, and the aborted ones."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._aborted: set[AbortedRange] = set()
        self._last: tuple[str, SeenBatch] | None = None

    def result(self, start_offset: int) -> Transactions:
        """Return what is known of a log that starts at an offset."""
        aborted = sorted(self._aborted, key=lambda each: each.last_offset)
        kept = tuple(each for each in aborted if each.last_offset >= start_offset)
        self._aborted.intersection_update(kept)
        return Transactions(kept, min(self._open.values(), default=None))

    def go_on(self, segments: Sequence[SurveyTask]) -> bool:
        """Take what stands behind the last batch that was scanned; return whether that batch was there."""
        paths = [segment.path for segment in segments]
        if self._last is None or self._last[0] not in paths:
            return False
        newest, last = self._last
        with open_source(newest) as source:
            if not last.is_still_in(source):
                return False
        self.scan(newest, last.next_position)
        for path in paths[paths.index(newest) + 1 :]:
            self.scan(path)
        return True

    def start_at_newest(self, segments: Sequence[SurveyTask], producer_snapshots: Mapping[int, str]) -> bool:
        """Take what files say of all segments but the newest; return whether they say enough."""
        newest = segments[-1]
        snapshot = None if newest.base_offset is None else producer_snapshots.get(newest.base_offset)
        if snapshot is None or any(FileKind.OFFSET_INDEX not in segment.indexes for segment in segments):
            return False
        with contextlib.suppress(DecodeError, StorageError):
            for segment in segments:
                if (index := segment.indexes.get(FileKind.TRANSACTION_INDEX)) is not None:
                    entries = TRANSACTION_INDEX.read(read_file(index, _LARGEST_FILE))
                    self._aborted.update(
                        AbortedRange(each.producer_id, each.first_offset, each.last_offset) for each in entries
                    )
            for entry in read_producer_snapshot(read_file(snapshot, _LARGEST_FILE), allow_trailing_bytes=True):
                if entry.current_transaction_first_offset >= 0:
                    self._open[entry.producer_id] = entry.current_transaction_first_offset
            return True
        return False

    def scan(self, path: str, start: int = 0) -> None:
        """Follow the transactions through a segment. What is damaged says nothing here: those who read it complain."""
        import numpy as np

        with open_source(path) as source:
            for piece in read_columns(source, (), start=start):
                if not isinstance(piece, Chunk):
                    continue
                run = piece.batches.run
                self._last = path, SeenBatch.of(run.batch(len(run) - 1))
                table = BatchTable(piece.batches)
                for index in np.flatnonzero(table.are_transactional):
                    self._take(piece.batches, int(index), int(table.producer_ids[index]))

    def _take(self, batches: BatchColumns, index: int, producer_id: int) -> None:
        batch = batches.run.batch(index)
        if not batch.is_control:
            self._open.setdefault(producer_id, batch.base_offset)
            return
        with contextlib.suppress(DecodeError, MissingExtraError):
            for record in batch.records(check_crc=False):
                kind = read_control_key(record.key)
                if kind in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
                    # What began before the log does is not there to be left out, but what followed it is.
                    first_offset = self._open.pop(producer_id, record.offset)
                    if kind == ControlRecordType.ABORT and first_offset < record.offset:
                        self._aborted.add(AbortedRange(producer_id, first_offset, record.offset))
