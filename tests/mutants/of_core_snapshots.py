# SPDX-License-Identifier: Apache-2.0
"""Wrong snapshots in the consensus core: what is written, restarted at, served, deleted, and fetched in quarantine."""

from typing import Any, Final

import attrs

from raftlog.errors import InvalidRecordError
from raftlog.log.memory_log import MemoryLog
from raftlog.quorum import acting, replica, snapshot_work
from raftlog.quorum.following import fetching, fetching_snapshot, updating_voter
from raftlog.quorum.leading import serving, serving_snapshots
from raftlog.quorum.leading.leading_epoch import note_fetch_of_voter
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.seam import log_view
from raftlog.quorum.snapshots import cleaning, creating
from raftlog.records.batches.batch import read_batch
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.storage.log.appendable_log import AppendableLog
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"
PAUSES: Final = "tests/quorum/following/test_pauses_of_snapshot_fetches.py"
FETCHING: Final = "tests/quorum/following/test_fetching_snapshot.py"
SERVING: Final = "tests/quorum/leading/test_serving_snapshots.py"
CREATING: Final = "tests/quorum/snapshots/test_creating.py"
CLEANING: Final = "tests/quorum/snapshots/test_cleaning.py"
WORK: Final = "tests/quorum/test_snapshot_work.py"
CATCHING_UP: Final = "tests/quorum/following/test_catching_up.py"
IN_FILES: Final = "tests/contracts/test_replicated_log.py::TestFileLog"
QUARANTINE: Final = "tests/quorum/test_quarantine.py"


def _at_any_position(right: Wrong) -> Wrong:
    def append(core: Any, role: Any, fetch: Any, answer: Any) -> Any:
        return right(core, role, fetch, attrs.evolve(answer, position=fetch.size_bytes))

    return append


def _of_any_snapshot(right: Wrong) -> Wrong:
    def append(core: Any, role: Any, fetch: Any, answer: Any) -> Any:
        named = attrs.evolve(answer.snapshot_id, end_offset=fetch.snapshot_id.offset, epoch=fetch.snapshot_id.epoch)
        return right(core, role, fetch, attrs.evolve(answer, snapshot_id=named))

    return append


def _beyond_the_end(right: Wrong) -> Wrong:
    def append(core: Any, role: Any, fetch: Any, answer: Any) -> Any:
        end = fetch.size_bytes + len(answer.unaligned_records)
        return right(core, role, fetch, attrs.evolve(answer, size=max(answer.size, end)))

    return append


def _keeping_the_snapshot(right: Wrong) -> Wrong:
    def change_role(core: Any, event: Any) -> None:
        if getattr(core.role, "fetching_snapshot", None) is not None:
            core.role = attrs.evolve(core.role, fetching_snapshot=None)
        right(core, event)

    return change_role


def _without_a_pause(right: Wrong) -> Wrong:
    def refuse(work: Any, *arguments: Any) -> None:
        right(work, *arguments)
        work.pause_until_ms = 0

    return refuse


def _with_one_pause(right: Wrong) -> Wrong:
    def refuse(work: Any, reason: str, now_ms: int, first_pause_ms: int, longest_pause_ms: int) -> None:
        right(work, reason, now_ms, first_pause_ms, first_pause_ms)

    return refuse


def _leaving_the_timer(right: Wrong) -> Wrong:
    def note_success(core: Any, role: Any) -> None:
        right(core, role)
        core.role = attrs.evolve(core.role, fetch_deadline_ms=role.fetch_deadline_ms)

    return note_success


def _loses_what_is_committed(right: Wrong) -> Wrong:
    def turn_to_snapshot(core: Any, role: Any, snapshot_id: Any) -> Any:
        known, core.committed_offset = core.committed_offset, 0
        outcome = right(core, role, snapshot_id)
        core.committed_offset = known
        return outcome

    return turn_to_snapshot


def _as_if_a_later_epoch_were_a_longer_log(right: Wrong) -> Wrong:
    def turn_to_snapshot(core: Any, role: Any, snapshot_id: Any) -> Any:
        is_later = 0 < snapshot_id.epoch < core.log.end.epoch
        return ResponseOutcome.FAILED if is_later else right(core, role, snapshot_id)

    return turn_to_snapshot


