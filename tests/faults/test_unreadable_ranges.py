# SPDX-License-Identifier: Apache-2.0
"""A disk does not give a block of a file back: what it gives is served and kept, and the rest is said to be missing."""

from collections.abc import Iterator
from typing import Final

import pytest

from raftlog.errors import StorageError
from raftlog.records.files.file_names import FileKind
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.reading.readable_bytes import BLOCK_SIZE
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.faults.log_story import (
    DIRECTORY,
    History,
    contents,
    data_batch,
    end_of,
    extended,
    fetch,
    leader_batch,
    part,
)
from tests.file_logs import install_snapshot, kill, make_snapshot, overwrite
from tests.unreadable_files import UnreadableFiles

EPOCHS_NAME: Final = FileKind.LEADER_EPOCH_CHECKPOINT.value
CONFIG: Final = LogConfig(segment_size_bytes=5 * BLOCK_SIZE)
HISTORY: Final[History] = extended(
    (), leader_batch(1), *[data_batch(1, 1500)] * 20, leader_batch(2), *[data_batch(2, 700)] * 9
)
END: Final = end_of(HISTORY)


def written(start_offset: int = 0) -> MemoryFileSystem:
    """Return a log of three segments with a snapshot, which was closed; it may start there."""
    files = MemoryFileSystem()
    log = FileLog.open(files, DIRECTORY, CONFIG)
    fetch(log, HISTORY)
    snapshot_id = make_snapshot(log, 14, 1)
    if start_offset:
        assert log.delete_before_snapshot(snapshot_id)
    log.close()
    return files


def blocks(files: MemoryFileSystem, suffix: str) -> Iterator[tuple[str, range]]:
    """Return each block of each file with a suffix: a byte in it."""
    for path, data in files.contents().items():
        if path.endswith(suffix):
            for block in range(0, len(data), BLOCK_SIZE):
                position = min(block + 100, len(data) - 1)
                yield path, range(position, position + 1)


@pytest.mark.parametrize("is_kafkas", [False, True])
def test_a_block_of_a_segment(*, is_kafkas: bool) -> None:
    """The log serves what is before the block, is whole once a leader has sent the rest, and keeps the file."""
    source = written()
    if is_kafkas:
        for name in (RECOVERY_POINT_NAME, FLUSH_MARK_NAME):
            source.remove(f"{DIRECTORY}/{name}")
    cases = list(blocks(source, ".log"))
    assert len(cases) > 8
    for path, positions in cases:
        files = UnreadableFiles(source, {path: positions})
        log = FileLog.open(files, DIRECTORY, CONFIG)
        assert log.quarantine is not None
        end = log.end_offset.offset
        assert contents(log) == part(HISTORY, 0, end)
        is_last = (path, positions) == cases[-1]
        assert log.quarantine.durable_end_offset == (end + 1 if is_kafkas and is_last else END)
        fetch(log, HISTORY)
        log.flush()
        assert log.quarantine is None
        kept = [data for name, data in files.contents().items() if ".damaged-" in name]
        assert source.contents()[path] in kept
        later = {name: data for name, data in source.contents().items() if name.endswith(".log") and name > path}
        assert all(data in kept for data in later.values())
        again = FileLog.open(kill(files), DIRECTORY, CONFIG)
        assert (again.quarantine, contents(again)) == (None, list(HISTORY))


def test_a_block_of_an_index() -> None:
    """The file is rebuilt, or not needed: all records are there."""
    source = written()
    for path, positions in blocks(source, "index"):
        log = FileLog.open(UnreadableFiles(source, {path: positions}), DIRECTORY, CONFIG)
        assert (log.quarantine, contents(log)) == (None, list(HISTORY))


@pytest.mark.parametrize("name", [RECOVERY_POINT_NAME, FLUSH_MARK_NAME, EPOCHS_NAME])
def test_the_durable_end_and_both_lists_of_epochs_must_be_known(name: str) -> None:
    """A log does not act as if one of the files said nothing: it does not open, and nothing is changed."""
    source = written()
    for path, positions in blocks(source, name):
        files = UnreadableFiles(source, {path: positions})
        with pytest.raises(StorageError, match=name):
            FileLog.open(files, DIRECTORY, CONFIG)
        assert files.contents() == source.contents()


