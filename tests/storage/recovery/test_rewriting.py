# SPDX-License-Identifier: Apache-2.0
"""Startup rewrites exactly the unsynced bytes, in place and checked, and nothing after a close."""

import contextlib
from typing import Final

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery import rewriting
from raftlog.testing.file_system.crash_states import CrashModel, PossibleStates
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.faults.log_story import CONFIG, DIRECTORY, LogStory, Promised, data_batch, end_of, leader_batch

SEGMENT: Final = f"{DIRECTORY}/00000000000000000000.log"


def a_log(*, flushed: int, more: int = 0) -> MemoryFileSystem:
    """Return a disk with a log of so many batches of one record that were flushed, and more of them that were not."""
    files = MemoryFileSystem(((DIRECTORY, None, False),))
    story = LogStory(files, lambda value: None, Promised())
    story.append(leader_batch(1), *[data_batch(1)] * (flushed - 1))
    story.flush()
    story.append(*[data_batch(1)] * more)
    return files


def writes(files: MemoryFileSystem, path_end: str = ".log") -> list[str]:
    """Return what is written to segments while the log is opened, and nothing else is in the list of steps."""
    files.steps.clear()
    FileLog.open(files, DIRECTORY, CONFIG)
    steps = [step for step in files.steps if step.operation is Operation.WRITE and step.path.endswith(path_end)]
    return [step.detail for step in steps if not step.detail.startswith("1 bytes at")]  # That is the length.


@pytest.mark.parametrize("more", [0, 1, 2])
def test_records_above_the_durable_point_are_rewritten(more: int) -> None:
    """From the batch at the durable point on, to the end, in place; nothing where the log ends there."""
    files = a_log(flushed=3, more=more)
    whole = files.contents()[SEGMENT]
    start = len(a_log(flushed=3).contents()[SEGMENT])
    assert writes(files) == ([f"{len(whole) - start} bytes at {start}"] if more else [])
    assert files.contents()[SEGMENT] == whole
    assert {state.contents()[SEGMENT] for state in files.crash_states()} == {whole}


def test_a_cleanly_closed_log_is_trusted() -> None:
    """After a close in order no byte is rewritten, and no name is written again."""
    files = a_log(flushed=3, more=1)
    FileLog.open(files, DIRECTORY, CONFIG).close()
    assert writes(files) == []
    renamed = [step.path for step in files.steps if step.operation is Operation.RENAME]
    assert renamed == [f"{DIRECTORY}/raftlog-recovery-point.tmp"]


def test_a_log_that_grew_after_it_was_closed_is_not_trusted() -> None:
    """Bytes that another program has appended to a closed log are rewritten."""
    files = a_log(flushed=3)
    FileLog.open(files, DIRECTORY, CONFIG).close()
    data = data_batch(1)(3)
    files.open(SEGMENT).append(data)
    assert writes(files) == [f"{len(data)} bytes at {len(files.contents()[SEGMENT]) - len(data)}"]


def test_all_segments_above_the_durable_point_are_rewritten() -> None:
    """A directory without a durable point, as Kafka leaves it, has all its segments rewritten, once."""
    files = MemoryFileSystem(((DIRECTORY, None, False),))
    story = LogStory(files, lambda value: None, Promised())
    story.append(leader_batch(1), data_batch(1, 900), data_batch(1, 900), data_batch(1))
    story.flush()
    for name in ("raftlog-recovery-point", "raftlog-flush-mark"):
        files.remove(f"{DIRECTORY}/{name}")
    segments = {path: data for path, data in files.contents().items() if path.endswith(".log")}
    assert len(segments) == 4
    assert writes(files) == [f"{len(data)} bytes at 0" for data in segments.values()]
    assert writes(files) == []


