# SPDX-License-Identifier: Apache-2.0
"""The audit on Spark: workers survey files and judge partitions; the driver lists files and writes the results.

Each task stores its evidence as Parquet when it is done. So a killed run continues where it stopped, and a later run
surveys only the files that have changed. The driver holds a limited number of tasks, the keys of the stored evidence,
and the evidence that log directories are compared with. It reads files of a log only to look at them again, before log
directories are said to contradict each other.
"""

import contextlib
import functools
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle

from raftlog.errors import SparkJobError, StorageError
from raftlog.file_paths import is_remote
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask
from raftlog.tools.auditing.object_paths import ObjectPath, OutputPath
from raftlog.tools.auditing.run.evidence_store import key_of
from raftlog.tools.auditing.run.full_audit import AuditRun
from raftlog.tools.auditing.run.run import tasks_of
from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.auditing.run.second_look import settle_together
from raftlog.tools.auditing.survey.survey import survey as survey_file
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.audit.bin_progress import watching_bins
from raftlog.tools.spark.audit.bins import Slices
from raftlog.tools.spark.audit.evidence_files import JUDGED, JUDGED_COLUMNS, evidence_path
from raftlog.tools.spark.audit.executor_work import SLICES_COLUMNS, JudgeWork, SurveyWork
from raftlog.tools.spark.audit.outcome_files import Outcome, outcomes_in
from raftlog.tools.spark.audit.plan_file import PlanFile
from raftlog.tools.spark.audit.stored_evidence import (
    evidence_frame,
    local_plan_frame,
    plan_frame,
    replace_evidence,
)
from raftlog.tools.spark.audit.survey_queue import PlannedSurvey, SurveyQueue
from raftlog.tools.spark.audit.whole_file import parts_in
from raftlog.tools.spark.audit.worker_check import check_workers
from raftlog.tools.spark.spark_failure import failures_of
from raftlog.tools.terminal.standard_error import unicode_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLAN: Final = "plan.parquet"
_BINS: Final = "bins"
_OUTCOMES: Final = "outcomes"
_OWN: Final = "own.parquet"
_READING: Final = "reading the evidence of earlier runs"


@attrs.frozen
class SparkEngine:
    """Audits on Spark, with the same results as ``LocalEngine``.

    Driver and workers must see the output directory and the audited files under the same paths.

    Attributes:
        spark: the session to work in.
        sources: paths as for ``find_tasks``, except standard input.
        is_fresh: whether to read unchanged files too.
        reads_messages: whether to decode the messages in records of the metadata log too.
        label: name of the command, for the progress line.
        survey: surveys a file.
    """

    spark: "SparkSession"
    sources: Sequence[str]
    is_fresh: bool = False
    reads_messages: bool = False
    label: str = "audit"
    survey: Callable[[SurveyTask], FileEvidence] = survey_file

    def __call__(self, run: AuditRun) -> int:
        """Audit, and return the number of files that were not read because they have not changed.

        Raises:
            SparkJobError: Spark failed. Evidence that was stored is reused by the next run.
            StorageError: the output directory cannot be written.
        """
        if STANDARD_INPUT in self.sources:
            raise SparkJobError("listing", "standard input cannot be read by Spark workers")
        if (shown := unicode_text(str(run.output.work_folder))) != str(run.output.work_folder):
            raise SparkJobError("writing", f"the path {shown} is not Unicode, as Spark requires")
        problems: list[Finding] = []
        tasks = tasks_of(self.sources, problems, reads_messages=self.reads_messages)
        with ThreadPoolExecutor(1) as beside:  # The first task takes long: all directories are searched for it.
            first = beside.submit(lambda: list(itertools.islice(tasks, 1)))
            slots = check_workers(self.spark)
        with _work_folder(run, is_fresh=self.is_fresh) as work:
            return _SparkRun(self, run, work, slots).run(itertools.chain(first.result(), tasks), problems)


