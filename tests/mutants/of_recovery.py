# SPDX-License-Identifier: Apache-2.0
"""Wrong startups: what they take for sound, torn or lost, and which files beside the log they trust."""

import sys
from typing import Any, Final

import attrs

from raftlog import file_system
from raftlog.errors import StorageError
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch
from raftlog.records.batches import control_batch
from raftlog.records.limits import MIN_RECORD_SIZE
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.storage.local_file_system import LocalFile
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery import directory_settling, recovery_point, rewriting, startup
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.recovery.scanned_segments import ScannedSegments
from raftlog.storage.recovery.snapshot_takeover import SnapshotTakeover
from raftlog.storage.segments import segment_scan
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.index_file import IndexFile, StoredIndex
from raftlog.storage.segments.segment_indexes import SegmentIndexes
from raftlog.storage.segments.segment_list import SegmentList
from raftlog.storage.segments.segment_scan import FollowingBatches, SegmentScan
from raftlog.storage.state import log_directory
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

RECOVERY: Final = "tests/storage/recovery/test_startup.py"
DROPPED: Final = "tests/storage/recovery/test_dropped_cache.py"
UNREADABLE: Final = "tests/faults/test_unreadable_ranges.py"
QUARANTINE: Final = "tests/storage/recovery/test_startup_quarantine.py"
SETTLING: Final = "tests/storage/recovery/test_directory_settling.py"
STATE: Final = "tests/storage/state/test_quorum_state_store.py"
DIRECTORY: Final = "tests/storage/state/test_log_directory.py"
SCAN: Final = "tests/storage/segments/test_segment_scan.py"
CRASHES: Final = "tests/faults/test_crash_points.py"
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


def _if_bytes_had_held_as_many(right: Wrong) -> Wrong:
    def _note_after(scan: Any, positions: range, base_offset: int, delta: int, epoch: int) -> None:
        if base_offset - scan.next_offset <= (positions.start - scan.problem.position) // MIN_RECORD_SIZE:
            right(scan, positions, base_offset, delta, epoch)

    return _note_after


def _by_any_batch(batches: Any) -> Any:
    return max(batches.runs_end_offset, *(end_offset for _, end_offset in batches.claims.values()), 0)


def _whatever_it_says(scan: Any, positions: range, base_offset: int, delta: int, epoch: int) -> None:
    scan.sound_end_after = max(scan.sound_end_after or 0, base_offset + delta + 1)
    scan.sound_epoch_after = max(scan.sound_epoch_after, epoch)


def _torn_where_unreadable(right: Wrong) -> Wrong:
    def scan_segment(*arguments: Any) -> Any:
        scan = right(*arguments)
        if scan.problem is not None:
            scan.problem = attrs.evolve(scan.problem, may_be_torn=True)
        return scan

    return scan_segment


def _none_where_unreadable(right: Wrong) -> Wrong:
    def load_marks(*arguments: Any) -> Any:
        try:
            return right(*arguments)
        except StorageError:
            return ()

    return load_marks


def _missing_where_unreadable(right: Wrong) -> Wrong:
    def _epoch_checkpoint(recovery: Any) -> Any:
        try:
            return right(recovery)
        except StorageError as error:
            return None, str(error)

    return _epoch_checkpoint


def _whatever_was_read(right: Wrong) -> Wrong:
    def _restarted_log(recovery: Any, ahead: Any, scanned: Any, *arguments: Any) -> Any:
        scanned.failure = None
        return right(recovery, ahead, scanned, *arguments)

    return _restarted_log


def _without_report(right: Wrong) -> Wrong:
    def _repair(start: Any, *arguments: Any) -> None:
        right(start, *arguments)
        start._actions = [each for each in start._actions if each.kind is not ActionKind.CUT]

    return _repair


def _forgetting_the_start(right: Wrong) -> Wrong:
    return lambda start, stored, *more: right(start, attrs.evolve(stored, recovery_point=None), *more)


def _whatever_it_starts_at(right: Wrong) -> Wrong:
    return lambda snapshot_ids, start_offset, furthest: right(snapshot_ids, -1, furthest)


def _only_if_it_is_ahead(right: Wrong) -> Wrong:
    def snapshot_ahead(snapshot_ids: Any, start_offset: int, scanned: Any) -> Any:
        ahead = right(snapshot_ids, start_offset, scanned)
        return ahead if ahead is not None and ahead > scanned.furthest else None

    return snapshot_ahead


def _up_to_the_problem(scanned: ScannedSegments) -> OffsetAndEpoch:
    return OffsetAndEpoch(scanned.end_offset, scanned.last_epoch)


def _taking_from_the_front(right: Wrong) -> Wrong:
    def run(takeover: Any, scanned: Any, *arguments: Any) -> Any:
        scanned.sound.reverse()
        return right(takeover, scanned, *arguments)

    return run


def _without_taking_back(right: Wrong) -> Wrong:
    return lambda log, snapshot_id: right(log, snapshot_id)[1:]


