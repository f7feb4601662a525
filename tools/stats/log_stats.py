# SPDX-License-Identifier: Apache-2.0
"""Counts what logs are made of, in one pass over their segments.

Only what is asked for is decoded: without record types, key prefixes and compaction, keys and values are not unpacked.
Damaged batches are counted apart. Memory does not grow with the logs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import pyarrow as pa

from raftlog.errors import DecodeError, MissingExtraError, StorageError, fresh_copy
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.column_values import BatchColumns, RecordColumns
from raftlog.records.columns.columns import columns_of_areas
from raftlog.records.columns.record_areas import RecordAreas, unpack_record_areas
from raftlog.records.files.file_names import METADATA_TOPIC, FileKind, FileState
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.auditing.survey.bounded_source import as_listed
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.auditing.unread_files import unread
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import check_names_segments
from raftlog.tools.stats.counting import BATCH_SUMS, RECORD_SUMS, Groups, Sizes
from raftlog.tools.stats.covering import SnapshotStats, snapshot_stats
from raftlog.tools.stats.keys import KeyPrefix, OverwrittenKeys, add_prefixes
from raftlog.tools.stats.record_types import type_codes, type_name

if TYPE_CHECKING:
    Longs = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

GROUPINGS: Final = ("partition", "type", "key", "producer", "codec", "hour")
"""What can be grouped by. Types and keys are of records, all others of batches."""
HOUR_MS: Final = 3_600_000
_BY_RECORD: Final = frozenset({"type", "key"})
_NO_TIME: Final = -1


@attrs.frozen
class StatsRequest:
    """What is to be counted.

    Attributes:
        groupings: which of ``GROUPINGS``.
        prefix: which part of a key is its prefix.
        compaction: whether to count what compaction would remove, which needs all keys.
    """

    groupings: frozenset[str] = frozenset(GROUPINGS)
    prefix: KeyPrefix = attrs.field(factory=lambda: KeyPrefix(8))
    compaction: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of records that are unpacked."""
        return ("key", "value") if self.compaction or self.groupings & _BY_RECORD else ()


@attrs.define
class LogStats:
    """What was counted.

    Attributes:
        totals: the sums of all sound batches, as in ``BATCH_SUMS``.
        groups: by the name of the grouping.
        batch_sizes: stored sizes of batches.
        compaction: for each partition with data records, except metadata logs.
        snapshots: for each metadata log.
        damaged_batches: how many batches with a valid CRC have records that cannot be read.
        damaged_bytes: in these, and in damage outside of batches and torn tails.
        padding_bytes: zeros at the ends of files.
        legacy_bytes: in messages of magic 0 and 1, which are not counted otherwise.
        files: how many segments were read.
    """

    totals: list[int] = attrs.field(factory=lambda: [0] * len(BATCH_SUMS))
    groups: dict[str, Groups] = attrs.field(factory=dict)
    batch_sizes: Sizes = attrs.field(factory=Sizes)
    compaction: list[tuple[Place, OverwrittenKeys]] = attrs.field(factory=list)
    snapshots: list[SnapshotStats] = attrs.field(factory=list)
    damaged_batches: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0
    legacy_bytes: int = 0
    files: int = 0


def count_logs(paths: Sequence[str], request: StatsRequest, report: Callable[[Finding], None]) -> LogStats:
    """Count the current segments under some paths.

    Args:
        paths: as for ``find_tasks``.
        request: what to count.
        report: is called with each finding: damage, and what cannot be read.

    Raises:
        StorageError: a path is that of an index.
        MissingExtraError: a codec's package is not installed.
    """
    check_names_segments(paths)
    counter, tasks = _Counter(request, report), list[SurveyTask]()
    for found in find_tasks(paths):
        if isinstance(found, Finding):
            report(found)
        elif found.state is FileState.CURRENT:
            tasks.append(found)
    counter.note_snapshots(task for task in tasks if task.kind is FileKind.SNAPSHOT and task.snapshot_id is not None)
    for task in tasks:
        if task.kind is FileKind.LOG:
            counter.take_segment(task)
    counter.end_partition()
    return counter.stats


