# SPDX-License-Identifier: Apache-2.0
"""A wrong verdict on a quorum: what proves what, which copy is kept, and which nodes are started."""

from typing import Any, Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing import batch_reader
from raftlog.tools.auditing.acts import acted_records
from raftlog.tools.auditing.acts.acted_on import BrokerDirectories
from raftlog.tools.auditing.contents import records_at_risk
from raftlog.tools.auditing.history import log_lineages, quorum_copies, quorum_view, replicas
from raftlog.tools.auditing.proof import copies, lineage, proofs, restart, snapshot_names, verdict
from raftlog.tools.auditing.proof.case import Case
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

ORACLE: Final = "tests/tools/auditing/proof/test_oracle.py"
ACTED_RECORDS: Final = "tests/tools/auditing/acts/test_acted_records.py"
ACTED_ON: Final = "tests/tools/auditing/acts/test_acted_on.py"
BY_BROKERS: Final = "tests/tools/auditing/acts/test_proof_by_brokers.py"
LINEAGE: Final = "tests/tools/auditing/proof/test_lineage.py"
AT_RISK: Final = "tests/tools/auditing/contents/test_records_at_risk.py"
NAMES: Final = "tests/tools/auditing/proof/test_snapshot_names.py"
VERDICTS: Final = "tests/tools/auditing/history/test_verdicts.py"


def _one_more(right: Wrong) -> Wrong:
    return lambda batch, start, end, names, **options: right(batch, start, end + 1, names, **options)


def _from_its_base_offset(right: Wrong) -> Wrong:
    def batches(replica: Any, start: int, end: int, read: Any) -> Any:
        return (each for each in right(replica, start, end, read) if each[1].base_offset >= start)

    return batches


def _by_majority_alone(right: Wrong) -> Wrong:
    def may_lose_committed(copy: Any, at_risk: int, judgement: Any) -> bool:
        epoch = copy.lineage.epoch_at(at_risk)
        is_possible = epoch is None or judgement.may_be_held(OffsetAndEpoch(at_risk + 1, epoch))
        return bool(is_possible and right(copy, at_risk, judgement))

    return may_lose_committed


def _by_any_directory(right: Wrong) -> Wrong:
    def shown(self: Any, acted: Any, _: Any) -> Any:
        return next(filter(None, (right(self, acted, each) for each in self._directories.values())), None)

    return shown


def _whatever_voters(right: Wrong) -> Wrong:
    def end_with(self: Any, other: Any, *, is_same_log: bool) -> Any:
        one, two = attrs.evolve(self, changes=()), attrs.evolve(other, changes=())
        return right(one, two, is_same_log=is_same_log)

    return end_with


def _only_as_named(right: Wrong) -> Wrong:
    def with_acts(copy: Any, *rest: Any) -> Any:
        found = right(attrs.evolve(copy, if_renamed=None), *rest)
        return attrs.evolve(found, if_renamed=copy.if_renamed)

    return with_acts


def _with_no_gap(right: Wrong) -> Wrong:
    def take(self: Any, piece: Any) -> Any:
        return None if isinstance(piece, acted_records._Gap) else right(self, piece)

    return take


def _each_registration(right: Wrong) -> Wrong:
    def take(self: Any, piece: Any) -> Any:
        if isinstance(piece, acted_records._Seen) and piece.kind == "RegisterBrokerRecord":
            message = piece.message
            return acted_records.Registered(piece.point, message["brokerId"], message["brokerEpoch"])
        return right(self, piece)

    return take


def _by_id_alone(given: Any, voters: Any) -> list[Any]:
    best = {copy.key.id: copy for copy in sorted(given, key=lambda each: each.end) if copy.key is not None}
    return [copy for voter_id, copy in best.items() if voter_id in voters.voter_ids]


def _of_logs_alone(given: Any) -> int:
    return max((copy.lineage.end.epoch for copy in given), default=-1)


def _by_offset(self: Case) -> Any:
    found = [copy for copy in self.copies if copy.can_start and copy.key is not None and self.has_proven(copy)]
    return max(found, key=lambda copy: copy.lineage.end_offset, default=None)


def _by_epoch_alone(self: Case) -> Any:
    found = [copy for copy in self.copies if copy.can_start and copy.key is not None]
    return max(found, key=lambda copy: copy.lineage.end, default=None)


def _only_where_both_are_known(right: Wrong) -> Wrong:
    def parting(one: Any, other: Any) -> Any:
        is_apart = max(one.start_offset, other.start_offset) >= min(one.end_offset, other.end_offset)
        return None if is_apart else right(one, other)

    return parting


def _all_voters(given: Any, _: Any) -> list[Any]:
    return sorted(copies.of_voters(given.copies, given.voters), key=lambda copy: copy.path)


