# SPDX-License-Identifier: Apache-2.0
"""No option of ``raftlog simulate`` is ignored: each has an effect, or is refused in one line."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.schedule import SWITCHES
from raftlog.tools.simulate import options as simulate_options
from raftlog.tools.simulate import simulate
from tests.tools.console import Outcome, run

VALUES: dict[str, tuple[str, ...]] = {
    "--schedules": ("100",),
    "--seed": ("0",),
    "--voters": ("3",),
    "--faults": ("all",),
    "--storage": ("drawn",),
    "--processes": ("1",),
    "--format": ("text",),
    "--machine": ("tests.testing.bank:Bank",),
    "--machine-timeout": ("10",),
    "--replay": ("s1-0",),
    "--shrink": (),
    "--shrink-runs": ("1000",),
    "--save": ("new.json",),
    "--picture": (),
    "--itf": ("new.itf.json",),
    "--page": ("new.html",),
    "--all": (),
    "--diff": ("s1-0", "s1-1"),
}
"""Each option with a value, which is the default where there is one: that it is given must count, not what it says."""
DRAWING = {"--schedules", "--seed", "--voters", "--faults", "--storage", "--processes"}
OF_REPLAY = {"--shrink", "--shrink-runs", "--save", "--picture", "--itf", "--page", "--all"}
NEEDED = {"--shrink-runs": "--shrink", "--machine-timeout": "--machine"}


def simulated(*arguments: str | Path) -> Outcome:
    """Run ``raftlog simulate`` in this process."""
    return run("simulate", *arguments)


def is_taken(given: tuple[str, ...]) -> bool:
    """Whether some options go together."""
    chosen = set(given)
    if any(needed not in chosen for name, needed in NEEDED.items() if name in chosen):
        return False
    if "--replay" in chosen:
        return not chosen & (DRAWING | {"--diff"})
    if "--diff" in chosen:
        return not chosen & (DRAWING | OF_REPLAY | {"--format"})
    return not chosen & OF_REPLAY


def test_the_table_has_every_option() -> None:
    """But for help and version."""
    known = {each.option_strings[-1] for each in simulate.make_parser().actions()}
    assert known == set(VALUES) | {"--help", "--version"}


@pytest.mark.parametrize("first", VALUES)
def test_options_go_together_or_are_refused(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of options, alone, with ``--replay``, ``--diff``, and what they need: if one is ignored, nothing runs.

    The refusal is one line, and names an option that is given.
    """
    ran: list[str] = []

    def noting(mode: str) -> Callable[..., int]:
        def note(*_: object) -> int:
            ran.append(mode)
            return 0

        return note

    for function, mode in (("_run_many", "many"), ("_replay", "--replay"), ("_diff", "--diff")):
        monkeypatch.setattr(simulate, function, noting(mode))
    monkeypatch.setattr(simulate, "load_machine", lambda *_: BUILT_IN)
    for second, *others in itertools.product(VALUES, ("", "--replay", "--diff"), ("", "--shrink", "--machine")):
        given = tuple(dict.fromkeys(each for each in (first, second, *others) if each))
        done = simulated(*(word for name in given for word in (name, *VALUES[name])))
        if is_taken(given):
            expected = next((each for each in ("--replay", "--diff") if each in given), "many")
            assert (done.exit_code, ran) == (0, [expected]), given
        else:
            assert (done.exit_code, ran, done.output) == (1, [], b""), given
            assert len(done.complaints) == 1
            assert any(name in done.complaints[0] for name in given)
        ran.clear()


def test_a_picture_is_no_json() -> None:
    """The two are refused together; in text, a picture may be."""
    done = simulated("--replay", "s1-0", "--picture", "--format", "jsonl")
    assert (done.exit_code, done.output) == (1, b"")
    assert "--picture does not go together with --format jsonl" in done.complaints[-1]
    assert simulate_options.parse(["--replay", "s1-0", "--picture", "--format", "text"]).picture


def test_options_that_are_not_given_have_their_defaults() -> None:
    """As help says."""
    found = simulate_options.parse([])
    assert (found.schedules, found.seed, found.voters, found.storage) == (100, 0, None, Storage.DRAWN.value)
    assert (found.faults, found.format, found.shrink_runs) == (frozenset(SWITCHES), "text", 1000)
    assert (found.replay, found.diff, found.save, found.shrink, found.all) == (None, None, None, False, False)


@pytest.mark.parametrize("option", ["--replay", "--save", "--page", "--itf", "--diff"])
def test_an_empty_name(option: str) -> None:
    """It is refused by the option, and not taken for the current directory."""
    arguments = [option, "", "s1-0"] if option == "--diff" else [option, ""]
    done = simulated(*arguments, *(() if option in {"--replay", "--diff"} else ("--replay", "s1-0")))
    assert (done.exit_code, done.output) == (1, b"")
    assert f"argument {option}: an empty text is no name of a file" in done.complaints[-1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' has an empty name; there are loss, "),
        ("loss,", "'loss,' has an empty name"),
        (",loss", "',loss' has an empty name"),
        ("loss,,cuts", "'loss,,cuts' has an empty name"),
        ("fire", "no fire; there are loss, "),
        ("loss, cuts", "no  cuts"),
        ("all,loss", "no all; "),
        ("loss,none", "all and none stand alone"),
    ],
)
def test_faults_that_are_none(text: str, complaint: str) -> None:
    """The wrong name is said, and which there are."""
    done = simulated("--faults", text)
    assert (done.exit_code, done.output) == (1, b"")
    assert complaint in done.complaints[-1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("rot",), "option faults: rot can never happen: it needs a crash"),
        (("lost-disks",), "lost-disks can never happen: it needs voter-changes"),
        (("torn-writes", "--storage", "files"), "torn-writes can never happen: it needs a crash"),
        (("lying-syncs", "--storage", "files"), "lying-syncs can never happen: it needs a crash"),
        (("misreads", "--storage", "model"), "misreads can never happen: the model has none, it needs files"),
    ],
)
def test_faults_that_can_never_happen(
    arguments: tuple[str, ...], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone they are refused; beside others that can happen, the same is said, and the schedules run."""
    monkeypatch.setattr(simulate, "_run_many", lambda *_: 0)
    name, *others = arguments
    done = simulated("--faults", name, *others)
    assert (done.exit_code, done.output) == (1, b"")
    assert complaint in done.complaints[-1]
    done = simulated("--faults", f"{name},loss", *others, "--schedules", "1", "-j", "1")
    assert done.exit_code == 0
    assert complaint.removeprefix("option faults: ") in done.complaints[0]


def test_faults_that_happen_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two voters rot is on observers' disks only; that is said. With all faults, nobody has named any."""
    monkeypatch.setattr(simulate, "_run_many", lambda *_: 0)
    done = simulated("--faults", "rot,crashes", "--voters", "2", "--schedules", "1", "-j", "1")
    assert done.exit_code == 0
    assert "with 2 voters, rot damages no voter's disk" in done.complaints[0]
    assert "damages" not in simulated("--voters", "2", "--schedules", "1", "-j", "1").messages
