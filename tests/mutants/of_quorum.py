# SPDX-License-Identifier: Apache-2.0
"""A wrong consensus core: whom it votes for, when it stands for election, and what it believes of its leader."""

from typing import Any, Final

import attrs

from raftlog.offsets import MAX_EPOCH
from raftlog.quorum import raft, replica, requests, responses
from raftlog.quorum.elections import votes_asked
from raftlog.quorum.following import fetching
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading import leading_epoch, serving
from raftlog.quorum.roles import starting, transitions
from raftlog.quorum.roles.roles import Candidate, Leader, Resigned, Unattached
from raftlog.quorum.seam.log_view import ControlRecordView
from raftlog.quorum.seam.outbox import Outbox
from raftlog.records.messages.raft.election_messages import VoteRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import ReplicaKey
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, swapped

SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"
RAFT: Final = "tests/quorum/test_raft.py"
APPENDING: Final = "tests/quorum/leading/test_appending.py"
STATIC: Final = "tests/quorum/following/test_static_followers.py"
BAD_RESPONSES: Final = "tests/quorum/bad_input/test_bad_responses.py"
LEADING: Final = "tests/quorum/leading/test_leading.py"


def _unless_its_id_is_known(right: Wrong) -> Wrong:
    def learn_leader(core: Any, epoch: int, leader: int | None, endpoints: Any) -> None:
        if epoch > core.epoch or core.leader_id is None:
            right(core, epoch, leader, endpoints)

    return learn_leader


def _send_at_once(outbox: Any, effect: Any) -> None:
    outbox._ready.append(effect)


def _storing_for_pre_votes() -> None:
    setattr(replica, "Prospective", Candidate)  # noqa: B010


def _pausing_after_any_failure() -> None:
    setattr(raft, "UpdateRaftVoterRequest", VoteRequest)  # noqa: B010


def _leading_again(right: Wrong) -> Wrong:
    def starting_role(*arguments: Any, **options: Any) -> Any:
        role = right(*arguments, **options)
        return Leader(role.epoch, role.id, (), ()) if isinstance(role, Resigned) else role

    return starting_role


def _having_forgotten_to_lead(right: Wrong) -> Wrong:
    def starting_role(*arguments: Any, **options: Any) -> Any:
        role = right(*arguments, **options)
        return Unattached(role.epoch, election_deadline_ms=1000) if isinstance(role, Resigned) else role

    return starting_role


def _without_the_state(right: Wrong) -> Wrong:
    def starting_role(stored: Any, last_epoch: int, around: Any, *, may_stand: bool) -> Any:
        return right(None, last_epoch, around, may_stand=may_stand)

    return starting_role


def _as_if_it_had_not_fetched(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, *arguments: Any, **options: Any) -> Any:
        role = core.role
        if hasattr(role, "has_fetched"):
            core.role = attrs.evolve(role, has_fetched=False)
        answer = right(core, *arguments, **options)
        core.role = role
        return answer

    return may_grant_vote


def _by_voters_alone(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, *arguments: Any, **options: Any) -> Any:
        return core.is_voter and right(core, *arguments, **options)

    return may_grant_vote


def _of_any_log(right: Wrong) -> Wrong:
    return lambda candidate_end, voter_end: candidate_end.offset >= voter_end.offset


def _marking_first(right: Wrong) -> Wrong:
    def only_answer(core: Any, response: Any) -> Any:
        answer = right(core, response)
        if answer is not None and answer.diverging_epoch.epoch >= 0:
            core.raise_high_watermark(max(answer.high_watermark, 0))
        return answer

    return only_answer


def _repeating(right: Wrong) -> Wrong:
    def receive_response(core: Any, number: int, response: Any) -> None:
        kept = vars(core).setdefault("kept", {})
        kept.update(core._replica.sent)
        if number in kept and number not in core._replica.sent:
            sent = core._replica.sent[number] = kept[number]
            core._replica.connections.sent(sent.destination.id, number, core._replica.now_ms)
        right(core, number, response)

    return receive_response


def _flushing_voters_alone(right: Wrong) -> Wrong:
    def append(core: Any, *arguments: Any) -> None:
        identity = core.identity
        core.identity = attrs.evolve(identity, can_become_voter=False)
        right(core, *arguments)
        core.identity = identity

    return append


def _though_its_log_is_written(core: Any) -> bool:
    return bool(core.may_stand and core.is_voter and core.epoch < MAX_EPOCH)


def _though_the_log_is_written(right: Wrong) -> Wrong:
    def fetch_from_leader(core: Any, role: Any) -> None:
        work, core.log_work = core.log_work, type(core.log_work)()
        right(core, role)
        core.log_work = work

    return fetch_from_leader


