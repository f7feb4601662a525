# SPDX-License-Identifier: Apache-2.0
"""Playing a scenario: running its steps against a world, comparing what they print, or recording it."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from tests.scenarios.scenario_text import Comment, Scenario, ScenarioError, Step, normalized_output, parse, write
from tests.scenarios.world import CommandError, World

RECORD_OPTION: Final = "--record-scenarios"
"""The option of pytest that rewrites expected outputs."""


@attrs.define
class ScenarioMismatch(AssertionError):  # noqa: N818 - pytest shows an AssertionError as a failure
    """Steps that print something else than their file says."""

    differences: tuple[str, ...]

    def __str__(self) -> str:
        advice = f"Run pytest with {RECORD_OPTION} if the new output is right, and review the diff."
        return "\n\n".join([*self.differences, advice])


def play(scenario: Scenario, world: World) -> Scenario:
    """Run all steps against a world, close it, and return the scenario with the outputs that it had.

    Raises:
        ScenarioError: a step cannot be run as it is written.
        Exception: an error that the world does not expect; a note names the step.
    """

    def played(block: Comment | Step) -> Comment | Step:
        if isinstance(block, Comment):
            return block
        try:
            return attrs.evolve(block, output=normalized_output(world.run(block)))
        except CommandError as error:
            raise ScenarioError(scenario.path, block.line, f"{error}") from error
        except Exception as error:
            error.add_note(f"{scenario.path}:{block.line}: {block.command}")
            raise

    try:
        return Scenario(scenario.path, tuple(map(played, scenario.blocks)))
    finally:
        world.close()


def check(scenario: Scenario, world: World) -> None:
    """Play a scenario, and compare.

    Raises:
        ScenarioMismatch: a step prints something else than its file says.
        ScenarioError: as for ``play``.
    """
    played = play(scenario, world)
    differences = tuple(
        _difference(scenario.path, expected, actual)
        for expected, actual in zip(scenario.steps, played.steps, strict=True)
        if expected.output != actual.output
    )
    if differences:
        raise ScenarioMismatch(differences)


def _difference(path: str, expected: Step, actual: Step) -> str:
    lines = difflib.ndiff(expected.output.split("\n"), actual.output.split("\n"))
    shown = [line.rstrip() for line in lines if not line.startswith("?")]
    return "\n".join([f"{path}:{expected.line}: {expected.command}", "(- expected, + actual)", *shown])


def record(path: Path, make_world: Callable[[], World]) -> bool:
    """Play a scenario file, and write the outputs that it had into it.

    Returns:
        Whether the file has changed.
    """
    before = path.read_text("utf-8")
    after = write(play(parse(before, path.name), make_world()))
    path.write_text(after, "utf-8")
    return after != before


def refusal_to_record(environment: Mapping[str, str]) -> str | None:
    """Return why nothing may be recorded here, or None: CI must compare with what was reviewed."""
    if environment.get("CI"):
        return f"{RECORD_OPTION} rewrites what tests compare with, so it is refused where CI is set"
    return None
