# SPDX-License-Identifier: Apache-2.0
"""Surveying in one process and in several gives the same results in the same order, even if processes die."""

import os
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import MissingExtraError
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.run.engine import survey_all
from tests.tools.auditing.stand_in_survey import BIG, survey, task


@given(sizes=st.lists(st.integers(0, BIG), max_size=40))
def test_results_come_in_the_order_of_the_tasks(sizes: list[int]) -> None:
    """Whatever the sizes, there is a result for each task, in order, and tasks are taken as results are asked for."""
    tasks = [task(f"file {number}", size) for number, size in enumerate(sizes)]
    taken = 0

    def counted() -> Iterator[SurveyTask]:
        nonlocal taken
        for each in tasks:
            taken += 1
            yield each

    results = survey_all(counted(), 1, survey)
    for number, result in enumerate(results):
        assert result.task == tasks[number]
        assert taken <= number + 258
    assert taken == len(tasks)


def test_processes_that_die_cost_their_file_alone() -> None:
    """With several processes the order is kept; a file whose reader dies gives a finding, and all others are read."""
    names = [f"file {number}" for number in range(30)]
    names[3:3] = ["die 1", "exit 2"]
    sizes = [BIG if number % 5 == 0 else 100 for number in range(len(names))]
    tasks = [task(name, size) for name, size in zip(names, sizes, strict=True)]
    found = list(survey_all(tasks, 2, survey))

    assert [each.task.path for each in found] == names
    reasons = {each.task.path: each.findings[0].reason for each in found if each.extent is None}
    assert reasons == {
        "die 1": "the process that surveyed it was killed by SIGKILL",
        "exit 2": "the process that surveyed it ended with exit code 7",
    }
    assert all(each.findings[0].rule == "file-unreadable" for each in found if each.extent is None)
    assert os.getpid() not in {each.extent.max_timestamp for each in found if each.extent is not None}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bug_costs_its_file_alone(processes: int) -> None:
    """An unexpected error, or a broken invariant, is one finding with the error and its place; the rest is surveyed."""
    tasks = [task("file 1"), task("bug 1"), task("invariant 1"), task("file 2")]
    found = list(survey_all(tasks, processes, survey))

    assert [[finding.rule for finding in each.findings] for each in found] == [
        ["tail-torn"],
        ["audit-failed"],
        ["audit-failed"],
        ["tail-torn"],
    ]
    start = "this is a fault of raftlog, please report it: "
    assert re.fullmatch(rf"{start}ZeroDivisionError at stand_in_survey.py:\d+: a bug", found[1].findings[0].reason)
    assert "InvariantViolation" in found[2].findings[0].reason


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_ours_is_raised(processes: int) -> None:
    """That a package is missing is said as such."""
    with pytest.raises(MissingExtraError, match="lz4 needs a package"):
        list(survey_all([task("missing"), task("file 1"), task("file 2")], processes, survey))


def test_little_is_done_here() -> None:
    """Small files start no process, however many might be used; nothing at all is done for nothing."""
    (found,) = survey_all([task("file", 10)], 8, survey)

    assert found.extent is not None
    assert found.extent.max_timestamp == os.getpid()
    assert list(survey_all([], 8, survey)) == []
