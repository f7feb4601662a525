# SPDX-License-Identifier: Apache-2.0
"""Work for a disk in three parts, so that the owner's thread, such as an event loop, never waits for the disk.

::

    work = log.prepare_flush()         # owner's thread: cheap, syncs nothing
    executor.submit(work.run)          # any thread, once: writes and syncs
    result = work.finish()             # owner's thread, after the run: the outcome takes effect

A blocking call does the same three in a row (``complete``). Prepared work is a list of steps, each with a disk part and
a memory part. ``run`` executes the disk parts in order and stops at the first that fails. ``finish`` executes the
memory parts of the steps whose disk part is done, and returns the result or raises the failure. So the state in memory
is never ahead of the disk, and it changes only on the owner's thread.
"""

import contextlib
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar, cast

import attrs

from raftlog.errors import RaftLogError, WorkUnderWayError, fresh_copy, without_frames

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@attrs.frozen
class DiskResult(Generic[T_co]):
    """The result of some work, and the state of its owner that it applies to.

    To detect an outdated result, compare ``epoch`` and ``generation`` with the owner's current ones. If they differ,
    there was a new leader, or the log was truncated, since.

    Attributes:
        value: what the blocking call returns, or the flushed offset.
        epoch: the latest epoch of the log, or of the stored election state, when the work was finished.
        generation: of the log, which grows with each truncation; or the number of the stored election state.
    """

    value: T_co
    epoch: int = 0
    generation: int = 0


def nothing(_: object = None) -> None:
    """Do nothing: the default callback."""


@attrs.frozen
class DiskStep:
    """One step of work.

    Attributes:
        disk: called by ``run``, on any thread.
        memory: called by ``finish`` with what ``disk`` has returned, on the owner's thread.
        paths: of the files and directories that ``disk`` may write or sync.
        on_failure: called by ``finish`` with the exception that either of the two has raised.
    """

    disk: Callable[[], Any]
    memory: Callable[[Any], object] = nothing
    paths: tuple[str, ...] = ()
    on_failure: Callable[[BaseException], object] = nothing

    def do(self) -> None:
        """Do both parts in a row."""
        self.memory(self.disk())


