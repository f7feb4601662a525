# SPDX-License-Identifier: Apache-2.0
"""A wrong treatment of failures that a replica outlives: full disks, missing codecs, replaced disks, lost records."""

import struct
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, InvalidSnapshotIdError, OutOfSpaceError
from raftlog.quorum import dispatch, requests
from raftlog.quorum.driving import carrying_out_snapshots
from raftlog.quorum.elections import votes_asked
from raftlog.quorum.following import fetching
from raftlog.quorum.inputs import refused_work
from raftlog.quorum.leading import appending, holding_voters, removing_voters
from raftlog.quorum.refusals import pauses
from raftlog.quorum.refusals.log_refusals import LogRefusals
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Candidate, Leader, Resigned
from raftlog.records.messages.raft.fetch_messages import FetchSnapshotResponse
from raftlog.storage.segments.log_segment import LogSegment
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"
REFUSALS: Final = "tests/quorum/refusals/test_log_refusals.py"
REFUSED: Final = "tests/quorum/refusals/test_refused_work.py"
FULL: Final = "tests/quorum/driving/test_full_disks.py"
EFFECTS: Final = "tests/quorum/driving/test_carrying_out.py"
HOLDING: Final = "tests/quorum/leading/test_holding_voters.py"
PAUSES: Final = "tests/quorum/following/test_pauses_of_snapshot_fetches.py"
SNAPSHOTS: Final = "tests/quorum/following/test_fetching_snapshot.py"
LOGS: Final = "tests/storage/log/test_file_log_faults.py::test_no_crash_brings_back_records_without_room"


def _whatever_is_left(right: Wrong) -> Wrong:
    def note_taken_work(core: Any, number: int, before: Any) -> None:
        core.refusals.appending = None
        right(core, number, before)

    return note_taken_work


def _of_the_last_fetch_in_any_role(right: Wrong) -> Wrong:
    def change_role(core: Any, event: Any) -> None:
        appending = core.refusals.appending
        right(core, event)
        core.refusals.appending = appending

    return change_role


def _without_a_sign_of_the_leader(right: Wrong) -> Wrong:
    def note_taken_work(core: Any, number: int, before: Any) -> None:
        role = core.role
        right(core, number, before)
        core.role = role

    return note_taken_work


def _leading_on(right: Wrong) -> Wrong:
    def note_refused_work(core: Any, *arguments: Any, **options: Any) -> None:
        right(core, *arguments, **options)
        if core.leadership is not None:
            core.leadership.is_resignation_due = False

    return note_refused_work


def _with_the_append_as_written(right: Wrong) -> Wrong:
    def withdraw_refused(core: Any, leadership: Any) -> None:
        before = leadership.handed_end_offset
        right(core, leadership)
        leadership.handed_end_offset = before

    return withdraw_refused


def _standing_at_once(right: Wrong) -> Wrong:
    def refuse(refusals: Any, *arguments: Any, **options: Any) -> None:
        right(refusals, *arguments, **options)
        refusals.stand_ms = 0

    return refuse


def _fetching_at_once(right: Wrong) -> Wrong:
    def refuse(refusals: Any, *arguments: Any, **options: Any) -> None:
        right(refusals, *arguments, **options)
        refusals.pause_until_ms = 0

    return refuse


def _not_doubling(refusals: int, first_ms: int, longest_ms: int) -> int:
    return min(max(first_ms, 1), max(longest_ms, 1))


def _in_cache_only(right: Wrong) -> Wrong:
    def cut_back(segment: Any, cause: Any) -> None:
        file = segment.file
        segment.file = _Unsynced(file)
        try:
            right(segment, cause)
        finally:
            segment.file = file

    return cut_back


