# SPDX-License-Identifier: Apache-2.0
"""Aims faults of a disk at rare moments: what it seldom does, and what its directory seldom has.

Faults at random times hardly ever come while an open replaces a log by a snapshot, or between the two files that a
truncation writes. In schedules with aimed faults

- a crash comes while an open renames, removes or cuts files, and comes again in the open after it;
- damage hits a number in a file that has no CRC, or in a batch's header, where no CRC covers it; the last segment; or
  the snapshot at the log start, and then the first batch there;
- a log in quarantine is opened again before it is repaired, or loses one of the two files that say how far it was
  durable;
- the disk has no room just for the work that begins an epoch, a segment, a truncation or a deletion;
- reads of snapshots fail, or return other bytes; what an open could not read is read by the next one.
"""

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.faults import Operation, Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.damage import SECTOR_BYTES, Damaged, with_damaged_file
from raftlog.testing.simulator.disks.naive_files import kind_of
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk

AIMED_FAULTS: Final = ("aimed-crash", "aimed-damage", "aimed-full", "aimed-read")
"""The kinds of aimed faults, as they are counted, beside what they do."""
_CRASHES: Final = 0.7
_DAMAGES: Final = 0.8
_FULL: Final = 0.06
_READS: Final = 0.15
_CHANGES: Final = frozenset(
    {
        *(Operation.CREATE, Operation.WRITE, Operation.TRUNCATE, Operation.SYNC),
        *(Operation.RENAME, Operation.REMOVE, Operation.SYNC_DIRECTORY),
    }
)
_MOVES: Final = frozenset({Operation.RENAME, Operation.REMOVE})
_KEPT: Final = frozenset({FileKind.LOG, FileKind.SNAPSHOT})
_TEXTS: Final = (RECOVERY_POINT_NAME, FileKind.QUORUM_STATE.value)
_EPOCH_BYTE: Final = 15
"""The lowest byte of the epoch in a batch's header, which no CRC covers."""
_PLACES: Final = ("number", "epoch", "last-segment", "first-snapshot")
_FULL_PATHS: Final = (".log", "-0")
"""For what there is no room: the bytes of a segment, or names in the directory of the log."""
SNAPSHOT_END: Final = FileKind.SNAPSHOT.value


