# SPDX-License-Identifier: Apache-2.0
"""What is measured of the log, its snapshots and its control records, and the least that each of them costs.

Files are made in the folder of the inputs, so that all of them are on one file system.
"""

import contextlib
import functools
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.snapshot.file_raw import FileRawSnapshotReader, FileRawSnapshotWriter
from raftlog.snapshot.reader import verify_snapshot
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.benchmarks import machine
from tests.benchmarks.elections import VOTER_IDS
from tests.benchmarks.inputs import EPOCH, Batches, Row
from tests.benchmarks.measure import Timing

_SNAPSHOT_ID: Final = OffsetAndEpoch(1, EPOCH)
_TIME_MS: Final = 1_780_000_000_000
_BLOCK: Final = 1024 * 1024
_LOOK_UPS: Final = 100_000
_FILES: Final = 4
"""Logs, and files beside them, one after the other: how long a sync takes depends on where on the disk a file lies."""


def append(source: Batches) -> Timing:
    """Append batches to a new log, as its leader; and write the same bytes to a file."""
    return _in_turns(source, _append, lambda file, batch: file.write(batch))


def follow(source: Batches) -> Timing:
    """Append batches to a new log, as a follower; and write the same bytes to a file."""
    return _in_turns(
        source, lambda log, batch: log.append_as_follower(batch, EPOCH), lambda file, batch: file.write(batch)
    )


def append_and_sync(source: Batches) -> Timing:
    """Append batches to a new log, and wait for the disk after each; and the same with a file."""

    def append_one(log: FileLog, batch: bytes) -> None:
        _append(log, batch)
        log.flush()

    def write_one(file: BinaryIO, batch: bytes) -> None:
        file.write(batch)
        os.fdatasync(file.fileno())

    return _in_turns(source, append_one, write_one)


def _append(log: FileLog, batch: bytes) -> None:
    log.append_as_leader(batch, EPOCH)


def _in_turns(
    source: Batches, ours: Callable[[FileLog, bytes], object], theirs: Callable[[BinaryIO, bytes], object]
) -> Timing:
    """Do both with each batch, and count the medians for all: a disk has bad moments, and a log a slow start.

    Each goes first half of the time, since the second one finds the bytes in the processor's cache.
    """
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(_FILES):
        with _new_log(source.folder) as log, _new_file(source.folder) as file:
            steps = (functools.partial(ours, log), spent[0]), (functools.partial(theirs, file), spent[1])
            for index, batch in enumerate(source.batches):
                for step, seconds in steps if index % 2 == 0 else reversed(steps):
                    seconds.append(_seconds(step, batch))
    wall, beside = (statistics.median(each) * len(each) for each in spent)
    return Timing(len(spent[0]), source.size_bytes * _FILES, wall, wall, beside)


def _seconds(step: Callable[[bytes], object], batch: bytes) -> float:
    start = time.perf_counter()
    step(batch)
    return time.perf_counter() - start


def _new_file(folder: Path) -> BinaryIO:
    return cast("BinaryIO", tempfile.TemporaryFile(dir=folder, buffering=0))


@contextlib.contextmanager
def _new_log(folder: Path) -> Iterator[FileLog]:
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        log = FileLog.open(LocalFileSystem(), directory)
        with contextlib.closing(log):
            yield log


def take_over(path: Path) -> Timing:
    """Open a directory with nothing but a segment: read from the disk, with indexes and epochs made and written."""
    with _directory_of(path) as directory:
        return _open(path, directory)


def recover(path: Path) -> Timing:
    """Open a log whose process was killed after a flush."""
    with _directory_of(path) as live, _directory_of(path) as killed:
        with contextlib.closing(FileLog.open(LocalFileSystem(), live)):
            for each in Path(live).iterdir():
                if each.name != path.name:
                    shutil.copy(each, killed)
        return _open(path, killed)


def reopen(path: Path) -> Timing:
    """Open a log that was closed in order."""
    with _directory_of(path) as directory:
        _open(path, directory)
        return _open(path, directory)


