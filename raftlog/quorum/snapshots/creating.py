# SPDX-License-Identifier: Apache-2.0
"""Snapshots that the application writes of its state at a committed offset. One is written at a time.

It is written and frozen beside the work on the log, because verifying a large one takes long.

Source: KafkaRaftClient#createSnapshot. Differs: DECISIONS.md 56.
"""

import attrs

from raftlog.errors import InvalidSnapshotIdError, SnapshotError
from raftlog.log.decisions import check_new_snapshot_id, is_superseded
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.snapshot_effects import AbandonSnapshot, BeginSnapshot, FreezeSnapshot
from raftlog.quorum.snapshot_work import SnapshotCreation


def create_snapshot(replica: LocalReplica, end_offset: int) -> int | None:
    """Begin a snapshot, and return its number; None if there is one already, or the log starts there or above.

    Raises:
        SnapshotError: another one is being written.
        InvalidSnapshotIdError: the offset is not known to be committed, or is below the latest snapshot's.
    """
    work = replica.snapshots
    if work.creation is not None:
        raise SnapshotError(f"snapshot {work.creation.snapshot_id} is being written")
    log = replica.log.state
    if end_offset <= log.start_offset:
        return None
    if end_offset > replica.committed_offset:
        raise InvalidSnapshotIdError(f"offset {end_offset} is above the high watermark {replica.committed_offset}")
    snapshot_id = OffsetAndEpoch(end_offset, log.epochs.epoch_for_offset(end_offset - 1) or 0)
    committed = attrs.evolve(log, high_watermark=replica.committed_offset)
    if not check_new_snapshot_id(committed, snapshot_id, lambda _: True):
        return None
    number = replica.outbox.new_number()
    replica.outbox.tell(BeginSnapshot(number, snapshot_id, replica.wall_ms))
    work.creation = SnapshotCreation(number, snapshot_id)
    return number


def freeze_snapshot(replica: LocalReplica, number: int) -> None:
    """Have the snapshot finished.

    Raises:
        ValueError: it is not the one that is being written, or is being finished already.
    """
    creation = _creation(replica, number)
    if creation.is_freezing:
        raise ValueError(f"snapshot {number} is being frozen already")
    replica.snapshots.creation = creation._replace(is_freezing=True)
    replica.outbox.tell(FreezeSnapshot(number, replica.wall_ms))


def abandon_snapshot(replica: LocalReplica, number: int) -> None:
    """Have what was written removed.

    Raises:
        ValueError: it is not the one that is being written, or it is being finished.
    """
    if _creation(replica, number).is_freezing:
        raise ValueError(f"snapshot {number} is being frozen")
    replica.snapshots.creation = None
    replica.outbox.tell(AbandonSnapshot(number))


def note_frozen(replica: LocalReplica, number: int) -> None:
    """List the snapshot, and trim the histories of control records to it, unless the log starts above it by now.

    Raises:
        ValueError: it is not the one that is being finished.
    """
    creation = _creation(replica, number)
    if not creation.is_freezing:
        raise ValueError(f"snapshot {number} was not to be frozen")
    replica.snapshots.creation = None
    if not is_superseded(replica.log.state, creation.snapshot_id):
        replica.log = replica.log.with_snapshot(creation.snapshot_id)


def note_refused(replica: LocalReplica, number: int) -> None:
    """Forget the snapshot, which the log has refused or removed.

    Raises:
        ValueError: it is not the one that is being written.
    """
    _creation(replica, number)
    replica.snapshots.creation = None


def _creation(replica: LocalReplica, number: int) -> SnapshotCreation:
    creation = replica.snapshots.creation
    if creation is None or creation.number != number:
        raise ValueError(f"{number} is not the snapshot that is being written: {creation}")
    return creation