class Aim:
    """Aims the faults of one disk.

    Args:
        choices: all that may go in more than one way.
        counts: of what was injected, by kind.
        replica_id: of the disk.
        has_errors: whether operations of the disk fail, too.
    """

    def __init__(self, choices: Choices, counts: Counter[str], replica_id: int, *, has_errors: bool) -> None:
        self._choices = choices
        self._counts = counts
        self._id = replica_id
        self._has_errors = has_errors
        self._last_place: str | None = None

    # Opens

    def steps_of_open(self, state: DiskState, open_log: Callable[[MemoryFileSystem], object]) -> int | None:
        """Return after how many operations of an open the machine crashes; None if it does not.

        Args:
            state: of the disk before the open.
            open_log: opens a log in a copy of the disk.
        """
        files = MemoryFileSystem(state)
        with contextlib.suppress(RaftLogError):
            open_log(files)
        first = next((each.number for each in files.steps if _moves_files(each)), None)
        if first is None or not self._choices.happens(_CRASHES, "aimed-crash", self._id):
            return None
        self._counts["aimed-crash"] += 1
        changes = [each.number for each in files.steps if each.number >= first and each.operation in _CHANGES]
        return self._choices.pick(changes, "aimed-step", self._id)

    def fail_open(self, disk: SimulatedDisk) -> bool:
        """Return whether a read of the next open fails: half of the time that of a snapshot."""
        if not self._has_errors or disk.is_healed or not self._choices.happens(_READS, "aimed-read", self._id):
            return False
        path_end = SNAPSHOT_END if self._choices.happens(0.5, "aimed-snapshot", self._id) else ""
        disk.fail_read(path_end, self._choices.number(0, 8, "aimed-skip", self._id))
        self._counts["aimed-read"] += 1
        return True

    # Work

    def begin_work(self, disk: SimulatedDisk) -> None:
        """Let work that begins now find no room, once."""
        if self._has_errors and not disk.is_healed and self._choices.happens(_FULL, "aimed-full", self._id):
            path_end = self._choices.pick(_FULL_PATHS, "aimed-path", self._id)
            self._counts["aimed-full"] += 1
            disk.refuse_once(path_end, self._choices.number(0, 3, "aimed-skip", self._id))

    # Damage

    def damage(self, state: DiskState, *, is_quarantined: bool) -> Damaged | None:
        """Damage what a directory seldom has; None if damage is not aimed this time.

        Args:
            state: of the disk.
            is_quarantined: whether the log is in quarantine, so that only what says how far it was durable is damaged.
        """
        if is_quarantined:
            return self._damage_evidence(state)
        is_second, self._last_place = self._last_place == "first-snapshot", None
        if not is_second and not self._choices.happens(_DAMAGES, "aimed-damage", self._id):
            return None
        place = "first-batch" if is_second else self._choices.pick(_PLACES, "aimed-place", self._id)
        damaged = self._damaged_at(state, place)
        self._last_place = None if damaged is None else place
        return damaged

    def _damage_evidence(self, state: DiskState) -> Damaged | None:
        """Lose one of the two files that say how far a log was durable, which has lost its end."""
        names = [path for path, data, _ in state if data and path.endswith((RECOVERY_POINT_NAME, FLUSH_MARK_NAME))]
        if self._last_place != "last-segment" or not names:
            return None
        self._last_place = None
        path = self._choices.pick(names, "aimed-file", self._id)
        return self._changed(state, path, None, "lost-file", "loses the name")

    def _damaged_at(self, state: DiskState, place: str) -> Damaged | None:
        files = {path: data for path, data, _ in state if data}
        segments = [path for path in files if kind_of(path) is FileKind.LOG]
        snapshots = [path for path in files if kind_of(path) is FileKind.SNAPSHOT]
        if place == "number":
            texts = [path for path in files if path.endswith(_TEXTS)]
            return self._flipped(state, files, texts, _digit_bits)
        if place == "epoch":
            return self._flipped(state, files, segments, _epoch_bits)
        if place == "first-snapshot" and len(snapshots) > 1:
            return self._changed(state, snapshots[0], None, "lost-file", "loses the name")
        if place == "last-segment" and segments:
            return self._changed(state, segments[-1], None, "lost-file", "loses the name")
        if place == "first-batch" and segments:
            lost = bytes(min(SECTOR_BYTES, len(files[segments[0]])))
            data = lost + files[segments[0]][SECTOR_BYTES:]
            return self._changed(state, segments[0], data, "lost-sectors", "reads zeros in the sector at 0")
        return None

    def _flipped(
        self,
        state: DiskState,
        files: dict[str, bytes],
        paths: list[str],
        bits_in: Callable[[bytes], list[tuple[int, int]]],
    ) -> Damaged | None:
        if not paths:
            return None
        path = self._choices.pick(paths, "aimed-file", self._id)
        bits = bits_in(files[path])
        if not bits:
            return None
        position, bit = self._choices.pick(bits, "aimed-bit", self._id)
        data = bytearray(files[path])
        data[position] ^= 1 << bit
        return self._changed(state, path, bytes(data), "bit-rot", f"flips a bit in byte {position}")

    def _changed(self, state: DiskState, path: str, data: bytes | None, kind: str, words: str) -> Damaged:
        self._counts["aimed-damage"] += 1
        return with_damaged_file(state, path, data, kind, words)


def _moves_files(step: Step) -> bool:
    """Whether an operation takes away a segment or a snapshot; each open renames them for a moment."""
    is_gone = step.operation in _MOVES and not step.detail.endswith(FileState.SWAP.value)
    return is_gone and kind_of(step.path) in _KEPT


def _digit_bits(text: bytes) -> list[tuple[int, int]]:
    """Return the bits of a text that make a digit another one, each as the position of its byte and its number.

    Of a recovery point, these are the numbers before its epochs: they say how far the log was durable.
    """
    digits, text = b"0123456789", text.partition(b"\nepoch ")[0].partition(b"\ncrc32c ")[0]
    return [
        (position, bit)
        for position, byte in enumerate(text)
        for bit in range(4)
        if byte in digits and byte ^ (1 << bit) in digits
    ]


def _epoch_bits(segment: bytes) -> list[tuple[int, int]]:
    """Return the low bits of the epochs of a segment's batches, likewise."""
    found: list[tuple[int, int]] = []
    start = 0
    while start + LOG_OVERHEAD < len(segment):
        found.extend((start + _EPOCH_BYTE, bit) for bit in range(6))
        start += LOG_OVERHEAD + int.from_bytes(segment[start + 8 : start + LOG_OVERHEAD])
    return [each for each in found if each[0] < len(segment)]
