# SPDX-License-Identifier: Apache-2.0
"""What simulated replicas do is what the model allows: traces of the real core are replayed in it."""

import subprocess
import sys

import pytest

from tests.checkout import ROOT
from tests.model.refinement import NotInTheModelError, replay
from tests.model.replays import SCHEDULE_MS, replayed
from tests.model.simulated_traces import TracedSimulation

PER_TEST = 48
BUGS_IN_TRACES = (
    ("any-candidate", 10),
    ("R2", 10),
    ("K1-core", 10),
    ("K9", 50),
    ("K9-resigns", 50),
)
"""Bugs of the core, and the seeds from 0 on among which is one whose trace is refused. The last two concern a leader
that is removed: it counts itself, and does not resign."""


@pytest.mark.parametrize(
    "seeds",
    [
        range(8),
        *(pytest.param(range(first, first + PER_TEST), marks=pytest.mark.slow) for first in range(8, 200, PER_TEST)),
    ],
    ids=lambda seeds: f"{seeds.start}..{seeds.stop}",
)
def test_traces_of_the_simulator_are_behaviours_of_the_model(seeds: range) -> None:
    """Ten seconds with faults each: every event is some steps of the model. Records are committed, voters change."""
    traces = [replayed(seed) for seed in seeds]
    assert [each.refusal for each in traces if each.refusal is not None] == []
    assert sum(each.committed > 10 for each in traces) > len(traces) // 2
    assert sum(each.voter_changes > 0 for each in traces) >= len(traces) // 16
    assert sum(each.snapshots > 0 for each in traces) >= len(traces) // 16


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "seeds"), BUGS_IN_TRACES)
def test_traces_of_a_core_with_a_bug_are_refused(bug: str, seeds: int) -> None:
    """The simulator's own checks are off: the model alone finds the bug, in one of the first seeds."""
    command = [sys.executable, "-m", "tests.model.replays", "--seeds", f"0..{seeds}", "--plant", bug]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "traces refused" in found.stdout


def test_a_trace_with_a_high_watermark_too_high_is_refused() -> None:
    """The events of a simulation, but the last rise of a leader's high watermark goes one entry too far."""
    traced = TracedSimulation(2)
    events = traced.run(SCHEDULE_MS)
    last = max(index for index, event in enumerate(events) if event.view.high_watermark)
    wrong = events[last]._replace(view=events[last].view._replace(high_watermark=len(events[last].view.log) + 1))
    with pytest.raises(NotInTheModelError):
        replay([*events[:last], wrong], traced.count, traced.first_voters)
