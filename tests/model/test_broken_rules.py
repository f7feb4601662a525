# SPDX-License-Identifier: Apache-2.0
"""Each rule of the protocol matters, and each invariant sees something: the model's own kill matrix."""

import ast
from pathlib import Path

import pytest

from tests.model.broken_rules import BROKEN_RULES, BrokenRule
from tests.model.counterexamples import path_text
from tests.model.explorer import explore
from tests.model.properties import INVARIANTS
from tests.model.protocol import Protocol
from tests.model.refinement import NotInTheModelError, behaviour_events, replay
from tests.model.table import read_rules


def as_parameter(broken: BrokenRule) -> object:
    """Name it, and mark the few that need more than some tenths of a second."""
    marks = [pytest.mark.slow] if broken.is_deep else []
    return pytest.param(broken, id=f"{broken.rule}-{broken.invariant}".replace(" ", "_"), marks=marks)


@pytest.mark.parametrize("broken", [as_parameter(broken) for broken in BROKEN_RULES])
def test_a_broken_rule_breaks_its_invariant(broken: BrokenRule) -> None:
    """There is a counterexample, as short as the document says; in as many steps the sound protocol breaks nothing.

    The refinement check refuses the trace of the counterexample.
    """
    protocol = Protocol(broken.bounds, frozenset([broken.rule]))
    found = explore(protocol, invariants=[broken.invariant])
    assert found.fault == broken.invariant
    assert len(found.path) == found.depth == read_rules()[broken.rule, broken.invariant]
    with pytest.raises(NotInTheModelError):
        replay(behaviour_events(protocol, found.path), broken.bounds.replicas, broken.bounds.initial_voters)
    sound = explore(Protocol(broken.bounds), most_depth=found.depth)
    assert (sound.fault, sound.path) == (None, ())


def test_every_invariant_is_broken_by_a_rule() -> None:
    """An invariant that nothing breaks may see nothing."""
    assert {broken.invariant for broken in BROKEN_RULES} == set(INVARIANTS)


def test_every_rule_that_the_model_can_break_is_in_the_table() -> None:
    """The steps of the model name the rules that may be broken in them: each has its row, and no row names another."""
    named = set()
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Compare(left=ast.Constant(str(rule)), comparators=[ast.Name("broken")]):
                    named.add(rule)
    assert named == {broken.rule for broken in BROKEN_RULES}
    assert set(read_rules()) == {(broken.rule, broken.invariant) for broken in BROKEN_RULES}


def test_a_counterexample_is_printed_step_by_step() -> None:
    """Two replicas that elect by half: each step says who does what, and what it then is."""
    broken = BROKEN_RULES[0]
    protocol = Protocol(broken.bounds, frozenset([broken.rule]))
    assert path_text(protocol, explore(protocol).path).splitlines() == [
        "  1. 0 stands in epoch 1",
        "       replica 0: Candidate, epoch 1, voted for 0, log [], high watermark 0",
        "  2. 1 stands in epoch 1",
        "       replica 1: Candidate, epoch 1, voted for 1, log [], high watermark 0",
        "  3. 0 leads epoch 1",
        "       replica 0: Leader, epoch 1, voted for 0, log [1:leader], high watermark 0",
        "  4. 1 leads epoch 1",
        "       replica 1: Leader, epoch 1, voted for 1, log [1:leader], high watermark 0",
        "     at the end",
        "       replica 0: Leader, epoch 1, voted for 0, log [1:leader], high watermark 0",
        "       replica 1: Leader, epoch 1, voted for 1, log [1:leader], high watermark 0",
        "       committed: []",
    ]
