# SPDX-License-Identifier: Apache-2.0
"""Finds the state at a position in the replicas of a metadata log, and the changes between two.

Of several replicas, those of the lineage to keep come first, and of these the one that reaches furthest; the first that
has the state is read: the newest usable snapshot at or below the offset, and the log after it.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import attrs

from raftlog.errors import RaftLogError, StateNotThereError, fresh_copy, without_frames
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.audit_verbs.quorum_files import Log, QuorumFiles
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.replicas import Replica, replicas, usable_snapshots
from raftlog.tools.image.changes import Change, watched_image
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.state.positions import Position
from raftlog.tools.state.reading import log_batches, snapshot_batches, snapshot_image, snapshot_time

_Result = TypeVar("_Result")
_BOOTSTRAP: Final = OffsetAndEpoch(0, 0)


@attrs.frozen
class StateSource:
    """A replica to read states from.

    Attributes:
        replica: its files.
        forks_at: the first offset at which it is known to differ from the lineage to keep; None if it is of that.
        snapshots: ids of usable snapshots, ascending.
    """

    replica: Replica
    forks_at: int | None
    snapshots: Sequence[OffsetAndEpoch]

    @property
    def path(self) -> str:
        """Its log directory."""
        return self.replica.path

    @property
    def log(self) -> PartitionEvidence:
        """Its log with the snapshots."""
        return self.replica.evidence

    @property
    def log_end(self) -> int:
        """The offset to which its log has all records from ``log_start`` on, exclusive."""
        damaged = self.replica.damaged_from
        end = min(self.replica.end.offset, self.log.end_offset)
        return end if damaged is None else min(end, damaged)

    @property
    def end(self) -> int:
        """The last offset that it has a state for: of its log, or of a snapshot after that."""
        return max([self.log_end, *(each.offset for each in self.snapshots)])


@attrs.frozen
class State:
    """The state at a position.

    Attributes:
        copy: where it was read.
        image: the state; its ``end_offset`` may be below what was asked for.
        asked_offset: what was asked for, exclusive.
        snapshot: id of the snapshot that it begins with; None if it begins with the start of the log.
        later_times: how many batches after a time that was asked for are not later than it: a clock went back.
    """

    copy: StateSource
    image: ClusterImage
    asked_offset: int
    snapshot: OffsetAndEpoch | None
    later_times: int = 0

    @property
    def is_inside_batch(self) -> bool:
        """Whether what was asked for is inside a batch."""
        return self.image.read_to < self.asked_offset


@attrs.frozen
class Span:
    """The batches that make the state at a position.

    Attributes:
        copy: where they are.
        asked_offset: what was asked for, exclusive.
        snapshot: id of the snapshot to begin with; None for the start of the log.
        later_times: as in ``State``.
    """

    copy: StateSource
    asked_offset: int
    snapshot: OffsetAndEpoch | None
    later_times: int = 0

    @property
    def start_offset(self) -> int:
        """Where the log's batches begin, inclusive."""
        return 0 if self.snapshot is None else self.snapshot.offset

    def of_snapshot(self) -> Iterator[MetadataBatch]:
        """Yield the batches of the snapshot, as the log's.

        Without one, those of the bootstrap snapshot 0-0, if it is there, with their control records alone: no state has
        the data of that snapshot, which the first leader writes to the log.

        Raises:
            RaftLogError: as for ``snapshot_batches``.
        """
        file = self.copy.log.snapshots_by_id.get(self.snapshot or _BOOTSTRAP)
        for batch in () if file is None else snapshot_batches(file):
            yield batch if self.snapshot is not None else batch._replace(values=())

    def of_log(self) -> Iterator[MetadataBatch]:
        """Yield the batches of the log that end at or below the offset, with control records and places.

        Raises:
            RaftLogError: as for ``log_batches``.
        """
        if self.start_offset < self.asked_offset:
            for batch in log_batches(self.copy.log, self.start_offset, self.asked_offset, with_controls=True):
                if batch.next_offset > self.asked_offset:
                    return
                yield batch


