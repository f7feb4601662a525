# SPDX-License-Identifier: Apache-2.0
r"""Records how far a log is durable, in two small files beside it that Kafka does not know.

``raftlog-recovery-point`` is durably replaced now and then. It is a lower bound of what was ever synced::

    raftlog-recovery-point 0
    durable_end_offset 4711      exclusive: a log that ends, or is bad, below this offset has lost records
    synced_end_offset 4200       exclusive, only in a log that has lost records: what follows was written since then
    log_start_offset 4000        inclusive
    generation 12                flush marks of this generation belong to this file
    clean_shutdown 1             whether the log was closed, and nothing was appended since
    epoch 3 4000                 where epochs start, as in leader-epoch-checkpoint; one line per epoch
    crc32c 89abcdef              of all lines above

No CRC covers the epoch in a batch's header. It is checked against two witnesses, this file and Kafka's checkpoint. If
both contradict it, the batch is damaged. If only one does, that file is damaged, or another program has written to the
log since.

``raftlog-flush-mark`` is written in place after every sync, and not synced itself. It costs next to nothing, and if
it survives, it is true: the log was durable up to there. While a log is in quarantine, the mark is a second copy of the
durable end, and is synced when that is stored: the batches do not tell it any more. Two slots are written in turn, each
in its own sector, so that a torn write leaves the other intact::

     0  8 bytes  "RLFLUSH" and a version, 0
     8  int64    generation
    16  int64    durable end offset (exclusive)
    24  int64    generation, all bits inverted
    32  int64    durable end offset, all bits inverted

The inverted numbers replace a CRC, whose code and tables would have to be loaded again: caches are cold after an fsync.

Before a truncation drops anything, it replaces the recovery point by one with a lower end and a new generation, which
invalidates all older marks.
"""

import contextlib
import re
import struct
from typing import Final

import attrs

from raftlog.errors import (
    CorruptFileError,
    DecodeError,
    InvariantViolation,
    MissingFileError,
    OutOfSpaceError,
    StorageError,
    without_frames,
)
from raftlog.file_system import FileSystem, OpenFile, join, read_file, replace_file
from raftlog.invariants import invariant
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import Quarantine
from raftlog.offsets import MAX_EPOCH, EpochEntry
from raftlog.records.checksum import crc32c
from raftlog.storage.segments.indeterminate_writes import as_storage_error

RECOVERY_POINT_NAME: Final = "raftlog-recovery-point"
FLUSH_MARK_NAME: Final = "raftlog-flush-mark"

_MAX_FILE_SIZE: Final = 16 * 1024 * 1024
_TEXT: Final = re.compile(
    rb"(raftlog-recovery-point 0\n"
    rb"durable_end_offset ([0-9]{1,19})\n"
    rb"(?:synced_end_offset ([0-9]{1,19})\n)?"
    rb"log_start_offset ([0-9]{1,19})\n"
    rb"generation ([0-9]{1,19})\n"
    rb"clean_shutdown ([01])\n"
    rb"((?:epoch [0-9]{1,10} [0-9]{1,19}\n)*))"
    rb"crc32c ([0-9a-f]{8})\n"
)
_MARK: Final = struct.Struct(">8sqqqq")
_MARK_MAGIC: Final = b"RLFLUSH\0"
_MARK_SIZE: Final = _MARK.size
_SLOT_POSITIONS: Final = (0, 4096)
_MAX_OFFSET: Final = (1 << 63) - 1
_MAX_GENERATION: Final = 1 << 62
"""Each truncation increments the generation, and it must always fit into the 64 bits of a mark."""


