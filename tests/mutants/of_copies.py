# SPDX-License-Identifier: Apache-2.0
"""Wrong starts: what they cut or replace without keeping it, or without a word; what snapshots prove; who owns it."""

import sys
from typing import Any, Final

import attrs

from raftlog.disk_work import nothing
from raftlog.log import decisions
from raftlog.log.state import LogState
from raftlog.process_ownership import Owned
from raftlog.storage.local_file_system import LocalFileLock
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery import log_start
from raftlog.storage.recovery.scanned_segments import ScannedSegments
from raftlog.storage.recovery.snapshot_takeover import SnapshotTakeover
from raftlog.storage.segments import damaged_files
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_scan import Problem
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

ANSWERS: Final = "tests/storage/log/test_answers_after_failures.py"
COPIES: Final = "tests/storage/recovery/test_startup_copies.py"
TAKEOVER: Final = "tests/storage/recovery/test_snapshot_takeover.py"
FORKS: Final = "tests/storage/log/test_forks.py"
PROVEN: Final = "tests/contracts/test_proven_high_watermark.py"


def _whosever_it_is(scanned: ScannedSegments, problem: Problem) -> bool:
    return problem.may_be_torn and not scanned.following and scanned.sound_end_after is None


def _just_cutting(file_system: Any, directory: str, segment: LogSegment) -> tuple[str, tuple[str, ...]]:
    segment.cut_damage()
    return f"{segment.path}.torn-{segment.size_bytes}", ()


def _cutting_first(right: Wrong) -> Wrong:
    def cut_torn_tail(file_system: Any, directory: str, segment: LogSegment) -> Any:
        segment.cut_damage()
        return right(file_system, directory, segment)

    return cut_torn_tail


def _removing(takeover: Any, segment: LogSegment, *, is_damaged: bool) -> None:
    segment.remove()


def _of_a_whole_segment(right: Wrong) -> Wrong:
    """What was set aside from an offset on, if a segment starts there."""

    def end_set_aside(takeover: Any, end_offset: int) -> Any:
        kept = damaged_files.superseded_segments(takeover._file_system, takeover._directory, takeover._snapshot_id)
        return right(takeover, end_offset) if any(base == end_offset for base, _ in kept) else end_offset

    return end_set_aside


def _keeping_nothing(right: Wrong) -> Wrong:
    return lambda takeover, snapshot_ids, *, keeps: right(takeover, snapshot_ids, keeps=False)


def _by_offset_alone(log: LogState) -> int:
    ends = (min(each.offset, log.end_offset) for each in log.snapshot_ids)
    return max((log.start_offset, *ends))


def _by_high_watermark_alone(right: Wrong) -> Wrong:
    def check_truncation(log: LogState, end_offset: int) -> None:
        if end_offset < log.high_watermark:
            right(log, end_offset)

    return check_truncation


def _still_flushed(right: Wrong) -> Wrong:
    return lambda *arguments, **keywords: attrs.evolve(right(*arguments, **keywords), memory=nothing)


