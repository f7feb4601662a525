# SPDX-License-Identifier: Apache-2.0
"""Wrong starts: what they take for sound, for torn, for lost, and what they believe of files beside the log."""

from typing import Any, Final

from raftlog import file_system
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.storage import directory_settling, log_directory, quorum_state_store, recovery
from raftlog.storage.epoch_witnesses import EpochWitnesses
from raftlog.storage.index_file import IndexFile, StoredIndex
from raftlog.storage.quorum_state_store import QuorumStateOrigin, QuorumStateStore, StoredQuorumState
from raftlog.storage.recovery import ScannedSegments
from raftlog.storage.recovery_point import StoredDurablePoint
from raftlog.storage.segment_scan import SegmentScan
from raftlog.testing.memory_file_system import MemoryFileSystem
from raftlog.uuid_text import ZERO_UUID, uuid_to_text
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

RECOVERY: Final = "tests/storage/test_recovery.py"
QUARANTINE: Final = "tests/storage/test_recovery_quarantine.py"
SETTLING: Final = "tests/storage/test_directory_settling.py"
STATE: Final = "tests/storage/test_quorum_state_store.py"
DIRECTORY: Final = "tests/storage/test_log_directory.py"
DAMAGE: Final = "tests/faults/test_byte_damage.py"


def _without_start(right: Wrong) -> Wrong:
    return lambda start, bases, start_offset, *more: right(start, bases, 0, *more)


def _trusting_the_end(right: Wrong) -> Wrong:
    return lambda scanned, durable_end_offset: right(scanned, 0 if scanned.problem is None else durable_end_offset)


def _stopping_at_a_bad_snapshot(start: Any) -> tuple[Any, ...]:
    ids = start._snapshots.snapshot_ids()
    for snapshot_id in ids:
        start._snapshots.verify(snapshot_id)
    return tuple(ids)


def _fresh_where_lost(right: Wrong) -> Wrong:
    def load_quorum_state(*arguments: Any, **keywords: Any) -> StoredQuorumState:
        found: StoredQuorumState = right(*arguments, **keywords)
        if found.origin is QuorumStateOrigin.LOST:
            return StoredQuorumState(QuorumStateOrigin.FRESH, None, False, found.problems)
        return found

    return load_quorum_state


