# SPDX-License-Identifier: Apache-2.0
"""Surveying many files, in this process or in several, with results in the order of the tasks.

A process that dies, because the system is out of memory or a library crashes, costs the file that it was reading, which
gives a finding, and no other; so does a bug. How much is held in memory does not depend on how many files there are.
"""

import itertools
import multiprocessing
import multiprocessing.connection
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, Self

from raftlog.errors import MissingExtraError
from raftlog.storage.segment_reader import start_method
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.own_fault import own_fault
from raftlog.tools.auditing.survey import survey as survey_file
from raftlog.tools.findings import Finding

Survey = Callable[[SurveyTask], FileEvidence]
_Outcome = FileEvidence | MissingExtraError

_BATCH_COUNT: Final = 256
_BATCH_SIZE: Final = 8 * 1024 * 1024
"""In bytes: a process is given small files many at a time."""
_WINDOW: Final = 2048
"""How many tasks may be under way, or done before one that was given earlier."""


def survey_all(
    tasks: Iterable[SurveyTask], processes: int, survey: Survey = survey_file
) -> Generator[FileEvidence, None, None]:
    """Survey files and yield their evidence in the order of the tasks.

    Args:
        tasks: what to survey; taken as results are asked for.
        processes: how many to use. 1 runs in this process, and so does what is little.
        survey: what to do with a task. It and what it returns pickle.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    batches = _batches(tasks)
    first = list(itertools.islice(batches, 2))
    batches = itertools.chain(first, batches)
    if processes <= 1 or len(first) <= 1:
        for task in itertools.chain.from_iterable(batches):
            yield _evidence(_attempt(survey, task))
        return
    with _Workers(processes, survey) as workers:
        yield from workers.run(batches)


def _attempt(survey: Survey, task: SurveyTask) -> _Outcome:
    try:
        return survey(task)
    except MissingExtraError as error:
        return error
    except Exception as error:
        return FileEvidence(task, (own_fault(task.path, error),))


def _evidence(outcome: _Outcome) -> FileEvidence:
    if isinstance(outcome, MissingExtraError):
        raise outcome
    return outcome


def _batches(tasks: Iterable[SurveyTask]) -> Iterator[list[SurveyTask]]:
    batch: list[SurveyTask] = []
    size = 0
    for task in tasks:
        if batch and (len(batch) == _BATCH_COUNT or size + task.size_bytes > _BATCH_SIZE):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.size_bytes
    if batch:
        yield batch


def _work(connection: Connection, inherited: Sequence[Connection], survey: Survey) -> None:
    """Survey what comes in, until the other end is closed or its process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It is sent to all processes of a terminal; the first one ends us.
    for other in inherited:
        other.close()  # Who holds the other end of a pipe as well never learns that it was closed.
    try:
        while True:
            for task in connection.recv():
                connection.send(_attempt(survey, task))
    except (EOFError, OSError):
        return


class _Worker:
    """A process and the tasks that it was given, by their numbers."""

    def __init__(self, survey: Survey, others: Iterable["_Worker"]) -> None:
        method = start_method()
        context = multiprocessing.get_context(method)
        self.connection, theirs = context.Pipe()
        inherited = [self.connection, *(other.connection for other in others)] if method == "fork" else []
        process = context.Process(target=_work, args=(theirs, inherited, survey), daemon=True)  # type: ignore[attr-defined]
        self._process: BaseProcess = process
        self._process.start()
        theirs.close()
        self.tasks: deque[tuple[int, SurveyTask]] = deque()

    def give(self, tasks: Sequence[tuple[int, SurveyTask]]) -> None:
        """Give it something to do; if it is dead, taking the result will tell."""
        self.tasks.extend(tasks)
        try:
            self.connection.send([task for _, task in tasks])
        except OSError:
            return

    def take(self) -> tuple[int, _Outcome] | None:
        """Return the number and outcome of its oldest task; None if it is dead."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        return self.tasks.popleft()[0], outcome

    def end(self) -> int | None:
        """End the process, and return the exit code that it had, or the signal as a negative number."""
        self.connection.close()
        self._process.terminate()
        self._process.join()
        exit_code = self._process.exitcode
        self._process.close()
        return exit_code

    def exit_code(self) -> int | None:
        """Wait for the end of a process that is dying, and return how it ended."""
        self._process.join(timeout=10)
        return self._process.exitcode


class _Workers:
    """Some processes, and the order of results."""

    def __init__(self, count: int, survey: Survey) -> None:
        self._survey = survey
        self._workers: list[_Worker] = []
        self._again: deque[list[tuple[int, SurveyTask]]] = deque()
        self._done: dict[int, _Outcome] = {}
        self._given = 0
        self._yielded = 0
        self._count = count

    def run(self, batches: Iterator[list[SurveyTask]]) -> Iterator[FileEvidence]:
        """Survey all tasks, and yield what they give in order."""
        for _ in range(self._count):
            self._workers.append(_Worker(self._survey, self._workers))
        while self._give(batches):
            busy = {worker.connection: worker for worker in self._workers if worker.tasks}
            for connection in multiprocessing.connection.wait(list(busy)):
                self._take(busy[connection])  # type: ignore[index]
            while (outcome := self._done.pop(self._yielded, None)) is not None:
                self._yielded += 1
                yield _evidence(outcome)

    def _give(self, batches: Iterator[list[SurveyTask]]) -> bool:
        """Give each idle process something to do, and return whether any is busy."""
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
        self._done[number] = _of_death(task, worker.exit_code())
        if worker.tasks:
            self._again.append(list(worker.tasks))
        worker.end()
        self._workers.remove(worker)
        self._workers.append(_Worker(self._survey, self._workers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()


def _of_death(task: SurveyTask, exit_code: int | None) -> FileEvidence:
    """Return what is known of a file whose reader died."""
    if exit_code is not None and exit_code < 0:
        how = f"was killed by {signal.Signals(-exit_code).name}" if -exit_code in set(signal.Signals) else "was killed"
    else:
        how = f"ended with exit code {exit_code}"
    return FileEvidence(task, (Finding(task.path, "file-unreadable", f"the process that surveyed it {how}"),))
