# SPDX-License-Identifier: Apache-2.0
"""Wrong ends: leaders that resign for the wrong voter or epoch, or stop too early, too late, or not at all."""

from typing import Any, Final

from raftlog.offsets import MAX_EPOCH
from raftlog.quorum import acting, dispatch
from raftlog.quorum.elections import shutting_down
from raftlog.quorum.leading import leading_epoch, resigning
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Resigned
from raftlog.quorum.seam.outbox import Outbox
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

RESIGNING: Final = "tests/quorum/leading/test_resigning.py"
SHUTTING_DOWN: Final = "tests/quorum/elections/test_shutting_down.py"
SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"


def _of_the_current_epoch(right: Wrong) -> Wrong:
    return lambda core, epoch, preferred: right(core, core.epoch, preferred)


def _without_preference(right: Wrong) -> Wrong:
    def preferred_candidates(core: Any, leadership: Any) -> Any:
        leadership.preferred_successor = None
        return right(core, leadership)

    return preferred_candidates


def _by_a_leader_too(right: Wrong) -> Wrong:
    def may_go(core: Any) -> bool:
        return right(core) or core.leader_id is not None

    return may_go


def _plant_leaving_the_epoch() -> None:
    right = acting._ACTIONS[Resigned]

    def resign(core: Any) -> None:
        kept, core.shutdown = core.shutdown, None
        right(core)
        core.shutdown = kept

    setattr(acting, "_ACTIONS", {**acting._ACTIONS, Resigned: resign})  # noqa: B010


def _forgetting_the_shutdown(right: Wrong) -> Wrong:
    def abandon_shutdown(core: Any) -> None:
        right(core)
        if core.shutdown is not None and core.shutdown.is_abandoned:
            core.shutdown = None

    return abandon_shutdown


def _beginning_elections(core: Any) -> bool:
    return bool(core.may_stand and core.is_voter and core.epoch < MAX_EPOCH and core.is_log_at_rest)


MUTANTS: Final = (
    Mutant(
        "K-resign-epoch",
        "a leader resigns the epoch that it is asked to",
        "KafkaRaftClient#resign",
        swapped(resigning, "request_resignation", _of_the_current_epoch),
        (f"{RESIGNING}::test_an_impossible_epoch_is_refused", SCENARIOS),
    ),
    Mutant(
        "K-resign-preferred",
        "the preferred voter stands for election first",
        "KIP-853, preferred candidates",
        swapped(leading_epoch, "preferred_candidates", _without_preference),
        (f"{RESIGNING}::test_the_preferred_voter_comes_first", SCENARIOS),
    ),
    Mutant(
        "R-transfer-target",
        "leadership is handed to a voter with all committed records",
        "etcd raft, transfer to a learner or a node that is gone",
        missing(resigning, "check_target"),
        (f"{RESIGNING}::test_a_voter_that_could_not_win_is_refused", SCENARIOS),
    ),
    Mutant(
        "K-shutdown-waits",
        "a leader that shuts down waits for its successor",
        "KafkaRaftClient#maybeCompleteShutdown",
        swapped(shutting_down, "_may_go", _by_a_leader_too),
        (f"{SHUTTING_DOWN}::test_a_leader_resigns_and_waits_for_its_successor", SCENARIOS),
    ),
    Mutant(
        "K-shutdown-resigned",
        "a leader that shuts down stays resigned",
        "KafkaRaftClient#pollResigned",
        _plant_leaving_the_epoch,
        (f"{SHUTTING_DOWN}::test_a_leader_resigns_and_waits_for_its_successor", SCENARIOS),
    ),
    Mutant(
        "R-shutdown-once",
        "a replica that has halted is shut down once, however often it is asked to",
        "Raft.shutdown",
        swapped(shutting_down, "abandon_shutdown", _forgetting_the_shutdown),
        (SHUTTING_DOWN,),
    ),
    Mutant(
        "K-shutdown-election",
        "a replica that shuts down begins no election",
        "KafkaRaftClient#pollUnattachedAsVoter",
        instead_of_property(LocalReplica, "may_begin_election", _beginning_elections),
        (f"{SHUTTING_DOWN}::test_a_candidate_ends_its_election_and_resigns_if_it_wins", SCENARIOS),
    ),
    Mutant(
        "K-shutdown-answers",
        "a replica answers its peers before it stops",
        "KafkaRaftClient#poll",
        instead_of_property(Outbox, "is_holding", lambda _: False),
        (SHUTTING_DOWN,),
    ),
    Mutant(
        "K-shutdown-refuses",
        "requests after a shutdown are refused, and change nothing",
        "KafkaRaftClient#validateLeaderOnlyRequest",
        instead(dispatch, "refuse_request", dispatch.handle_request),
        (f"{SHUTTING_DOWN}::test_requests_after_a_shutdown_are_refused", SCENARIOS),
    ),
)
