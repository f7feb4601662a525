# SPDX-License-Identifier: Apache-2.0
"""Playing scenarios: a recording passes, a wrong expectation fails, and CI never records."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenarios.playing import RECORD_OPTION, ScenarioMismatch, check, play, record, refusal_to_record
from tests.scenarios.scenario_text import Scenario, ScenarioError, Step, parse, write
from tests.scenarios.world import InputLines, World, command

TEXT = """\
# A counter.

add 1
----
counter: 1

# Twice as much.
add 3 4
----
counter: 8
"""


class Counter(World):
    """Counts."""

    def __init__(self) -> None:
        self.value = 0
        self.times_closed = 0

    def close(self) -> None:
        self.times_closed += 1

    @command
    def add(self, *numbers: int) -> str:
        self.value += sum(numbers)
        return f"counter: {self.value}"

    @command
    def echo(self, lines: InputLines) -> str:
        return "\n".join(lines).replace("(space)", " ").replace("(line)", "\n")

    @command
    def fail(self) -> str:
        raise ZeroDivisionError


_steps = st.builds(
    Step,
    st.sampled_from(["add 1", "add 2 3", "add -4"]) | st.just("echo"),
    output=st.sampled_from(["", "counter: 1", "wrong\n\nwrong"]),
) | st.builds(
    Step,
    st.just("echo"),
    st.lists(st.sampled_from(["a", "(line)", "b(space)", "(line)(line)c"]), min_size=1, max_size=3).map(tuple),
)


@given(st.lists(_steps, min_size=1, max_size=6))
def test_a_recording_passes(steps: list[Step]) -> None:
    """A recorded text is read back, and passes, whatever the outputs were before."""
    written = write(play(Scenario("x", tuple(steps)), Counter()))
    check(parse(written), Counter())
    assert write(play(parse(written), Counter())) == written


def test_a_right_expectation_passes() -> None:
    """A scenario whose steps print what it says passes."""
    check(parse(TEXT), Counter())


def test_a_wrong_expectation_fails_and_names_file_and_line() -> None:
    """Each step that prints something else is shown with its place, and with both outputs."""
    wrong = TEXT.replace("counter: 8", "counter: 9")
    with pytest.raises(ScenarioMismatch) as caught:
        check(parse(wrong, "counters/x.txt"), Counter())
    assert str(caught.value).startswith(
        "counters/x.txt:8: add 3 4\n(- expected, + actual)\n- counter: 9\n+ counter: 8\n\n"
    )
    assert RECORD_OPTION in str(caught.value)


def test_recording_changes_outputs_alone(tmp_path: Path) -> None:
    """A wrong output is replaced; comments and commands stay; a second recording changes nothing."""
    path = tmp_path / "x.txt"
    path.write_text(TEXT.replace("counter: 1", "wrong"))
    assert record(path, Counter)
    assert path.read_text() == TEXT
    assert not record(path, Counter)


def test_a_step_that_cannot_run_is_named_by_file_and_line() -> None:
    """An unknown command is an error of the scenario, at its line."""
    with pytest.raises(ScenarioError, match=r"^x.txt:3: unknown command 'sub'; there are add, echo, fail$"):
        play(parse(TEXT.replace("add 1", "sub 1"), "x.txt"), Counter())


def test_a_bug_is_raised_with_its_step() -> None:
    """An error that the world does not expect is not output: it fails the test, with a note that names the step."""
    counter = Counter()
    with pytest.raises(ZeroDivisionError) as caught:
        play(parse("fail\n----\n", "x.txt"), counter)
    assert caught.value.__notes__ == ["x.txt:1: fail"]
    assert counter.times_closed == 1


def test_the_world_is_closed_after_the_last_step() -> None:
    """A world is closed once."""
    counter = Counter()
    play(parse(TEXT), counter)
    assert counter.times_closed == 1


def test_nothing_is_recorded_under_ci() -> None:
    """Where CI is set the option is refused."""
    assert refusal_to_record({}) is None
    assert RECORD_OPTION in (refusal_to_record({"CI": "true"}) or "")


def test_pytest_refuses_to_record_under_ci(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest itself asks: a run with the option ends before any test where CI is set."""
    (plugin,) = (each for each in pytestconfig.pluginmanager.get_plugins() if getattr(each, "refusal_to_record", None))
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(pytestconfig.option, "record_scenarios", True)
    with pytest.raises(pytest.UsageError, match="refused where CI is set"):
        plugin.pytest_configure(pytestconfig)
