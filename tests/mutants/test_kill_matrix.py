# SPDX-License-Identifier: Apache-2.0
"""No mutant survives the default tier: what ``make kill-matrix`` prints, as tests."""

from pathlib import Path

import pytest

from tests.mutants import kill_matrix
from tests.mutants.catalogue import MUTANTS
from tests.mutants.kernel_edits import EDITS
from tests.mutants.kill_matrix import Verdict, judge, run_tests
from tests.mutants.of_kernel import planted_kernel
from tests.mutants.planting import Mutant
from tests.records.built_kernel import VARIABLE
from tests.records.kernel_forms import COMPILED

ONE_OF = 6
"""Of so many killers. The default tier runs all; here it matters that none fails in the processes of the matrix."""
HARMLESS = Mutant("none", "nothing", "nowhere", lambda: None, ("tests/test_offsets.py",))


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed(name: str) -> None:
    """A test that is named beside the mutant fails with it."""
    if MUTANTS[name].needs_compiler and COMPILED is None:
        pytest.skip("the kernel is not compiled: no compiler?")
    verdict = judge(MUTANTS[name])
    assert verdict.killer is not None, verdict.problem or f"{name} survives: nothing tests that {MUTANTS[name].rule}"


@pytest.mark.slow
def test_the_killers_are_sound() -> None:
    """Without a mutant they pass: none is killed by a test that fails anyway."""
    verdict = run_tests(sorted({test for mutant in MUTANTS.values() for test in mutant.killers})[::ONE_OF])
    assert (verdict.killer, verdict.problem) == (None, None)


@pytest.mark.slow
@pytest.mark.skipif(COMPILED is None, reason="the kernel is not compiled: no compiler?")
def test_the_killers_of_kernels_are_sound() -> None:
    """The kernel into which all errors were built has none unless one is chosen: all of its killers pass."""
    killers = sorted({killer for edit in EDITS for killer in edit.killers})
    verdict = run_tests(killers, more={VARIABLE: planted_kernel()})
    assert (verdict.killer, verdict.problem) == (None, None)


@pytest.mark.slow
def test_surviving_records_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A mutant that changes nothing survives, a missing test kills none, and both are a failure."""
    monkeypatch.setattr(kill_matrix, "VARIABLE", "RAFTLOG_NO_MUTANT")
    monkeypatch.setitem(MUTANTS, "none", HARMLESS)
    assert kill_matrix.main(["none"]) == 1
    assert "1 survive: none" in capsys.readouterr().out
    verdict = run_tests(["tests/test_offsets.py::test_that_is_not_there"])
    assert verdict.killer is None
    assert verdict.problem is not None


@pytest.mark.slow
@pytest.mark.parametrize(("raised", "is_killed"), [("TypeError", False), ("AttributeError", False), ("KeyError", True)])
def test_a_mutant_that_crashes_was_not_killed(tmp_path: Path, raised: str, is_killed: bool) -> None:
    """A mutant that no longer fits the code around it shows nothing of the tests; without one, a test fails for it."""
    test = tmp_path / "test_x.py"
    test.write_text(f"def test_y():\n    raise {raised}('x')\n")
    verdict = run_tests([str(test)], "K21-crc")
    assert (verdict.killer is not None) == is_killed
    assert is_killed or raised in (verdict.problem or "")
    assert run_tests([str(test)]).killer is not None


def test_a_verdict_is_a_line() -> None:
    """A line has the mutant's name, the time, and its killer, if any."""
    assert str(Verdict("K1", "tests/test_x.py::test_y", 1.25)).split() == [
        "K1",
        "1.2",
        "s",
        "killed",
        "by",
        "tests/test_x.py::test_y",
    ]
    assert str(Verdict("K1", None, 1.0)).endswith("SURVIVED")


def test_an_unknown_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    """Naming an unknown mutant is an error that lists the known ones."""
    with pytest.raises(SystemExit):
        kill_matrix.main(["K0"])
    assert "K21-crc" in capsys.readouterr().err
