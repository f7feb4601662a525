# SPDX-License-Identifier: Apache-2.0
"""Finds the logs of a coordinator's topic, and reads their states at a position."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, StateNotThereError, StorageError, fresh_copy
from raftlog.file_paths import directory_of, is_remote, name_of
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import Corruption, Piece, TornTail, ZeroPadding, split
from raftlog.records.files.file_names import DirectoryState, FileKind, parse_directory_name, parse_file_name
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.coordinators.coordinator_state import CoordinatorBatch, CoordinatorChange, CoordinatorState
from raftlog.tools.input.inputs import check_names_segments, find_files
from raftlog.tools.state.positions import Position

COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
"""The topics whose states are shown."""
ReportProblem = Callable[[DecodeError], None]
ReportChange = Callable[[CoordinatorChange], None]


@attrs.frozen
class CoordinatorLog:
    """The log of one partition in one directory.

    Attributes:
        topic, partition: of which it is a replica.
        path: of the directory.
        segments: base offsets and paths, by base offset.
    """

    topic: str
    partition: int
    path: str
    segments: tuple[tuple[int, str], ...]

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment; compaction does not change it."""
        return self.segments[0][0]

    @property
    def is_pruned(self) -> bool:
        """Whether its coordinator deletes the first records; the other topics are only compacted."""
        return self.topic == SHARE_GROUP_STATE


@attrs.frozen
class CoordinatorExtent:
    """What a log has.

    Attributes:
        start: offset of its first batch; without any batch, the base offset of its first segment.
        end: the offset after its last batch, or the base offset of its last segment if that is higher, exclusive.
        gone: how many offsets after ``start`` have no record inside of segments: compaction has removed them.
        below: how many offsets precede ``start`` in its segment, for the same reason.
        missing: how many offsets have no record between segments: one is missing, or compaction has removed the last
            records of the one before.
        damaged: how many offsets have no record because of damage; what followed the last sound batch is not counted.
        damaged_places: how many places are damaged.
    """

    start: int
    end: int
    gone: int = 0
    below: int = 0
    missing: int = 0
    damaged: int = 0
    damaged_places: int = 0


class StateUnknownError(StateNotThereError):
    """A log whose first records are gone does not say what the state was at a time before those that it has."""


@attrs.frozen
class CoordinatorAt:
    """The state of a partition at a position.

    Attributes:
        log: where it was read.
        extent: what that log has.
        state: the state; its ``end_offset`` may be below what was asked for.
        asked_offset: what was asked for, exclusive.
        later_times: how many batches after a time that was asked for are not later than it: a clock went back.
    """

    log: CoordinatorLog
    extent: CoordinatorExtent
    state: CoordinatorState
    asked_offset: int
    later_times: int

    @property
    def is_inside_batch(self) -> bool:
        """Whether what was asked for is inside a batch."""
        return self.state.end_offset < self.asked_offset


def topics_of(paths: Sequence[str]) -> set[str | None]:
    """Return the coordinators' topics of whose partitions paths are, by their names; None for other paths."""
    return {_topic_by_name(path) for path in paths}


def _topic_by_name(path: str) -> str | None:
    whole = path.rstrip("/") if is_remote(path) else os.path.abspath(path)  # noqa: PTH100 - links are not followed
    is_file = parse_file_name(name_of(whole)) is not None
    name = parse_directory_name(name_of(directory_of(whole) if is_file else whole))
    return name.topic if name is not None and name.topic in COORDINATOR_TOPICS else None


def coordinator_logs(paths: Sequence[str], topic: str) -> list[CoordinatorLog]:
    """Return the logs of a topic under some paths, by partition.

    Raises:
        StateNotThereError: there is none, or a partition is there twice.
        StorageError: a path cannot be read, or is that of an index.
    """
    check_names_segments(paths)
    found: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for each in find_files(paths, all_kinds=False):
        if isinstance(each, StorageError):
            raise fresh_copy(each)
        if not each.was_listed:
            each.check_readable()
        name = each.partition
        is_log = each.kind is FileKind.LOG and each.base_offset is not None
        if name is None or name.topic != topic or name.state is not DirectoryState.CURRENT or not is_log:
            continue
        found.setdefault((name.partition, each.directory), []).append((each.base_offset or 0, each.path))
    logs = [
        CoordinatorLog(topic, partition, path, tuple(sorted(set(segments))))
        for (partition, path), segments in sorted(found.items())
    ]
    if not logs:
        raise StateNotThereError(f"the paths have no log of {topic}")
    for first, second in itertools.pairwise(logs):
        if first.partition == second.partition:
            place = f"{topic}-{first.partition}"
            raise StateNotThereError(
                f"{place} is in {first.path} and in {second.path}: give one replica of a partition"
            )
    return logs


def extent_of(log: CoordinatorLog, problem: ReportProblem) -> CoordinatorExtent:
    """Return what a log has; damage is reported.

    Raises:
        StorageError: a file cannot be read.
    """
    found = _Extent(log.segments[0][0])
    last_path = log.segments[-1][1]
    for base_offset, path in log.segments:
        found.begin_segment(base_offset)
        for piece in _pieces(path):
            if isinstance(piece, RecordBatch):
                found.add(piece)
            elif isinstance(piece, Corruption) or (isinstance(piece, TornTail) and path != last_path):
                found.add_damage()
                problem(DecodeError(piece.reason, piece.rule, path, piece.position))
            elif not isinstance(piece, TornTail | ZeroPadding):
                found.add_damage()
                problem(DecodeError("messages of magic 0 and 1 are not read here", None, path, piece.position))
    return found.extent()


