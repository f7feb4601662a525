# SPDX-License-Identifier: Apache-2.0
"""Formats and parses the names of snapshot files. ``raftlog.records.files.file_names`` shows them.

Source: Snapshots, SnapshotPath.
"""

from typing import Final, NamedTuple

from raftlog.errors import InvalidSnapshotIdError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileName, FileState, parse_file_name

BOOTSTRAP_SNAPSHOT_ID: Final = OffsetAndEpoch(0, 0)
"""The snapshot that formatting a directory writes; it covers no records. Source: Snapshots."""


class SnapshotName(NamedTuple):
    """The parts of a snapshot file's name.

    Attributes:
        snapshot_id: end offset (exclusive) and epoch.
        state: CURRENT for a frozen one, PART for one that is being written, DELETED for one that is about to be
            removed.
    """

    snapshot_id: OffsetAndEpoch
    state: FileState


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return the name of a frozen snapshot.

    Raises:
        InvalidSnapshotIdError: its end offset or epoch is negative or too large.
    """
    return _name(snapshot_id, FileState.CURRENT)


def partial_name(snapshot_id: OffsetAndEpoch, digits: str) -> str:
    """Return the name of a snapshot that is being written.

    Args:
        snapshot_id: end offset (exclusive) and epoch.
        digits: 1 to 20 digits that make the name unique among writers of this id.

    Raises:
        InvalidSnapshotIdError: its end offset or epoch is negative or too large, or the digits are not valid.
    """
    if not digits:
        raise InvalidSnapshotIdError(f"no digits for the name of a partial snapshot {snapshot_id}")
    return _name(snapshot_id, FileState.PART, digits)


def parse_snapshot_name(name: str) -> SnapshotName | None:
    """Parse a file's name, given without its folder; None if it is not that of a snapshot."""
    parsed = parse_file_name(name)
    if parsed is None or parsed.snapshot_id is None:
        return None
    return SnapshotName(parsed.snapshot_id, parsed.state)


def _name(snapshot_id: OffsetAndEpoch, state: FileState, digits: str = "") -> str:
    try:
        return str(FileName(FileKind.SNAPSHOT, state, snapshot_id=snapshot_id, random_digits=digits))
    except ValueError as error:
        raise InvalidSnapshotIdError(str(error)) from None
