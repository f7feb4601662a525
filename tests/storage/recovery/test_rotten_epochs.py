# SPDX-License-Identifier: Apache-2.0
"""Epochs that rot: no CRC covers the one in a batch's header, so two files that list epochs are asked."""

import pytest

from raftlog.file_system import join
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    cut,
    fill,
    kill,
    make_snapshot,
    open_log,
    overwrite,
    segment_path,
    told,
)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("bit", [0, 1, 16, 31])
def test_an_epoch_that_rots_is_damage_though_no_crc_covers_it(offset: int, bit: int) -> None:
    """A batch whose epoch is neither what the recovery point says nor what the checkpoint says is not served."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 4, epoch=2)
    fill(log, 4, epoch=4)
    log.close()
    epoch = (2 if offset < 4 else 4) ^ 1 << bit
    path, position = segment_path(offset // 3 * 3), offset % 3 * BATCH_SIZE
    overwrite(file_system, path, position + 12, epoch.to_bytes(4, "big"))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (offset, 8)
    assert log.last_fetched_epoch == (0 if offset == 0 else 2 if offset <= 4 else 4)


@pytest.mark.parametrize(("offset", "first_bad"), [(3, 5), (4, 4)], ids=["the snapshot replaces the log", "within it"])
@pytest.mark.parametrize("bit", [0, 1, 2, 31])
def test_epochs_that_a_lost_log_start_brings_back_have_two_witnesses(offset: int, first_bad: int, bit: int) -> None:
    """A damaged log whose recovery point is lost begins earlier again: the checkpoint gets the epochs from there on."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    for epoch, count in ((1, 3), (2, 1), (3, 1), (5, 3)):
        fill(log, count, epoch)
    assert log.delete_before_snapshot(make_snapshot(log, 5, 3))
    log.flush()
    file_system = kill(file_system)
    cut(file_system, segment_path(6), BATCH_SIZE)
    open_log(file_system)
    file_system = kill(file_system)
    file_system.remove(join(DIRECTORY, "raftlog-recovery-point"))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.start_offset, log.quarantine.first_bad_offset) == (3, 7)
    assert file_system.contents()[join(DIRECTORY, "leader-epoch-checkpoint")] == b"0\n3\n2 3\n3 4\n5 5\n"
    assert any("it began at offset 5, and the log begins at 3" in str(each) for each in told(log, ActionKind.REBUILT))
    file_system = kill(file_system)
    assert not told(open_log(file_system), ActionKind.REBUILT)
    epoch = (offset - 1) ^ 1 << bit
    overwrite(file_system, segment_path(3), (offset - 3) * BATCH_SIZE + 12, epoch.to_bytes(4, "big"))
    quarantine = open_log(file_system).quarantine
    assert quarantine is not None
    assert (quarantine.first_bad_offset, quarantine.durable_end_offset) == (first_bad, 8)


@pytest.mark.parametrize("first", [5, 4])
def test_a_checkpoint_that_begins_early_stays_in_a_damaged_log(first: int) -> None:
    """What it says of later batches is not replaced, even if it is wrong: it may be what contradicts one."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    fill(log, 5, epoch=5)
    log.close()
    cut(file_system, segment_path(6), BATCH_SIZE)
    path = join(DIRECTORY, "leader-epoch-checkpoint")
    file_system.remove(path)
    file_system.open(path, create=True).append(b"0\n1\n%d 3\n" % first)
    assert open_log(file_system).quarantine is not None
    assert file_system.contents()[path] == b"0\n2\n1 0\n%d 3\n" % first
