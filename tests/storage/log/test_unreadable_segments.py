# SPDX-License-Identifier: Apache-2.0
"""A disk that does not give some of a segment back: that is as bit rot, and all else of it is kept and read."""

import pytest

from raftlog.errors import StorageError
from raftlog.storage.reading.readable_bytes import BLOCK_SIZE
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.crash_points import enumerate_crashes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    expected,
    forget_durable_point,
    kill,
    open_log,
    records_of,
    segment_path,
    write_log,
)
from tests.unreadable_files import UnreadableFiles

LARGE = b"v" * 1000
SIZE = len(raft_batch(0, 1, 1, LARGE))
DEFAULTS = LogConfig()


def write_large_log(count: int = 40) -> MemoryFileSystem:
    """Return a closed log of one segment whose records are of some size."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    for offset in range(count):
        log.append_as_leader(raft_batch(offset, 1, 1, LARGE), 1)
    log.close()
    return file_system


def test_a_read_that_fails_once_is_no_damage() -> None:
    """Bytes that are read in the second attempt, in pieces, are checked like all others."""
    file_system = write_log(8)
    file_system.faults.append(Fault(Operation.READ, path_end=segment_path(3)))
    log = open_log(file_system)
    assert log.quarantine is None
    assert records_of(log) == expected(0, 8)


def test_a_segment_that_is_not_given_back_is_as_bit_rot() -> None:
    """It is quarantined, repaired by a follower, and kept as it is."""
    source = write_log(8)
    file_system = UnreadableFiles(source, {segment_path(3): range(1 << 40)})
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (3, 8)
    assert "input/output error" in log.quarantine.reason
    for each in range(3, 8):
        log.append_as_follower(raft_batch(each, 1), 1)
    log.flush()
    assert log.quarantine is None
    assert records_of(log) == expected(0, 8)
    assert file_system.contents()[segment_path(3, ".log.damaged-0-1")] == source.contents()[segment_path(3)]


@pytest.mark.parametrize("is_kafkas", [False, True])
@pytest.mark.parametrize("position", [0, 5 * SIZE, 5 * SIZE + 70, 39 * SIZE])
def test_all_that_can_be_read_is_kept(position: int, *, is_kafkas: bool) -> None:
    """A byte that cannot be read costs its block, and is never cut: the quarantine ends where the log did."""
    source = write_large_log()
    if is_kafkas:
        forget_durable_point(source)
    path = segment_path(0)
    whole = source.contents()[path]
    file_system = UnreadableFiles(source, {path: range(position, position + 1)})
    log = open_log(file_system, DEFAULTS)
    block = position - position % BLOCK_SIZE
    first_bad = block // SIZE
    is_last = block + BLOCK_SIZE > 39 * SIZE
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == log.end_offset.offset == first_bad
    assert log.quarantine.durable_end_offset == (first_bad + 1 if is_kafkas and is_last else 40)
    log.append_as_follower(raft_batch(first_bad, 1, 1, LARGE), 1)
    contents = file_system.contents()
    gap = bytes(max(0, min(block + BLOCK_SIZE, len(whole)) - max(block, first_bad * SIZE)))
    copied = whole[first_bad * SIZE : max(block, first_bad * SIZE)] + gap + whole[block + BLOCK_SIZE :]
    assert contents[f"{path}.damaged-{first_bad * SIZE}"] == copied
    kept = [path for path, data in contents.items() if ".damaged-" in path and data == whole]
    assert len(kept) == 1
    for offset in range(first_bad + 1, 40):
        log.append_as_follower(raft_batch(offset, 1, 1, LARGE), 1)
    log.flush()
    assert log.quarantine is None
    log.close()
    log = open_log(kill(file_system), DEFAULTS)
    assert records_of(log) == [raft_batch(offset, 1, 1, LARGE) for offset in range(40)]
    assert not any(path.endswith(".tmp") for path in file_system.contents())


def test_a_crash_while_a_file_is_set_aside_ends_in_quarantine() -> None:
    """Whatever is there then, the log knows how far it was durable, and the whole file is there under some name."""
    source = write_large_log(8)
    path = segment_path(0)
    whole = source.contents()[path]

    def scenario(file_system: MemoryFileSystem, promise: object) -> None:
        log = open_log(file_system, DEFAULTS)
        log.append_as_follower(raft_batch(log.end_offset.offset, 1, 1, LARGE), 1)

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        bad = {each: range(5000, 5001) for each, data in file_system.contents().items() if data == whole}
        assert len(bad) == 1
        log = open_log(UnreadableFiles(file_system, bad), DEFAULTS)
        assert log.quarantine is not None
        assert log.quarantine.durable_end_offset == 8

    file_system = UnreadableFiles(source, {path: range(5000, 5001)})
    assert enumerate_crashes(scenario, check, start=file_system).is_complete


def test_unreadable_bytes_end_the_sound_part() -> None:
    """A disk that gets worse while a file is set aside ends the log; zeros never replace sound bytes."""
    file_system = UnreadableFiles(write_large_log(), {segment_path(0): range(20_000, 20_001)})
    log = open_log(file_system, DEFAULTS)
    end = log.end_offset.offset
    file_system.unreadable(segment_path(0), range(5000, 20_001))
    with pytest.raises(StorageError):
        log.append_as_follower(raft_batch(end, 1, 1, LARGE), 1)
    with pytest.raises(StorageError):
        log.flush()
    again = open_log(kill(file_system), DEFAULTS)
    assert again.quarantine is not None
    assert again.end_offset.offset == BLOCK_SIZE // SIZE
    assert records_of(again) == [raft_batch(offset, 1, 1, LARGE) for offset in range(BLOCK_SIZE // SIZE)]
