# SPDX-License-Identifier: Apache-2.0
"""The campaign tries what it says that it tries, wherever its parts run, and counts all of it."""

import io
from collections import Counter

import pytest

from tests.faults import campaign
from tests.faults.campaign import FAILED, Progress, Slice, Tally, chunks, kind_of_file, replay, report, space
from tests.faults.damage_outcomes import Outcome
from tests.faults.damaged_directories import Damage, scenes


@pytest.mark.parametrize("count", [1, 3, 7])
def test_slices_are_all_of_it(count: int) -> None:
    """Together they have every case once."""
    slices = [Slice(number, count) for number in range(1, count + 1)]
    met = Counter(damage for part in slices for _, damages in chunks(["kafkas"], part) for damage in damages)
    assert set(met.values()) == {1}
    assert set(met) == set(scenes()["kafkas"].damages())


@pytest.mark.parametrize("name", scenes())
def test_the_space_is_every_bit_and_every_zero(name: str) -> None:
    """A byte can be another one by eight flips, and be zero if it is not."""
    data = [data for _, data in scenes()[name].files.values()]
    assert space([name]) == sum(9 * len(each) - each.count(0) for each in data)


@pytest.mark.parametrize("text", ["0/5", "6/5", "1", "1/", "-1/2", "1/2/3", "1/1000000000000"])
def test_texts_that_are_not_slices(text: str) -> None:
    """There are as many slices as the second number says, from 1 on."""
    with pytest.raises(ValueError, match="slice"):
        Slice.parse(text)
    assert Slice.parse("2/5") == Slice(2, 5)


def test_the_table_counts_by_kind_of_file() -> None:
    """Files of one kind are a row together, and each outcome that there was is a column."""
    tally = Tally()
    for name, outcome, count in (
        ("00000000000000000000.log", Outcome.QUARANTINED.value, 3),
        ("00000000000000000015.log", Outcome.QUARANTINED.value, 4),
        ("00000000000000000015.log", FAILED, 1),
        ("quorum-state", Outcome.REPAIRED.value, 2),
    ):
        tally.outcomes["closed", name, outcome] = count
    damage = Damage("quorum-state", 5, 0)
    tally.failures.append(("closed", damage, "AssertionError: why"))
    lines = [line.split() for line in report(tally, 20)]
    assert lines[:5] == [
        ["repaired", "quarantined", FAILED, "all"],
        ["*.log", "-", "7", "1", "8"],
        ["quorum-state", "2", "-", "-", "2"],
        ["all", "2", "7", "1", "10"],
        ["10", "of", "20", "cases:", "50", "%", "of", "the", "space"],
    ]
    assert list(report(tally, 10))[4] == "10 of 10 cases: 100 % of the space"
    assert list(report(tally, 10_001))[4].endswith(" 0 % of the space")
    assert replay("closed", damage) in list(report(tally, 20))[-1]


def test_kinds_of_files() -> None:
    """Offsets and epochs are not part of a kind."""
    kinds = {kind_of_file(name) for scene in scenes().values() for name in scene.files if name[0].isdigit()}
    assert kinds == {"*.log", "*.index", "*.timeindex", "*.checkpoint"}
    assert kind_of_file("bootstrap.checkpoint") == "bootstrap.checkpoint"


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def test_progress_is_one_line_on_a_terminal_and_few_elsewhere() -> None:
    """Whatever the number of cases, a file gets no more than twenty lines, the last one when all is done."""
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(1000, stream)
        for done in range(1, 1001):
            progress.show(done, 0)
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().endswith("\n")
    assert len(file.getvalue().splitlines()) == 20
    assert file.getvalue().splitlines()[-1].startswith("1,000 of 1,000, ")


def test_a_part_is_done_in_processes_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    """A small slice of the campaign: the table on standard output, the progress on standard error, no failure."""
    assert campaign.main(["--scene", "kafkas", "--slice", "3/9000", "--processes", "1"]) == 0
    printed = capfd.readouterr()
    cases = len(next(iter(chunks(["kafkas"], Slice(3, 9000))))[1])
    assert f"{cases} of {space(['kafkas']):,} cases: 0 % of the space" in printed.out
    assert printed.err.splitlines()[-1].startswith(f"{cases} of {cases}, ")
