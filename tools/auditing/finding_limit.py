# SPDX-License-Identifier: Apache-2.0
"""Keeping the findings of one file bounded: so many of each rule, and how many more there are."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[np.intp]]

MOST_OF_A_RULE: Final = 100
"""How many findings of one rule are kept of one file."""


class FindingLimit:
    """Collects the findings of one file.

    Args:
        path: the file.
        most: how many of each rule to keep.
    """

    def __init__(self, path: str, most: int = MOST_OF_A_RULE) -> None:
        self.path = path
        self._most = most
        self._kept: list[Finding] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, finding: Finding) -> None:
        """Take a finding: of this file, or of one beside it."""
        self._counts[finding.rule, finding.path] += 1
        if self._counts[finding.rule, finding.path] <= self._most:
            self._kept.append(finding)

    def extend(self, findings: Iterable[Finding]) -> None:
        """Take some findings."""
        for finding in findings:
            self.add(finding)

    def add_rows(self, rule: str, rows: "Sequence[int] | Rows", explain: Callable[[int], Finding]) -> None:
        """Take a finding of a rule for each of some rows; they are explained as long as they are kept.

        Args:
            rule: that they break.
            rows: their indexes: a list, or an array.
            explain: gives the finding of a row, which is of this file.
        """
        room = max(0, self._most - self._counts[rule, self.path])
        for row in rows[:room]:
            self.add(explain(int(row)))
        self._counts[rule, self.path] += len(rows[room:])

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings by position; behind them, for each rule of which there are more, how many."""
        kept = sorted(self._kept, key=lambda finding: (finding.path != self.path, finding.position or 0))
        more = [
            Finding(path, rule, f"there are {count - self._most} more of these")
            for (rule, path), count in self._counts.items()
            if count > self._most
        ]
        return (*kept, *more)
