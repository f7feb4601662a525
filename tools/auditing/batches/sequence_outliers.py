# SPDX-License-Identifier: Apache-2.0
"""Finds the batches of a segment that are out of sequence.

A single wrong number makes either its own batch or all following batches look wrong. Therefore a batch that steps back
is not judged by the preceding batch alone: the preceding batch may have jumped ahead instead. In that case the
following batch decides which of the two is out of sequence.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import attrs

from raftlog.invariants import present


class SequenceStep(Protocol):
    """One element of a sequence: it has a start, and an end at which the next step may start."""

    @property
    def start(self) -> int:
        """The value at which this step starts."""
        ...

    @property
    def end(self) -> int:
        """The least value at which the next step may start."""
        ...

    @property
    def furthest_end(self) -> int:
        """The end according to the step's contents; equal to ``end`` if the contents give no other value."""
        ...

    @property
    def is_corroborated(self) -> bool:
        """Whether other evidence supports this step, so that the next step is more likely to be wrong."""
        ...


AnyStep = TypeVar("AnyStep", bound=SequenceStep)


@attrs.frozen
class Verdict(Generic[AnyStep]):
    """A step, and whether it is in sequence."""

    step: AnyStep
    is_in_sequence: bool


@attrs.define
class OutlierSearch(Generic[AnyStep]):
    """Judges the steps of a sequence; verdicts on the last one or two steps wait for the steps that follow.

    Attributes:
        end: the least value at which the next step may start; None if unknown, before the first step.
    """

    end: int | None = None
    _before: int = 0
    _last: AnyStep | None = None
    _doubtful: AnyStep | None = None

    def continues_at(self, start: int) -> bool:
        """Whether a step that starts at ``start`` would be in sequence, with no earlier step left in doubt."""
        return self._doubtful is None and (self.end is None or start >= self.end)

    def take(self, step: AnyStep) -> Iterator[Verdict[AnyStep]]:
        """Take the next step, and yield the verdicts that are now certain, in order."""
        if self._doubtful is not None:
            yield from self._settle_doubt(step.start)
        if self.end is None or step.start >= self.end:
            yield from self._settle_last()
            self._accept(step)
        elif step.start < self._before:
            yield from self.flush()
            yield Verdict(step, False)
        elif self._last is not None and step.start in {self._moved_end(self._last), self._last.furthest_end}:
            yield from self._leave_last_out(step)
        else:
            self._doubtful = step

    def skip_to(self, end: int) -> None:
        """Continue at ``end``, after steps that the caller has checked to be in sequence."""
        self.end = self._before = end

    def finish(self) -> Iterator[Verdict[AnyStep]]:
        """Yield the remaining verdicts."""
        if self._doubtful is not None:
            yield from self._settle_doubt(None)
        yield from self._settle_last()

    def flush(self) -> Iterator[Verdict[AnyStep]]:
        """Yield the final verdict that the last step is in sequence; callers check ``continues_at`` first."""
        yield from self._settle_last()
        if self.end is not None:
            self._before = self.end

    def _moved_end(self, step: AnyStep) -> int | None:
        """Where a step would end if it started at the preceding step's end; None if the step is empty."""
        return self._before + step.end - step.start if step.end > step.start else None

    def _accept(self, step: AnyStep) -> None:
        self._before = 0 if self.end is None else self.end
        self.end = step.end
        self._last = step

    def _leave_last_out(self, step: AnyStep) -> Iterator[Verdict[AnyStep]]:
        """Judge the last step to be out of sequence, and accept this one in its place."""
        if self._last is not None:
            yield Verdict(self._last, False)
        self.end, self._last = self._before, None
        self._accept(step)

    def _settle_last(self) -> Iterator[Verdict[AnyStep]]:
        if self._last is not None:
            yield Verdict(self._last, True)
            self._last = None

    def _settle_doubt(self, start: int | None) -> Iterator[Verdict[AnyStep]]:
        """Judge the doubtful step or the one before it by the start of the next step, if there is one."""
        doubtful = present(self._doubtful, "the doubtful step")
        self._doubtful = None
        if start is None:  # If there is no last step, the doubtful one contradicts only the file's name.
            is_right = self._last is None or not self._last.is_corroborated
        else:
            is_right = doubtful.end <= start < present(self.end, "the end of the last step")
        if is_right:
            yield from self._leave_last_out(doubtful)
            return
        yield from self.flush()
        yield Verdict(doubtful, False)
