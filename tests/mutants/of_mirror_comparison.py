# SPDX-License-Identifier: Apache-2.0
"""Mirrors that are compared with their sources in another way than place by place, with the least to explain."""

from typing import Any, Final

from raftlog.tools.mirrors import pairing
from raftlog.tools.mirrors.comparing import alignment, course, displaced, edits, lifetimes, pair, stretches, window_sums
from raftlog.tools.mirrors.reading import flow, log_rows
from tests.mutants.planting import Mutant, instead, swapped

_PLANTED: Final = "tests/tools/mirrors/comparing/test_planted_mirrors.py"
_PAIR: Final = "tests/tools/mirrors/comparing/test_pair.py"
_BAD: Final = "tests/tools/mirrors/test_bad_mirrors.py"
_VERB: Final = "tests/tools/mirrors/test_verify_mirror.py"


def _in_any_order(right: Any) -> Any:
    return lambda digests, places: right(digests, places * 0)


def _nothing_wrong(syncs: Any, _holds: Any) -> Any:
    return ([list(syncs)] if syncs else []), []


def _greedy(right: Any) -> Any:
    return lambda left, right_, named: right(left, right_, [])


def _as_they_are(differences: Any, *_: Any) -> Any:
    return iter(differences)


def _never(*_: Any, **__: Any) -> bool:
    return False


def _nothing(*_: Any) -> None:
    return None


def _nothing_found(*_: Any) -> Any:
    return iter(())


def _known_ones(left: Any, right: Any, *, is_start_free: bool, is_adjacent: bool) -> Any:
    found = edits.find_edits(left, right, is_start_free=is_start_free)
    return None if found is None else (found, alignment._fault_sum(found))


def _always_compared(right: Any) -> Any:
    def compare(self: Any, *arguments: Any, **options: Any) -> None:
        self._is_compared = True
        right(self, *arguments, **options)

    return compare


def _all_of_target(_right: Any) -> Any:
    return lambda self, place: self._target.read(place.start, place.end)


def _without_gaps(_covered: Any, _start: int, _end: int) -> Any:
    return iter(())


MUTANTS: Final = (
    Mutant(
        "R-mirror-order",
        "records of a window must be equal in order",
        "KIP-382",
        swapped(window_sums, "_mixed", _in_any_order),
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
        instead(pair._PairComparison, "_begin", _nothing),
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
        swapped(pair._PairComparison, "_compare_lifetime", _always_compared),
        (f"{_BAD}::test_a_log_above_all_syncs_is_not_verified",),
    ),
    Mutant(
        "R-mirror-one-sided",
        "a partition whose mirror is not here is told",
        "MirrorSourceConnector",
        instead(pairing, "find_one_sided", _nothing_found),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-twice",
        "one cluster is no mirror of itself",
        "MirrorSourceConnector",
        instead(flow, "check_clusters", _nothing),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-aborted-target",
        "aborted records of the target were mirrored again",
        "KIP-618",
        swapped(course.Course, "_target_rows", _all_of_target),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-hole",
        "an offset without a record and without a control batch is a hole",
        "UnifiedLog",
        instead(log_rows, "_gaps", _without_gaps),
        (_VERB,),
    ),
)
