# SPDX-License-Identifier: Apache-2.0
"""Keeps the worst of many values, in bounded memory."""

import heapq
from typing import Final, Generic, TypeVar

import attrs

from raftlog.records.rules import Severity

_ORDER: Final = {severity: rank for rank, severity in enumerate(Severity)}

Kept = TypeVar("Kept")


def rank_of(severity: Severity | None) -> int:
    """Return a number that grows with the severity; -1 for None, which means that nothing was found."""
    return -1 if severity is None else _ORDER[severity]


@attrs.define
class Worst(Generic[Kept]):
    """Keeps the values of the highest rank; among equal ranks, those that were offered first.

    Attributes:
        limit: how many are kept.
        offered: how many were offered.
    """

    limit: int
    offered: int = 0
    _heap: list[tuple[tuple[int, ...], int, Kept]] = attrs.field(factory=list)

    def offer(self, rank: tuple[int, ...], value: Kept) -> None:
        """Add a value, if it is among the worst; a greater rank is worse."""
        self._keep(rank, self.offered, value)
        self.offered += 1

    def merge(self, other: "Worst[Kept]") -> None:
        """Add what another one kept, as if its values had been offered here after all the present ones."""
        for rank, negative_number, value in other._heap:  # noqa: SLF001 - one of the same class
            self._keep(rank, self.offered - negative_number, value)
        self.offered += other.offered

    def _keep(self, rank: tuple[int, ...], number: int, value: Kept) -> None:
        # No two items have the same number, so that values are never compared.
        item = (rank, -number, value)
        if len(self._heap) < self.limit:
            heapq.heappush(self._heap, item)
        else:
            heapq.heappushpop(self._heap, item)

    def wants(self, rank: tuple[int, ...]) -> bool:
        """Whether a value of a rank would be kept."""
        return len(self._heap) < self.limit or rank > self._heap[0][0]

    def values(self) -> list[Kept]:
        """Return the kept values, the worst first."""
        return [value for _, _, value in sorted(self._heap, key=lambda item: item[:2], reverse=True)]
