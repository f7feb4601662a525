# SPDX-License-Identifier: Apache-2.0
"""A crash after every operation of a log, with every state that the disk may be in then.

After each, all acknowledged records exist, no unwritten ones do, the log opens a second time to the same state, the
state machine equals a scan of everything, and the log accepts a batch. The counts are printed (``pytest -s``).
"""

from typing import Any, Final, cast

import pytest

from raftlog.errors import RaftLogError
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.state.quorum_state_store import QuorumStateOrigin, QuorumStateStore
from raftlog.testing.crash_points import Check, CrashCounts, Promise, enumerate_crashes
from raftlog.testing.file_system.crash_states import CrashModel
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.faults.log_life import DAMAGED_LIFE, LIFE, lived
from tests.faults.log_story import DIRECTORY, LogStory, check_damaged_log, check_log, check_log_or_quarantine

QUICK: Final = (
    "begin_a_log",
    "append_and_flush",
    "append_without_flush",
    "truncate_in_a_segment",
    "freeze_a_snapshot",
    "start_at_a_snapshot",
    "recover",
    "roll",
    "clean",
    "truncate_across_segments",
    "install_another_history",
    "install_a_shorter_history",
)


def crash(name: str, crashes: int = 1, model: CrashModel | None = None, check: Check = check_log) -> CrashCounts:
    """Enumerate the crashes of a part of a log's life."""
    before, story = (LIFE | DAMAGED_LIFE)[name]
    prepared = MemoryFileSystem()
    promised = lived(before, prepared)

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        story(LogStory(files, promise, promised))

    counts = enumerate_crashes(scenario, check, start=prepared, promised=promised, crashes=crashes, model=model)
    print(f"{name}: {counts}")
    return counts


@pytest.mark.parametrize("name", QUICK)
def test_a_crash_loses_and_invents_nothing(name: str) -> None:
    """Every state after a crash at every moment is recovered from, and all that was acknowledged is there."""
    assert crash(name).is_complete


@pytest.mark.parametrize("name", DAMAGED_LIFE)
@pytest.mark.parametrize("crashes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_crash_lets_no_damage_pass(name: str, crashes: int) -> None:
    """A log stays in quarantine through any operations and crashes, until it is complete or given up."""
    assert crash(name, crashes=crashes, check=check_damaged_log).is_complete


@pytest.mark.slow
@pytest.mark.parametrize("name", LIFE)
def test_a_second_crash_changes_nothing(name: str) -> None:
    """The same for all of the log's life, where each recovery is crashed at every moment, too."""
    assert crash(name, crashes=2).is_complete


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append_a_large_batch", "truncate_in_a_segment"])
def test_what_is_torn_in_small_pieces(name: str) -> None:
    """The same where each 64 bytes of a batch are there or not; a later batch without an earlier one is quarantined."""
    crash(name, model=CrashModel(sector_size_bytes=64), check=check_log_or_quarantine)


def election(epoch: int, voted_id: int) -> QuorumStateData:
    """Return the state of a voter that has voted."""
    return QuorumStateData(1, leader_epoch=epoch, voted_id=voted_id)


def vote(files: MemoryFileSystem, promise: Promise) -> None:
    """Vote in three epochs, one of them twice remembered."""
    promised: frozenset[QuorumStateData | None] = frozenset({None})
    store = QuorumStateStore.open(files, DIRECTORY, has_log=False)
    for state in (election(1, 1), election(1, 1), election(2, 3), election(7, 2)):
        promise(promised | {state})
        store.write(state)
        promised = frozenset({state})
        promise(promised)


def check_vote(
    files: MemoryFileSystem, promised: frozenset[QuorumStateData | None]
) -> frozenset[QuorumStateData | None]:
    """Open the store after a crash: the promised vote is there, and the replica may vote. The state found stays."""
    recovered = QuorumStateStore.open(files, DIRECTORY, has_log=False).recovered
    assert recovered.may_vote
    assert recovered.state in promised
    assert (recovered.origin is QuorumStateOrigin.FRESH) == (recovered.state is None)
    return frozenset({recovered.state})


@pytest.mark.parametrize("crashes", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_crash_forgets_no_vote(crashes: int) -> None:
    """After every crash, and one during recovery, the last reported vote is known, or the one in progress."""
    start = MemoryFileSystem(((DIRECTORY, None, False),))
    counts = enumerate_crashes(vote, check_vote, start=start, promised=frozenset({None}), crashes=crashes)
    print(f"vote: {counts}")
    assert counts.is_complete


class WithoutSync:
    """A file system that does not sync what it should: the fault that the enumeration is there to find."""

    def __init__(self, files: MemoryFileSystem, path_end: str) -> None:
        self._files = files
        self._path_end = path_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def sync_directory(self, directory: str) -> None:
        if not directory.endswith(self._path_end):
            self._files.sync_directory(directory)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        file = self._files.open(path, create=create)
        if path.endswith(self._path_end):
            file.sync = lambda: None  # type: ignore[method-assign]
        return file


WITHOUT_DIRECTORY_SYNC: Final = ("begin_a_log", "roll", "freeze_a_snapshot", "truncate_across_segments")


@pytest.mark.parametrize(
    ("path_end", "name"),
    [
        (".log", "append_and_flush"),
        (".log", "truncate_in_a_segment"),
        (".checkpoint.part", "freeze_a_snapshot"),
        ("recovery-point.tmp", "truncate_in_a_segment"),
        *[pytest.param(DIRECTORY, name, marks=pytest.mark.slow) for name in WITHOUT_DIRECTORY_SYNC],
    ],
)
def test_a_sync_that_is_left_out_is_found(path_end: str, name: str) -> None:
    """Each sync of a file or directory that the log depends on is needed: without it, some scenario fails."""
    before, story = LIFE[name]
    prepared = MemoryFileSystem()
    promised = lived(before, prepared)

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        story(LogStory(cast("MemoryFileSystem", WithoutSync(files, path_end)), promise, promised))

    with pytest.raises((AssertionError, RaftLogError)):
        enumerate_crashes(scenario, check_log, start=prepared, promised=promised)