class _SparkRun:
    """One run of the audit on Spark."""

    def __init__(self, engine: SparkEngine, run: AuditRun, work: OutputPath, slots: int) -> None:
        self._engine = engine
        self._spark = engine.spark
        self._run = run
        self._slots = slots
        self._evidence = run.output.evidence_folder
        self._work = work
        self._plan_path = (
            Path(str(work), _PLAN) if isinstance(work, Path) else Path(run.output.store_path).with_name(_PLAN)
        )
        self._directory = Path.cwd().as_posix() if any(map(_is_relative, engine.sources)) else None
        self._slices = Slices()
        self._count = 0
        self._reuses = 0
        self._own_reuses = 0
        self._reused_files = 0

    def run(self, tasks: Iterable[SurveyTask], problems: Sequence[Finding]) -> int:
        """Audit, and return the number of files that were not read.

        Args:
            tasks: the files to survey; iterating over them adds to ``problems``.
            problems: findings about directories.
        """
        known = self._known_keys()
        with RunProgress(self._engine.label, self._engine.sources) as progress:
            bins = self._plan(tasks, known, progress)
            with watching_bins(progress, self._evidence, self._run.run_id, bins.sizes_bytes):
                kept = self._judge(bins)
        list_again = functools.partial(tasks_of, self._engine.sources, reads_messages=self._engine.reads_messages)
        self._run.take_judged(settle_together(kept, problems, self._engine.survey, list_again))
        if len(known) - self._reuses > self._count:
            self._fold()
        return self._reused_files

    def _known_keys(self) -> set[str]:
        """Return the keys of the stored evidence that is valid for files that have not changed."""
        if not any(self._evidence.glob("*.parquet")):
            return set()
        with failures_of(_READING):
            keys: pa.ChunkedArray = self._stored().where("is_final").select("key").toArrow()["key"]
        return set(keys.to_pylist())

    def _plan(self, tasks: Iterable[SurveyTask], known: set[str], progress: RunProgress) -> SurveyQueue:
        """List all files: put those with stored evidence into the plan, and the others into bins for the workers."""
        with PlanFile(self._plan_path) as plan, SurveyQueue(self._work / _BINS, self._slots) as bins:
            for number, task in enumerate(tasks):
                file = PlannedSurvey(self._slices.number_of(task), number, key_of(task), task)
                if file.key in known:
                    plan.add(file.slice_number, number, file.key)
                    self._own_reuses += file.is_own
                    self._reused_files += 1 + len(task.indexes)
                    progress.passed(task.size_bytes)
                else:
                    bins.add(file)
                self._count += 1
        self._reuses = plan.count
        return bins

    def _judge(self, bins: SurveyQueue) -> list[PartitionEvidence]:
        """Have everything judged, pass the outcomes to the run, and return what log directories are compared with."""
        missing = self._count
        kept: list[PartitionEvidence] = []
        for outcome in self._judged(bins) if missing else ():
            self._run.take(outcome.part)
            kept += outcome.kept
            missing -= outcome.file_count
        if missing:
            raise StorageError(
                str(self._evidence), "read", f"evidence of {missing} files is missing; --fresh surveys all files again"
            )
        return kept

    def _judged(self, bins: SurveyQueue) -> Iterator[Outcome]:
        """Have workers survey the bins and judge everything; yield the outcomes in order."""
        work = JudgeWork(
            own_evidence=(*self._own_reused(), *map(self._evidence_path, range(bins.own_count))),
            page=self._run.page.blank(),
            survey=cloudpickle.dumps(self._engine.survey),  # type: ignore[no-untyped-call]
            directory=self._directory,
            outcomes=self._work / _OUTCOMES,
        )
        with failures_of("surveying and judging"):
            rows = self._surveyed(bins).repartitionById(self._slices.count, "slice")
            judged = rows.sortWithinPartitions("number").mapInArrow(work.__call__, SLICES_COLUMNS).collect()
        yield from outcomes_in(work.outcomes, sorted(row["slice"] for row in judged))

    def _evidence_path(self, bin_number: int) -> OutputPath:
        return evidence_path(self._evidence, self._run.run_id, bin_number)

    def _own_reused(self) -> Iterator[OutputPath]:
        """Write the reused evidence about files of log directories themselves to a file, and yield its path if any."""
        if self._own_reuses:
            with failures_of(_READING):
                found = self._surveyed_before().where("slice = 0").toArrow()
            with (path := self._work / _OWN).open("wb") as file:
                pq.write_table(found, file)
            yield path

    def _surveyed(self, bins: SurveyQueue) -> "DataFrame":
        """Return the evidence of all files, with their slices and numbers; workers survey the bins for it."""
        if not bins.count:
            return self._surveyed_before()
        survey = cloudpickle.dumps(self._engine.survey)  # type: ignore[no-untyped-call]
        work = SurveyWork(self._work / _BINS, self._evidence, self._run.run_id, survey, self._directory)
        found = self._spark.range(0, bins.count, 1, bins.count).mapInArrow(work.__call__, JUDGED_COLUMNS)
        return found.unionByName(self._surveyed_before()) if self._reuses else found

    def _surveyed_before(self) -> "DataFrame":
        """Return the evidence of earlier runs that is reused, with slices and numbers of this run."""
        return self._stored().where("is_final").select("key", "evidence").join(self._reused(), "key").select(*JUDGED)

    def _found(self) -> "DataFrame":
        """Return the evidence from surveys of this run."""
        return self._stored().where(f"run_id = '{self._run.run_id}'")

    def _reused(self) -> "DataFrame":
        """Return the plan: the keys of reused evidence, with slices and numbers of this run."""
        frame = plan_frame if isinstance(self._work, Path) else local_plan_frame
        return frame(self._spark, self._plan_path)

    def _stored(self) -> "DataFrame":
        return evidence_frame(self._spark, self._evidence)

    def _fold(self) -> None:
        """Rewrite the stored evidence without that of files that have changed or no longer exist."""
        with failures_of("sorting out evidence"):
            reused = self._stored().join(self._reused(), "key", "left_semi")
            kept = self._found().unionByName(reused).where("is_final").repartition(self._slots, "key")
            replace_evidence(kept.dropDuplicates(["key"]), self._evidence, self._work)