def _cutting_from_the_front(right: Wrong) -> Wrong:
    def truncating(segments: Any, start: LogOffsetMetadata) -> Any:
        step = right(segments, start)

        def cut() -> None:
            for segment in [each for each in segments._segments[1:] if each.base_offset > start.offset]:
                segment.remove_files()
                segments._file_system.sync_directory(segments._directory)
            step.disk()

        return attrs.evolve(step, disk=cut)

    return truncating


def _making_alone(files: Any, directory: str) -> None:
    files.make_directory(directory)


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
        "K28",
        "a log that starts above 0 has a snapshot for what is below",
        "KAFKA-14240",
        swapped(startup._Recovery, "_read_segments", _without_start),
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
        "R14",
        "a log that ends below its durable point has lost something",
        "PySyncObj 197",
        swapped(ScannedSegments, "judge", _trusting_the_end),
        (f"{QUARANTINE}::test_acknowledged_tail_that_is_missing_is_damage",),
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
        "a bad batch with a good one after it is no torn tail",
        "LogSegment#recover",
        missing(SegmentScan, "_note_after"),
        (f"{QUARANTINE}::test_a_good_batch_after_a_bad_one_is_damage",),
    ),
    Mutant(
        "R17-dense",
        "a good batch after a bad one is no torn tail, however many records the bad one had",
        "LogSegment#recover",
        swapped(SegmentScan, "_note_after", _if_bytes_had_held_as_many),
        (f"{SCAN}::test_batches_after_a_damaged_one_show_the_loss",),
    ),
    Mutant(
        "R17-one-of-many",
        "a batch after the damage whose base offset has rotted does not say where the log ended",
        "raftlog's own simulator",
        instead_of_property(FollowingBatches, "end_offset", _by_any_batch),
        (f"{SCAN}::test_a_rotten_base_offset_among_others_says_nothing",),
    ),
    Mutant(
        "R17-inside",
        "a batch inside a torn record is not trusted for its offsets",
        "Bairavasundaram et al., FAST 2008",
        instead(SegmentScan, "_note_after", _whatever_it_says),
        (f"{SCAN}::test_the_offsets_of_a_batch_inside_a_record_are_not_trusted",),
    ),
    Mutant(
        "R17-segments",
        "a bad segment with another after it is no torn tail",
        "LogLoader#recoverLog",
        missing(ScannedSegments, "_take_following"),
        (f"{QUARANTINE}::test_a_bad_segment_followed_by_another_is_damage",),
    ),
    Mutant(
        "R17-unreadable",
        "bytes that the disk does not give back are no torn tail",
        "EIO",
        swapped(segment_scan, "scan_segment", _torn_where_unreadable),
        (f"{SCAN}::test_unreadable_bytes_are_reported_at_their_place",),
    ),
    Mutant(
        "R17-unread-mark",
        "a flush mark that the disk does not give back may say how far the log was durable",
        "raftlog's own simulator",
        swapped(recovery_point, "_load_marks", _none_where_unreadable),
        (
            f"{UNREADABLE}::test_the_durable_end_and_both_lists_of_epochs_must_be_known",
            f"{UNREADABLE}::test_a_mark_that_cannot_be_read_just_now_hides_no_loss",
        ),
    ),
    Mutant(
        "R17-unread-epochs",
        "a list of epochs that the disk does not give back may be what contradicts a batch",
        "raftlog's own simulator",
        swapped(startup._Recovery, "_epoch_checkpoint", _missing_where_unreadable),
        (f"{UNREADABLE}::test_a_list_of_epochs_that_cannot_be_read_just_now_hides_no_wrong_epoch",),
    ),
    Mutant(
        "R17-unread-log",
        "a snapshot takes the place of what is lost, not of what cannot be read just now",
        "raftlog's own simulator",
        swapped(startup._Recovery, "_restarted_log", _whatever_was_read),
        (f"{UNREADABLE}::test_a_snapshot_replaces_no_log_that_cannot_be_read",),
    ),
    Mutant(
        "R17-silent",
        "what a start cuts it tells of",
        "LogLoader#recoverLog",
        swapped(startup._Recovery, "_repair", _without_report),
        (f"{RECOVERY}::test_torn_tail_above_the_durable_point_is_cut",),
    ),
    Mutant(
        "K34-start",
        "what a killed process wrote is on the disk before a start counts it",
        "etcd 14370",
        instead(rewriting, "rewrite_tails", lambda *_: None),
        ("tests/storage/recovery/test_rewriting.py",),
    ),
    Mutant(
        "S-cache-kept",
        "what no sync has spoken for is read from the disk",
        "Rebello et al., ATC 2020",
        instead(LocalFile, "drop_cache", lambda *_: False),
        (f"{DROPPED}::test_each_segment_in_doubt_is_dropped_before_it_is_read",),
    ),
    Mutant(
        "S-cache-trusted",
        "what is above the durable point is in doubt",
        "Rebello et al., ATC 2020",
        instead(rewriting, "trusted_end_offset", lambda *_: sys.maxsize),
        (f"{DROPPED}::test_each_segment_in_doubt_is_dropped_before_it_is_read",),
    ),
    Mutant(
        "S-cache-dirty",
        "what is dropped was synced",
        "posix_fadvise(2)",
        instead(LocalFile, "sync", lambda _: None),
        (f"{DROPPED}::test_dropped_caches_were_synced",),
    ),
    Mutant(
        "K28-inside",
        "a log start inside a segment is remembered",
        "UnifiedLog#maybeIncrementLogStartOffset",
        swapped(startup._Recovery, "_start", _forgetting_the_start),
        (f"{RECOVERY}::test_a_start_inside_a_segment_is_remembered",),
    ),
    Mutant(
        "K28-back",
        "a snapshot below the log start does not come back",
        "KafkaRaftLog#deleteBeforeSnapshot",
        instead(startup._Recovery, "_without_old", lambda start, snapshot_ids, *_: snapshot_ids),
        (f"{RECOVERY}::test_segments_that_a_deletion_left_are_removed",),
    ),
    Mutant(
        "K31-once",
        "a log starts anew at a snapshot once",
        "KafkaMetadataLogTest#testCreateReplicatedLogTruncatesFully",
        swapped(startup, "_snapshot_ahead", _whatever_it_starts_at),
        (f"{RECOVERY}::test_a_restart_at_a_snapshot_is_reported_and_done_once", f"{RECOVERY}"),
    ),
    Mutant(
        "K31-nothing-left",
        "a log restarts at a snapshot if nothing is left from which a leader could tell where the two agree",
        "raftlog's own simulator",
        swapped(startup, "_snapshot_ahead", _only_if_it_is_ahead),
        (
            "tests/storage/recovery/test_snapshot_takeover.py::"
            "test_a_log_of_which_nothing_is_left_restarts_at_the_newest_snapshot",
        ),
    ),
    Mutant(
        "K31-behind",
        "a snapshot that is ahead of the damage is not ahead of the log",
        "LogLoader#removeSegments",
        instead_of_property(ScannedSegments, "furthest", _up_to_the_problem),
        (f"{QUARANTINE}::test_a_snapshot_above_the_damage_takes_no_sound_record_with_it",),
    ),
    Mutant(
        "K31-hole",
        "a crash while a log starts anew leaves no hole in it",
        "openraft 674e78aa",
        swapped(SnapshotTakeover, "run", _taking_from_the_front),
        ("tests/storage/recovery/test_snapshot_takeover.py::test_a_crash_while_a_snapshot_takes_the_place",),
    ),
    Mutant(
        "K31-durable",
        "what was durable is taken back before a log starts anew below it",
        "Pillai et al., OSDI 2014",
        instead(SnapshotTakeover, "_note_start", lambda takeover: takeover._stored),
        (f"{RECOVERY}::test_a_crash_while_restarting_at_a_snapshot_leaves_no_hole",),
    ),
    Mutant(
        "K31-durable-live",
        "what was durable is taken back before a follower starts anew below it",
        "Pillai et al., OSDI 2014",
        swapped(FileLog, "_steps_of_restart_at", _without_taking_back),
        (f"{CRASHES}::test_a_crash_loses_and_invents_nothing[install_another_history]",),
    ),
    Mutant(
        "K31-empty",
        "a start that could not read the snapshot leaves nothing in the way of one that can",
        "EIO",
        instead(startup._Recovery, "_is_empty", lambda *_: False),
        (f"{RECOVERY}::test_a_snapshot_that_reads_again_makes_the_log_whole_again",),
    ),
    Mutant(
        "S-hole",
        "a crash in a truncation leaves no hole",
        "Pillai et al., OSDI 2014",
        swapped(SegmentList, "truncating", _cutting_from_the_front),
        (f"{RECOVERY}::test_a_crash_in_a_truncation_leaves_no_hole",),
    ),
    Mutant(
        "S-structure",
        "a control batch that no state machine gets past is damage",
        "LogSegment#recover",
        missing(control_batch, "control_batch_problem"),
        (f"{SCAN}::test_a_control_batch_must_have_structure",),
    ),
    Mutant(
        "S-directories",
        "the directories above a new log are durable",
        "Pillai et al., OSDI 2014",
        instead(file_system, "make_durable_directory", _making_alone),
        (f"{RECOVERY}::test_the_directories_above_a_new_log_are_durable",),
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
        instead(startup._Recovery, "_verified_snapshots", _stopping_at_a_bad_snapshot),
        (f"{RECOVERY}::test_rotten_snapshot_is_set_aside_and_an_older_one_used",),
    ),
    Mutant(
        "R9-directory",
        "a directory of another cluster, node or disk is refused",
        "openraft, dynamic membership",
        missing(log_directory, "_check_meta"),
        (f"{DIRECTORY}::test_a_directory_of_another_program",),
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
        "S-index-cut",
        "no index file names what was cut",
        "raftlog's own audit of what schedules leave",
        missing(SegmentIndexes, "drop_files"),
        ("tests/storage/segments/test_log_segment.py::test_no_stored_index_names_what_is_cut",),
    ),
    Mutant(
        "S-names",
        "what a crash has left on its way in or out is settled",
        "LogLoader",
        instead(directory_settling, "settle_names", lambda *_: iter(())),
        (f"{SETTLING}::test_unfinished_files_are_removed",),
    ),
)
