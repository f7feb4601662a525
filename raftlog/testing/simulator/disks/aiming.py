# SPDX-License-Identifier: Apache-2.0
"""Aims faults of a disk at rare moments: what it seldom does, and what its directory seldom has.

Faults at random times hardly ever come while an open replaces a log by a snapshot, or between the two files that a
truncation writes. In schedules with aimed faults

- a crash comes while an open renames, removes or cuts files, and comes again in the open after it;
- damage hits a number in a file that has no CRC, or in a batch's header, where no CRC covers it; the last segment; or
  the snapshot at the log start;
- once the log was opened after that, it is damaged again: in quarantine it loses one of the two files that say how far
  it was durable, and without its first snapshot the first batch;
- the disk has no room just for the first batch of an epoch, or for the work that begins an epoch, a segment, a
  truncation or a deletion; the leader of the epoch crashes then, if another one may lead with other records;
- a read of an open fails, and again as it is repeated: of each kind of files as often; what an open could not read is
  read by the next one;
- a part of a snapshot that is fetched has another bit.
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from raftlog.disk_work import nothing
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.damage import SECTOR_BYTES, Damaged, with_damaged_file
from raftlog.testing.simulator.disks.moving_opens import MovingOpen
from raftlog.testing.simulator.disks.naive_files import kind_of
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk

AIMED_FAULTS: Final = ("aimed-crash", "aimed-damage", "aimed-full", "aimed-part", "aimed-read")
"""The kinds of aimed faults, as they are counted, beside what they do."""
_CRASHES: Final = 0.7
_DAMAGES: Final = 0.8
_FULL: Final = 0.06
_FULL_FOR_EPOCHS: Final = 0.15
_FULL_FOR_RIVALS: Final = 0.9
"""If another replica has records of an earlier epoch there."""
_SPOILS: Final = 0.1
_READS: Final = 0.15
_TEXTS: Final = (RECOVERY_POINT_NAME, FileKind.QUORUM_STATE.value)
_EPOCH_BYTE: Final = 15
"""The lowest byte of the epoch in a batch's header, which no CRC covers."""
_PLACES: Final = ("number", "epoch", "last-segment", "first-snapshot")
_SECOND_PLACES: Final = {"last-segment": "evidence", "first-snapshot": "first-batch"}
"""What is damaged, too, once a log was opened again."""
SNAPSHOT_END: Final = FileKind.SNAPSHOT.value
SEGMENT_END: Final = FileKind.LOG.value
_FULL_PATHS: Final = (SEGMENT_END, "-0")
"""For what there is no room: the bytes of a segment, or names in the directory of the log."""
_READ_KINDS: Final = (SNAPSHOT_END, SEGMENT_END, RECOVERY_POINT_NAME, FLUSH_MARK_NAME, "")
"""What the path of a file ends with that an open does not get: each kind as often, all others together."""

Deposal = Callable[[OffsetAndEpoch], Callable[[], object] | None]
"""Is given the first batch of an epoch, and the epoch; returns what lets its leader crash, or None."""


