# SPDX-License-Identifier: Apache-2.0
"""Wrong quarantines: what a log forgets of how far it was durable, and does although it is damaged."""

from typing import Any, Final

import attrs

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.records.checksum import crc32c
from raftlog.storage.log.appendable_log import AppendableLog
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery import recovery_point, startup
from raftlog.storage.recovery.recovery_point import DurablePoint, FlushMark, StoredDurablePoint
from raftlog.storage.segments import damaged_files
from tests.mutants.planting import Mutant, Wrong, forgiving, instead, instead_of_property, missing, swapped

LOST_POINT: Final = "tests/storage/recovery/test_lost_durable_point.py"
POINT: Final = "tests/storage/recovery/test_recovery_point.py"
RECOVERY: Final = "tests/storage/recovery/test_startup.py"
QUARANTINE: Final = "tests/storage/recovery/test_startup_quarantine.py"
SYNCS: Final = "tests/storage/recovery/test_quarantine_syncs.py"
EPOCHS: Final = "tests/storage/recovery/test_rotten_epochs.py"
DAMAGE: Final = "tests/faults/test_byte_damage.py"


def _of_all_generations(stored: StoredDurablePoint) -> int | None:
    known = [] if stored.recovery_point is None else [stored.recovery_point.durable_end_offset]
    return max([*known, *(mark.durable_end_offset for mark in stored.marks)], default=None)


def _rolling_after_the_epoch(right: Wrong) -> Wrong:
    """Note the recovery point of a roll, with the epochs that the log has had, after that of a new epoch."""

    def _begin(log: Any, steps: Any, *arguments: Any, **keywords: Any) -> Any:
        epochs = [step for step in steps if log._epoch_checkpoint.path in step.paths]
        return right(log, [*epochs, *(step for step in steps if step not in epochs)], *arguments, **keywords)

    return _begin


def _in_one_slot(right: Wrong) -> Wrong:
    def mark(durable: Any, *arguments: Any) -> None:
        durable._slot = 0
        right(durable, *arguments)

    return mark


def _unchecked_mark(data: Any) -> FlushMark | None:
    if len(data) < recovery_point._MARK_SIZE:
        return None
    magic, generation, durable_end_offset, *_ = recovery_point._MARK.unpack_from(data)
    return FlushMark(generation, durable_end_offset) if magic == recovery_point._MARK_MAGIC else None


def _no_mark_no_matter(right: Wrong) -> Wrong:
    def mark_sync(durable: Any, file: Any, durable_end_offset: int) -> None:
        right(durable, file, durable_end_offset if durable._marks else 0)

    return mark_sync


def _with_a_fitting_crc(right: Wrong) -> Wrong:
    def read_recovery_point(data: bytes) -> Any:
        text = data.rpartition(b"crc32c ")[0]
        return right(text + f"crc32c {crc32c(text):08x}\n".encode())

    return read_recovery_point


def _of_the_sync_alone(right: Wrong) -> Wrong:
    def mark(durable: Any, durable_end_offset: int) -> Any:
        point = durable._point
        durable._point = attrs.evolve(point, durable_end_offset=min(point.durable_end_offset, durable_end_offset))
        try:
            return right(durable, durable_end_offset)
        finally:
            durable._point = point

    return mark


def _without_snapshots(right: Wrong) -> Wrong:
    return lambda start, stored, snapshot_ids, *more: right(start, stored, (), *more)


def _by_the_log_alone(right: Wrong) -> Wrong:
    return lambda stored, in_log, in_checkpoint: right(stored, in_log, in_log)


def _by_any_epoch(stored: Any, in_log: Any, in_checkpoint: Any) -> Any:
    agreed = set(in_log.entries).intersection(in_checkpoint.entries)
    below = [each for each in agreed if each.start_offset < (stored.durable_end_offset or 0)]
    return min(below, key=lambda each: each.epoch, default=None)


