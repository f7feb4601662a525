# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule and takes its story down."""

import attrs

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.runs.schedule import Schedule, replay
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.story import Story


@attrs.frozen
class ToldRun:
    """A run with its story.

    Attributes:
        story: what happened.
        outcome: of the run.
        replicas: ids of all replicas, in order.
    """

    story: Story
    outcome: ScheduleOutcome
    replicas: tuple[int, ...]


def tell(schedule: Schedule, end_ms: int | None = None) -> ToldRun:
    """Run a schedule, as ``replay`` does, and take its story down."""
    story, replicas = Story(), list[int]()

    def watch(simulation: Simulation) -> None:
        simulation.timeline.story = story
        replicas.extend(simulation.machines)

    _, outcome = replay(schedule, end_ms, watch)
    return ToldRun(story, outcome, tuple(replicas))