MUTANTS: Final = (
    Mutant(
        "R-proof-directory",
        "a majority is counted by id and directory id",
        "KIP-853",
        instead(copies, "of_voters", _by_id_alone),
        (f"{VERDICTS}::test_a_majority_is_counted_by_directory_id", ORACLE),
    ),
    Mutant(
        "R-proof-latest-epoch",
        "a majority proves only records of the latest epoch that any file has seen",
        "Raft (Ongaro) 5.4.2",
        instead(copies, "latest_epoch", _of_logs_alone),
        (f"{VERDICTS}::test_a_majority_proves_only_records_of_the_latest_epoch", ORACLE),
    ),
    Mutant(
        "R-proof-seed-epoch",
        "the seed is the copy of the latest epoch, then of the greatest offset",
        "kafka-metadata-recovery log-length",
        instead_of_property(Case, "seed", _by_offset),
        (f"{VERDICTS}::test_of_equal_copies_the_undamaged_one_is_the_seed", ORACLE),
    ),
    Mutant(
        "R-proof-seed-proven",
        "the seed has all that is proven",
        "Raft (Ongaro) 5.4.1",
        instead_of_property(Case, "seed", _by_epoch_alone),
        (f"{VERDICTS}::test_a_fork_whose_epoch_may_be_used_again", ORACLE),
    ),
    Mutant(
        "R-proof-half",
        "voters of every majority suffice, where a majority need not be here",
        "kafka-metadata-recovery: at most half may be lost",
        instead(verdict, "least_of_every_majority", lambda voters: voters.majority_size),
        (f"{VERDICTS}::test_two_of_four_equal_logs", ORACLE),
    ),
    Mutant(
        "R-proof-rewritten",
        "a later epoch in place of what is proven is a loss",
        "rule replica-lost",
        missing(Case, "has_rewritten"),
        (f"{VERDICTS}::test_a_fork_in_which_what_was_committed_is_kept", ORACLE),
    ),
    Mutant(
        "R-proof-leader-cut",
        "a leader that lacks what it wrote has lost it",
        "Raft (Ongaro) 5.3",
        instead_of_property(Case, "longer_than_leader", lambda _: None),
        (f"{VERDICTS}::test_a_leader_that_is_shorter_than_its_observer", ORACLE),
    ),
    Mutant(
        "R-proof-two-lineages",
        "two lineages that are both proven are told, and nothing is started",
        "a voter set rewritten by hand",
        missing(proofs, "conflicting"),
        (f"{VERDICTS}::test_two_lineages_that_are_both_proven", ORACLE),
    ),
    Mutant(
        "R-proof-one-change",
        "only the addition or removal of one voter proves the set before it",
        "AddVoterHandler, UpdateVoterHandler",
        instead(proofs, "_is_one_change", lambda *_: True),
        (f"{ORACLE}::test_some_pasts",),
    ),
    Mutant(
        "R-proof-prefix",
        "what other logs know of the offsets before a log's start belongs to its lineage",
        "log matching, Raft (Ongaro) 5.3",
        instead(lineage, "completed", lambda known, _: known),
        (f"{VERDICTS}::test_two_lineages_that_are_both_proven", ORACLE),
    ),
    Mutant(
        "R-proof-name",
        "a snapshot whose name the timestamps of its epoch contradict proves nothing",
        "MetadataProvenance#lastContainedLogTimeMs",
        instead(snapshot_names, "name_faults_of", lambda *_: {}),
        (f"{VERDICTS}::test_a_renamed_snapshot_proves_no_loss", ORACLE),
    ),
    Mutant(
        "R-proof-name-verdict",
        "if something would be missing by a name that is contradicted, the files cannot tell",
        "a snapshot that was renamed",
        instead(verdict, "_doubted_losses", lambda _: ()),
        (f"{VERDICTS}::test_a_renamed_snapshot_proves_no_loss", ORACLE),
    ),
    Mutant(
        "R-proof-name-doubted",
        "if something would be missing by a name that is doubted, the files cannot tell, and nothing is given up",
        "a clock that was set back",
        instead(verdict, "_by_doubted_names", lambda _: None),
        (f"{VERDICTS}::test_a_snapshot_that_may_be_renamed_proves_no_loss", ORACLE),
    ),
    Mutant(
        "R-proof-name-lineage",
        "times of an epoch are compared only between logs that have begun it with the same batch",
        "an epoch that two leaders have used",
        instead(log_lineages, "_branches", lambda log: {epoch: log_lineages._Branch((0, 0)) for epoch in range(9)}),
        (f"{VERDICTS}::test_logs_of_another_lineage_doubt_no_name",),
    ),
    Mutant(
        "R-proof-name-rewritten",
        "and up to the first Voters record that not both have",
        "a tool that rewrites the voters in the last epoch of a log",
        swapped(log_lineages._Branch, "end_with", _whatever_voters),
        (f"{VERDICTS}::test_a_rewrite_of_the_voters_doubts_no_true_name",),
    ),
    Mutant(
        "R-proof-name-changed",
        "of those, only what a tool may have written counts",
        "AddVoterHandler, RemoveVoterHandler",
        instead(log_lineages, "_may_be_forced", lambda *_: True),
        (f"{VERDICTS}::test_times_after_what_only_a_leader_writes_are_compared",),
    ),
    Mutant(
        "R-proof-name-broker",
        "what brokers acted on is proven whichever name of a snapshot is right",
        "a snapshot that was renamed",
        swapped(quorum_copies, "_with_acts", _only_as_named),
        (f"{BY_BROKERS}::test_a_doubted_name_beside_the_log_hides_no_proof", ORACLE),
    ),
    Mutant(
        "R-proof-name-confirmed",
        "the record before a snapshot's end says that its name is right, whatever other records say",
        "a clock that was set back",
        instead(snapshot_names, "_has_time", lambda *_: False),
        (NAMES,),
    ),
    Mutant(
        "R-proof-name-start",
        "a node that would start from a snapshot whose name is contradicted stays down",
        "KafkaRaftLog#truncateToLatestSnapshot",
        instead_of_property(replicas.Replica, "misled_by", lambda _: None),
        (f"{VERDICTS}::test_a_renamed_snapshot_that_changes_nothing",),
    ),
    Mutant(
        "R-proof-apart",
        "logs without a common offset part where epochs would have to decrease",
        "OffsetAndEpoch: epochs are compared first",
        swapped(lineage, "parting", _only_where_both_are_known),
        (LINEAGE,),
    ),
    Mutant(
        "R-proof-start",
        "no voter is started that could be elected without what is proven",
        "Raft (Ongaro) 5.4.1",
        instead(restart, "set_to_start", _all_voters),
        (f"{VERDICTS}::test_two_of_four_equal_logs", ORACLE),
    ),
    Mutant(
        "R-proof-epoch-again",
        "a fork of an epoch that the next leader may use again is never started as it is",
        "found by fresh eyes on a page",
        instead(restart, "never_to_start", lambda *_: []),
        (VERDICTS,),
    ),
    Mutant(
        "R-proof-broker",
        "a record that a broker has acted on is committed",
        "BrokerMetadataPublisher: what it applies is below the high watermark",
        instead(proofs, "_by_brokers", lambda _: ()),
        (f"{BY_BROKERS}::test_the_broker_proves_a_loss", ORACLE),
    ),
    Mutant(
        "R-acts-own-log",
        "a broker epoch or leader epoch proves a record only in the log of the broker that has it",
        "found by the oracle: a later leader gave out the same broker epoch",
        swapped(BrokerDirectories, "_shown", _by_any_directory),
        (f"{ACTED_ON}::test_only_a_topic_is_shown_by_another_directory",),
    ),
    Mutant(
        "R-acts-gap",
        "a leader epoch that follows from records that are gone is not known",
        "PartitionRegistration#merge counts leader epochs",
        swapped(acted_records._Known, "take", _with_no_gap),
        (f"{ACTED_RECORDS}::test_leader_epochs_after_a_damaged_batch",),
    ),
    Mutant(
        "R-acts-repeated",
        "only the first registration with a broker epoch is the one that was answered",
        "ClusterControlManager#registerBroker repeats the broker epoch of an incarnation",
        swapped(acted_records._Known, "take", _each_registration),
        (f"{ACTED_RECORDS}::test_a_part_of_a_log",),
    ),
    Mutant(
        "R-acts-named",
        "what is beside a directory is not read if that directory alone was named",
        "what a user names is what is read",
        instead(quorum_copies, "_was_named", lambda _: False),
        (f"{BY_BROKERS}::test_only_directories_that_were_given_whole_are_read",),
    ),
    Mutant(
        "R-at-risk-end",
        "the records at risk are those of the range, and no more",
        "dump-log of the same offsets",
        swapped(records_at_risk, "_kinds", _one_more),
        (AT_RISK,),
    ),
    Mutant(
        "R-at-risk-within-a-batch",
        "a range may start within a batch",
        "dump-log of the same offsets",
        swapped(batch_reader, "batches_in_range", _from_its_base_offset),
        (AT_RISK,),
    ),
    Mutant(
        "R-at-risk-proven",
        "what is proven to be committed may be lost, even if no majority has it",
        "a snapshot that every voter lacks",
        swapped(quorum_view, "_may_lose_committed", _by_majority_alone),
        (f"{AT_RISK}::test_the_verb_tells_what_may_be_lost",),
    ),
)
