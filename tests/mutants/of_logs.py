# SPDX-License-Identifier: Apache-2.0
"""Wrong logs: of what they take, keep, serve and delete."""

from types import SimpleNamespace
from typing import Any, Final

import attrs

from raftlog.disk_work import DiskStep, nothing
from raftlog.errors import (
    CorruptBatchError,
    FencedEpochError,
    InvalidRecordError,
    NonContiguousAppendError,
    OutOfSpaceError,
)
from raftlog.log import append_validation, decisions
from raftlog.log.append_validation import CheckedAppend, CheckedBatch
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.memory_log import MemoryLog
from raftlog.log.queries import LogQueries
from raftlog.log.replicated_log import LogAppendInfo, LogFetchInfo
from raftlog.log.state import LogState
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch, SegmentPosition
from raftlog.records.batches.batch import read_batch
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.storage.log.appendable_log import AppendableLog
from raftlog.storage.log.fail_stop import FailStop
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery import startup
from raftlog.storage.recovery.recovery_point import DurablePoint
from raftlog.storage.segments import segment_list
from raftlog.storage.segments.indeterminate_writes import IndeterminateWrites
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_list import SegmentList
from tests.mutants.planting import (
    Mutant,
    Wrong,
    forgiving,
    instead,
    instead_of_property,
    missing,
    swapped,
)

RULES: Final = "tests/log/test_decisions.py"
APPENDS: Final = "tests/log/test_append_validation.py"
CONTRACT: Final = "tests/contracts/test_replicated_log.py::TestFileLog"
SMALL_SEGMENTS: Final = "tests/contracts/test_replicated_log.py::TestFileLogOfSmallSegments"
IN_MEMORY: Final = "tests/contracts/test_replicated_log.py::TestMemoryLog"
FAULTS: Final = "tests/storage/log/test_file_log_faults.py"
FILE_LOG: Final = "tests/storage/log/test_file_log.py"


def _with_all_epochs(log: Any) -> LogState:
    end_offset = log.end_offset.offset
    return LogState(log._start_offset, end_offset, log._high_watermark, log._epochs, log._snapshot_ids)


def _unchecked_plainly(data: Any, *_: object) -> Any:
    checked = _unchecked(data)
    return checked.batches, checked.next_offset, checked.max_timestamp, checked.info


def _unchecked(data: Any, *_: object) -> CheckedAppend:
    batches, position = [], 0
    while position < len(data):
        batch, position = read_batch(data, position)
        batches.append(
            CheckedBatch(
                batch.base_offset,
                batch.partition_leader_epoch,
                batch.last_offset,
                batch.max_timestamp,
                len(batch.buffer),
            )
        )
    newest = max(batch.max_timestamp for batch in batches)
    info = LogAppendInfo(batches[0].base_offset, batches[-1].last_offset)
    return CheckedAppend(memoryview(data), batches, batches[-1].last_offset + 1, newest, info)


def _any_epoch(right: Wrong) -> Wrong:
    def check_append_as_follower(data: Any, epoch: int, end_offset: int, last_fetched_epoch: int) -> Any:
        return right(data, (1 << 31) - 1, end_offset, last_fetched_epoch)

    return check_append_as_follower


def _by_high_watermark(log: LogState, end_offset: OffsetAndEpoch) -> int:
    return log.high_watermark


def _by_leaders_offset(log: LogState, end_offset: OffsetAndEpoch) -> int:
    return min(end_offset.offset, log.end_offset)


def _keeping_high_watermark(right: Wrong) -> Wrong:
    def _steps_of_restart_at(log: Any, snapshot_id: OffsetAndEpoch) -> Any:
        high_watermark = log._high_watermark

        def keep(_: object) -> None:
            log._high_watermark = high_watermark

        return [*right(log, snapshot_id), DiskStep(nothing, keep)]

    return _steps_of_restart_at


def _deleting_by_size_alone(right: Wrong) -> Wrong:
    def clean(log: Any, now_ms: int) -> Any:
        if log._config.retention_bytes is not None and log._segments.size_bytes > log._config.retention_bytes:
            log._segments.removing_below(log.end_offset.offset).do()
            log._start_offset = log._segments.active.base_offset
        return right(log, now_ms)

    return clean


def _uncommitted(log: LogState, snapshot_id: OffsetAndEpoch) -> bool:
    return snapshot_id in log.snapshot_ids and log.start_offset < snapshot_id.offset <= log.end_offset


def _wherever(right: Wrong) -> Wrong:
    return lambda log, snapshot_id, ends_batch: right(log, snapshot_id, lambda offset: True)


def _without_snapshots(right: Wrong) -> Wrong:
    def validate_offset_and_epoch(log: LogState, offset: int, epoch: int) -> Any:
        return right(attrs.evolve(log, snapshot_ids=()), offset, epoch)

    return validate_offset_and_epoch


