# SPDX-License-Identifier: Apache-2.0
"""Tests of how seeds are counted until mutants are found, with runs that are made up."""

import functools
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.violation import ViolationError
from tests.mutants.planting import Mutant
from tests.testing.simulator import kill_by_seeds
from tests.testing.simulator.beyond_seeds import BEYOND
from tests.testing.simulator.fresh_mutants import FRESH_MUTANTS
from tests.testing.simulator.kill_by_seeds import (
    MUTANTS,
    SPREAD,
    Attempt,
    RunSeed,
    SeedVerdict,
    attempt,
    expected,
    judge_by_seeds,
    main,
)
from tests.testing.simulator.known_schedules import outcome_of

SLIP = ViolationError("no-error", "Traceback\n  File\nTypeError: too many\n")
FOUND = ViolationError("log-matching", "two pasts")


def _violated_at(seeds: Sequence[int], violation: ViolationError = FOUND) -> RunSeed:
    return lambda seed: violation if seed in seeds else None


@given(st.integers(0, 5000), st.integers(1, 30), st.sets(st.integers(0, 40)))
def test_seeds_are_counted_up_to_the_first_violation(first: int, most: int, violated: set[int]) -> None:
    """The one that is violated counts, later ones do not run, and none after the last is asked."""
    asked: list[int] = []

    def run(seed: int) -> ViolationError | None:
        asked.append(seed)
        return FOUND if seed - first in violated else None

    made = attempt(run, range(first, first + most))
    at = min((each for each in violated if each < most), default=None)
    assert made == (Attempt(most) if at is None else Attempt(at + 1, "log-matching"))
    assert asked == list(range(first, first + made.seeds))


def test_a_slip_is_no_kill() -> None:
    """A mutant that falls over by itself has been found by no invariant; no other seeds are tried."""
    verdict = judge_by_seeds("wrong", _violated_at([1], SLIP), starts=3, most=5)
    assert verdict == SeedVerdict("wrong", (Attempt(2, slip="TypeError: too many"),))
    assert verdict.is_survivor
    assert "falls over by itself: TypeError: too many" in str(verdict)


def test_a_slip_after_kills_ends_the_attempts() -> None:
    """It is told, although schedules have found the mutant before."""
    runs = {0: FOUND, SPREAD: SLIP}
    verdict = judge_by_seeds("wrong", runs.get, starts=3, most=5)
    assert [each.slip for each in verdict.attempts] == [None, "TypeError: too many"]
    assert "falls over" in str(verdict)


@pytest.mark.parametrize(("at", "is_survivor"), [(3, False), (4, False), (5, True)])
def test_a_mutant_survives_if_no_schedule_of_the_first_start_finds_it(at: int, is_survivor: bool) -> None:
    """The last schedule still counts; other starts are tried only after a kill."""
    verdict = judge_by_seeds("wrong", _violated_at([at, SPREAD]), starts=2, most=5)
    assert verdict.is_survivor == is_survivor
    assert len(verdict.attempts) == (1 if is_survivor else 2)
    assert ("SURVIVED 5 seeds" in str(verdict)) == is_survivor


def test_a_start_that_finds_nothing_is_worse_than_all_that_do() -> None:
    """The median is the lower one of the middle, the worst has a sign, and invariants are counted."""
    kills = _violated_at([0, SPREAD + 4, 3 * SPREAD + 2])
    verdict = judge_by_seeds("wrong", kills, starts=4, most=5)
    assert str(verdict) == "| wrong | 3 | >5 | `log-matching` 3 |"


def test_survivors_are_printed_at_the_end(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Each mutant is alone in a process of its own; the exit code tells whether one has survived."""
    planted: list[str] = []
    sound = attrs.evolve(outcome_of(0), violation=None)
    found = attrs.evolve(sound, violation=FOUND)
    monkeypatch.setattr(kill_by_seeds, "run_seed", lambda *_: found if planted == ["found"] else sound)
    monkeypatch.setattr("os.nice", lambda _: 0)
    for name in ("found", "hidden"):
        monkeypatch.setitem(MUTANTS, name, Mutant(name, "", "", functools.partial(planted.append, name), ()))
    arguments = ["--starts", "2", "--most", "3", "--processes", "1"]
    assert main(["found", "hidden", *arguments]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[2:] == [
        "| found | 1 | 1 | `log-matching` 2 |",
        "| hidden | | | SURVIVED 3 seeds |",
        "1 survive: hidden",
    ]
    assert planted == []
    assert main(["found", *arguments]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "none survives"


@pytest.mark.parametrize(
    ("error", "found"), [(ValueError("no"), "1 | 1 | `no-error` 2"), (TypeError("no"), "| | falls over by itself")]
)
def test_an_error_before_a_schedule_begins(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception, found: str
) -> None:
    """It counts as one in the schedule does."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(kill_by_seeds, "run_seed", fail)
    monkeypatch.setattr("os.nice", lambda _: 0)
    monkeypatch.setitem(MUTANTS, "wrong", Mutant("wrong", "", "", lambda: None, ()))
    main(["wrong", "--starts", "2", "--most", "3", "--processes", "1"])
    assert f"| wrong | {found}" in capfd.readouterr().out


def test_an_unknown_mutant_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It is an error of the command line, and the mutants are listed."""
    with pytest.raises(SystemExit):
        main(["no-such-mutant"])
    assert "no such mutant: no-such-mutant; there are F1-" in capsys.readouterr().err


def test_each_mutant_is_expected_or_has_one_reason_not_to_be() -> None:
    """No name is unknown or under two reasons; of the fresh ones one is given up, which was counted in all cases."""
    beyond = [name for names in BEYOND.values() for name in names]
    assert len(beyond) == len(set(beyond))
    assert set(beyond) <= MUTANTS.keys()
    assert sorted([*beyond, *expected()]) == sorted(MUTANTS)
    assert {each.name for each in FRESH_MUTANTS} - set(expected()) == {"F6-epoch-at-the-start"}