@contextlib.contextmanager
def _directory_of(path: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        Path(directory, path.name).hardlink_to(path)
        yield directory


def _open(path: Path, directory: str) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    log = FileLog.open(LocalFileSystem(), directory)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    with contextlib.closing(log):
        assert log.recovery.quarantine is None
        return Timing(log.end_offset.offset, path.stat().st_size, cpu, wall)


def read_control_records(log: bytes) -> int:
    """Let a state machine read a log; equal voter sets must be one object."""
    machine = _machine_of(log)
    assert len({id(entry.value) for entry in machine.voter_sets()}) <= len(VOTER_IDS)
    return machine.next_offset  # Each batch has one record.


def look_up_voter_sets(log: bytes) -> Timing:
    """Ask a state machine that has read a log for the voter set at offsets in no order."""
    machine = _machine_of(log)
    offsets = random.Random(0).choices(range(machine.next_offset), k=_LOOK_UPS)
    voter_set_at_offset = machine.voter_set_at_offset
    wall, cpu = time.perf_counter(), time.process_time()
    for offset in offsets:
        voter_set_at_offset(offset)
    return Timing(_LOOK_UPS, 0, time.process_time() - cpu, time.perf_counter() - wall)


def _machine_of(log: bytes) -> KRaftControlRecordStateMachine:
    machine = KRaftControlRecordStateMachine(VoterSet.of([]))
    machine.handle_no_snapshot()
    for run in split_runs(BufferSource(log)):
        assert isinstance(run, BatchRun)
        machine.handle_run(run)
    return machine


def write_snapshot(source: Batches) -> Timing:
    """Write a snapshot of records that are as large as the batches."""
    with tempfile.TemporaryDirectory(dir=source.folder) as directory:
        return _write_snapshot(source, directory)


def verify(source: Batches) -> Timing:
    """Verify a snapshot of records that are as large as the batches."""
    with tempfile.TemporaryDirectory(dir=source.folder) as directory:
        _write_snapshot(source, directory)
        with FileRawSnapshotReader(LocalFileSystem(), directory, _SNAPSHOT_ID) as reader:
            wall, cpu = time.perf_counter(), time.process_time()
            summary = verify_snapshot(reader, _SNAPSHOT_ID)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Timing(summary.record_count, summary.size_bytes, cpu, wall)


def _write_snapshot(source: Batches, directory: str) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    raw = FileRawSnapshotWriter(LocalFileSystem(), directory, _SNAPSHOT_ID, "0")
    kraft_version = KRaftVersion.KRAFT_VERSION_0
    with RecordsSnapshotWriter(
        raw, _TIME_MS, last_contained_log_timestamp=_TIME_MS, kraft_version=kraft_version
    ) as writer:
        for value in source.batches:
            writer.append([value], _TIME_MS)
        size_bytes = writer.freeze(_TIME_MS)
    return Timing(len(source.batches), size_bytes, time.process_time() - cpu, time.perf_counter() - wall)


def write_all_and_sync(source: Batches) -> int:
    """Write the same bytes to a file, and wait for the disk in the end."""
    with _new_file(source.folder) as file:
        file.writelines(source.batches)
        os.fdatasync(file.fileno())
    return len(source.batches)


def read_all_and_check(path: Path) -> int:
    """Read a file and compute the CRC-32C of each MiB."""
    with path.open("rb", buffering=0) as file:
        return sum(machine.check_memory(block) for block in iter(lambda: file.read(_BLOCK), b""))


def accumulate(appends: list[list[Row]]) -> int:
    """Append records to an accumulator, and drain it."""
    accumulator = BatchAccumulator(EPOCH, 0, linger_ms=None)
    for rows in appends:
        accumulator.append(EPOCH, [row[2] or b"" for row in rows], _TIME_MS)
        if accumulator.needs_drain(_TIME_MS):
            _release(accumulator)
    _release(accumulator)
    return sum(map(len, appends))


def _release(accumulator: BatchAccumulator) -> None:
    for batch in accumulator.drain():
        batch.release()


def encode_as_one(appends: list[list[Row]]) -> int:
    """Encode the same records as one batch."""
    builder = RecordBatchBuilder(0)
    for rows in appends:
        builder.extend([(_TIME_MS, None, value) for _, _, value in rows])
    builder.build()
    return sum(map(len, appends))
