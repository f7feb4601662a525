# SPDX-License-Identifier: Apache-2.0
"""What a mirror has otherwise than its source, with the places on both sides."""

import enum
from collections.abc import Iterable

import attrs


class MirrorFault(enum.Enum):
    """What was found at a place of a pair."""

    LOST = "lost"
    HOLE = "hole"
    CHANGED = "changed"
    REORDERED = "reordered"
    DUPLICATE = "duplicate"
    FOREIGN = "foreign"
    WRITTEN_TO = "written-to"
    WRONG_ANCHOR = "wrong-anchor"
    BAD_SYNC = "bad-sync"
    LATE_START = "late-start"
    PASSED_OVER = "passed-over"
    COPIED_AGAIN = "copied-again"
    SOURCE_RECREATED = "source-recreated"
    TARGET_SHRUNK = "target-shrunk"


@attrs.frozen(order=True)
class OffsetRange:
    """Offsets of one log.

    Attributes:
        start: the first one, inclusive.
        end: the last one, exclusive; the same as the start for a place between two records.
    """

    start: int
    end: int

    @property
    def offset_count(self) -> int:
        """How many offsets there are; 0 if the end is not after the start."""
        return max(0, self.end - self.start)


def united(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return the same offsets as ranges that do not touch, ascending."""
    found: list[OffsetRange] = []
    for each in sorted(ranges):
        if found and each.start <= found[-1].end:
            found[-1] = OffsetRange(found[-1].start, max(found[-1].end, each.end))
        else:
            found.append(each)
    return found


@attrs.frozen
class MirrorDifference:
    """One thing that was found.

    Attributes:
        kind: what.
        source: where in the source. For what is lost it may be longer than ``count``: records beside it are equal, so
            that nobody can say which of them is missing.
        target: where in the target.
        count: how many records it concerns.
        is_exact: whether the records were told apart one by one. Otherwise there are so many differences in the
            ranges that ``count`` is the least that are meant.
        sync: the offset of the offset sync that it is about, in the topic of the syncs; -1 if it is about none.
        is_open: for ``LOST``, whether equal records are beside them, so that it is open which ones are lost.
        why: what is wrong with the sync, for ``BAD_SYNC``.
        by_one_task: for ``COPIED_AGAIN``, whether the task that had mirrored the records mirrored them again.
    """

    kind: MirrorFault
    source: OffsetRange
    target: OffsetRange
    count: int = 1
    is_exact: bool = True
    sync: int = -1
    is_open: bool = False
    why: str = ""
    by_one_task: bool = False
