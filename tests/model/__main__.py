# SPDX-License-Identifier: Apache-2.0
"""Explores the model of the protocol, and writes the tables of docs/reliability.md.

Each run is made in a process of its own, so that its memory is its own.
"""

import argparse
import concurrent.futures
import multiprocessing
import sys

from tests.model.broken_rules import BROKEN_RULES
from tests.model.counterexamples import path_text
from tests.model.explorer import explore
from tests.model.making import make_run
from tests.model.protocol import Protocol
from tests.model.runs import RUNS, Run
from tests.model.table import rule_line, write_rules, write_runs


def main() -> int:
    """Make runs, or print the counterexamples of a broken rule; return 1 if an invariant of a run is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("names", nargs="*", help="of runs; without any, all are made and the tables are written")
    parser.add_argument("--broken", metavar="WORDS", help="print counterexamples of broken rules")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    if given.broken is not None:
        return print_counterexamples(given.broken)
    runs = [run for run in RUNS if not given.names or run.bounds.name in given.names]
    lines, is_sound = make_runs(runs, given.processes)
    if not given.names:
        write_runs(lines)
        write_rules(rule_lines())
    return 0 if is_sound else 1


def make_runs(runs: list[Run], processes: int) -> tuple[list[str], bool]:
    """Return the rows of runs, and whether they were complete, with no invariant broken."""
    context = multiprocessing.get_context("forkserver")
    lines, is_sound = [], True
    with concurrent.futures.ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        for run, (line, is_right) in zip(runs, pool.map(make_run, runs), strict=True):
            print(line, flush=True)
            lines.append(line)
            is_sound &= is_right
            if not is_right:
                print(f"{run.bounds.name}: stopped, or an invariant is broken", flush=True)
    return lines, is_sound


def rule_lines() -> list[str]:
    """Return the rows of all broken rules."""
    lines = []
    for broken in BROKEN_RULES:
        found = explore(Protocol(broken.bounds, frozenset([broken.rule])), invariants=[broken.invariant])
        lines.append(rule_line(broken, len(found.path)))
    return lines


def print_counterexamples(words: str) -> int:
    """Print the shortest way from each broken rule to its broken invariant."""
    for broken in BROKEN_RULES:
        if words in broken.rule:
            protocol = Protocol(broken.bounds, frozenset([broken.rule]))
            found = explore(protocol, invariants=[broken.invariant])
            print(f"If {broken.rule}, then this fails: {broken.invariant}. {broken.bounds}, {found.states:,} states.")
            print(path_text(protocol, found.path), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