def _keeping_the_epoch(right: Wrong) -> Wrong:
    def answer(core: Any, voter_id: int, asked: Any) -> Any:
        if not requests.is_addressee(core, voter_id, asked.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY, False
        return right(core, voter_id, asked)

    return answer


def _putting_off_elections(right: Wrong) -> Wrong:
    def enter_epoch(role: Any, event: Any, around: Any) -> Any:
        after = right(role, event, around)
        return attrs.evolve(after, election_deadline_ms=around.new_election_deadline_ms())

    return enter_epoch


def _plant_putting_off() -> None:
    table = dict(transitions.TRANSITIONS)
    for key, (function, targets) in table.items():
        if function is transitions._enter_epoch:
            table[key] = (_putting_off_elections(function), targets)
    transitions.TRANSITIONS = table  # type: ignore[misc]


def _counting_what_is_not_flushed(right: Wrong) -> Wrong:
    def advance_high_watermark(core: Any, leadership: Any) -> None:
        log = core.log
        core.log = attrs.evolve(log, flushed_offset=log.state.end_offset)
        right(core, leadership)
        core.log = log

    return advance_high_watermark


def _whatever_the_epoch(right: Wrong) -> Wrong:
    return lambda before, ends, majority_size, _: right(before, ends, majority_size, -1)


def _noting_any_fetch(right: Wrong) -> Wrong:
    def serve(core: Any, fetch: Any, **options: Any) -> None:
        asked = serving.partition_of(fetch.request)
        key = ReplicaKey(fetch.request.replica_state.replica_id, asked.replica_directory_id)
        if core.leadership is not None:
            serving.note_fetch(core, core.leadership, key, min(asked.fetch_offset, core.log.state.end_offset))
        right(core, fetch, **options)

    return serve


def _by_observers_too(right: Wrong) -> Wrong:
    def note_fetch_of_voter(core: Any, leadership: Any, key: Any) -> None:
        voters = [each.voter_key for each in core.voters.voters.values() if each.voter_key != core.identity.key]
        right(core, leadership, key if core.voters.is_voter(key) else voters[0])

    return note_fetch_of_voter


def _of_the_same_id(_: Any) -> Wrong:
    def progress_of(leadership: Any, voter: Any) -> Any:
        return next((each for key, each in leadership.progress.items() if key.id == voter.voter_key.id), None)

    return progress_of


def _leaving_fetches_unanswered(right: Wrong) -> Wrong:
    def end_leading(core: Any) -> None:
        if core.leadership is not None:
            core.leadership.parked.clear()
        right(core)

    return end_leading


def _for_ever(right: Wrong) -> Wrong:
    def lead(core: Any, leadership: Any) -> None:
        leadership.check_quorum_deadline_ms = core.now_ms + 1000
        right(core, leadership)

    return lead


def _as_failed(right: Wrong) -> Wrong:
    def end_uncommitted(core: Any, leadership: Any) -> None:
        leadership.handed_end_offset = 0
        right(core, leadership)

    return end_uncommitted


def _when_it_is_flushed(right: Wrong) -> Wrong:
    def end_committed(core: Any, leadership: Any) -> None:
        known = core.high_watermark
        core.high_watermark = core.log.flushed_offset
        right(core, leadership)
        core.high_watermark = known

    return end_committed


def _of_any_partition(right: Wrong) -> Wrong:
    def only_answer(core: Any, response: Any) -> Any:
        topics = response.responses if hasattr(response, "responses") else response
        answer = right(core, response)
        is_one = len(topics) == 1 and len(topics[0].partitions) == 1
        return topics[0].partitions[0] if answer is None and is_one and _is_ours(core, topics[0]) else answer

    return only_answer


def _is_ours(core: Any, topic: Any) -> bool:
    names = core.identity.topic_name, core.identity.topic_id
    return getattr(topic, "topic_name", None) in names or getattr(topic, "topic_id", None) in names


MUTANTS: Final = (
    Mutant(
        "R-known-by-id",
        "a leader whose id alone is known is followed once it says where it is",
        "raftlog's own simulator",
        swapped(responses, "learn_leader", _unless_its_id_is_known),
        (f"{STATIC}::test_a_leader_whose_id_alone_is_stored_is_followed_once_it_answers",),
    ),
    Mutant(
        "R-unknown",
        "what is in the log when a leadership ends has not failed",
        "Raft dissertation, 6.3",
        swapped(serving, "end_uncommitted", _as_failed),
        (f"{APPENDING}::test_what_is_in_the_log_when_the_leadership_ends_is_unknown",),
    ),
    Mutant(
        "R-acknowledged",
        "an append is acknowledged when a majority has flushed it, not when the leader has",
        "Jepsen, NATS 2.12.1",
        swapped(leading_epoch, "end_committed", _when_it_is_flushed),
        (f"{APPENDING}::test_an_append_is_committed_when_a_majority_has_flushed_it",),
    ),
    Mutant(
        "R-unflushed",
        "a leader counts its own records when they are flushed",
        "Jepsen, NATS 2.12.1",
        swapped(leading_epoch, "advance_high_watermark", _counting_what_is_not_flushed),
        (
            f"{SCENARIOS}[disk/only-voter-flushes-late[core]]",
            f"{SCENARIOS}[disk/leader-flushes-late[core]]",
            LEADING,
        ),
    ),
    Mutant(
        "R-pre-vote-stores",
        "asking for pre-votes stores nothing",
        "QuorumState#transitionToProspective",
        _storing_for_pre_votes,
        (STATIC,),
    ),
    Mutant(
        "R-silent-leader",
        "while the log is worked on, a leader that is silent for too long is told nothing of the voter",
        "KafkaRaftClient#pollFollowerAsVoter",
        instead_of_property(replica.LocalReplica, "is_log_at_rest", lambda _: True),
        (STATIC,),
    ),
    Mutant(
        "R-failed-update",
        "no pause follows an UpdateRaftVoter that failed on the network",
        "KafkaRaftClient#handleUpdateVoterResponse",
        _pausing_after_any_failure,
        (STATIC,),
    ),
    Mutant(
        "R-old-fetch",
        "a Fetch up to version 14 names its sender in another field",
        "FetchRequest#replicaId",
        instead(serving, "sender_id", lambda request: request.replica_state.replica_id),
        (f"{LEADING}::test_a_fetch_of_an_old_version_counts_too",),
    ),
    Mutant(
        "R2",
        "records of older epochs are committed with the first of this one",
        "Raft, figure 8",
        swapped(leading_epoch, "advanced_high_watermark", _whatever_the_epoch),
        (f"{LEADING}::test_a_majority_of_voters_commits", SCENARIOS),
    ),
    Mutant(
        "K23",
        "a Fetch that diverges says nothing of the sender's progress",
        "KAFKA-13141",
        swapped(serving, "_serve", _noting_any_fetch),
        (f"{SCENARIOS}[leading/fetch-that-diverges-is-not-progress[core]]",),
    ),
    Mutant(
        "K5",
        "only fetches of voters let a leader lead on",
        "KAFKA-15489",
        swapped(serving, "note_fetch_of_voter", _by_observers_too),
        (f"{SCENARIOS}[snapshot-fetch/a-snapshot-is-served-in-chunks[core]]",),
    ),
    Mutant(
        "K5-end",
        "a leader that no majority fetches from resigns",
        "KAFKA-15489",
        swapped(leading_epoch, "lead", _for_ever),
        (f"{LEADING}::test_a_static_voter_counts_once_in_the_check_of_quorum", SCENARIOS),
    ),
    Mutant(
        "K22",
        "a replica with the id of a voter and another directory is no voter",
        "KIP-853",
        swapped(Leadership, "progress_of", _of_the_same_id),
        (f"{LEADING}::test_a_majority_of_voters_commits", SCENARIOS),
    ),
    Mutant(
        "K-bootstrap-voters",
        "the first leader writes the voters of the bootstrap snapshot into the log",
        "KAFKA-16532",
        instead_of_property(ControlRecordView, "last_voter_set_offset", lambda _: 0),
        (f"{SCENARIOS}[disk/flush-ends-after-the-leadership[core]]",),
    ),
    Mutant(
        "R-waiting-fetches",
        "fetches that wait are answered when the leadership ends",
        "KafkaRaftClient#transitionToResigned",
        swapped(serving, "end_leading", _leaving_fetches_unanswered),
        (f"{SCENARIOS}[leading/waiting-fetches-end-with-the-leadership[core]]",),
    ),
    Mutant(
        "R12-told",
        "a vote is told after it is stored",
        "PySyncObj 84",
        instead(Outbox, "_send", _send_at_once),
        ("tests/quorum/seam/test_outbox.py::test_messages_wait_for_earlier_election_states_and_for_nothing_else", RAFT),
    ),
    Mutant(
        "K1-core",
        "a leader does not lead its epoch again after a restart",
        "KAFKA-10527",
        swapped(starting, "starting_role", _leading_again),
        (f"{SCENARIOS}[disk/flush-of-a-leader-fails[core]]",),
    ),
    Mutant(
        "K2-core",
        "having led is having voted",
        "KAFKA-10661",
        swapped(starting, "starting_role", _having_forgotten_to_lead),
        (f"{SCENARIOS}[disk/flush-of-a-leader-fails[core]]",),
    ),
    Mutant(
        "R13-core",
        "the epoch survives a restart",
        "PySyncObj 202",
        swapped(starting, "starting_role", _without_the_state),
        (f"{SCENARIOS}[disk/flush-of-a-follower-fails[core]]",),
    ),
    Mutant(
        "K7",
        "a follower that has fetched from its leader grants no pre-vote",
        "KIP-996",
        swapped(votes_asked, "may_grant_vote", _as_if_it_had_not_fetched),
        (f"{SCENARIOS}[elections/follower-that-fetched-refuses-pre-votes[core]]",),
    ),
    Mutant(
        "K13",
        "a replica that does not know that it is a voter votes",
        "KAFKA-16526",
        swapped(votes_asked, "may_grant_vote", _by_voters_alone),
        (f"{SCENARIOS}[elections/observer-votes-but-does-not-stand[core]]",),
    ),
    Mutant(
        "R-longer-log-votes",
        "the epoch of the last record is compared before the length of the log",
        "Raft, 5.4.1",
        swapped(votes_asked, "is_up_to_date", _of_any_log),
        (f"{SCENARIOS}[elections/log-decides-the-vote[core]]",),
    ),
    Mutant(
        "W3-core",
        "a replica that may have forgotten a vote neither votes nor stands for election",
        "QuorumState",
        instead_of_property(replica.LocalReplica, "may_stand", lambda _: True),
        (f"{SCENARIOS}[elections/forgotten-vote[core]]", RAFT),
    ),
    Mutant(
        "R25",
        "two leaders of an epoch stop the replica",
        "NuRaft 531",
        instead(requests, "_is_consistent", lambda *_: True),
        (f"{SCENARIOS}[elections/two-leaders-of-an-epoch-halt[core]]",),
    ),
    Mutant(
        "K8",
        "a replica without a leader fetches from bootstrap servers",
        "KAFKA-17030",
        instead(fetching, "fetch_from_bootstrap", lambda _: None),
        (f"{SCENARIOS}[disk/election-state-fails[core]]",),
    ),
    Mutant(
        "K10",
        "an observer that may become a voter flushes before it fetches again",
        "KAFKA-17332",
        swapped(fetching, "_append", _flushing_voters_alone),
        (f"{RAFT}::test_observers_that_may_become_voters_flush",),
    ),
    Mutant(
        "K24-core",
        "the log is truncated before the high watermark rises",
        "KAFKA-14704",
        swapped(fetching, "_only_answer", _marking_first),
        (f"{SCENARIOS}[disk/flush-ends-after-the-leadership[core]]",),
    ),
    Mutant(
        "R30-core",
        "an answer is used once",
        "found with a simulator",
        swapped(raft.Raft, "receive_response", _repeating),
        (f"{SCENARIOS}[elections/repeated-fetch-answer-is-ignored[core]]",),
    ),
    Mutant(
        "R-standing-at-rest",
        "no election begins while the log is written",
        "found with the model: a candidate goes on after a crash",
        instead_of_property(replica.LocalReplica, "may_begin_election", _though_its_log_is_written),
        (f"{RAFT}::test_no_election_begins_while_the_log_is_written",),
    ),
    Mutant(
        "R16-core",
        "a Fetch says what is durable",
        "Jepsen, NATS 2.12.1",
        swapped(fetching, "fetch_from_leader", _though_the_log_is_written),
        (f"{RAFT}::test_no_sequence_of_inputs_breaks_a_promise",),
    ),
    Mutant(
        "K33-key",
        "a request for another directory moves the epoch, and gets no vote",
        "KafkaRaftClient#handleVoteRequest",
        swapped(votes_asked, "_answer", _keeping_the_epoch),
        (f"{SCENARIOS}[elections/request-for-another-replica-moves-the-epoch[core]]",),
    ),
    Mutant(
        "R-put-off",
        "higher epochs do not put off an election",
        "QuorumState#transitionToUnattached",
        _plant_putting_off,
        ("tests/quorum/roles/test_transitions.py::test_a_higher_epoch_does_not_put_off_an_election",),
    ),
    Mutant(
        "K-response-partition",
        "a response for another partition is not taken",
        "RaftUtil#hasValidTopicPartition",
        swapped(responses, "only_answer", _of_any_partition),
        (BAD_RESPONSES,),
    ),
    Mutant(
        "K-fetch-response-partition",
        "a response to a Fetch for another partition is not taken",
        "RaftUtil#hasValidTopicPartition",
        swapped(fetching, "_only_answer", _of_any_partition),
        (f"{BAD_RESPONSES}::test_a_bad_response_is_not_taken",),
    ),
)
