# SPDX-License-Identifier: Apache-2.0
"""The work of tasks, without Spark: rows in, rows out, however partitions and rows are divided."""

import datetime
import functools
import itertools
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingExtraError, StorageError
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, in_partitions
from raftlog.tools.auditing.judgement.judgement import (
    by_path,
    in_groups,
    judge_group,
    judge_in_groups,
    judge_together,
    kept_of,
)
from raftlog.tools.auditing.run.full_audit import part_of
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.report.page import Report
from raftlog.tools.spark.audit import executor_work
from raftlog.tools.spark.audit.evidence_files import EVIDENCE, JUDGED, keep_evidence
from raftlog.tools.spark.audit.executor_work import SLICES, JudgeWork, SurveyWork, files_of
from raftlog.tools.spark.audit.outcome_files import Outcome, outcomes_in
from raftlog.tools.spark.audit.survey_child import child_of_worker
from raftlog.tools.spark.audit.survey_queue import PlannedSurvey, SurveyQueue
from tests.golden_files import GOLDEN
from tests.tools.auditing import stand_in_survey
from tests.tools.made_logs import flip

SOURCES = [str(GOLDEN / "dynamic-quorum" / "data"), str(GOLDEN / "data-topics" / "data" / "n1")]
SURVEY = pickle.dumps(survey)


@pytest.fixture(autouse=True, scope="module")
def no_child_is_left() -> Iterator[None]:
    """A worker of Spark ends with its process; here it must be ended."""
    yield
    child_of_worker.cache_clear()


@functools.cache
def evidence() -> tuple[FileEvidence, ...]:
    """Of two quorums, in order."""
    return tuple(survey(task) for task in find_tasks(SOURCES) if isinstance(task, SurveyTask))


def batches(rows: list[dict[str, Any]], sizes: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow has them, so many in each batch."""
    rest = iter(rows)
    for size in itertools.chain(sizes, itertools.repeat(50)):
        if not (some := list(itertools.islice(rest, size))):
            return
        yield pa.RecordBatch.from_pylist(some)


def as_row(slice_number: int, number: int, file: FileEvidence) -> dict[str, Any]:
    """Evidence as it is judged."""
    return {"slice": slice_number, "number": number, "evidence": file.to_json()}


def in_order(group: Iterable[PartitionEvidence]) -> list[FileEvidence]:
    """All files of some places."""
    return [file for place in group for file in place.files]


def judged(work: JudgeWork, rows: Iterable[pa.RecordBatch]) -> Iterator[Outcome]:
    """The outcomes of a judging task."""
    for batch in work(rows):
        assert batch.schema == SLICES
        yield from outcomes_in(work.outcomes, batch["slice"].to_pylist())


@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_judging_in_any_division(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Slices of partitions, judged apart and put together in order, give the rows and the page of one judgement."""
    places = tuple(in_partitions(evidence()))
    groups = list(in_groups(places))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(groups) - 1), max_size=4)))
    sizes = data.draw(st.lists(st.integers(1, 30), max_size=5))
    most = data.draw(st.sampled_from([1, 20, 4096]))
    own = [as_row(0, number, file) for number, file in enumerate(in_order(groups[0]))]
    cut = data.draw(st.integers(0, len(own)))
    page = Report(SOURCES)
    folder = tmp_path_factory.mktemp("outcomes")
    own_evidence = folder / "later", folder / "earlier"
    for path, rows in zip(own_evidence, (own[cut:], own[:cut]), strict=True):
        keep_evidence(path, [pa.RecordBatch.from_pylist(rows, EVIDENCE)])
    whole = part_of(judge_in_groups(places), page.blank())

    total = part_of([], page)
    kept: list[PartitionEvidence] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor_work, "_MOST_VALUES", most)
        for start, end in itertools.pairwise([0, *cuts, len(groups)]):
            files = [file for group in groups[start:end] for file in in_order(group)]
            rows = [as_row(start, number, file) for number, file in enumerate(files)]
            work = pickle.loads(pickle.dumps(JudgeWork(own_evidence, page.blank(), SURVEY, None, folder)))
            count = 0
            for outcome in judged(work, batches(rows, sizes)):
                total.rows += outcome.part.rows
                total.page.merge(outcome.part.page)
                kept += outcome.kept
                count += outcome.file_count
            assert count == len(files)
    last = part_of([judge_together(kept)], page.blank())
    total.page.merge(last.page)

    assert total.rows + last.rows == whole.rows
    finished = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert total.page.html("run", finished) == whole.page.html("run", finished)


