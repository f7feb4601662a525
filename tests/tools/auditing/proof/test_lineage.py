# SPDX-License-Identifier: Apache-2.0
"""Where two logs part, if they have no offset in common."""

import pytest

from raftlog.offsets import EpochEntry
from raftlog.tools.auditing.proof.lineage import Lineage, parting


def lineage(end: int, *epochs: tuple[int, int]) -> Lineage:
    """A log by its epochs, each with its first offset."""
    return Lineage(tuple(EpochEntry(epoch, start) for epoch, start in epochs), end)


@pytest.mark.parametrize(
    ("before", "epoch_after", "expected"),
    [
        (lineage(10, (5, 0)), 3, 0),
        (lineage(10, (1, 0), (5, 4)), 3, 4),
        (lineage(10, (1, 0), (3, 4), (5, 7)), 3, 7),
        (lineage(10, (1, 0), (4, 4)), 3, 4),
        (lineage(10, (1, 0), (3, 4)), 3, None),
        (lineage(10, (1, 0), (2, 4)), 3, None),
        (lineage(10), 3, None),
    ],
)
@pytest.mark.parametrize("start", [10, 11, 20])
def test_logs_without_a_common_offset(before: Lineage, epoch_after: int, expected: int | None, start: int) -> None:
    """Along a log epochs do not decrease: they part at the first epoch that is later than the first of the other."""
    after = lineage(start + 5, (epoch_after, start), (9, start + 2))
    assert parting(before, after) == expected
    assert parting(after, before) == expected
