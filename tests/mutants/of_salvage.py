# SPDX-License-Identifier: Apache-2.0
"""A salvaged log that is no log of the quorum: what is vouched for, which lineage wins, and what is merged."""

import itertools
from typing import Any, Final

import attrs

from raftlog.offsets import EpochEntry
from raftlog.tools.salvage import (
    choosing,
    identity,
    longest_log,
    losses,
    merging,
    planning,
    runs,
    salvage_review,
    vouching,
    winning,
)
from raftlog.tools.salvage.merging import Stretch, _Merging
from raftlog.tools.salvage.salvage_plan import Owner
from raftlog.tools.salvage.vouching import VouchedLog
from raftlog.uuid_text import uuid_to_text
from tests.mutants.planting import Mutant, Wrong, instead, swapped

CONFLICTS: Final = "tests/tools/salvage/test_conflicts.py"
FLAWED: Final = "tests/tools/salvage/test_flawed_batches.py"
LONGEST: Final = "tests/tools/salvage/test_longest_log.py"
EMPTY: Final = "tests/tools/salvage/test_empty_sources.py"
SALVAGE: Final = "tests/tools/salvage/test_salvage.py"
VOUCHING: Final = "tests/tools/salvage/test_vouching.py"


def _all_vouched(given: Any, _: Any) -> VouchedLog:
    return VouchedLog(tuple(sorted(given, key=lambda run: run.start_offset)), ())


def _any_owner(right: Wrong) -> Wrong:
    return lambda logs, _, are_equal: right(
        logs, [vouching.DiskOwner(number) for number in range(len(logs))], are_equal
    )


def _nothing_proven(right: Wrong) -> Wrong:
    return lambda replicas, snapshots, _, claims=(): right(replicas, snapshots, winning.Known({}), claims)


def _no_claims(right: Wrong) -> Wrong:
    return lambda replicas, snapshots, proven, _=(): right(replicas, snapshots, proven)


def _all_of_each(right: Wrong) -> Wrong:
    return lambda lineage, replica: max(right(lineage, replica), replica.end.offset)


def _over_holes(right: Wrong) -> Wrong:
    def choose(merged: Any, snapshots: Any) -> Any:
        pieces = tuple(piece for stretch in merged.stretches for piece in stretch.pieces)
        joined = (Stretch(pieces),) if pieces else ()
        return right(attrs.evolve(merged, stretches=joined), snapshots)

    return choose


def _of_any_end(right: Wrong) -> Wrong:
    def of_stretch(stretch: Any, usable: Any, stretches: Any) -> Any:
        first = stretch.pieces[0]
        whole = attrs.evolve(first, start_offset=0)
        found = right(attrs.evolve(stretch, pieces=(whole, *stretch.pieces[1:])), usable, stretches)
        return found and attrs.evolve(found, pieces=stretch.pieces, start_offset=first.start_offset)

    return of_stretch


def _by_directories(right: Wrong) -> Wrong:
    def find(replicas: Any, *rest: Any) -> Any:
        return right([attrs.evolve(each, node_id=number) for number, each in enumerate(replicas)], *rest)

    return find


def _the_first(self: Any, _: int, sides: Any) -> Any:
    return [sides[0]]


def _first_way(right: Wrong) -> Wrong:
    return lambda *given: itertools.islice(right(*given), 1)


def _without_alone(right: Wrong) -> Wrong:
    def choose(merged: Any, snapshots: Any) -> Any:
        unsettled = tuple(attrs.evolve(each, is_settled=False) for each in merged.conflicts)
        return right(attrs.evolve(merged, conflicts=unsettled), snapshots)

    return choose


def _of_the_past_alone(right: Wrong) -> Wrong:
    return lambda self, number, rules, *least: (
        right(self, number, rules, *least) if "leader-voted" in rules else frozenset()
    )


def _by_its_own_offsets(right: Wrong) -> Wrong:
    return lambda run, chosen, log: right(run, chosen, VouchedLog((), log.doubted))


def _by_id_alone(right: Wrong) -> Wrong:
    def plan_owner(file_system: Any, node_id: int, sources: Any, witnesses: Any, voters: Any) -> Any:
        keys = [each.copy.key for each in witnesses if each.copy and each.copy.key and each.copy.key.id == node_id]
        found = right(file_system, node_id, sources, witnesses, voters)
        if not keys or keys[0].directory_id is None:
            return found
        return Owner(node_id, uuid_to_text(keys[0].directory_id), found.state_source)

    return plan_owner


def _without_an_end(right: Wrong) -> Wrong:
    return lambda run, entries: right(run, [*entries, EpochEntry(run.epoch + 1, run.end_offset)])


