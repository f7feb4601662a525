# SPDX-License-Identifier: Apache-2.0
"""Schedules hold all invariants, are replayed exactly by their seeds, and find the bugs that they should."""

import ast
import os
import random
import re
import subprocess
import sys

import attrs
import pytest

from raftlog.testing.simulator.checks.decoded import values_in
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import ReplayedChoices
from raftlog.testing.simulator.fault_plan import FaultPlan, draw_fault_plan
from raftlog.testing.simulator.runs import schedule
from raftlog.testing.simulator.runs.campaign import Totals
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from raftlog.tools.simulate.outcomes import outcomes
from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.mutants.planting import Mutant
from tests.testing.simulator import run
from tests.testing.simulator.killer_seeds import KILLERS, Killer, run_killer
from tests.testing.simulator.planted_bugs import BUGS
from tests.testing.simulator.run import run_seed

TRACES = "from tests.testing.simulator.test_simulation import traces; print(traces({processes}))"
"""Prints what ``traces`` returns."""
TRACED_MS = 15_000


def test_some_schedules() -> None:
    """No invariant is violated, and the quorum recovers after each schedule."""
    totals = Totals()
    for token, outcome in outcomes(range(8), 1, schedule.run_seed):
        totals.add(token, outcome)
    assert totals.violations == {}
    assert totals.counting >= 6


def trace(token: Token) -> int:
    """Return the trace of the first quarter of a schedule."""
    return schedule.run_seed(token, end_ms=TRACED_MS).trace


def traces(processes: int, count: int = 50) -> list[int]:
    """Return the traces of some seeds, run in so many processes."""
    return [each for _, each in outcomes(range(count), processes, trace)]


@pytest.mark.slow
def test_seeds_are_replayed_exactly() -> None:
    """Other processes, with other hashes of texts, do the same with 50 seeds, event by event; some are on files."""
    printed = []
    for hash_seed, processes in (("0", 1), ("4711", 2)):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", TRACES.format(processes=processes)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_S)
        printed.append(done.stdout.strip())
    assert printed == [str(traces(1))] * 2


def committed_values(plan: FaultPlan) -> list[bytes]:
    """Return the values that a run without faults commits, in order."""
    simulation, found = Simulation(ReplayedChoices({}), plan), list[bytes]()
    assert simulation.run().violation is None
    history = simulation.history
    for batch in history.committed:
        content = history.content_of(batch)
        if not content.is_control:
            found += [value for _, value in values_in(content)]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_log_in_files_and_its_model_commit_the_same(seed: int) -> None:
    """The same values in the same order. Times differ: a log in files syncs the first batch of an epoch, and rolls."""
    plan = ScheduleOptions(faults=frozenset()).applied(draw_fault_plan(random.Random(seed)))
    one, other = (committed_values(attrs.evolve(plan, is_on_files=is_on_files)) for is_on_files in (False, True))
    shared = min(len(one), len(other))
    assert one[:shared] == other[:shared]
    assert max(len(one), len(other)) - shared <= 5  # The last ones are under way at the end.
    assert shared >= 100


def test_seeds_differ() -> None:
    """Another seed is another schedule."""
    assert len({run_seed(each).trace for each in range(3)}) == 3


def test_a_violation_is_printed_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that replays the seed is printed, and the exit code is 1; without a violation it is 0."""
    monkeypatch.setattr(run, "run_seed", lambda seed: run_seed(seed) if seed else broken())
    assert run.main(["--seeds", "0..2", "--processes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "python -m tests.testing.simulator.run --seeds 0..1 --processes 1" in printed
    assert "1 violations" in printed
    assert run.main(["--seeds", "1", "--processes", "1"]) == 0


def broken() -> ScheduleOutcome:
    """Return the outcome of a schedule with a violation."""
    violation = ViolationError("test", "something is wrong")
    return attrs.evolve(run_seed(0), violation=violation)


@pytest.mark.slow
@pytest.mark.longest
def test_many_schedules() -> None:
    """No invariant is violated in 500 schedules, of which nine in ten count."""
    command = [sys.executable, "-m", "tests.testing.simulator.run", "--seeds", "0..500", "--processes", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counting = re.search(r"^(\d+) schedules count; 0 violations$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert counting is not None
    assert int(counting[1]) >= 450


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
    monkeypatch.setattr(run, "run_seed", lambda _: attrs.evolve(run_seed(0), violation=violation))
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
