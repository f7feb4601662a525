# SPDX-License-Identifier: Apache-2.0
"""A sync fails on a real ext4 whose backing disk is full, and the log is opened again on the same boot."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.other_processes import started

pytestmark = pytest.mark.slow

TOOLS: Final = ("mkfs.ext4", "losetup", "mount", "umount", "filefrag", "fallocate")
MIB: Final = 1024 * 1024
BLOCK: Final = 4096


def run(*command: str) -> str:
    """Run a command, and return what it prints; skip the test where this machine does not allow it."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


@attrs.frozen
class Disk:
    """An ext4 on a loop device, whose image lies in a file system in memory that can be filled.

    Attributes:
        store: where the image lies.
        place: where it is mounted.
        device: of the loop.
    """

    store: Path
    place: Path
    device: str

    def fail_writes_after(self, path: str, position: int) -> None:
        """Make all later writes to a file after a position fail, although its blocks are allocated.

        The image loses the space for these blocks, which is then filled; journal and inodes keep theirs.
        """
        first = position // BLOCK + 1
        listed = run("filefrag", "-v", f"-b{BLOCK}", path)
        for extent in re.findall(r"^\s*\d+:\s*(\d+)\.\.\s*(\d+):\s*(\d+)\.\.", listed, re.MULTILINE):
            start, end, place = map(int, extent)
            skipped = max(0, first - start)
            if skipped <= end - start:
                offset, length = (place + skipped) * BLOCK, (end - start + 1 - skipped) * BLOCK
                span = ("--offset", str(offset), "--length", str(length))
                run("fallocate", "--punch-hole", *span, str(self.store / "image"))
        self.fill()

    def fill(self) -> None:
        """Fill the backing disk of the image."""
        with (self.store / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(64 * 1024))

    def free(self) -> None:
        """Give the room back."""
        (self.store / "filler").unlink()

    def lose_the_cache(self) -> None:
        """Mount it again, as after a crash of the machine that has written back what it could."""
        subprocess.run(["umount", self.place], check=True, timeout=HANG_S)
        subprocess.run(["mount", "-t", "ext4", self.device, self.place], check=True, timeout=HANG_S)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Provide an ext4 of 48 MiB that is completely backed by disk space; skip if it cannot be made."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root and {', '.join(missing) or 'loop devices'}")
    store, place = tmp_path / "store", tmp_path / "mounted"
    store.mkdir()
    place.mkdir()
    with contextlib.ExitStack() as undo:
        run("mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(store))
        undo.callback(lambda: subprocess.run(["umount", store], check=False))
        with (store / "image").open("wb") as image:
            image.truncate(48 * MIB)
        # Inodes and journal get their room now: it is the log's bytes that shall not find any.
        options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        run("mkfs.ext4", "-q", "-b", str(BLOCK), "-E", options, str(store / "image"))
        content = (store / "image").read_bytes()
        with (store / "image").open("r+b") as image:
            image.write(content)  # Each of its blocks has its room now, those of zeros too.
        device = run("losetup", "--find", "--show", str(store / "image"))
        undo.callback(lambda: subprocess.run(["losetup", "-d", device], check=False))
        run("mount", "-t", "ext4", device, str(place))
        undo.callback(lambda: subprocess.run(["umount", place], check=False))
        yield Disk(store, place, device)


FIRST_PROCESS: Final = """
import sys
from raftlog import FileLog, LocalFileSystem, StorageError
from raftlog.testing.contracts.made_batches import raft_batch

log = FileLog.open(LocalFileSystem(), sys.argv[1])
log.initialize_leader_epoch(1)
for _ in range(10):
    log.append_as_leader(raft_batch(log.end_offset.offset, 1), 1)
log.flush()
place = log.end_offset.segment_position
print(place.base_offset, place.position, flush=True)
sys.stdin.readline()
for _ in range(150):
    log.append_as_leader(raft_batch(log.end_offset.offset, 1, value=b"v" * 4096), 1)
try:
    log.flush()
except StorageError as error:
    print("failed at", log.flushed_offset, flush=True)
else:
    print("flushed", log.flushed_offset, flush=True)
sys.stdin.readline()
"""
NEXT_PROCESS: Final = """
import sys
from raftlog import FileLog, LocalFileSystem, StorageError

try:
    log = FileLog.open(LocalFileSystem(), sys.argv[1])
except StorageError as error:
    print("refused")
else:
    print("flushed", log.flushed_offset, log.quarantine)
sys.stdout.flush()
"""


def fail_a_flush(disk: Disk, directory: str) -> bool:
    """Flush 10 batches, let the disk fail after them, append 150 more, flush, and kill the process.

    Returns:
        Whether the second flush failed: a loop device may silently lose writes without backing space.
    """
    command = [sys.executable, "-c", FIRST_PROCESS, directory]
    with started(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        base_offset, position = map(int, process.stdout.readline().split())
        disk.fail_writes_after(f"{directory}/{base_offset:020}.log", position)
        process.stdin.write("\n")
        process.stdin.flush()
        told: str = process.stdout.readline()
        process.kill()
    assert told in ("failed at 10\n", "flushed 160\n")
    return told == "failed at 10\n"


def start(directory: str) -> str:
    """Open the log in another process, which is then killed, and return its report."""
    command = [sys.executable, "-c", NEXT_PROCESS, directory]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True)
    return done.stdout.strip()


def test_the_report_after_a_failed_sync_is_on_the_disk(disk: Disk) -> None:
    """The next process on this boot reports only records as flushed that exist after the disk is mounted again."""
    for attempt in range(8):
        directory = f"{disk.place}/log-{attempt}"
        if fail_a_flush(disk, directory):
            break
        disk.free()
    else:
        pytest.skip("this loop device tells of no failure")
    assert start(directory) == "flushed 10 None"
    disk.free()
    assert start(directory) == "flushed 10 None"
    disk.lose_the_cache()
    assert start(directory) == "flushed 10 None"
