# SPDX-License-Identifier: Apache-2.0
"""Each operation of a log fails once, one after the other, and then the machine crashes."""

import contextlib
from typing import Any, Final

import attrs
import pytest

from raftlog.errors import OutOfSpaceError, RaftLogError, StorageError
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.file_system.faults import Fault
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.faults.log_life import LIFE, Story, lived
from tests.faults.log_story import CONFIG, DIRECTORY, LogStory, Promised, check_log, contents, leader_batch

FAULTS: Final = {
    "the disk fails": Fault(),
    "the disk fails for good": Fault(is_lasting=True),
    "the disk is full": Fault(is_full=True, written_bytes=70),
    "the disk stays full": Fault(is_full=True, is_lasting=True),
}
SLOW_LIFE: Final = (
    "append_and_flush",
    "roll",
    "truncate_in_a_segment",
    "freeze_a_snapshot",
    "start_at_a_snapshot",
    "install_a_snapshot",
)
MOST_OPERATIONS: Final = 1000


def fail_one_by_one(name: str, fault: Fault) -> int:
    """Let a part of a log's life fail at its first operation, at the second, and so on; return how many checks ran."""
    before, story = LIFE[name]
    prepared = MemoryFileSystem()
    at_first = lived(before, prepared)
    checks = 0
    for number in range(MOST_OPERATIONS):
        files = prepared.settled()
        files.faults.append(attrs.evolve(fault, skip=number))
        told: list[Any] = [at_first]
        try:
            story(LogStory(files, told.append, at_first))
        except RaftLogError:
            checks += check_all_states(files, told[-1], number)
            continue
        checks += check_all_states(files, told[-1], number)
        if files.step_count <= number:
            return checks
    raise AssertionError("there is no end to it")


def check_all_states(files: MemoryFileSystem, promised: Promised, number: int) -> int:
    """Crash after a failure, and check what is left."""
    states = list(files.crash_states())
    for state in states:
        try:
            check_log(state, promised)
        except Exception as error:
            error.add_note(f"operation {number + 1} failed; the last ones were:")
            error.add_note("\n".join(map(str, list(files.steps)[-8:])))
            raise
    return len(states)


@pytest.mark.parametrize("what", ["the disk fails", "the disk is full"])
def test_a_failure_loses_and_invents_nothing(what: str) -> None:
    """Whichever operation fails while batches are appended and flushed, what was acknowledged is there afterwards."""
    print(f"append_and_flush, {what}: {fail_one_by_one('append_and_flush', FAULTS[what])} states")


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("name", SLOW_LIFE)
def test_a_failure_at_any_time_in_a_logs_life(name: str, what: str) -> None:
    """The same for other operations of a log, and for a disk that keeps failing."""
    print(f"{name}, {what}: {fail_one_by_one(name, FAULTS[what])} states")


@pytest.mark.parametrize("name", ["append_and_flush", "roll", "truncate_in_a_segment", "truncate_across_segments"])
def test_records_acknowledged_after_a_full_disk_are_missed_if_lost(name: str) -> None:
    """Whatever there was no room for, what is flushed afterwards is there after a crash, and damage in it is seen."""
    before, story = LIFE[name]
    prepared = MemoryFileSystem()
    at_first = lived(before, prepared)
    acknowledged = 0
    for number in range(MOST_OPERATIONS):
        files = prepared.settled()
        fault = Fault(is_full=True, written_bytes=70, skip=number)
        files.faults.append(fault)
        with contextlib.suppress(StorageError):
            go_on(LogStory(files, lambda value: None, at_first), story)
            acknowledged += 1
        if not fault.is_spent:
            break
    assert acknowledged > 3


def go_on(log_story: LogStory, story: Story) -> None:
    """Append and flush, whether or not there was room before; lose what is not durable, and then damage the batch."""
    log, files = log_story.log, log_story.file_system
    with contextlib.suppress(OutOfSpaceError):
        story(log_story)
    files.faults.clear()
    epoch = log.last_fetched_epoch + 1
    log.append_as_leader(leader_batch(epoch)(log.end_offset.offset), epoch)
    log.flush()
    end_offset, batches = log.end_offset.offset, contents(log)
    damaged = files.settled()
    crashed = FileLog.open(files.crash(lambda count: 0), DIRECTORY, CONFIG)
    assert (crashed.quarantine, contents(crashed)) == (None, batches)
    path = max(path for path in damaged.contents() if path.endswith(".log"))
    file = damaged.open(path)
    file.write_at(file.size() - 3, b"?")
    file.sync()
    found = FileLog.open(damaged, DIRECTORY, CONFIG)
    assert found.quarantine is not None
    assert found.quarantine.durable_end_offset == end_offset
