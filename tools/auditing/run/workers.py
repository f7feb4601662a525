# SPDX-License-Identifier: Apache-2.0
"""Worker processes that survey files, with results in the order of the tasks."""

import multiprocessing
import multiprocessing.connection
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, Self

from raftlog.errors import MissingExtraError
from raftlog.storage.reading.start_method import start_method
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.catalogue.findings import Finding

Outcome = FileEvidence | MissingExtraError
"""The outcome of a task. A missing extra is returned, and raised in the process that gave the task."""
Attempt = Callable[[SurveyTask], Outcome]

_WINDOW: Final = 2048
"""Number of tasks that may be in progress, or done before an earlier one."""


def _work(connection: Connection, inherited: Sequence[Connection], attempt: Attempt) -> None:
    """Survey the files of incoming tasks, until the pipe is closed or the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to all its processes; the parent ends this one.
    for other in inherited:
        other.close()  # A process that also holds the other end of its pipe would never see it closed.
    try:
        while True:
            for task in connection.recv():
                connection.send(attempt(task))
    except (EOFError, OSError):
        return


class _Worker:
    """A worker process and the tasks that it was given, by their numbers."""

    def __init__(self, attempt: Attempt, others: Iterable["_Worker"]) -> None:
        method = start_method()
        context = multiprocessing.get_context(method)
        self.connection, theirs = context.Pipe()
        inherited = [self.connection, *(other.connection for other in others)] if method == "fork" else []
        process = context.Process(target=_work, args=(theirs, inherited, attempt), daemon=True)  # type: ignore[attr-defined]
        self._process: BaseProcess = process
        self._process.start()
        theirs.close()
        self.tasks: deque[tuple[int, SurveyTask]] = deque()

    def give(self, tasks: Sequence[tuple[int, SurveyTask]]) -> None:
        """Give it a task. If it is dead, taking the result reports that."""
        self.tasks.extend(tasks)
        try:
            self.connection.send([task for _, task in tasks])
        except OSError:
            return

    def take(self) -> tuple[int, Outcome] | None:
        """Return the number and outcome of its oldest task; None if it is dead."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        return self.tasks.popleft()[0], outcome

    def end(self) -> int | None:
        """End the process, and return its exit code, or the signal that killed it as a negative number."""
        self.connection.close()
        self._process.terminate()
        self._process.join()
        exit_code = self._process.exitcode
        self._process.close()
        return exit_code

    def exit_code(self) -> int | None:
        """Wait for a dying process, and return how it ended."""
        self._process.join(timeout=10)
        return self._process.exitcode


class Workers:
    """A pool of worker processes; a context manager, which ends them at its exit.

    Args:
        count: number of processes.
        attempt: the function that does a task. It and its result must be picklable.
    """

    def __init__(self, count: int, attempt: Attempt) -> None:
        self._attempt = attempt
        self._workers: list[_Worker] = []
        self._again: deque[list[tuple[int, SurveyTask]]] = deque()
        self._done: dict[int, Outcome] = {}
        self._given = 0
        self._yielded = 0
        self._count = count

    def run(self, batches: Iterator[list[SurveyTask]]) -> Iterator[Outcome]:
        """Do all tasks, and yield the results in order."""
        for _ in range(self._count):
            self._workers.append(_Worker(self._attempt, self._workers))
        while self._give(batches):
            busy = {worker.connection: worker for worker in self._workers if worker.tasks}
            for connection in multiprocessing.connection.wait(list(busy)):
                self._take(busy[connection])  # type: ignore[index]
            # Tasks are given before results are yielded, so that the workers continue while the caller judges.
            self._give(batches)
            while (outcome := self._done.pop(self._yielded, None)) is not None:
                self._yielded += 1
                yield outcome

    def _give(self, batches: Iterator[list[SurveyTask]]) -> bool:
        """Give each idle process a task, and return whether any is busy."""
        for worker in self._workers:
            if not worker.tasks and (tasks := self._next_tasks(batches)):
                worker.give(tasks)
        return any(worker.tasks for worker in self._workers)

    def _next_tasks(self, batches: Iterator[list[SurveyTask]]) -> list[tuple[int, SurveyTask]]:
        if self._again:
            return self._again.popleft()
        if self._given - self._yielded >= _WINDOW:
            return []
        tasks = list(enumerate(next(batches, []), self._given))
        self._given += len(tasks)
        return tasks

    def _take(self, worker: _Worker) -> None:
        taken = worker.take()
        if taken is not None:
            number, outcome = taken
            self._done[number] = outcome
            return
        number, task = worker.tasks.popleft()
        self._done[number] = of_death(task, worker.exit_code())
        if worker.tasks:
            self._again.append(list(worker.tasks))
        worker.end()
        self._workers.remove(worker)
        self._workers.append(_Worker(self._attempt, self._workers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()


def of_death(task: SurveyTask, exit_code: int | None) -> FileEvidence:
    """Return the evidence of a file whose reader died."""
    if exit_code is not None and exit_code < 0:
        how = f"was killed by {signal.Signals(-exit_code).name}" if -exit_code in set(signal.Signals) else "was killed"
    else:
        how = f"ended with exit code {exit_code}"
    return FileEvidence(task, (Finding(task.path, "file-unreadable", f"the process that surveyed it {how}"),))
