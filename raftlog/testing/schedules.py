# SPDX-License-Identifier: Apache-2.0
"""Runs a state machine of yours on simulated quorums with faults, one schedule per seed.

::

    def test_the_bank_survives() -> None:
        run_schedules(Bank, range(50))
"""

from collections.abc import Callable, Iterable

from raftlog.testing.simulator.applications.checked_machine import MachineKind, check_kind
from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.campaign import Totals
from raftlog.testing.simulator.runs.schedule import SWITCHES, ScheduleOptions, Token, run_seed
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import StateMachine


def run_schedules(
    machine: Callable[[], StateMachine],
    seeds: Iterable[int] = range(50),
    *,
    voters: int | None = None,
    faults: Iterable[str] = SWITCHES,
    storage: Storage = Storage.DRAWN,
) -> Totals:
    """Run a schedule for each seed, and return what has happened in all of them.

    Equal arguments give equal results. A state machine that does not return hangs the caller; ``raftlog simulate
    --machine`` has a limit for that.

    Args:
        machine: makes an instance, for a replica or a comparison; a class that needs no arguments.
        seeds: each 0 or more.
        voters: how many voters there are at the start, 1 to 7; None lets each schedule draw it.
        faults: the kinds of faults that a schedule may draw, of ``SWITCHES``.
        storage: what is under the replicas.

    Raises:
        ViolationError: an invariant did not hold; the description names the schedule, and how to look at it.
        OptionError: there are no such voters or faults.
    """
    check_kind(kind := MachineKind(machine))
    options = ScheduleOptions(voters, frozenset(faults), storage, kind)
    totals = Totals()
    for seed in seeds:
        token = Token(seed, options)
        outcome = run_seed(token)
        totals.add(token, outcome)
        if outcome.violation is not None:
            raise ViolationError(outcome.violation.invariant, _described(outcome.violation, token))
    return totals


def _described(violation: ViolationError, token: Token) -> str:
    place = token.options.kind.place
    command = f"\n  raftlog simulate --machine {place} --replay {token} --shrink" if place else ""
    return f"{violation.description}\n  in schedule {token}{command}"
