# SPDX-License-Identifier: Apache-2.0
"""Work for a disk that is done one piece at a time, in order: begun and finished on the owner's thread, run on any.

::

    waiting ──prepare──> under way ──(executor runs it)──> ran ──finish──> reported to the core
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs

from raftlog.disk_work import DiskWork
from raftlog.errors import LogDirectoryError, RaftLogError
from raftlog.quorum.driving.ports import Executor


class Job(NamedTuple):
    """An effect that waits for the disk.

    Attributes:
        number: of the effect.
        prepare: returns the work.
        report: tells the core that it is done.
        failed: tells the core why it could not be done.
    """

    number: int
    prepare: Callable[[], DiskWork[Any]]
    report: Callable[[], None]
    failed: Callable[[RaftLogError], None]


@attrs.define(eq=False)
class DiskQueue:
    """Jobs in order. Only ``_run`` is called on another thread; all it does there is to run, to note that, and to wake.

    Attributes:
        executor: runs the work.
        wake: called after each run, on the thread of the executor.
        count: how many jobs wait or are under way. It is looked at after every effect, so it is a plain number.
    """

    executor: Executor
    wake: Callable[[], object]
    count: int = attrs.field(default=0, init=False)
    _waiting: deque[Job] = attrs.field(factory=deque, init=False)
    _under_way: tuple[Job, DiskWork[Any]] | None = attrs.field(default=None, init=False)
    _ran: deque[DiskWork[Any]] = attrs.field(factory=deque, init=False)
    """Work that has run, until it is finished. ``append`` and ``popleft`` are atomic between threads."""

    def add(self, job: Job) -> None:
        """Do a job after those that wait."""
        self._waiting.append(job)
        self.count += 1

    @property
    def oldest(self) -> int | None:
        """The number of the oldest effect that is not done; None if all are."""
        if self._under_way is not None:
            return self._under_way[0].number
        return self._waiting[0].number if self._waiting else None

    def is_next_before(self, number: int) -> bool:
        """Whether the next job that waits is of an effect before another one."""
        return bool(self._waiting) and self._waiting[0].number < number

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is under way."""
        return not self.count

    def begin_next(self) -> bool:
        """Begin the next job, unless one is under way; return whether one was begun."""
        if self._under_way is not None or not self._waiting:
            return False
        job = self._waiting.popleft()
        try:
            work = job.prepare()
        except RaftLogError as error:
            self.count -= 1
            job.failed(error)
            return True
        self._under_way = job, work
        if work.is_needed:
            self._submit(job, work)
        else:
            self._ran.append(work)
        return True

    def _submit(self, job: Job, work: DiskWork[Any]) -> None:
        try:
            self.executor.submit(lambda: self._run(work))
        except BaseException as error:
            if work.cancel(error):  # Otherwise the error is one of the run itself, and is reported with it.
                self._forget_work()
                job.failed(LogDirectoryError(f"the executor has not taken work: {error!r}"))
            raise

    def _run(self, work: DiskWork[Any]) -> None:
        try:
            work.run()
        finally:
            self._ran.append(work)
            self.wake()

    def finish_ran(self) -> bool:
        """Finish the work that has run, and report it; return whether there was any."""
        if not self._ran or self._under_way is None:
            return False
        work, (job, _) = self._ran.popleft(), self._under_way
        self._forget_work()
        try:
            work.finish()
        except RaftLogError as error:
            job.failed(error)
        except BaseException as error:  # An interrupt, or a bug: what is on the disk is not known.
            job.failed(LogDirectoryError(repr(error)))
            raise
        else:
            job.report()
        return True

    def clear(self) -> None:
        """Forget the jobs that have not begun."""
        self.count -= len(self._waiting)
        self._waiting.clear()

    def close(self, reason: RaftLogError) -> None:
        """Forget the jobs, and end the one under way: it is cancelled if it has not begun to run, and else finished.

        Raises:
            WorkUnderWayError: it is being run now. Call this again once it has run.
        """
        self.clear()
        if self._under_way is not None:
            self._under_way[1].end(reason)
            self._forget_work()
            self._ran.clear()

    def _forget_work(self) -> None:
        self._under_way = None
        self.count -= 1
