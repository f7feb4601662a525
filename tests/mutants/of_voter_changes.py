# SPDX-License-Identifier: Apache-2.0
"""A leader that changes its voters too early, to a set that must not follow, or without the consequences."""

from typing import Any, Final

import attrs

from raftlog.errors import NotLeaderError
from raftlog.quorum import dispatch
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading import adding_voters, caught_up, leading_epoch, removing_voters, resigning, voter_change
from raftlog.quorum.replica import LocalReplica
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import VoterSet
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

RECONFIG: Final = "tests/behaviour/test_raft_client_reconfig_requests.py"
ADDING: Final = "tests/quorum/leading/test_adding_voters.py"
REMOVING: Final = "tests/quorum/leading/test_removing_voters.py"
UPDATING: Final = "tests/quorum/leading/test_updating_voters.py"


def _counting_itself(right: Wrong) -> Wrong:
    def advance_high_watermark(replica: LocalReplica, leadership: Leadership) -> None:
        right(replica, leadership)
        if not replica.is_voter:
            known = filter(None, map(leadership.progress_of, replica.voters.voters.values()))
            ends = sorted([replica.log.flushed_offset, *(each.end_offset for each in known)], reverse=True)
            replica.raise_high_watermark(ends[min(replica.voters.majority_size, len(ends)) - 1])

    return advance_high_watermark


def _though_uncommitted(right: Wrong) -> Wrong:
    def voters_refusal(*arguments: Any) -> Any:
        refusal = right(*arguments)
        return None if refusal is not None and refusal.error == ErrorCode.REQUEST_TIMED_OUT else refusal

    return voters_refusal


def _waiting_for_ever(right: Wrong) -> Wrong:
    def end_change(replica: LocalReplica, leadership: Leadership, refusal: Any = None) -> None:
        if refusal is None or refusal.error != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            right(replica, leadership, refusal)

    return end_change


def _without_the_last_voters(right: Wrong) -> Wrong:
    def is_caught_up(replica: LocalReplica, leadership: Leadership, key: Any) -> Any:
        known = leadership.progress.get(key)
        if known is not None:
            leadership.progress[key] = known._replace(end_offset=2**62)
        answer = right(replica, leadership, key)
        if known is not None:
            leadership.progress[key] = known
        return answer

    return is_caught_up


def _as_kafka(right: Wrong) -> Wrong:
    def is_caught_up(replica: LocalReplica, leadership: Leadership, key: Any) -> Any:
        config = replica.config
        replica.config = attrs.evolve(config, new_voter_stabilization_ms=0)
        answer = right(replica, leadership, key)
        replica.config = config
        return answer

    return is_caught_up


def _from_a_single_fetch(right: Wrong) -> Wrong:
    def steady_since_ms(replica: LocalReplica, before: Any, caught_up_ms: int) -> Any:
        found = right(replica, before, caught_up_ms)
        return found if before is None or found < 0 or before.steady_since_ms < 0 else before.steady_since_ms

    return steady_since_ms


def _staying(right: Wrong) -> Wrong:
    def note_committed_voters(replica: LocalReplica, leadership: Leadership) -> None:
        right(replica, leadership)
        leadership.is_resignation_due = False

    return note_committed_voters


def _resigning_with_the_request(right: Wrong) -> Wrong:
    def note_committed_voters(replica: LocalReplica, leadership: Leadership) -> None:
        change = leadership.voter_change
        right(replica, leadership)
        leadership.is_resignation_due = leadership.is_resignation_due and change is not None

    return note_committed_voters


def _without_a_second_voters_time(right: Wrong) -> Wrong:
    def lead(replica: LocalReplica, leadership: Leadership) -> None:
        deadline_ms = leadership.check_quorum_deadline_ms
        right(replica, leadership)
        leadership.check_quorum_deadline_ms = deadline_ms

    return lead


def _as_a_voter_alone(right: Wrong) -> Wrong:
    def request_resignation(replica: LocalReplica, *arguments: Any) -> None:
        if not replica.is_voter:
            raise NotLeaderError("this replica is no voter")
        right(replica, *arguments)

    return request_resignation


def _making_voters(right: Wrong) -> Wrong:
    return lambda voters, node: right(voters, node) or voters.add_voter(node)


def _whoever_reports(right: Wrong) -> Wrong:
    def note_fetch_of_voter(replica: LocalReplica, leadership: Leadership, key: Any) -> None:
        right(replica, leadership, key)
        if key == replica.identity.key:
            leadership.check_quorum_deadline_ms = replica.now_ms + replica.config.check_quorum_timeout_ms

    return note_fetch_of_voter


def _whoever_answers(right: Wrong) -> Wrong:
    def handle_response(replica: LocalReplica, sent: Any, response: Any) -> Any:
        change = None if replica.leadership is None else replica.leadership.voter_change
        if isinstance(sent.message, ApiVersionsRequest) and change is not None and change.joiner is not None:
            sent = attrs.evolve(sent, destination=sent.destination._replace(id=change.joiner.key.id))
        return right(replica, sent, response)

    return handle_response


