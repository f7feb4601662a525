# SPDX-License-Identifier: Apache-2.0
"""Processes that run one task at a time each, and end with the process that has started them, whatever ends it.

A terminal sends SIGINT to all processes of a command, and ``timeout`` sends SIGTERM to them. Workers ignore both: they
are killed by the process that has started them. If that one is killed itself, a pipe is closed that nobody else holds
open.
"""

import contextlib
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Generic, NoReturn, Self, TypeVar

import attrs

from raftlog.errors import fresh_copy
from raftlog.tools.simulate.interrupts import SIGNALS, Interrupts

Task = TypeVar("Task")
Result = TypeVar("Result")

_FORK: Final = multiprocessing.get_context("fork")
GC_THRESHOLD: Final = 200_000
"""A schedule makes many small objects, nearly none of them in cycles: the collector would look in vain."""
_END_S: Final = 1.0
"""So long a process may take to end whose connection is closed."""
_STANDARD_OUTPUT, _STANDARD_ERROR = 1, 2


class WorkerEndedError(Exception):
    """A worker has ended before its task has.

    Attributes:
        exit_code: of the process; if it is negative, minus the number of a signal.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        if self.exit_code >= 0:
            return f"its process has ended with exit code {self.exit_code}"
        try:
            return f"its process was ended by {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"its process was ended by signal {-self.exit_code}"


class StoppedError(Exception):
    """A signal has come before a task has ended."""


@attrs.frozen
class _Raised:
    """What a task has raised instead of returning something."""

    error: Exception


@attrs.define(eq=False)
class _Worker(Generic[Task]):
    process: BaseProcess
    connection: Connection
    tasks: list[Task] = attrs.field(factory=list)
    """The one that it runs, or none."""


class ScheduleWorkers(Generic[Task, Result]):
    """Processes that run tasks, in a ``with`` block; they are killed at its end.

    What a task prints goes to standard error.

    Args:
        run: runs a task. Tasks and results are pickled.
        interrupts: a signal that it notes stops everything.
    """

    def __init__(self, run: Callable[[Task], Result], interrupts: Interrupts | None = None) -> None:
        self._run = run
        self._interrupts = interrupts
        self._workers: list[_Worker[Task]] = []

    def __enter__(self) -> Self:
        self._lifeline, self._held_open = _FORK.Pipe(duplex=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._lifeline.close()
        self._held_open.close()

    def _kill(self) -> None:
        for each in self._workers:
            each.process.kill()
        for each in self._workers:
            each.process.join()
            each.connection.close()
        self._workers.clear()

    def call(self, task: Task) -> Result:
        """Run one task in a worker, and return its result.

        Raises:
            WorkerEndedError: its process has ended.
            StoppedError: a signal has come.
            Exception: what the task raises.
        """
        for _, result in self.results([task], 1):
            if isinstance(result, WorkerEndedError):
                raise fresh_copy(result)
            return result
        raise StoppedError

    def results(self, tasks: Iterable[Task], processes: int) -> Iterator[tuple[Task, Result | WorkerEndedError]]:
        """Yield tasks with their results, in the order in which they end; after a signal, those that have ended.

        Args:
            tasks: to run.
            processes: in how many processes. One that ends is replaced.

        Raises:
            Exception: what a task raises.
        """
        waiting = iter(tasks)
        stops = [] if self._interrupts is None else [self._interrupts.fileno()]
        for task in itertools.islice(waiting, processes):
            self._give(task)
        while busy := {each.connection: each for each in self._workers if each.tasks}:
            ready = wait([*busy, *stops])
            is_stopped = any(each in ready for each in stops)
            for worker in [worker for connection, worker in busy.items() if connection in ready]:
                task, result = worker.tasks.pop(), self._received(worker)
                for following in itertools.islice(waiting, 0 if is_stopped else 1):
                    self._give(following)
                yield task, result
            if is_stopped:
                self._kill()

    def _give(self, task: Task) -> None:
        worker = next((each for each in self._workers if not each.tasks), None) or self._start()
        worker.tasks.append(task)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # It has ended: then there is no result.
            worker.connection.send(task)

    def _received(self, worker: _Worker[Task]) -> Result | WorkerEndedError:
        try:
            result: Result | _Raised = worker.connection.recv()
        except (EOFError, OSError):
            self._workers.remove(worker)
            worker.process.join(_END_S)
            exit_code = worker.process.exitcode
            worker.process.kill()
            worker.process.join()
            worker.connection.close()
            return WorkerEndedError(worker.process.exitcode or 0 if exit_code is None else exit_code)
        if isinstance(result, _Raised):
            raise fresh_copy(result.error)
        return result

    def _start(self) -> _Worker[Task]:
        ours, theirs = _FORK.Pipe()
        process = _FORK.Process(target=self._serve, args=(theirs,), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Of a fork beside threads of others.
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # Or the end of the process would not close it.
        worker = _Worker[Task](process, ours)
        self._workers.append(worker)
        return worker

    # In the worker

    def _serve(self, connection: Connection) -> None:
        self._held_open.close()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        _print_to_standard_error()
        gc.set_threshold(GC_THRESHOLD)
        with contextlib.suppress(EOFError, OSError):  # The other process has ended.
            while True:
                connection.send(self._result(connection.recv()))

    def _end_with_parent(self) -> NoReturn:
        with contextlib.suppress(EOFError, OSError):
            self._lifeline.recv_bytes()
        os._exit(0)

    def _result(self, task: Task) -> Result | _Raised:
        try:
            return self._run(task)
        except Exception as error:
            error.add_note(f"in a worker: {traceback.format_exc()}")
            return _Raised(_picklable(error))


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what this process has made
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _print_to_standard_error() -> None:
    sys.stdout = sys.stderr
    try:
        os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    except OSError:  # It is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
