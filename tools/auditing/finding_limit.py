# SPDX-License-Identifier: Apache-2.0
"""Limits the findings kept per rule and file, and counts the rest."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[np.intp]]

MOST_OF_A_RULE: Final = 100
"""How many findings are kept per rule and file."""


_MORE: Final = re.compile(r"there are (\d+) more of these")


def count_of_more(finding: Finding) -> int:
    """Return for how many others a finding stands that a limit did not keep; 0 for any other finding."""
    found = _MORE.fullmatch(finding.reason)
    return int(found[1]) if found else 0


class FindingLimit:
    """Collects the findings of one file, up to a limit per rule.

    Args:
        path: the file.
        most: how many findings to keep per rule.
    """

    def __init__(self, path: str, most: int = MOST_OF_A_RULE) -> None:
        self.path = path
        self._most = most
        self._kept: list[Finding] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, finding: Finding) -> None:
        """Add a finding about this file, or about a file that belongs to it."""
        self._counts[finding.rule, finding.path] += 1
        if self._counts[finding.rule, finding.path] <= self._most:
            self._kept.append(finding)

    def extend(self, findings: Iterable[Finding]) -> None:
        """Add several findings."""
        for finding in findings:
            self.add(finding)

    def add_rows(self, rule: str, rows: "Sequence[int] | Rows", explain: Callable[[int], Finding]) -> None:
        """Add one finding per row; findings beyond the limit are counted, but never created.

        Args:
            rule: the rule that the rows break.
            rows: indexes of the rows.
            explain: returns the finding for a row; it must be about this file.
        """
        room = max(0, self._most - self._counts[rule, self.path])
        for row in rows[:room]:
            self.add(explain(int(row)))
        self._counts[rule, self.path] += len(rows[room:])

    def findings(self) -> tuple[Finding, ...]:
        """Return the kept findings by position, then one finding per rule and file whose limit was exceeded."""
        kept = sorted(self._kept, key=lambda finding: (finding.path != self.path, finding.position or 0))
        more = [
            Finding(path, rule, f"there are {count - self._most} more of these")
            for (rule, path), count in self._counts.items()
            if count > self._most
        ]
        return (*kept, *more)