def test_it_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is larger than a batch or the limit, and all of them together are the tail."""
    files = a_log(flushed=1, more=7)
    whole, size = files.contents()[SEGMENT], len(data_batch(1)(1))
    for limit in (1, size - 1, size, size + 1, 3 * size):
        monkeypatch.setattr(rewriting, "_PIECE_SIZE", limit)
        copy = files.settled()
        copy.remove(f"{DIRECTORY}/raftlog-recovery-point")
        copy.remove(f"{DIRECTORY}/raftlog-flush-mark")
        pieces = [tuple(map(int, each.replace(" bytes at", "").split())) for each in writes(copy)]
        assert sum(count for count, _ in pieces) == len(whole)
        assert [at for _, at in pieces] == [sum(count for count, _ in pieces[:index]) for index in range(len(pieces))]
        assert max(count for count, _ in pieces) <= max(limit, size, len(leader_batch(1)(0)))
        assert copy.contents()[SEGMENT] == whole


@pytest.mark.parametrize(
    ("operation", "is_full"),
    [
        (Operation.WRITE, False),
        (Operation.WRITE, True),
        (Operation.SYNC, False),
        (Operation.SYNC, True),
        (Operation.READ, False),
        (Operation.RENAME, False),
        (Operation.SYNC_DIRECTORY, False),
    ],
)
def test_a_failure_meanwhile_is_reported_and_leaves_the_log_openable(operation: Operation, is_full: bool) -> None:
    """Whichever operation fails at a start, it is a StorageError, or harmless, and the next start finds everything."""
    whole = FileLog.open(a_log(flushed=2, more=2), DIRECTORY, CONFIG).end_offset.offset
    for number in range(100):
        files = a_log(flushed=2, more=2)
        fault = Fault(operation, skip=number, is_full=is_full)
        files.faults.append(fault)
        with contextlib.suppress(OutOfSpaceError if is_full else StorageError):
            FileLog.open(files, DIRECTORY, CONFIG)
        if not fault.is_spent:
            assert number > 0
            return
        log = FileLog.open(files, DIRECTORY, CONFIG)
        assert (log.end_offset.offset, log.quarantine) == (whole, None)
        assert (log.flushed_offset, log.recovery.quarantine) == (whole, None)


def test_bytes_that_change_between_the_scan_and_the_write_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that the cache dropped after the scan is read from the disk; bytes that are bad there are not written."""
    files = a_log(flushed=2, more=2)
    end = len(files.contents()[SEGMENT])
    real = rewriting._rewrite_batches

    def losing_pages(segment: object, position: int) -> None:
        files.open(SEGMENT).write_at(end - 5, b"gone!")
        files.steps.clear()
        real(segment, position)  # type: ignore[arg-type]

    monkeypatch.setattr(rewriting, "_rewrite_batches", losing_pages)
    with pytest.raises(StorageError, match="was sound has changed"):
        FileLog.open(files, DIRECTORY, CONFIG)
    assert files.contents()[SEGMENT].endswith(b"gone!")
    monkeypatch.undo()
    assert FileLog.open(files, DIRECTORY, CONFIG).end_offset.offset == 3


def test_sound_batches_before_damage_are_rewritten_too() -> None:
    """A log in quarantine reports its readable records as flushed, so they are; the damage stays byte for byte."""
    files = a_log(flushed=2, more=3)
    size = len(data_batch(1)(1))
    data = files.contents()[SEGMENT]
    position = len(data) - 2 * size
    files.open(SEGMENT).write_at(position + 70, bytes([data[position + 70] ^ 1]))
    damaged = files.contents()[SEGMENT]
    assert writes(files) == [f"{size} bytes at {position - size}"]
    log = FileLog.open(files, DIRECTORY, CONFIG)
    assert log.quarantine is not None
    assert log.flushed_offset == 3
    assert files.contents()[SEGMENT] == damaged


def test_a_recovery_point_is_durable_before_anything_is_cut_by_it() -> None:
    """A truncation fails when it takes back what was durable; what a start cuts by that is not missed after a crash."""
    files = a_log(flushed=4).settled()
    log = FileLog.open(files, DIRECTORY, CONFIG)
    files.faults.append(Fault(Operation.SYNC_DIRECTORY))
    with pytest.raises(StorageError):
        log.truncate_to(2)
    file = files.open(SEGMENT)
    file.write_at(file.size() - 3, b"?")
    points = []
    files.on_change = lambda: points.append(files.image())
    assert FileLog.open(files, DIRECTORY, CONFIG).end_offset.offset == 3
    files.on_change = None
    for image in points:
        for state in PossibleStates(image, CrashModel(max_choices=64)):
            after = MemoryFileSystem(state)
            if b"?" not in after.contents()[SEGMENT]:  # It is cut.
                assert FileLog.open(after, DIRECTORY, CONFIG).quarantine is None


