# SPDX-License-Identifier: Apache-2.0
"""Plans a query on the driver: from paths and options to splits.

Planning lists directories. It opens a file only to divide it, to resolve bounds, or to follow transactions.
"""

import collections
import itertools
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import OptionError, StorageError, without_frames
from raftlog.file_paths import is_remote, local_or_remote, name_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.columns.transactions import Transactions
from raftlog.records.files.file_names import METADATA_TOPIC, FileKind, FileState
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.storage.reading.directory_listing import DirectoryListing, EntryKind
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.rows.exhaustion import is_exhaustion, tells_exhaustion
from raftlog.tools.spark.rows.file_witness import FileWitness, witness_of
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.options import TOPIC_OF_VIEW, SourceOptions, TopicPartition, nearest
from raftlog.tools.spark.rows.parts import FilePart, Split, log_name
from raftlog.tools.spark.source.boundaries import Boundaries
from raftlog.tools.spark.source.data_loss import DataLoss
from raftlog.tools.spark.source.log_starts import LogStarts
from raftlog.tools.spark.source.offset_ranges import offset_range
from raftlog.tools.spark.source.transactions import TransactionFollower
from raftlog.tools.terminal.standard_error import unicode_text

_COST_OF_A_FILE: Final = 64 * 1024
"""The approximate cost of opening a file, as the number of bytes read in the same time."""
_MORE_LISTINGS: Final = 4
"""How often paths are listed once more, if segments go away or are exchanged meanwhile, which takes milliseconds."""
_PAUSE_S: Final = 0.02
_SNAPSHOT_KINDS: Final = frozenset({FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})
_TRANSACTIONAL_VIEWS: Final = frozenset({"records", "records_ext", "consumer_offsets"})
"""The views that leave out records that are not committed, if ``read_committed`` is wanted."""


@attrs.frozen
class Committed:
    """What is proven to be committed of a log.

    Attributes:
        point: the end of it, exclusive, with the epoch of its last record; at offset 0 if nothing is.
        why_nothing: a clause that says why nothing is, or empty.
    """

    point: OffsetAndEpoch
    why_nothing: str = ""


@attrs.frozen
class Partition:
    """The files of a log in one directory.

    Attributes:
        place: the directory.
        segments: its segments, by offset.
        snapshots: the wanted ones of its KRaft snapshots, by id: by epoch, then offset.
        producer_snapshots: paths of its producer snapshots, by offset.
        snapshot_ids: of all its finished KRaft snapshots.
        log_start: the first offset that a broker returns, if its segments have earlier ones; else None.
        files: all its files, by which it is judged what is committed.
        committed: what is proven to be committed of the log, if only that is wanted; else None.
        swap: a segment that takes the place of others when its node goes on, if these are gone already; else None.
    """

    place: Place
    segments: tuple[SurveyTask, ...]
    snapshots: tuple[SurveyTask, ...]
    producer_snapshots: Mapping[int, str]
    snapshot_ids: tuple[OffsetAndEpoch, ...] = ()
    log_start: int | None = None
    files: tuple[SurveyTask, ...] = ()
    committed: Committed | None = None
    swap: str | None = None

    @property
    def topic(self) -> str | None:
        """Its topic, or None if no name has it. Snapshots exist only for the metadata topic."""
        return unicode_text(self.place.topic) or (METADATA_TOPIC if self._is_of_snapshots else None)

    @property
    def number(self) -> int | None:
        """Its partition number, or None if no name has it."""
        if self.place.partition >= 0:
            return self.place.partition
        return 0 if self._is_of_snapshots else None

    @property
    def key(self) -> TopicPartition:
        """Its key in the maps of options; an unknown topic is empty, an unknown number -1."""
        return self.topic or "", -1 if self.number is None else self.number

    @property
    def start_offset(self) -> int:
        """The first offset to read: the base offset of the first segment, or the log start if that is later."""
        return self.log_start if self.log_start is not None else self.segments[0].base_offset or 0

    @property
    def _is_of_snapshots(self) -> bool:
        return bool(self.snapshots) and not self.segments


@attrs.frozen
class Listing:
    """The logs under the given paths. They are listed once, although Spark plans a query more than once.

    Attributes:
        partitions: the logs, by topic and partition.
        problems: findings about directories that could not be listed.
    """

    partitions: tuple[Partition, ...]
    problems: tuple[Finding, ...]