def _is_relative(source: str) -> bool:
    return not is_remote(source) and not os.path.isabs(source)  # noqa: PTH117


@contextmanager
def _work_folder(run: AuditRun, *, is_fresh: bool) -> Iterator[OutputPath]:
    """Create a folder for the temporary files of a run, and delete it at the end; prepare the evidence folder."""
    all_work, evidence = run.output.work_folder, run.output.evidence_folder
    work = all_work / run.run_id  # Tasks of a killed run may still write to theirs.
    is_shared = isinstance(all_work, ObjectPath)  # Without a lock, other work may be of a run that goes on.
    try:
        if not is_shared:
            _remove(all_work)
        if is_fresh and isinstance(evidence, ObjectPath):
            evidence.remove_tree()
        elif is_fresh and isinstance(evidence, Path) and evidence.exists():
            shutil.rmtree(evidence)
        evidence.mkdir(exist_ok=True)
        for part in parts_in(evidence):
            part.unlink(missing_ok=True)
        for folder in (work / _BINS, work / _OUTCOMES):
            folder.mkdir(parents=True)
    except OSError as error:
        raise StorageError(str(error.filename or work), "write", error.strerror or str(error)) from error
    try:
        yield work
    finally:
        with contextlib.suppress(StorageError):  # What is left costs space alone.
            _remove(work if is_shared else all_work)


def _remove(folder: OutputPath) -> None:
    if isinstance(folder, ObjectPath):
        folder.remove_tree()
    else:
        shutil.rmtree(folder, ignore_errors=True)