MUTANTS: Final = (
    Mutant(
        "K11",
        "a leader that is no voter any more can be asked to resign",
        "KAFKA-17332",
        swapped(resigning, "request_resignation", _as_a_voter_alone),
        (REMOVING,),
    ),
    Mutant(
        "R27",
        "an update of an observer's entry does not make it a voter",
        "etcd 21694",
        swapped(VoterSet, "update_voter", _making_voters),
        (f"{RECONFIG}::test_update_voter_with_none_voter_id",),
    ),
    Mutant(
        "K17-leader",
        "a voter set that waits in the accumulator delays the next change",
        "KAFKA-20661",
        missing(voter_change, "note_written_voters"),
        (UPDATING,),
    ),
    Mutant(
        "R1-core",
        "a leader commits a record of its own epoch before it changes voters",
        "Ongaro, raft-dev, 2015",
        instead(voter_change, "leader_refusal", lambda *_: None),
        (f"{RECONFIG}::test_add_voter_without_fenced_previous_leaders",),
    ),
    Mutant(
        "R4-core",
        "one change of voters at a time: a new voter that is asked for its versions delays others",
        "redpanda 17675",
        instead(voter_change, "pending_refusal", lambda _: None),
        (f"{RECONFIG}::test_add_voter_with_pending_add_voter",),
    ),
    Mutant(
        "R4-uncommitted",
        "a voter set that is not committed delays the next change, after its request has expired too",
        "redpanda 17675",
        swapped(voter_change, "voters_refusal", _though_uncommitted),
        (f"{RECONFIG}::test_add_voter_timeout",),
    ),
    Mutant(
        "R31-core",
        "a voter set that the log would refuse is not written",
        "check_leaders_control_batch",
        instead(voter_change, "voters_problem", lambda _: None),
        (ADDING,),
    ),
    Mutant(
        "K9",
        "a leader that is no voter does not count itself",
        "KAFKA-16530",
        swapped(leading_epoch, "advance_high_watermark", _counting_itself),
        (REMOVING,),
    ),
    Mutant(
        "K9-resigns",
        "a leader resigns once its removal is committed",
        "KAFKA-16530",
        swapped(voter_change, "note_committed_voters", _staying),
        (f"{RECONFIG}::test_remove_voter_is_leader",),
    ),
    Mutant(
        "K18-resigns",
        "a leader resigns once its removal is committed, after the request has expired too",
        "RemoveVoterHandler#highWatermarkUpdated",
        swapped(voter_change, "note_committed_voters", _resigning_with_the_request),
        (REMOVING,),
    ),
    Mutant(
        "K6-second",
        "the check of quorum begins anew with the second voter",
        "KAFKA-16144",
        swapped(leading_epoch, "lead", _without_a_second_voters_time),
        (ADDING,),
    ),
    Mutant(
        "K16",
        "a new voter has the last VotersRecord",
        "KAFKA-19933",
        swapped(caught_up, "is_caught_up", _without_the_last_voters),
        (ADDING,),
    ),
    Mutant(
        "R-caught-up",
        "a new voter has kept up for some time",
        "LeaderState#isReplicaCaughtUp",
        swapped(caught_up, "is_caught_up", _as_kafka),
        (ADDING,),
    ),
    Mutant(
        "R-caught-up-anew",
        "a replica that was out of touch must keep up anew",
        "LeaderState#isReplicaCaughtUp",
        swapped(caught_up, "steady_since_ms", _from_a_single_fetch),
        (ADDING,),
    ),
    Mutant(
        "R11-adding",
        "with a new voter, a majority is in touch",
        "etcd 12359",
        instead(adding_voters, "is_majority_in_touch", lambda *_: True),
        (ADDING,),
    ),
    Mutant(
        "R11-removing",
        "without a voter, a majority is in touch",
        "etcd 12359",
        instead(removing_voters, "is_majority_in_touch", lambda *_: True),
        (REMOVING,),
    ),
    Mutant(
        "K18",
        "a change that takes too long is answered",
        "KafkaRaftClientReconfigTest#testAddVoterTimeout",
        missing(leading_epoch, "expire_change"),
        (RECONFIG,),
    ),
    Mutant(
        "K18-lost",
        "the end of a leadership answers the change that is under way",
        "LeaderState#close",
        swapped(voter_change, "end_change", _waiting_for_ever),
        (f"{RECONFIG}::test_add_voter_fails_when_losing_leadership",),
    ),
    Mutant(
        "K-own-report",
        "an UpdateRaftVoter in the leader's own name is no sign of another voter",
        "LeaderState#updateCheckQuorumForFollowingVoter",
        swapped(leading_epoch, "note_fetch_of_voter", _whoever_reports),
        (f"{UPDATING}::test_a_report_in_the_name_of_the_leader_does_not_let_it_lead_on",),
    ),
    Mutant(
        "K-late-versions",
        "an ApiVersions answer counts only for the replica that was asked",
        "AddVoterHandlerState#expectingApiResponse",
        swapped(dispatch, "handle_response", _whoever_answers),
        (f"{ADDING}::test_a_late_answer_of_another_voter_is_ignored",),
    ),
)