@attrs.frozen
class RecoveryPoint:
    """The content of ``raftlog-recovery-point``.

    Attributes:
        durable_end_offset: exclusive; the log was durable at least up to here.
        log_start_offset: inclusive.
        generation: of the flush marks that belong to it.
        is_clean: whether the log was closed in order.
        epochs: where they start, oldest first.
        synced_end_offset: exclusive; batches below it are known to be on the disk. None if that is so up to the durable
            end. After a loss it is not: the batches that are fetched again must be synced again.
    """

    durable_end_offset: int = 0
    log_start_offset: int = 0
    generation: int = 0
    is_clean: bool = False
    epochs: tuple[EpochEntry, ...] = ()
    synced_end_offset: int | None = None

    def up_to(self, synced_end_offset: int, quarantine: Quarantine | None) -> "RecoveryPoint":
        """Return the recovery point of a log whose batches are synced up to an offset, exclusive.

        Args:
            synced_end_offset: the offset.
            quarantine: of the log; None if it has lost nothing. It keeps a higher durable end.
        """
        lost = 0 if quarantine is None else quarantine.durable_end_offset
        is_lost = synced_end_offset < lost
        ends = max(lost, synced_end_offset), synced_end_offset if is_lost else None
        return attrs.evolve(self, durable_end_offset=ends[0], synced_end_offset=ends[1])

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        synced = "" if self.synced_end_offset is None else f"synced_end_offset {self.synced_end_offset}\n"
        text = (
            f"{RECOVERY_POINT_NAME} 0\n"
            f"durable_end_offset {self.durable_end_offset}\n{synced}"
            f"log_start_offset {self.log_start_offset}\n"
            f"generation {self.generation}\n"
            f"clean_shutdown {int(self.is_clean)}\n"
            + "".join(f"epoch {entry.epoch} {entry.start_offset}\n" for entry in self.epochs)
        ).encode()
        return text + f"crc32c {crc32c(text):08x}\n".encode()


def read_recovery_point(data: bytes) -> RecoveryPoint:
    """Read the bytes of ``raftlog-recovery-point``.

    Raises:
        CorruptFileError: they are not those of such a file, or the CRC does not match.
    """
    match = _TEXT.fullmatch(data)
    if match is None:
        raise CorruptFileError("not a recovery point of version 0", "file-format", position=0)
    if crc32c(match[1]) != int(match[8], 16):
        raise CorruptFileError("the stored CRC does not match the lines above it", "file-crc", position=match.start(8))
    epochs = tuple(EpochEntry(*map(int, line.split()[1:])) for line in match[7].splitlines())
    synced = None if match[3] is None else int(match[3])
    point = RecoveryPoint(int(match[2]), int(match[4]), int(match[5]), match[6] == b"1", epochs, synced)
    if not _is_in_range(point):
        raise CorruptFileError("an offset, epoch or generation above its maximum", "file-format", position=0)
    return point


def _is_in_range(point: RecoveryPoint) -> bool:
    offsets = [point.durable_end_offset, point.log_start_offset, *(entry.start_offset for entry in point.epochs)]
    are_epochs = all(entry.epoch <= MAX_EPOCH for entry in point.epochs)
    is_below = point.synced_end_offset is None or point.synced_end_offset < point.durable_end_offset
    return are_epochs and is_below and max(offsets) <= _MAX_OFFSET and point.generation <= _MAX_GENERATION


@attrs.frozen
class FlushMark:
    """A slot of ``raftlog-flush-mark``: the end offset (exclusive) of a sync, and its generation."""

    generation: int
    durable_end_offset: int


def read_flush_mark(data: bytes | memoryview) -> FlushMark | None:
    """Read a slot; None if it is empty, torn or damaged."""
    if len(data) < _MARK_SIZE:
        return None
    magic, generation, durable_end_offset, *inverted = _MARK.unpack_from(data)
    if magic != _MARK_MAGIC or inverted != [~generation, ~durable_end_offset]:
        return None
    is_possible = 0 <= generation <= _MAX_GENERATION and durable_end_offset >= 0
    return FlushMark(generation, durable_end_offset) if is_possible else None


def read_flush_marks(data: bytes) -> dict[int, FlushMark | None]:
    """Read ``raftlog-flush-mark``: the slots that were written, by byte position; None for a damaged one."""
    slots = {position: data[position : position + _MARK_SIZE] for position in _SLOT_POSITIONS}
    return {position: read_flush_mark(slot) for position, slot in slots.items() if any(slot)}


