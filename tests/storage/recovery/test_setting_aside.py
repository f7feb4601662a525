# SPDX-License-Identifier: Apache-2.0
"""Setting damage aside, step by step: what is durable before what, how much is copied, and that no file stays open."""

import os
from pathlib import Path

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem, join
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import DurablePoint, RecoveryPoint
from raftlog.storage.segments import damaged_files
from raftlog.storage.segments.damaged_files import set_aside_after
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_indexes import IndexLimits
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import SMALL_SEGMENTS, fill, segment_path

GOOD = raft_batch(0, 1) + raft_batch(1, 1)


def _segment(file_system: FileSystem, directory: str, base_offset: int, data: bytes) -> LogSegment:
    """A scanned segment whose file holds these bytes."""
    file = file_system.open(join(directory, f"{base_offset:020}.log"), create=True)
    file.append(data)
    file.close()
    segment = LogSegment(file_system, directory, base_offset, IndexLimits())
    segment.scan(0, EpochWitnesses(), 0)
    return segment


def _memory() -> MemoryFileSystem:
    return MemoryFileSystem((("log", None, False),))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 201, 350])
def test_all_of_the_damage_is_kept_and_reported(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The damage is copied piece by piece, unchanged, under the reported name; without damage there is no copy."""
    monkeypatch.setattr(damaged_files, "_COPY_SIZE", 100)
    file_system, damage = _memory(), bytes(range(1, 256)) * 2
    segment = _segment(file_system, "log", 0, GOOD + damage[:size])
    later = _segment(file_system, "log", 9, b"later")
    paths = set_aside_after(file_system, "log", segment, (later,))
    kept = [file_system.contents()[path] for path in paths]
    assert kept == [damage[:size]] * (size > 0) + [b"later"]
    assert set(file_system.contents()) == {segment_path(0), *paths}
    assert file_system.contents()[segment_path(0)] == GOOD


def test_half_a_copy_of_an_earlier_try_is_not_continued() -> None:
    """The rest of a copy after a crash is replaced: the bytes that are there now are kept."""
    file_system = _memory()
    segment = _segment(file_system, "log", 0, GOOD + b"damage")
    file_system.open(f"{segment_path(0)}.damaged-{len(GOOD)}.tmp", create=True).append(b"half a copy of something")
    (path,) = set_aside_after(file_system, "log", segment, ())
    assert file_system.contents()[path] == b"damage"


def test_each_name_is_durable_before_the_next_step() -> None:
    """The copy has its name for good before a later segment loses its own, and that before the segment is cut."""
    file_system = _memory()
    segment = _segment(file_system, "log", 0, GOOD + b"damage")
    later = [_segment(file_system, "log", base_offset, b"later") for base_offset in (5, 9)]
    start = file_system.step_count
    set_aside_after(file_system, "log", segment, tuple(later))
    steps = [step for step in file_system.steps if step.number > start]
    wanted = {Operation.RENAME, Operation.SYNC_DIRECTORY, Operation.TRUNCATE, Operation.SYNC}
    order = [(step.operation, step.path.rpartition("/")[2]) for step in steps if step.operation in wanted]
    copy = f"{0:020}.log.damaged-{len(GOOD)}.tmp"
    assert order == [
        (Operation.SYNC, copy),
        (Operation.RENAME, copy),
        (Operation.SYNC_DIRECTORY, "log"),
        (Operation.RENAME, f"{9:020}.log"),
        (Operation.RENAME, f"{5:020}.log"),
        (Operation.SYNC_DIRECTORY, "log"),
        (Operation.TRUNCATE, f"{0:020}.log"),
        (Operation.SYNC, f"{0:020}.log"),
    ]


# Files that stay open

needs_descriptors = pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="the platform does not list descriptors")


def _open_files() -> int:
    """How many files are open; directories may stay so for the next sync."""
    found = [Path("/dev/fd", each) for each in os.listdir("/dev/fd")]
    return len([each for each in found if each.is_file()])


@needs_descriptors
def test_no_file_of_a_log_stays_open(tmp_path: Path) -> None:
    """Open, rolled, truncated, cleaned of segments and closed: as many files are open as before."""
    before = _open_files()
    for _ in range(2):
        log = FileLog.open(LocalFileSystem(), str(tmp_path / "log"), SMALL_SEGMENTS)
        fill(log, 10)
        log.truncate_to(log.end_offset.offset - 5)
        log.close()
        log.close()
        assert _open_files() == before


@needs_descriptors
@pytest.mark.parametrize("damage", [b"", b"damage"])
def test_no_file_stays_open_that_was_set_aside(tmp_path: Path, damage: bytes) -> None:
    """Nor the copy, nor the later segments, whose names are others now."""
    before, file_system = _open_files(), LocalFileSystem()
    segment = _segment(file_system, str(tmp_path), 0, GOOD + damage)
    later = _segment(file_system, str(tmp_path), 9, b"later")
    set_aside_after(file_system, str(tmp_path), segment, (later,))
    assert _open_files() == before + 1
    segment.close()
    segment.close()
    assert _open_files() == before


@needs_descriptors
def test_no_file_stays_open_where_a_log_cannot_be_opened(tmp_path: Path) -> None:
    """The flush mark is closed, whatever prevents the recovery point from being written."""
    (tmp_path / "raftlog-recovery-point.tmp").mkdir()
    before = _open_files()
    with pytest.raises(StorageError):
        DurablePoint(LocalFileSystem(), str(tmp_path), RecoveryPoint())
    assert (tmp_path / "raftlog-flush-mark").exists()
    assert _open_files() == before