def metadata_log(files: QuorumFiles) -> tuple[Log, QuorumView]:
    """Return the one metadata log among the files.

    Raises:
        StateNotThereError: there is none, or more than one.
    """
    found = []
    for log in files.logs:
        view = quorum_view(log) if any(each.place.topic == METADATA_TOPIC for each in log) else None
        if view is not None:
            found.append((log, view))
    if not found:
        raise StateNotThereError(f"the paths have no log of {METADATA_TOPIC}")
    if len(found) > 1:
        ids = sorted(view.cluster_id or "unknown" for _, view in found)
        raise StateNotThereError(f"the directories are of {len(found)} clusters or histories: {', '.join(ids)}")
    return found[0]


def copies(log: Sequence[PartitionEvidence], view: QuorumView) -> list[StateSource]:
    """Return the replicas of a metadata log, the one to prefer first."""
    found = []
    for each in replicas(log):
        fork = view.judgement.fork_of(each.path)
        usable = usable_snapshots(each.evidence, each.misnamed)
        found.append(StateSource(each, None if fork is None else fork.offset, usable))
    return sorted(found, key=lambda copy: (copy.forks_at is not None, -copy.end))


def find_state(among: Sequence[StateSource], position: Position) -> State:
    """Return the state at a position, from the first replica that has it.

    Raises:
        StateNotThereError: none has it.
        RaftLogError: a file cannot be read.
    """
    return _first(among, lambda copy: _state(copy, position))


def with_span(among: Sequence[StateSource], position: Position, read: Callable[[Span], _Result]) -> _Result:
    """Return what a function reads from the batches of a state, those of the first replica that has them.

    Raises:
        StateNotThereError: none has it.
        RaftLogError: a file cannot be read.
    """
    return _first(among, lambda copy: read(_span(copy, position)))


def find_changes(
    among: Sequence[StateSource], first: Position, last: Position, report: Callable[[State, Change], None]
) -> tuple[State, State]:
    """Report the changes from one position to another in order, and return the two states.

    Both are of the first replica that has the first state, and the log up to the second position.

    Args:
        among: the replicas.
        first: where the changes begin.
        last: where they end.
        report: is called with each change and the state that it leads to, which is still on its way.

    Raises:
        StateNotThereError: no replica has both, or the first is after the second.
        RaftLogError: a file cannot be read.
    """

    def changes(copy: StateSource) -> tuple[State, State]:
        before = _state(copy, first)
        end, later_times = _offset(copy, last)
        if end < before.asked_offset:
            raise StateNotThereError(f"{last.text} is before {first.text}: {end} < {before.asked_offset}")
        _check_reach(copy, end)
        image = watched_image(before.image, lambda change: report(after, change))
        after = State(copy, image, end, before.snapshot, later_times)
        _advance(copy, image, end)
        return before, after

    return _first(among, changes)


def earliest(copy: StateSource) -> Position:
    """Return the first position that a replica has a state for.

    Raises:
        StateNotThereError: it has none.
    """
    start = copy.log.start_offset
    if start == 0 and copy.log.segments:
        return Position("the start", offset=0)
    offsets = [each.offset for each in copy.snapshots if each.offset >= start]
    if not offsets:
        raise StateNotThereError(f"{copy.path}: {_reach_text(copy)}")
    return Position("the first snapshot", offset=offsets[0])


def _first(among: Sequence[StateSource], find: Callable[[StateSource], _Result]) -> _Result:
    problems: list[RaftLogError] = []
    for copy in among:
        try:
            return find(copy)
        except RaftLogError as error:
            problems.append(without_frames(error))
    if all(isinstance(problem, StateNotThereError) for problem in problems):
        raise StateNotThereError("; ".join(map(str, problems)))
    raise fresh_copy(next(problem for problem in problems if not isinstance(problem, StateNotThereError)))


