# SPDX-License-Identifier: Apache-2.0
"""Mirrors whose files are read in another way: which replica, how far, and what the metadata say."""

from typing import Any, Final

import numpy as np

from raftlog.storage.reading import index_seek
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES
from raftlog.tools.mirrors.reading import flow, log_reading, log_rows, metadata, replica_choice
from tests.mutants.planting import Mutant, instead, instead_of_property, swapped

_PARTS: Final = "tests/tools/mirrors/on_spark/test_spark_summer.py"
_REPLICAS: Final = "tests/tools/mirrors/reading/test_replica_choice.py"
_REPLICAS_OF_VERB: Final = "tests/tools/mirrors/test_verify_replicas.py"
_BAD: Final = "tests/tools/mirrors/test_bad_mirrors.py"
_ENDS: Final = "tests/tools/mirrors/test_damaged_ends.py"
_TRANSACTIONS: Final = "tests/tools/mirrors/reading/test_log_transactions.py"
_SYNCS: Final = "tests/tools/mirrors/reading/test_sync_columns.py"
_VERB: Final = "tests/tools/mirrors/test_verify_mirror.py"


def _all_sound(*_: Any) -> dict[str, Any]:
    return {}


def _whole(*_: Any, **__: Any) -> Any:
    return metadata.MetadataState.WHOLE


def _none(*_: Any) -> None:
    return None


def _by_the_index(right: Any) -> Any:
    return lambda source, position: right(source, position) if position else index_seek.SegmentTail(None)


def _below_the_end(rows: Any) -> Any:
    return list(log_rows.overlapping(rows.segments, rows.start_offset, rows.end_offset))


def _without_gaps(_covered: Any, _start: int, _end: int) -> Any:
    return NO_RANGES


def _as_if_rising(right: Any) -> Any:
    def joined(parts: Any, start: int, end: int, edges: Any) -> Any:
        found = right(parts, start, end, edges)
        return right(parts[:1], start, end, edges) if found is None else found

    return joined


def _without_news(_log: Any, _chunk: Any) -> bool:
    return False


def _backwards(right: Any) -> Any:
    return lambda numbers, **_: right(numbers, kind="stable")[::-1]


MUTANTS: Final = (
    Mutant(
        "R-mirror-first-transaction",
        "the batch with which the first transaction begins has aborted records, too",
        "LogCleaner",
        instead(log_rows.LogRows, "_has_news", _without_news),
        (f"{_TRANSACTIONS}::test_what_is_aborted_is_known_wherever_it_begins",),
    ),
    Mutant(
        "R-mirror-sync-order",
        "syncs of a partition are in the order of their topic",
        "OffsetSyncStore",
        swapped(np, "argsort", _backwards),
        (f"{_SYNCS}::test_columns_are_what_each_record_says",),
    ),
    Mutant(
        "R-mirror-replica",
        "a replica that others contradict is not compared, however far it reaches",
        "KIP-101",
        instead(replica_choice, "sound_lineage_faults", _all_sound),
        (_REPLICAS,),
    ),
    Mutant(
        "R-mirror-most-records",
        "of replicas that end alike, the one with most records is compared",
        "UnifiedLog",
        instead_of_property(replica_choice._Candidate, "preference", lambda each: (not each.is_out, each.end)),
        (_REPLICAS,),
    ),
    Mutant(
        "R-mirror-no-metadata",
        "it is said if the metadata of a cluster are not here",
        "KIP-500",
        instead(metadata, "metadata_state", _whole),
        (f"{_REPLICAS_OF_VERB}::test_what_is_not_looked_for_without_metadata_is_said",),
    ),
    Mutant(
        "R-mirror-end-index",
        "a damaged last batch, which the index names, is not the whole segment",
        "OffsetIndex",
        swapped(index_seek, "_end_from", _by_the_index),
        (
            f"{_ENDS}::test_a_damaged_batch_is_unverifiable",
            "tests/storage/reading/test_index_seek.py::test_the_end_is_found_whatever_is_damaged",
            "tests/tools/dump/test_dump_log_selection.py::test_the_last_offsets_before_damage",
        ),
    ),
    Mutant(
        "R-mirror-end-claimed",
        "damaged batches at the end of a log were there",
        "LogLoader#recoverLog",
        instead(log_rows, "_claimed_end", lambda _source, _position, end: end),
        (f"{_ENDS}::test_damage_up_to_the_end_is_unverifiable",),
    ),
    Mutant(
        "R-mirror-end-unsound",
        "a last segment without a sound batch is told as damaged",
        "LogLoader#recoverLog",
        instead(log_rows.LogRows, "segments_here", _below_the_end),
        (f"{_ENDS}::test_a_last_segment_without_a_sound_batch_is_told",),
    ),
    Mutant(
        "R-mirror-twice",
        "one cluster is no mirror of itself",
        "MirrorSourceConnector",
        instead(flow, "check_clusters", _none),
        (_BAD,),
    ),
    Mutant(
        "R-mirror-hole",
        "an offset without a record and without a control batch is a hole",
        "UnifiedLog",
        instead(log_rows, "uncovered", _without_gaps),
        (_VERB,),
    ),
    Mutant(
        "R-mirror-falling-parts",
        "a log whose offsets fall from one part to the next is read as a whole",
        "UnifiedLog",
        swapped(log_reading, "joined_sums", _as_if_rising),
        (_PARTS,),
    ),
)
