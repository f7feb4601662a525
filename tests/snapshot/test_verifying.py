# SPDX-License-Identifier: Apache-2.0
"""Installing a snapshot that comes in chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError, IncompleteSnapshotError, SnapshotFrozenError, SnapshotPositionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.verifying import VerifyingRawSnapshotWriter
from tests.snapshot.snapshot_bytes import ID, written

SNAPSHOT = written([b"one", b"two"], [b"three"])


def begun() -> tuple[VerifyingRawSnapshotWriter, dict[OffsetAndEpoch, bytes]]:
    """Begin a snapshot; return its writer and where it will be."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    return VerifyingRawSnapshotWriter(MemoryRawSnapshotWriter(snapshots, ID)), snapshots


@given(st.sets(st.integers(1, len(SNAPSHOT) - 1)))
def test_chunks_of_any_size_make_the_snapshot(cuts: set[int]) -> None:
    """However the bytes are divided, adjacent chunks give the snapshot."""
    writer, snapshots = begun()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(SNAPSHOT)], strict=True):
        writer.append_at(start, memoryview(SNAPSHOT)[start:end])
    writer.freeze()
    assert snapshots == {ID: SNAPSHOT}


@given(st.integers(-1, len(SNAPSHOT) + 9))
def test_a_chunk_elsewhere_is_refused(position: int) -> None:
    """A chunk is taken only where the bytes written end: one that came late or twice changes nothing."""
    writer, snapshots = begun()
    writer.append_at(0, SNAPSHOT[:50])
    if position != 50:
        with pytest.raises(SnapshotPositionError):
            writer.append_at(position, SNAPSHOT[position:])
    writer.append_at(50, SNAPSHOT[50:])
    writer.freeze()
    assert snapshots == {ID: SNAPSHOT}


@pytest.mark.parametrize("end", [0, 1, 99, len(SNAPSHOT) - 75, len(SNAPSHOT) - 1])
def test_an_incomplete_snapshot_is_not_frozen(end: int) -> None:
    """Bytes that end early are refused and removed, without a callback."""
    inner, snapshots = begun()
    told: list[OffsetAndEpoch] = []
    writer = NotifyingRawSnapshotWriter(inner, told.append)
    writer.append(SNAPSHOT[:end])
    with pytest.raises(IncompleteSnapshotError):
        writer.freeze()
    assert (snapshots, told, writer.is_frozen) == ({}, [], False)
    with pytest.raises(SnapshotFrozenError):
        writer.append(SNAPSHOT[end:])
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()


def test_a_damaged_snapshot_is_not_frozen() -> None:
    """A byte that was changed in transit is found before it can be used."""
    writer, snapshots = begun()
    writer.append(SNAPSHOT.replace(b"two", b"tWo"))
    with pytest.raises(DecodeError):
        writer.freeze()
    assert snapshots == {}


def test_the_snapshot_of_another_epoch_is_not_frozen() -> None:
    """A whole snapshot under an id of another epoch is refused."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    writer = VerifyingRawSnapshotWriter(MemoryRawSnapshotWriter(snapshots, OffsetAndEpoch(42, 4)))
    writer.append(SNAPSHOT)
    with pytest.raises(DecodeError, match="snapshot-epoch"):
        writer.freeze()
    assert snapshots == {}


def test_a_frozen_snapshot_stays() -> None:
    """A second freeze is refused, and does not remove the frozen snapshot."""
    writer, snapshots = begun()
    writer.append(SNAPSHOT)
    writer.freeze()
    with pytest.raises(SnapshotFrozenError, match="frozen"):
        writer.freeze()
    writer.close()
    assert snapshots == {ID: SNAPSHOT}