MUTANTS: Final = (
    Mutant(
        "R-salvage-last-epoch",
        "an epoch that has no end in the checkpoint vouches for no batch after its first one",
        "LeaderEpochFileCache: the entry of an epoch may be lost with the power",
        swapped(vouching, "_is_of_its_epoch", _without_an_end),
        (VOUCHING,),
    ),
    Mutant(
        "R-salvage-checkpoint",
        "a batch between two entries of the checkpoint is taken, though nothing else says its epoch",
        "LeaderEpochFileCache#epochForOffset",
        swapped(
            vouching,
            "_is_of_its_epoch",
            lambda right: lambda run, entries: run.opens_with_leader and right(run, entries),
        ),
        (VOUCHING,),
    ),
    Mutant(
        "R-salvage-header",
        "the base offset and the epoch of a batch follow from something else",
        "DefaultRecordBatch: the CRC begins after them",
        instead(vouching, "vouch", _all_vouched),
        (LONGEST,),
    ),
    Mutant(
        "R-salvage-same-disk",
        "a copy of the same disk vouches for nothing",
        "PAR/CTRL (FAST'18)",
        swapped(vouching, "with_second_copies", _any_owner),
        (f"{LONGEST}::test_a_batch_that_is_alone_needs_a_second_copy",),
    ),
    Mutant(
        "R-salvage-unknown-node",
        "a directory of an unknown node is no second witness",
        "PAR/CTRL (FAST'18)",
        instead(vouching.DiskOwner, "is_other_than", lambda self, other: self.node_id != other.node_id),
        (f"{SALVAGE}::test_a_directory_is_no_witness_for_itself",),
    ),
    Mutant(
        "R-salvage-seen",
        "no copy vouches for an epoch that its node has not seen",
        "QuorumState#transitionToFollower: an epoch is stored before records of it are fetched",
        instead(vouching.DiskOwner, "has_seen", lambda self, epoch: True),
        (f"{LONGEST}::test_no_copy_vouches_for_an_epoch_that_its_node_has_not_seen",),
    ),
    Mutant(
        "R-salvage-proven",
        "a later epoch does not win against what is proven",
        "Raft (Ongaro) 5.4.1",
        swapped(winning, "winner", _nothing_proven),
        (f"{LONGEST}::test_epochs_decide_and_what_is_proven_decides_before_them",),
    ),
    Mutant(
        "R-salvage-replaced",
        "records after the start of a later epoch that is gone were replaced",
        "Raft (Ongaro) 5.3",
        swapped(winning, "winner", _no_claims),
        (f"{LONGEST}::test_an_epoch_of_which_only_the_start_is_known_ends_the_log", LONGEST),
    ),
    Mutant(
        "R-salvage-branch",
        "of another replica counts only what is of the lineage that wins",
        "Raft (Ongaro) 5.3",
        swapped(winning, "_end_in", _all_of_each),
        (LONGEST,),
    ),
    Mutant(
        "R-salvage-hole",
        "a hole is not stepped over",
        "KafkaRaftLog: a log has no gaps",
        swapped(choosing, "choose", _over_holes),
        (f"{LONGEST}::test_a_hole_is_not_stepped_over",),
    ),
    Mutant(
        "R-salvage-beginning",
        "a log that begins above offset 0 needs a snapshot of what is before",
        "KAFKA-14240",
        swapped(choosing, "_of_stretch", _of_any_end),
        (f"{LONGEST}::test_a_hole_is_not_stepped_over", LONGEST),
    ),
    Mutant(
        "R-salvage-merged",
        "two batches of one epoch and offset are never merged",
        "Raft (Ongaro) 5.3",
        instead(_Merging, "_part", _the_first),
        (f"{LONGEST}::test_two_batches_of_one_epoch_and_offset_are_never_merged",),
    ),
    Mutant(
        "R-salvage-sides",
        "after a conflict, each side is looked at",
        "Raft (Ongaro) 5.4: what is committed is in all later logs",
        swapped(merging, "merge_by_sides", _first_way),
        (f"{CONFLICTS}::test_each_conflict_has_its_sides",),
    ),
    Mutant(
        "R-salvage-side-committed",
        "more nodes do not win against what is committed",
        "Raft (Ongaro) 5.4: what is committed is in all later logs",
        instead(longest_log, "_committed_reach", lambda *_: 0),
        (f"{CONFLICTS}::test_a_side_with_what_is_committed_beats_more_nodes",),
    ),
    Mutant(
        "R-salvage-beyond-settled",
        "beyond a conflict that is settled, a snapshot of the other side is used, and no record of it",
        "Raft (Ongaro) 5.4: what is committed is in all later logs",
        swapped(choosing, "choose", _without_alone),
        (f"{CONFLICTS}::test_beyond_a_settled_conflict_a_snapshot_of_the_other_side_is_all_there_is",),
    ),
    Mutant(
        "R-salvage-copies-count",
        "copies of a disk are no side of their own in a conflict",
        "PAR/CTRL (FAST'18)",
        swapped(longest_log, "find_longest_log", _by_directories),
        (f"{LONGEST}::test_copies_of_a_disk_do_not_outvote_a_node",),
    ),
    Mutant(
        "R-salvage-flawed",
        "a batch that no leader has written is not preferred to one without a fault",
        "PAR/CTRL (FAST'18)",
        instead(_Merging, "_passes_over", lambda *_: False),
        (f"{FLAWED}::test_a_batch_without_a_fault_is_preferred",),
    ),
    Mutant(
        "R-salvage-epoch-begins",
        "across replicas, too, an epoch begins with its LeaderChange",
        "LeaderState#appendLeaderChangeMessageAndBootstrapRecords",
        instead(merging, "_can_follow", lambda *_: True),
        (f"{FLAWED}::test_no_epoch_begins_without_its_leader",),
    ),
    Mutant(
        "R-salvage-refuted",
        "a kraft.version that goes back is damage when it is planned",
        "KIP-853",
        swapped(planning._Planning, "_batches_of", _of_the_past_alone),
        (f"{FLAWED}::test_each_plan_can_be_carried_out",),
    ),
    Mutant(
        "R-salvage-said",
        "a plan says what the audit will find in the result",
        "made up",
        instead(planning._Planning, "_flaws", lambda *_: ()),
        (f"{FLAWED}::test_a_plan_says_what_the_audit_will_say",),
    ),
    Mutant(
        "R-salvage-misfits",
        "a snapshot agrees with the log of the result, and not only with its own",
        "KIP-853",
        instead(salvage_review, "misfits", lambda *_: {}),
        (f"{FLAWED}::test_a_snapshot_must_agree_with_the_log_of_the_result",),
    ),
    Mutant(
        "R-salvage-misplaced",
        "a snapshot ends where a batch ends",
        "KafkaRaftLog#createNewSnapshot",
        instead(longest_log, "_is_misplaced", lambda *_: False),
        (f"{LONGEST}::test_a_snapshot_above_a_hole_beats_cutting",),
    ),
    Mutant(
        "R-salvage-had",
        "a batch with a wrong number, before others that the result has, gives nothing up",
        "DefaultRecordBatch: the CRC begins after the base offset",
        swapped(losses, "_is_had", _by_its_own_offsets),
        (f"{FLAWED}::test_a_wrong_number_within_what_another_disk_has_gives_nothing_up",),
    ),
    Mutant(
        "R-salvage-form",
        "a batch whose form is impossible is damage",
        "RecordsIterator",
        instead(runs, "_is_sound", lambda batch: True),
        (f"{LONGEST}::test_a_batch_of_impossible_form_is_damage",),
    ),
    Mutant(
        "R-salvage-renamed",
        "something says that a log has reached the end of a snapshot",
        "Snapshots#parse: only the name says where it ends",
        instead(longest_log, "_is_vouched", lambda *_: True),
        (f"{LONGEST}::test_the_name_of_a_snapshot_is_not_enough",),
    ),
    Mutant(
        "R-salvage-renamed-damage",
        "damage before the end of a log does not hide where it ended",
        "Snapshots#parse: only the name says where it ends",
        instead(longest_log, "_may_have_reached", lambda replica, *_: replica.has_losses),
        (f"{LONGEST}::test_the_name_of_a_snapshot_is_not_enough",),
    ),
    Mutant(
        "R-salvage-empty",
        "a source without a record of metadata has no lineage",
        "a new disk that has elected itself",
        instead(planning, "_has_lineage", lambda _: True),
        (f"{EMPTY}::test_what_led_alone_is_named_and_left_out",),
    ),
    Mutant(
        "R-salvage-lineage",
        "a source with a record of metadata has a lineage",
        "a new disk that has elected itself",
        instead(planning, "_has_lineage", lambda log: log.place.log_directory.endswith("n1")),
        (f"{EMPTY}::test_a_lineage_with_records_still_refuses",),
    ),
    Mutant(
        "R-salvage-static",
        "who is a static voter follows from the records of the result",
        "KIP-853",
        instead(identity, "_statements", lambda *_: ()),
        (f"{SALVAGE}::test_who_is_a_static_voter_follows_from_the_result",),
    ),
    Mutant(
        "R-salvage-vote",
        "a node without its election state is a new node",
        "KIP-853",
        swapped(identity, "plan_owner", _by_id_alone),
        (f"{SALVAGE}::test_a_node_without_its_election_state_is_a_new_one",),
    ),
)