def test_a_mark_that_cannot_be_read_just_now_hides_no_loss() -> None:
    """A disk that has lost synced records fails to read the only file that says so: the next open finds the loss."""
    source = written()
    with FileLog.open(source, DIRECTORY, CONFIG) as log:
        fetch(log, extended(HISTORY, data_batch(2, 700)))
        log.flush()
        source = kill(source)
    last = max(path for path in source.contents() if path.endswith(".log"))
    overwrite(source, last, len(source.contents()[last]) - 100, bytes(100))
    source.faults.append(Fault(Operation.READ, path_end=FLUSH_MARK_NAME))
    with pytest.raises(StorageError, match=FLUSH_MARK_NAME):
        FileLog.open(source, DIRECTORY, CONFIG)
    again = FileLog.open(source, DIRECTORY, CONFIG)
    assert again.quarantine is not None
    assert again.quarantine.durable_end_offset == END + 1


@pytest.mark.parametrize("name", [RECOVERY_POINT_NAME, EPOCHS_NAME])
def test_a_list_of_epochs_that_cannot_be_read_just_now_hides_no_wrong_epoch(name: str) -> None:
    """The epoch of the last batch has rotted, and one of two files that contradict it is not read: the next open is."""
    source = written()
    last = max(path for path in source.contents() if path.endswith(".log"))
    overwrite(source, last, len(source.contents()[last]) - len(HISTORY[-1]) + 12, (3).to_bytes(4))
    source.faults.append(Fault(Operation.READ, path_end=name))
    with pytest.raises(StorageError, match=name):
        FileLog.open(source, DIRECTORY, CONFIG)
    again = FileLog.open(source, DIRECTORY, CONFIG)
    assert again.quarantine is not None
    assert (again.quarantine.first_bad_offset, again.quarantine.durable_end_offset) == (END - 1, END)


@pytest.mark.parametrize("start_offset", [0, 14])
def test_a_block_of_a_snapshot(start_offset: int) -> None:
    """It is not listed. Where it is needed the log is in quarantine; and all is well once the disk gives it back."""
    source = written(start_offset)
    ((path, positions),) = blocks(source, ".checkpoint")
    files = UnreadableFiles(source, {path: positions})
    log = FileLog.open(files, DIRECTORY, CONFIG)
    assert log.snapshot_ids == ()
    assert (log.quarantine is None) == (start_offset == 0)
    log.close()
    for data in source.contents().values():
        is_rewritten = b"recovery-point" in data or data.startswith(b"RLFLUSH")
        assert data in files.contents().values() or is_rewritten
    again = FileLog.open(UnreadableFiles(files, {}), DIRECTORY, CONFIG)
    assert again.quarantine is None
    assert len(again.snapshot_ids) == 1
    assert contents(again) == part(HISTORY, again.start_offset, END)
    assert again.start_offset <= start_offset


@pytest.mark.parametrize("is_first", [True, False], ids=["from its start on", "after the last sound batch"])
def test_a_snapshot_replaces_no_log_that_cannot_be_read(*, is_first: bool) -> None:
    """What cannot be read may be whole: the log does not open, and all is there once the disk gives it back."""
    source = written(14 if is_first else 0)
    if not is_first:
        with FileLog.open(source, DIRECTORY, CONFIG) as log:
            make_snapshot(log, END - 1, 2)
    paths = sorted(path for path in source.contents() if path.endswith(".log"))
    path = paths[0] if is_first else paths[-1]
    size = 1 if is_first else len(source.contents()[path])
    files = UnreadableFiles(source, {path: range(size)})
    with pytest.raises(StorageError, match=rf"{path}: read .* failed: .*; the snapshot .* would take the place of"):
        FileLog.open(files, DIRECTORY, CONFIG)
    assert {**files.contents(), **source.contents()} == files.contents()
    log = FileLog.open(UnreadableFiles(files, {}), DIRECTORY, CONFIG)
    assert log.quarantine is None
    assert contents(log) == part(HISTORY, log.start_offset, END)
    assert log.start_offset == (14 if is_first else 0)


def test_an_operator_gives_up_a_segment_that_cannot_be_read() -> None:
    """Under another name it is lost, so that the log opens, and is in quarantine until it has all again."""
    source = written(14)
    path = min(path for path in source.contents() if path.endswith(".log"))
    source.rename(path, f"{path}.unreadable")
    log = FileLog.open(source, DIRECTORY, CONFIG)
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset == END


def test_a_snapshot_ends_the_quarantine_of_a_log_without_one() -> None:
    """A later one from a leader takes the place of all, and what was there is kept."""
    source = written(14)
    ((path, positions),) = blocks(source, ".checkpoint")
    files = UnreadableFiles(source, {path: positions})
    log = FileLog.open(files, DIRECTORY, CONFIG)
    install_snapshot(log, END, 2)
    assert log.truncate_to_latest_snapshot()
    assert (log.quarantine, log.start_offset) == (None, END)
    kept = [data for name, data in files.contents().items() if ".damaged-" in name]
    assert all(data in kept for name, data in source.contents().items() if name.endswith(".log"))