def _forgetting_old_segments(right: Wrong) -> Wrong:
    def steps_of_restart(segments: Any, *arguments: Any, **keywords: Any) -> Any:
        last = segments._segments[-1]
        segments._segments = [last]
        segments._segments[0].remove_files = lambda: None
        return right(segments, *arguments, **keywords)

    return steps_of_restart


def _unchecked_read(right: Wrong) -> Wrong:
    def read(segments: Any, start_offset: int, limit: int, max_size_bytes: int, *_: object) -> LogFetchInfo:
        segment = segments.holding(start_offset)
        position, head = segment.locate(start_offset)
        stop = segment.size_bytes if limit >= segment.next_offset else segment.locate(limit)[0]
        if head is None or position >= stop:
            return LogFetchInfo(memoryview(b""), segments.locate(limit))
        size = min(stop - position, max(max_size_bytes, head.next_position - position))
        start = LogOffsetMetadata(head.base_offset, SegmentPosition(segment.base_offset, position))
        return LogFetchInfo(segment.read(position, size), start)

    return read


def _without_order(*_: object) -> bool:
    return True


def _without_a_sync(right: Wrong) -> Wrong:
    return lambda durable, _, end_offset: right(durable, SimpleNamespace(sync=lambda: None), end_offset)


def _counting_before_the_sync(right: Wrong) -> Wrong:
    def flush(log: Any) -> None:
        log._flushed_offset = log.end_offset.offset
        right(log)

    return flush


def _cut_without_sync(right: Wrong) -> Wrong:
    def cut_file(segment: Any, position: int) -> None:
        segment._indexes.drop_files()
        segment.file.truncate(position)

    return cut_file


def _cut_first(right: Wrong) -> Wrong:
    def _taking_back(log: Any, *_: object) -> Any:
        return DiskStep(nothing)

    return _taking_back


def _leaving_the_epochs(right: Wrong) -> Wrong:
    def _write(log: Any, *arguments: Any) -> Any:
        try:
            return right(log, *arguments)
        except OutOfSpaceError:
            log._epochs_are_stored = True
            raise

    return _write


def _deleting_first(right: Wrong) -> Wrong:
    def delete_before_snapshot(log: Any, snapshot_id: OffsetAndEpoch) -> Any:
        if decisions.may_start_at_snapshot(log.state, snapshot_id):
            log._segments.removing_below(snapshot_id.offset).do()
        return right(log, snapshot_id)

    return delete_before_snapshot


def _unverified(log: Any, snapshot_id: OffsetAndEpoch) -> NotifyingRawSnapshotWriter:
    writer = log._snapshots.create(snapshot_id)
    return NotifyingRawSnapshotWriter(writer, log._take_snapshot, on_freeze=lambda: log._guard.check() or ())


def _interrupted(right: Wrong) -> Wrong:
    def note(guard: Any, error: BaseException) -> None:
        if isinstance(error, Exception):
            right(guard, error)

    return note


def _never_after(epochs: LeaderEpochs, end_offset: int) -> LeaderEpochs:
    return epochs