@attrs.frozen
class StoredDurablePoint:
    """The content of both files when a log was opened.

    Attributes:
        recovery_point: None if it is missing or damaged.
        marks: the slots that can be read, of any generation.
        problem: what is wrong with the recovery point; None if it is sound or missing.
    """

    recovery_point: RecoveryPoint | None
    marks: tuple[FlushMark, ...]
    problem: DecodeError | None = None

    @property
    def durable_end_offset(self) -> int | None:
        """The greatest end offset, exclusive, that is known to have been durable; None if neither file has one.

        If the recovery point is missing or damaged, the marks of the last generation are used.
        """
        known = self.recovery_point
        generation = max((mark.generation for mark in self.marks), default=0) if known is None else known.generation
        ends = [mark.durable_end_offset for mark in self.marks if mark.generation == generation]
        if known is not None:
            ends.append(known.durable_end_offset)
        return max(ends, default=None)

    @property
    def synced_end_offset(self) -> int | None:
        """The end offset, exclusive, below which batches are known to be on the disk; None if neither file has one.

        After a loss the marks keep the durable end of before it. One above that of the recovery point was written after
        all was synced again. Marks alone do not say whether there was a loss, so that nothing is known then.
        """
        known, end_offset = self.recovery_point, self.durable_end_offset
        if end_offset is None:
            return None
        if known is None:
            return 0
        is_synced = known.synced_end_offset is None or end_offset > known.durable_end_offset
        return end_offset if is_synced else known.synced_end_offset

    @property
    def is_clean(self) -> bool:
        """Whether the log was closed in order, and nothing of ours was appended since."""
        return self.recovery_point is not None and self.recovery_point.is_clean

    @property
    def epochs(self) -> LeaderEpochs | None:
        """Where epochs start, from the recovery point; None if it is missing or invalid."""
        if self.recovery_point is None:
            return None
        try:
            return LeaderEpochs(self.recovery_point.epochs)
        except ValueError:
            return None  # The CRC matches, but epochs that do not increase are useless.

    def overwritten_by(self, in_log: LeaderEpochs, in_checkpoint: LeaderEpochs) -> EpochEntry | None:
        """Return the first epoch that another program began below the durable end after these files were written.

        Our log stores an epoch here before its first batch. So if an epoch is above all that are here, and the log and
        Kafka's checkpoint agree on it, then Kafka began it: it truncated the log there, as a follower may, and
        continued.

        Args:
            in_log: the epochs of the sound batches.
            in_checkpoint: those of ``leader-epoch-checkpoint``.
        """
        known, end_offset = self.epochs, self.durable_end_offset
        if known is None or known.latest_epoch is None or end_offset is None:
            return None
        latest_epoch = known.latest_epoch
        agreed = set(in_log.entries).intersection(in_checkpoint.entries)
        others = [each for each in agreed if each.epoch > latest_epoch and each.start_offset < end_offset]
        return min(others, key=lambda each: each.epoch, default=None)

    @property
    def next_generation(self) -> int:
        """A generation that no mark has yet."""
        known = [] if self.recovery_point is None else [self.recovery_point.generation]
        return max([*known, *(mark.generation for mark in self.marks)], default=0) + 1


def load_durable_point(file_system: FileSystem, directory: str) -> StoredDurablePoint:
    """Read both files of a log directory; missing or damaged ones are left out.

    Raises:
        StorageError: one of them exists and cannot be read. It must not be treated as missing: a failing disk may have
            lost the end of the log, too, and nothing else may say so.
    """
    point, problem = None, None
    path = join(directory, RECOVERY_POINT_NAME)
    try:
        point = read_recovery_point(read_file(file_system, path, _MAX_FILE_SIZE))
    except MissingFileError:
        pass
    except CorruptFileError as error:
        problem = without_frames(error.located(path=path))
    return StoredDurablePoint(point, _load_marks(file_system, join(directory, FLUSH_MARK_NAME)), problem)


