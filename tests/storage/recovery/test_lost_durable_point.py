# SPDX-License-Identifier: Apache-2.0
"""In quarantine, recovery point and flush mark both say how far the log was durable: either of them may be lost."""

from collections.abc import Callable
from typing import Final

import pytest

from raftlog.file_system import join
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    flip,
    install_snapshot,
    kill,
    make_snapshot,
    open_log,
    overwrite,
    segment_path,
    write_log,
)


def _fetch(log: FileLog) -> None:
    log.append_as_follower(raft_batch(log.end_offset.offset, 1), 1)
    log.flush()


def _diverge(log: FileLog) -> None:
    assert log.truncate_to_end_offset(OffsetAndEpoch(2, 1)) == 2


def _restart(log: FileLog) -> None:
    install_snapshot(log, 6, 2)
    assert log.truncate_to_latest_snapshot()


STORIES: Final[dict[str, tuple[Callable[[FileLog], object], ...]]] = {
    "opened": (),
    "fetched": (_fetch,),
    "fetched twice": (_fetch, _fetch),
    "truncated": (_diverge,),
    "truncated and fetched": (_diverge, _fetch),
    "restarted": (_restart,),
}


def _crashed(file_system: MemoryFileSystem) -> MemoryFileSystem:
    return file_system.crash(lambda count: 0)


@pytest.mark.parametrize("lost", [RECOVERY_POINT_NAME, FLUSH_MARK_NAME])
@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("end", [kill, _crashed])
@pytest.mark.parametrize("story", STORIES)
def test_a_quarantine_survives_the_loss_of_either_file(
    lost: str, story: str, end: Callable[[MemoryFileSystem], MemoryFileSystem], *, is_removed: bool
) -> None:
    """Whatever has happened since the damage was found, and whether the process was killed or the machine crashed."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    log = open_log(file_system)
    for act in STORIES[story]:
        act(log)
    file_system, path = end(file_system), join(DIRECTORY, lost)
    if is_removed:
        file_system.remove(path)
    else:
        overwrite(file_system, path, 0, bytes(512))
        if lost == FLUSH_MARK_NAME:
            overwrite(file_system, path, 4096, bytes(40))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset == 8
    log.close()
    log = open_log(file_system)
    assert log.quarantine is not None


def test_a_restart_on_open_leaves_two_copies_of_its_quarantine() -> None:
    """A log that restarts at a snapshot below what was durable."""
    log = open_log(file_system := write_log(8))
    make_snapshot(log, 3)
    log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    make_snapshot(log, 7)
    log.close()
    flip(file_system, segment_path(3), 70)
    file_system.remove(join(DIRECTORY, f"{3:020}-{1:010}.checkpoint"))
    log = open_log(file_system)
    assert (log.start_offset, log.quarantine is None) == (7, False)
    file_system = kill(file_system)
    file_system.remove(join(DIRECTORY, RECOVERY_POINT_NAME))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset == 8
