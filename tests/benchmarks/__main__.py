# SPDX-License-Identifier: Apache-2.0
"""Measures raftlog and its peers in one run: ``make bench``, ``make bench-quick``, or ``make bench-spark``."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.benchmarks import machine, report
from tests.benchmarks.figures import Figures
from tests.benchmarks.measure import MODES, Comparison, Row, medians
from tests.benchmarks.operations import Worker
from tests.benchmarks.works import FULL, QUICK, SPARK, Sizes
from tests.checkout import ROOT
from tests.kafka import dump_tool

_RESULTS = ROOT / "benchmarks" / "results.json"
_PAGE = ROOT / "docs" / "performance.md"
_PICTURE = ROOT / "docs" / "performance.svg"


def main() -> None:
    """Measure everything, and write it down."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small inputs, fewer rounds, no Java, docs/ as it is")
    parser.add_argument("--spark", action="store_true", help="what runs on Spark, and nothing else")
    parser.add_argument("--only", default="", metavar="ID", help="only rows whose id starts so, docs/ as it is")
    options = parser.parse_args()
    if options.spark:
        _measure_spark(options)
    else:
        _measure(options)


def _measure(options: argparse.Namespace) -> None:
    """Measure everything but what runs on Spark."""
    sizes = QUICK if options.quick else FULL
    kept = report.results_without(_RESULTS, lambda row: not row.startswith(SPARK))
    with_java = not options.quick and _has_java()
    rows = []
    with tempfile.TemporaryDirectory() as folder, _figures(Path(folder), sizes) as figures:
        limits = _limits(figures, sizes)
        for row in _rows(figures.comparisons(options.only, with_java=with_java), sizes.rounds):
            rows.append(row)
            # Each time, so that a run that is interrupted keeps what it has.
            report.write_results(_RESULTS, machine.name(), limits, rows, kept)
    text = report.tables(machine.name(), limits, rows)
    if options.quick or options.only:
        print(text)
    else:
        report.write_page(_PAGE, f"{text}\n{report.PICTURE}")
        _PICTURE.write_text(report.picture(rows), "utf-8")


def _measure_spark(options: argparse.Namespace) -> None:
    """Measure what runs on Spark."""
    from tests.benchmarks import spark_figures

    sizes = spark_figures.QUICK if options.quick else spark_figures.FULL
    kept = report.results_without(_RESULTS, lambda row: row.startswith(SPARK))
    rows = []
    with tempfile.TemporaryDirectory() as folder, spark_figures.SparkFigures(Path(folder), sizes) as figures:
        for row in _rows(figures.comparisons(options.only), sizes.rounds):
            rows.append(row)
            report.write_results(_RESULTS, machine.name(), {}, rows, kept)
        text = f"{report.spark_table(machine.name(), rows)}\n{spark_figures.plan(rows, figures.start_s())}"
    if options.quick or options.only:
        print(text)
    else:
        report.write_page(_PAGE, text, report.SPARK_START, report.SPARK_END)


def _has_java() -> bool:
    missing = dump_tool.missing_programs()
    if missing:
        _say(f"without kafka-dump-log, as these are not installed: {' '.join(missing)}")
    return not missing


@contextlib.contextmanager
def _figures(folder: Path, sizes: Sizes) -> Iterator[Figures]:
    with contextlib.ExitStack() as stack:
        yield Figures(folder, {mode: stack.enter_context(Worker(folder, mode)) for mode in MODES}, sizes)


def _limits(figures: Figures, sizes: Sizes) -> dict[str, tuple[float, str]]:
    """Return the machine's limits with their units."""
    limits = figures.limits()
    measured = medians({name: contender for name, (contender, _) in limits.items()}, sizes.rounds)
    return {name: (measured[name], unit) for name, (_, unit) in limits.items()}


def _rows(comparisons: Iterable[Comparison], rounds: int) -> Iterator[Row]:
    """Yield all rows as they are measured, and say what they are."""
    start = time.monotonic()
    for comparison in comparisons:
        _say(f"{time.monotonic() - start:4.0f} s  {comparison.id} ...")
        for row in comparison.rows(rounds):
            verdict = f" of {row.goal:g}x{'' if row.holds else ', FALLS SHORT'}" if row.goal else ""
            _say(f"        {row.id}: {row.ratio:.3g}x{verdict}, {row.ours:.4g} to {row.theirs:.4g} {row.unit}")
            yield row


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
