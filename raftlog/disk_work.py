# SPDX-License-Identifier: Apache-2.0
"""Work that needs a disk, in three parts, so that nobody who must not wait for a disk does.

::

    work = log.prepare_flush()         # owner's thread: cheap, syncs nothing
    executor.submit(work.run)          # any thread, once: all that is written and synced
    result = work.finish()             # owner's thread, once the run is over: what has come of it counts

A blocking call is the same three in a row (``complete``). What is prepared is a list of steps, each of which has a part
for the disk and a part for memory. ``run`` does the disk's parts in order and stops at the first that fails;
``finish`` does memory's parts of those that were done, and returns the result or raises the failure. So memory never
says more than the disk has done, and it changes on the owner's thread alone.
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
    """What has come of some work, and of which state of its owner it speaks.

    A result that arrives late is told apart by comparing ``epoch`` and ``generation`` with what the owner says then:
    where they differ, there was a new leader, or the log was cut, since.

    Attributes:
        value: what the blocking call returns, or the offset that is flushed.
        epoch: the latest epoch of the log, or of the stored election state, when the work was finished.
        generation: of the log, which grows with each truncation; or the number of the stored election state.
    """

    value: T_co
    epoch: int = 0
    generation: int = 0


def nothing(_: object = None) -> None:
    """Do nothing: where there is nobody to be told."""


@attrs.frozen
class DiskStep:
    """One thing to do.

    Attributes:
        disk: is called by ``run``, on any thread.
        memory: is given what ``disk`` has returned, by ``finish``, on the owner's thread.
        paths: of the files and directories that ``disk`` may write or sync.
        on_failure: is given, by ``finish``, what either of the two has raised.
    """

    disk: Callable[[], Any]
    memory: Callable[[Any], object] = nothing
    paths: tuple[str, ...] = ()
    on_failure: Callable[[BaseException], object] = nothing

    def do(self) -> None:
        """Do both parts in a row."""
        self.memory(self.disk())


class DiskWork(Generic[T_co]):
    """Some steps, and what is to be returned once they are done. Its owner makes it and finishes it.

    Args:
        steps: in the order in which they must be done.
        result: is called by ``finish`` after all of them.
        on_end: is called once, by ``finish`` or ``cancel``, before anything else.
        on_failure: is given what ``result`` has raised.
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
        """Who pops it may run; a list's pop is one step, in any thread."""
        self._done: list[Any] = []
        self._failure: BaseException | None = None
        self._has_run = not self._steps
        self._is_finished = False
        self._value: T_co | None = None
        self._parts: list[DiskWork[Any]] = []

    @classmethod
    def done(cls, value: T_co) -> Self:  # type: ignore[misc]  # it makes one, as a constructor does
        """Return work of which nothing is left to do: it need not be run."""
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
        """Do what the disk must do; on any thread, once. A failure is kept for ``finish`` to raise.

        Where there is nothing to do, nothing is done, however often.

        Raises:
            WorkUnderWayError: it was begun already, or cancelled. Nothing has changed.
            BaseException: what is no error but an end of the thread, such as ``KeyboardInterrupt``; ``finish`` raises
                it too.
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
            if not isinstance(error, RaftLogError):  # A bug of ours: its place must not be lost with its frames.
                error.add_note("".join(traceback.format_tb(error.__traceback__)))
            self._failure = without_frames(error)
        self._has_run = True

    def finish(self) -> T_co:
        """Let count what was done, on the owner's thread. Called again it answers the same, and changes nothing.

        Raises:
            WorkUnderWayError: ``run`` is not over. Nothing has changed.
            RaftLogError: what ``run`` has failed by.
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
        tell = self._on_failure
        try:
            for step, outcome in zip(self._steps, self._done, strict=False):
                tell = step.on_failure
                step.memory(outcome)
            if self._failure is not None:
                tell = self._steps[len(self._done)].on_failure
                raise fresh_copy(self._failure)
            tell = self._on_failure
            self._value = self._result()
        except BaseException as error:
            self._failure = without_frames(error)
            tell(error)
        self._done.clear()

    def cancel(self, reason: BaseException) -> bool:
        """Take it back before it is run, and say whether that came in time; ``finish`` raises the reason then."""
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
        """Cancel it where it was not run, and finish it otherwise: what it is for is about to be closed.

        Whoever calls ``finish`` is told of the reason then, or of what the run has failed by.

        Raises:
            WorkUnderWayError: it is being run now. Nothing has changed.
        """
        if self.is_needed and not self.cancel(reason):
            if not self._has_run:
                raise WorkUnderWayError("work that still runs must be finished first")
            with contextlib.suppress(RaftLogError):
                self.finish()

    def complete(self) -> T_co:
        """Run and finish it, here and now: the blocking form."""
        if self._steps:
            self._run()
        return self.finish()

    def precede(self, *steps: DiskStep) -> Self:
        """Have some steps done before those that are here, and return this."""
        return self._with((*steps, *self._steps))

    def add(self, *steps: DiskStep) -> Self:
        """Have some more steps done behind those that are here, and return this."""
        return self._with((*self._steps, *steps))

    def _with(self, steps: tuple[DiskStep, ...]) -> Self:
        self._steps, self._has_run = steps, not steps
        self._tickets = [None] if steps else []
        return self

    def follow(self, first: "DiskWork[Any]") -> Self:
        """Have other work done before this, as a part of it, and return this. Where it fails, this is not done."""

        def run() -> None:
            if first.is_needed:
                first.run()
            first.check()

        def give_up(_: BaseException) -> None:
            with contextlib.suppress(BaseException):  # It is what this work raises.
                first.finish()

        self._parts.append(first)
        return self.precede(DiskStep(run, lambda _: first.finish(), first.paths, give_up))

    def check(self) -> None:
        """Raise what ``run`` has failed by, if it has."""
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def then(self, result: Callable[[T_co], U]) -> "DiskWork[U]":
        """Have a function make another result of the one that is here, and return this."""
        first = self._result
        self._result = cast("Any", lambda: result(first()))
        return cast("DiskWork[U]", self)