class DiskWork(Generic[T_co]):
    """Steps to do, and the result that follows. The owner prepares it and finishes it.

    Args:
        steps: in the order in which they must be done.
        result: called by ``finish`` after all steps.
        on_end: called once, by ``finish`` or ``cancel``, before anything else.
        on_failure: called with the exception that ``result`` has raised.
    """

    def __init__(
        self,
        steps: Sequence[DiskStep],
        result: Callable[[], T_co],
        *,
        on_end: Callable[[], object] = nothing,
        on_failure: Callable[[BaseException], object] = nothing,
    ) -> None:
        self._steps = tuple(steps)
        self._result = result
        self._on_end = on_end
        self._on_failure = on_failure
        self._tickets = [None] if self._steps else []
        """The call that pops the ticket may run or cancel the work; ``list.pop`` is atomic between threads."""
        self._done: list[Any] = []
        self._failure: BaseException | None = None
        self._has_run = not self._steps
        self._is_finished = False
        self._value: T_co | None = None
        self._parts: list[DiskWork[Any]] = []

    @classmethod
    def done(cls, value: T_co) -> Self:  # type: ignore[misc]  # it makes one, as a constructor does
        """Return work that has nothing left to run, and only needs to be finished."""
        return cls((), lambda: value)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything for ``run`` to do; otherwise ``finish`` may be called at once."""
        return bool(self._steps)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and directories that may be written or synced, in order."""
        return tuple(dict.fromkeys(path for step in self._steps for path in step.paths))

    def run(self) -> None:
        """Do the disk parts, once, on any thread. A failure is kept, and raised by ``finish``.

        If there is nothing to do, it may be called any number of times.

        Raises:
            WorkUnderWayError: it was already begun, or cancelled. Nothing has changed.
            BaseException: an exception that is not an ``Exception``, such as ``KeyboardInterrupt``; ``finish`` raises
                it, too.
        """
        if self._steps:
            self._run()
            if not isinstance(self._failure, Exception | None):
                raise fresh_copy(self._failure)

    def _run(self) -> None:
        try:
            self._tickets.pop()
        except IndexError:
            raise WorkUnderWayError("work that was begun before, or cancelled") from None
        try:
            for step in self._steps:
                self._done.append(step.disk())
        except BaseException as error:
            if not isinstance(error, RaftLogError):  # A bug of ours: keep its traceback as text.
                error.add_note("".join(traceback.format_tb(error.__traceback__)))
            self._failure = without_frames(error)
        self._has_run = True

    def finish(self) -> T_co:
        """Make the outcome take effect, on the owner's thread. Further calls return the same, and change nothing.

        Raises:
            WorkUnderWayError: ``run`` has not ended. Nothing has changed.
            RaftLogError: the failure of ``run``.
        """
        if not self._has_run:
            raise WorkUnderWayError("work that was not run, or still runs, cannot be finished")
        if not self._is_finished:
            self._is_finished = True
            self._on_end()
            self._count()
        self.check()
        return cast("T_co", self._value)

    def _count(self) -> None:
        report = self._on_failure
        try:
            for step, outcome in zip(self._steps, self._done, strict=False):
                report = step.on_failure
                step.memory(outcome)
            if self._failure is not None:
                report = self._steps[len(self._done)].on_failure
                raise fresh_copy(self._failure)
            report = self._on_failure
            self._value = self._result()
        except BaseException as error:
            self._failure = without_frames(error)
            report(error)
        self._done.clear()

    def cancel(self, reason: BaseException) -> bool:
        """Cancel the work if it has not begun to run; return whether it was cancelled. ``finish`` raises the reason."""
        try:
            self._tickets.pop()
        except IndexError:
            return False
        self._failure, self._has_run, self._is_finished = reason, True, True
        for part in self._parts:
            part.cancel(reason)
        self._on_end()
        return True

    def end(self, reason: RaftLogError) -> None:
        """Cancel the work if it was not run, and finish it otherwise, because its owner is about to be closed.

        A later ``finish`` raises the reason, or the failure of the run.

        Raises:
            WorkUnderWayError: it is being run now. Nothing has changed.
        """
        if self.is_needed and not self.cancel(reason):
            if not self._has_run:
                raise WorkUnderWayError("work that still runs must be finished first")
            with contextlib.suppress(RaftLogError):
                self.finish()

    def complete(self) -> T_co:
        """Run and finish it now: the blocking form."""
        if self._steps:
            self._run()
        return self.finish()

    def precede(self, *steps: DiskStep) -> Self:
        """Insert steps before the present ones, and return this object."""
        return self._with((*steps, *self._steps))

    def add(self, *steps: DiskStep) -> Self:
        """Append steps after the present ones, and return this object."""
        return self._with((*self._steps, *steps))

    def _with(self, steps: tuple[DiskStep, ...]) -> Self:
        self._steps, self._has_run = steps, not steps
        self._tickets = [None] if steps else []
        return self

    def follow(self, first: "DiskWork[Any]") -> Self:
        """Do other work first, as a part of this one, and return this object. If that fails, this is not done."""

        def run() -> None:
            if first.is_needed:
                first.run()
            first.check()

        def give_up(_: BaseException) -> None:
            with contextlib.suppress(BaseException):  # This work raises the same error.
                first.finish()

        self._parts.append(first)
        return self.precede(DiskStep(run, lambda _: first.finish(), first.paths, give_up))

    def check(self) -> None:
        """Raise the failure of ``run``, if there is one."""
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def then(self, result: Callable[[T_co], U]) -> "DiskWork[U]":
        """Apply a function to the result, and return this object."""
        first = self._result
        self._result = cast("Any", lambda: result(first()))
        return cast("DiskWork[U]", self)