def _load_marks(file_system: FileSystem, path: str) -> tuple[FlushMark, ...]:
    try:
        data = read_file(file_system, path, _MAX_FILE_SIZE)
    except (CorruptFileError, MissingFileError):
        return ()  # A mark is evidence if it exists; its absence is not.
    return tuple(mark for mark in read_flush_marks(data).values() if mark is not None)


class DurablePoint:
    """Writes both files while a log is open.

    Args:
        file_system: where the directory is.
        directory: of the log.
        point: the first recovery point; it is written at once.

    Raises:
        OutOfSpaceError, StorageError: a file cannot be written.
    """

    def __init__(self, file_system: FileSystem, directory: str, point: RecoveryPoint) -> None:
        self._file_system = file_system
        self._path = join(directory, RECOVERY_POINT_NAME)
        self._point = point
        self._slot = 0
        self._marks: OpenFile | None = file_system.open(join(directory, FLUSH_MARK_NAME), create=True)
        try:
            missing = _SLOT_POSITIONS[-1] + _MARK_SIZE - self._marks.size()
            if missing > 0:
                self._marks.append(bytes(missing))
            replace_file(file_system, self._path, point.encode())
        except StorageError:
            self.close()
            raise

    @property
    def point(self) -> RecoveryPoint:
        """The recovery point stored last."""
        return self._point

    def store(self, point: RecoveryPoint) -> None:
        """Replace the recovery point durably.

        Raises:
            OutOfSpaceError, StorageError: the file may have the old or the new content.
        """
        before, path = self._point, self._path
        invariant(before.generation <= point.generation, "{}: {}, previous {}", path, point, before)
        invariant(_is_in_range(point), "{}: {} cannot be read back", path, point)
        replace_file(self._file_system, path, point.encode())
        self._point = point

    def mark_sync(self, file: OpenFile, durable_end_offset: int) -> None:
        """Sync a segment's file, and record that the log is now durable up to an offset, exclusive.

        If marks cannot be written, the recovery point is replaced after each sync instead, unless the disk is full.

        Raises:
            StorageError: the sync has failed, also if the disk is full; or the recovery point may have the old or the
                new content.
        """
        # Built before the sync: caches are cold after it, so everything takes several times as long.
        if durable_end_offset < self._point.log_start_offset or self._point.generation < 0:
            raise InvariantViolation(f"{file.path}: a sync up to {durable_end_offset} is noted beside {self._point}")
        mark = self._mark(durable_end_offset)
        try:
            file.sync()
        except OutOfSpaceError as error:
            raise as_storage_error(error) from error
        if self._marks is not None:
            try:
                self._marks.write_at(_SLOT_POSITIONS[self._slot], mark)
            except StorageError:
                self.close()
            self._slot = 1 - self._slot
        if self._marks is None and durable_end_offset > self._point.durable_end_offset:
            with contextlib.suppress(OutOfSpaceError):
                self.store(attrs.evolve(self._point.up_to(durable_end_offset, None), is_clean=False))

    def copy_to_mark(self) -> None:
        """Write the recovery point's durable end as a flush mark, too, durably if the mark can be written at all.

        After a loss only these two files say how far the log was durable, so that one must survive the other.
        """
        point, slot = self._point, self._slot
        if self._marks is not None:
            try:
                self._marks.write_at(_SLOT_POSITIONS[slot], self._mark(0))
                self._marks.sync()
            except StorageError:
                self.close()
            self._slot = 1 - slot
        invariant(point.generation >= 0, "{}: {} is copied", self._path, point)
        invariant(self._slot in {0, 1}, "{}: slot {} after {}", self._path, self._slot, slot)

    def _mark(self, durable_end_offset: int) -> bytes:
        """Return a mark of an offset, or of the recovery point's durable end, which is above it after a loss."""
        generation, end_offset = self._point.generation, max(durable_end_offset, self._point.durable_end_offset)
        return _MARK.pack(_MARK_MAGIC, generation, end_offset, ~generation, ~end_offset)

    def close(self) -> None:
        """Close the files. Closing twice is harmless."""
        marks, self._marks = self._marks, None
        if marks is not None:
            with contextlib.suppress(StorageError):
                marks.close()
