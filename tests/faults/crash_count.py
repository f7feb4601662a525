# SPDX-License-Identifier: Apache-2.0
"""Every enumeration of crashes, run and counted: ``make crashes``.

Runs all tests that crash a scenario after each of its operations, except the tests of the enumeration itself. Prints
the number of recovered states by test file, and has the exit code of pytest.
"""

import collections
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from raftlog.testing import crash_points
from raftlog.testing.crash_points import CrashCounts
from tests.checkout import ROOT
from tests.mutants.planting import swap

NAMES: Final = ("enumerate_crashes", "crash_states(", "fail_each(")
"""What a file of tests calls that crashes something."""


@attrs.define
class CrashCounter:
    """A plugin of pytest that counts what enumerations return.

    Attributes:
        counts: of each file of tests, in the order in which they ran.
    """

    counts: dict[str, list[CrashCounts]] = attrs.field(factory=lambda: collections.defaultdict(list))
    _file: str = ""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note whose enumerations come now."""
        self._file = item.nodeid.partition("::")[0]

    def counting(self, right: Callable[..., CrashCounts]) -> Callable[..., CrashCounts]:
        """Return what counts what a function returns."""

        def enumerate_crashes(*arguments: Any, **keywords: Any) -> CrashCounts:
            counts = right(*arguments, **keywords)
            self.counts[self._file].append(counts)
            return counts

        return enumerate_crashes

    def lines(self) -> list[str]:
        """Return a line for each file, and one for all."""
        rows = [(file, _sum(counts)) for file, counts in self.counts.items()]
        every = _sum([each for counts in self.counts.values() for each in counts])
        return [f"{file}: {total}" for file, total in (*rows, ("all", every))]


def _sum(counts: list[CrashCounts]) -> CrashCounts:
    depth = max((len(each.states) for each in counts), default=0)
    states = tuple(sum(each.states[level] for each in counts if level < len(each.states)) for level in range(depth))
    is_complete = all(each.is_complete for each in counts)
    return CrashCounts(sum(each.steps for each in counts), sum(each.points for each in counts), states, is_complete)


def main() -> int:
    """Run them, print the counts, and return pytest's exit code."""
    counter = CrashCounter()
    swap(crash_points, "enumerate_crashes", counter.counting)
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if _crashes(path)]
    code = pytest.main(["-q", "-n", "0", "--no-cov", "-p", "no:cacheprovider", *map(str, files)], [counter])
    print(*counter.lines(), sep="\n")
    return int(code)


def _crashes(path: Path) -> bool:
    text = path.read_text("utf-8")
    return "testing" not in path.relative_to(ROOT).parts and any(name in text for name in NAMES)


if __name__ == "__main__":
    sys.exit(main())