MUTANTS: Final = (
    Mutant(
        "K21-crc",
        "a follower checks the CRC of what it appends",
        "KAFKA-18723",
        forgiving(append_validation, "check_append", CorruptBatchError, _unchecked),
        (f"{APPENDS}::test_bad_bytes_are_never_taken", f"{CONTRACT}::test_a_follower_takes_what_it_can_use"),
    ),
    Mutant(
        "K21-plain",
        "a leader checks what it appends, where nothing is special too",
        "KAFKA-18723",
        instead(append_validation, "check_plain_append", _unchecked_plainly),
        (f"{APPENDS}::test_a_byte_that_has_changed_is_not_plain",),
    ),
    Mutant(
        "R-cut-epochs",
        "a log that is about to be cut has neither offsets nor epochs from there on",
        "KafkaRaftLog#truncateToEndOffset",
        instead_of_property(LogQueries, "state", _with_all_epochs),
        ("tests/contracts/test_answers_under_way.py::test_a_log_answers_as_it_will_be_after_a_truncation",),
    ),
    Mutant(
        "K21-epoch",
        "a follower takes no batch of an epoch above that of its fetch",
        "KAFKA-18723",
        swapped(append_validation, "check_append_as_follower", _any_epoch),
        (f"{APPENDS}::test_a_follower_stops_at_a_higher_epoch",),
    ),
    Mutant(
        "K21-gap",
        "what is appended continues the log",
        "KAFKA-18838",
        forgiving(append_validation, "check_append", NonContiguousAppendError, _unchecked),
        (f"{APPENDS}::test_gaps_and_overlaps_are_refused",),
    ),
    Mutant(
        "K21-order",
        "epochs do not fall from batch to batch",
        "KAFKA-18723",
        forgiving(append_validation, "check_append", InvalidRecordError, _unchecked),
        (f"{APPENDS}::test_epochs_do_not_fall",),
    ),
    Mutant(
        "K1",
        "a leader enters no epoch below its log's",
        "KAFKA-10527",
        forgiving(decisions, "check_leader_epoch", FencedEpochError, lambda *_: None),
        (f"{RULES}::test_an_epoch_that_is_over_is_not_entered",),
    ),
    Mutant(
        "K26-forgotten",
        "an epoch that truncation took is forgotten",
        "KIP-101",
        instead(LeaderEpochs, "truncated_from_end", _never_after),
        (f"{CONTRACT}::test_a_leader_enters_its_epoch",),
    ),
    Mutant(
        "K24",
        "the high watermark is within the log, whatever one is told",
        "KAFKA-14704",
        instead(decisions, "clamped_high_watermark", lambda log, offset: max(log.high_watermark, offset)),
        (f"{RULES}::test_the_high_watermark_stays_inside",),
    ),
    Mutant(
        "K25",
        "the high watermark is not below the log start, after a full truncation either",
        "KAFKA-9491",
        swapped(FileLog, "_steps_of_restart_at", _keeping_high_watermark),
        (f"{CONTRACT}::test_a_log_restarts_at_a_snapshot_ahead",),
    ),
    Mutant(
        "K26-high-watermark",
        "a diverging log is cut where epochs say, not at the high watermark",
        "KAFKA-6361, KIP-101",
        instead(decisions, "truncation_offset", _by_high_watermark),
        (f"{RULES}::test_where_a_diverging_log_is_cut",),
    ),
    Mutant(
        "K26-offset",
        "a diverging log is cut by its own end of the common epoch, too",
        "KIP-279",
        instead(decisions, "truncation_offset", _by_leaders_offset),
        (f"{RULES}::test_where_a_diverging_log_is_cut",),
    ),
    Mutant(
        "K27-size",
        "only a snapshot moves the log start, retention by size does not",
        "KAFKA-14238",
        swapped(FileLog, "clean", _deleting_by_size_alone),
        (f"{FILE_LOG}::test_clean_deletes_what_is_too_large_and_too_old", f"{SMALL_SEGMENTS}::test_retention"),
    ),
    Mutant(
        "K27-uncommitted",
        "only a committed snapshot moves the log start",
        "KAFKA-14238",
        instead(decisions, "may_start_at_snapshot", _uncommitted),
        (f"{RULES}::test_the_log_start_moves_to_committed_snapshots",),
    ),
    Mutant(
        "K27-late",
        "a snapshot that comes late does not stand before the one that the log starts at",
        "KafkaRaftLog#deleteBeforeSnapshot",
        instead(decisions, "is_superseded", lambda log, snapshot_id: False),
        ("tests/contracts/test_useless_snapshots.py::test_a_snapshot_that_comes_late_is_deleted",),
    ),
    Mutant(
        "K30",
        "a snapshot ends where a batch ends",
        "KAFKA-14619",
        swapped(decisions, "check_new_snapshot_id", _wherever),
        (f"{CONTRACT}::test_a_wrong_snapshot_id_is_refused",),
    ),
    Mutant(
        "K31",
        "a start finishes what a crash has left between a snapshot and the truncation for it",
        "KafkaMetadataLogTest#testCreateReplicatedLogTruncatesFully",
        instead(startup, "_snapshot_ahead", lambda *_: None),
        (f"{CONTRACT}::test_a_crash_before_the_log_restarts",),
    ),
    Mutant(
        "K32",
        "the log in memory starts where the log in files starts",
        "KAFKA-13073",
        instead_of_property(MemoryLog, "start_offset", lambda log: 0),
        (f"{IN_MEMORY}::test_a_snapshot_takes_the_place_of_records",),
    ),
    Mutant(
        "K33-read",
        "every read checks what it returns",
        "KAFKA-14104",
        swapped(SegmentList, "read", _unchecked_read),
        (f"{FILE_LOG}::test_a_batch_that_rots_while_the_log_is_open_is_not_served",),
    ),
    Mutant(
        "K33-order",
        "every read checks offsets and epochs, too, which no CRC covers",
        "DefaultRecordBatch",
        instead(segment_list, "_are_in_order", _without_order),
        ("tests/faults/test_byte_damage.py::test_fields_outside_the_crc_are_checked_by_every_read",),
    ),
    Mutant(
        "K34",
        "only what was synced counts as flushed",
        "etcd 14370",
        instead_of_property(AppendableLog, "flushed_offset", lambda log: log.end_offset.offset),
        (f"{CONTRACT}::test_a_crash_takes_what_is_not_flushed",),
    ),
    Mutant(
        "K34-order",
        "nothing counts as flushed before its sync has returned",
        "etcd 14370, KafkaRaftClient#flushLeaderLog",
        swapped(AppendableLog, "flush", _counting_before_the_sync),
        (f"{FILE_LOG}::test_a_flush_is_one_sync",),
    ),
    Mutant(
        "K34-epoch",
        "an epoch is written down before its first batch",
        "LeaderEpochFileCache#assign",
        missing(AppendableLog, "_store_epochs"),
        (f"{FILE_LOG}::test_a_new_epoch_is_durable_before_its_first_batch",),
    ),
    Mutant(
        "K34-epoch-back",
        "the epoch of an append that failed is taken back",
        "LeaderEpochFileCache#assign",
        swapped(AppendableLog, "_write", _leaving_the_epochs),
        (f"{FAULTS}::test_an_epoch_whose_batch_did_not_fit_is_taken_back",),
    ),
    Mutant(
        "K27-order",
        "nothing is deleted before the new start is durable",
        "UnifiedLog#deleteOldSegments",
        swapped(FileLog, "delete_before_snapshot", _deleting_first),
        (f"{FILE_LOG}::test_segments_are_deleted_only_after_the_new_start_is_durable",),
    ),
    Mutant(
        "R28-own",
        "a snapshot of one's own is verified before it is listed",
        "RecordsSnapshotWriter",
        instead(FileLog, "_snapshot_writer", _unverified),
        ("tests/contracts/test_useless_snapshots.py::test_a_snapshot_is_verified",),
    ),
    Mutant(
        "R3",
        "the high watermark does not fall",
        "CCF 5674",
        instead(
            decisions,
            "clamped_high_watermark",
            lambda log, offset: max(log.start_offset, min(offset, log.end_offset)),
        ),
        (f"{RULES}::test_the_high_watermark_stays_inside",),
    ),
    Mutant(
        "R3-truncation",
        "no truncation takes what is committed",
        "CCF 5674",
        missing(decisions, "check_truncation"),
        (f"{RULES}::test_committed_records_are_not_cut",),
    ),
    Mutant(
        "R16",
        "a flush is a sync",
        "Jepsen, NATS 2.12.1",
        swapped(DurablePoint, "mark_sync", _without_a_sync),
        (f"{CONTRACT}::test_a_crash_takes_what_is_not_flushed",),
    ),
    Mutant(
        "R18",
        "a log that starts anew at a snapshot has none of its old segments",
        "openraft 674e78aa",
        swapped(SegmentList, "steps_of_restart", _forgetting_old_segments),
        (f"{FILE_LOG}::test_an_installed_snapshot_takes_the_place_of_the_log", f"{CONTRACT}"),
    ),
    Mutant(
        "R19",
        "a fetch below the log start is answered with a snapshot, and is no divergence",
        "openraft 44381b0c",
        swapped(decisions, "validate_offset_and_epoch", _without_snapshots),
        (f"{RULES}::test_a_fetch_position_below_a_snapshot", f"{CONTRACT}::test_a_snapshot_takes_the_place_of_records"),
    ),
    Mutant(
        "S-fsyncgate",
        "after a sync that failed nothing is trusted any more",
        "Rebello et al., ATC 2020",
        missing(FailStop, "check"),
        (f"{FILE_LOG}::test_a_sync_that_failed_is_never_tried_again",),
    ),
    Mutant(
        "S-interrupted",
        "after a write that was interrupted nothing is trusted any more",
        "KafkaRaftLog#append",
        swapped(FailStop, "note", _interrupted),
        (f"{FAULTS}::test_an_append_that_was_interrupted_is_the_last",),
    ),
    Mutant(
        "S-no-return",
        "a failure for want of room, where half is done, promises nothing",
        "ENOSPC",
        missing(IndeterminateWrites, "__exit__"),
        ("tests/storage/segments/test_indeterminate_writes.py::test_a_full_disk_is_no_promise",),
    ),
    Mutant(
        "S-short-write",
        "half a batch does not stay after a good one",
        "ENOSPC",
        missing(LogSegment, "_cut_back"),
        (f"{FILE_LOG}::test_an_append_without_room_leaves_the_log_as_it_was",),
    ),
    Mutant(
        "S-truncation",
        "what was truncated does not come back",
        "Pillai et al., OSDI 2014",
        swapped(LogSegment, "cut_file", _cut_without_sync),
        (f"{FILE_LOG}::test_a_truncation_takes_back_what_was_durable_before_it_cuts",),
    ),
    Mutant(
        "S-take-back",
        "what was durable is taken back before it is cut",
        "Pillai et al., OSDI 2014",
        swapped(FileLog, "_taking_back", _cut_first),
        (f"{FILE_LOG}::test_a_truncation_takes_back_what_was_durable_before_it_cuts",),
    ),
)
