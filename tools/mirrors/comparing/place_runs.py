# SPDX-License-Identifier: Apache-2.0
"""Which records are the same on both sides, kept as runs, so that runs of equal records take no memory each."""

from typing import Protocol

import attrs

from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.rows import Int64s


class Offsets(Protocol):
    """Ascending offsets of one log."""

    def at(self, index: int) -> int:
        """Return one by its index."""
        ...

    def before(self, offset: int) -> int:
        """Return how many are below an offset."""
        ...


@attrs.frozen(eq=False)
class ListedOffsets:
    """Offsets one by one.

    Attributes:
        offsets: all of them.
    """

    offsets: Int64s

    def at(self, index: int) -> int:
        """Return one by its index."""
        return int(self.offsets[index])

    def before(self, offset: int) -> int:
        """Return how many are below an offset."""
        return int(self.offsets.searchsorted(offset))


@attrs.frozen(eq=False)
class AdjacentOffsets:
    """Offsets of adjacent records.

    Attributes:
        view: of their log.
        first: the rank of the first one.
        count: how many there are.
    """

    view: SummedView
    first: int
    count: int

    def at(self, index: int) -> int:
        """Return one by its index."""
        return self.view.offset_at(self.first + index)

    def before(self, offset: int) -> int:
        """Return how many are below an offset."""
        return min(max(self.view.rank(offset) - self.first, 0), self.count)


@attrs.frozen(eq=False)
class PlaceRun:
    """Records of the source, and their copies in the target: the first one is the first copy, and so on.

    Attributes:
        source: the offsets in the source.
        target: those in the target.
        count: how many there are.
    """

    source: Offsets
    target: Offsets
    count: int