def _as_if_none_were_fetched(right: Wrong) -> Wrong:
    return lambda core, role, snapshot_id: right(core, attrs.evolve(role, fetching_snapshot=None), snapshot_id)


def _leaving_what_is_stored(right: Wrong) -> Wrong:
    def turn_to_snapshot(core: Any, role: Any, snapshot_id: Any) -> Any:
        is_stored = snapshot_id in core.log.state.snapshot_ids and core.log.end < snapshot_id
        return ResponseOutcome.DONE if is_stored else right(core, role, snapshot_id)

    return turn_to_snapshot


def _never_with_earlier_records(right: Wrong) -> Wrong:
    def append(log: Any, batches: Any, epoch: Any) -> Any:
        first, _ = read_batch(batches)
        if first.partition_leader_epoch < log.last_fetched_epoch:
            raise InvalidRecordError("an earlier epoch")
        return right(log, batches, epoch)

    return append


def _with_the_bootstrap_snapshot(right: Wrong) -> Wrong:
    def request_error(core: Any, request: Any, asked: Any) -> Any:
        error = right(core, request, asked)
        is_bootstrap = asked.snapshot_id.end_offset == 0
        return ErrorCode.NONE if is_bootstrap and error == ErrorCode.SNAPSHOT_NOT_FOUND else error

    return request_error


def _without_contact(right: Wrong) -> Wrong:
    def answer_snapshot_read(core: Any, number: int, chunk: Any) -> None:
        leadership = core.leadership
        voters, due_ms = set(leadership.fetched_voters), leadership.check_quorum_deadline_ms
        right(core, number, chunk)
        leadership.fetched_voters, leadership.check_quorum_deadline_ms = voters, due_ms

    return answer_snapshot_read


def _with_contact(right: Wrong) -> Wrong:
    def answer_snapshot_read(core: Any, number: int, chunk: Any) -> None:
        leadership = core.leadership
        waiting = None if leadership is None else leadership.reading_snapshots.get(number)
        if waiting is not None:
            note_fetch_of_voter(core, leadership, waiting.key)
        right(core, number, chunk)

    return answer_snapshot_read


def _without_bounds(right: Wrong) -> Wrong:
    def request_error(core: Any, request: Any, asked: Any) -> Any:
        error = right(core, request, asked)
        return ErrorCode.NONE if error == ErrorCode.BROKER_NOT_AVAILABLE else error

    return request_error


def _for_ever(right: Wrong) -> Wrong:
    def hold(pins: Any, owner: Any, snapshot_id: Any, now_ms: int, until_ms: int) -> None:
        pins._held.pop(owner, None)
        right(pins, owner, snapshot_id, now_ms, until_ms)

    return hold


def _uncommitted(right: Wrong) -> Wrong:
    def create_snapshot(core: Any, end_offset: int) -> Any:
        kept, core.committed_offset = core.committed_offset, core.log.state.end_offset
        try:
            return right(core, end_offset)
        finally:
            core.committed_offset = kept

    return create_snapshot


def _though_it_is_superseded(*_: Any) -> bool:
    return False


def _of_a_whole_log(core: Any) -> int:
    return -1 if core.log.is_quarantined else int(core.identity.key.id)


def _of_a_sound_log(core: Any) -> Any:
    return core.identity.key.id


def _without_a_flush(right: Wrong) -> Wrong:
    def append(core: Any, role: Any, answer: Any) -> None:
        log = core.log
        core.log = attrs.evolve(log, is_quarantined=False)
        right(core, role, answer)
        core.log = log

    return append


def _in_quarantine_too(right: Wrong) -> Wrong:
    def needs_update(core: Any, role: Any) -> Any:
        log = core.log
        core.log = attrs.evolve(log, is_quarantined=False)
        try:
            return right(core, role)
        finally:
            core.log = log

    return needs_update


def _going_on(right: Wrong) -> Wrong:
    def note_cleaned(core: Any, number: int, before: Any) -> None:
        due_ms = core.snapshots.clean_ms
        right(core, number, before)
        core.snapshots.clean_ms = min(core.snapshots.clean_ms, due_ms + 10_000)

    return note_cleaned


