# SPDX-License-Identifier: Apache-2.0
"""Keeping the worst: the same as sorting all of it, in less memory."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.report.worst import Worst, rank_of


@given(ranks=st.lists(st.integers(0, 5)), limit=st.integers(1, 8))
def test_the_worst_are_kept(ranks: list[int], limit: int) -> None:
    """The kept values are the first of all values sorted by rank, equal ones in the order in which they came."""
    worst: Worst[int] = Worst(limit)
    for number, rank in enumerate(ranks):
        wanted = worst.wants((rank,))
        worst.offer((rank,), number)
        assert wanted == (number in worst.values())
    ordered = sorted(range(len(ranks)), key=lambda number: -ranks[number])
    assert worst.values() == ordered[:limit]
    assert worst.offered == len(ranks)


@given(
    ranks=st.lists(st.integers(0, 3), max_size=30),
    limit=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_merging_in_any_division(ranks: list[int], limit: int, cuts: list[int]) -> None:
    """Merging what parts have kept, in their order, keeps what would be kept of all, ties included."""
    whole: Worst[int] = Worst(limit)
    merged: Worst[int] = Worst(limit)
    for number, rank in enumerate(ranks):
        whole.offer((rank,), number)
    for start, end in itertools.pairwise([0, *sorted(cuts), len(ranks)]):
        part: Worst[int] = Worst(limit)
        for number in range(min(start, len(ranks)), end if end < len(ranks) else len(ranks)):
            part.offer((ranks[number],), number)
        merged.merge(part)

    assert merged.values() == whole.values()
    assert merged.offered == whole.offered


def test_severities_are_ranked() -> None:
    """A worse severity has a greater rank, and nothing at all has the least."""
    assert [rank_of(each) for each in (None, *Severity)] == [-1, 0, 1, 2, 3]
