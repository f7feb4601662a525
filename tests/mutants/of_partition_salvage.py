# SPDX-License-Identifier: Apache-2.0
"""A salvaged partition that is not the one that the cluster had: which copy is right, and what counts of the others."""

from typing import Any, Final

import attrs

from raftlog.tools.salvage.partitions import (
    partition_belief,
    partition_building,
    partition_compaction,
    partition_conflicts,
    partition_copies,
    partition_lineage,
    partition_losses,
    partition_merging,
    partition_planning,
    partition_proof,
    partition_runs,
    partition_vouching,
)
from tests.mutants.planting import Mutant, Wrong, instead, swapped

PLACE: Final = "tests/tools/salvage/partitions"
VERB: Final = f"{PLACE}/test_partition_salvage.py"
LINEAGE: Final = f"{PLACE}/test_partition_lineage.py"
RUNS: Final = f"{PLACE}/test_partition_runs.py"
MERGING: Final = f"{PLACE}/test_partition_merging.py"
COMPACTION: Final = f"{PLACE}/test_partition_compaction.py"
TRAPS: Final = f"{PLACE}/test_partition_traps.py"
WITNESSES: Final = f"{PLACE}/test_partition_witnesses.py"
VOUCHING: Final = f"{PLACE}/test_partition_vouching.py"
_LATEST: Final = (1 << 31) - 1


def _all_hold(right: Wrong) -> Wrong:
    return lambda copies, _, *rest: right(copies, [copy.node_id for copy in copies], *rest)


def _any_epoch(right: Wrong) -> Wrong:
    return lambda copies, holders, leader_epoch, *rest: right(
        copies, holders, None if leader_epoch is None else _LATEST, *rest
    )


def _all_used(copies: Any, _: Any) -> Any:
    return list(copies), []


def _always(option: str, value: int) -> Any:
    return lambda right: lambda *arguments, **options: right(*arguments, **(options | {option: value}))


def _copies_with(**members: Any) -> Any:
    return lambda right: lambda *arguments: attrs.evolve(right(*arguments), **members)


def _any_gap(self: Any, before: Any, batch: Any, _: Any) -> bool:
    return before is not None and bool(batch.base_offset >= before)


def _gap_at_the_end(self: Any, before: Any, batch: Any, _: Any) -> bool:
    if before is None or batch.base_offset <= before:
        return bool(before == batch.base_offset)
    return bool(self._compacted_below > 0)


def _of_any_node(right: Wrong) -> Wrong:
    return lambda logs, _, are_equal: right(logs, range(len(logs)), are_equal)


def _perhaps_is_certain(right: Wrong) -> Wrong:
    return lambda self, seen: seen.perhaps_from <= self._position <= seen.start or right(self, seen)


def _without_policy(right: Wrong) -> Wrong:
    return lambda copies, is_compacted, are_equal: right(copies, is_compacted or None, are_equal)


def _without_limits(right: Wrong) -> Wrong:
    return lambda *arguments, **options: attrs.evolve(right(*arguments, **options), limits={})


def _no_swaps(right: Wrong) -> Wrong:
    return lambda source: tuple(each for each in right(source) if each.file.endswith(".log"))


def _nothing_early(right: Wrong) -> Wrong:
    def chosen(*arguments: Any, **options: Any) -> Any:
        found, _, later = right(*arguments, **options)
        return found, [], later

    return chosen


