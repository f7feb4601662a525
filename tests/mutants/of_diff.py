# SPDX-License-Identifier: Apache-2.0
"""Replicas whose records are not compared where their batches differ, or are compared in another way than mirrors."""

from typing import Any, Final

from raftlog.tools.auditing.history import divergence
from raftlog.tools.diff import compared_replicas, record_comparison
from tests.mutants.planting import Mutant, instead, instead_of_property, swapped

_RECORDS: Final = "tests/tools/diff/test_record_comparison.py"
_DIVERGENCE: Final = "tests/tools/auditing/history/test_divergence.py"


def _keys_and_values(batch: Any) -> Any:
    as_bytes = divergence._bytes
    return {each.offset: (as_bytes(each.key), as_bytes(each.value)) for each in batch.records()}


def _whole(right: Any) -> Any:
    return lambda *logs, **_: right(*logs)


def _unexplained(result: Any, *_: Any) -> Any:
    return result, {}


MUTANTS: Final = (
    Mutant(
        "R-diff-records",
        "replicas whose batches differ are compared record by record",
        "ours",
        instead_of_property(compared_replicas.Pair, "first_record_offset", lambda _: None),
        (_RECORDS,),
    ),
    Mutant(
        "R-diff-compaction",
        "of replicas that differ by compaction alone, no record is told",
        "ours",
        instead_of_property(compared_replicas.Pair, "first_record_offset", lambda pair: pair.left.start_offset),
        (_RECORDS,),
    ),
    Mutant(
        "R-diff-parted",
        "replicas that have the same records before a fork part at its first record",
        "KIP-101",
        swapped(record_comparison, "compare_same_offsets", _whole),
        (_RECORDS,),
    ),
    Mutant(
        "R-diff-damage",
        "a record that damage hides on one side is not called missing there",
        "ours",
        instead(record_comparison, "without_explained", _unexplained),
        (_RECORDS,),
    ),
    Mutant(
        "R-diff-kept",
        "compaction keeps timestamps and headers of the records that are left",
        "MemoryRecords.filterTo",
        instead(divergence, "_records", _keys_and_values),
        (_DIVERGENCE,),
    ),
)