def list_partitions(options: SourceOptions) -> Listing:
    """List the logs under the paths of the options.

    Raises:
        MissingFileError: a given path does not exist.
        StorageError: a given path cannot be read.
        OptionError: a named topic was not found, or a given path is a file without batches.
    """
    paths = [absolute_path(local_or_remote(path)) for path in options.paths]
    problems, tasks, is_moving = _found(paths)
    for _ in range(_MORE_LISTINGS):
        if is_moving or any(map(_takes_a_place, tasks)):
            time.sleep(_PAUSE_S)
            problems, tasks, is_moving = _found(paths)
    _check_hold_batches(set(paths), tasks)
    by_place: dict[Place, list[SurveyTask]] = {}
    for task in tasks:
        by_place.setdefault(task.place, []).append(task)
    starts = LogStarts(is_used=not options.include_deleted)
    partitions = [_partition(options, place, each, starts) for place, each in by_place.items()]
    _check_are_there(options, partitions)
    return Listing(tuple(each for each in partitions if _is_wanted(options, each)), tuple(problems))


def _found(paths: Sequence[str]) -> tuple[list[Finding], list[SurveyTask], bool]:
    """List the files under some paths, the directories that could not be listed, and whether a segment went away.

    Raises:
        StorageError: a given path cannot be read.
    """
    problems, tasks, is_moving = [], [], False
    for each in find_tasks(paths):
        if isinstance(each, SurveyTask):
            tasks.append(each)
        elif each.rule == "file-unreadable":
            if each.path in paths or tells_exhaustion(each.reason):
                raise _unreadable(each)
            problems.append(each)
        else:
            is_moving |= each.rule == "file-gone" and FileKind.LOG.value in name_of(each.path)
    return problems, tasks, is_moving


def _takes_a_place(task: SurveyTask) -> bool:
    """Whether a cleaner is about to let a segment take the place of those that it was made of."""
    return task.kind is FileKind.LOG and task.state is FileState.SWAP and not task.was_named


def check_something_is_committed(partition: Partition) -> None:
    """Check that something of a log is proven to be committed, if only that is wanted.

    Raises:
        OptionError: nothing is.
    """
    if partition.committed is not None and partition.committed.why_nothing:
        name = log_name(partition.topic, partition.number)
        raise OptionError("committedOnly", f"of {name}, {partition.committed.why_nothing}")


