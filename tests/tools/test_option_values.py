# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs have do in each of them what they say, for each of their values."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.run import engine, workers
from raftlog.tools.verb_help.verbs import VERBS
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.log_console import ONE, OTHER_ID, TOPIC, TWO, everything, info, init, log, the
from tests.tools.made_logs import batch, flip, write_log

QUORUM = GOLDEN / "dynamic-quorum/data"
NODES = (QUORUM / "n1", QUORUM / "n2")
LOG_VERBS = ("init", "append", "info", "snapshot", "truncate")
SURVEYS: dict[str, tuple[str | Path, ...]] = {
    "verify": (QUORUM,),
    "audit": (QUORUM,),
    "diff": NODES,
    "quorum": NODES,
    "voters": (QUORUM,),
    "epochs": (QUORUM,),
    "state": (QUORUM,),
    "snapshot": (QUORUM,),
    "salvage": (NODES[1],),
    "free": NODES,
    "query": ("FROM epochs", QUORUM),
    "rewrite-voters": (NODES[1], "--initial-controllers", f"9@host:9093:{OTHER_ID}", "--lost", "2,3,4"),
}


@pytest.mark.parametrize("verb", [*((verb,) for verb in VERBS), *(("log", verb) for verb in LOG_VERBS)])
def test_every_verb_prints_its_version(verb: tuple[str, ...]) -> None:
    """After any verb, ``--version`` prints the version, and nothing else is done."""
    asked, expected = run(*verb, "--version"), run("--version")
    assert (asked.exit_code, asked.messages, asked.output) == (0, "", expected.output)


class _CountedWorkers:
    """Takes the place of worker processes, surveys in this one, and notes how many there should have been."""

    counts: list[int]

    def __init__(self, count: int, attempt: Callable[[SurveyTask], Any]) -> None:
        self.counts.append(count)
        self._attempt = attempt

    def run(self, batches: Iterator[list[SurveyTask]]) -> Iterator[Any]:
        """Survey all tasks."""
        for tasks in batches:
            yield from map(self._attempt, tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


@pytest.mark.parametrize("verb", SURVEYS)
def test_every_survey_has_the_requested_processes(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one process all is done in this one; with two or three, so many are started; both forms are one option."""
    counts: list[int] = []
    monkeypatch.setattr(_CountedWorkers, "counts", counts, raising=False)
    monkeypatch.setattr(workers, "Workers", _CountedWorkers)
    monkeypatch.setattr(engine, "_BATCH_COUNT", 1)
    for option, expected in (("-j1", []), ("-j2", [2]), ("--processes=3", [3]), ("--processes=1", [])):
        names = {"audit": "--out", "snapshot": "--out", "salvage": "--plan", "rewrite-voters": "--plan"}
        out = (names[verb], tmp_path / option) if verb in names else ()
        if verb == "snapshot":
            (tmp_path / option).mkdir()
        counts.clear()
        outcome = run(verb, option, *out, *SURVEYS[verb])
        assert (outcome.messages, set(counts)) == ("", set(expected))


@pytest.mark.parametrize(
    ("fail_on", "exit_codes"),
    [("harmless", (3, 2)), ("suspicious", (3, 2)), ("damaged", (0, 2)), ("data-loss", (0, 0)), (None, (3, 2))],
)
@pytest.mark.parametrize("verb", ["verify", "audit"])
def test_findings_below_a_severity_give_no_exit_code(
    verb: str, fail_on: str | None, exit_codes: tuple[int, int], tmp_path: Path
) -> None:
    """A torn tail is suspicious, a flipped bit is damage: each counts from its own severity down to the lowest."""
    torn = write_log(tmp_path / "torn/orders-0", batch(), b"torn").parent
    flip(write_log(tmp_path / "flipped/orders-0", batch(), batch(1)), 70)
    options = ("--fail-on", fail_on) if fail_on else ()
    for place, expected in zip((torn, tmp_path / "flipped"), exit_codes, strict=True):
        out = ("--out", tmp_path / f"out-{place.name}") if verb == "audit" else ()
        assert run(verb, "-j", "1", *options, *out, place).exit_code == expected


@pytest.fixture
def one_of_two(tmp_path: Path) -> Path:
    """A directory whose node is one of two voters, with a few records."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    assert log("append", path, lines=(TOPIC, TOPIC)).exit_code == 0
    assert log("append", path, "--voters", f"{ONE},{TWO}").exit_code == 0
    return path


@pytest.mark.parametrize(
    "arguments",
    [("append",), ("snapshot",), ("truncate", "--to", "4", "--yes")],
    ids=["append", "snapshot", "truncate"],
)
def test_a_voter_among_others_must_force_it(arguments: tuple[str, ...], one_of_two: Path) -> None:
    """Changes that need other voters are refused, and change nothing, without ``--force``."""
    before = info(one_of_two), set(everything(one_of_two))
    refused = log(*arguments, one_of_two)
    assert (refused.exit_code, len(refused.complaints)) == (1, 1)
    assert "only with --force" in refused.messages
    assert (info(one_of_two), set(everything(one_of_two))) == before
    assert log(*arguments, "--force", one_of_two).exit_code == 0
    assert (info(one_of_two), set(everything(one_of_two))) != before


def test_a_forced_truncation_ends_at_the_given_offset(one_of_two: Path) -> None:
    """To force it is not to confirm it; both together cut the log."""
    end_offset = the(info(one_of_two), "log")["end_offset"]
    assert log("truncate", one_of_two, "--to", "4", "--force").exit_code == 1
    assert the(info(one_of_two), "log")["end_offset"] == end_offset
    assert log("truncate", one_of_two, "--to", "4", "--force", "--yes").exit_code == 0
    assert the(info(one_of_two), "log")["end_offset"] <= 4


@pytest.mark.parametrize("count", ["0", "1", "5242880", str(10**18)])
def test_the_size_of_messages_is_taken_for_kafkas_sake(count: str) -> None:
    """``--max-message-size`` makes no difference, whatever its value; a value that is not a number is refused."""
    paths = sorted((QUORUM / "n1/__cluster_metadata-0").glob("*.index"))
    assert paths
    expected = run("dump-log", "--files", str(paths[0]))
    assert run("dump-log", "--max-message-size", count, "--files", str(paths[0])) == expected
    assert run("dump-log", "--max-message-size", "x", "--files", str(paths[0])).exit_code == 1
