# SPDX-License-Identifier: Apache-2.0
"""A disk that fails as the choices say: errors of single operations, wrong bytes, no room, and crashes."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from raftlog.disk_work import nothing
from raftlog.records.files.file_names import FileKind
from raftlog.storage.state.quorum_state_store import COPY_NAMES, RESERVE_NAME
from raftlog.testing.file_system.crash_states import CrashModel, DiskState
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.damage import SECTOR_BYTES

ERRORS: Final = ("read-error", "write-error", "sync-error", "disk-full")
"""The kinds of failures that an operation reports."""
MISREADS: Final = ("stale-read", "misdirected-read")
"""The kinds of reads that return wrong bytes, and report nothing."""
_READS: Final = (Operation.READ, Operation.OPEN)
_OPERATIONS: Final = {
    "read-error": _READS,
    "write-error": (Operation.WRITE, Operation.CREATE, Operation.RENAME, Operation.REMOVE, Operation.TRUNCATE),
    "sync-error": (Operation.SYNC, Operation.SYNC_DIRECTORY),
}
_TORN: Final = CrashModel(sector_size_bytes=SECTOR_BYTES)
IN_ORDER: Final = CrashModel(sector_size_bytes=SECTOR_BYTES, ordered_writes=True, ordered_names=True)
"""What most crashes may leave."""
_MAX_SKIPPED: Final = 6
_SMALL_FILES: Final = frozenset((RESERVE_NAME, FileKind.QUORUM_STATE.value, *COPY_NAMES))
_BYTES_LEFT: Final = 100
"""A write on a full disk writes so many bytes for each operation that had room before."""


@attrs.define
class PlannedFault(Fault):
    """A fault that tells when it strikes."""

    on_strike: Callable[[], object] = attrs.field(kw_only=True)

    def strikes(self, step: Step) -> bool:
        """Return whether an operation fails, and tell."""
        is_struck = Fault.strikes(self, step)
        if is_struck:
            self.on_strike()
        return is_struck


@attrs.define
class FullDisk(PlannedFault):
    """A full disk. The reserve of election states takes a block, which is room for any of their files once it is gone.

    Attributes:
        free_blocks: None until the reserve is removed.
    """

    free_blocks: int | None = attrs.field(default=None, init=False)

    def strikes(self, step: Step) -> bool:
        """Return whether an operation finds no room, and tell."""
        name = step.path.rpartition("/")[2]
        file = name.removesuffix(".tmp")
        if step.operation is Operation.REMOVE and name == RESERVE_NAME:
            self.free_blocks = (self.free_blocks or 0) + 1
        if self.free_blocks is None or not (file in _SMALL_FILES or step.operation is Operation.SYNC_DIRECTORY):
            return PlannedFault.strikes(self, step)
        if step.operation is Operation.WRITE:
            if not self.free_blocks:
                return PlannedFault.strikes(self, step)
            self.free_blocks -= 1
        elif step.operation is Operation.RENAME and file != RESERVE_NAME:
            self.free_blocks += 1  # That of the file that it replaces.
        return False


class SimulatedDisk:
    """A disk with one file system.

    Args:
        replica_id: of the machine.
        counts: of what was injected, by kind.

    Attributes:
        files: the file system. A crash replaces it.
        is_healed: whether faults have ended.
        has_failed: whether a fault has struck since ``forget_faults``, or may strike at any time: the disk is full.
        has_erred: whether another fault has struck than that the disk is full, or every operation fails from now on.
    """

    def __init__(self, replica_id: int, counts: Counter[str]) -> None:
        self.files = MemoryFileSystem()
        self.is_healed = False
        self._id = replica_id
        self._counts = counts
        self._has_struck = self._has_erred = False
        self._full: Fault | None = None
        self._is_room_left = True
        self._misread: str | None = None
        self._skipped_reads = 0
        self._before: dict[str, bytes] = {}

    @property
    def has_failed(self) -> bool:
        """Whether a fault has struck since the faults were forgotten, or the disk is full."""
        return self._has_struck or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether the disk has no room, or will soon have none."""
        return self._full is not None

    @property
    def has_erred(self) -> bool:
        """Whether a fault has struck that is not for lack of room, or all operations fail."""
        return self._has_erred or any(each.is_lasting and not each.is_full for each in self.files.faults)

    @property
    def may_mislead(self) -> bool:
        """Whether a read will return wrong bytes, or fail: an open then takes the log to be damaged."""
        is_unreadable = any(each.operation in _READS and not each.is_spent for each in self.files.faults)
        return is_unreadable or self._misread is not None

    @property
    def before(self) -> dict[str, bytes]:
        """What files had some time ago, by path."""
        return self._before

    # Faults of single operations

    def plan_error(self, kind: str, choices: Choices) -> None:
        """Let an operation that comes soon fail. A full disk stays full until ``free``.

        Args:
            kind: of ``ERRORS``.
            choices: decide which operation.
        """
        skip = choices.number(0, _MAX_SKIPPED, "fault-skip", self._id)
        if kind == "disk-full":
            self.free()
            self._full = FullDisk(
                skip=skip,
                is_full=True,
                is_lasting=True,
                written_bytes=skip * _BYTES_LEFT,
                on_strike=self._found_full,
            )
            self.files.faults.append(self._full)
            return
        operation = choices.pick(_OPERATIONS[kind], "fault-operation", self._id)
        written = choices.number(0, 600, "written-bytes", self._id) if operation is Operation.WRITE else 0
        fault = PlannedFault(operation, skip=skip, written_bytes=written, on_strike=lambda: self._struck(kind))
        self.files.faults.append(fault)

    def refuse_once(
        self,
        path_end: str,
        skip: int,
        operation: Operation | None = None,
        on_refusal: Callable[[], object] = nothing,
    ) -> None:
        """Let one operation that needs room find none.

        Args:
            path_end: what its path ends with.
            skip: how many such operations succeed before.
            operation: the kind; None for any.
            on_refusal: is called as it fails.
        """

        def refused() -> None:
            self._counts["disk-full"] += 1
            self._has_struck = True
            on_refusal()

        self.files.faults.append(PlannedFault(operation, path_end=path_end, skip=skip, is_full=True, on_strike=refused))

    def fail_reads(self, path: str, skip: int) -> None:
        """Let a read of a file fail, and the next one as well: a log repeats that of a segment at once, block by block.

        Args:
            path: of the file.
            skip: how many reads of it succeed before.
        """
        struck = functools.partial(self._struck, "read-error")
        for _ in range(2):
            self.files.faults.append(PlannedFault(Operation.READ, path_end=path, skip=skip, on_strike=struck))

    def free(self) -> None:
        """Make room on a full disk."""
        if self._full is not None and self._full in self.files.faults:
            self.files.faults.remove(self._full)
        self._full, self._is_room_left = None, True

    def plan_misread(self, kind: str, choices: Choices, path_end: str = "") -> None:
        """Let a read that comes soon return wrong bytes.

        Args:
            kind: of ``MISREADS``.
            choices: decide which read, and which bytes.
            path_end: what the path of the file ends with.
        """
        self._misread, self._skipped_reads = kind, choices.number(0, _MAX_SKIPPED, "fault-skip", self._id)
        place = choices.fraction(0.0, "misread-place", self._id)

        def misread(step: Step, position: int, size: int, content: bytes | bytearray) -> bytes:
            is_meant = size > 0 and step.path.endswith(path_end)
            if not is_meant or self._skipped_reads:
                self._skipped_reads -= is_meant
                return bytes(content[position : position + size])
            self._misread = self.files.change_read = None
            self._struck(kind)
            if kind == "stale-read":
                return self._before.get(step.path, b"")[position : position + size]
            start = int(place * len(content)) // SECTOR_BYTES * SECTOR_BYTES
            return bytes(content[start : start + size])

        self.files.change_read = misread

    def forget_faults(self) -> None:
        """Let no planned error strike any more, except that a full disk stays full."""
        self.files.faults[:] = [] if self._full is None else [self._full]
        self._has_struck = self._has_erred = False

    def heal(self) -> None:
        """Let no fault that is planned strike any more."""
        self.is_healed = True
        self.free()
        self.files.faults.clear()
        self.files.change_read = self._misread = None

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Let no fault strike in a block: what a witness reads is no operation of the replica."""
        files = self.files
        faults, files.faults[:], change_read, files.change_read = list(files.faults), (), files.change_read, None
        try:
            yield
        finally:
            files.faults[:], files.change_read = faults, change_read

    def fail_after(self, count: int) -> None:
        """Let some operations succeed, and all later ones fail: the machine is about to crash."""
        self.files.faults.append(Fault(skip=count, is_lasting=True))

    def _found_full(self) -> None:
        self._counts["disk-full"] += self._is_room_left
        self._is_room_left, self._has_struck = False, True

    def _struck(self, kind: str) -> None:
        self._counts[kind] += 1
        self._has_struck = self._has_erred = True

    # The end of the machine

    def crash(self, choices: Choices, *, is_torn: bool) -> None:
        """Lose what is not durable.

        Args:
            choices: decide what is lost.
            is_torn: whether sectors may have reached the disk in any order.
        """
        self._keep_old()

        def choose(count: int) -> int:
            if count == 1:
                return 0
            return choices.number(0, count, "crash-state", self._id, calm=count - 1)

        self._replace(self.files.crash(choose, _TORN if is_torn else IN_ORDER))

    def replace_state(self, state: DiskState) -> None:
        """Continue with other names and bytes."""
        self._keep_old()
        self._replace(MemoryFileSystem(state))

    def _keep_old(self) -> None:
        """Keep what files have now: it is what they had some time ago, later."""
        self._before = self.files.contents()

    def _replace(self, files: MemoryFileSystem) -> None:
        self.files = files
        if self._full is not None:
            files.faults.append(self._full)
        self._misread = None
        self._has_struck = self._has_erred = False
