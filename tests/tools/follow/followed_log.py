# SPDX-License-Identifier: Apache-2.0
"""A log in memory that a writer changes in every way in which a node changes one, and a naive model of a follower."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import attrs

from raftlog.errors import MissingFileError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, ByteSource, Corruption, TornTail, ZeroPadding, split
from raftlog.records.files.file_names import FileKind, FileName
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.tools.follow.follower import Growth, LogFollower
from raftlog.tools.follow.log_files import FoundFiles
from raftlog.tools.follow.notices import Event, Notice
from raftlog.tools.input.inputs import InputFile, input_file

PATH = "logs/__cluster_metadata-0"

Line = tuple[Any, ...]
"""A batch as ``("batch", base offset, epoch, next offset)``, or a notice as its event, offsets and snapshot."""

made_batch = functools.lru_cache(100_000)(raft_batch)


@attrs.frozen
class Written:
    """A batch in a segment."""

    segment: int
    position: int
    base_offset: int
    next_offset: int
    epoch: int
    data: bytes = attrs.field(repr=False)

    @property
    def line(self) -> Line:
        """The batch as a line."""
        return ("batch", self.base_offset, self.epoch, self.next_offset)


@attrs.define
class WrittenLog:
    """A log, and what a node does to it. Also the ``LogFiles`` of it.

    Attributes:
        segments: batches by base offset of the segment.
        snapshots: ids.
        torn: a batch of which the active segment has a part, and how much; None if it has none.
        zeros: how many zeros end the active segment.
        is_there: whether the directory exists.
        before_read: is called before each access of a follower, and may write.
        reads: how many bytes each read has asked for.
    """

    path: str = PATH
    segments: dict[int, list[Written]] = attrs.field(factory=lambda: {0: []})
    snapshots: list[OffsetAndEpoch] = attrs.field(factory=list)
    epoch: int = 1
    torn: tuple[bytes, int] | None = None
    zeros: int = 0
    is_there: bool = True
    before_read: Callable[[], None] = lambda: None
    reads: list[int] = attrs.field(factory=list)

    @property
    def batches(self) -> list[Written]:
        """All batches, in order."""
        return [each for segment in sorted(self.segments) for each in self.segments[segment]]

    @property
    def active(self) -> int:
        """The last segment."""
        return max(self.segments)

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return max([self.active, *(each.next_offset for each in self.segments[self.active])])

    def data(self, segment: int) -> bytes:
        """The bytes of a segment."""
        parts = [each.data for each in self.segments[segment]]
        if segment == self.active:
            parts += [self.torn[0][: self.torn[1]]] if self.torn else []
            parts += [bytes(self.zeros)]
        return b"".join(parts)

    def append(self, count: int = 1) -> None:
        """Append a batch of some records."""
        self._take(made_batch(self.end_offset, self.epoch, count), count)

    def _take(self, data: bytes, count: int) -> None:
        held, base_offset = self.segments[self.active], self.end_offset
        position = sum(len(each.data) for each in held)
        held.append(Written(self.active, position, base_offset, base_offset + count, self.epoch, data))
        self.torn = None

    def begin_batch(self, size: int) -> None:
        """Write a part of a batch of one record. Its last byte is zero, so zeros after it would complete it."""
        data = made_batch(self.end_offset, self.epoch, 1)
        self.torn = (data, max(1, min(size, len(data) - 2)))

    def end_batch(self) -> None:
        """Write the rest of it."""
        if self.torn is not None:
            self._take(self.torn[0], 1)

    def roll(self) -> None:
        """Begin a segment."""
        self.torn, self.zeros = None, 0
        self.segments.setdefault(self.end_offset, [])

    def truncate(self, count: int) -> None:
        """Drop all but the first batches, and what follows in a later epoch."""
        self.torn, self.zeros = None, 0
        kept = self.batches[:count]
        end = kept[-1].next_offset if kept else min(self.segments)
        self.segments = {
            segment: [each for each in held if each in kept]
            for segment, held in self.segments.items()
            if segment <= end
        }
        self.epoch += 1

    def delete_first(self, count: int) -> None:
        """Delete segments from the log start; the active one is kept."""
        for segment in sorted(self.segments)[: min(count, len(self.segments) - 1)]:
            self.snapshots.append(OffsetAndEpoch(self.segments[segment][-1].next_offset, self.epoch))
            del self.segments[segment]

    def recreate_at(self, offset: int) -> None:
        """Delete the log, and create another one that starts lower."""
        self.torn, self.zeros = None, 0
        self.epoch += 1
        self.snapshots = []
        self.segments = {offset: []}

    def restart_at(self, offset: int, epoch: int) -> None:
        """Replace the log by a snapshot."""
        self.torn, self.zeros = None, 0
        self.epoch = max(epoch, self.epoch)
        self.snapshots.append(OffsetAndEpoch(offset, epoch))
        self.segments = {offset: []}

    def listed(self) -> FoundFiles:
        """What a follower finds."""
        self.before_read()
        if not self.is_there:
            return FoundFiles()
        snapshots = sorted(set(self.snapshots), key=lambda each: (each.offset, each.epoch))
        return FoundFiles(tuple(sorted(self.segments)), tuple(snapshots))

    @contextmanager
    def opened(self, segment: int) -> Iterator[ByteSource]:
        """A segment for reads, which sees what is written meanwhile."""
        self.before_read()
        if not self.is_there or segment not in self.segments:
            raise MissingFileError(self.path, "open", "it was deleted")
        yield _LiveSource(self, segment, self.data(segment))

    def position_before(self, segment: int, source: ByteSource, offset: int) -> int:
        """Where the batch of an offset begins."""
        held = self.segments.get(segment, [])
        return max((each.position for each in held if each.base_offset <= offset), default=0)

    def end_of(self, segment: int, source: ByteSource) -> int:
        """Where its last sound batch ends."""
        pieces = split(source, start=self.position_before(segment, source, 1 << 62))
        return max((each.next_offset for each in pieces if isinstance(each, RecordBatch)), default=segment)

    def input_file(self, segment: int) -> InputFile:
        """A segment as a file."""
        return input_file(f"{self.path}/{FileName(FileKind.LOG, base_offset=segment)}", was_listed=True)


@attrs.define
class _LiveSource:
    log: WrittenLog
    segment: int
    last: bytes
    """What the file had when it was deleted."""

    def _bytes(self) -> bytes:
        self.log.before_read()
        if self.segment in self.log.segments:
            self.last = self.log.data(self.segment)
        return self.last

    def read_at(self, position: int, size: int) -> memoryview:
        self.log.reads.append(size)
        return BufferSource(self._bytes()).read_at(position, size)

    def size(self) -> int:
        return len(self._bytes())


def some_step(log: WrittenLog, random: Random) -> str:
    """Let the writer do one thing, and return its name."""
    if log.torn is not None and random.random() < 0.7:
        log.end_batch()
        return "end_batch"
    match random.choices(range(9), weights=(38, 12, 12, 4, 3, 8, 3, 2, 4))[0]:
        case 0:
            log.append(random.randint(1, 3))
        case 1 if log.segments[log.active]:
            log.roll()
        case 2:
            log.truncate(max(0, len(log.batches) - random.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))))
        case 3 if len(log.segments) > 1:
            log.delete_first(random.randint(1, len(log.segments)))
        case 4:
            ends = [each for each in log.batches if random.random() < 0.3]
            if ends and random.random() < 0.5:
                log.restart_at(ends[0].next_offset, ends[0].epoch + random.randint(0, 1))
            else:
                log.restart_at(log.end_offset + random.randint(0, 5), log.epoch + random.randint(0, 1))
        case 5:
            log.begin_batch(random.choice((1, 16, 17, 60, 61, 62, 1000)))
        case 6 if log.torn is None:
            log.zeros = random.choice((0, 1, 16, 17, 61, 200))
        case 7:
            log.is_there = not log.is_there
        case 8:
            recreate(log, random)
        case _:
            log.append()
    return "step"


def recreate(log: WrittenLog, random: Random) -> None:
    """Replace the log by one that starts lower, and may have records already."""
    log.torn = None
    log.epoch += 1
    if min(log.segments) > 0:
        log.recreate_at(random.randrange(min(log.segments)))
    for _ in range(random.choice((0, 1, 5, 20))):
        log.append()


def drained(follower: LogFollower) -> list[Line]:
    """Look until nothing has changed, and return the lines."""
    lines: list[Line] = []
    for _ in range(1000):
        look = follower.look()
        lines += [line for item in look.items for line in lines_of(item)]
        if not look.has_moved:
            return lines
    raise AssertionError("the follower never comes to rest")


def lines_of(item: Growth | Notice) -> list[Line]:
    """Return an item as lines."""
    if isinstance(item, Notice):
        return [(item.event.value, item.offset, item.end_offset, item.snapshot_id)]
    lines: list[Line] = []
    for piece in item.pieces:
        if isinstance(piece, RecordBatch):
            lines.append(("batch", piece.base_offset, piece.partition_leader_epoch, piece.next_offset))
        elif isinstance(piece, TornTail | ZeroPadding | Corruption):
            lines.append((piece.rule, piece.position, piece.size_bytes, None))
    return lines


@attrs.define
class ModelFollower:
    """What must be printed, from whole lists of batches: what was printed, and what is there."""

    printed: list[Written] = attrs.field(factory=list)
    next_offset: int | None = None
    is_waiting: bool = False

    def look(self, log: WrittenLog) -> list[Line]:
        """Return the lines of what has changed since the last call."""
        if not log.is_there:
            was_waiting, self.is_waiting = self.is_waiting, True
            return [] if was_waiting else [(Event.WAITING.value, None, None, None)]
        self.is_waiting = False
        first = min(log.segments)
        if self.next_offset is None:
            self.next_offset = first
        lines = self._lost(log, first)
        if first > self.next_offset:
            lines.append(self._gap(log, self.next_offset, first))
            self.next_offset = first
        new = [each for each in log.batches if each.base_offset >= self.next_offset]
        self.printed += new
        self.next_offset = max([self.next_offset, *(each.next_offset for each in new)])
        return lines + [each.line for each in new]

    def _lost(self, log: WrittenLog, first: int) -> list[Line]:
        end = self.next_offset
        assert end is not None
        here = {(each.segment, each.position): each.data for each in log.batches}
        intact = [here.get((each.segment, each.position)) == each.data for each in self.printed]
        kept = [each for each in self.printed if each.segment >= first]
        gone = [each for each, is_intact in zip(self.printed, intact, strict=True) if each in kept and not is_intact]
        below = [each for each in self.printed if each.segment < first]
        if any(each.next_offset > first for each in below) or (first < end and not kept):
            return self._begun_anew(log, first, end)
        self.printed = [each for each in kept if each not in gone]
        if not gone:
            return []
        self.next_offset = gone[0].base_offset if self.printed else first
        return [(Event.TRUNCATED.value, self.next_offset, end, None)]

    def _begun_anew(self, log: WrittenLog, first: int, end: int) -> list[Line]:
        before = [each.epoch for each in self.printed if each.base_offset < first <= each.next_offset]
        snapshot = next((each for each in log.listed().snapshots if each.offset == first), None)
        is_of_lineage = snapshot is not None and before[-1:] == [snapshot.epoch]
        self.next_offset = first if is_of_lineage or not self.printed else self.printed[0].base_offset
        self.printed = []
        return [(Event.TRUNCATED.value, self.next_offset, end, None)]

    def _gap(self, log: WrittenLog, offset: int, end_offset: int) -> Line:
        covering = [each for each in log.listed().snapshots if each.offset >= end_offset]
        snapshot = min(covering, key=lambda each: (each.offset, each.epoch), default=None)
        return (Event.SKIPPED.value, offset, end_offset, snapshot)
