# SPDX-License-Identifier: Apache-2.0
"""Runs of single schedules, each in a watched process: a state machine may hang there, end it, and print."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs.schedule import Schedule, Token, record, replay
from raftlog.testing.simulator.runs.shrinking import RunsEndError, Shrunk, shrink
from raftlog.testing.simulator.runs.telling import ToldRun, tell
from raftlog.testing.simulator.violation import ViolationError
from raftlog.tools.simulate.interrupts import Interrupts
from raftlog.tools.simulate.user_machine import machine_fault
from raftlog.tools.simulate.workers import ScheduleWorkers, StoppedError, WorkerEndedError
from raftlog.tools.terminal.exit_codes import EXIT_DAMAGE, EXIT_ERROR, EXIT_INTERRUPTED

T = TypeVar("T")


class NoOutcomeError(Exception):
    """The process that ran a schedule has ended.

    Attributes:
        exit_code: of the command: whether the state machine has ended it, or nobody knows.
    """

    def __init__(self, description: str, exit_code: int) -> None:
        super().__init__(description)
        self.exit_code = exit_code


class WatchedRuns:
    """Runs schedules, one after the other.

    Args:
        kind: of the state machines.
        interrupts: a signal that it notes ends the run under way.
        workers: run them.

    Raises:
        NoOutcomeError: from ``record`` and ``tell``: a process has ended.
        StoppedError: likewise: a signal has come.
    """

    def __init__(self, kind: MachineKind, interrupts: Interrupts, workers: ScheduleWorkers[Any, Any]) -> None:
        self.kind = kind
        self._interrupts = interrupts
        self._workers = workers

    def record(self, token: Token) -> tuple[Schedule, ScheduleOutcome]:
        """Run the schedule that a token names, and return its choices, too."""
        return self._call(partial(record, token), str(token))

    def tell(self, schedule: Schedule, named: str) -> ToldRun:
        """Run a schedule and take its story down.

        Args:
            schedule: what to run.
            named: the schedule, in what is said of it.
        """
        return self._call(partial(tell, schedule), named)

    def _call(self, run: Callable[[], T], named: str) -> T:
        try:
            result: T = self._workers.call(run)
        except WorkerEndedError as ended:
            fault = machine_fault(self.kind, ended)
            exit_code = EXIT_ERROR if fault is None else EXIT_DAMAGE
            raise NoOutcomeError(f"{named}: {fault or ended}", exit_code) from None
        return result

    def shrink(self, schedule: Schedule, violation: ViolationError, max_runs: int) -> Shrunk:
        """Shrink a schedule, until a signal comes; another run may follow it.

        Args:
            schedule: that leads to a violation.
            violation: to be kept.
            max_runs: how many schedules may be tried.
        """
        shrunk = shrink(schedule, violation, max_runs, self._tried)
        if self._interrupts.number is not None:
            self._interrupts.heed()
        return shrunk

    def _tried(self, candidate: Schedule, end_ms: int | None) -> tuple[Schedule, ScheduleOutcome]:
        try:
            result: tuple[Schedule, ScheduleOutcome] = self._workers.call(partial(replay, candidate, end_ms))
        except StoppedError:
            raise RunsEndError from None
        except WorkerEndedError as ended:  # That is another violation than the one that is shrunk.
            other = ViolationError("no-outcome", str(ended))
            return candidate, ScheduleOutcome.untold(other, is_on_files=candidate.plan.is_on_files)
        return result


def _called(run: Callable[[], T]) -> T:
    return run()


def watched(kind: MachineKind, act: Callable[[WatchedRuns], int]) -> int:
    """Do something with runs of single schedules, and return the exit code: that of a signal, if there was one.

    Args:
        kind: of the state machines.
        act: does it, and returns the exit code.

    Raises:
        NoOutcomeError: a process has ended.
    """
    with Interrupts() as interrupts:
        try:
            with ScheduleWorkers[Any, Any](_called, interrupts) as workers:
                exit_code = act(WatchedRuns(kind, interrupts, workers))
        except StoppedError:
            exit_code = EXIT_INTERRUPTED
    return exit_code if interrupts.number is None else interrupts.exit_code()
