# SPDX-License-Identifier: Apache-2.0
"""A fault that the audit does not find, or finds where there is none."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement import controller_rules, snapshot_records
from raftlog.tools.auditing.agreement.metadata_image import MetadataImage
from raftlog.tools.auditing.indexes.transaction_index_rules import TransactionIndexSurvey
from raftlog.tools.auditing.judgement import checkpoint_rules, replica_rules, voter_rules
from raftlog.tools.auditing.producers.producer_history import ProducerHistory
from raftlog.tools.auditing.producers.transaction_rules import TransactionSurvey
from raftlog.tools.auditing.survey import small_file_survey
from raftlog.tools.catalogue.findings import Finding
from tests.mutants.planting import Mutant, Wrong, instead, swapped

CONTROLLERS: Final = "tests/tools/auditing/agreement/test_controller_rules.py"
SNAPSHOT_RECORDS: Final = "tests/tools/auditing/agreement/test_snapshot_records.py"
CHECKPOINTS: Final = "tests/tools/auditing/judgement/test_checkpoint_rules.py"
INDEXES: Final = "tests/tools/auditing/indexes/test_index_rules.py"
STABLE_OFFSETS: Final = "tests/tools/auditing/indexes/test_stable_offsets.py"
REPLICAS: Final = "tests/tools/auditing/judgement/test_replica_rules.py"
SMALL_FILES: Final = "tests/tools/auditing/survey/test_small_file_survey.py"
VOTERS: Final = "tests/tools/auditing/judgement/test_voter_rules.py"


def _by_votes_alone(change: Any) -> tuple[str, str] | None:
    problem = voter_rules.election_problem(change)
    return None if problem is None else ("leader-elected", problem)


def _of_one_batch(right: Wrong) -> Wrong:
    def uncommitted(self: Any, *arguments: Any) -> str | None:
        moment = right(self, *arguments)
        return moment if moment is not None and moment.startswith("batch") else None

    return uncommitted


def _with_old_ones(right: Wrong) -> Wrong:
    def registered(partition: Any) -> dict[int, Any]:
        found = {seen.controller_id: (seen, file) for file in partition.segments for seen in file.controllers}
        last: dict[int, Any] = right(partition)
        return {key: each for key, each in found.items() if each[0].level >= 0} | last

    return registered


def _later_than_the_offset(log: Any, offset: int) -> bool:
    epochs = log.small_file(FileKind.LEADER_EPOCH_CHECKPOINT)
    return epochs is not None and any(entry.start_offset < offset for entry in epochs.epochs[:1])


def _though_open_at_all(right: Wrong) -> Wrong:
    def faults(self: ProducerHistory, segment: Any, extent: Any) -> Iterator[Finding]:
        opened = {state.open_offset for state in self.states.values()}
        for finding, entry in zip(right(self, segment, extent), segment.stable_offsets, strict=False):
            if entry.offset not in opened:
                yield finding

    return faults


def _of_any_next(right: Wrong) -> Wrong:
    def begin(self: TransactionSurvey, producer_id: int, offset: int) -> None:
        right(self, producer_id, offset)
        self.aborted = [attrs.evolve(marker, next_first_offset=offset) for marker in self.aborted]

    return begin


def _of_the_first_entry(right: Wrong) -> Wrong:
    def leave(self: TransactionIndexSurvey, entry: Any, extent: Any) -> None:
        right(self, entry, extent)
        del self.stable_offsets[1:]

    return leave


def _without_negative_offsets(right: Wrong) -> Wrong:
    def wrong_entry(self: TransactionIndexSurvey, *arguments: Any, **keywords: Any) -> str | None:
        reason = right(self, *arguments, **keywords)
        return None if reason is not None and reason.startswith("offset -") else reason

    return wrong_entry


def _with_the_same_leader(right: Wrong) -> Wrong:
    def change_partition(self: MetadataImage, message: Any) -> None:
        known = self.stated.get(("PARTITION_RECORD", (message["topicId"], message["partitionId"])), {})
        is_same = message["leader"] == known.get("leader")
        right(self, {**message, "leader": -2} if is_same else message)

    return change_partition


def _though_records_are_gone(right: Wrong) -> Wrong:
    def replay(*arguments: Any) -> None:
        try:
            right(*arguments)
        except snapshot_records._LogEndsError:
            return

    return replay


MUTANTS: Final = (
    Mutant(
        "R-findings-leader-epoch",
        "a leader that is named again begins a leader epoch, too",
        "PartitionRegistration#merge",
        swapped(MetadataImage, "change_partition", _with_the_same_leader),
        (f"{SNAPSHOT_RECORDS}::test_the_effect_of_records",),
    ),
    Mutant(
        "R-findings-snapshot-gap",
        "a snapshot is not compared with a log that has lost records",
        "what is unknown is no difference",
        swapped(snapshot_records, "_replay", _though_records_are_gone),
        (f"{SNAPSHOT_RECORDS}::test_a_log_with_a_gap_is_not_compared",),
    ),
    Mutant(
        "R-findings-own-vote",
        "the leader of a new epoch is a voter, and among those that voted for it",
        "CandidateState",
        instead(voter_rules, "_leader_fault", _by_votes_alone),
        (f"{VOTERS}::test_a_leader_without_votes",),
    ),
    Mutant(
        "R-findings-outlier",
        "a replica with a sound batch is not blamed for it, however many have a batch that breaks a rule",
        "none of Kafka's: replicas are compared after the fact",
        instead(replica_rules, "_has_finding_at", lambda *_: False),
        (f"{REPLICAS}::test_a_batch_that_breaks_a_rule_is_the_outlier",),
    ),
    Mutant(
        "R-findings-uncommitted",
        "a change of voters waits until the change before it is committed",
        "AddVoterHandler",
        swapped(voter_rules._Reading, "_uncommitted", _of_one_batch),
        (f"{VOTERS}::test_a_change_in_the_millisecond_of_the_change_before",),
    ),
    Mutant(
        "R-findings-controllers",
        "the last registration of a controller counts, in the log or in the newest snapshot",
        "KIP-1312",
        swapped(controller_rules, "_registered", _with_old_ones),
        (CONTROLLERS,),
    ),
    Mutant(
        "R-findings-log-start",
        "a log starts within its first segment, and not above its high watermark",
        "LogManager#checkpointLogStartOffsetsInDir",
        instead(checkpoint_rules, "judge_log_starts", lambda *_: iter(())),
        (CHECKPOINTS,),
    ),
    Mutant(
        "R-findings-tiered-start",
        "a log in tiered storage starts where its leader epochs begin",
        "KIP-405",
        instead(checkpoint_rules, "_begins_remotely", _later_than_the_offset),
        (CHECKPOINTS,),
    ),
    Mutant(
        "R-findings-named-twice",
        "a checkpoint of offsets names a partition once",
        "OffsetCheckpointFile",
        instead(small_file_survey, "_named_twice", lambda *_: iter(())),
        (f"{SMALL_FILES}::test_a_partition_is_named_once",),
    ),
    Mutant(
        "R-findings-stable-offset",
        "a last stable offset is where a transaction began that is open at the marker, of another producer",
        "ProducerStateManager#lastStableOffset",
        swapped(ProducerHistory, "_stable_offset_faults", _though_open_at_all),
        (f"{INDEXES}::test_a_last_stable_offset_of_an_earlier_segment",),
    ),
    Mutant(
        "R-findings-stable-next",
        "a last stable offset after its marker is where the next transaction of another producer begins",
        "ProducerStateManager#lastStableOffset",
        swapped(TransactionSurvey, "begin", _of_any_next),
        (f"{STABLE_OFFSETS}::test_what_is_left_of_a_truncated_log_is_right",),
    ),
    Mutant(
        "R-findings-stable-earlier",
        "no last stable offset is in a segment while an earlier segment's transaction of another producer is open",
        "ProducerStateManager#lastStableOffset",
        swapped(TransactionIndexSurvey, "_leave_to_others", _of_the_first_entry),
        (f"{STABLE_OFFSETS}::test_any_other_value_is_one_finding",),
    ),
    Mutant(
        "R-findings-stable-past-end",
        "no last stable offset is past the end of a segment that the same epoch continues",
        "LocalLog#append",
        instead(ProducerHistory, "_past_end_faults", lambda *_: iter(())),
        (f"{STABLE_OFFSETS}::test_any_other_value_is_one_finding",),
    ),
    Mutant(
        "R-findings-negative-entry",
        "no offset in a transaction index is negative",
        "TransactionIndex",
        swapped(TransactionIndexSurvey, "_wrong_entry", _without_negative_offsets),
        (f"{INDEXES}::test_an_entry_has_no_negative_offset",),
    ),
)
