# SPDX-License-Identifier: Apache-2.0
"""Finds aborted and open transactions in growing logs, whose records ``read_committed`` leaves out."""

from collections.abc import Mapping, Sequence

from raftlog.file_paths import split_path
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import split_runs
from raftlog.records.columns.transactions import Transactions, TransactionSearch
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.log_transactions import search_by_files
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.source.batch_places import SeenBatch


class TransactionFollower:
    """Finds the transactions of growing logs. A search continues where the last one ended, if that batch exists."""

    def __init__(self) -> None:
        self._searches: dict[str, _Search] = {}

    def find(self, segments: Sequence[SurveyTask], producer_snapshots: Mapping[int, str]) -> Transactions:
        """Return the transactions of a log.

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
            found = search_by_files(segments, producer_snapshots)
            search = _Search(found)
            for segment in segments if found is None else segments[-1:]:
                search.scan(segment.path)
        self._searches[directory] = search
        return search.result(segments[0].base_offset or 0)


class _Search:
    """The transactions of a log found so far, and the last batch that was scanned."""

    def __init__(self, found: TransactionSearch | None = None) -> None:
        self._found = found or TransactionSearch()
        self._last: tuple[str, SeenBatch] | None = None

    def result(self, start_offset: int) -> Transactions:
        """Return the transactions found, for a log that starts at an offset."""
        return self._found.result(start_offset)

    def go_on(self, segments: Sequence[SurveyTask]) -> bool:
        """Scan what follows the last scanned batch; return False, without a scan, if that batch no longer exists."""
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

    def scan(self, path: str, start: int = 0) -> None:
        """Follow the transactions through a segment. It skips damage, which is reported when the rows are read."""
        with open_source(path) as source:
            for piece in split_runs(source, start=start):
                if isinstance(piece, BatchRun):
                    self._last = path, SeenBatch.of(piece.batch(len(piece) - 1))
                    self._found.take(piece)
