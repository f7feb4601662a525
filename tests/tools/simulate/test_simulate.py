# SPDX-License-Identifier: Apache-2.0
"""``raftlog simulate``: equal words for equal seeds, violations shown and shrunk, and one clear line for bad input."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from raftlog.testing.simulator.runs.schedule import Token, record
from raftlog.testing.simulator.runs.telling import tell
from raftlog.tools.simulate import simulate
from tests.testing.simulator.runs.test_shrinking import crashing
from tests.tools.console import COMMAND, Outcome, run


def simulated(*arguments: str | Path) -> Outcome:
    """Run ``raftlog simulate`` in this process."""
    return run("simulate", *arguments)


def test_some_schedules() -> None:
    """The table has what happened, and standard error the speed; the exit code is 0."""
    done = simulated("--schedules", "2", "-j", "1")
    assert done.exit_code == 0
    assert "2 schedules, of which" in done.text
    assert "0 violations" in done.text
    assert "schedules, " in done.messages
    assert "a second" in done.messages


@pytest.mark.parametrize(("hash_seed", "processes"), [("0", "1"), ("4711", "2")])
def test_equal_words_for_equal_seeds(hash_seed: str, processes: str) -> None:
    """Whatever the hash seed, and the number of processes."""
    arguments = ["--schedules", "2", "--seed", "20", "--format", "jsonl"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [*COMMAND, "simulate", *arguments, "-j", processes], env=environment, capture_output=True, text=True, check=True
    )
    expected = simulated(*arguments, "-j", "1")
    assert done.stdout == expected.text
    assert [each["token"] for each in expected.of_kind("schedule")] == ["s1-20", "s1-21"]
    (total,) = expected.of_kind("total")
    assert total["schedules"] == 2
    assert total["delivered"] == sum(each["delivered"] for each in expected.of_kind("schedule"))


def test_faults_and_voters() -> None:
    """Only the faults that are named happen, and what never happened is said."""
    done = simulated("--schedules", "2", "--voters", "5", "--faults", "loss", "-j", "1")
    assert done.exit_code == 0
    assert "never seen: " in done.text
    assert "crashes" in done.text.rpartition("never seen: ")[2]
    (lines) = simulated("--schedules", "1", "--faults", "none", "--format", "jsonl", "-j", "1").of_kind("schedule")
    assert (lines[0]["lost"], lines[0]["crashes"], lines[0]["token"]) == (0, 0, "s1-0-none")


def test_a_violation_is_printed_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 2; the command shrinks it, and what it saves leads to the same violation."""
    crashing(monkeypatch)
    done = simulated("--schedules", "1", "-j", "1")
    assert done.exit_code == 2
    assert "raftlog simulate --replay s1-0 --shrink" in done.text
    (line,) = simulated("--schedules", "1", "-j", "1", "--format", "jsonl").of_kind("schedule")
    assert line["violation"]["invariant"] == "test"