def _as_if_whole(right: Wrong) -> Wrong:
    """Call a method of a log that does not know of its quarantine."""

    def method(log: Any, *arguments: Any, **keywords: Any) -> Any:
        quarantine, log._quarantine = log._quarantine, None
        try:
            return right(log, *arguments, **keywords)
        finally:
            log._quarantine = quarantine

    return method


def _whole_once_synced(right: Wrong) -> Wrong:
    def flush(log: Any) -> None:
        right(log)
        log._quarantine = None

    return flush


def _by_every_truncation(right: Wrong) -> Wrong:
    return lambda log, offset, *, ends_quarantine: right(log, offset, ends_quarantine=True)


def _truncating_anywhere(log: Any, offset: int) -> Any:
    return log._truncate(offset, ends_quarantine=True)


def _throwing_away(_: Any, directory: str, segment: Any, later_segments: Any) -> tuple[str, ...]:
    for later in reversed(later_segments):
        later.remove()
    segment.cut_damage()
    return ()


def _without_witnesses(right: Wrong) -> Wrong:
    return lambda log, *arguments, **_: attrs.evolve(right(log, *arguments), epochs=log._epochs.entries)


def _settling_all_the_same(right: Wrong) -> Wrong:
    def _read_segments(start: Any, *arguments: Any) -> Any:
        scanned, quarantine = right(start, *arguments)
        if quarantine is not None:
            start._settle_epochs(scanned.epochs, scanned.end_offset, arguments[-1], "")
        return scanned, quarantine

    return _read_segments


def _settling(start: Any, epochs: Any, found: Any) -> None:
    start._settle_epochs(epochs, 0, found, "")


def _reporting_no_room(right: Wrong) -> Wrong:
    def set_aside_after(*arguments: Any) -> Any:
        try:
            return right(*arguments)
        except OutOfSpaceError:
            return _throwing_away(*arguments)

    return set_aside_after


def _of_marks_alone(stored: StoredDurablePoint) -> int | None:
    known, end_offset = stored.recovery_point, stored.durable_end_offset
    return end_offset if known is None or known.synced_end_offset is None else known.synced_end_offset


def _whole_at_the_end(stored: StoredDurablePoint) -> int | None:
    known = stored.recovery_point
    marks = [each for each in stored.marks if known is not None and each.generation == known.generation]
    synced = None if known is None else known.synced_end_offset
    return stored.durable_end_offset if marks else synced


