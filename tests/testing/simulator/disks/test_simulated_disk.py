# SPDX-License-Identifier: Apache-2.0
"""A simulated disk fails as planned, once, says so, and counts what has struck."""

import contextlib
import random
from collections import Counter

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.simulator.choices import ReplayedChoices, SeededChoices
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS, SimulatedDisk

CALM = ReplayedChoices({})


def disk_with_a_file(data: bytes = b"0123456789") -> tuple[SimulatedDisk, Counter[str]]:
    """Return a disk with a durable file, and the counter of its faults."""
    counts: Counter[str] = Counter()
    disk = SimulatedDisk(1, counts)
    file = disk.files.open("file", create=True)
    file.append(data)
    file.sync()
    disk.files.sync_directory(".")
    return disk, counts


def use(file: MemoryFile) -> None:
    """Read, write and sync a file."""
    file.read_at(0, 1)
    file.append(b"x")
    file.sync()


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_strikes_once(kind: str) -> None:
    """It is raised by an operation of its kind, and counted; a full disk stays full until there is room."""
    disk, counts = disk_with_a_file()
    disk.plan_error(kind, CALM)
    file = disk.files.open("file")
    with pytest.raises(OutOfSpaceError if kind == "disk-full" else StorageError):
        use(file)
    if kind != "disk-full":
        use(file)
    assert counts == {kind: 1}
    assert disk.has_failed
    disk.forget_faults()
    assert disk.has_failed == (kind == "disk-full")
    disk.free()
    file.append(b"y")
    file.sync()
    assert not disk.has_failed


def test_a_full_disk_stays_full_through_a_crash() -> None:
    """And another plan replaces the first one."""
    disk, counts = disk_with_a_file()
    disk.plan_error("disk-full", CALM)
    disk.plan_error("disk-full", CALM)
    disk.crash(CALM, is_torn=False)
    with pytest.raises(OutOfSpaceError):
        disk.files.open("file").append(b"x")
    assert counts["disk-full"] == 1
    disk.free()
    disk.files.open("file").append(b"x")


@pytest.mark.parametrize("seed", range(8))
def test_a_full_disk_has_room_for_a_part_of_a_write(seed: int) -> None:
    """It is found full in the middle of a write: 100 bytes for each operation that had room before."""
    disk, _ = disk_with_a_file()
    disk.plan_error("disk-full", SeededChoices(random.Random(seed)))
    file = disk.files.open("file")
    size = file.size()
    is_full = False
    while not is_full:
        try:
            file.append(bytes(1000))
        except OutOfSpaceError:
            is_full = True
    whole, part = divmod(file.size() - size, 1000)
    assert part == 100 * whole


@pytest.mark.parametrize("kind", MISREADS)
def test_a_read_returns_wrong_bytes_once(kind: str) -> None:
    """Old bytes, or those of another place; the next read is right again."""
    disk, counts = disk_with_a_file(b"a" * 512 + b"b" * 512)
    disk.crash(CALM, is_torn=False)
    disk.files.open("file").write_at(0, b"new")
    disk.plan_misread(kind, CALM)
    assert disk.may_mislead
    file = disk.files.open_for_reads("file")
    assert bytes(file.read_at(0, 0)) == b""  # It asks the disk for nothing.
    position = 0 if kind == "stale-read" else 512
    assert bytes(file.read_at(position, 3)) == (b"aaa" if kind == "stale-read" else b"new")
    assert bytes(file.read_at(0, 3)) == b"new"
    assert (counts, disk.has_failed, disk.may_mislead) == ({kind: 1}, True, False)


def test_a_witness_reads_quietly() -> None:
    """In the block nothing strikes; after it, everything does that was planned."""
    disk, counts = disk_with_a_file()
    disk.plan_error("read-error", CALM)
    disk.plan_misread("stale-read", CALM)
    file = disk.files.open_for_reads("file")
    with disk.quietly():
        assert bytes(file.read_at(0, 10)) == b"0123456789"
    assert counts == {}
    with pytest.raises(StorageError):
        file.read_at(0, 10)
    assert bytes(file.read_at(0, 10)) == b""
    assert counts == {"read-error": 1, "stale-read": 1}


@pytest.mark.parametrize("done", [1, 2, 3])
def test_work_is_cut(done: int) -> None:
    """So many operations are done, and no later one."""
    disk, _ = disk_with_a_file(b"")
    disk.fail_after(done)
    with contextlib.suppress(StorageError):
        file = disk.files.open("file")
        file.append(b"a")
        file.append(b"b")
    disk.crash(CALM, is_torn=False)
    assert disk.files.contents()["file"] == b"ab"[: done - 1]


def test_a_calm_crash_loses_nothing_and_others_lose_what_was_not_synced() -> None:
    """What was synced is there after every crash."""
    found = set()
    for seed in range(20):
        disk, _ = disk_with_a_file()
        disk.files.open("file").append(b"unsynced")
        disk.crash(SeededChoices(random.Random(seed)) if seed else CALM, is_torn=seed % 2 == 0)
        found.add(disk.files.contents()["file"])
        assert seed or found == {b"0123456789unsynced"}
    assert b"0123456789" in found
    assert all(each.startswith(b"0123456789") for each in found)