class Aim:
    """Aims the faults of one disk.

    Args:
        choices: all that may go in more than one way.
        counts: of what was injected, by kind.
        replica_id: of the disk.
        has_errors: whether operations of the disk fail, too.
        has_misreads: whether bytes may be other ones than were written.
        deposal: of the leader of an epoch; None if no other replica has records of an earlier epoch where it begins,
            with which that one may lead again.
    """

    def __init__(
        self,
        choices: Choices,
        counts: Counter[str],
        replica_id: int,
        *,
        has_errors: bool,
        has_misreads: bool,
        deposal: Deposal = lambda _: None,
    ) -> None:
        self._choices = choices
        self._counts = counts
        self._id = replica_id
        self._has_errors = has_errors
        self._has_misreads = has_misreads
        self._deposal = deposal
        self._last_place: str | None = None

    # Opens

    def steps_of_open(self, moving: MovingOpen) -> int | None:
        """Return after how many operations of an open that takes files away the machine crashes; None if not at all."""
        if not self._choices.happens(_CRASHES, "aimed-crash", self._id):
            return None
        self._counts["aimed-crash"] += 1
        return self._choices.pick(moving.changes, "aimed-step", self._id)

    def fail_open(self, disk: SimulatedDisk, reads: Callable[[], Sequence[str]]) -> bool:
        """Return whether reads of the next open fail.

        Args:
            disk: on which it is.
            reads: returns the path of the file of each read of that open, in order.
        """
        if not self._has_errors or disk.is_healed or not self._choices.happens(_READS, "aimed-read", self._id):
            return False
        paths = reads()
        kinds = list(dict.fromkeys(map(_read_kind, paths)))
        kind = self._choices.pick(kinds, "aimed-kind", self._id)
        files = [each for each in dict.fromkeys(paths) if _read_kind(each) == kind]
        path = self._choices.pick((files[-1], *files), "aimed-file", self._id)
        disk.fail_reads(path, self._choices.number(0, paths.count(path), "aimed-skip", self._id))
        self._counts["aimed-read"] += 1
        return True

    # Work

    def begin_work(self, disk: SimulatedDisk, *, begun: OffsetAndEpoch | None) -> None:
        """Let work that begins now find no room, once.

        Args:
            disk: that does the work.
            begun: the first batch of an epoch that it writes, for which there is then no room, and the epoch; None if
                it writes none.
        """
        depose = None if begun is None else self._deposal(begun)
        share = _FULL if begun is None else _FULL_FOR_EPOCHS if depose is None else _FULL_FOR_RIVALS
        if not self._has_errors or disk.is_healed or not self._choices.happens(share, "aimed-full", self._id):
            return
        self._counts["aimed-full"] += 1
        if begun is not None:
            disk.refuse_once(SEGMENT_END, 0, Operation.WRITE, nothing if depose is None else depose)
            return
        path_end = self._choices.pick(_FULL_PATHS, "aimed-path", self._id)
        disk.refuse_once(path_end, self._choices.number(0, 3, "aimed-skip", self._id))

    # Messages

    def spoil(self, part: bytes | memoryview) -> bytes | memoryview:
        """Return a part of a snapshot that a leader has sent, perhaps with another bit."""
        if not (self._has_misreads and part and self._choices.happens(_SPOILS, "aimed-part", self._id)):
            return part
        self._counts["aimed-part"] += 1
        spoiled = bytearray(part)
        spoiled[self._choices.number(0, len(spoiled), "aimed-byte", self._id)] ^= 1
        return bytes(spoiled)

    # Damage

    def damage(self, state: DiskState, ledger: Ledger) -> Damaged | None:
        """Damage what a directory seldom has; None if damage is not aimed this time.

        The election state is that of voters only: a flipped digit may raise its epoch, and a leader learns of that by
        requests for votes alone. Epochs are those from the log start on: nothing witnesses the ones before.

        Args:
            state: of the disk.
            ledger: of the directory.
        """
        self._last_place = None
        if not self._choices.happens(_DAMAGES, "aimed-damage", self._id):
            return None
        place = self._choices.pick(_PLACES, "aimed-place", self._id)
        damaged = self._damaged_at(state, place, ledger)
        self._last_place = None if damaged is None else place
        return damaged

    def damage_again(self, state: DiskState, ledger: Ledger) -> Damaged | None:
        """Damage what an open has made of a damaged disk; None if that is damaged no more.

        A log in quarantine, which has lost its end, loses one of the two files that say how far it was durable. After
        other damage both may be needed.
        """
        place, self._last_place = _SECOND_PLACES.get(self._last_place or ""), None
        is_meant = place is not None and ledger.is_quarantined == (place == "evidence")
        if place is None or not is_meant or not self._choices.happens(0.5, "aimed-again", self._id):
            return None
        return self._damaged_at(state, place, ledger)

    def _damaged_at(self, state: DiskState, place: str, ledger: Ledger) -> Damaged | None:
        files = {path: data for path, data, _ in state if data}
        segments = [path for path in files if kind_of(path) is FileKind.LOG]
        snapshots = [path for path in files if kind_of(path) is FileKind.SNAPSHOT]
        if place == "number":
            ends = _TEXTS if ledger.names_as_voter(ledger.key) else _TEXTS[:1]
            texts = [path for path in files if path.endswith(ends)]
            return self._flipped(state, files, texts, _digit_bits)
        if place == "evidence":
            names = [path for path in files if path.endswith((RECOVERY_POINT_NAME, FLUSH_MARK_NAME))]
            path = self._choices.pick(names, "aimed-file", self._id)
            return self._changed(state, path, None, "lost-file", "loses the name")
        if place == "epoch":
            return self._flipped(state, files, segments, functools.partial(_epoch_bits, ledger.start_offset))
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


def _read_kind(path: str) -> str:
    return next(each for each in _READ_KINDS if path.endswith(each))


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


def _epoch_bits(start_offset: int, segment: bytes) -> list[tuple[int, int]]:
    """Return the low bits of the epochs of a segment's batches from an offset on, likewise."""
    found: list[tuple[int, int]] = []
    start = 0
    while start + LOG_OVERHEAD < len(segment):
        if int.from_bytes(segment[start : start + 8]) >= start_offset:
            found.extend((start + _EPOCH_BYTE, bit) for bit in range(6))
        start += LOG_OVERHEAD + int.from_bytes(segment[start + 8 : start + LOG_OVERHEAD])
    return [each for each in found if each[0] < len(segment)]
