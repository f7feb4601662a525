# SPDX-License-Identifier: Apache-2.0
"""A salvaged partition that is not the one that the cluster had: which copy is right, and what counts of the others."""

from typing import Any, Final

import attrs

from raftlog.tools.salvage.partitions import (
    partition_belief,
    partition_copies,
    partition_lineage,
    partition_losses,
    partition_merging,
    partition_planning,
    partition_runs,
    partition_vouching,
)
from tests.mutants.planting import Mutant, Wrong, instead, swapped

PLACE: Final = "tests/tools/salvage/partitions"
VERB: Final = f"{PLACE}/test_partition_salvage.py"
LINEAGE: Final = f"{PLACE}/test_partition_lineage.py"
RUNS: Final = f"{PLACE}/test_partition_runs.py"
MERGING: Final = f"{PLACE}/test_partition_merging.py"
VOUCHING: Final = f"{PLACE}/test_partition_vouching.py"
_LATEST: Final = (1 << 31) - 1


def _all_hold(right: Wrong) -> Wrong:
    return lambda copies, _, leader_epoch: right(copies, [copy.node_id for copy in copies], leader_epoch)


def _any_epoch(right: Wrong) -> Wrong:
    return lambda copies, holders, leader_epoch: right(copies, holders, None if leader_epoch is None else _LATEST)


def _all_used(copies: Any, _: Any) -> Any:
    return list(copies), []


def _always(option: str, value: bool) -> Any:
    return lambda right: lambda *arguments, **options: right(*arguments, **(options | {option: value}))


def _copies_with(**members: Any) -> Any:
    return lambda right: lambda *arguments: attrs.evolve(right(*arguments), **members)


def _any_gap(self: Any, before: Any, batch: Any, _: Any) -> bool:
    return before is not None and bool(batch.base_offset >= before)


def _gap_at_the_end(self: Any, before: Any, batch: Any, _: Any) -> bool:
    if before is None or batch.base_offset <= before:
        return bool(before == batch.base_offset)
    return bool(self._is_compacted)


def _of_any_node(right: Wrong) -> Wrong:
    return lambda logs, _, are_equal: right(logs, range(len(logs)), are_equal)


MUTANTS: Final = (
    Mutant(
        "R-partition-isr",
        "a copy that is not of the ISR is not right because it is longer",
        "Partition: the high watermark is the least end of the ISR",
        swapped(partition_lineage, "choose_base", _all_hold),
        (f"{LINEAGE}::test_a_member_of_the_isr_beats_a_longer_copy", VERB),
    ),
    Mutant(
        "R-partition-later-epoch",
        "batches of a leader epoch above that of the metadata are not used",
        "PartitionRegistration: the metadata are where a leader epoch begins",
        swapped(partition_lineage, "choose_base", _any_epoch),
        (f"{LINEAGE}::test_a_later_epoch_than_that_of_the_metadata_does_not_count",),
    ),
    Mutant(
        "R-partition-replaced",
        "after the end of the base only what nobody can have replaced counts",
        "KIP-101",
        instead(partition_lineage, "_usable", lambda copies, index, base, leader_epoch: copies[index].known),
        (f"{LINEAGE}::test_after_the_end_of_the_base_only_what_was_not_replaced_counts",),
    ),
    Mutant(
        "R-partition-topic-id",
        "a topic that was made again is another topic",
        "KIP-516",
        instead(partition_planning, "_of_topic", _all_used),
        (f"{VERB}::test_another_topic_of_the_same_name_is_left_out",),
    ),
    Mutant(
        "R-partition-gap",
        "offsets that are missing in a log that was never compacted are lost",
        "LogCleaner",
        instead(partition_runs.RunReader, "_links", _any_gap),
        (f"{RUNS}::test_a_gap_of_a_log_that_was_never_compacted_is_a_hole",),
    ),
    Mutant(
        "R-partition-gap-at-end",
        "a batch after a gap has its place only if what follows confirms it",
        "DefaultRecordBatch: the CRC begins after the base offset",
        instead(partition_runs.RunReader, "_links", _gap_at_the_end),
        (f"{RUNS}::test_a_gap_of_compaction_is_inside_a_run",),
    ),
    Mutant(
        "R-partition-false-checkpoint",
        "a checkpoint that contradicts batches vouches for nothing",
        "LeaderEpochFileCache",
        instead(partition_vouching, "_contradicts", lambda lineage, run: False),
        (f"{VOUCHING}::test_a_false_checkpoint_vouches_for_nothing",),
    ),
    Mutant(
        "R-partition-unknown-node",
        "a directory of an unknown node is no second witness",
        "PAR/CTRL (FAST'18)",
        swapped(partition_vouching, "with_copies_elsewhere", _of_any_node),
        (f"{VOUCHING}::test_the_same_bytes_on_another_node_vouch_for_a_batch",),
    ),
    Mutant(
        "R-partition-unsettled",
        "without a proof no side of a conflict is taken",
        "PAR/CTRL (FAST'18)",
        swapped(partition_merging, "merge_copies", _always("is_settled", True)),
        (f"{VERB}::test_different_bytes_are_settled_by_the_isr_alone", MERGING),
    ),
    Mutant(
        "R-partition-cleaned-apart",
        "copies that were compacted at different times have no conflict",
        "LogCleaner",
        swapped(partition_merging, "merge_copies", _always("is_compacted", False)),
        (f"{MERGING}::test_batches_that_were_cleaned_at_different_times_are_no_conflict",),
    ),
    Mutant(
        "R-partition-hole",
        "a hole is stepped over only if that is asked for",
        "LogSegment#recover: the log is truncated there",
        swapped(partition_losses, "chosen_stretches", _always("steps_over", True)),
        (f"{VERB}::test_a_hole_ends_the_log_unless_it_is_stepped_over",),
    ),
    Mutant(
        "R-partition-high-watermark",
        "what was committed and is gone is named, if no byte of it is left",
        "ReplicaManager#checkpointHighWatermarks",
        swapped(partition_copies, "read_copy", _copies_with(high_watermark=0)),
        (f"{VERB}::test_the_high_watermark_shows_what_is_lost",),
    ),
    Mutant(
        "R-partition-deleted",
        "records that were deleted do not come back",
        "UnifiedLog#maybeIncrementLogStartOffset",
        swapped(partition_copies, "read_copy", _copies_with(start_offset=0)),
        (f"{VERB}::test_records_below_the_start_of_the_log_stay_deleted",),
    ),
    Mutant(
        "R-partition-metadata-changed",
        "a plan is refused if the metadata say something else by now",
        "decision 82",
        instead(partition_belief.Belief, "is_same", lambda self, other: True),
        (f"{VERB}::test_a_plan_is_refused_if_what_it_was_made_of_has_changed",),
    ),
)
