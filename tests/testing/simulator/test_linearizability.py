# SPDX-License-Identifier: Apache-2.0
"""What clients were told is linearizable, says an outside checker; with planted bugs it is not, as our checks say."""

import re
import subprocess
import sys
from typing import Final, NamedTuple

import pytest

from tests.checkout import ROOT
from tests.testing.simulator.linearizability import LOST


class Planted(NamedTuple):
    """A bug that shows in the histories of clients.

    Attributes:
        bug: its name.
        seeds: the outside checker refutes a history of one of so many.
        ours: our invariants that compare the same histories. Others compare with disks, and find more.
        first: of the seeds; some before the one that was seen to be refuted, since each takes half a second.
    """

    bug: str
    seeds: int
    ours: frozenset[str]
    first: int = 0


BUGS: Final = (
    Planted("reads-unconfirmed", 40, frozenset({"reads-are-linearizable"}), first=20),
    Planted("reads-uncommitted", 5, frozenset({"reads-are-committed"})),
    Planted("minority-commits", 20, frozenset({LOST, "reads-are-linearizable"})),
    Planted("told-when-written", 40, frozenset({LOST, "reads-are-linearizable"})),
    Planted("written-twice", 5, frozenset({"value-once"})),
)
LINE: Final = re.compile(r"^seed (?P<seed>\d+): refuted (?P<refuted>\S*); ours (?P<ours>\S*)$", re.MULTILINE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run schedules and have them judged, in a new process, which a bug may be planted in."""
    command = [sys.executable, "-m", "tests.testing.simulator.linearizability", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "schedules", [pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.volume)]
)
def test_histories_are_linearizable(schedules: int) -> None:
    """Those of many schedules are, on the log in memory and on files."""
    done = run("--seeds", f"0..{schedules}")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {
        name: int(count.replace(",", "")) for count, name in re.findall(r"(\d[\d,]*) ([a-z][a-z ]*)", done.stdout)
    }
    assert counts["schedules"] == schedules
    assert counts["on files"] >= schedules // 5
    assert counts["acknowledged"] >= 120 * schedules
    assert counts["without outcome"] >= 2 * schedules
    assert counts["confirmed reads"] >= counts["answered reads"] >= 12 * schedules


@pytest.mark.slow
@pytest.mark.parametrize("planted", BUGS, ids=lambda each: each.bug)
def test_a_planted_bug_is_found_by_both(planted: Planted) -> None:
    """The outside checker refutes a history within some seeds; in each run up to there both sides find it, or none.

    But an acknowledged append that is lost at the end may be one that no later operation shows.
    """
    done = run(
        "--plant", planted.bug, "--seeds", f"{planted.first}..{planted.first + planted.seeds}", "--until-refuted"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    runs = list(LINE.finditer(done.stdout))
    assert [bool(each["refuted"]) for each in runs].count(True) == 1, done.stdout
    for each in runs:
        ours = planted.ours & set(each["ours"].split(","))
        assert bool(ours) if each["refuted"] else ours <= {LOST}, each[0]
