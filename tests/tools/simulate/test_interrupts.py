# SPDX-License-Identifier: Apache-2.0
"""Signals that end ``raftlog simulate``: the table so far is printed, and no process is left behind."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs.schedule import Schedule, ScheduleOptions, Token, replay, run_seed
from raftlog.tools.simulate import simulate, watched_runs
from raftlog.tools.simulate.interrupts import SIGNALS, Interrupts
from raftlog.tools.simulate.outcomes import outcomes_of_workers
from raftlog.tools.simulate.workers import ScheduleWorkers, StoppedError, WorkerEndedError
from tests.hang_limit import HANG_S
from tests.other_processes import started
from tests.testing.simulator.runs.test_shrinking import crashing
from tests.tools.console import COMMAND
from tests.tools.simulate.test_simulate import simulated

SLOW = pytest.mark.slow
PROCESSES = pytest.mark.parametrize("processes", [pytest.param("1", marks=SLOW), "2"])


@contextmanager
def running(processes: str) -> Iterator["subprocess.Popen[Any]"]:
    """Start more schedules than a test waits for, in a process group, and wait for the end of the first one."""
    command = [*COMMAND, "simulate", "--faults", "none", "--schedules", "5000", "--format", "jsonl", "-j", processes]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, start_new_session=True, text=True, **pipes) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["token"] == "s1-0-none"
        yield process


def end_of(process: "subprocess.Popen[Any]") -> list[str]:
    """Return the lines that a command prints after a signal; workers that outlive it hold standard error open."""
    output, messages = process.communicate(timeout=HANG_S)
    assert "Traceback" not in messages
    return list(output.splitlines())


@pytest.mark.parametrize(
    ("processes", "number", "is_sent_to_all"),
    [
        ("2", signal.SIGINT, True),
        ("1", signal.SIGTERM, False),
        pytest.param("1", signal.SIGINT, True, marks=SLOW),
        pytest.param("2", signal.SIGTERM, True, marks=SLOW),
        pytest.param("2", signal.SIGTERM, False, marks=SLOW),
        pytest.param("2", signal.SIGHUP, True, marks=SLOW),
    ],
)
def test_the_table_so_far(processes: str, number: signal.Signals, is_sent_to_all: bool) -> None:
    """It counts what was printed. The exit code is 130, and another signal ends the command as it ends other verbs."""
    with running(processes) as process:
        (os.killpg if is_sent_to_all else os.kill)(process.pid, number)
        *lines, last = (json.loads(each) for each in end_of(process))
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert last["kind"] == "total"
    assert last["schedules"] == 1 + len(lines) < 5000


@PROCESSES
def test_a_second_interrupt(processes: str) -> None:
    """Nobody is left behind."""
    with running(processes) as process:
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        end_of(process)
    assert process.returncode == 130


@PROCESSES
def test_a_command_that_is_killed(processes: str) -> None:
    """Its workers end by themselves."""
    with running(processes) as process:
        process.kill()
        end_of(process)


@SLOW
def test_a_reader_that_has_seen_enough() -> None:
    """The command ends in silence, as other verbs do, and so do its workers."""
    with running("2") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def slow_or_quick(token: Token) -> int:
    """Run the first seed for ever, and have the sixth one interrupt the process that waits for it."""
    if token.seed == 5:
        os.kill(os.getppid(), signal.SIGINT)
    if token.seed in {0, 5}:
        signal.pause()
    return token.seed


def test_what_has_ended_is_counted() -> None:
    """Also if an earlier seed has not; those under way do not end."""
    with Interrupts() as interrupts:
        found = list(outcomes_of_workers(range(9), 2, slow_or_quick, ScheduleOptions(), interrupts))
    assert [result for _, result in found] == [1, 2, 3, 4]
    assert interrupts.exit_code() == 130


def test_a_signal_that_is_ignored() -> None:
    """It stays so: a script's command in the background ignores the Ctrl-C of what is in front."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert interrupts.number is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_as_before() -> None:
    """A second signal is an interrupt at once."""
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupts.number == signal.SIGTERM
    assert [signal.getsignal(each) for each in SIGNALS] == before


