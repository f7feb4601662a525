# SPDX-License-Identifier: Apache-2.0
"""The tables of the model in docs/reliability.md: its runs, and its broken rules."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from tests.checkout import ROOT
from tests.model.broken_rules import BrokenRule
from tests.model.explorer import Exploration
from tests.model.runs import Run

DOCUMENT: Final = ROOT / "docs" / "reliability.md"

_RUNS: Final = "model runs"
_RULES: Final = "model rules"
_ROW: Final = re.compile(
    r"^\| `([a-z0-9-]+)` \| .* \| ([\d,]+) \| (\d+) \| \d+ s \| \d+ MiB \| (\w+) \|$", re.MULTILINE
)
_RULE: Final = re.compile(r"^\| ([a-z].*?) \| (.*?) \| (.*?) \| (\d+) \|$", re.MULTILINE)


@attrs.frozen
class Row:
    """A run as the document has it: the name, the states, the depth, and whether all were visited."""

    name: str
    states: int
    depth: int
    is_complete: bool


def run_line(run: Run, found: Exploration) -> str:
    """Return the row of a run."""
    bounds, complete = run.bounds, "yes" if found.is_complete else "no"
    return (
        f"| `{bounds.name}` | {bounds} | {run.tier.value} | {found.states:,} | {found.depth} | {found.seconds:.0f} s "
        f"| {found.memory_bytes >> 20} MiB | {complete} |"
    )


def read_runs() -> dict[str, Row]:
    """Return the rows of the runs in the document, by name."""
    rows = [
        Row(name, int(states.replace(",", "")), int(depth), complete == "yes")
        for name, states, depth, complete in _ROW.findall(_section(_RUNS))
    ]
    return {row.name: row for row in rows}


def rule_line(broken: BrokenRule, steps: int) -> str:
    """Return the row of a broken rule: what it breaks, which bugs it replays, and after how many steps at least."""
    return f"| {broken.rule} | {broken.invariant} | {broken.replays} | {steps} |"


def read_rules() -> dict[tuple[str, str], int]:
    """Return the steps of the shortest counterexamples in the document, by rule and invariant."""
    return {(rule, invariant): int(steps) for rule, invariant, _, steps in _RULE.findall(_section(_RULES))}


def write_runs(lines: Iterable[str]) -> None:
    """Put rows of runs in place of those in the document."""
    head = "| run | bounds | made by | states | depth | time | memory | complete |"
    _write(_RUNS, [head, "|---|---|---|---:|---:|---:|---:|---|", *lines])


def write_rules(lines: Iterable[str]) -> None:
    """Put rows of broken rules in place of those in the document."""
    _write(_RULES, ["| broken rule | invariant that breaks | replays | steps |", "|---|---|---|---:|", *lines])


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end of {name} -->\n)", re.DOTALL)


def _section(name: str) -> str:
    found = _pattern(name).search(DOCUMENT.read_text())
    assert found is not None
    return found[2]


def _write(name: str, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    document, count = _pattern(name).subn(lambda match: match[1] + text + match[3], DOCUMENT.read_text())
    assert count == 1
    DOCUMENT.write_text(document)