def plan(
    options: SourceOptions,
    listing: Listing,
    hints: Hints | None = None,
    *,
    follower: TransactionFollower | None = None,
    loss: DataLoss | None = None,
) -> list[Split]:
    """Divide the wanted parts of logs among tasks.

    Args:
        options: of the source.
        listing: the logs under the paths.
        hints: what wanted rows have in common.
        follower: remembers earlier searches for transactions in the same logs.
        loss: is told of a start before a log; it remembers earlier losses.

    Raises:
        StorageError: a file that must be searched for a timestamp or for transactions cannot be read.
        OptionError: as ``offset_range``.
    """
    hints = Hints() if hints is None else hints
    wanted = [each for each in listing.partitions if hints.admits_partition(each.topic, each.number)]
    size = options.split_size
    if options.min_partitions is not None:
        total = sum(task.size_bytes + _COST_OF_A_FILE for each in wanted for task in (*each.snapshots, *each.segments))
        size = max(1, min(size, -(-total // options.min_partitions)))
    loss = loss or DataLoss(fails=options.fails_on_loss)
    planner = _Planner(options, hints, size, follower or TransactionFollower(), loss)
    problems = (FilePart(each.path, problem=each) for each in listing.problems)
    parts = itertools.chain(problems, *map(planner.parts, wanted))
    return list(_packed(parts, size, alone=options.max_records is not None))


@attrs.frozen
class _Planner:
    """Divides files into parts.

    Attributes:
        options: of the source.
        hints: what wanted rows have in common.
        split_size: approximate size of a split in bytes.
        follower: finds out which records are committed.
        loss: is told of a start before a log.
    """

    options: SourceOptions
    hints: Hints
    split_size: int
    follower: TransactionFollower
    loss: DataLoss

    def parts(self, partition: Partition) -> Iterator[FilePart]:
        """Yield the wanted parts of a log, in order."""
        if partition.swap is not None:
            reason = f"{partition.swap} is about to take the place of segments that are gone"
            self.loss.report("path", reason, "without their records")
        for task in partition.snapshots:
            yield from self._of_file(self._whole(partition, task, None, None), task, Transactions())
        first, end = offset_range(self.options, partition.key, partition.segments, self.loss, partition.log_start)
        if partition.committed is not None:
            end = _least(end, partition.committed.point.offset)
        transactions = Transactions()
        if self.options.read_committed and self.options.view in _TRANSACTIONAL_VIEWS:
            transactions = self.follower.find(partition.segments, partition.producer_snapshots)
            end = _least(end, transactions.stable_end)
        for task in partition.segments:
            if self._may_have(task, first, end):
                yield from self._of_file(self._whole(partition, task, first, end), task, transactions)

    def _whole(self, partition: Partition, task: SurveyTask, first: int | None, end: int | None) -> FilePart:
        return FilePart(
            path=task.path,
            topic=partition.topic,
            partition=partition.number,
            end=task.size_bytes,
            may_be_torn=task.kind is FileKind.LOG and task.next_base_offset is None,
            is_snapshot=task.kind is not FileKind.LOG,
            first_offset=first,
            end_offset=end,
        )

    def _may_have(self, task: SurveyTask, first: int | None, end: int | None) -> bool:
        """Whether a segment may have wanted offsets, by its name and the next one's."""
        first, last = _greatest(first, self.hints.first_offset), self.hints.last_offset
        is_behind = task.next_base_offset is not None and first is not None and task.next_base_offset <= first
        if task.base_offset is None:
            return not is_behind
        is_ahead = (end is not None and task.base_offset >= end) or (last is not None and task.base_offset > last)
        return not is_behind and not is_ahead

    def _of_file(self, whole: FilePart, task: SurveyTask, transactions: Transactions) -> list[FilePart]:
        try:
            return list(self._divided(task, self._trimmed(whole, task), transactions))
        except StorageError as error:
            if is_exhaustion(error):
                raise
            # Undivided: the task that reads it handles the error as the mode requires.
            return [_with_transactions(whole, transactions, task.base_offset, task.next_base_offset)]

    def _trimmed(self, whole: FilePart, task: SurveyTask) -> FilePart:
        """Return the part without the batches before the first wanted offset and after the last, as headers allow."""
        last = self.hints.last_offset
        first = _greatest(whole.first_offset, self.hints.first_offset)
        end = _least(whole.end_offset, None if last is None else last + 1)
        starts_inside = first is not None and first > (task.base_offset or 0)
        ends_inside = end is not None and (task.next_base_offset is None or end < task.next_base_offset)
        if whole.is_snapshot or not (starts_inside or ends_inside):
            return whole
        with open_source(task.path) as source:
            start = 0 if first is None else IndexSeek(task.path, task.base_offset).position_before(source, first)
            if end is not None:
                boundaries = Boundaries(source, task.base_offset, task.indexes.get(FileKind.OFFSET_INDEX))
                boundary = boundaries.first_from(start, whole.end, base_offset=end)
                if boundary is not None:
                    return attrs.evolve(whole, start=start, end=boundary.position, may_be_torn=False)
        return attrs.evolve(whole, start=start)

    def _divided(self, task: SurveyTask, whole: FilePart, transactions: Transactions) -> Iterator[FilePart]:
        """Yield the parts of a file, each with the aborted transactions that may have records in it."""
        start, offset = whole.start, task.base_offset
        for position, next_offset in self._cuts(task, whole):
            part = attrs.evolve(whole, start=start, end=position, may_be_torn=False, witness=_witness(task, start))
            yield _with_transactions(part, transactions, offset, next_offset)
            start, offset = position, next_offset
        if start < whole.end:
            part = attrs.evolve(whole, start=start, witness=_witness(task, start))
            yield _with_transactions(part, transactions, offset, task.next_base_offset)

    def _cuts(self, task: SurveyTask, whole: FilePart) -> Iterator[tuple[int, int]]:
        if whole.size_bytes <= self.split_size and self.options.max_records is None:
            return
        with open_source(task.path) as source:
            boundaries = Boundaries(source, task.base_offset, task.indexes.get(FileKind.OFFSET_INDEX))
            yield from boundaries.cuts(whole.start, whole.end, self.split_size, self.options.max_records)


def _witness(task: SurveyTask, start: int) -> FileWitness:
    may_grow = task.kind is FileKind.LOG and task.next_base_offset is None
    own_fingerprint = task.fingerprint.partition("|")[0]  # The others are of its indexes.
    return witness_of(task.path, start, task.size_bytes, own_fingerprint, may_grow=may_grow)


def _with_transactions(part: FilePart, transactions: Transactions, first: int | None, end: int | None) -> FilePart:
    return attrs.evolve(part, aborted=transactions.between(first, end)) if transactions.aborted else part


def _packed(parts: Iterable[FilePart], size_bytes: int, *, alone: bool) -> Iterator[Split]:
    """Yield splits of consecutive parts, of about ``size_bytes``; with ``alone``, of one part each."""
    waiting: list[FilePart] = []
    total = 0
    for part in parts:
        cost = part.size_bytes + _COST_OF_A_FILE
        if waiting and (alone or total + cost > size_bytes):
            yield tuple(waiting)
            waiting, total = [], 0
        waiting.append(part)
        total += cost
    if waiting:
        yield tuple(waiting)


def _partition(options: SourceOptions, place: Place, tasks: Sequence[SurveyTask], starts: LogStarts) -> Partition:
    by_offset = sorted(tasks, key=lambda task: task.base_offset or 0)
    producers = {
        task.base_offset: task.path
        for task in tasks
        if task.kind is FileKind.PRODUCER_SNAPSHOT and task.state is FileState.CURRENT and task.base_offset is not None
    }
    segments = [task for task in by_offset if task.kind is FileKind.LOG and _is_whole(task)]
    snapshot_ids = tuple(task.snapshot_id for task in tasks if task.snapshot_id is not None and _is_whole(task))
    snapshots = tuple(_snapshots(options, tasks))
    files = tuple(tasks) if options.committed_only else ()
    bases = {task.base_offset for task in segments}
    swap = next((task.path for task in by_offset if _takes_a_place(task) and task.base_offset not in bases), None)
    return Partition(place, tuple(segments), snapshots, producers, snapshot_ids, starts.of(segments), files, swap=swap)


def _snapshots(options: SourceOptions, tasks: Sequence[SurveyTask]) -> Iterator[SurveyTask]:
    found = [task for task in tasks if task.kind in _SNAPSHOT_KINDS and _is_whole(task)]
    found.sort(key=lambda task: task.snapshot_id or BOOTSTRAP_SNAPSHOT_ID)
    for task in found:
        is_newest = task is found[-1] and task.kind is FileKind.SNAPSHOT
        if task.was_named or options.snapshots == "all" or (options.snapshots == "newest" and is_newest):
            yield task


def _is_whole(task: SurveyTask) -> bool:
    """Whether to read a file: it is part of the log now, not unfinished or being deleted, or it was named."""
    return task.state is FileState.CURRENT or task.was_named


def _is_wanted(options: SourceOptions, partition: Partition) -> bool:
    tasks = (*partition.segments, *partition.snapshots)
    if not tasks or not options.wants(partition.topic, partition.number):
        return False
    if options.view in TOPIC_OF_VIEW:
        return partition.topic == TOPIC_OF_VIEW[options.view] or any(task.was_named for task in tasks)
    return options.view != "metadata" or any(task.is_raft or task.was_named or task.snapshot_id for task in tasks)


def _unreadable(problem: Finding) -> StorageError:
    """Return the error for a path that cannot be read. The finding lacks its type, so the path is read again."""
    listing = DirectoryListing()
    try:
        if listing.status(problem.path).kind is EntryKind.DIRECTORY:
            collections.deque(listing.entries(problem.path), maxlen=0)
    except StorageError as error:
        return without_frames(error)
    return StorageError(problem.path, "open", problem.reason)  # By now it can be read.


def _check_hold_batches(named: Collection[str], tasks: Iterable[SurveyTask]) -> None:
    listing = DirectoryListing()
    for task in tasks:
        if task.path in named and not is_remote(task.path) and listing.status(task.path).kind is EntryKind.OTHER:
            # Its size is unknown, and a task in another process could not read a pipe again.
            raise OptionError("path", f"{task.path} is a {EntryKind.OTHER.value}, not a file")
        if task.path in named and task.kind is not FileKind.LOG and task.kind not in _SNAPSHOT_KINDS:
            raise OptionError("path", f"{task.path} is neither a segment (.log) nor a KRaft snapshot (.checkpoint)")


def _check_are_there(options: SourceOptions, partitions: Iterable[Partition]) -> None:
    found = {each.topic for each in partitions if each.topic is not None}
    for topic in sorted(options.topics or {topic for topic, _ in options.partitions or ()}):
        if topic not in found:
            option = "subscribe" if options.topics else "assign"
            there = nearest(topic, tuple(sorted(found))) if found else ""
            raise OptionError(option, f"topic {topic} was not found{there}")


def absolute_path(path: str) -> str:
    """Return an absolute path, since workers have other working directories; links are not followed."""
    if is_remote(path) or os.path.isabs(path):  # noqa: PTH117
        return path
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return "/".join([os.getcwd().rstrip("/"), *parts])  # noqa: PTH109


def _greatest(left: int | None, right: int | None) -> int | None:
    return max((each for each in (left, right) if each is not None), default=None)


def _least(left: int | None, right: int | None) -> int | None:
    return min((each for each in (left, right) if each is not None), default=None)