class OddError(Exception):
    """It cannot be pickled."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first)


def odd(task: int) -> int:
    """Return a number, raise, or end."""
    if task == 1:
        raise LookupError("no such task")
    if task == 2:
        raise OddError(1, 2)
    if task == 3:
        os._exit(7)
    if task == 4:
        os.close(1)
    return -task


def test_tasks_that_end_otherwise() -> None:
    """What they raise is raised, a process that has ended is replaced, and what they print is not in the results."""
    with ScheduleWorkers(odd) as workers:
        with pytest.raises(LookupError, match="no such task") as raised:
            workers.call(1)
        assert "in odd" in raised.value.__notes__[0]
        with pytest.raises(RuntimeError, match="OddError: 1"):
            workers.call(2)
        with pytest.raises(WorkerEndedError, match="its process has ended with exit code 7"):
            workers.call(3)
        assert [workers.call(each) for each in (4, 5)] == [-4, -5]
        results = dict(workers.results([6, 3, 7, 8], 2))
    assert (results[6], results[7], results[8]) == (-6, -7, -8)
    assert isinstance(results[3], WorkerEndedError)


def test_a_call_that_is_stopped() -> None:
    """Its worker is killed; another call runs in a new one, once the signal was heeded."""
    with Interrupts() as interrupts, ScheduleWorkers(slow_or_quick, interrupts) as workers:
        with pytest.raises(StoppedError):
            workers.call(Token(5))
        interrupts.heed()
        assert workers.call(Token(6)) == 6


def test_words_of_a_signal() -> None:
    """It has a name, or a number."""
    assert str(WorkerEndedError(-9)) == "its process was ended by SIGKILL"
    assert str(WorkerEndedError(-200)) == "its process was ended by signal 200"


def interrupting_run(token: Token) -> tuple[ScheduleOutcome, float]:
    """Run the first seed, and have the second one interrupt the process that waits for it."""
    if token.seed == 1:
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    return run_seed(token), 1.0


@pytest.mark.parametrize("is_violated", [True, False])
def test_the_exit_code_of_an_interrupt(monkeypatch: pytest.MonkeyPatch, is_violated: bool) -> None:
    """A violation that was found is what matters."""
    if is_violated:
        crashing(monkeypatch)
    monkeypatch.setattr(simulate, "_timed", interrupting_run)
    done = simulated("--schedules", "9", "-j", "1", "--faults", "crashes")
    assert f"1 schedules, of which {int(not is_violated)} count; {int(is_violated)} violations" in done.text
    assert done.exit_code == (2 if is_violated else 130)


TRIED: list[Schedule] = []
"""The schedules that were tried in this process, while one was shrunk."""


def interrupting_replay(candidate: Schedule, end_ms: int | None) -> tuple[Schedule, ScheduleOutcome]:
    """Run a schedule; the sixth one interrupts the process that waits for it."""
    TRIED.append(candidate)
    if len(TRIED) == 6:
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    return replay(candidate, end_ms)


def test_shrinking_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The best so far is shown and saved, and it is said that it is not minimal; the exit code is 130."""
    crashing(monkeypatch)
    monkeypatch.setattr(watched_runs, "replay", interrupting_replay)
    done = simulated("--replay", "s1-0", "--shrink", "--save", tmp_path / "run.json")
    assert done.exit_code == 130
    assert "in 5 runs: it is not minimal, more may be possible" in done.messages
    assert done.text.startswith("violated: test: ")
    again = simulated("--replay", tmp_path / "run.json")
    assert again.exit_code == 2
    assert again.text == done.text


def ending_replay(candidate: Schedule, end_ms: int | None) -> tuple[Schedule, ScheduleOutcome]:
    """Run a schedule that has choices of one kind, and end the process if it has none."""
    if not any(name.kind == "crash-interval" for name in candidate.deviations):
        os._exit(1)
    return replay(candidate, end_ms)


@SLOW
def test_a_process_ends_while_a_schedule_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no violation of the same invariant: the schedule that has ended it is not taken."""
    crashing(monkeypatch)
    monkeypatch.setattr(watched_runs, "replay", ending_replay)
    done = simulated("--replay", "s1-0", "--shrink", "--shrink-runs", "20")
    assert done.exit_code == 2
    assert done.text.startswith("violated: test: ")
    assert "in 20 runs" in done.messages