class _Counter:
    def __init__(self, request: StatsRequest, report: Callable[[Finding], None]) -> None:
        self._request = request
        self._report = report
        self._place: Place | None = None
        self._keys: OverwrittenKeys | None = None
        self._snapshots: dict[Place, SnapshotStats] = {}
        self.stats = LogStats(
            groups={
                name: Groups(RECORD_SUMS if name in _BY_RECORD else BATCH_SUMS)
                for name in GROUPINGS
                if name in request.groupings
            }
        )

    def note_snapshots(self, tasks: Iterable[SurveyTask]) -> None:
        """Find what covers each log: this must be known when it is read."""
        by_place: dict[Place, list[SurveyTask]] = {}
        for task in tasks:
            by_place.setdefault(task.place, []).append(task)
        for place, found in by_place.items():
            self._add_snapshot_stats(snapshot_stats(place, found))

    def end_partition(self) -> None:
        """Give the keys of a partition back once all of its segments are counted."""
        if self._keys is not None:
            self._keys.end()
        self._keys = None

    def take_segment(self, task: SurveyTask) -> None:
        """Count a segment; those of one place come one after the other, in order."""
        self._begin(task)
        self.stats.files += 1
        try:
            with open_source(task.path) as opened:
                for piece in split_runs(as_listed(task, opened)):
                    self._take_piece(task, piece)
        except StorageError as error:
            self._report(unread(error))

    def _begin(self, task: SurveyTask) -> None:
        if task.place == self._place:
            return
        self.end_partition()
        self._place = task.place
        if self._is_metadata(task):
            if task.place not in self._snapshots:
                self._add_snapshot_stats(SnapshotStats(task.place))
        elif self._request.compaction:
            self._keys = OverwrittenKeys()
            self.stats.compaction.append((task.place, self._keys))

    def _is_metadata(self, task: SurveyTask) -> bool:
        return task.is_raft or task.place.topic == METADATA_TOPIC

    def _add_snapshot_stats(self, found: SnapshotStats) -> None:
        self._snapshots[found.place] = found
        self.stats.snapshots.append(found)

    def _take_piece(
        self, task: SurveyTask, piece: BatchRun | LegacyBatch | TornTail | ZeroPadding | Corruption
    ) -> None:
        match piece:
            case BatchRun():
                for areas in unpack_record_areas(piece):
                    self._take(task, areas)
                return
            case LegacyBatch():
                self.stats.legacy_bytes += piece.size_bytes
                return
            case ZeroPadding():
                self.stats.padding_bytes += piece.size_bytes
                reason = "zeros up to the end"
            case _:
                self.stats.damaged_bytes += piece.size_bytes
                reason = piece.reason
        self._report(Finding(task.path, piece.rule, reason, piece.position, piece.size_bytes))

    def _take(self, task: SurveyTask, areas: RecordAreas) -> None:
        run, count = areas.run, len(areas.run)
        chunk = columns_of_areas(areas, self._request.columns)
        records = chunk.records
        if records is None:
            return
        is_sound = np.ones(count, dtype=np.bool_)
        for index, error in chunk.errors:
            is_sound[index] = False
            self._report_damage(task, run, index, error)
        bounds: Longs = np.frombuffer(areas.columns, dtype=np.int64)
        table = BatchTable(BatchColumns(run))
        ends: Longs = np.frombuffer(records.ends, dtype=np.int64)
        counts = ends - np.concatenate(([0], ends[:-1]))
        unpacked = bounds[count : 2 * count] - bounds[:count] + BATCH_OVERHEAD
        self._add_batches(task, table, is_sound, (counts, table.sizes, unpacked))
        if self._request.columns and records.count:
            self._add_records(task, records, np.repeat(table.are_control, counts))

    def _report_damage(
        self, task: SurveyTask, run: BatchRun, index: int, error: DecodeError | MissingExtraError
    ) -> None:
        if isinstance(error, MissingExtraError):
            raise fresh_copy(error)
        batch = run.batch(index)
        self.stats.damaged_batches += 1
        self.stats.damaged_bytes += batch.size_bytes
        rule, reason = error.rule or "message-field", error.reason
        self._report(Finding(task.path, rule, reason, batch.position, batch.size_bytes, batch.base_offset))

    def _add_batches(self, task: SurveyTask, table: BatchTable, is_sound: "Flags", columns: "Sequence[Longs]") -> None:
        ones = np.ones(int(is_sound.sum()), dtype=np.int64)
        sums = [ones, *(column[is_sound] for column in columns)]
        if not len(ones):
            return
        sizes = sums[2]
        totals = [int(each.sum()) for each in sums]
        self.stats.totals = [total + more for total, more in zip(self.stats.totals, totals, strict=True)]
        self.stats.batch_sizes.add(sizes)
        for name, codes in self._batch_codes(table):
            self.stats.groups[name].add_rows(codes[is_sound], *sums)
        if "partition" in self.stats.groups:
            self.stats.groups["partition"].add(task.place, totals)
        if (snapshot := self._snapshots.get(task.place)) is not None and self._is_metadata(task):
            if snapshot.covers(task.next_base_offset):
                snapshot.covered_bytes += totals[2]
            else:
                snapshot.later_bytes += totals[2]

    def _batch_codes(self, table: BatchTable) -> "Iterator[tuple[str, Longs]]":
        groups = self.stats.groups
        if "producer" in groups:
            yield "producer", table.producer_ids
        if "codec" in groups:
            yield "codec", table.attributes & 7
        if "hour" in groups:
            times = table.max_timestamps
            yield "hour", np.where(times < 0, _NO_TIME, times // HOUR_MS)

    def _add_records(self, task: SurveyTask, records: RecordColumns, are_control: "Flags") -> None:
        groups, topic = self.stats.groups, METADATA_TOPIC if self._is_metadata(task) else task.place.topic
        parts = (records.to_numpy(f"{part}_size") for part in ("key", "value"))
        sizes = sum((np.maximum(part, 0).astype(np.int64) for part in parts), np.zeros(records.count, dtype=np.int64))
        if "type" in groups:
            codes, ones = type_codes(topic, records, are_control), np.ones(records.count, dtype=np.int64)
            found = Groups(RECORD_SUMS)
            found.add_rows(codes, ones, sizes)
            for code, sums in found.rows():
                groups["type"].add(type_name(topic, code), sums)
        if "key" in groups or self._keys is not None:
            keys = records.binary("key")
            if are_control.any():
                keys, sizes = keys.filter(pa.array(~are_control)), sizes[~are_control]
            if "key" in groups:
                add_prefixes(groups["key"], keys, self._request.prefix, sizes)
            if self._keys is not None:
                self._keys.add(keys, sizes)
