# SPDX-License-Identifier: Apache-2.0
"""What comes free by removing files is what the file system had allocated for them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import MissingFileError, StorageError
from raftlog.tools.free.disk_usage import DiskFile, FreedBytes, device_of, disk_file, files_below


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=12))
def test_a_file_comes_free_with_its_last_name(removed: list[tuple[int, int]]) -> None:
    """Three files have one, two and three names: each counts once, when all of its names are removed, in any order."""
    names = [(inode, number) for inode, number in removed if number <= inode]
    ledger, gone, total = FreedBytes(), set[tuple[int, int]](), 0
    for inode, number in names:
        gone.add((inode, number))
        total += ledger.remove([DiskFile(f"{inode}/{number}", 1, 512 << inode, (1, inode), inode)])
        whole = [each for each in range(1, 4) if sum(key[0] == each for key in gone) == each]
        assert total == sum(512 << each for each in whole)


def test_the_allocated_bytes_count(tmp_path: Path) -> None:
    """A hole takes no room, and preallocated room counts although the file is shorter."""
    hole, full = tmp_path / "hole", tmp_path / "full"
    with hole.open("wb") as file:
        file.truncate(10 << 20)
    full.write_bytes(bytes(10000))
    with full.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        file.truncate(1 << 20)
    holes, preallocated = disk_file(str(hole)), disk_file(str(full))
    assert holes is not None
    assert preallocated is not None
    assert (holes.size_bytes, holes.allocated_bytes) == (10 << 20, 0)
    assert preallocated.allocated_bytes >= 1 << 20


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A symbolic link is no file, neither alone nor below a directory; what it leads to is not counted."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below/file").write_bytes(b"x")
    (tmp_path / "below/link").symlink_to(tmp_path)
    assert disk_file(str(tmp_path / "below/link")) is None
    assert disk_file(str(tmp_path)) is None
    assert [Path(file.path).name for file in files_below(str(tmp_path))] == ["file"]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A missing file, one below a file, and a directory that cannot be listed have typed errors with their paths."""
    (tmp_path / "file").touch()
    with pytest.raises(MissingFileError, match="missing"):
        disk_file(str(tmp_path / "missing"))
    with pytest.raises(StorageError, match="below"):
        disk_file(str(tmp_path / "file/below"))
    with pytest.raises(StorageError, match="file"):
        list(files_below(str(tmp_path / "file")))
    with pytest.raises(StorageError, match="missing"):
        device_of(str(tmp_path / "missing"))
    assert device_of(str(tmp_path)) == tmp_path.stat().st_dev