class _Unsynced:
    """A file whose sync does nothing."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return (lambda: None) if name == "sync" else getattr(self._file, name)


def _as_soon_as_it_is_written(leadership: Any, log: Any) -> int:
    return int(log.state.end_offset)


def _with_all_that_was_read(leadership: Any, log: Any, records: Any) -> Any:
    return records


def _as_if_batches_were_whole(leadership: Any, log: Any, records: Any) -> Any:
    position = 0
    while holding_voters.is_holding(leadership, log) and position < len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        if base_offset >= log.flushed_offset:
            return records[:position]
        position += 12 + length
    return records


def _when_the_log_grows(leadership: Any, before: Any, now: Any) -> bool:
    return bool(now.state.end_offset > before.state.end_offset)


def _halting(right: Wrong) -> Wrong:
    def learn_leader(core: Any, epoch: int, leader: int | None, endpoints: Any) -> None:
        if leader == core.identity.key.id and not isinstance(core.role, Leader | Resigned):
            core.halt(f"epoch {epoch} has two leaders")
        else:
            right(core, epoch, leader, endpoints)

    return learn_leader


def _voting_in_any_epoch(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, *arguments: Any, **options: Any) -> Any:
        core.disowned_epoch = -1
        return right(core, *arguments, **options)

    return may_grant_vote


def _winning_twice(right: Wrong) -> Wrong:
    def is_consistent(core: Any, epoch: int, leader: int | None) -> bool:
        return isinstance(core.role, Candidate) or bool(right(core, epoch, leader))

    return is_consistent


def _without_a_pause(right: Wrong) -> Wrong:
    def handle_response(core: Any, sent: Any, response: Any) -> Any:
        config = core.config
        if isinstance(response, FetchSnapshotResponse):
            core.config = attrs.evolve(config, pause_after_refusal=False)
        try:
            return right(core, sent, response)
        finally:
            core.config = config

    return handle_response


_WITHOUT_CODECS: Final[Any] = (DecodeError, OutOfSpaceError)
_WITHOUT_TIMES: Final[Any] = (InvalidSnapshotIdError, OutOfSpaceError)


MUTANTS: Final = (
    Mutant(
        "S-full-leader",
        "a leader whose disk is full resigns",
        "DECISIONS.md 65",
        swapped(refused_work, "note_refused_work", _leading_on),
        (REFUSED, FULL),
    ),
    Mutant(
        "S-full-failed",
        "an append that the disk has refused has failed",
        "DECISIONS.md 65",
        swapped(appending, "withdraw_refused", _with_the_append_as_written),
        (REFUSED, FULL),
    ),
    Mutant(
        "S-full-cut",
        "records without room are removed durably",
        "DECISIONS.md 65",
        swapped(LogSegment, "_cut_back", _in_cache_only),
        (LOGS,),
    ),
    Mutant(
        "S-full-stands",
        "a replica whose disk is full holds back from elections",
        "DECISIONS.md 65",
        swapped(LogRefusals, "refuse", _standing_at_once),
        (f"{REFUSALS}::test_pauses_double_with_each_refusal", REFUSED, SCENARIOS),
    ),
    Mutant(
        "S-full-loop",
        "a follower whose disk is full pauses before it fetches again",
        "DECISIONS.md 65",
        swapped(LogRefusals, "refuse", _fetching_at_once),
        (f"{REFUSALS}::test_pauses_double_with_each_refusal", REFUSED),
    ),
    Mutant(
        "S-full-pause",
        "pauses double with each refusal",
        "DECISIONS.md 65",
        instead(pauses, "doubled_pause_ms", _not_doubling),
        (f"{REFUSALS}::test_a_pause_is_never_shorter_than_the_one_before_it",),
    ),
    Mutant(
        "S-full-forever",
        "a log that takes records again has room",
        "DECISIONS.md 65",
        missing(LogRefusals, "forget"),
        (f"{REFUSALS}::test_after_records_were_taken_pauses_begin_anew", REFUSED),
    ),
    Mutant(
        "S-full-cleaning",
        "a log that cannot be cleaned for want of room is no reason to resign",
        "DECISIONS.md 65",
        missing(refused_work, "note_cleaned"),
        (REFUSED,),
    ),
    Mutant(
        "R-codec",
        "a fetched snapshot in a codec that is not installed is refused",
        "DECISIONS.md 56",
        instead(carrying_out_snapshots, "_REFUSALS", _WITHOUT_CODECS),
        (f"{SNAPSHOTS}::test_a_snapshot_in_a_codec_that_is_not_installed_is_refused",),
    ),
    Mutant(
        "R-untimely",
        "a snapshot of the application that the log cannot take now is refused",
        "DECISIONS.md 65",
        instead(carrying_out_snapshots, "_UNTIMELY", _WITHOUT_TIMES),
        (EFFECTS,),
    ),
    Mutant(
        "R-two-to-one",
        "a voter set is served once the leader has flushed it",
        "DECISIONS.md 66",
        instead(holding_voters, "servable_end_offset", _as_soon_as_it_is_written),
        (f"{HOLDING}::test_a_removal_is_served_once_it_is_flushed",),
    ),
    Mutant(
        "R-two-to-one-read",
        "what was read beyond a voter set that is not flushed is cut off",
        "DECISIONS.md 66",
        instead(holding_voters, "servable_records", _with_all_that_was_read),
        (f"{HOLDING}::test_records_before_a_voter_set_are_served",),
    ),
    Mutant(
        "R-two-to-one-torn",
        "the last batch of what was read before a voter set may be cut off",
        "DECISIONS.md 66",
        instead(holding_voters, "servable_records", _as_if_batches_were_whole),
        (f"{HOLDING}::test_a_read_may_end_within_any_batch",),
    ),
    Mutant(
        "R-two-to-one-parked",
        "a voter set that becomes durable is news for fetches that wait",
        "DECISIONS.md 66",
        instead(holding_voters, "has_more_to_serve", _when_the_log_grows),
        (f"{HOLDING}::test_a_removal_is_served_once_it_is_flushed",),
    ),
    Mutant(
        "R-two-to-one-leader",
        "one of two voters does not remove itself",
        "DECISIONS.md 66",
        instead(removing_voters, "can_elect_without", lambda *_: True),
        (f"{HOLDING}::test_a_leader_leaves_only_voters_that_do_without_it", SCENARIOS),
    ),
    Mutant(
        "R-replaced-halts",
        "a peer that names this replica as leader does not stop it",
        "DECISIONS.md 67",
        swapped(requests, "learn_leader", _halting),
        (f"{SCENARIOS}[failures/a-candidate-that-is-said-to-lead-halts[core]]",),
    ),
    Mutant(
        "R-replaced-votes",
        "a replica gives no vote in an epoch that it is said to have led",
        "DECISIONS.md 67",
        swapped(votes_asked, "may_grant_vote", _voting_in_any_epoch),
        (f"{SCENARIOS}[failures/a-peer-names-this-replica-as-leader[core]]",),
    ),
    Mutant(
        "R-replaced-wins",
        "a candidate that is said to have won its epoch halts",
        "DECISIONS.md 67",
        swapped(requests, "_is_consistent", _winning_twice),
        (f"{SCENARIOS}[failures/a-candidate-that-is-said-to-lead-halts[core]]",),
    ),
    Mutant(
        "K-bootstrap-loop",
        "a server that knows no leader is asked again after a pause",
        "KafkaRaftClient",
        instead(fetching, "_calls_for_a_pause", lambda *_: False),
        (f"{SCENARIOS}[elections/leader-is-found[core]]",),
    ),
    Mutant(
        "K-chunk-loop",
        "a leader that refuses a part of a snapshot is asked again after a pause",
        "raftlog's own simulator",
        swapped(dispatch, "handle_response", _without_a_pause),
        (f"{PAUSES}::test_a_leader_that_has_resigned_is_asked_after_a_pause",),
    ),
    Mutant(
        "R-nothing-left",
        "records of which the log takes none are fetched again after a pause",
        "UnifiedLog#analyzeAndValidateRecords, which drops a tail",
        swapped(refused_work, "note_taken_work", _whatever_is_left),
        (REFUSED,),
    ),
    Mutant(
        "R-damaged-follows",
        "records that come after bad ones are no sign of the leader",
        "DECISIONS.md 54",
        instead_of_property(LogRefusals, "is_of_bad_records", lambda _: False),
        (f"{SCENARIOS}[failures/a-leader-that-sends-only-damaged-records-is-replaced[core]]", REFUSED),
    ),
    Mutant(
        "R-damaged-leaves",
        "records that the log takes after bad ones are a sign of the leader",
        "DECISIONS.md 54",
        swapped(refused_work, "note_taken_work", _without_a_sign_of_the_leader),
        (f"{SCENARIOS}[failures/a-leader-that-sends-only-damaged-records-is-replaced[core]]", REFUSED),
    ),
    Mutant(
        "R-damaged-other",
        "records of an earlier leader are no sign of the present one",
        "DECISIONS.md 54",
        swapped(LocalReplica, "change_role", _of_the_last_fetch_in_any_role),
        (REFUSED,),
    ),
)
