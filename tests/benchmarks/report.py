# SPDX-License-Identifier: Apache-2.0
"""Writing down what was measured: JSON, a table in Markdown and a picture of it."""

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from tests.benchmarks.measure import Row

START: Final = "<!-- figures: `make bench` writes what follows -->\n"
END: Final = "<!-- end of figures -->\n"
SPARK_START: Final = "<!-- figures of Spark: `make bench-spark` writes what follows -->\n"
SPARK_END: Final = "<!-- end of figures of Spark -->\n"
PICTURE: Final = """\
![How far each row is from its goal](performance.svg)

The line is the goal; each step to the right of it is twice as good.
"""
_HEAD: Final = """\
| what | against | ratio | goal | holds | raftlog | the other | unit | peak memory |
|---|---|---:|---:|---|---:|---:|---|---:|
"""

_LINE_HEIGHT: Final = 18
_LABEL_WIDTH: Final = 560
_OCTAVE_WIDTH: Final = 60
_OCTAVES: Final = (-2, 5)
"""How far the picture reaches below and above the goal, in powers of two."""


def results_without(path: Path, is_replaced: Callable[[str], bool]) -> dict[str, Any]:
    """Return what ``results.json`` holds, without the rows whose ids say that they are measured anew."""
    results: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {"limits": {}, "rows": []}
    return results | {"rows": [row for row in results["rows"] if not is_replaced(row["id"])]}


def write_results(
    path: Path,
    machine: str,
    limits: Mapping[str, tuple[float, str]],
    rows: Sequence[Row],
    kept: Mapping[str, Any] | None = None,
) -> None:
    """Write ``results.json``: what was measured, and what is kept of an earlier one."""
    kept = kept or {"limits": {}, "rows": []}
    results = {
        "machine": machine,
        "limits": kept["limits"] | {name: {"figure": figure, "unit": unit} for name, (figure, unit) in limits.items()},
        "rows": [*kept["rows"], *(attrs.asdict(row) for row in rows)],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def tables(machine: str, limits: Mapping[str, tuple[float, str]], rows: Sequence[Row]) -> str:
    """Return the tables: one for each form of the kernel."""
    interpreted = [row for row in rows if row.id.endswith("-interpreted")]
    compiled = [row for row in rows if row not in interpreted]
    said = [f"{name} {_short(figure)} {unit}" for name, (figure, unit) in limits.items()]
    return (
        f"Machine: {machine}.\n\nIts limits: {'; '.join(said)}.\n\n{_goals_reached(rows)}"
        f"### Compiled\n\n{_table(compiled)}\n### Interpreted\n\n{_table(interpreted)}"
    )


def spark_table(machine: str, rows: Sequence[Row]) -> str:
    """Return the table of what runs on Spark."""
    return f"Machine: {machine}.\n\n{_goals_reached(rows)}{_table(rows)}"


def _goals_reached(rows: Sequence[Row]) -> str:
    held = sum(row.holds for row in rows if row.goal)
    return f"{held} of {sum(row.goal > 0 for row in rows)} goals are reached.\n\n"


def _table(rows: Sequence[Row]) -> str:
    return _HEAD + "".join(
        f"| {row.what.removesuffix(', interpreted')} | {row.against} | {_short(row.ratio)} | {_goal(row)} "
        f"| {_short(row.ours)} | {_short(row.theirs)} | {row.unit} | {row.peak_memory_bytes / 1024**2:.0f} MiB |\n"
        for row in rows
    )


def _goal(row: Row) -> str:
    """Return the cells for the goal and for whether it holds."""
    return f"{row.goal:g} | {'yes' if row.holds else '**no**'}" if row.goal else "|"


def _short(figure: float) -> str:
    """Write a number with three digits, and without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(abs(figure)))) if figure else 0
    return f"{figure:.{digits}f}"


def write_page(page: Path, text: str, start_mark: str = START, end_mark: str = END) -> None:
    """Put text between two marks of a page.

    Raises:
        ValueError: the page lacks them.
    """
    before, start, rest = page.read_text("utf-8").partition(start_mark)
    _, end, after = rest.partition(end_mark)
    if not start or not end:
        raise ValueError(f"{page} has no place for the figures")
    page.write_text(f"{before}{start}\n{text}\n{end}{after}", "utf-8")


def picture(rows: Sequence[Row]) -> str:
    """Draw a bar for each row that has a goal: from the goal, one step to the right for twice as good."""
    wanted = [row for row in rows if row.goal]
    low, high = _OCTAVES
    goal_x = _LABEL_WIDTH - low * _OCTAVE_WIDTH
    width, height = goal_x + high * _OCTAVE_WIDTH + 20, (len(wanted) + 2) * _LINE_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="font:12px sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for octave in range(low, high + 1):
        x = goal_x + octave * _OCTAVE_WIDTH
        label = "goal" if octave == 0 else f"{2.0**octave:g}x"
        parts.append(f'<path d="M{x} {_LINE_HEIGHT}V{height}" stroke="{"black" if octave == 0 else "lightgray"}"/>')
        parts.append(f'<text x="{x}" y="13" text-anchor="middle">{label}</text>')
    for line, row in enumerate(wanted, 1):
        top = line * _LINE_HEIGHT
        octaves = min(max(math.log2(row.ratio / row.goal), low), high)
        left, right = sorted((goal_x, goal_x + octaves * _OCTAVE_WIDTH))
        color = "#2a7" if row.holds else "#c33"
        label = html.escape(f"{row.what} / {row.against}")
        parts.append(f'<text x="{_LABEL_WIDTH - 6}" y="{top + 13}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="{left:.0f}" y="{top + 3}" width="{right - left:.0f}" height="12" fill="{color}"/>')
    return "\n".join([*parts, "</svg>\n"])
