# SPDX-License-Identifier: Apache-2.0
"""A wrong autopilot: it changes the voters too early, too late, or at a cost."""

from typing import Any, Final

import attrs

from raftlog.quorum.autopilot import memory, planning
from raftlog.quorum.autopilot.spec import AutopilotSpec
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

PLANNING: Final = "tests/quorum/autopilot/test_planning.py"
AOP: Final = "Confluent Platform's Automatic Observer Promotion"
SOURCE: Final = "hashicorp/raft-autopilot"


def _as_soon_as_it_is(right: Wrong) -> Wrong:
    return lambda view, key, is_in_sync, for_ms: right(view, key, is_in_sync, 0)


def _one_ms_late(right: Wrong) -> Wrong:
    return lambda view, key, is_in_sync, for_ms: right(view, key, is_in_sync, for_ms + 1)


def _though_it_lags(right: Wrong) -> Wrong:
    return lambda spec, status, fetcher, now_ms: right(attrs.evolve(spec, max_lag=2**62), status, fetcher, now_ms)


def _without_the_voters(right: Wrong) -> Wrong:
    def is_in_sync(spec: Any, status: Any, fetcher: Any, now_ms: int) -> Any:
        voters = attrs.evolve(status.committed_voters, offset=None)
        return right(spec, attrs.evolve(status, committed_voters=voters), fetcher, now_ms)

    return is_in_sync


def _before_the_epoch_is_committed(right: Wrong) -> Wrong:
    return lambda status: right(attrs.evolve(status, high_watermark=0))


def _while_a_set_is_uncommitted(right: Wrong) -> Wrong:
    return lambda status: right(attrs.evolve(status, uncommitted_voters=None))


def _windows_of_all_epochs(right: Wrong) -> Wrong:
    return lambda spec, status, known, now_ms: right(spec, status, attrs.evolve(known, epoch=status.epoch), now_ms)


def _forgetting_removals(right: Wrong) -> Wrong:
    return lambda *arguments: attrs.evolve(right(*arguments), removed=frozenset())


MUTANTS: Final = (
    Mutant(
        "R-pilot-late-return",
        "a configured voter does not wait for an observer that cannot be spared",
        "raftlog's own simulator",
        instead(planning._View, "_spared", lambda view: sorted(view._promoted)),
        (f"{PLANNING}::test_whatever_voters_a_leader_finds_the_configured_ones_come_back",),
    ),
    Mutant(
        "R-pilot-window",
        "a role changes only after a window",
        SOURCE,
        swapped(planning._View, "_has_been", _as_soon_as_it_is),
        (f"{PLANNING}::test_every_step_keeps_the_rules",),
    ),
    Mutant(
        "R-pilot-window-late",
        "a role changes at the end of a window, not after it",
        SOURCE,
        swapped(planning._View, "_has_been", _one_ms_late),
        (f"{PLANNING}::test_a_promotion_waits_for_the_window",),
    ),
    Mutant(
        "R-pilot-lag",
        "a replica that lags is not promoted",
        AOP,
        swapped(memory, "is_in_sync", _though_it_lags),
        (f"{PLANNING}::test_limits_of_being_in_sync",),
    ),
    Mutant(
        "K-pilot-voters-record",
        "a replica without the last VotersRecord is not promoted",
        "KAFKA-19933",
        swapped(memory, "is_in_sync", _without_the_voters),
        (f"{PLANNING}::test_without_the_last_voters_record_no_replica_is_in_sync",),
    ),
    Mutant(
        "R-pilot-epoch",
        "a leader plans nothing before it has committed in its epoch",
        "Ongaro, raft-dev 2015",
        swapped(planning, "_obstacle", _before_the_epoch_is_committed),
        (f"{PLANNING}::test_a_leader_that_cannot_change_the_voters_plans_nothing",),
    ),
    Mutant(
        "R-pilot-uncommitted",
        "nothing is planned while a voter set is not committed",
        "KIP-853",
        swapped(planning, "_obstacle", _while_a_set_is_uncommitted),
        (f"{PLANNING}::test_a_leader_that_cannot_change_the_voters_plans_nothing",),
    ),
    Mutant(
        "R-pilot-new-leader",
        "windows start anew with each leader",
        SOURCE,
        swapped(memory, "_windows", _windows_of_all_epochs),
        (f"{PLANNING}::test_windows_start_anew_with_each_leader_and_after_a_pause",),
    ),
    Mutant(
        "R-pilot-removal",
        "an operator's removal is remembered",
        "a voter that is taken out of service must not come back",
        swapped(planning, "look", _forgetting_removals),
        (f"{PLANNING}::test_an_operators_removal_is_remembered_until_it_is_forgotten",),
    ),
    Mutant(
        "R-pilot-demotion",
        "a promoted observer is demoted when the configured voters are back",
        "etcd#10887",
        missing(planning._View, "_demotion"),
        (f"{PLANNING}::test_an_observer_takes_the_place_of_a_voter_until_it_is_back",),
    ),
    Mutant(
        "R-pilot-stand-in",
        "a configured voter is removed only while a promoted observer stands in for it",
        AOP,
        instead(planning._View, "_is_replaced_without", lambda *_: True),
        (f"{PLANNING}::test_a_failed_voter_without_a_stand_in_is_not_removed",),
    ),
    Mutant(
        "R-pilot-tolerance",
        "no step lowers the number of failures that are tolerated",
        "hashicorp/raft-autopilot#55",
        instead(planning._View, "_tolerates", lambda *_: 99),
        (f"{PLANNING}::test_a_demotion_that_would_cost_a_tolerated_failure_is_not_made",),
    ),
    Mutant(
        "R-pilot-too-late",
        "a policy that could act only after the quorum is lost is refused",
        AOP,
        missing(AutopilotSpec, "_check_policy"),
        ("tests/quorum/autopilot/test_spec.py::test_refused_specs",),
    ),
)
