# SPDX-License-Identifier: Apache-2.0
"""Mirrors that are compared with their sources in another way than place by place, with the least to explain."""

import itertools
from typing import Any, Final

import numpy as np

from raftlog.tools.auditing.judgement import replica_rules
from raftlog.tools.mirrors import offset_policies, pairing
from raftlog.tools.mirrors.comparing import (
    alignment,
    course,
    displaced,
    edits,
    lifetimes,
    log_sums,
    log_view,
    long_stretches,
    pair,
    rows,
    same_offsets,
    stretches,
)
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES
from raftlog.tools.mirrors.on_spark import spark_summer
from tests.mutants.planting import Mutant, instead, swapped

_PLANTED: Final = "tests/tools/mirrors/comparing/test_planted_mirrors.py"
_PAIR: Final = "tests/tools/mirrors/comparing/test_pair.py"
_VIEW: Final = "tests/tools/mirrors/comparing/test_log_view.py"
_PARTS: Final = "tests/tools/mirrors/on_spark/test_spark_summer.py"
_RESTARTS: Final = "tests/tools/mirrors/comparing/test_pair_restarts.py"
_RESETS: Final = "tests/tools/mirrors/comparing/test_pair_resets.py"
_REPLICAS: Final = "tests/tools/mirrors/reading/test_replica_choice.py"
_SAME: Final = "tests/tools/mirrors/comparing/test_same_offsets.py"
_SAME_VERB: Final = "tests/tools/mirrors/test_verify_same_offsets.py"
_BAD: Final = "tests/tools/mirrors/test_bad_mirrors.py"
_ENDS: Final = "tests/tools/mirrors/test_damaged_ends.py"


def _in_any_order(right: Any) -> Any:
    def sum_runs(digests: Any, starts: Any) -> Any:
        runs = starts.searchsorted(np.arange(len(digests)), side="right")
        return right(digests[np.lexsort((*digests.T, runs))], starts)

    return sum_runs


def _nothing_wrong(syncs: Any, _holds: Any) -> Any:
    return ([syncs] if syncs else []), []


def _greedy(right: Any) -> Any:
    return lambda left, right_, named: right(left, right_, [])


def _as_they_are(differences: Any, *_: Any) -> Any:
    return iter(differences)


def _never(*_: Any, **__: Any) -> bool:
    return False


def _never_parted(self: Any) -> Any:
    return self._target.all.end_offset


def _without_places(self: Any) -> Any:
    return self


def _always(*_: Any) -> bool:
    return True


def _all_given(_self: Any, syncs: Any) -> Any:
    return np.arange(len(syncs))


def _as_given(_self: Any, syncs: Any, _made_anew: Any) -> Any:
    return syncs


def _none(*_: Any) -> None:
    return None


def _known_ones(left: Any, right: Any, *, is_start_free: bool, is_adjacent: bool) -> Any:
    found = edits.find_edits(left, right, is_start_free=is_start_free)
    return None if found is None else (found, alignment._fault_sum(found))


def _always_compared(right: Any) -> Any:
    def kept(self: Any, lifetimes: Any) -> Any:
        self._is_compared = True
        return right(self, lifetimes)

    return kept


def _of_one_task(right: Any) -> Any:
    def passed_over(self: Any, syncs: Any) -> Any:
        for _, group in itertools.groupby(syncs, lambda each: each.producer_id):
            yield from right(self, lifetimes.Syncs.of(list(group)))

    return passed_over


def _wherever_the_source_ends(right: Any) -> Any:
    return lambda self, gone, ends: right(self, gone, (self._source.end_offset, ends[1]))


def _with_its_own_record(right: Any) -> Any:
    return lambda mine, at, records, other, place, end: right(mine, at, records, other, place - 1, end)


def _one(_right: Any) -> Any:
    return 1


def _of_one_former_task(right: Any) -> Any:
    def copied(*given: Any) -> Any:
        found = right(*given)
        return None if found is None or len(found) > 1 else found

    return copied


def _lost_at_restart(right: Any) -> Any:
    def told(self: Any, *arguments: Any) -> Any:
        before, self._differences = self._differences, []
        found = list(right(self, *arguments))
        self._differences = before
        return found

    return told


def _as_it_is(_self: Any, each: Any) -> Any:
    return each


def _all_of_target(right: Any) -> Any:
    def compare(source: Any, target: Any, *arguments: Any, **options: Any) -> Any:
        target.committed = target.all
        return right(source, target, *arguments, **options)

    return compare


def _without_gaps(_covered: Any, _start: int, _end: int) -> Any:
    return NO_RANGES


def _no_findings(*_: Any) -> Any:
    return ()


def _nothing(*_: Any) -> Any:
    return iter(())


