# SPDX-License-Identifier: Apache-2.0
"""Telling which of the batches of a segment are out of line: those that do not start where the others let them.

One number that is wrong makes either its own batch or all that follow look wrong. So a batch that steps back is not
judged by what stands before it alone: if the batch before it had jumped ahead, the batch behind it says which of the
two is out of line.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import attrs

from raftlog.invariants import present


class SequenceStep(Protocol):
    """What stands in a line: it begins somewhere, and leads to where the next one may begin."""

    @property
    def start(self) -> int:
        """Where it begins."""
        ...

    @property
    def end(self) -> int:
        """Before which the next one must not begin."""
        ...

    @property
    def held_end(self) -> int:
        """What ``end`` would be by what it holds; no other where that says nothing."""
        ...

    @property
    def is_vouched_for(self) -> bool:
        """Whether something else speaks for it, so that the next step is rather wrong than this one."""
        ...


AnyStep = TypeVar("AnyStep", bound=SequenceStep)


@attrs.frozen
class Verdict(Generic[AnyStep]):
    """A step, and whether it is in line."""

    step: AnyStep
    is_in_sequence: bool


@attrs.define
class OutlierSearch(Generic[AnyStep]):
    """Judges steps, the last one or two of them when it knows what follows.

    Attributes:
        end: before which the next step must not begin; None before the first where nothing says it.
    """

    end: int | None = None
    _before: int = 0
    _last: AnyStep | None = None
    _doubtful: AnyStep | None = None

    def goes_on_with(self, start: int) -> bool:
        """Whether a step that begins somewhere is in line, and thereby all that were taken."""
        return self._doubtful is None and (self.end is None or start >= self.end)

    def take(self, step: AnyStep) -> Iterator[Verdict[AnyStep]]:
        """Take the next step, and yield verdicts on those of which it is known now, in order."""
        if self._doubtful is not None:
            yield from self._settle_doubt(step.start)
        if self.end is None or step.start >= self.end:
            yield from self._settle_last()
            self._accept(step)
        elif step.start < self._before:
            yield from self.flush()
            yield Verdict(step, False)
        elif self._last is not None and step.start in {self._moved_end(self._last), self._last.held_end}:
            yield from self._leave_last_out(step)
        else:
            self._doubtful = step

    def skip_to(self, end: int) -> None:
        """Go on where steps that the caller has looked at lead, each of which begins where the one before it let it."""
        self.end = self._before = end

    def finish(self) -> Iterator[Verdict[AnyStep]]:
        """Yield the verdicts on what is left."""
        if self._doubtful is not None:
            yield from self._settle_doubt(None)
        yield from self._settle_last()

    def flush(self) -> Iterator[Verdict[AnyStep]]:
        """Yield the verdict on the last step, which is in line, as ``goes_on_with`` has said; nobody doubts it now."""
        yield from self._settle_last()
        if self.end is not None:
            self._before = self.end

    def _moved_end(self, step: AnyStep) -> int | None:
        """Where a step would lead if it began where the line was; None for one that leads nowhere."""
        return self._before + step.end - step.start if step.end > step.start else None

    def _accept(self, step: AnyStep) -> None:
        self._before = 0 if self.end is None else self.end
        self.end = step.end
        self._last = step

    def _leave_last_out(self, step: AnyStep) -> Iterator[Verdict[AnyStep]]:
        """Judge the last step to be out of line, and this one to stand in its place."""
        if self._last is not None:
            yield Verdict(self._last, False)
        self.end, self._last = self._before, None
        self._accept(step)

    def _settle_last(self) -> Iterator[Verdict[AnyStep]]:
        if self._last is not None:
            yield Verdict(self._last, True)
            self._last = None

    def _settle_doubt(self, start: int | None) -> Iterator[Verdict[AnyStep]]:
        """Judge the doubtful step or the one before it by where the next one begins, if there is one."""
        doubtful = present(self._doubtful, "the doubtful step")
        self._doubtful = None
        if start is None:  # Before the only step is nothing but what the file's name says.
            is_right = self._last is None or not self._last.is_vouched_for
        else:
            is_right = doubtful.end <= start < present(self.end, "the end of the last step")
        if is_right:
            yield from self._leave_last_out(doubtful)
            return
        yield from self.flush()
        yield Verdict(doubtful, False)
