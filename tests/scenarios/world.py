# SPDX-License-Identifier: Apache-2.0
"""Worlds, which scenarios drive: a world is an object whose commands are methods with typed arguments.

::

    class Counter(World):
        value = 0

        @command
        def add(self, *numbers: int, twice: bool = False) -> str:
            self.value += sum(numbers) * (2 if twice else 1)
            return f"counter: {self.value}"

runs the step ``add 3 4 twice=yes``. The name of a command or argument is the Python name with ``-`` for ``_``. The
annotation says how an argument is read: ``int``, ``str``, ``bool`` (``yes`` or ``no``), ``tuple[int, ...]``
(``1,2,3``), a type that the world adds in ``argument_types``, or one of them with ``| None``. A parameter of type
``InputLines`` gets the step's input lines.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar

import attrs

from raftlog.errors import RaftLogError
from tests.scenarios.scenario_text import Step

_MARK: Final = "_is_scenario_command"
_NAMED: Final = re.compile(r"([a-z][a-z0-9-]*)=(.*)", re.DOTALL)

Method = TypeVar("Method", bound=Callable[..., str])


class CommandError(Exception):
    """A step that its world cannot run: an unknown command, or arguments that do not fit it."""


class InputLines(tuple[str, ...]):
    """The input lines of a step."""

    __slots__ = ()


def command(method: Method) -> Method:
    """Make a method a command. It returns what the step prints."""
    setattr(method, _MARK, True)
    return method


def _read_bool(text: str) -> bool:
    if text not in {"yes", "no"}:
        raise ValueError(text)
    return text == "yes"


def _read_ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


ArgumentTypes = Mapping[object, Callable[[str], object]]
"""How the text of an argument is read, by the annotation of its parameter: a ValueError refuses it."""

_ARGUMENT_TYPES: Final[ArgumentTypes] = {int: int, str: str, bool: _read_bool, tuple[int, ...]: _read_ints}


@attrs.frozen
class Command:
    """A command of a class of worlds.

    Attributes:
        method: to call.
        signature: of the method, without ``self``.
        types: of the parameters, by name.
        lines_parameter: the parameter that gets the input lines, or None.
        argument_types: how arguments are read, by type.
    """

    method: Callable[..., str]
    signature: inspect.Signature
    types: Mapping[str, object]
    lines_parameter: str | None
    argument_types: ArgumentTypes

    @classmethod
    def of(cls, method: Callable[..., str], more_types: ArgumentTypes) -> "Command":
        """Describe a method.

        Args:
            method: of a world.
            more_types: how arguments of the world's own types are read.

        Raises:
            TypeError: a parameter has a type that no argument can be read as.
        """
        hints = {name: _without_none(hint) for name, hint in typing.get_type_hints(method).items()}
        hints = {name: hint for name, hint in hints.items() if name not in {"self", "return"}}
        lines_parameter = next((name for name, hint in hints.items() if hint is InputLines), None)
        argument_types = {**_ARGUMENT_TYPES, **more_types}
        unknown = [name for name, hint in hints.items() if hint not in argument_types and name != lines_parameter]
        if unknown:
            raise TypeError(f"{method.__qualname__}: no argument can be read as the type of {', '.join(unknown)}")
        signature = inspect.signature(method)
        given = [each for name, each in signature.parameters.items() if name not in {"self", lines_parameter}]
        return cls(method, signature.replace(parameters=given), hints, lines_parameter, argument_types)

    def run(self, world: "World", words: list[str], input_lines: tuple[str, ...]) -> str:
        """Call the method with arguments read from words, and return what it prints.

        Raises:
            CommandError: the arguments do not fit.
        """
        matches = [(word, _NAMED.fullmatch(word)) for word in words]
        named = {match[1].replace("-", "_"): match[2] for _, match in matches if match}
        if len(named) < sum(match is not None for _, match in matches):
            raise CommandError("an argument is given twice")
        try:
            bound = self.signature.bind(*(word for word, match in matches if not match), **named)
        except TypeError as error:
            raise CommandError(f"{error}; the arguments are {self._arguments_text()}") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = self._read(name, value)
        if input_lines and self.lines_parameter is None:
            raise CommandError("this command takes no input lines")
        lines = {} if self.lines_parameter is None else {self.lines_parameter: InputLines(input_lines)}
        return self.method(world, *bound.args, **bound.kwargs, **lines)

    def _read(self, name: str, value: Any) -> object:
        if isinstance(value, tuple):
            return tuple(self._read(name, each) for each in value)
        try:
            return self.argument_types[self.types[name]](value)
        except ValueError:
            type_name = getattr(self.types[name], "__name__", str(self.types[name]))
            raise CommandError(f"{_text_name(name)} is {value!r}, which is no {type_name}") from None

    def _arguments_text(self) -> str:
        return ", ".join(map(_text_name, self.signature.parameters)) or "none"


def _without_none(hint: Any) -> object:
    """Return the type of a parameter whose default may be None."""
    if isinstance(hint, types.UnionType):
        hint = next((each for each in typing.get_args(hint) if each is not type(None)), hint)
    return hint


def _text_name(python_name: str) -> str:
    return python_name.replace("_", "-")


class World:
    """An object that a scenario drives, one step after the other.

    Attributes:
        commands: by name.
        argument_types: types of arguments in addition to numbers, texts, flags and lists of numbers.
        expected_errors: errors that a step may end with: they are part of its output. Any other error fails the test.
    """

    commands: ClassVar[Mapping[str, Command]] = {}
    argument_types: ClassVar[ArgumentTypes] = {}
    expected_errors: ClassVar[tuple[type[Exception], ...]] = (RaftLogError,)

    def __init_subclass__(cls) -> None:
        methods = {name: getattr(cls, name) for name in dir(cls) if hasattr(getattr(cls, name), _MARK)}
        cls.commands = {
            _text_name(name): Command.of(method, cls.argument_types) for name, method in sorted(methods.items())
        }

    def run(self, step: Step) -> str:
        """Run a step, and return what it prints: an expected error as ``error: TypeOfError: text``.

        Raises:
            CommandError: the step is not a command of this world.
        """
        try:
            name, *words = step.words()
        except ValueError as error:
            raise CommandError(str(error)) from None
        if name not in self.commands:
            raise CommandError(f"unknown command '{name}'; there are {', '.join(self.commands)}")
        try:
            return self.commands[name].run(self, words, step.input_lines)
        except self.expected_errors as error:
            return f"error: {type(error).__name__}: {error}"

    def close(self) -> None:
        """Release what the world holds. It is called once, after the last step."""