def _in_memory_alone(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        store.state = state

    return write


def _forgetting_the_loss(right: Wrong) -> Wrong:
    def _store(store: Any, state: Any) -> None:
        store.may_vote = True
        right(store, state)

    return _store


def _of_any_epoch(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        store.state = None
        right(store, state)

    return write


def _copy_without_crc(right: Wrong) -> Wrong:
    def _read_copy(data: bytes) -> Any:
        match = quorum_state_store._COPY.fullmatch(data)
        if match is None:
            return right(data)
        return quorum_state_store._Copy(quorum_state_store._read_state(match[3]), int(match[2]))

    return _read_copy


def _in_place(right: Wrong) -> Wrong:
    def replace_file(files: Any, path: str, data: bytes) -> None:
        file = files.open(path, create=True)
        file.truncate(0)
        file.append(data)
        file.sync()
        file.close()
        files.sync_directory(file_system.parent_directory(path))

    return replace_file


def _without_directory_sync(right: Wrong) -> Wrong:
    def replace_file(files: Any, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        file_system.remove_if_there(files, temporary)
        file = files.open(temporary, create=True)
        file.append(data)
        file.sync()
        file.close()
        files.rename(temporary, path)

    return replace_file


def _kafkas_file_alone(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        right(store, state)
        for name in quorum_state_store.COPY_NAMES:
            file_system.replace_file(store._file_system, file_system.join(store._directory, name), b"")

    return write


def _without_directory_id(right: Wrong) -> Wrong:
    def write_quorum_state(state: Any) -> bytes:
        text: bytes = right(state)
        if state.voted_directory_id is None:
            return text
        return text.replace(uuid_to_text(state.voted_directory_id).encode(), uuid_to_text(ZERO_UUID).encode())

    return write_quorum_state


class _NoLock:
    def close(self) -> None:
        return None


MUTANTS: Final = (
    Mutant(
        "K2",
        "a vote that was given is there after a crash: the directory is synced before anybody is told",
        "KAFKA-10661",
        swapped(file_system, "replace_file", _without_directory_sync),
        (f"{STATE}::test_every_crash_keeps_the_vote",),
    ),
    Mutant(
        "K14",
        "the directory id of whom one voted for is kept",
        "KAFKA-16526",
        swapped(quorum_state_store, "write_quorum_state", _without_directory_id),
        (f"{STATE}::test_what_is_written_is_read",),
    ),
    Mutant(
        "K28",
        "a log that starts above 0 has a snapshot for what is below",
        "KAFKA-14240",
        swapped(recovery._Recovery, "_read_segments", _without_start),
        (f"{QUARANTINE}::test_log_start_without_a_snapshot_is_quarantined",),
    ),
    Mutant(
        "K28-unverified",
        "only a snapshot that verifies is listed",
        "KAFKA-15312",
        missing(SnapshotDirectory, "verify"),
        (f"{RECOVERY}::test_rotten_snapshot_is_set_aside_and_an_older_one_used",),
    ),
    Mutant(
        "R12",
        "a vote is on the disk before it is told",
        "PySyncObj 84",
        swapped(QuorumStateStore, "write", _in_memory_alone),
        (f"{STATE}::test_what_is_written_is_read",),
    ),
    Mutant(
        "R13",
        "the epoch does not fall",
        "PySyncObj 202",
        swapped(QuorumStateStore, "write", _of_any_epoch),
        (f"{STATE}::test_epochs_do_not_fall",),
    ),
    Mutant(
        "R13-vote",
        "there is one vote in an epoch",
        "PySyncObj 84",
        instead(quorum_state_store, "_may_follow", lambda state, before: True),
        (f"{STATE}::test_what_an_epoch_has_decided_stays",),
    ),
    Mutant(
        "W3-remembered",
        "a replica that has lost a vote does not forget that",
        "FileQuorumStateStore",
        swapped(QuorumStateStore, "_store", _forgetting_the_loss),
        (f"{STATE}::test_a_lost_vote_stays_lost",),
    ),
    Mutant(
        "W3-lost",
        "a replica with a log and no election state does not vote",
        "FileQuorumStateStore",
        swapped(quorum_state_store, "load_quorum_state", _fresh_where_lost),
        (f"{STATE}::test_a_log_without_a_state_does_not_vote",),
    ),
    Mutant(
        "W3-crc",
        "a flipped bit is no other vote",
        "FileQuorumStateStore",
        swapped(quorum_state_store, "_read_copy", _copy_without_crc),
        (f"{STATE}::test_a_flipped_bit_in_a_copy_is_found", f"{DAMAGE}::test_a_sample"),
    ),
    Mutant(
        "W3-one-copy",
        "one damaged file of three loses no vote",
        "FileQuorumStateStore",
        swapped(QuorumStateStore, "write", _kafkas_file_alone),
        (f"{STATE}::test_one_sound_file_is_enough",),
    ),
    Mutant(
        "R14",
        "a log that ends below its durable point has lost something",
        "PySyncObj 197",
        swapped(ScannedSegments, "judge", _trusting_the_end),
        (f"{QUARANTINE}::test_acknowledged_tail_that_is_missing_is_damage",),
    ),
    Mutant(
        "R14-mark",
        "the flush mark proves what was durable, ahead of the recovery point",
        "PySyncObj 197",
        instead_of_property(
            StoredDurablePoint,
            "durable_end_offset",
            lambda stored: stored.recovery_point and stored.recovery_point.durable_end_offset,
        ),
        (f"{QUARANTINE}::test_the_flush_mark_alone_proves_what_was_durable",),
    ),
    Mutant(
        "R17",
        "damage below the durable point is not cut",
        "Jepsen, NATS 2.12.1",
        missing(ScannedSegments, "judge"),
        (f"{QUARANTINE}::test_bit_rot_is_quarantined_wherever_it_is", f"{DAMAGE}::test_a_sample"),
    ),
    Mutant(
        "R17-behind",
        "a bad batch with a good one behind it is no torn tail",
        "LogSegment#recover",
        missing(SegmentScan, "_note_behind"),
        (f"{QUARANTINE}::test_a_good_batch_behind_a_bad_one_is_damage",),
    ),
    Mutant(
        "R26",
        "a small file is the old one or the new one after a crash",
        "etcd 3.5 post-mortem",
        swapped(file_system, "replace_file", _in_place),
        (f"{STATE}::test_every_crash_keeps_the_vote",),
    ),
    Mutant(
        "R29",
        "a start gets past a snapshot that is damaged",
        "camunda 7136",
        instead(recovery._Recovery, "_verified_snapshots", _stopping_at_a_bad_snapshot),
        (f"{RECOVERY}::test_rotten_snapshot_is_set_aside_and_an_older_one_used",),
    ),
    Mutant(
        "R9-directory",
        "a directory of another cluster, node or disk is refused",
        "openraft, dynamic membership",
        missing(log_directory, "_check_meta"),
        (f"{DIRECTORY}::test_somebody_elses_directory",),
    ),
    Mutant(
        "S-lock",
        "one owner has a directory at a time",
        "LogManager#lockLogDirs",
        instead(MemoryFileSystem, "lock", lambda *_: _NoLock()),
        (f"{DIRECTORY}::test_an_open_directory_is_held",),
    ),
    Mutant(
        "S-misdirected",
        "a sound batch that cannot stand where it stands is damage",
        "Bairavasundaram et al., FAST 2008",
        missing(SegmentScan, "_disorder"),
        (f"{QUARANTINE}::test_misdirected_write_is_damage_though_its_crc_holds",),
    ),
    Mutant(
        "S-epoch",
        "a flipped bit in an epoch, which no CRC covers, is found",
        "DefaultRecordBatch",
        instead(EpochWitnesses, "contradict", lambda *_: False),
        (f"{DAMAGE}::test_an_epoch_is_under_no_crc",),
    ),
    Mutant(
        "S-index",
        "an index that is not what the segment says is made anew",
        "LogSegment#sanityCheck",
        instead(IndexFile, "compare", lambda _: StoredIndex.EQUAL),
        (f"{RECOVERY}::test_wrong_and_missing_indexes_are_rebuilt",),
    ),
    Mutant(
        "S-names",
        "what a crash has left on its way in or out is settled",
        "LogLoader",
        instead(directory_settling, "settle_names", lambda *_: iter(())),
        (f"{SETTLING}::test_what_is_on_its_way_is_removed",),
    ),
)