MUTANTS: Final = (
    Mutant(
        "S-answers",
        "what a log knows without its disk it answers, whatever the disk does",
        "EIO",
        instead_of_property(FileLog, "high_watermark", lambda log: log._segments.locate(log._high_watermark)),
        (f"{ANSWERS}::test_a_high_watermark_at_damaged_bytes_is_known",),
    ),
    Mutant(
        "S-answers-half",
        "a truncation that fails leaves a log whose answers agree",
        "EIO",
        swapped(FileLog, "_taking_back", _still_flushed),
        (f"{ANSWERS}::test_a_log_answers_whatever_has_failed",),
    ),
    Mutant(
        "S-fork",
        "a process that was forked from the owner of a log changes nothing",
        "SQLite, how to corrupt",
        missing(Owned, "disown"),
        (f"{FORKS}::test_a_child_is_refused",),
    ),
    Mutant(
        "S-fork-lock",
        "a descriptor of a lock that was inherited does not release the lock when it is closed",
        "SQLite, how to corrupt",
        instead(LocalFileLock, "disown", lambda lock: None),
        (f"{FORKS}::test_a_child_may_take_over_when_the_parent_has_closed",),
    ),
    Mutant(
        "W1-kafkas-torn",
        "a complete batch that does not check is no torn tail, where nothing says how far the log was durable",
        "LogLoader#recoverLog",
        instead(ScannedSegments, "_is_torn", _whosever_it_is),
        (f"{COPIES}::test_rot_in_the_last_batch_of_kafkas_log_is_quarantined",),
    ),
    Mutant(
        "R17-copy",
        "a torn tail is kept",
        "LogLoader#recoverLog",
        instead(damaged_files, "cut_torn_tail", _just_cutting),
        (f"{COPIES}::test_a_torn_tail_of_ours_is_kept",),
    ),
    Mutant(
        "R17-copy-first",
        "a torn tail is copied before it is cut",
        "ENOSPC",
        swapped(damaged_files, "cut_torn_tail", _cutting_first),
        (f"{COPIES}::test_without_room_for_the_copy_nothing_is_cut",),
    ),
    Mutant(
        "R17-copy-again",
        "a start that is killed again and again makes one copy",
        "ENOSPC",
        instead(damaged_files, "_has_bytes", lambda *_: False),
        (f"{COPIES}::test_a_crash_between_copy_and_cut_makes_no_second_copy",),
    ),
    Mutant(
        "R17-copy-bound",
        "copies of torn tails do not fill a disk",
        "ENOSPC",
        instead(damaged_files, "_torn_tails_too_many", lambda *_: ()),
        (f"{COPIES}::test_no_more_than_some_torn_tails_are_kept",),
    ),
    Mutant(
        "K31-silent",
        "what a snapshot stands for, and was lost, is told",
        "KafkaRaftLog#createLog",
        missing(SnapshotTakeover, "_report_loss"),
        (f"{COPIES}::test_damage_that_a_snapshot_covers_is_reported_and_kept",),
    ),
    Mutant(
        "K31-kept",
        "segments that a snapshot takes the place of at a start are kept",
        "KafkaRaftLog#createLog",
        instead(SnapshotTakeover, "_set_segment_aside", _removing),
        (f"{COPIES}::test_damage_that_a_snapshot_covers_is_reported_and_kept",),
    ),
    Mutant(
        "K31-kept-snapshots",
        "older snapshots that one takes the place of at a start are kept",
        "KafkaRaftLog#createLog",
        swapped(SnapshotTakeover, "_drop_snapshots", _keeping_nothing),
        (f"{COPIES}::test_damage_that_a_snapshot_covers_is_reported_and_kept",),
    ),
    Mutant(
        "K31-alarm",
        "a start that goes on with what another one began does not take it for a loss",
        "raftlog, while it was made",
        instead(SnapshotTakeover, "_is_loss", lambda takeover, scanned: True),
        (f"{TAKEOVER}::test_a_crash_while_a_snapshot_takes_the_place",),
    ),
    Mutant(
        "K31-hidden",
        "a start that goes on with what another one began tells what that has lost",
        "raftlog's own simulator",
        instead(SnapshotTakeover, "_end_set_aside", lambda takeover, end_offset: sys.maxsize),
        (f"{TAKEOVER}::test_a_crash_hides_no_loss_that_the_snapshot_does_not_cover",),
    ),
    Mutant(
        "K31-inside",
        "a start that goes on with what another one began misses no record, if the log starts inside a segment",
        "raftlog, while it was mended",
        swapped(SnapshotTakeover, "_end_set_aside", _of_a_whole_segment),
        (f"{TAKEOVER}::test_a_crash_loses_nothing_of_a_log_that_starts_late",),
    ),
    Mutant(
        "K28-lost",
        "first segments that were not deleted are missed, though a snapshot stands for them",
        "LogLoader",
        instead(log_start, "lost_start", lambda *_: None),
        (f"{COPIES}::test_first_segments_that_a_snapshot_covers_are_missed",),
    ),
    Mutant(
        "W-proven",
        "a snapshot proves what is committed, after a start too",
        "KafkaRaftLog#createLog",
        instead(decisions, "proven_end_offset", lambda log: log.start_offset),
        (f"{PROVEN}::test_a_snapshot_of_its_own_stays_committed",),
    ),
    Mutant(
        "W-parted",
        "a snapshot of another history proves nothing of this log",
        "KAFKA-10661",
        instead(decisions, "proven_end_offset", _by_offset_alone),
        (f"{PROVEN}::test_a_fetched_snapshot_of_this_log_proves_it_committed",),
    ),
    Mutant(
        "W-guard",
        "a truncation looks at the snapshots too, and not at the high watermark alone",
        "KafkaRaftLog#truncateTo",
        swapped(decisions, "check_truncation", _by_high_watermark_alone),
        (f"{PROVEN}::test_a_snapshot_beyond_the_log_proves_all_of_its_epoch",),
    ),
)
