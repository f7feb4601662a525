# SPDX-License-Identifier: Apache-2.0
"""The catalogue of mutants says what is there, and planting one does something."""

import ast
import functools
import re
from collections.abc import Callable
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.checkout import ROOT
from tests.mutants.catalogue import MUTANTS
from tests.mutants.kernel_edits import EDITS, KernelEdit, with_all_errors
from tests.mutants.planting import forgiving, instead_of_property, missing, swap
from tests.scenarios.test_scenarios import CASES

BUGS = {f"K{number}" for number in range(1, 35)} | {f"R{number}" for number in range(1, 32)}
"""Bugs K1 to K34 of Kafka, and R1 to R31 of raft systems in general."""

SCENARIOS = Path(__file__).parents[1] / "scenarios"
NAME = re.compile(r"[KRWSM][0-9]*(-[a-z-]+)?")


def killer_of(name: str) -> Any:
    """Return the test, or the module of tests, that pytest knows by a name, with or without parameters."""
    path, *names = name.partition("[")[0].split("::")
    return functools.reduce(getattr, names, import_module(path.removesuffix(".py").replace("/", ".")))


@pytest.mark.parametrize("name", MUTANTS)
def test_killers_are_there(name: str) -> None:
    """Each mutant has killers in the default tier: this test fails if one of them was moved or renamed."""
    assert NAME.fullmatch(name)
    assert MUTANTS[name].killers
    for killer in MUTANTS[name].killers:
        assert "slow" not in {mark.name for mark in getattr(killer_of(killer), "pytestmark", ())}


def test_every_bug_of_the_catalogue_is_planted() -> None:
    """Each has a mutant of its number."""
    planted = {number[0] for name in MUTANTS if (number := re.match("[KR][0-9]+", name))}
    assert planted >= BUGS


def test_scenarios_that_kill_are_there() -> None:
    """A killer that is one scenario names its file."""
    killers = {killer for mutant in MUTANTS.values() for killer in mutant.killers if "::test_scenario[" in killer}
    assert killers
    ids = {case.id for case in CASES}
    assert {killer for killer in killers if killer.partition("[")[2].removesuffix("]") not in ids} == set()


def _bugs_named_by(scenario: Path) -> set[str]:
    """Return the numbers in the comment with which a scenario begins."""
    head = takewhile(lambda line: line.startswith("#"), scenario.read_text("utf-8").splitlines())
    return set(re.findall(r"\b[KR][0-9]+\b", "\n".join(head)))


def test_every_bug_of_the_catalogue_is_replayed_by_a_scenario() -> None:
    """Each is named by a scenario that shows what is right in its place, and no scenario names another number."""
    named = {scenario: _bugs_named_by(scenario) for scenario in SCENARIOS.glob("*/*.txt")}
    assert BUGS - set().union(*named.values()) == set()
    assert {scenario.name: bugs - BUGS for scenario, bugs in named.items() if bugs - BUGS} == {}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_kernel_edits_apply(edit: KernelEdit) -> None:
    """Their original text occurs once in the kernel: this test fails if it was changed, before mutants are planted."""
    source = (ROOT / "records/kernel.py").read_text("utf-8")
    wrong = edit.applied(source, 1)
    assert wrong != source
    with pytest.raises(ValueError, match=edit.name):
        edit.applied(wrong, 2)


def test_a_kernel_has_all_errors_each_for_itself() -> None:
    """They are in different places; each has a number, by which the environment's name for it chooses it."""
    source = (ROOT / "records/kernel.py").read_text("utf-8")
    planted = with_all_errors(source)
    assert ast.parse(planted)
    chosen = re.search(r"_chosen_error = cython.declare\(cython.int, (\(.*\)).index", planted)
    assert chosen is not None
    assert ast.literal_eval(chosen[1]) == ("", *(edit.name for edit in EDITS))
    for number, edit in enumerate(EDITS, start=1):
        assert planted.count(f"{edit.wrong} if _chosen_error == {number} else {edit.right})") == 1
    with pytest.raises(ValueError, match=EDITS[0].name):
        with_all_errors(planted)


class Example:
    """Something to be wrong."""

    def answer(self, question: int) -> int:
        """Give an answer."""
        if question < 0:
            raise ValueError(question)
        return question + 1

    @classmethod
    def name(cls) -> str:
        """Give the name of the class."""
        return cls.__name__


@pytest.fixture(autouse=True)
def undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put right what is planted."""
    for name in ("answer", "name"):
        monkeypatch.setattr(Example, name, vars(Example)[name])


def test_a_method_is_swapped() -> None:
    """The wrong version is in its place, and may call the right one."""
    swap(Example, "answer", lambda right: lambda self, question: right(self, question) + 1)
    assert Example().answer(1) == 3


def test_a_class_method_is_swapped() -> None:
    """It stays one."""
    swap(Example, "name", lambda right: lambda cls: f"no {right(cls)}")
    assert Example.name() == "no Example"


def test_a_function_is_swapped_wherever_it_was_imported() -> None:
    """Also in the modules that have a name of their own for it."""
    owner = SimpleNamespace(killer_of=killer_of)
    right = killer_of
    try:
        swap(owner, "killer_of", lambda _: lambda name: None)
        assert killer_of("no such file") is None
    finally:
        globals()["killer_of"] = right


@pytest.mark.parametrize("make", [missing, lambda owner, name: forgiving(owner, name, ValueError, lambda *_: None)])
def test_a_check_does_nothing(make: Callable[[type, str], Callable[[], None]]) -> None:
    """Nothing is refused any more, once it is planted, and not before."""
    plant = make(Example, "answer")
    with pytest.raises(ValueError, match="-1"):
        Example().answer(-1)
    plant()
    assert Example().answer(-1) is None


@pytest.mark.parametrize("make", [missing, lambda owner, name: instead_of_property(owner, name, lambda _: None)])
def test_a_mutant_whose_target_is_gone_cannot_be_made(make: Callable[[type, str], Callable[[], None]]) -> None:
    """So a target that was renamed is found when the catalogue is imported, and not when the mutant is planted."""
    make(Example, "answer")
    with pytest.raises(LookupError, match="Example has no reply"):
        make(Example, "reply")
