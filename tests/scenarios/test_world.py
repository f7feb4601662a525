# SPDX-License-Identifier: Apache-2.0
"""Worlds: arguments are read by their annotations, and what does not fit a command is refused."""

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import SnapshotNotFoundError
from tests.scenarios.scenario_text import Step
from tests.scenarios.world import ArgumentTypes, Command, CommandError, InputLines, World, command


class Parrot(World):
    """Says what it was given."""

    argument_types: ClassVar[ArgumentTypes] = {complex: complex}

    @command
    def conjugate(self, number: complex) -> str:
        return f"{number.conjugate()}"

    @command
    def say_all(
        self, first: int, *others: int, name: str = "nobody", ids: tuple[int, ...] = (), limit: int | None = None
    ) -> str:
        return f"{first} {others} {name} {ids} {limit}"

    @command
    def is_set(self, flag: bool) -> str:
        return f"{flag}"

    @command
    def repeat(self, times: int, lines: InputLines) -> str:
        return "\n".join(lines * times)

    @command
    def fail(self, kind: str) -> str:
        raise SnapshotNotFoundError("none") if kind == "expected" else ZeroDivisionError

    def hidden(self) -> str:
        """No command."""
        return ""


def run(command_line: str, *input_lines: str) -> str:
    """Run a step in a new world."""
    return Parrot().run(Step(command_line, input_lines))


def test_arguments_are_read_by_their_annotations() -> None:
    """Numbers, texts, flags, lists of numbers and defaults arrive as what the method asks for."""
    assert run("say-all 1") == "1 () nobody () None"
    assert run("say-all 1 2 3 name='a b' ids=4,5 limit=6") == "1 (2, 3) a b (4, 5) 6"
    assert run("say-all name=x first=7") == "7 () x () None"
    assert (run("is-set yes"), run("is-set flag=no")) == ("True", "False")


@given(st.integers(), st.lists(st.integers()), st.lists(st.integers(), min_size=1).map(tuple))
def test_all_integers_are_read(first: int, others: list[int], ids: tuple[int, ...]) -> None:
    """Every integer that Python writes is read, negative ones too."""
    words = " ".join(map(str, [first, *others]))
    assert run(f"say-all {words} ids={','.join(map(str, ids))}") == f"{first} {tuple(others)} nobody {ids} None"


def test_a_world_adds_types_of_arguments() -> None:
    """A world says how arguments of its own types are read."""
    assert run("conjugate 1+2j") == "(1-2j)"


def test_input_lines_go_to_the_command() -> None:
    """A command that takes input lines gets them, or none."""
    assert run("repeat 2", "a", "b") == "a\nb\na\nb"
    assert run("repeat 2") == ""


REFUSED = {
    "sai-all 1": "unknown command 'sai-all'; there are conjugate, fail, is-set, repeat, say-all",
    "conjugate one": "number is 'one', which is no complex",
    "hidden": "unknown command 'hidden'",
    "say-all": "missing a required argument: 'first'; the arguments are first, others, name, ids, limit",
    "say-all 1 size=3": "got an unexpected keyword argument 'size'",
    "say-all 1 name=a name=b": "an argument is given twice",
    "say-all 1 first=2": "multiple values for argument 'first'",
    "say-all one": "first is 'one', which is no int",
    "say-all 1 two": "others is 'two', which is no int",
    "say-all 1 ids=1,": r"ids is '1,', which is no tuple",
    "is-set maybe": "flag is 'maybe', which is no bool",
    "is-set yes no": "too many positional arguments; the arguments are flag",
    "say-all 'one": "No closing quotation",
}


@pytest.mark.parametrize("command_line", REFUSED)
def test_input_that_fits_no_command_is_refused(command_line: str) -> None:
    """The error names what is wrong, and what there is instead."""
    with pytest.raises(CommandError, match=REFUSED[command_line]):
        run(command_line)


def test_input_lines_that_a_command_does_not_take_are_refused() -> None:
    """Nothing that a scenario says is ignored."""
    with pytest.raises(CommandError, match="this command takes no input lines"):
        run("say-all 1", "a line")


def test_an_expected_error_is_output_and_any_other_one_is_raised() -> None:
    """Errors of raftlog are part of what a step prints; a bug is not."""
    assert run("fail expected") == "error: SnapshotNotFoundError: none"
    with pytest.raises(ZeroDivisionError):
        run("fail other")


def test_a_parameter_of_another_type_is_refused_where_it_is_defined() -> None:
    """A world whose command no text can call is noticed when it is imported."""

    def method(self: World, ratio: float) -> str:
        return f"{ratio}"

    with pytest.raises(TypeError, match="no argument can be read as the type of ratio"):
        Command.of(method, {})