def _before_the_log_restarts(right: Wrong) -> Wrong:
    def restart(core: Any) -> None:
        core.raise_high_watermark(2**62)
        right(core)

    return restart


def _of_one_topic_alone(right: Wrong) -> Wrong:
    def answer(core: Any, response: Any) -> Any:
        return right(core, response) if len(response.topics) == 1 else None

    return answer


def _beginning_anew(right: Wrong) -> Wrong:
    def hold(pins: Any, owner: Any, snapshot_id: Any, now_ms: int, until_ms: int) -> None:
        before = pins._held.get(owner)
        if before is not None and not before.is_in_force(now_ms):
            del pins._held[owner]
        right(pins, owner, snapshot_id, now_ms, until_ms)

    return hold


MUTANTS: Final = (
    Mutant(
        "K-chunk-position",
        "only a chunk at the next position is written",
        "KafkaRaftClientSnapshotTest#testFetchSnapshotResponseInvalidPosition",
        swapped(fetching_snapshot, "_append", _at_any_position),
        (f"{FETCHING}::test_only_the_next_position_is_written", SCENARIOS),
    ),
    Mutant(
        "K-chunk-id",
        "only a chunk of the snapshot that was asked for is written",
        "KafkaRaftClientSnapshotTest#testFetchSnapshotResponseWithInvalidId",
        swapped(fetching_snapshot, "_append", _of_any_snapshot),
        (f"{SCENARIOS}[snapshot-fetch/only-the-next-chunk-is-written[core]]",),
    ),
    Mutant(
        "K-chunk-end",
        "a chunk ends within the snapshot",
        "KIP-630",
        swapped(fetching_snapshot, "_append", _beyond_the_end),
        (f"{FETCHING}::test_a_chunk_ends_within_the_snapshot",),
    ),
    Mutant(
        "R28-partial",
        "a change of the role gives up the snapshot that is being fetched",
        "KafkaRaftClientSnapshotTest#testFetchSnapshotResponseToNotFollower",
        swapped(replica.LocalReplica, "change_role", _keeping_the_snapshot),
        (f"{SCENARIOS}[snapshot-fetch/a-change-of-the-role-abandons-the-snapshot[core]]", FETCHING),
    ),
    Mutant(
        "K31-core",
        "the log restarts at a snapshot once it is frozen, whatever the role is then",
        "KafkaMetadataLogTest#testCreateReplicatedLogTruncatesFully",
        missing(fetching_snapshot, "_restart"),
        (f"{SCENARIOS}[snapshot-fetch/a-damaged-snapshot-is-fetched-again[core]]", FETCHING),
    ),
    Mutant(
        "K31-high-watermark",
        "the high watermark rises to a fetched snapshot only once the log has restarted at it",
        "KafkaRaftClient#handleFetchSnapshotResponse",
        swapped(fetching_snapshot, "_restart", _before_the_log_restarts),
        (f"{FETCHING}::test_records_that_a_snapshot_replaces_are_never_committed",),
    ),
    Mutant(
        "K-chunk-topics",
        "a part of a snapshot is found among other topics, as Kafka finds it",
        "FetchSnapshotResponse#forTopicPartition",
        swapped(fetching_snapshot, "_answer", _of_one_topic_alone),
        (f"{FETCHING}::test_a_part_is_found_among_other_topics_as_kafka_finds_it",),
    ),
    Mutant(
        "R29-pause",
        "a snapshot that was refused is fetched again after a pause",
        "Camunda 7136",
        swapped(snapshot_work.SnapshotWork, "refuse", _without_a_pause),
        (f"{FETCHING}::test_a_refused_snapshot_is_fetched_again_after_a_growing_pause", SCENARIOS),
    ),
    Mutant(
        "R29-growth",
        "the pause after a refused snapshot grows",
        "Camunda 7136",
        swapped(snapshot_work.SnapshotWork, "refuse", _with_one_pause),
        (f"{FETCHING}::test_a_refused_snapshot_is_fetched_again_after_a_growing_pause",),
    ),
    Mutant(
        "K-chunk-contact",
        "each chunk is as good a sign of the leader as a Fetch",
        "KafkaRaftClient#handleFetchSnapshotResponse",
        swapped(fetching_snapshot, "note_success", _leaving_the_timer),
        (f"{FETCHING}::test_a_chunk_is_as_good_as_a_fetch", SCENARIOS),
    ),
    Mutant(
        "R18-contradiction",
        "a snapshot that lacks what is committed stops the replica",
        "KafkaRaftClient#handleFetchSnapshotResponse",
        swapped(fetching_snapshot, "turn_to_snapshot", _loses_what_is_committed),
        (f"{SCENARIOS}[snapshot-fetch/a-snapshot-below-what-is-committed-halts[core]]", FETCHING),
    ),
    Mutant(
        "R18-diverging",
        "a log that ends in a later epoch below a snapshot has diverged from it",
        "found by a property test",
        swapped(fetching_snapshot, "turn_to_snapshot", _as_if_a_later_epoch_were_a_longer_log),
        (f"{CATCHING_UP}::test_a_follower_ends_with_the_log_of_its_leader", FETCHING),
    ),
    Mutant(
        "R18-named-again",
        "a snapshot that is being fetched is not begun anew as often as it is named",
        "raftlog's own simulator",
        swapped(fetching_snapshot, "turn_to_snapshot", _as_if_none_were_fetched),
        (f"{PAUSES}::test_a_leader_that_is_a_bootstrap_server_names_the_snapshot_once_in_each_pause",),
    ),
    Mutant(
        "R18-stored",
        "the log restarts at a snapshot that is stored and ahead of it",
        "KafkaRaftClient#handleFetchResponse",
        swapped(fetching_snapshot, "turn_to_snapshot", _leaving_what_is_stored),
        (f"{FETCHING}::test_a_log_restarts_at_a_snapshot_that_is_stored",),
    ),
    Mutant(
        "R-epoch-without-records",
        "in an empty log, records of an earlier epoch take the place of an epoch without records",
        "found by the simulator",
        swapped(MemoryLog, "append_as_follower", _never_with_earlier_records),
        (f"{CATCHING_UP}::test_a_follower_ends_with_the_log_of_its_leader",),
    ),
    Mutant(
        "R-epoch-without-records-in-files",
        "the same holds for a log in files",
        "found by the simulator",
        swapped(AppendableLog, "append_as_follower", _never_with_earlier_records),
        (f"{IN_FILES}::test_an_epoch_without_records_gives_way_in_an_empty_log",),
    ),
    Mutant(
        "K-bootstrap-served",
        "the bootstrap snapshot is not served",
        "KAFKA-16532",
        swapped(serving_snapshots, "_request_error", _with_the_bootstrap_snapshot),
        (f"{SERVING}::test_errors_of_the_partition", SCENARIOS),
    ),
    Mutant(
        "K5-snapshots",
        "a voter that fetches a snapshot is in touch",
        "KAFKA-15489",
        swapped(serving_snapshots, "answer_snapshot_read", _without_contact),
        (f"{SERVING}::test_only_bytes_for_a_voter_count_as_contact", SCENARIOS),
    ),
    Mutant(
        "K5-snapshot-errors",
        "an error in a FetchSnapshot is no contact",
        "KafkaRaftClient#handleFetchSnapshotRequest",
        swapped(serving_snapshots, "answer_snapshot_read", _with_contact),
        (f"{SERVING}::test_only_bytes_for_a_voter_count_as_contact", SCENARIOS),
    ),
    Mutant(
        "R-snapshot-reads",
        "the chunks that are read at once are bounded",
        "reliability: every queue has a bound",
        swapped(serving_snapshots, "_request_error", _without_bounds),
        (f"{SERVING}::test_reads_are_bounded_and_one_more_is_told_to_try_again",),
    ),
    Mutant(
        "R-snapshot-answers",
        "reads of snapshots are answered when the leadership ends",
        "KafkaRaftClient#transitionToResigned",
        missing(serving, "end_snapshot_reads"),
        (f"{SERVING}::test_reads_end_with_the_leadership",),
    ),
    Mutant(
        "K27-pinned",
        "a snapshot that is read is not deleted",
        "KAFKA-14238",
        instead(snapshot_work.Pins, "allow", lambda *_: True),
        (f"{WORK}::test_the_log_starts_nowhere_above_what_is_pinned", CLEANING, SCENARIOS),
    ),
    Mutant(
        "K27-listeners",
        "a snapshot that a listener reads is not deleted",
        "KAFKA-14238",
        instead(acting, "snapshots_being_read", lambda _: ()),
        (f"{CLEANING}::test_what_a_listener_reads_stays",),
    ),
    Mutant(
        "R-pins-end-for-good",
        "a reader that has held a snapshot for an hour holds it again only after a pause",
        "docs/quorum.md, cleaning",
        swapped(snapshot_work.Pins, "hold", _beginning_anew),
        (f"{WORK}::test_a_reader_holds_a_snapshot_anew_only_after_a_pause",),
    ),
    Mutant(
        "R-pins-end",
        "a reader on the network cannot pin a snapshot for ever",
        "reliability: every queue has a bound",
        swapped(snapshot_work.Pins, "hold", _for_ever),
        (f"{WORK}::test_a_pin_cannot_be_prolonged_for_ever",),
    ),
    Mutant(
        "K-cleaning",
        "the log is cleaned in time",
        "KafkaRaftClient.RaftMetadataLogCleanerManager",
        missing(acting, "clean"),
        (f"{CLEANING}::test_all_but_the_newest_snapshot_go_in_one_cleaning", SCENARIOS),
    ),
    Mutant(
        "K-cleaning-pause",
        "a cleaning that deletes nothing is followed by a pause",
        "KAFKA-19605",
        swapped(cleaning, "note_cleaned", _going_on),
        (f"{CLEANING}::test_a_cleaning_that_deletes_nothing_is_followed_by_a_pause",),
    ),
    Mutant(
        "K-snapshot-uncommitted",
        "a snapshot has committed records only",
        "KafkaMetadataLogTest#testCreateSnapshotLaterThanHighWatermark",
        swapped(creating, "create_snapshot", _uncommitted),
        (f"{CREATING}::test_what_is_not_committed_is_in_no_snapshot",),
    ),
    Mutant(
        "K-snapshot-superseded",
        "a snapshot that the log has passed is not listed",
        "NotifyingRawSnapshotWriter",
        instead(creating, "is_superseded", _though_it_is_superseded),
        (f"{CREATING}::test_a_snapshot_that_the_log_has_passed_is_not_listed",),
    ),
    Mutant(
        "K-histories-trimmed",
        "the histories of control records are trimmed to a snapshot",
        "KRaftControlRecordStateMachine#truncateOldEntries",
        instead(log_view.ControlRecordView, "trimmed", lambda view, _: view),
        (f"{CREATING}::test_control_records_are_trimmed_to_a_snapshot",),
    ),
    Mutant(
        "K-histories-at-the-end",
        "a voter set that begins where a snapshot ends does not replace the one before in the history",
        "KRaftControlRecordStateMachine#truncateOldEntries",
        swapped(log_view.ControlRecordView, "trimmed", lambda right: lambda view, end: right(view, end + 1)),
        (f"{CREATING}::test_voters_of_a_record_that_begins_where_a_snapshot_ends_can_be_truncated",),
    ),
    Mutant(
        "R-forgetful-counts",
        "a replica that may have forgotten a vote is counted by no leader",
        "raftlog's own simulator",
        instead_of_property(replica.LocalReplica, "fetching_id", _of_a_whole_log),
        (f"{QUARANTINE}::test_a_replica_that_cannot_vote_counts_for_nobody",),
    ),
    Mutant(
        "R17-fetch",
        "a replica in quarantine fetches without an id, so that no leader counts it",
        "Jepsen, NATS 2.12.1",
        instead_of_property(replica.LocalReplica, "fetching_id", _of_a_sound_log),
        (QUARANTINE,),
    ),
    Mutant(
        "R17-flush",
        "an observer in quarantine flushes, so that the quarantine ends",
        "found in review",
        swapped(fetching, "_append", _without_a_flush),
        (f"{QUARANTINE}::test_a_quarantine_ends_for_observers_too",),
    ),
    Mutant(
        "R17-update",
        "a voter in quarantine does not tell the leader of its endpoints, which counts as contact",
        "LeaderState#updateCheckQuorumForFollowingVoter",
        swapped(updating_voter, "needs_update", _in_quarantine_too),
        (f"{QUARANTINE}::test_a_damaged_voter_does_not_update_its_entry",),
    ),
)