def test_topic_ids_are_kept_without_a_log_directory(tmp_path: Path) -> None:
    """Where no log directory is, partitions go back to the driver too, which compares their topic ids."""
    files = [file for file in evidence() if file.task.place.topic]
    rows = [as_row(1, number, file) for number, file in enumerate(files)]
    found = list(judged(JudgeWork((), Report(SOURCES), SURVEY, None, tmp_path), batches(rows, [])))

    assert sum(outcome.file_count for outcome in found) == len(files)
    places = list(in_partitions(files))
    assert [place for outcome in found for place in outcome.kept] == [kept_of(place) for place in places]
    assert any(place.small_file(FileKind.PARTITION_METADATA) for place in places)


def test_own_evidence_that_is_damaged(tmp_path: Path) -> None:
    """The error names the file that cannot be read, not the one that is written."""
    (tmp_path / "own").write_bytes(b"PAR1 no")
    work = JudgeWork((tmp_path / "own",), Report(SOURCES), SURVEY, None, tmp_path)

    with pytest.raises(StorageError, match=r"/own: read failed"):
        list(judged(work, batches([as_row(1, 0, evidence()[0])], [])))


def test_groups_are_judged_alike_wherever_they_are() -> None:
    """The judgement of a group is the same beside all log directories and beside its own."""
    groups = list(in_groups(in_partitions(evidence())))
    directories = by_path(groups[0])
    for group in groups:
        own = {path: each for path, each in directories.items() if path in {p.place.log_directory for p in group}}
        assert judge_group(group, directories) == judge_group(group, own)
        assert [kept_of(pickle.loads(pickle.dumps(place))) for place in group] == [kept_of(place) for place in group]


@given(numbers=st.lists(st.integers(0, 9)).map(sorted))
def test_evidence_that_is_there_twice(numbers: list[int]) -> None:
    """Of evidence that two runs have left, one is taken."""
    rows = [{"number": number, "evidence": evidence()[number].to_json()} for number in numbers]

    assert list(files_of(rows)) == [evidence()[number] for number in sorted(set(numbers))]


def survey_work(
    folder: Path,
    tasks: Iterable[SurveyTask],
    how: Callable[[SurveyTask], FileEvidence],
    directory: str | None = None,
) -> SurveyWork:
    """Work over some files."""
    (folder / "bins").mkdir()
    (folder / "evidence").mkdir()
    with SurveyQueue(folder / "bins", slots=1) as bins:
        for number, task in enumerate(tasks):
            bins.add(PlannedSurvey(7, number, f"key {number}", task))
    return SurveyWork(folder / "bins", folder / "evidence", "run", pickle.dumps(how), directory)


def given_by(work: SurveyWork) -> list[Any]:
    """The rows of a Spark task that does all bins."""
    numbers = pa.RecordBatch.from_pylist([{"id": number} for number in range(len(list(work.bins.iterdir())))])
    return by_number(pa.Table.from_batches(work([numbers])))


def by_number(rows: pa.Table) -> list[Any]:
    """Rows in the order of their files."""
    return sorted(rows.to_pylist(), key=itemgetter("number"))


def surveyed(
    tasks: Iterable[SurveyTask], how: Callable[[SurveyTask], FileEvidence], directory: str | None = None
) -> list[Any]:
    """The evidence that a task stores for some files, by number; the task yields the same, as far as it is judged."""
    with tempfile.TemporaryDirectory() as folder:
        work = survey_work(Path(folder), tasks, how, directory)
        given = given_by(work)
        kept = pq.read_table(work.evidence)
    assert kept.schema == EVIDENCE
    assert given == by_number(kept.select(JUDGED))
    return by_number(kept)


