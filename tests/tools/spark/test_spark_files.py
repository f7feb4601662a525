# SPDX-License-Identifier: Apache-2.0
"""What driver and workers leave for each other in files: the plan, what is to be surveyed, and outcomes."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.auditing.full_audit import part_of
from raftlog.tools.report.page import Report
from raftlog.tools.spark import plan_file
from raftlog.tools.spark.bin_files import PlannedSurvey, read_bin, write_bins
from raftlog.tools.spark.executor_work import OUTCOMES, Outcome
from raftlog.tools.spark.outcome_files import outcomes_in
from raftlog.tools.spark.plan_file import PLAN, PlanFile


@given(slices=st.lists(st.integers(0, 99), max_size=20), group=st.integers(1, 8))
def test_the_plan(slices: list[int], group: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The plan has files in the order in which they were added, however many fit into memory."""
    path = tmp_path_factory.mktemp("plan") / "plan.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_file, "_ROW_GROUP_COUNT", group)
        with PlanFile(path) as plan:
            for number, each in enumerate(slices):
                plan.add(each, 3 * number, f"key {each}")
    table = pq.read_table(path)

    assert table.schema == PLAN
    assert plan.count == len(slices)
    assert table.to_pylist() == [
        {"slice": each, "number": 3 * number, "key": f"key {each}"} for number, each in enumerate(slices)
    ]


@given(surveys=st.lists(st.lists(st.text(st.characters(), max_size=5), max_size=4), max_size=4))
def test_bins_are_found_by_their_numbers(surveys: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """A task gets what was left for it, also where a path is no Unicode."""
    folder = tmp_path_factory.mktemp("work") / "bins"
    bins = [
        [PlannedSurvey(1, 2, "key", SurveyTask(Place("n1"), f"{path}\udcff", None)) for path in each]
        for each in surveys
    ]
    write_bins(folder, bins)

    assert [read_bin(folder, number) for number in range(len(bins))] == bins


def test_bins_that_are_not_there(tmp_path: Path) -> None:
    """A worker that does not see the output directory says which file it misses, and a driver that cannot write too."""
    with pytest.raises(StorageError, match=r"bins/7: .*No such file.*driver and workers share"):
        read_bin(tmp_path / "bins", 7)
    with pytest.raises(StorageError, match=r"nowhere/bins: .*No such file"):
        write_bins(tmp_path / "nowhere" / "bins", [])


def test_outcomes_come_in_the_order_of_tasks(tmp_path: Path) -> None:
    """Files are read in the order of the tasks that wrote them, each from its first row."""
    outcomes = [Outcome(part_of([], Report([])), (), count) for count in range(6)]
    for number, names in enumerate(("part-00000-b", "part-99999-a", "part-100000-c")):
        some = [{"outcome": pickle.dumps(each)} for each in outcomes[2 * number : 2 * number + 2]]
        pq.write_table(pa.Table.from_pylist(some, OUTCOMES), tmp_path / f"{names}.parquet")

    assert [outcome.file_count for outcome in outcomes_in(tmp_path)] == [0, 1, 2, 3, 4, 5]


def test_outcomes_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is damaged is an error of the disk."""
    (tmp_path / "part-00000.parquet").write_bytes(b"PAR1 no")

    with pytest.raises(StorageError):
        list(outcomes_in(tmp_path))
