# SPDX-License-Identifier: Apache-2.0
"""The format of scenario files: parsing a text into steps, and writing steps as text.

::

    # What the scenario shows.

    # A comment about the next step.
    command positional name=value
    an input line
    ----
    expected output, up to a blank line

Blank lines separate blocks. A block is a step, or only comments. Output that contains blank lines is put between
doubled marks::

    command
    ----
    ----
    first paragraph

    second paragraph
    ----
    ----

``write(parse(text)) == text`` for every text that ``write`` has written. Trailing spaces are not kept.

Source: github.com/cockroachdb/datadriven, which etcd-io/raft uses.
"""

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

OUTPUT_MARK: Final = "----"
_COMMENT: Final = "#"


@attrs.define
class ScenarioError(Exception):
    """A scenario that cannot be run as it is written. The text is ``path:line: reason``."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@attrs.frozen
class Comment:
    """A block of comment lines, each with its ``#``."""

    lines: tuple[str, ...]


@attrs.frozen
class Step:
    """One command with its input and its output.

    Attributes:
        command: the line with the command and its arguments.
        input_lines: the lines between the command and the mark.
        output: what the command prints, without a newline at the end.
        comments: the comment lines directly above the command, each with its ``#``.
        line: the number of the command's line in the file, from 1.
    """

    command: str
    input_lines: tuple[str, ...] = ()
    output: str = ""
    comments: tuple[str, ...] = ()
    line: int = attrs.field(default=0, eq=False)

    def words(self) -> list[str]:
        """Split the command line into words, as a shell does: quotes keep spaces.

        Raises:
            ValueError: a quote is not closed.
        """
        return shlex.split(self.command)


@attrs.frozen
class Scenario:
    """A scenario file.

    Attributes:
        path: of the file, for messages.
        blocks: steps and comments, in order.
    """

    path: str = attrs.field(eq=False)
    blocks: tuple[Comment | Step, ...]

    @property
    def steps(self) -> list[Step]:
        """The steps, in order."""
        return [block for block in self.blocks if isinstance(block, Step)]


def parse(text: str, path: str = "scenario") -> Scenario:
    """Parse the text of a scenario file.

    Raises:
        ScenarioError: the text is malformed, or has no step.
    """
    scenario = Scenario(path, tuple(_Lines(path, text).blocks()))
    if not scenario.steps:
        raise ScenarioError(path, 1, "there is no command in this file")
    return scenario


class _Lines:
    """Reads the blocks of a text, line by line."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = [line.rstrip() for line in text.split("\n")]
        self._next = 0

    def blocks(self) -> Iterator[Comment | Step]:
        while self._skip_blank_lines():
            comments = tuple(self._take_comments())
            yield self._step(comments) if self._has_line() else Comment(comments)

    def _has_line(self) -> bool:
        """Whether the next line belongs to the same block."""
        return self._next < len(self._lines) and self._lines[self._next] != ""

    def _skip_blank_lines(self) -> bool:
        while self._next < len(self._lines) and not self._has_line():
            self._next += 1
        return self._has_line()

    def _take_comments(self) -> Iterator[str]:
        while self._has_line() and self._lines[self._next].startswith(_COMMENT):
            yield self._take()

    def _take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    def _error(self, line: int, reason: str) -> ScenarioError:
        return ScenarioError(self._path, line, reason)

    def _step(self, comments: tuple[str, ...]) -> Step:
        command, line = self._take(), self._next
        if command == OUTPUT_MARK:
            raise self._error(line, f"'{OUTPUT_MARK}' without a command above it")
        input_lines = tuple(self._take_until_mark(line))
        return Step(command, input_lines, "\n".join(self._output()), comments, line)

    def _take_until_mark(self, command_line: int) -> Iterator[str]:
        while self._has_line():
            line = self._take()
            if line == OUTPUT_MARK:
                return
            yield line
        raise self._error(command_line, f"no '{OUTPUT_MARK}' after this command")

    def _output(self) -> Iterator[str]:
        if self._has_line() and self._lines[self._next] == OUTPUT_MARK:
            self._next += 1
            yield from self._output_with_blank_lines(self._next)
        else:
            while self._has_line():
                yield self._take()

    def _output_with_blank_lines(self, opening_line: int) -> Iterator[str]:
        while self._next < len(self._lines):
            line = self._take()
            if line != OUTPUT_MARK:
                yield line
                continue
            if not self._has_line() or self._take() != OUTPUT_MARK or self._has_line():
                raise self._error(self._next, f"output ends with two lines '{OUTPUT_MARK}' and a blank line")
            return
        raise self._error(opening_line, f"the output that starts here is not closed by two lines '{OUTPUT_MARK}'")


def normalized_output(text: str) -> str:
    """Return output as a scenario file keeps it: no trailing spaces, no newline at the end."""
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


def write(scenario: Scenario) -> str:
    """Return the text of a scenario file.

    Raises:
        ScenarioError: an output has a line that is the mark.
    """
    return "\n\n".join("\n".join(_block_lines(scenario.path, block)) for block in scenario.blocks) + "\n"


def _block_lines(path: str, block: Comment | Step) -> Iterable[str]:
    if isinstance(block, Comment):
        return block.lines
    output = block.output.split("\n") if block.output else []
    if OUTPUT_MARK in output:
        raise ScenarioError(path, block.line, f"a command must not print the line '{OUTPUT_MARK}'")
    marks = [OUTPUT_MARK] * (2 if "" in output else 1)
    return [*block.comments, block.command, *block.input_lines, *marks, *output, *(marks if len(marks) == 2 else ())]