@attrs.define
class _Extent:
    """Counts the offsets without records, by why they have none."""

    end: int
    start: int | None = None
    gone: int = 0
    below: int = 0
    missing: int = 0
    damaged: int = 0
    places: int = 0
    is_damaged: bool = False

    def begin_segment(self, base_offset: int) -> None:
        """Count what precedes a segment, after the last batch of the one before."""
        gap = max(0, base_offset - self.end)
        if self.is_damaged:
            self.damaged += gap
        else:
            self.missing += gap
        self.end, self.is_damaged = self.end + gap, False

    def add(self, batch: RecordBatch) -> None:
        """Count what precedes a batch in its segment, and what it has lost."""
        gap = max(0, batch.base_offset - self.end)
        if self.is_damaged:
            self.damaged += gap
        elif self.start is None:
            self.below += gap
        else:
            self.gone += gap
        self.start = batch.base_offset if self.start is None else self.start
        self.gone += max(0, batch.next_offset - batch.base_offset - max(0, batch.record_count))
        self.end, self.is_damaged = max(self.end, batch.next_offset), False

    def add_damage(self) -> None:
        """Note that the offsets up to the next batch or segment are those of damaged bytes."""
        self.places += 1
        self.is_damaged = True

    def extent(self) -> CoordinatorExtent:
        """Return what was counted."""
        start = self.end if self.start is None else self.start
        return CoordinatorExtent(start, self.end, self.gone, self.below, self.missing, self.damaged, self.places)


def state_at(
    log: CoordinatorLog, extent: CoordinatorExtent, position: Position, problem: ReportProblem
) -> CoordinatorAt:
    """Return the state at a position.

    Raises:
        StateNotThereError: the log does not reach it.
        StorageError: a file cannot be read.
    """
    offset, later_times = _offset(log, extent, position)
    state = CoordinatorState(log.topic)
    advance(log, state, offset, problem)
    return CoordinatorAt(log, extent, state, offset, later_times)


def changes_between(
    log: CoordinatorLog,
    extent: CoordinatorExtent,
    ends: tuple[Position, Position],
    report: ReportChange,
    problem: ReportProblem,
) -> tuple[CoordinatorAt, CoordinatorAt]:
    """Return the states at two positions; the changes between them are reported in order.

    Raises:
        StateNotThereError: the log does not reach one of them, or the first is after the second.
        StorageError: a file cannot be read.
    """
    before = state_at(log, extent, ends[0], problem)
    offset, later_times = _offset(log, extent, ends[1])
    if offset < before.asked_offset:
        raise StateNotThereError(f"{ends[1].text} is before {ends[0].text}: {offset} < {before.asked_offset}")
    state = CoordinatorState(log.topic)
    advance(log, state, before.state.end_offset, lambda _: None)
    state.report = report
    advance(log, state, offset, problem)
    return before, CoordinatorAt(log, extent, state, offset, later_times)


def advance(log: CoordinatorLog, state: CoordinatorState, end: int, problem: ReportProblem) -> None:
    """Apply the batches after a state that end at or below an offset.

    Raises:
        StorageError: a file cannot be read.
    """
    for batch in _batches(log):
        if batch.next_offset > end:
            return
        if batch.next_offset <= state.end_offset:
            continue
        try:
            records = [(each.offset, each.key, each.value) for each in batch.records(check_crc=False)]
        except DecodeError as error:
            problem(error)
            records = []
        state.apply(
            CoordinatorBatch(batch.next_offset, batch.max_timestamp, batch.producer_id, batch.is_control, records)
        )


def _offset(log: CoordinatorLog, extent: CoordinatorExtent, position: Position) -> tuple[int, int]:
    """Return the offset of a position, and for a time how many batches after it have earlier times."""
    reach = f"the log has states from offset {extent.start} to {extent.end}"
    if position.time_ms is not None:
        found, later = _offset_at(log, position.time_ms)
        if found is None:
            found = extent.end
        elif found <= extent.start > 0:
            raise StateUnknownError(
                f"{log.path}: {position.text} is before the first record of the log,"
                f" which begins at offset {extent.start}"
            )
        return found, later
    offset = extent.end - (position.from_end or 0) if position.offset is None else position.offset
    if not extent.start <= offset <= extent.end:
        raise StateNotThereError(f"{log.path}: no state at offset {offset}: {reach}")
    return offset, 0


def _offset_at(log: CoordinatorLog, time_ms: int) -> tuple[int | None, int]:
    found: int | None = None
    later = 0
    for batch in _batches(log):
        if batch.max_timestamp > time_ms:
            found = batch.base_offset if found is None else found
        elif found is not None:
            later += 1
    return found, later


def _batches(log: CoordinatorLog) -> Iterator[RecordBatch]:
    """Yield the sound batches of a log; ``extent_of`` reports the rest."""
    for _, path in log.segments:
        for piece in _pieces(path):
            if isinstance(piece, RecordBatch):
                yield piece


def _pieces(path: str) -> Iterator[Piece]:
    with open_source(path) as source:
        yield from split(source)