def _of_whatever_is_known(ours: Any, theirs: Any) -> Any:
    return (ours[0] == theirs[0]).all(axis=1)


MUTANTS: Final = (
    Mutant(
        "R-mirror-offsets",
        "in logs with the same offsets, equal records at other offsets are not the same",
        "KIP-1279",
        instead(rows.DigestRows, "with_offsets", _without_places),
        (_SAME,),
    ),
    Mutant(
        "R-mirror-parted",
        "two logs part where a record is of another write",
        "KIP-1279",
        instead(same_offsets._Comparison, "_fork", _never_parted),
        (_SAME,),
    ),
    Mutant(
        "R-mirror-passed-same",
        "offsets that neither log has, after those of the target, were passed over",
        "KIP-1279",
        instead(same_offsets._Comparison, "_passed_over", _nothing),
        (_SAME,),
    ),
    Mutant(
        "R-mirror-positions",
        "a group passes over what others wrote to the target at offsets that it has read of the source",
        "KIP-1279",
        instead(offset_policies, "check_positions", _no_findings),
        (_SAME_VERB,),
    ),
    Mutant(
        "R-mirror-same-names",
        "a partition that one side does not have under the same name is told",
        "KIP-1279",
        instead(offset_policies, "find_missing_names", _nothing),
        (_SAME_VERB,),
    ),
    Mutant(
        "R-mirror-made-anew",
        "syncs of a topic that was made anew since do not count for the one that is there",
        "KIP-516",
        instead(pair._PairComparison, "_without_former", _as_given),
        (_RESETS,),
    ),
    Mutant(
        "R-mirror-passed",
        "what retention removed before it was mirrored is lost, though neither log has a gap",
        "MirrorSourceTask",
        instead(pair._PairComparison, "_passed_over", _nothing),
        (_RESETS,),
    ),
    Mutant(
        "R-mirror-contradicted",
        "of two replicas that contradict each other, neither is sound if nothing decides",
        "KIP-101",
        instead(replica_rules, "_is_newest_upheld", _always),
        (_REPLICAS,),
    ),
    Mutant(
        "R-mirror-older-records",
        "records that are older than the source, which was made anew, are of the former topic, though no sync is",
        "KIP-516",
        instead(pair._PairComparison, "_before_source", _nothing),
        (_RESETS,),
    ),
    Mutant(
        "R-mirror-looks-older",
        "a sync that looks older than the source, and holds, is not of a former topic",
        "KIP-516",
        instead(pair._PairComparison, "_false_ones", _all_given),
        (_RESETS,),
    ),
    Mutant(
        "R-mirror-order",
        "records of a window must be equal in order",
        "KIP-382",
        swapped(log_sums, "sum_runs", _in_any_order),
        (_PLANTED, _PAIR),
    ),
    Mutant(
        "R-mirror-outlier",
        "a sync that does not rise is bad, and the others count",
        "OffsetSyncWriter",
        instead(lifetimes, "_rising_parts", _nothing_wrong),
        (_PLANTED, _PAIR),
    ),
    Mutant(
        "R-mirror-anchors",
        "syncs say which of equal records is missing",
        "OffsetSync",
        swapped(alignment, "_nodes", _greedy),
        (_PLANTED, _PAIR),
    ),
    Mutant(
        "R-mirror-copy",
        "a record that the source has had before is a copy, and not foreign",
        "KIP-382",
        instead(displaced, "_with_copies", _as_they_are),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-moved",
        "a record that is lost in one window, and comes in another one, has moved",
        "KIP-382",
        instead(displaced, "_with_moved", _as_they_are),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-past",
        "syncs past the end of a target that was made anew were true of the former one",
        "MirrorSourceTask",
        instead(lifetimes, "_is_of_former_target", _never),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-since",
        "syncs that held before records were put in, or taken out, are not wrong",
        "OffsetSync",
        instead(stretches, "_was_moved", _never),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-explained",
        "a sync of a changed record is explained by the change",
        "OffsetSync",
        instead(stretches, "_explains", _never),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-shortened",
        "a sync past an end that was before the target's, until records were taken out, is not bad",
        "OffsetSync",
        instead(pair._PairComparison, "_was_shortened", _never),
        (_PLANTED,),
    ),
    Mutant(
        "R-mirror-recreated",
        "a source whose former syncs all fail is another topic",
        "MirrorSourceTask",
        instead(pair._PairComparison, "_is_recreated", _never),
        (_PAIR,),
    ),
    Mutant(
        "R-mirror-begin",
        "a task may have mirrored records before the first of its syncs that is left",
        "OffsetSyncWriter",
        instead(pair._PairComparison, "_begin", _none),
        (_PAIR,),
    ),
    Mutant(
        "R-mirror-compacted",
        "a record of the source that was compacted away before it was mirrored is not missing",
        "LogCleaner",
        instead(alignment, "_least_edits", _known_ones),
        (_PAIR,),
    ),
    Mutant(
        "R-mirror-lag",
        "what comes after syncs whose records are all gone is not verified, and is not lag",
        "MirrorSourceTask",
        swapped(pair._PairComparison, "_from_first_here", _always_compared),
        (f"{_RESTARTS}::test_a_log_above_all_syncs_whose_records_repeat_is_not_verified",),
    ),
    Mutant(
        "R-mirror-begun",
        "a task whose first syncs retention has left nothing of began before the next one",
        "MirrorSourceTask",
        instead(pair._PairComparison, "_starting_place", _none),
        (f"{_RESTARTS}::test_retention_beside_a_restart_is_no_loss",),
    ),
    Mutant(
        "R-mirror-begun-before",
        "a task began before its first sync in both logs",
        "MirrorSourceTask",
        swapped(pair._PairComparison, "_starting_place", _wherever_the_source_ends),
        (f"{_RESTARTS}::test_a_task_began_before_its_first_sync_in_both_logs",),
    ),
    Mutant(
        "R-mirror-begun-after",
        "a task went on after the record of a sync",
        "MirrorSourceTask",
        swapped(long_stretches, "_first_record_in", _with_its_own_record),
        (f"{_RESTARTS}::test_the_record_of_a_sync_is_not_the_next_one",),
    ),
    Mutant(
        "R-mirror-repeats",
        "where records repeat, one of them does not show where a task went on",
        "producers repeat themselves",
        swapped(long_stretches, "_MOST_PLACES", _one),
        (f"{_RESTARTS}::test_eight_records_show_where_a_task_went_on",),
    ),
    Mutant(
        "R-mirror-unread-anchor",
        "a sync of a record that cannot be read is not verified",
        "OffsetSyncWriter",
        instead(stretches, "_is_unknown", _never),
        (f"{_ENDS}::test_a_damaged_batch_is_unverifiable",),
    ),
    Mutant(
        "R-mirror-passed-restart",
        "what retention removed while no task ran was passed over",
        "MirrorSourceTask",
        swapped(pair._PairComparison, "_passed_over", _of_one_task),
        (f"{_RESTARTS}::test_what_retention_removed_before_a_restart_is_passed_over",),
    ),
    Mutant(
        "R-mirror-restart-end",
        "what the last records of a task are instead has changed, and was not written by others",
        "MirrorSourceTask",
        swapped(pair._PairComparison, "_at_restart", _lost_at_restart),
        (f"{_RESTARTS}::test_what_has_changed_before_a_restart_is_not_lost",),
    ),
    Mutant(
        "R-mirror-one-start",
        "where logs start, only one of them may have more",
        "UnifiedLog",
        instead(stretches._Telling, "_pair_at_start", _none),
        (f"{_RESTARTS}::test_a_change_where_logs_start_is_told",),
    ),
    Mutant(
        "R-mirror-older-copies",
        "copies before the first sync that is left are of tasks whose syncs compaction has removed",
        "LogCleaner",
        instead(course.Course, "_as_copied", _as_it_is),
        (f"{_RESTARTS}::test_copies_of_what_retention_has_removed_since_are_harmless",),
    ),
    Mutant(
        "R-mirror-former-tasks",
        "a task may have been restarted more than once before the first sync that is left",
        "LogCleaner",
        swapped(long_stretches, "copied_runs", _of_one_former_task),
        (f"{_RESTARTS}::test_a_task_that_was_restarted_often_is_no_fault",),
    ),
    Mutant(
        "R-mirror-one-sided",
        "a partition whose mirror is not here is told",
        "MirrorSourceConnector",
        instead(pairing, "find_one_sided", _nothing),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-aborted-target",
        "aborted records of the target were mirrored again",
        "KIP-618",
        swapped(pair, "compare_pair", _all_of_target),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-between-pieces",
        "offsets between what is read at a time, that neither has, are unknown, too",
        "UnifiedLog",
        instead(log_sums, "uncovered", _without_gaps),
        (_PARTS,),
    ),
    Mutant(
        "R-mirror-known",
        "what cannot be read is equal to nothing",
        "KIP-382",
        instead(log_view, "_are_equal", _of_whatever_is_known),
        (_VIEW,),
    ),
    Mutant(
        "R-mirror-cut-in-damage",
        "a segment that is divided within damage is read again, as a whole",
        "LogSegment",
        instead(spark_summer, "_cut_in_damage", _nothing),
        (_PARTS,),
    ),
)
