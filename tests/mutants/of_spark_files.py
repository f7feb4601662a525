# SPDX-License-Identifier: Apache-2.0
"""A wrong Spark source: files that are replaced while it reads, and several replicas of one raft log."""

from typing import Any, Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.rows import file_witness, reading
from raftlog.tools.spark.source import committed, planning, stream
from raftlog.tools.spark.source.offset_ranges import AFTER_ALL
from raftlog.tools.spark.source.stream_positions import StreamLogs
from tests.mutants.planting import Mutant, Wrong, all_of, instead, missing, swapped

COMMITTED: Final = "tests/tools/spark/source/test_committed.py"
INJECTED: Final = "tests/tools/spark/source/test_injected_operations.py"
REPLACED: Final = "tests/tools/spark/source/test_replaced_files.py"


def _unbounded(right: Wrong) -> Wrong:
    return lambda self, view, replicas: attrs.evolve(right(self, view, replicas), point=OffsetAndEpoch(AFTER_ALL, 0))


def _bounded_later(right: Wrong) -> Wrong:
    def list_logs(*arguments: Any, **keywords: Any) -> StreamLogs:
        found: StreamLogs = right(*arguments, **keywords)
        return attrs.evolve(found, listing=attrs.evolve(found.listing, partitions=tuple(found.partitions.values())))

    return list_logs


def _that_nothing_went_away(right: Wrong) -> Wrong:
    return lambda paths: (*right(paths)[:2], False)


MUTANTS: Final = (
    Mutant(
        "R-spark-listed-once",
        "paths are listed again if a segment went away meanwhile",
        "LogCleaner, whose swap a listing caught halfway",
        swapped(planning, "_found", _that_nothing_went_away),
        (f"{INJECTED}::test_what_a_query_lacks[compaction-True]",),
    ),
    Mutant(
        "R-spark-replaced-head",
        "a part that starts with another batch than at planning is not read",
        "a file that is replaced while a query runs",
        instead(file_witness, "_is_written", lambda head: False),
        (f"{REPLACED}::test_another_file_of_the_same_size_is_a_loss",),
    ),
    Mutant(
        "R-spark-replaced-time",
        "a file that was written on the driver's machine since its planning is not read",
        "a file that is replaced while a query runs",
        instead(file_witness, "_machine", id),
        (f"{REPLACED}::test_what_is_read_is_what_was_planned",),
    ),
    Mutant(
        "R-spark-copies",
        "the times of files are compared on one machine alone",
        "a file that is replaced while a query runs",
        instead(file_witness, "_machine", lambda source: "any"),
        (f"{REPLACED}::test_copies_on_other_machines_are_read",),
    ),
    Mutant(
        "R-spark-exhausted",
        "a process without descriptors says nothing about a file",
        "a file that is replaced while a query runs",
        all_of(
            instead(reading, "is_exhaustion", lambda error: False),
            instead(planning, "is_exhaustion", lambda error: False),
        ),
        (f"{REPLACED}::test_a_worker_in_need_is_no_damage",),
    ),
    Mutant(
        "R-spark-committed",
        "committedOnly ends where the proof does",
        "a file that is replaced while a query runs",
        swapped(committed.CommittedEnds, "_committed", _unbounded),
        (f"{COMMITTED}::test_a_stream_reads_what_a_majority_has",),
    ),
    Mutant(
        "R-spark-committed-look",
        "a majority that never had a record at one moment proves nothing",
        "a file that is replaced while a query runs",
        instead(committed.CommittedEnds, "_has", lambda self, replica, point: True),
        (f"{COMMITTED}::test_a_log_that_is_truncated_while_others_are_read",),
    ),
    Mutant(
        "R-spark-committed-plan",
        "a micro-batch has what was proven when its end was chosen",
        "a file that is replaced while a query runs",
        swapped(stream, "list_logs", _bounded_later),
        (f"{COMMITTED}::test_a_running_stream_waits_for_proof",),
    ),
    Mutant(
        "R-spark-committed-topic",
        "no file proves what is committed of a topic's partition",
        "a file that is replaced while a query runs",
        missing(committed, "_check_is_raft"),
        (f"{COMMITTED}::test_what_is_no_raft_log",),
    ),
    Mutant(
        "R-spark-committed-nothing",
        "a query of which nothing is proven fails",
        "a file that is replaced while a query runs",
        missing(committed, "check_something_is_committed"),
        (f"{COMMITTED}::test_a_lone_replica_of_three",),
    ),
)
