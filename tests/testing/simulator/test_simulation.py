# SPDX-License-Identifier: Apache-2.0
"""Schedules hold all invariants, are replayed exactly by their seeds, and find the bugs that they should."""

import ast
import re
import subprocess
import sys

import attrs
import pytest

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs import schedule
from raftlog.testing.simulator.runs.campaign import Totals
from raftlog.testing.simulator.runs.schedule import Token, plan_of
from raftlog.testing.simulator.violation import ViolationError
from tests.checkout import ROOT
from tests.mutants.planting import Mutant
from tests.testing.simulator import determinism, run
from tests.testing.simulator.killer_seeds import KILLERS, Killer, run_killer
from tests.testing.simulator.known_schedules import outcome_of
from tests.testing.simulator.many_schedules import outcomes
from tests.testing.simulator.planted_bugs import BUGS

SCHEDULES, OF_A_PART = 500, 50
"""How many are run before a change lands, and how many by one test: one of all is ended as a hang on a slow machine."""


def test_some_schedules() -> None:
    """No invariant is violated, and the quorum recovers after each schedule."""
    totals = Totals()
    for token, outcome in outcomes(range(5), 1, schedule.run_seed):
        totals.add(token, outcome)
    assert totals.violations == {}
    assert totals.counting >= 4


@pytest.mark.slow
def test_seeds_are_replayed_exactly() -> None:
    """Other processes, with other hashes of texts, do the same in whole schedules; some are on files."""
    seeds = range(1, 4)
    assert 1 <= sum(plan_of(Token(each)).is_on_files for each in seeds) <= 2
    assert list(determinism.differing_processes(seeds)) == []


def test_a_difference_between_processes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its seed: what a schedule does may not depend on the hash of a text."""
    found = {"0": [[1, 2, 3, 4], [5, 6, 7, 8]], "4711": [[1, 2, 3, 4], [5, 0, 7, 8]]}
    monkeypatch.setattr(determinism, "elsewhere", lambda _, hash_seed, __: found[hash_seed])
    assert list(determinism.differing_processes(range(7, 9))) == ["seed 8: [5, 6, 7, 8] and [5, 0, 7, 8]"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 8))])
def test_the_log_in_files_and_its_model_commit_the_same(seed: int) -> None:
    """The same values in the same order, and the same states. Times differ, so that traces cannot be equal."""
    assert determinism.difference_of_storages(seed) is None


def test_a_difference_between_storages_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a value, in a state, or in the number of records; and two runs that have too few of them are no proof."""
    right = determinism.CalmRun([b"%d" % each for each in range(120)], list(range(120)), 1)
    for wrong, words in (
        (attrs.evolve(right, values=[*right.values[:99], b"x", *right.values[100:]]), "record 99 or the state"),
        (attrs.evolve(right, states=[*right.states[:119], -1]), "record 119 or the state"),
        (attrs.evolve(right, values=right.values[:114], states=right.states[:114]), "120 records on the model, 114"),
    ):
        runs = {False: right, True: wrong}
        monkeypatch.setattr(determinism, "calm_run", lambda _, is_on_files, runs=runs: runs[is_on_files])
        assert words in str(determinism.difference_of_storages(0))
    few = determinism.CalmRun(right.values[:49], right.states[:49], 1)
    monkeypatch.setattr(determinism, "calm_run", lambda _, is_on_files: few)
    assert determinism.difference_of_storages(0) == "seed 0: only 49 records"


def test_seeds_differ() -> None:
    """Another seed is another schedule."""
    assert len({outcome_of(each).trace for each in range(3)}) == 3


def test_a_violation_is_printed_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that replays the seed is printed, and the exit code is 1; without a violation it is 0."""
    monkeypatch.setattr(run, "run_seed", lambda seed: outcome_of(seed) if seed else broken())
    assert run.main(["--seeds", "0..2", "--processes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "python -m tests.testing.simulator.run --seeds 0..1 --processes 1" in printed
    assert "1 violations" in printed
    assert run.main(["--seeds", "1", "--processes", "1"]) == 0


def broken() -> ScheduleOutcome:
    """Return the outcome of a schedule with a violation."""
    violation = ViolationError("test", "something is wrong")
    return attrs.evolve(outcome_of(0), violation=violation)


@pytest.mark.slow
@pytest.mark.longest
@pytest.mark.parametrize("first", range(0, SCHEDULES, OF_A_PART))
def test_many_schedules(first: int) -> None:
    """No invariant is violated in a part of the 500 schedules, of which four in five count."""
    seeds = f"{first}..{first + OF_A_PART}"
    command = [sys.executable, "-m", "tests.testing.simulator.run", "--seeds", seeds, "--processes", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counting = re.search(r"^(\d+) schedules count; 0 violations$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert counting is not None
    assert int(counting[1]) >= OF_A_PART * 4 // 5


@pytest.mark.slow
@pytest.mark.parametrize("killer", KILLERS, ids=lambda each: f"{each.invariant}-{each.bug}")
def test_an_invariant_finds_a_planted_bug(killer: Killer) -> None:
    """Each invariant finds the bug beside it within so many seeds."""
    done = run_killer(killer)
    assert done.exit_code == 1, f"{killer} finds nothing: {done.printed}"
    assert "1 violations" in done.printed
    if killer.invariant == "no-error":
        raised_in = re.findall(r'^  File "(.*)", line', done.printed, re.MULTILINE)[-1]
        assert "/raftlog/quorum/" in raised_in


@pytest.mark.parametrize(("error", "exit_code"), [("TypeError: too many", 2), ("NameError", 2), ("KeyError: 3", 1)])
def test_a_planted_bug_that_falls_over_by_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: str, exit_code: int
) -> None:
    """It has shown nothing, whichever invariant is asked for: the exit code is 2, and the error is printed."""
    violation = ViolationError("no-error", f"Traceback\n  File\n{error}\n")
    monkeypatch.setattr(run, "run_seed", lambda _: attrs.evolve(outcome_of(0), violation=violation))
    monkeypatch.setitem(BUGS, "none", Mutant("none", "", "", lambda: None, ()))
    arguments = ["--seeds", "0", "--processes", "1", "--plant", "none", "--until", "no-error"]
    assert run.main(arguments) == exit_code
    assert error in capsys.readouterr().out
    if exit_code == 2:
        assert run.main([*arguments[:-1], "recovery"]) == 2


def test_each_planted_bug_has_a_killer() -> None:
    """The table names each bug, and no bug that does not exist."""
    assert {each.bug for each in KILLERS} == set(BUGS)


def test_each_invariant_has_a_killer() -> None:
    """The table names each invariant that the simulator checks: the names that it gives to checks and violations."""
    names: set[str] = set()
    for path in (ROOT / "raftlog/testing/simulator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("check"), args=[_, ast.Constant(str(name)), *_]):
                    names.add(name)
                case ast.Call(func=ast.Name("ViolationError"), args=[ast.Constant(str(name)), *_]):
                    names.add(name)
                case ast.Call(func=ast.Name("check")):
                    pytest.fail(f"{path}, line {node.lineno}: the name of the invariant is no constant")
    assert names == {each.invariant for each in KILLERS}
