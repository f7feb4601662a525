# SPDX-License-Identifier: Apache-2.0
"""Wrong readers: of records that a consumer never sees, out of bounds, or of two histories as if they were one."""

from typing import Any, Final

from raftlog.log import iteration
from raftlog.quorum import voting
from raftlog.records.batches.iterator import _Splitter
from raftlog.records.batches.open_batch import DrainedBatches
from raftlog.records.columns.record_selection import RecordSelection, Rows
from raftlog.records.columns.transactions import AbortedIndex, Transactions
from raftlog.tools.auditing.judgement import epoch_rules
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

SELECTION: Final = "tests/records/columns/test_record_selection.py"
ITERATION: Final = "tests/contracts/test_log_iteration.py"


def _after_the_first(right: Wrong) -> Wrong:
    def holds(index: Any, producer_id: int, offset: int) -> Any:
        return right(index, producer_id, offset) and right(index, producer_id, offset - 1)

    return holds


def _up_to_a_window(right: Wrong) -> Wrong:
    return lambda splitter, position: splitter._window.end - position <= 16 * 2**20 and right(splitter, position)


def _and_not_at_a_boundary(right: Wrong) -> Wrong:
    def is_forgotten(comparison: Any, checkpoint: Any, span: Any) -> Any:
        return right(comparison, checkpoint, span) and span.end_offset != checkpoint.epochs[0].start_offset

    return is_forgotten


MUTANTS: Final = (
    Mutant(
        "R-zeros-remembered",
        "zeros of a file that grows are looked at again",
        "a bug that was planted, and lived",
        instead(_Splitter, "_has_grown", lambda splitter: splitter._window.has_grown()),
        ("tests/records/batches/test_iterator.py::test_zeros_are_looked_at_again_when_a_file_has_grown",),
    ),
    Mutant(
        "R-long-tail-torn",
        "a length that is wrong is told from a cut, however long the batch",
        "test_the_window_does_not_show, by chance",
        swapped(_Splitter, "_is_all_there", _up_to_a_window),
        ("tests/records/batches/test_iterator.py::test_a_long_batch_that_is_all_there_is_not_torn",),
    ),
    Mutant(
        "W-control-as-data",
        "a consumer is given no control record",
        "CompletedFetch#nextFetchedRecord",
        instead(RecordSelection, "wants_batch", lambda *_: True),
        (f"{SELECTION}::test_a_consumer_s_view_is_the_default",),
    ),
    Mutant(
        "W-whole-batches",
        "no record is below the offset that is asked for",
        "CompletedFetch#nextFetchedRecord",
        swapped(Rows, "kept", lambda _: lambda rows, *__: rows),
        (f"{SELECTION}::test_a_bound_holds_at_each_offset",),
    ),
    Mutant(
        "W-first-aborted",
        "the first record of a transaction is part of it",
        "CompletedFetch#fetchRecords",
        swapped(AbortedIndex, "holds", _after_the_first),
        (f"{SELECTION}::test_a_transaction_goes_from_its_first_record_to_its_marker",),
    ),
    Mutant(
        "W-stable",
        "a reader of committed records stops at the last stable offset",
        "UnifiedLog#lastStableOffset",
        instead_of_property(Transactions, "last_stable_offset", lambda _: None),
        (f"{SELECTION}::test_reading_stops_where_the_first_open_transaction_starts",),
    ),
    Mutant(
        "W-stable-end",
        "what was appended after the search for transactions is not committed",
        "UnifiedLog#lastStableOffset",
        instead_of_property(Transactions, "last_stable_offset", lambda known: known.stable_end),
        (f"{SELECTION}::test_records_appended_after_the_search_are_not_committed",),
    ),
    Mutant(
        "R-two-histories",
        "records of a later epoch do not follow ones that were truncated",
        "Raft, log matching",
        missing(iteration, "_check_given"),
        (f"{ITERATION}::test_a_truncation_of_what_was_given_is_an_error",),
    ),
    Mutant(
        "R-stale-read",
        "what was truncated after it was read is not given",
        "Raft, log matching",
        instead(iteration, "_is_held", lambda *_: True),
        (f"{ITERATION}::test_a_truncation_before_returned_records_ends_the_iteration",),
    ),
    Mutant(
        "W-lent",
        "what an accumulator has lent comes back, also after an error",
        "BatchMemoryPool",
        missing(DrainedBatches, "release"),
        ("tests/records/batches/test_accumulator.py::test_a_block_around_what_was_drained_releases_it",),
    ),
    Mutant(
        "R-longer-log",
        "an election compares epochs before lengths",
        "Raft, 5.4.1",
        instead(voting, "is_up_to_date", lambda candidate, voter: voter.offset <= candidate.offset),
        ("tests/tools/auditing/history/test_quorum_view.py::test_an_election_compares_epochs_first",),
    ),
    Mutant(
        "W-forgotten",
        "a log that starts where an epoch does has no entry of the epoch before",
        "LeaderEpochFileCache#truncateFromStartAsyncFlush",
        swapped(epoch_rules._Comparison, "_is_forgotten", _and_not_at_a_boundary),
        ("tests/tools/auditing/judgement/test_epoch_rules.py::test_epochs_beside_a_checkpoint",),
    ),
)
