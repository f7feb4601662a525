# SPDX-License-Identifier: Apache-2.0
"""The snapshots in the directory of a log."""

from pathlib import Path

import pytest

from raftlog.errors import IncompleteSnapshotError, MissingFileError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.local_file_system import LocalFileSystem
from tests.snapshot.snapshot_bytes import ID, written

SNAPSHOT = written([b"one", b"two"])
OTHERS = (
    "00000000000000000000.log",
    "00000000000000000000.log.deleted",
    "00000000000000000042.snapshot",
    "bootstrap.checkpoint",
    "leader-epoch-checkpoint",
    "quorum-state",
    "quorum-state.tmp",
    "42-3.checkpoint.part",
)
"""Files that are nobody's snapshots."""


def opened(path: Path) -> SnapshotDirectory:
    """Open a directory that has files of other kinds too."""
    for name in OTHERS:
        (path / name).write_bytes(b"other")
    return SnapshotDirectory(LocalFileSystem(), str(path))


def put(directory: SnapshotDirectory, snapshot_id: OffsetAndEpoch, data: bytes = SNAPSHOT) -> None:
    """Write a snapshot into a directory."""
    with directory.create(snapshot_id) as writer:
        writer.append(data)
        writer.freeze()


def test_frozen_snapshots_are_listed_oldest_first(tmp_path: Path) -> None:
    """Ids are in the order of their epochs, then offsets; parts and what is deleted are not there."""
    directory = opened(tmp_path)
    in_order = [OffsetAndEpoch(0, 0), OffsetAndEpoch(900, 1), OffsetAndEpoch(1000, 1), OffsetAndEpoch(50, 2)]
    for snapshot_id in (in_order[2], in_order[0], in_order[3], in_order[1]):
        put(directory, snapshot_id)
    (tmp_path / (snapshot_name(OffsetAndEpoch(7, 7)) + ".deleted")).touch()
    with directory.create(OffsetAndEpoch(8, 8)):
        assert list(directory.snapshot_ids()) == in_order


def test_clean_up_removes_what_is_no_snapshot(tmp_path: Path) -> None:
    """Parts, with digits and without, and files that Kafka renamed are removed; snapshots and all other files stay."""
    directory = opened(tmp_path)
    put(directory, ID)
    stem = snapshot_name(OffsetAndEpoch(7, 7)).removesuffix(".checkpoint")
    leftovers = [f"{stem}-123456789.checkpoint.part", f"{stem}.checkpoint.deleted", f"{stem}.checkpoint.part"]
    for name in leftovers:
        (tmp_path / name).write_bytes(b"left")
    assert list(directory.clean_up()) == leftovers
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*OTHERS, snapshot_name(ID)])
    assert directory.clean_up() == ()


def test_a_snapshot_is_read_and_verified(tmp_path: Path) -> None:
    """A frozen snapshot can be opened and verified."""
    directory = opened(tmp_path)
    put(directory, ID)
    with directory.open(ID) or pytest.fail("it is frozen") as reader:
        assert bytes(reader.read_at(0, reader.size())) == SNAPSHOT
    assert directory.verify(ID).record_count == 2


def test_a_snapshot_that_is_cut_off_is_listed_and_does_not_verify(tmp_path: Path) -> None:
    """Names say nothing of contents; the error names the file."""
    directory = opened(tmp_path)
    put(directory, ID, SNAPSHOT[:-1])
    assert directory.snapshot_ids() == (ID,)
    with pytest.raises(IncompleteSnapshotError) as caught:
        directory.verify(ID)
    assert caught.value.path == f"{tmp_path}/{snapshot_name(ID)}"


def test_a_snapshot_that_is_not_there(tmp_path: Path) -> None:
    """It cannot be opened, verified or deleted, and each says so in its way."""
    directory = opened(tmp_path)
    assert directory.open(ID) is None
    assert directory.delete(ID) is False
    with pytest.raises(MissingFileError):
        directory.verify(ID)


def test_a_reader_of_a_deleted_snapshot_continues(tmp_path: Path) -> None:
    """A deleted snapshot is removed at once, but stays complete for open readers."""
    directory = opened(tmp_path)
    put(directory, ID)
    with directory.open(ID) or pytest.fail("it is frozen") as reader:
        assert directory.delete(ID) is True
        assert directory.snapshot_ids() == ()
        assert bytes(reader.read_at(0, len(SNAPSHOT))) == SNAPSHOT