MUTANTS: Final = (
    Mutant(
        "R-partition-missing-file",
        "a gap between two files of a compacted log may be a file that is missing",
        "Cleaner#cleanSegments",
        swapped(partition_merging._Merging, "_covers", _perhaps_is_certain),
        (f"{MERGING}::test_a_gap_between_files_is_filled_by_whoever_has_something_there", COMPACTION),
    ),
    Mutant(
        "R-partition-policy",
        "one odd batch or an old entry of the cleaner does not overrule the policy of the metadata",
        "LogCleanerManager: an entry stays when the policy changes",
        swapped(partition_compaction, "read_logs", _without_policy),
        (f"{TRAPS}::test_one_odd_batch_does_not_make_a_log_compacted",),
    ),
    Mutant(
        "R-partition-parted",
        "a copy that differs from the base gives nothing after the last common batch of the epoch",
        "KIP-101",
        swapped(partition_conflicts, "find_agreement", _without_limits),
        (f"{MERGING}::test_a_copy_that_differs_gives_nothing_after_what_it_has_in_common", TRAPS),
    ),
    Mutant(
        "R-partition-other-records",
        "compaction removes records and changes none",
        "LogCleaner",
        instead(partition_conflicts, "_are_one_batch", lambda one, other: True),
        (f"{MERGING}::test_compaction_removes_records_and_changes_none",),
    ),
    Mutant(
        "R-partition-chains",
        "runs of an epoch count together across files",
        "PAR/CTRL (FAST'18)",
        instead(partition_vouching, "chained", lambda runs, _: [[run] for run in runs]),
        (f"{TRAPS}::test_one_foreign_file_does_not_outweigh_the_log_after_it",),
    ),
    Mutant(
        "R-partition-directory",
        "a copy in another directory than the metadata's is not that of the broker",
        "KIP-858",
        instead(partition_proof, "is_of_broker", lambda copy, belief: copy.node_id is not None),
        (f"{TRAPS}::test_a_copy_in_another_directory_is_not_that_of_the_broker",),
    ),
    Mutant(
        "R-partition-metadata-part",
        "metadata of a part of the controllers prove nothing",
        "KIP-595: a majority of the voters commits",
        instead(partition_belief, "_problems", lambda view, state, entry: ()),
        (f"{VERB}::test_metadata_of_a_part_of_the_controllers_prove_nothing",),
    ),
    Mutant(
        "R-partition-early-epochs",
        "epochs before the first batch stay in the checkpoint",
        "RemoteLogManager",
        instead(partition_building, "_with_early", lambda early, epochs: list(epochs)),
        (f"{VERB}::test_epochs_before_the_first_batch_stay_in_the_checkpoint",),
    ),
    Mutant(
        "R-partition-unclean",
        "what an unclean election has replaced is named",
        "unclean.leader.election.enable",
        instead(partition_losses, "elsewhere_words", lambda *arguments: ()),
        (f"{TRAPS}::test_what_an_unclean_election_has_replaced_is_named",),
    ),
    Mutant(
        "R-partition-before",
        "what others have before the base begins is named",
        "UnifiedLog#maybeIncrementLogStartOffset",
        swapped(partition_losses, "chosen_stretches", _nothing_early),
        (f"{TRAPS}::test_what_others_have_before_the_base_begins_is_named",),
    ),
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
        swapped(partition_merging, "merge_copies", _always("compacted_below", 0)),
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
        "R-partition-named-end",
        "the name of a file shows how far the log went",
        "UnifiedLog#roll: a crash keeps the name of the new file, and not what was written before",
        swapped(partition_copies, "_named_end", lambda _: lambda source: 0),
        (f"{WITNESSES}::test_the_name_of_a_later_file_shows_that_the_end_is_lost",),
    ),
    Mutant(
        "R-partition-log-end",
        "the end of the log vouches for a last batch that ends there, and for no other",
        "DefaultRecordBatch: the CRC begins after the base offset",
        instead(partition_runs.RunReader, "_after", lambda self, following, end: following or self._log_end),
        (f"{WITNESSES}::test_the_end_of_the_log_vouches_for_the_last_batch",),
    ),
    Mutant(
        "R-partition-swap",
        "a segment that compaction had not renamed yet counts",
        "LogSegments#replaceSegments",
        swapped(partition_copies, "_segments", _no_swaps),
        (f"{WITNESSES}::test_a_segment_that_compaction_had_not_renamed_yet_counts",),
    ),
    Mutant(
        "R-partition-older-metadata",
        "metadata that are older than those of a source prove nothing",
        "KIP-595: observers have the log, too",
        instead(partition_belief, "_later", lambda beside, end_offset, processes: ()),
        (f"{WITNESSES}::test_metadata_that_are_older_than_those_of_a_source_prove_nothing",),
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
