# SPDX-License-Identifier: Apache-2.0
"""Wrong histories and a wrong state machine: the voters, from which offsets on they are in force, and truncation."""

from typing import Any, Final

import attrs

from raftlog.log import control_records
from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.columns import data_batch
from raftlog.voters import voter_set_change
from raftlog.voters.history import TreeMapLogHistory
from raftlog.voters.voter_set import VoterNode, VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem
from raftlog.voters.voter_set_history import VoterSetHistory
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

MACHINE: Final = "tests/log/test_control_records.py"
HISTORY: Final = "tests/voters/test_history.py"
VOTERS: Final = "tests/voters/test_voter_set_history.py"


def _one_level(history: Any, end_offset: int) -> None:
    if history._values and history._values.peekitem()[0] >= end_offset:
        history._values.popitem()


def _below(history: Any, offset: int) -> Any:
    index = history._values.bisect_left(offset)
    return history._values.peekitem(index - 1)[1] if index else None


def _unordered(history: Any, offset: int, value: Any) -> None:
    history._values[offset] = value


def _dropping_what_is_in_force(history: Any, start_offset: int) -> None:
    while history._values and history._values.peekitem(0)[0] <= start_offset:
        history._values.popitem(0)


def _one_in_one_out(one: VoterSet, other: VoterSet) -> bool:
    mine, theirs = one.voter_keys, other.voter_keys
    return len(mine - theirs) <= 1 and len(theirs - mine) <= 1


def _not_rewinding(right: Wrong) -> Wrong:
    def truncate_new_entries(machine: Any, end_offset: int) -> None:
        if end_offset < machine._next_offset:
            machine._truncate_histories(end_offset)

    return truncate_new_entries


def _without_voters(right: Wrong) -> Wrong:
    def handle_snapshot(machine: Any, snapshot: Any) -> None:
        vars(snapshot)["header"] = attrs.evolve(snapshot.header, voter_set=None)
        right(machine, snapshot)

    return handle_snapshot


def _guessing(machine: Any, offset: int) -> Any:
    return machine._voter_sets.value_at_or_before(offset)