def test_only_names_in_doubt_are_written_again() -> None:
    """A segment in which nothing is durable, and each snapshot, gets its name again; a segment below does not."""
    files = MemoryFileSystem(((DIRECTORY, None, False),))
    story = LogStory(files, lambda value: None, Promised())
    story.append(leader_batch(1), data_batch(1, 900))
    story.flush()
    story.snapshot(1)
    story.log._segments.rolling().do()
    files.steps.clear()
    FileLog.open(files, DIRECTORY, CONFIG)
    renamed = [step.path.removeprefix(f"{DIRECTORY}/") for step in files.steps if step.operation is Operation.RENAME]
    new_segment, snapshot = f"{end_of(story.history):020}.log", "00000000000000000001-0000000001.checkpoint"
    for name in (new_segment, snapshot):
        assert renamed.count(name) == renamed.count(f"{name}.swap") == 1
    assert "00000000000000000000.log" not in renamed


def test_a_truncation_whose_sync_failed_is_not_taken_back_by_a_crash() -> None:
    """The length that the next process reads and reports is on the disk."""
    files = a_log(flushed=4).settled()
    log = FileLog.open(files, DIRECTORY, CONFIG)
    files.faults.append(Fault(Operation.SYNC, path_end=".log"))
    with pytest.raises(StorageError):
        log.truncate_to(2)
    cut = files.contents()[SEGMENT]
    assert FileLog.open(files, DIRECTORY, CONFIG).end_offset.offset == 2
    assert {state.contents()[SEGMENT] for state in files.crash_states()} == {cut}


@pytest.mark.parametrize("path_end", [".log", ".checkpoint"])
def test_a_startup_that_died_between_two_renames_is_continued(path_end: str) -> None:
    """A file that was on its way from one name to the other is found by the next start."""
    files = MemoryFileSystem(((DIRECTORY, None, False),))
    story = LogStory(files, lambda value: None, Promised())
    story.append(leader_batch(1), data_batch(1))
    story.snapshot(2)
    files.remove(f"{DIRECTORY}/raftlog-recovery-point")
    files.remove(f"{DIRECTORY}/raftlog-flush-mark")
    files.faults.append(Fault(Operation.RENAME, path_end=f"{path_end}.swap"))
    story.log._release()
    snapshot = files.contents()[f"{DIRECTORY}/00000000000000000002-0000000001.checkpoint"]
    if path_end == ".log":
        files.remove(f"{DIRECTORY}/00000000000000000002-0000000001.checkpoint")
    with pytest.raises(StorageError):
        FileLog.open(files, DIRECTORY, CONFIG)
    assert any(path.endswith(f"{path_end}.swap") for path in files.contents())
    log = FileLog.open(files, DIRECTORY, CONFIG)
    assert log.end_offset.offset == 2
    assert not any(path.endswith(".swap") for path in files.contents())
    if path_end == ".checkpoint":
        assert log.snapshot_ids[-1] == OffsetAndEpoch(2, 1)
        assert files.contents()[f"{DIRECTORY}/00000000000000000002-0000000001.checkpoint"] == snapshot


def test_the_sync_comes_after_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rewritten segment is synced before the flush mark or the recovery point covers it."""
    files = a_log(flushed=2, more=1)
    files.steps.clear()
    FileLog.open(files, DIRECTORY, CONFIG)
    steps = list(files.steps)
    written = next(index for index, step in enumerate(steps) if _is(step, Operation.WRITE, SEGMENT))
    synced = next(index for index, step in enumerate(steps) if index > written and _is(step, Operation.SYNC, SEGMENT))
    told = [index for index, step in enumerate(steps) if _is(step, Operation.RENAME, "raftlog-recovery-point.tmp")]
    assert written < synced < told[-1]


def _is(step: Step, operation: Operation, path_end: str) -> bool:
    return step.operation is operation and step.path.endswith(path_end)