def test_a_schedule_is_shrunk_saved_and_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a script, as a picture, and as a page."""
    crashing(monkeypatch)
    saved, page, trace = tmp_path / "run.json", tmp_path / "run.html", tmp_path / "run.itf.json"
    done = simulated("--replay", "s1-0", "--shrink", "--save", saved, "--page", page, "--itf", trace)
    assert done.exit_code == 2
    assert done.text.startswith("violated: test: ")
    assert "choices shrunk to" in done.messages
    again = simulated("--replay", saved, "--picture")
    assert again.exit_code == 2
    assert again.text.splitlines()[:6] == done.text.splitlines()[:6]
    assert "replica 1" in again.text
    assert "has crashed twice</h1>" in page.read_text(encoding="utf-8")
    assert json.loads(trace.read_text(encoding="utf-8"))["#meta"]["format"] == "ITF"
    everything = simulated("--replay", saved, "--all").text
    assert len(everything.splitlines()) > len(done.text.splitlines())
    assert "events before these" in done.text
    assert "events before these" not in everything


def test_files_are_not_overwritten(tmp_path: Path) -> None:
    """Neither the replay file nor the page."""
    path = tmp_path / "mine"
    path.write_text("mine", encoding="utf-8")
    for option in ("--save", "--page", "--itf"):
        done = simulated("--replay", "s1-0", option, path)
        assert done.exit_code == 1
        assert str(path) in done.messages
        assert path.read_text(encoding="utf-8") == "mine"


def test_where_two_schedules_part(tmp_path: Path) -> None:
    """The first event that differs is shown, and the last common ones; a schedule does not differ from itself."""
    saved = tmp_path / "run.json"
    simulated("--replay", "s1-0", "--save", saved)
    assert "both have the same" in simulated("--diff", "s1-0", saved).text
    text = saved.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if '["crash"' not in line]
    (tmp_path / "calm.json").write_text("\n".join(lines).replace("],\n ]", "]\n ]"), encoding="utf-8")
    done = simulated("--diff", "s1-0", tmp_path / "calm.json")
    assert done.exit_code == 0
    assert "events are the same; the last of them:" in done.text
    assert "crashes" in done.text.splitlines()[-2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--schedules", "0"], "0 is less than 1"),
        (["--schedules", "x"], "argument --schedules: 'x' is not a number from 0 on"),
        (["--seed", "-1"], "'-1' is not a number from 0 on"),
        (["--voters", "0"], "0 is not from 1 to 7"),
        (["--voters", "8"], "8 is not from 1 to 7"),
        (["--faults", "fire"], "no fire; there are loss"),
        (["--faults", "rot", "--voters", "2"], "rot can never happen"),
        (["--replay", "nonsense"], "'nonsense' is no token"),
        (["--replay", "s9-1"], "generator 9"),
        (["--diff", "s1-1", "nonsense"], "'nonsense' is no token"),
        (["-j", "0"], "'0' is not a number from 1 to 999"),
        (["--replay", "s1-1", "--shrink", "--shrink-runs", "0"], "0 is less than 1"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], complaint: str) -> None:
    """And the exit code is 1."""
    done = simulated(*arguments)
    assert done.exit_code == 1
    assert complaint in done.complaints[-1]
    assert done.output == b""


def test_a_replay_file_that_is_none(tmp_path: Path) -> None:
    """Its name is said."""
    path = tmp_path / "run.json"
    path.write_text("{}", encoding="utf-8")
    done = simulated("--replay", path)
    assert done.exit_code == 1
    assert str(path) in done.complaints[-1]


def test_the_command_needs_no_test_library() -> None:
    """What operators install runs it."""
    code = "import sys; import raftlog.tools.simulate.simulate; print({'hypothesis', 'pytest'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    assert Token.parse("s1-1") == Token(1)


@pytest.mark.parametrize("missing", [-1, 0, 1])
def test_how_many_events_are_shown(missing: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As many as the limits of a script and of a page say, the last ones, and how many were before them."""
    crashing(monkeypatch)
    everything = tell(record(Token(0))[0]).story.events
    pages: list[tuple[int, int]] = []

    def page_html(
        _: object, __: object, events: Sequence[object], ___: object, *, is_violated: bool, before: int
    ) -> str:
        pages.append((len(events), before))
        return ""

    monkeypatch.setattr(simulate, "page_html", page_html)
    for name in ("LAST_EVENTS", "_MOST_ON_A_PAGE"):
        monkeypatch.setattr(simulate, name, len(everything) - missing)
    shown = simulated("--replay", "s1-0", "--page", tmp_path / "page.html").text
    assert ("(1 events before these; --all shows them)" in shown) == (missing == 1)
    assert str(everything[-1]) in shown
    assert (str(everything[0]) in shown) == (missing < 1)
    assert pages == [(len(everything) - max(0, missing), max(0, missing))]
    picture = simulated("--replay", "s1-0", "--picture").text
    assert ("(1 events before these; --all shows them)" in picture) == (missing == 1)
    told = simulated("--replay", "s1-0", "--format", "jsonl")
    (line,) = told.of_kind("schedule")
    events = told.of_kind("event")
    assert (line["token"], line["violation"]["invariant"]) == ("s1-0", "test")
    assert line["events_before"] == max(0, missing)
    assert [each["number"] for each in events] == list(range(max(0, missing), len(everything)))
    assert [each["words"] for each in events] == [each.words for each in everything[max(0, missing) :]]
