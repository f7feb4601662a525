# SPDX-License-Identifier: Apache-2.0
"""The files between driver and workers: the plan, the files to survey, and outcomes."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingExtraError, StorageError
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.auditing.run.full_audit import part_of
from raftlog.tools.report.page import Report
from raftlog.tools.spark.audit import plan_file, survey_queue
from raftlog.tools.spark.audit.bins import MEBIBYTE
from raftlog.tools.spark.audit.evidence_files import EVIDENCE, bins_done, evidence_path, keep_evidence, kept_evidence
from raftlog.tools.spark.audit.outcome_files import Outcome, outcomes_in, write_outcomes
from raftlog.tools.spark.audit.plan_file import PLAN, PlanFile
from raftlog.tools.spark.audit.survey_queue import PlannedSurvey, SurveyQueue, read_bin
from raftlog.tools.spark.audit.whole_file import parts_in, whole_file


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


@settings(max_examples=40)
@given(
    own=st.integers(0, 9),
    others=st.lists(st.integers(1, 5), max_size=9),
    most=st.integers(1, 5),
)
def test_bins_are_found_by_their_numbers(
    own: int, others: list[int], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tasks get what was left for them, each file in one bin; log directories' own are in the first ones, alone."""
    folder = tmp_path_factory.mktemp("bins")
    slices = [0] * own + others
    surveys = [PlannedSurvey(each, number, "key", named(f"{number}\udcff")) for number, each in enumerate(slices)]
    with pytest.MonkeyPatch.context() as patch, SurveyQueue(folder, slots=2) as bins:
        patch.setattr(survey_queue, "_MOST_FILES", most)
        for planned in surveys:
            bins.add(planned)
    found = [read_bin(folder, number) for number in range(bins.count)]

    assert sorted((each for some in found for each in some), key=lambda each: each.number) == surveys
    assert all(0 < len(some) <= most for some in found)
    assert [{each.is_own for each in some} for some in found] == [
        {number < bins.own_count} for number in range(bins.count)
    ]
    assert bins.sizes_bytes == [sum(each.task.size_bytes for each in some) for some in found]


def named(path: str) -> SurveyTask:
    """A file."""
    return SurveyTask(Place("n1"), path, None, size_bytes=100 * MEBIBYTE)


def test_bins_that_are_not_there(tmp_path: Path) -> None:
    """A worker that does not see the output directory says which file it misses, and a driver that cannot write too."""
    with pytest.raises(StorageError, match=r"bins/7: .*No such file.*driver and workers must share"):
        read_bin(tmp_path / "bins", 7)
    with (
        pytest.raises(StorageError, match=r"nowhere/0: write failed.*No such file"),
        SurveyQueue(tmp_path / "nowhere", 1) as bins,
    ):
        bins.add(PlannedSurvey(1, 2, "key", named("x")))
    (tmp_path / "5").write_bytes(b"\x80\x05no")
    with pytest.raises(StorageError, match=r"/5: read failed"):
        read_bin(tmp_path, 5)


def evidence_rows(*numbers: int) -> pa.RecordBatch:
    """Rows of evidence."""
    of_all = {"key": "k", "run_id": "run", "slice": 1, "is_final": True, "path": "x"}
    return pa.RecordBatch.from_pylist([of_all | {"number": each, "evidence": f"{each}"} for each in numbers], EVIDENCE)


def test_evidence_is_kept_whole(tmp_path: Path) -> None:
    """Stored evidence is returned batch by batch, and found by its bin; a failed bin leaves nothing."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield evidence_rows(7)
        raise MissingExtraError("codecs", "lz4")

    keep_evidence(evidence_path(tmp_path, "run", 12), [evidence_rows(5, 3), evidence_rows(4)])
    with pytest.raises(MissingExtraError):
        keep_evidence(evidence_path(tmp_path, "run", 3), failing())
    found = [batch.to_pylist() for batch in kept_evidence(evidence_path(tmp_path, "run", 12))]

    assert bins_done(tmp_path, "run") == {12}
    assert found == [
        [{"slice": 1, "number": each, "evidence": f"{each}"} for each in numbers] for numbers in ([5, 3], [4])
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["run-12.parquet"]


def test_evidence_that_cannot_be_kept_or_read(tmp_path: Path) -> None:
    """Failing disks are reported with the file."""
    (tmp_path / "damaged").write_bytes(b"PAR1 no")
    with pytest.raises(StorageError, match=r"damaged: read failed"):
        list(kept_evidence(tmp_path / "damaged"))
    with pytest.raises(StorageError, match=r"nowhere/x: write failed.*No such file"):
        keep_evidence(tmp_path / "nowhere" / "x", [evidence_rows(1)])


@pytest.mark.parametrize("has_links", [True, False])
def test_two_write_the_same_file(*, has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tasks that do the same work at once, the first one's file is kept; without links, the last one's."""

    def refuse(path: Path, target: Path) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = tmp_path / "file"
    with whole_file(path) as last:
        last.write_bytes(b"last")
        with whole_file(path) as first:
            first.write_bytes(b"first")
            assert set(parts_in(tmp_path)) == {first, last}
        assert path.read_text() == "first"
    assert path.read_text() == ("first" if has_links else "last")
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_error_is_reported_unchanged(tmp_path: Path) -> None:
    """An error of another file is not taken for one of that which is written."""
    with pytest.raises(StorageError, match=r"^other: read failed"), whole_file(tmp_path / "file"):
        raise StorageError("other", "read", "no")


def test_outcomes_come_in_the_order_of_slices(tmp_path: Path) -> None:
    """Outcomes are given slice by slice, each in the order in which it was judged."""
    counts_by_slice = {3: (5, 1), 20: (4,), 1: (8, 9, 2)}
    for slice_number, some in counts_by_slice.items():
        write_outcomes(tmp_path, slice_number, (Outcome(part_of([], Report([])), (), count) for count in some))

    found = [outcome.file_count for outcome in outcomes_in(tmp_path, [1, 3, 20])]
    assert found == [*counts_by_slice[1], *counts_by_slice[3], *counts_by_slice[20]]


@pytest.mark.parametrize("end", [1, -3])
def test_outcomes_that_cannot_be_read(end: int, tmp_path: Path) -> None:
    """A damaged or missing file is an error of the disk."""
    write_outcomes(tmp_path, 1, [Outcome(part_of([], Report([])), (), 7)])
    (tmp_path / "1").write_bytes((tmp_path / "1").read_bytes()[:end])

    with pytest.raises(StorageError, match=r"/1: read failed"):
        list(outcomes_in(tmp_path, [1]))
    with pytest.raises(StorageError, match=r"/2: read failed.*No such file"):
        list(outcomes_in(tmp_path, [2]))
