# SPDX-License-Identifier: Apache-2.0
"""Opens that are tried on a copy of the disk: what they read, and what a crash may leave while they take files away."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.testing.file_system.crash_states import DiskImage, DiskState, picked_state
from raftlog.testing.file_system.faults import Operation, Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.disks.naive_files import kind_of
from raftlog.testing.simulator.disks.simulated_disk import IN_ORDER

_CHANGES: Final = frozenset(
    {
        *(Operation.CREATE, Operation.WRITE, Operation.TRUNCATE, Operation.SYNC),
        *(Operation.RENAME, Operation.REMOVE, Operation.SYNC_DIRECTORY),
    }
)
_MOVES: Final = frozenset({Operation.RENAME, Operation.REMOVE})
_KEPT: Final = frozenset({FileKind.LOG, FileKind.SNAPSHOT})


@attrs.frozen
class MovingOpen:
    """An open that takes a segment or a snapshot away.

    Attributes:
        changes: the numbers of its operations that change the disk, from the first one on that takes a file away.
        left: what a crash after one of them may leave, if all or nothing of what is not durable is lost, each with the
            last operation before the crash.
    """

    changes: Sequence[int]
    left: Mapping[DiskState, Step]


def moving_open(state: DiskState, open_log: Callable[[MemoryFileSystem], object]) -> MovingOpen | None:
    """Open a log on a copy of the disk; return the open if it takes a segment or a snapshot away, or else None.

    Args:
        state: of the disk before the open.
        open_log: opens a log in a copy of the disk.
    """
    files, images = MemoryFileSystem(state), list[tuple[Step, DiskImage]]()
    files.on_change = lambda: images.append((files.steps[-1], files.image()))
    with contextlib.suppress(RaftLogError):
        open_log(files)
    files.on_change = None
    first = next((each.number for each in files.steps if _moves_files(each)), None)
    if first is None:
        return None
    changes = [each.number for each in files.steps if each.number >= first and each.operation in _CHANGES]
    left: dict[DiskState, Step] = {}
    for step, image in images:
        if step.number >= first:
            left.setdefault(picked_state(image, _oldest, IN_ORDER), step)
            left.setdefault(picked_state(image, _newest, IN_ORDER), step)
    return MovingOpen(changes, left)


def reads_of(state: DiskState, open_log: Callable[[MemoryFileSystem], object]) -> list[str]:
    """Open a log on a copy of the disk; return the path of the file of each read, in order.

    Args:
        state: of the disk before the open.
        open_log: opens a log in a copy of the disk.
    """
    files = MemoryFileSystem(state)
    with contextlib.suppress(RaftLogError):
        open_log(files)
    return [each.path for each in files.steps if each.operation is Operation.READ]


def _moves_files(step: Step) -> bool:
    """Whether an operation takes away a segment or a snapshot; each open renames them for a moment."""
    is_gone = step.operation in _MOVES and not step.detail.endswith(FileState.SWAP.value)
    return is_gone and kind_of(step.path) in _KEPT


def _oldest(_: int) -> int:
    return 0


def _newest(count: int) -> int:
    return count - 1
