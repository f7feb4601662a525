# SPDX-License-Identifier: Apache-2.0
"""Wrong advice on a full disk, and wrong counts: needed files are offered, damage is not told, records are lost."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.window import ByteSource
from raftlog.records.files.file_names import SEGMENT_KINDS, FileState
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey import bounded_source
from raftlog.tools.auditing.survey.bounded_source import BoundedSource
from raftlog.tools.free import left_overs, raft_logs
from raftlog.tools.free.disk_usage import DiskFile, FreedBytes
from raftlog.tools.free.left_overs import PartitionNames
from raftlog.tools.free.offers import Offers
from raftlog.tools.free.raft_logs import JudgedLog
from raftlog.tools.free.rules import COVERED_SEGMENT, DELETED_FILE, FreeStep
from raftlog.tools.stats import covering, log_stats
from raftlog.tools.stats.counting import Groups
from raftlog.tools.stats.keys import OverwrittenKeys
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

LEFT_OVERS: Final = "tests/tools/free/test_left_overs.py"
RAFT_LOGS: Final = "tests/tools/free/test_raft_logs.py"
FREE: Final = "tests/tools/free/test_free.py"
DISK: Final = "tests/tools/free/test_disk_usage.py"
COUNTS: Final = "tests/tools/stats/test_log_stats.py"


def _one_further(right: Wrong) -> Wrong:
    def covered(log: JudgedLog, newest: OffsetAndEpoch) -> Any:
        return right(log, attrs.evolve(newest, offset=newest.offset + 1))

    return covered


def _all_deleted(found: PartitionNames, offers: Offers) -> None:
    for name in found.of_state(FileState.DELETED, *SEGMENT_KINDS):
        offers.offer(DELETED_FILE, [found.path(name)])


def _without_a_stop(covered: Iterable[FileEvidence], _: OffsetAndEpoch, offers: Offers) -> int:
    return sum(not offers.offer(COVERED_SEGMENT, [file.task.path, *file.task.indexes.values()]) for file in covered)


def _by_order(id_: OffsetAndEpoch, newest: OffsetAndEpoch) -> bool:
    return id_ < newest


def _each_name(_: FreedBytes, files: Iterable[DiskFile]) -> int:
    return sum(file.allocated_bytes for file in files)


def _within_the_limit(right: Callable[..., None]) -> Callable[..., None]:
    def add(self: Groups, key: Any, values: Iterable[int]) -> None:
        if key in self._groups or len(self._groups) < self._most:
            right(self, key, values)

    return add


def _as_long_as_listed(task: SurveyTask, opened: ByteSource) -> BoundedSource:
    return BoundedSource(opened, task.size_bytes)


MUTANTS: Final = (
    Mutant(
        "R-free-swap",
        "while segments are being replaced, nothing of them is offered",
        "LogLoader#removeTempFilesAndCollectSwapFiles",
        instead_of_property(PartitionNames, "has_swap_files", lambda _: False),
        (f"{LEFT_OVERS}::test_with_a_swap_file_nothing_is_offered",),
    ),
    Mutant(
        "R-free-deleted",
        "a segment that a truncation has cut off is kept",
        "DECISIONS.md, 88",
        instead(left_overs, "_offer_deleted", _all_deleted),
        (f"{LEFT_OVERS}::test_a_deleted_segment_is_offered_below_the_last_segment_only",),
    ),
    Mutant(
        "R-free-unsound",
        "a snapshot that is not sound covers nothing",
        "RecordsSnapshotReader, which does not check the footer",
        instead(JudgedLog, "is_sound", lambda *_: True),
        (f"{RAFT_LOGS}::test_a_damaged_snapshot_covers_nothing",),
    ),
    Mutant(
        "R-free-damaged",
        "of a damaged log, nothing is offered",
        "DECISIONS.md, 88",
        instead_of_property(JudgedLog, "damage", lambda _: None),
        (f"{RAFT_LOGS}::test_a_damaged_log_is_not_touched",),
    ),
    Mutant(
        "R-free-gap",
        "the log that is left starts at or below the snapshot's end",
        "KafkaRaftLog#recoverSnapshots",
        swapped(raft_logs, "_covered", _one_further),
        (f"{RAFT_LOGS}::test_the_snapshot_must_reach_the_next_segment",),
    ),
    Mutant(
        "R-free-stop",
        "no segment is offered after one that must stay",
        "DECISIONS.md, 88",
        instead(raft_logs, "_offer_segments", _without_a_stop),
        (f"{RAFT_LOGS}::test_a_linked_segment_ends_what_is_offered",),
    ),
    Mutant(
        "R-free-order",
        "a snapshot that ends later is not replaced",
        "OffsetAndEpoch#compareTo",
        instead(raft_logs, "_is_replaced", _by_order),
        (f"{RAFT_LOGS}::test_a_snapshot_that_ends_later_is_not_replaced_by_one_of_a_later_epoch",),
    ),
    Mutant(
        "R-free-unread",
        "of a log with a file that cannot be read, nothing is offered",
        "DECISIONS.md, 88",
        instead(raft_logs, "_is_unknown", lambda _: False),
        (f"{RAFT_LOGS}::test_a_log_with_a_file_that_cannot_be_read_is_not_touched",),
    ),
    Mutant(
        "R-free-again",
        "what startup takes again does not count towards --need",
        "DECISIONS.md, 88",
        instead_of_property(FreeStep, "is_lasting", lambda _: True),
        (f"{FREE}::test_whether_it_is_enough_decides_the_exit_code",),
    ),
    Mutant(
        "R-stats-unread",
        "a snapshot that cannot be read covers nothing",
        "DECISIONS.md, 89",
        instead(covering, "_is_readable", lambda *_: True),
        (f"{COUNTS}::test_a_snapshot_that_cannot_be_read_covers_nothing",),
    ),
    Mutant(
        "R-free-links",
        "a file with several names comes free with the last of them",
        "unlink(2)",
        instead(FreedBytes, "remove", _each_name),
        (f"{DISK}::test_a_file_comes_free_with_its_last_name",),
    ),
    Mutant(
        "R-stats-silent",
        "a batch that cannot be read is reported, and counted apart",
        "DECISIONS.md, 10",
        missing(vars(log_stats)["_Counter"], "_report_damage"),
        (f"{COUNTS}::test_records_that_cannot_be_read_are_damage_too",),
    ),
    Mutant(
        "R-stats-chunk",
        "a record is overwritten by a later one in any part of the log",
        "LogCleaner's offset map",
        missing(OverwrittenKeys, "_add_keys"),
        ("tests/tools/stats/test_keys.py::test_overwritten_records_are_those_before_the_last_of_a_key",),
    ),
    Mutant(
        "R-stats-pipe",
        "a pipe, which has no size, is read to its end",
        "stats, which found nothing in a pipe",
        instead(bounded_source, "as_listed", _as_long_as_listed),
        ("tests/tools/test_piped_paths.py::test_a_pipe_has_what_its_file_has",),
    ),
    Mutant(
        "R-stats-limit",
        "groups beyond the limit are counted together",
        "DECISIONS.md, 89",
        swapped(Groups, "add", _within_the_limit),
        ("tests/tools/stats/test_counting.py::test_no_row_is_lost_beyond_the_limit",),
    ),
)
