# SPDX-License-Identifier: Apache-2.0
"""Bugs to plant in the autopilot, and in what carries its steps out, so that the simulator is seen to find them."""

from typing import Any, Final

import attrs

from raftlog.quorum.autopilot import memory, planning
from raftlog.quorum.autopilot.spec import AutopilotSpec
from raftlog.quorum.describing.raft_status import FetcherStatus, RaftStatus
from raftlog.quorum.leading import voter_change
from raftlog.quorum.roles.roles import Leader
from tests.mutants.planting import Mutant, Wrong, instead, swapped


def _by_what_a_leader_saw(right: Wrong) -> Wrong:
    known: list[RaftStatus] = []

    def plan(spec: AutopilotSpec, status: RaftStatus, before: Any, now_ms: int) -> Any:
        if isinstance(status.role, Leader):
            known[:] = [status]
        return right(spec, known[0] if known else status, before, now_ms)

    return plan


def _whatever_is_committed(right: Wrong) -> Wrong:
    def plan(spec: AutopilotSpec, status: RaftStatus, before: Any, now_ms: int) -> Any:
        return right(spec, attrs.evolve(status, uncommitted_voters=None), before, now_ms)

    return plan


def _at_once(right: Wrong) -> Wrong:
    def has_been(view: Any, key: Any, is_in_sync: bool, for_ms: int) -> Any:
        return right(view, key, is_in_sync, 0 if is_in_sync else for_ms)

    return has_been


def _without_removals(right: Wrong) -> Wrong:
    return lambda *arguments: attrs.evolve(right(*arguments), removed=frozenset())


def _has_fetched(spec: AutopilotSpec, status: RaftStatus, fetcher: FetcherStatus, now_ms: int) -> bool:
    return fetcher.fetched_wall_ms is not None and now_ms - fetcher.fetched_wall_ms <= spec.last_contact_ms


def _or_an_observer(right: Wrong) -> Wrong:
    return lambda spec, status, fetcher, now_ms: not fetcher.is_voter or right(spec, status, fetcher, now_ms)


def _of_any_voters(right: Wrong) -> Wrong:
    def voters_refusal(replica: Any, leadership: Any, received: Any) -> Any:
        return right(replica, leadership, attrs.evolve(received, expected_voters_offset=None))

    return voters_refusal


def _bug(name: str, rule: str, plant: Any) -> Mutant:
    return Mutant(name, rule, "", plant, ())


AUTOPILOT: Final = (
    _bug("plans-of-others", "a leader plans, by its own status", swapped(planning, "plan", _by_what_a_leader_saw)),
    _bug(
        "plans-meanwhile",
        "a step is planned when the last one is committed",
        swapped(planning, "plan", _whatever_is_committed),
    ),
    _bug(
        "steps-at-any-cost", "a step costs no tolerated failure", instead(planning._View, "_tolerates", lambda *_: 99)
    ),
    _bug("removals-forgotten", "an operator's removal is remembered", swapped(memory, "look", _without_removals)),
    _bug("steady-at-once", "a replica is steady after its window", swapped(planning._View, "_has_been", _at_once)),
    _bug("lag-ignored", "a replica that lags is not in sync", instead(memory, "is_in_sync", _has_fetched)),
    _bug(
        "observers-in-sync",
        "an observer that does not fetch is not in sync",
        swapped(memory, "is_in_sync", _or_an_observer),
    ),
    _bug(
        "any-voters-expected",
        "a change is of the voters that it was planned for",
        swapped(voter_change, "voters_refusal", _of_any_voters),
    ),
    _bug("no-demotion", "a promoted observer is demoted", instead(planning._View, "_demotion", lambda _: None)),
)
"""The bugs."""
