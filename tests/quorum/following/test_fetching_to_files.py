# SPDX-License-Identifier: Apache-2.0
"""A snapshot that is fetched into a log in files: what a crash leaves of it."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Prospective
from raftlog.quorum.seam.effects import Effect
from raftlog.quorum.seam.snapshot_effects import FreezeFetchedSnapshot, RestartAtLatestSnapshot
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import fill, open_log
from tests.quorum.following.followers import DATA, SNAPSHOT, VOTERS, FollowerOfTwo
from tests.quorum.single_replica import write_bootstrap

END = OffsetAndEpoch(3, 1)


def follower(file_system: MemoryFileSystem) -> tuple[FollowerOfTwo, FileLog]:
    """Return a follower on a disk, with three records at first."""
    log = open_log(file_system)
    if log.latest_snapshot_id is None:
        write_bootstrap(log, VOTERS)
        fill(log, END.offset)
        log.flush()
    return FollowerOfTwo(log), log


def names(file_system: MemoryFileSystem, suffix: str) -> list[str]:
    """Return the files with a suffix."""
    return [each for each in file_system.contents() if each.endswith(suffix)]


def crashed(file_system: MemoryFileSystem, *, is_all_kept: bool) -> MemoryFileSystem:
    """Return the disk after a loss of power, with none or all of what was not synced."""
    return file_system.crash(lambda count: count - 1 if is_all_kept else 0)


@pytest.mark.parametrize("is_all_kept", [False, True])
def test_a_partial_snapshot_does_not_survive_a_crash(is_all_kept: bool) -> None:
    """The next open removes it, and the follower asks for the records after its own."""
    core, _ = follower(file_system := MemoryFileSystem())
    core.name()
    core.send_chunk(0, DATA[:100])
    assert names(file_system, ".part")
    after = crashed(file_system, is_all_kept=is_all_kept)
    core, log = follower(after)
    assert names(after, ".part") == []
    assert log.latest_snapshot_id == OffsetAndEpoch(0, 0)
    assert core.asked_offset == END.offset


@pytest.mark.parametrize("is_all_kept", [False, True])
def test_a_crash_between_the_snapshot_and_the_restart_of_the_log(is_all_kept: bool) -> None:
    """The next open restarts the log at the snapshot, which is durable, and the follower goes on from there (K31)."""
    core, log = follower(file_system := MemoryFileSystem())
    core.name()
    core.is_slow = True
    core.send_chunk(0, DATA)
    core.work()
    assert isinstance(core.waiting[0], FreezeFetchedSnapshot)
    core.work()
    waiting: Effect = core.waiting[0]
    assert isinstance(waiting, RestartAtLatestSnapshot)
    assert (log.start_offset, log.end_offset.offset) == (0, END.offset)
    core, log = follower(crashed(file_system, is_all_kept=is_all_kept))
    assert (log.start_offset, log.end_offset.offset, core.raft.high_watermark) == (10, 10, 10)
    assert core.asked_offset == 10
    assert core.stored_bytes() == DATA


@pytest.mark.parametrize("is_all_kept", [False, True])
def test_a_crash_after_the_restart_of_the_log(is_all_kept: bool) -> None:
    """Nothing of the old log comes back."""
    core, _ = follower(file_system := MemoryFileSystem())
    core.name()
    core.send_chunk(0, DATA)
    assert core.asked_offset == SNAPSHOT.offset
    core, log = follower(crashed(file_system, is_all_kept=is_all_kept))
    assert (log.start_offset, log.end_offset.offset, core.asked_offset) == (10, 10, 10)


def test_a_change_of_the_role_removes_the_file() -> None:
    """What was fetched for the old role is not left on the disk."""
    core, _ = follower(file_system := MemoryFileSystem())
    core.name()
    core.send_chunk(0, DATA[:100])
    core.sleep(QuorumConfig().fetch_timeout_ms)
    assert isinstance(core.raft.role, Prospective)
    assert names(file_system, ".part") == []
