# SPDX-License-Identifier: Apache-2.0
"""Mirrors that are compared with their sources in another way than place by place, with the least to explain."""

from typing import Any, Final

from raftlog.tools.mirrors.comparing import (
    alignment,
    course,
    lifetimes,
    log_sums,
    log_view,
    order_sums,
    pair,
    same_offsets,
    stretches,
)
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES
from raftlog.tools.mirrors.on_spark import spark_summer
from raftlog.tools.mirrors.reading import log_reading, log_rows, replica_choice
from tests.mutants.planting import Mutant, instead, swapped

_PLANTED: Final = "tests/tools/mirrors/comparing/test_planted_mirrors.py"
_PAIR: Final = "tests/tools/mirrors/comparing/test_pair.py"
_VIEW: Final = "tests/tools/mirrors/comparing/test_log_view.py"
_PARTS: Final = "tests/tools/mirrors/on_spark/test_spark_summer.py"
_RESETS: Final = "tests/tools/mirrors/comparing/test_pair_resets.py"
_REPLICAS: Final = "tests/tools/mirrors/reading/test_replica_choice.py"
_SAME: Final = "tests/tools/mirrors/comparing/test_same_offsets.py"
_VERB: Final = "tests/tools/mirrors/test_verify_mirror.py"


def _in_any_order(right: Any) -> Any:
    return lambda count: tuple(table * 0 + 1 for table in right(count))


def _nothing_wrong(syncs: Any, _holds: Any) -> Any:
    return ([list(syncs)] if syncs else []), []


def _greedy(right: Any) -> Any:
    return lambda left, right_, named: right(left, right_, [])


def _foreign_all(_self: Any, differences: Any) -> Any:
    return iter(differences)


def _never(*_: Any, **__: Any) -> bool:
    return False


def _one_run(right: Any) -> Any:
    def first_to_last(source: Any, target: Any) -> Any:
        runs = list(right(source, target))
        return iter([(runs[0][0], runs[-1][1])] if runs else [])

    return first_to_last


def _all_sound(*_: Any) -> dict[str, Any]:
    return {}


def _as_given(_self: Any, syncs: Any, _made_anew: Any) -> Any:
    return list(syncs)


def _nothing_passed_over(_self: Any, _lifetime: Any) -> Any:
    return iter(())


def _without_gaps(_covered: Any, _start: int, _end: int) -> Any:
    return NO_RANGES


def _nothing(*_: Any) -> Any:
    return iter(())


def _of_whatever_is_known(ours: Any, theirs: Any) -> Any:
    return (ours[0] == theirs[0]).all(axis=1)


def _as_if_rising(right: Any) -> Any:
    def joined(parts: Any, start: int, end: int, edges: Any) -> Any:
        found = right(parts, start, end, edges)
        return right(parts[:1], start, end, edges) if found is None else found

    return joined


MUTANTS: Final = (
    Mutant(
        "R-mirror-offsets",
        "in logs with the same offsets, each offset at which both have the same record is an anchor",
        "KIP-1279",
        swapped(same_offsets, "_runs", _one_run),
        (_SAME,),
    ),
    Mutant(
        "R-mirror-replica",
        "a replica that others contradict is not compared, however far it reaches",
        "KIP-101",
        instead(replica_choice, "sound_lineage_faults", _all_sound),
        (_REPLICAS,),
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
        instead(pair._PairComparison, "_passed_over", _nothing_passed_over),
        (_RESETS,),
    ),
    Mutant(
        "R-mirror-order",
        "records of a window must be equal in order",
        "KIP-382",
        swapped(order_sums, "_tables", _in_any_order),
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
        instead(course.Course, "_with_copies", _foreign_all),
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
        "R-mirror-hole",
        "an offset without a record and without a control batch is a hole",
        "UnifiedLog",
        instead(log_rows, "uncovered", _without_gaps),
        (_VERB,),
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
    Mutant(
        "R-mirror-falling-parts",
        "a log whose offsets fall from one part to the next is read as a whole",
        "UnifiedLog",
        swapped(log_reading, "joined_sums", _as_if_rising),
        (_PARTS,),
    ),
)
