# SPDX-License-Identifier: Apache-2.0
"""The format of scenario files: what is written is read back, and what is malformed is refused with its line."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenarios.scenario_text import (
    OUTPUT_MARK,
    Comment,
    Scenario,
    ScenarioError,
    Step,
    normalized_output,
    parse,
    write,
)

_printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).map(str.rstrip)
_lines = _printable.filter(lambda line: line != OUTPUT_MARK)
_filled_lines = _lines.filter(bool)
_comments = st.lists(_printable.map("#{}".format), max_size=3).map(tuple)
_outputs = st.lists(_lines, max_size=5).map("\n".join).map(normalized_output)
_steps = st.builds(
    Step,
    _filled_lines.filter(lambda line: not line.startswith("#")),
    st.lists(_filled_lines, max_size=3).map(tuple),
    _outputs,
    _comments,
)
_blocks = st.lists(_steps | _comments.filter(bool).map(Comment), max_size=6)
scenarios = st.builds(
    Scenario, st.just("scenario"), st.tuples(_blocks, _steps).map(lambda drawn: (*drawn[0], drawn[1]))
)


@given(scenarios)
def test_what_is_written_is_read_back(scenario: Scenario) -> None:
    """A scenario survives writing and parsing, and its text survives parsing and writing."""
    text = write(scenario)
    assert parse(text) == scenario
    assert write(parse(text)) == text


@given(scenarios, st.data())
def test_spaces_and_blank_lines_between_blocks_do_not_matter(scenario: Scenario, data: st.DataObject) -> None:
    """More blank lines before and after a scenario, and spaces at line ends, are not kept."""
    text = write(scenario)
    spaced = text.replace("\n", data.draw(st.sampled_from(["\n", "  \n"])))
    assert write(parse("\n\n" + spaced + "\n\n")) == text


@given(scenarios)
def test_each_step_knows_its_line(scenario: Scenario) -> None:
    """The line of a step is the line of its command, counted from 1."""
    text = write(scenario)
    lines = text.split("\n")
    assert [lines[step.line - 1] for step in parse(text).steps] == [step.command for step in scenario.steps]


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Whatever a file holds, it is a scenario or a ScenarioError that names a line of the file."""
    line_count = text.count("\n") + 1
    try:
        lines = [step.line for step in parse(text).steps]
    except ScenarioError as error:
        lines = [error.line]
    assert all(1 <= line <= line_count for line in lines)


MALFORMED = {
    "": (1, "there is no command in this file"),
    "# only a comment\n": (1, "there is no command in this file"),
    "append\n\nflush\n----\n": (1, "no '----' after this command"),
    "# first\n\nappend\ninput": (3, "no '----' after this command"),
    "append\n----\ndone\n\n----\nmore": (5, "'----' without a command above it"),
    "append\n----\n----\nnot closed\n": (3, "the output that starts here is not closed by two lines '----'"),
    "append\n----\n----\na\n----\nb\n": (6, "output ends with two lines '----' and a blank line"),
    "append\n----\n----\na\n----\n----\nflush\n----\n": (6, "output ends with two lines '----' and a blank line"),
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_text_is_refused_with_its_line(text: str) -> None:
    """The error says in which file and line what is wrong."""
    line, reason = MALFORMED[text]
    with pytest.raises(ScenarioError) as caught:
        parse(text, "log/x.txt")
    assert str(caught.value) == f"log/x.txt:{line}: {reason}"


def test_output_with_blank_lines_is_between_doubled_marks() -> None:
    """Blank lines in an output double the marks around it; without them the output ends at a blank line."""
    step = Step("quorum", output="first\n\nsecond")
    assert write(Scenario("x", (step,))) == "quorum\n----\n----\nfirst\n\nsecond\n----\n----\n"
    assert write(Scenario("x", (attrs.evolve(step, output="one line"),))) == "quorum\n----\none line\n"


def test_an_output_cannot_hold_the_mark() -> None:
    """An output line that would be read as a mark is refused when it is written."""
    with pytest.raises(ScenarioError, match="must not print the line '----'"):
        write(Scenario("x", (Step("append", output="a\n----\nb"),)))


def test_quotes_keep_spaces_in_a_word() -> None:
    """A command line is split as by a shell."""
    assert Step("replica 'node 1' label=\"a b\"").words() == ["replica", "node 1", "label=a b"]
