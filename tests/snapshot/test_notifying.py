# SPDX-License-Identifier: Apache-2.0
"""Telling others of a snapshot once it is one."""

from typing import NoReturn

import pytest

from raftlog.errors import SnapshotFrozenError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter

ID = OffsetAndEpoch(42, 3)


def test_it_calls_back_once_after_a_freeze() -> None:
    """When the callback is called the snapshot is there, and a second freeze does not call it again."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    told: list[tuple[OffsetAndEpoch, bytes]] = []
    writer = NotifyingRawSnapshotWriter(
        MemoryRawSnapshotWriter(snapshots, ID), lambda snapshot_id: told.append((snapshot_id, snapshots[ID]))
    )
    writer.append(b"data")
    assert told == []
    writer.freeze()
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()
    writer.close()
    assert told == [(ID, b"data")]


def test_without_a_freeze_nothing_is_called() -> None:
    """A snapshot that was aborted, or whose freeze is refused, makes no callback."""
    told: list[OffsetAndEpoch] = []
    writer = NotifyingRawSnapshotWriter(MemoryRawSnapshotWriter({}, ID), told.append)
    writer.close()
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()
    assert told == []


def test_what_the_callback_raises_is_raised() -> None:
    """An error of the callback reaches who froze the snapshot, which stays frozen."""

    def refuse(_: OffsetAndEpoch) -> None:
        raise KeyError

    writer = NotifyingRawSnapshotWriter(MemoryRawSnapshotWriter({}, ID), refuse)
    with pytest.raises(KeyError):
        writer.freeze()
    assert writer.is_frozen


def test_a_freeze_may_be_refused() -> None:
    """An error of the check is raised, nothing is frozen, and there is no callback."""
    told: list[OffsetAndEpoch] = []
    snapshots: dict[OffsetAndEpoch, bytes] = {}

    def refuse() -> NoReturn:
        raise KeyError

    writer = NotifyingRawSnapshotWriter(MemoryRawSnapshotWriter(snapshots, ID), told.append, on_freeze=refuse)
    with pytest.raises(KeyError):
        writer.freeze()
    assert (writer.is_frozen, snapshots, told) == (False, {}, [])