class _UpToHighWatermark:
    """A log whose uncommitted records are hidden."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, "high_watermark" if name == "end_offset" else name)


def _once_committed(right: Wrong) -> Wrong:
    return lambda machine, log: right(machine, _UpToHighWatermark(log))


def _without_undo(right: Wrong) -> Wrong:
    def handle_batch(machine: Any, batch: Any) -> None:
        for offset, state in machine._states(batch):
            machine._add(offset, state)
        machine._next_offset = batch.next_offset

    return handle_batch


def _taking_what_is_empty(right: Wrong) -> Wrong:
    def add(history: Any, offset: int, value: Any) -> None:
        right(history, offset, value)
        if not value:
            TreeMapLogHistory.add(history, offset, value)

    return add


def _keeping_what_has_the_same_keys(right: Wrong) -> Wrong:
    def add(history: Any, offset: int, value: Any) -> None:
        last = history.last_value()
        right(history, offset, last if last.voter_keys == value.voter_keys else value)

    return add


def _overlapping_alone(before: VoterSet, after: VoterSet) -> tuple[VoterSetProblem, ...]:
    return () if before.has_overlapping_majority(after) else (VoterSetProblem.NO_OVERLAPPING_MAJORITY,)


def _reloading_at_the_log_start(right: Wrong) -> Wrong:
    def update_state(machine: Any, log: Any) -> None:
        if machine.next_offset <= log.start_offset:
            control_records._load_latest_snapshot(machine, log)
        right(machine, log)

    return update_state


def _by_id_alone(node: VoterNode, key: Any) -> bool:
    return bool(node.voter_key.id == key.id)


MUTANTS: Final = (
    Mutant(
        "R20-unread",
        "nothing is said of an offset that was not read",
        "KRaftControlRecordStateMachine#voterSetAtOffset",
        instead(KRaftControlRecordStateMachine, "voter_set_at_offset", _guessing),
        (f"{MACHINE}::test_nothing_is_known_before_anything_was_read",),
    ),
    Mutant(
        "K33-machine",
        "no control record is trusted whose batch does not check",
        "KAFKA-14104",
        missing(control_records, "_check_header"),
        (f"{MACHINE}::test_batches_that_raft_does_not_write_are_refused",),
    ),
    Mutant(
        "R5",
        "all voter sets that truncation took are taken back",
        "scylladb 30936",
        instead(TreeMapLogHistory, "truncate_new_entries", _one_level),
        (f"{MACHINE}::test_all_levels_of_truncated_changes_go",),
    ),
    Mutant(
        "R6",
        "the voter set goes back with the log",
        "camunda 57393",
        missing(TreeMapLogHistory, "truncate_new_entries"),
        (f"{MACHINE}::test_truncation_goes_back_to_the_set_before_and_then_to_the_static_one",),
    ),
    Mutant(
        "R6-next",
        "what is written in place of truncated records is read",
        "KRaftControlRecordStateMachine#truncateNewEntries",
        swapped(KRaftControlRecordStateMachine, "truncate_new_entries", _not_rewinding),
        (f"{MACHINE}::test_truncation_goes_back_to_the_set_before_and_then_to_the_static_one",),
    ),
    Mutant(
        "R9-identity",
        "a voter is an id and a directory id",
        "openraft, dynamic membership",
        instead(VoterNode, "is_voter", _by_id_alone),
        ("tests/voters/test_voter_set.py::test_a_replica_is_a_voter_by_id_and_known_directory",),
    ),
    Mutant(
        "R11",
        "a voter set is in force from its append on, not once it is committed",
        "etcd 12359",
        swapped(control_records, "update_state", _once_committed),
        (f"{MACHINE}::test_reading_follows_a_truncation_backwards",),
    ),
    Mutant(
        "R15",
        "the voters are in force that a snapshot names",
        "PySyncObj 133",
        swapped(KRaftControlRecordStateMachine, "handle_snapshot", _without_voters),
        (f"{MACHINE}::test_a_snapshot_counts_from_its_last_offset",),
    ),
    Mutant(
        "R20",
        "a set is in force from its own offset on",
        "openraft 424",
        instead(TreeMapLogHistory, "value_at_or_before", _below),
        (f"{HISTORY}::test_a_value_is_in_force_up_to_the_next_one",),
    ),
    Mutant(
        "R20-floor",
        "what is in force at a snapshot stays known",
        "TreeMapLogHistoryTest#testTrimPrefixTo",
        instead(TreeMapLogHistory, "truncate_old_entries", _dropping_what_is_in_force),
        (f"{HISTORY}::test_old_entries_go_but_for_the_one_in_force",),
    ),
    Mutant(
        "R21",
        "a batch that is refused changes no history",
        "openraft c8fccb22",
        swapped(KRaftControlRecordStateMachine, "handle_batch", _without_undo),
        (f"{MACHINE}::test_batches_that_raft_does_not_write_are_refused",),
    ),
    Mutant(
        "R22",
        "a history is sorted",
        "openraft 1802",
        instead(TreeMapLogHistory, "add", _unordered),
        (f"{HISTORY}::test_offsets_grow_from_minus_1_on",),
    ),
    Mutant(
        "R31",
        "majorities of sets that follow one another overlap",
        "VoterSet#hasOverlappingMajority",
        instead(VoterSet, "has_overlapping_majority", _one_in_one_out),
        (f"{VOTERS}::test_swaps_in_odd_sets_are_violations",),
    ),
    Mutant(
        "R31-empty",
        "an empty voter set is never in force",
        "VoterSetHistory#addAt",
        swapped(VoterSetHistory, "add", _taking_what_is_empty),
        (f"{VOTERS}::test_an_empty_set_does_not_come_into_force_and_does_not_wash_away_what_binds",),
    ),
    Mutant(
        "R31-writer",
        "a writer keeps Kafka's guard too",
        "VoterSet#hasOverlappingMajority",
        instead(voter_set_change, "voter_set_change_problems", _overlapping_alone),
        ("tests/voters/test_voter_set_change.py::test_each_refusal_has_its_error",),
    ),
    Mutant(
        "R9-endpoint",
        "a set with the same voters is another one where they listen elsewhere",
        "VoterSet#equals",
        swapped(VoterSetHistory, "add", _keeping_what_has_the_same_keys),
        (f"{VOTERS}::test_every_set_is_taken_and_what_is_wrong_is_named",),
    ),
    Mutant(
        "R15-start",
        "a snapshot that ends at the log start is not read by a state machine that has read up to there",
        "KRaftControlRecordStateMachine#maybeLoadSnapshot",
        swapped(control_records, "update_state", _reloading_at_the_log_start),
        (f"{MACHINE}::test_only_what_was_not_read_is_taken_from_the_snapshot",),
    ),
    Mutant(
        "K41-records",
        "a leader writes no record that raft's readers stop at",
        "RecordsIterator#readRecord",
        missing(data_batch, "check_data_records"),
        ("tests/log/test_leader_appends.py::test_a_leader_writes_nothing_that_an_audit_calls_damaged",),
    ),
    Mutant(
        "R31-accumulator",
        "a leader proposes no voter set that must not follow the one in force",
        "AddVoterHandler",
        missing(BatchAccumulator, "_voters_after"),
        ("tests/records/batches/test_accumulator_voters.py",),
    ),
)
