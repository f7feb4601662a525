# SPDX-License-Identifier: Apache-2.0
"""No option of ``raftlog state`` is ignored: each pair of them is refused, or both have an effect."""

import itertools
from pathlib import Path
from typing import Final

import pytest

from raftlog.tools.state.state import make_parser
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run

NODE: Final = GOLDEN / "groups/data/n1"
COORDINATORS: Final = NODE / "__consumer_offsets-0"
OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "--at": ("30",),
    "--between": ("20", "40"),
    "--path": ("/{}",),
    "--history": ("/{}",),
    "--topic": ("__consumer_offsets",),
    "--against": (str(NODE),),
    "--check": (),
    "--kafka": ("4.1",),
    "--format json": (),
    "--format tree": (),
}
"""Each option with a value that makes a difference; the name of what is asked for is that of the place."""
WITHOUT_EFFECT: Final = frozenset({"--help", "--version", "--processes", "--spool-limit"})
"""Options that do not change what is shown of files."""


def ask(place: Path, *options: str) -> Outcome:
    """Run with some options by their names."""
    is_metadata = place == NODE and "--topic" not in options
    thing = "topics/g1" if is_metadata else "groups/newer"
    words = [word.format(thing) for option in options for word in (*option.split(), *OPTIONS[option])]
    return run("state", "-j1", place, *words)


def is_refused(outcome: Outcome) -> bool:
    """Whether the options were refused in one line, and nothing was shown."""
    is_usage = "(see raftlog state --help)" in outcome.messages
    assert not is_usage or (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    return is_usage


def test_all_options_are_here() -> None:
    """Those of the parser."""
    names = {action.option_strings[-1] for action in make_parser()._actions if action.option_strings}
    assert names == {option.split()[0] for option in OPTIONS} | WITHOUT_EFFECT


@pytest.mark.parametrize("place", [NODE, COORDINATORS], ids=lambda place: place.name)
def test_every_pair_is_refused_or_has_both_effects(place: Path) -> None:
    """For the metadata log and for a coordinator's: what both show is not what one of them shows, nor is it nothing."""
    alone = {(): ask(place)} | {(option,): ask(place, option) for option in OPTIONS}
    assert not is_refused(alone[()])
    refused = {options for options, outcome in alone.items() if is_refused(outcome)}
    pairs = [pair for pair in itertools.combinations(OPTIONS, 2) if pair[0].split()[0] != pair[1].split()[0]]
    for pair in pairs:
        both = ask(place, *pair)
        if is_refused(both):
            continue
        assert both.output, pair
        is_same = [other for other in pair if alone[(other,)].output == both.output and (other,) not in refused]
        if place == COORDINATORS and "--topic" in pair:
            assert is_same == [other for other in pair if other != "--topic"], pair  # Its paths say the topic anyway.
        else:
            assert is_same == [], pair
    shown = [options for options, outcome in alone.items() if options not in refused]
    assert len({alone[options].output for options in shown}) == len(shown) - (place == COORDINATORS)


@pytest.mark.parametrize("place", [NODE, COORDINATORS], ids=lambda place: place.name)
@pytest.mark.parametrize("question", [("--path",), ("--history",), ("--between", "10", "40", "--path")], ids=" ".join)
def test_a_path_where_nothing_ever_was_is_told(question: tuple[str, ...], place: Path) -> None:
    """With each question that takes a path: a typing error is no answer, in any format."""
    for output_format in ("table", "json"):
        outcome = run("state", "-j1", place, "--format", output_format, *question, "/topics/nope")
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
        assert "there is nothing at /topics/nope" in outcome.messages


def test_what_did_not_change_is_no_error() -> None:
    """Something that is there between two places has no changes; so has the root."""
    for place, path in ((NODE, "/topics/g1"), (NODE, "/"), (COORDINATORS, "/groups")):
        end = "83" if place == NODE else "40"
        outcome = run("state", "-j1", place, "--between", end, end, "--path", path)
        assert (outcome.exit_code, outcome.messages) == (0, "")
        assert "Nothing changed." in outcome.text


def test_paths_of_several_topics_need_a_choice() -> None:
    """The two topics are named; with --topic, one of them is shown."""
    paths = (COORDINATORS, NODE / "__share_group_state-0")
    outcome = run("state", *paths)
    assert is_refused(outcome)
    assert "__consumer_offsets and __share_group_state" in outcome.messages
    assert "--topic" in outcome.messages
    assert run("state", *paths, "--topic", "__consumer_offsets").output == run("state", COORDINATORS).output
