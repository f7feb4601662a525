# SPDX-License-Identifier: Apache-2.0
"""The protocol keeps its invariants within the bounds of every run, and the document says what was visited."""

import concurrent.futures
import multiprocessing
import subprocess
import sys

import attrs
import pytest

from tests.checkout import ROOT
from tests.model.bounds import BUDGETS, Bounds
from tests.model.explorer import Exploration, explore
from tests.model.messages import Answer
from tests.model.protocol import Protocol, State
from tests.model.runs import MOST_MEMORY_BYTES, MOST_STATES, RUNS, Run, Tier
from tests.model.table import read_runs

QUICK = [run for run in RUNS if run.tier is Tier.QUICK]
SLOW = [run for run in RUNS if run.tier is Tier.SLOW]


def assert_is_as_documented(run: Run, found: Exploration) -> None:
    row = read_runs()[run.bounds.name]
    assert (found.fault, found.is_complete) == (None, True)
    assert (found.states, found.depth) == (row.states, row.depth)


@pytest.mark.parametrize("run", QUICK, ids=lambda run: run.bounds.name)
def test_every_state_of_a_quick_run_is_sound(run: Run) -> None:
    """All states within the bounds are visited, none breaks an invariant, and they are as many as the document says."""
    assert_is_as_documented(run, explore(Protocol(run.bounds)))


@pytest.mark.slow
@pytest.mark.parametrize("run", SLOW, ids=lambda run: run.bounds.name)
def test_every_state_of_a_slow_run_is_sound(run: Run) -> None:
    """The same, with the memory of a process that does nothing else, and is limited."""
    context = multiprocessing.get_context("forkserver")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        found = pool.submit(explored, run.bounds).result()
    assert_is_as_documented(run, found)
    assert found.memory_bytes <= MOST_MEMORY_BYTES


def explored(bounds: Bounds) -> Exploration:
    """Explore in another process."""
    return explore(Protocol(bounds))


def test_the_document_has_every_run_and_what_was_stopped_is_not_complete() -> None:
    """A row per run; those that tests make are complete, and have 3 million states at most together."""
    rows = read_runs()
    assert list(rows) == [run.bounds.name for run in RUNS]
    tested = [rows[run.bounds.name] for run in (*QUICK, *SLOW)]
    assert all(row.is_complete for row in tested)
    assert sum(row.states for row in tested) <= MOST_STATES


def test_a_run_is_made_by_its_name() -> None:
    """The command prints the row of the run, as the document has it but for time and memory."""
    command = [sys.executable, "-m", "tests.model", "one"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    name, bounds, tier, states = (part.strip() for part in found.stdout.split("|")[1:5])
    expected = next(run for run in RUNS if run.bounds.name == "one")
    assert (name, bounds, tier) == ("`one`", str(expected.bounds), "make test")
    assert states == f"{read_runs()['one'].states:,}"


def test_every_feature_is_in_a_run_that_tests_make() -> None:
    """Each fault, each size from 1 to 3 and each switch is in a quick or slow run."""
    bounds = [run.bounds for run in (*QUICK, *SLOW)]
    for name in (*BUDGETS, "has_flush", "has_queue", "has_duplicates", "has_pre_vote"):
        assert any(getattr(each, name) for each in bounds), name
    assert {each.voters for each in bounds} == {1, 2, 3}


@pytest.mark.parametrize(
    ("name", "impossible"), [("one", {"changes", "timeouts", "has_duplicates"}), ("two-all", set())]
)
def test_one_and_two_replicas_have_all_features_together(name: str, impossible: set[str]) -> None:
    """Each fault and each switch at once, but for those that need another replica."""
    bounds = next(run.bounds for run in (*QUICK, *SLOW) if run.bounds.name == name)
    features = {*BUDGETS, "has_flush", "has_queue", "has_duplicates", "has_pre_vote"}
    assert {each for each in features if not getattr(bounds, each)} == impossible


def test_a_run_that_is_stopped_early_is_not_complete() -> None:
    """A limit of states or steps, if it is reached, makes a run incomplete; at the exact number it does not."""
    bounds = Bounds("limits", 2, 2, 1)
    whole = explore(Protocol(bounds))
    assert whole.is_complete
    for most_states, is_complete in ((whole.states - 1, False), (whole.states, True)):
        assert explore(Protocol(bounds), most_states=most_states).is_complete is is_complete
    for most_depth, is_complete in ((whole.depth, False), (whole.depth + 1, True)):
        assert explore(Protocol(bounds), most_depth=most_depth).is_complete is is_complete


class KeepsAllMessages(Protocol):
    """The model without the removal of messages, but for answers to fetches that are no longer outstanding."""

    def _is_alive(self, message: int, mover: int | None, replicas: list[int]) -> bool:
        is_answer = isinstance(self.messages.values[message], Answer)
        return super()._is_alive(message, mover, replicas) if is_answer else True


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds("elections", 3, 3, 1),
        Bounds("crash", 2, 2, 2, values=1, crashes=1, has_flush=True),
        Bounds("duplicates", 2, 2, 2, has_duplicates=True, timeouts=1),
        Bounds("change", 2, 1, 2, changes=1),
    ],
    ids=lambda bounds: bounds.name,
)
def test_removing_messages_that_no_longer_matter_changes_no_behaviour(bounds: Bounds) -> None:
    """With all messages kept there are more states, but the replicas come to exactly the same ones."""
    assert reached(Protocol(bounds)) == reached(KeepsAllMessages(bounds))


def reached(protocol: Protocol) -> set[tuple[object, ...]]:
    """Return what all replicas can be at one time, with what happened before."""
    first = protocol.initial()
    visited: set[State] = {first}
    stack = [first]
    while stack:
        for transition in protocol.expand(stack.pop()):
            if transition.state not in visited:
                visited.add(transition.state)
                stack.append(transition.state)
    size = protocol.size
    return {
        (*(protocol.replicas.values[each] for each in state[:size]), protocol.histories.values[state[size]])
        for state in visited
    }


def test_bounds_say_what_they_are() -> None:
    """The text of bounds has each count and each switch that is on."""
    bounds = Bounds("x", 3, 2, 2, values=1, crashes=2, has_flush=True, candidates=(1, 6), entries_per_fetch=1)
    text = "2 + 1 replicas, 2 epochs, 1 values, 2 crashes, flush, 1 entries per fetch, candidates 1/110"
    assert str(bounds) == text
    assert str(attrs.evolve(bounds, has_flush=False, candidates=())) == (
        "2 + 1 replicas, 2 epochs, 1 values, 2 crashes, 1 entries per fetch"
    )