def _span(copy: StateSource, position: Position) -> Span:
    offset, later_times = _offset(copy, position)
    _check_reach(copy, offset)
    return Span(copy, offset, _base(copy, offset), later_times)


def _state(copy: StateSource, position: Position) -> State:
    span = _span(copy, position)
    snapshot = span.snapshot
    with _without_collector():
        image = ClusterImage() if snapshot is None else snapshot_image(copy.log.snapshots_by_id[snapshot], snapshot)
    _advance(copy, image, span.asked_offset)
    return State(copy, image, span.asked_offset, snapshot, span.later_times)


def _advance(copy: StateSource, image: ClusterImage, end: int) -> None:
    """Apply the batches that end at or below an offset."""
    if image.read_to >= end:
        return
    with _without_collector():
        for batch in log_batches(copy.log, image.read_to, end):
            if batch.next_offset > end:
                return
            image.apply(batch)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Stop looking for garbage in cycles: an image has none, and looking through a million entries takes its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_reach(copy: StateSource, offset: int) -> None:
    if offset > copy.end:
        raise StateNotThereError(f"{copy.path}: offset {offset} is after the end: {_reach_text(copy)}")


def _base(copy: StateSource, offset: int) -> OffsetAndEpoch | None:
    """Return the snapshot to begin with; None for the start of the log."""
    start = copy.log.start_offset
    for snapshot in reversed(copy.snapshots):
        is_reached = start <= snapshot.offset and offset <= copy.log_end
        if snapshot.offset == offset or (snapshot.offset < offset and is_reached):
            return snapshot
    if start == 0 and copy.log.segments and offset <= copy.log_end:
        return None
    raise StateNotThereError(f"{copy.path}: no state at offset {offset}: {_reach_text(copy)}")


def _reach_text(copy: StateSource) -> str:
    """Return the offsets that a replica has states for, as text."""
    start, end = copy.log.start_offset, copy.log_end
    firsts = [0] if start == 0 and copy.log.segments else []
    firsts += [each.offset for each in copy.snapshots if start <= each.offset <= end]
    alone = [each.offset for each in copy.snapshots if not (firsts and firsts[0] <= each.offset <= end)]
    parts = [f"from offset {firsts[0]} to {end}"] if firsts else []
    parts += [f"at offset {offset}" for offset in alone]
    return f"log and snapshots have states {' and '.join(parts)}" if parts else "log and snapshots have no state"


def _offset(copy: StateSource, position: Position) -> tuple[int, int]:
    """Return the offset of a position in a replica, and for a time how many batches after it have earlier times."""
    if position.offset is not None:
        return position.offset, 0
    if position.time_ms is not None:
        return _offset_at(copy, position.time_ms, position.text)
    offset = copy.end - (position.from_end or 0)
    if offset < 0:
        raise StateNotThereError(f"{copy.path}: the log has {copy.end} offsets, not {position.from_end}")
    return offset, 0


def _offset_at(copy: StateSource, time_ms: int, text: str) -> tuple[int, int]:
    """Return the offset of the first batch that was appended after a time, or else the end of the log."""
    start = earliest(copy).offset or 0
    base = next((each for each in copy.snapshots if each.offset == start), None)
    if base is not None and snapshot_time(copy.log.snapshots_by_id[base], base) > time_ms:
        raise StateNotThereError(f"{copy.path}: {text} is before the time of the first snapshot, at offset {start}")
    found: int | None = None
    later = 0
    for batch in _headers(copy, start):
        if batch[1] > time_ms:
            found = batch[0] if found is None else found
        elif found is not None:
            later += 1
    if found == 0:
        raise StateNotThereError(f"{copy.path}: {text} is before the first record of the log")
    return (copy.log_end if found is None else found), later


def _headers(copy: StateSource, start: int) -> Iterator[tuple[int, int]]:
    """Yield base offset and time of each batch from an offset on."""
    if start < copy.log_end:
        for batch in log_batches(copy.log, start, copy.log_end, with_values=False):
            yield batch.base_offset, batch.timestamp
