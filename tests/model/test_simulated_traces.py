# SPDX-License-Identifier: Apache-2.0
"""What simulated replicas do is what the model allows: traces of the real core are replayed in it."""

import pytest

from tests.model.refinement import NotInTheModelError, RefinementCheck, replay
from tests.model.simulated_traces import TracedSimulation

SCHEDULE_MS = 10_000


def replayed(seed: int) -> RefinementCheck:
    """Replay the trace of a seed."""
    traced = TracedSimulation(seed)
    events = traced.run(SCHEDULE_MS)
    return replay(events, traced.count, (1 << traced.simulation.plan.voters) - 1)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.slow)], ids=["8", "100"])
def test_traces_of_the_simulator_are_behaviours_of_the_model(seeds: range) -> None:
    """Ten seconds with faults each: every event is some steps of the model, and records are committed."""
    committed = [max(replica.high_watermark for replica in replayed(seed).replicas) for seed in seeds]
    assert sum(end > 10 for end in committed) > len(seeds) // 2


def test_a_trace_with_a_high_watermark_too_high_is_refused() -> None:
    """The events of a simulation, but the last rise of a leader's high watermark goes one entry too far."""
    traced = TracedSimulation(2)
    events = traced.run(SCHEDULE_MS)
    voters = (1 << traced.simulation.plan.voters) - 1
    last = max(index for index, event in enumerate(events) if event.view.high_watermark)
    wrong = events[last]._replace(view=events[last].view._replace(high_watermark=len(events[last].view.log) + 1))
    with pytest.raises(NotInTheModelError):
        replay([*events[:last], wrong], traced.count, voters)
