# SPDX-License-Identifier: Apache-2.0
"""Finds the epochs of a log although single batches may claim a wrong one: the CRC does not cover a batch's epoch."""

import bisect
import functools
import itertools
from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.tools.auditing.evidence import EpochSeen, FileEvidence, PartitionEvidence
from raftlog.tools.catalogue.findings import Finding

_FEW: Final = 16
"""The number of consecutive runs that may be wrong."""


@attrs.frozen
class EpochRun:
    """Consecutive batches of one epoch in a segment.

    Attributes:
        file: the segment.
        seen: the epoch, and its start and end in this run.
    """

    file: FileEvidence
    seen: EpochSeen

    @property
    def offset_count(self) -> int:
        """The number of offsets it spans."""
        return max(1, self.seen.end_offset - self.seen.start_offset)

    def finding(self, rule: str, reason: str) -> Finding:
        """Return a finding about its first batch."""
        seen = self.seen
        return Finding(self.file.task.path, rule, reason, seen.position, offset=seen.start_offset, epoch=seen.epoch)


def epoch_runs(evidence: PartitionEvidence) -> list[EpochRun]:
    """Return the runs in the segments of a log, in the order of the log."""
    return [EpochRun(file, seen) for file in evidence.segments for seen in file.epochs]


@attrs.frozen
class EpochSpan:
    """An epoch of a log, over all its segments.

    Attributes:
        first: its first run.
        end_offset: the end of its last batch, exclusive.
    """

    first: EpochRun
    end_offset: int

    @property
    def epoch(self) -> int:
        """The epoch."""
        return self.first.seen.epoch

    @property
    def start_offset(self) -> int:
        """Base offset of its first batch."""
        return self.first.seen.start_offset


class LogEpochs:
    """The epochs of a log.

    Args:
        evidence: of the log.
    """

    def __init__(self, evidence: PartitionEvidence) -> None:
        self._runs = [run for run in epoch_runs(evidence) if run.seen.epoch >= 0]
        trusted = _trusted(self._runs)
        self._trusted = {id(run) for run in trusted}
        self.spans: Sequence[EpochSpan] = _spans(trusted)
        """The trusted epochs, ascending."""

    @functools.cached_property
    def doubted(self) -> Sequence[EpochRun]:
        """Runs that break the order; their epochs are not trusted."""
        return [run for run in self._runs if id(run) not in self._trusted]

    @functools.cached_property
    def broken_between_segments(self) -> Sequence[EpochRun]:
        """The doubted runs at the border of two segments, which the survey of one segment cannot find.

        Overlapping segments are a different fault.
        """
        broken = []
        for before, after in itertools.pairwise(self._runs):
            follows = before.file is not after.file and before.seen.end_offset <= after.seen.start_offset
            if follows and after.seen.epoch < before.seen.epoch:
                broken.append(before if id(after) in self._trusted else after)
        return broken

    def span_at(self, offset: int) -> EpochSpan | None:
        """Return the epoch of an offset; None if no batch has it."""
        return next(iter(self.overlapping(offset, offset + 1)), None)

    def overlapping(self, start_offset: int, end_offset: int) -> list[EpochSpan]:
        """Return the epochs that have offsets in a range (end exclusive), the last epoch first."""
        found = []
        index = bisect.bisect_left(self._starts, end_offset) - 1
        while index >= 0 and self.spans[index].end_offset > start_offset:
            found.append(self.spans[index])
            index -= 1
        return found

    @functools.cached_property
    def _starts(self) -> list[int]:
        """The start offsets of epochs. If they are out of order, that is reported, and lookups may fail."""
        return [span.start_offset for span in self.spans]


def _trusted(runs: Sequence[EpochRun]) -> list[EpochRun]:
    """Return runs whose epochs do not decrease: if they do, the shorter side is wrong, or the outlier."""
    trusted: list[EpochRun] = []
    for run in runs:
        above = size = 0
        while above < min(_FEW, len(trusted)) and trusted[-1 - above].seen.epoch > run.seen.epoch:
            above += 1
            size += trusted[-above].offset_count
        below = trusted[-1 - above].seen.epoch if above < len(trusted) else -1
        stands_out = size == run.offset_count and below == run.seen.epoch
        if above == 0 or (below <= run.seen.epoch and (size < run.offset_count or stands_out)):
            del trusted[len(trusted) - above :]
            trusted.append(run)
    return trusted


def _spans(runs: Sequence[EpochRun]) -> list[EpochSpan]:
    spans: list[EpochSpan] = []
    for run in runs:
        if spans and spans[-1].epoch == run.seen.epoch:
            spans[-1] = attrs.evolve(spans[-1], end_offset=max(spans[-1].end_offset, run.seen.end_offset))
        else:
            spans.append(EpochSpan(run, run.seen.end_offset))
    return spans