def test_a_bin_that_is_done_again(tmp_path: Path) -> None:
    """The stored evidence of a bin is yielded again, whatever has become of its files."""
    (tmp_path / "note").write_text("before")
    work = survey_work(tmp_path, [stand_in_survey.task("note")], where, str(tmp_path))
    before = given_by(work)
    (tmp_path / "note").write_text("after")

    assert given_by(work) == before
    assert FileEvidence.from_json(before[0]["evidence"]).contents == {"seen": "before"}


def test_surveying() -> None:
    """A row a file comes back under its key, with evidence as text; a bug and a death cost their own file a finding."""
    paths = ["odd \udcff", "die here", "bug", "fine"]
    rows = surveyed(map(stand_in_survey.task, paths), stand_in_survey.survey)
    found = [FileEvidence.from_json(row["evidence"]) for row in rows]

    assert [row["key"] for row in rows] == [f"key {number}" for number in range(4)]
    assert [(row["run_id"], row["slice"], row["number"]) for row in rows] == [("run", 7, number) for number in range(4)]
    assert [file.task.path for file in found] == paths
    assert [row["path"] for row in rows] == ["odd \\udcff", *paths[1:]]
    assert [file.findings[0].rule for file in found] == [
        "tail-torn",
        "file-unreadable",
        "audit-failed",
        "tail-torn",
    ]
    assert [row["is_final"] for row in rows] == [True, False, False, True]
    assert "was killed by SIGKILL" in found[1].findings[0].reason


def test_a_missing_extra_ends_the_task() -> None:
    """A package that is missing on a worker is nothing that a file can help."""
    with pytest.raises(MissingExtraError):
        surveyed([stand_in_survey.task("missing")], stand_in_survey.survey)


def where(task: SurveyTask) -> FileEvidence:
    """A survey that says where it is, by a file that it sees there."""
    return FileEvidence(task, contents={"seen": Path(task.path).read_text()})


def test_paths_start_where_the_driver_is(tmp_path: Path) -> None:
    """A path that is not absolute means what it meant to the driver; without that directory it cannot be read."""
    (tmp_path / "note").write_text("here")
    tasks = [stand_in_survey.task("note")]
    (row,) = surveyed(tasks, where, str(tmp_path))
    (other,) = surveyed(tasks, where, str(tmp_path / "nowhere"))

    assert FileEvidence.from_json(row["evidence"]).contents == {"seen": "here"}
    assert FileEvidence.from_json(other["evidence"]).findings[0].rule == "file-unreadable"
    assert (row["is_final"], other["is_final"]) == (True, False)


def test_a_second_look_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the driver's directory is missing, relative paths are judged as they were read first, and that is told."""
    data = Path(shutil.copytree(GOLDEN / "data-topics" / "data" / "n1" / "txn-0", tmp_path / "data" / "txn-0"))
    (tmp_path / "data" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    (tmp_path / "elsewhere" / "other").mkdir(parents=True)
    flip(next(data.glob("*.log")), 70)
    monkeypatch.chdir(tmp_path / "data")
    files = [survey(task) for task in find_tasks(["."]) if isinstance(task, SurveyTask)]
    rows = [as_row(1, number, file) for number, file in enumerate(files)]
    monkeypatch.chdir(tmp_path / "elsewhere")
    work = JudgeWork((), Report(SOURCES), SURVEY, str(tmp_path / "nowhere"), tmp_path)
    found = [row for outcome in judged(work, batches(rows, [])) for table, row in outcome.part.rows]

    assert {"batch-crc", "file-unreadable"} <= {row["rule"] for row in found if "rule" in row}


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def shrink(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize("change", [grow, shrink, Path.unlink])
def test_files_that_change_after_they_were_listed(change: Callable[[Path], None], tmp_path: Path) -> None:
    """A file that has grown, shrunk or been deleted since its listing has the same evidence as on one machine."""
    data = Path(shutil.copytree(GOLDEN / "data-topics" / "data" / "n1" / "txn-0", tmp_path / "txn-0"))
    tasks = [task for task in find_tasks([str(data)]) if isinstance(task, SurveyTask)]
    for file in data.glob("*.log"):
        change(file)
    found = surveyed(tasks, survey)

    assert [FileEvidence.from_json(row["evidence"]) for row in found] == [survey(task) for task in tasks]