MUTANTS: Final = (
    Mutant(
        "R17-synced-end",
        "what a log gets again after a loss is not known to be on the disk before it is synced",
        "raftlog's own simulator",
        instead_of_property(StoredDurablePoint, "synced_end_offset", lambda stored: stored.durable_end_offset),
        (f"{SYNCS}::test_what_was_fetched_again_is_on_the_disk",),
    ),
    Mutant(
        "R17-synced-marks",
        "flush marks alone do not say that nothing was lost",
        "raftlog's own simulator",
        instead_of_property(StoredDurablePoint, "synced_end_offset", _of_marks_alone),
        (f"{SYNCS}::test_one_of_both_files_is_enough",),
    ),
    Mutant(
        "R17-synced-mark",
        "a flush mark at the durable end is the copy of it that a quarantine keeps",
        "raftlog's own simulator",
        instead_of_property(StoredDurablePoint, "synced_end_offset", _whole_at_the_end),
        (f"{SYNCS}::test_what_was_fetched_again_is_on_the_disk",),
    ),
    Mutant(
        "R17-early-epochs",
        "batches that are back once the log start is lost have their epochs in both lists",
        "raftlog's own simulator",
        missing(startup._Recovery, "_add_early_epochs"),
        (f"{EPOCHS}::test_epochs_that_a_lost_log_start_brings_back_have_two_witnesses",),
    ),
    Mutant(
        "R17-replaced-epochs",
        "of a damaged log, epochs that may contradict a batch stay",
        "raftlog's own simulator",
        instead(startup._Recovery, "_add_early_epochs", _settling),
        (f"{EPOCHS}::test_a_checkpoint_that_begins_early_stays_in_a_damaged_log",),
    ),
    Mutant(
        "R17-one-copy",
        "a quarantine survives the loss of the recovery point",
        "raftlog's own simulator",
        missing(DurablePoint, "copy_to_mark"),
        (f"{LOST_POINT}::test_a_quarantine_survives_the_loss_of_either_file",),
    ),
    Mutant(
        "R17-lower-mark",
        "a sync in quarantine does not hide how far the log was durable",
        "raftlog's own simulator",
        swapped(DurablePoint, "_mark", _of_the_sync_alone),
        (f"{LOST_POINT}::test_a_quarantine_survives_the_loss_of_either_file",),
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
        "R14-generation",
        "a flush mark from before a truncation proves nothing",
        "PySyncObj 197",
        instead_of_property(StoredDurablePoint, "durable_end_offset", _of_all_generations),
        (f"{RECOVERY}::test_old_marks_do_not_count_after_a_truncation",),
    ),
    Mutant(
        "R14-roll",
        "an epoch whose first batch begins a segment is written down for good",
        "raftlog, while it was made",
        swapped(AppendableLog, "_begin", _rolling_after_the_epoch),
        (f"{POINT}::test_a_new_epoch_that_begins_with_a_segment_is_witnessed",),
    ),
    Mutant(
        "R14-turns",
        "a flush mark that is torn leaves the one before it",
        "Pillai et al., OSDI 2014",
        swapped(DurablePoint, "mark_sync", _in_one_slot),
        (f"{POINT}::test_marks_take_turns",),
    ),
    Mutant(
        "R14-torn",
        "a flush mark that is torn or rotten proves nothing",
        "PySyncObj 197",
        instead(recovery_point, "read_flush_mark", _unchecked_mark),
        (f"{POINT}::test_a_mark_is_whole_or_none",),
    ),
    Mutant(
        "R14-unmarked",
        "where no mark can be written, the recovery point follows each sync",
        "EIO",
        swapped(DurablePoint, "mark_sync", _no_mark_no_matter),
        (f"{POINT}::test_without_marks_the_recovery_point_is_the_durable_end",),
    ),
    Mutant(
        "R14-unreadable",
        "a durable point that the disk does not give back is none that says nothing",
        "EIO",
        forgiving(recovery_point, "load_durable_point", StorageError, lambda *_: StoredDurablePoint(None, ())),
        (f"{POINT}::test_what_cannot_be_read_is_an_error_or_reported",),
    ),
    Mutant(
        "R14-crc",
        "a recovery point that has rotted is not trusted",
        "PySyncObj 197",
        swapped(recovery_point, "read_recovery_point", _with_a_fitting_crc),
        (f"{POINT}::test_no_changed_byte_goes_unnoticed",),
    ),
    Mutant(
        "W1-kafkas",
        "what a snapshot covers was durable, in a directory of Kafka's too",
        "KafkaRaftLog#createLog",
        swapped(startup._Recovery, "_durable_end_offset", _without_snapshots),
        (f"{RECOVERY}::test_a_log_of_kafkas_that_ends_below_a_snapshot_of_a_lower_epoch_is_damaged",),
    ),
    Mutant(
        "W1-overwritten",
        "what Kafka has cut and gone on from is no damage",
        "KafkaRaftLog#truncateToEndOffset",
        missing(StoredDurablePoint, "overwritten_by"),
        (f"{QUARANTINE}::test_a_truncation_by_kafka_is_trusted",),
    ),
    Mutant(
        "W1-unwitnessed",
        "a higher epoch alone lowers no durable point: Kafka's checkpoint must say so",
        "Bairavasundaram et al., FAST 2008",
        swapped(StoredDurablePoint, "overwritten_by", _by_the_log_alone),
        (f"{QUARANTINE}::test_an_epoch_that_the_checkpoint_does_not_have_voids_nothing",),
    ),
    Mutant(
        "W1-old-epoch",
        "an epoch that was known lowers no durable point",
        "KIP-101",
        instead(StoredDurablePoint, "overwritten_by", _by_any_epoch),
        (f"{POINT}::test_only_an_epoch_that_is_new_lowers_the_durable_end",),
    ),
    Mutant(
        "W1-leads",
        "a damaged log does not lead",
        "Jepsen, NATS 2.12.1",
        missing(AppendableLog, "_refuse_in_quarantine"),
        (f"{QUARANTINE}::test_bit_rot_is_quarantined_wherever_it_is",),
    ),
    Mutant(
        "W1-serves",
        "a damaged log does not say that it ends where the damage starts",
        "Jepsen, NATS 2.12.1",
        swapped(AppendableLog, "read", _as_if_whole),
        (f"{QUARANTINE}::test_bit_rot_is_quarantined_wherever_it_is",),
    ),
    Mutant(
        "W1-restart",
        "a restart does not take a log in repair for a whole one",
        "Alagappan et al., FAST 2018",
        swapped(AppendableLog, "_recovery_point", _as_if_whole),
        (f"{QUARANTINE}::test_a_half_repaired_log_stays_in_quarantine",),
    ),
    Mutant(
        "W1-early",
        "a log in repair is whole once it is flushed up to where it was durable",
        "Alagappan et al., FAST 2018",
        swapped(AppendableLog, "flush", _whole_once_synced),
        (f"{QUARANTINE}::test_a_half_repaired_log_stays_in_quarantine",),
    ),
    Mutant(
        "W1-leader",
        "a truncation that a leader asked for gives up no record that was durable",
        "Alagappan et al., FAST 2018",
        swapped(FileLog, "_truncate", _by_every_truncation),
        (f"{QUARANTINE}::test_a_truncation_by_a_leader_does_not_end_a_quarantine",),
    ),
    Mutant(
        "W1-above",
        "a truncation by hand gives up no more than was said",
        "LogLoader",
        instead(FileLog, "prepare_truncate_to", _truncating_anywhere),
        (f"{QUARANTINE}::test_a_truncation_above_the_damage_is_refused",),
    ),
    Mutant(
        "W1-kept",
        "damaged bytes are kept, under another name",
        "LogLoader#removeSegments",
        instead(damaged_files, "set_aside_after", _throwing_away),
        (f"{QUARANTINE}::test_a_follower_repairs_a_quarantined_log",),
    ),
    Mutant(
        "W1-room",
        "damaged bytes for which there is no room stay where they are",
        "ENOSPC",
        swapped(damaged_files, "set_aside_after", _reporting_no_room),
        (f"{QUARANTINE}::test_without_room_to_set_damage_aside_a_truncation_changes_nothing",),
    ),
    Mutant(
        "W1-deletes",
        "a damaged log deletes nothing",
        "LogLoader#removeSegments",
        swapped(FileLog, "prepare_delete_before_snapshot", _as_if_whole),
        (f"{QUARANTINE}::test_a_quarantined_log_deletes_nothing",),
    ),
    Mutant(
        "W1-witness",
        "as long as a batch has a damaged epoch, both witnesses of it stay: the recovery point",
        "DefaultRecordBatch",
        swapped(AppendableLog, "_recovery_point", _without_witnesses),
        (f"{DAMAGE}::test_an_epoch_is_under_no_crc",),
    ),
    Mutant(
        "W1-witness-two",
        "as long as a batch has a damaged epoch, both witnesses of it stay: the checkpoint",
        "DefaultRecordBatch",
        swapped(startup._Recovery, "_read_segments", _settling_all_the_same),
        (f"{DAMAGE}::test_an_epoch_is_under_no_crc",),
    ),
)
