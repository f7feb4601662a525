# SPDX-License-Identifier: Apache-2.0
"""The audit on Spark: workers survey files and judge partitions, and the driver lists, puts together and writes.

Evidence is kept as Parquet, wave by wave: a run that was killed goes on where it was, and one over files that have
changed a little surveys only those. The driver holds a wave of tasks, the keys of the evidence that is there, and what
log directories are compared with; it reads no file of a log.
"""

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa
from pyspark import cloudpickle

from raftlog.errors import SparkJobError, StorageError
from raftlog.file_paths import is_remote
from raftlog.storage.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, in_partitions
from raftlog.tools.auditing.evidence_store import key_of
from raftlog.tools.auditing.full_audit import AuditRun
from raftlog.tools.auditing.judgement import by_path, judge_together
from raftlog.tools.auditing.run import tasks_of, with_problems
from raftlog.tools.auditing.run_progress import RunProgress
from raftlog.tools.auditing.survey import survey as survey_file
from raftlog.tools.findings import Finding
from raftlog.tools.spark.bin_files import PlannedSurvey, write_bins
from raftlog.tools.spark.bins import Slices, bin_weights, pack, wave_weight, weight_of
from raftlog.tools.spark.executor_work import (
    EVIDENCE_COLUMNS,
    OUTCOME_COLUMNS,
    JudgeWork,
    Outcome,
    SurveyWork,
    files_of,
)
from raftlog.tools.spark.outcome_files import outcomes_in
from raftlog.tools.spark.plan_file import PLAN_COLUMNS, PlanFile
from raftlog.tools.spark.spark_failure import failures_of
from raftlog.tools.spark.spark_paths import path_to_read, path_to_write
from raftlog.tools.spark.worker_check import check_workers
from raftlog.tools.standard_error import unicode_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLAN: Final = "plan.parquet"
_BINS: Final = "bins"
"""Of each wave, with the number of its first file."""
_OUTCOMES: Final = "outcomes"
_FOLDED: Final = "folded"
_UNCOMMITTED: Final = "_temporary"
"""Where Spark's tasks write, until their job is done."""
_MOST_TASKS: Final = 50_000
"""In a wave: the driver holds them."""


@attrs.frozen
class SparkEngine:
    """Audits on Spark, with the same results as ``LocalEngine``.

    The output directory is one that driver and workers see under the same path, and so is what is audited.

    Attributes:
        spark: the session to work in.
        sources: as for ``find_tasks``, but for standard input.
        is_fresh: whether to read files too that have not changed since the last run.
        reads_messages: whether to read the messages in records of the metadata log too.
        label: who is at work, for the terminal.
        survey: what surveys a file.
    """

    spark: "SparkSession"
    sources: Sequence[str]
    is_fresh: bool = False
    reads_messages: bool = False
    label: str = "audit"
    survey: Callable[[SurveyTask], FileEvidence] = survey_file

    def __call__(self, run: AuditRun) -> int:
        """Audit, and return how many files were not read, because they had not changed.

        Raises:
            SparkJobError: Spark cannot go on. What was surveyed is kept for the next run.
            StorageError: the output directory cannot be written.
        """
        if STANDARD_INPUT in self.sources:
            raise SparkJobError("listing", "standard input cannot be read by the workers of Spark")
        if (shown := unicode_text(str(run.output.work_folder))) != str(run.output.work_folder):
            raise SparkJobError("writing", f"{shown} is no Unicode, which the names of Spark's files have to be")
        problems: list[Finding] = []
        tasks = tasks_of(self.sources, problems, reads_messages=self.reads_messages)
        with ThreadPoolExecutor(1) as beside:
            first = beside.submit(lambda: list(itertools.islice(tasks, 1)))  # All directories are searched for it.
            slots = check_workers(self.spark)
        with _folders(run, is_fresh=self.is_fresh):
            return _SparkRun(self, run, slots).run(itertools.chain(first.result(), tasks), problems)


class _SparkRun:
    """A run on Spark."""

    def __init__(self, engine: SparkEngine, run: AuditRun, slots: int) -> None:
        self._engine = engine
        self._spark = engine.spark
        self._run = run
        self._slots = slots
        self._evidence = run.output.evidence_folder
        self._work = run.output.work_folder
        self._directory = Path.cwd().as_posix() if any(map(_is_relative, engine.sources)) else None
        self._slices = Slices()
        self._own_files_count = 0
        self._reuses = 0
        self._reused_files = 0

    def run(self, tasks: Iterable[SurveyTask], problems: Sequence[Finding]) -> int:
        """Audit, and return how many files were not read.

        Args:
            tasks: what there is to survey; as they come, problems are added to.
            problems: what is wrong with directories.
        """
        known = self._known_keys()
        with RunProgress(self._engine.label, self._engine.sources) as progress:
            count = self._plan(tasks, known, progress)
        kept = self._judge(count) if count else []
        self._run.take_judged(with_problems(judge_together(kept), problems))
        if len(known) - self._reuses > count:
            self._fold()
        return self._reused_files

    def _known_keys(self) -> set[str]:
        """Return the keys of the evidence that still holds if files have not changed."""
        if not any(self._evidence.glob("*.parquet")):
            return set()
        with failures_of("reading the evidence of earlier runs"):
            keys: pa.ChunkedArray = self._stored().where("is_final").select("key").toArrow()["key"]
        return set(keys.to_pylist())

    def _plan(self, tasks: Iterable[SurveyTask], known: set[str], progress: RunProgress) -> int:
        """List all files, have those surveyed that are not known, and return how many there are."""
        wave: list[PlannedSurvey] = []
        weight, most, count = 0, wave_weight(self._slots), 0
        with PlanFile(self._work / _PLAN) as plan:
            for task in tasks:
                planned = PlannedSurvey(self._slices.number_of(task), count, key_of(task), task)
                count += 1
                self._own_files_count += planned.slice_number == 0
                if planned.key in known:
                    plan.add(planned.slice_number, planned.number, planned.key)
                    self._reused_files += 1 + len(task.indexes)
                    progress.passed(task)
                    continue
                wave.append(planned)
                weight += weight_of(task)
                if weight >= most or len(wave) >= _MOST_TASKS:
                    most = wave_weight(self._slots, weight, self._survey(wave, progress))
                    wave, weight = [], 0
            self._survey(wave, progress)
        self._reuses = plan.count
        return count

    def _survey(self, wave: Sequence[PlannedSurvey], progress: RunProgress) -> float:
        """Have files surveyed, and what was found made to last; return how many seconds it took."""
        began = time.monotonic()
        if wave:
            weights = [weight_of(planned.task) for planned in wave]
            bins = pack(weights, bin_weights(sum(weights), self._slots))
            folder = self._work / f"{_BINS}-{wave[0].number}"
            write_bins(folder, ([wave[index] for index in within] for within in bins))
            survey = cloudpickle.dumps(self._engine.survey)  # type: ignore[no-untyped-call]
            work = SurveyWork(folder, self._run.run_id, survey, self._directory)
            with failures_of("surveying"):
                numbers = self._spark.range(0, len(bins), 1, len(bins))
                found = numbers.mapInArrow(work.__call__, EVIDENCE_COLUMNS)
                found.write.mode("append").option("compression", "zstd").parquet(path_to_write(self._evidence))
            shutil.rmtree(folder, ignore_errors=True)
        for planned in wave:
            progress.passed(planned.task)
        return time.monotonic() - began

    def _judge(self, count: int) -> list[PartitionEvidence]:
        """Judge all evidence, hand in what comes of it, and return what log directories are compared with."""
        files = self._own_files()
        work = JudgeWork(by_path(in_partitions(files)), self._run.page.blank(), self._directory)
        kept: list[PartitionEvidence] = []
        for outcome in itertools.chain(work.outcomes(files), self._judged(work)):
            self._run.take(outcome.part)
            kept += outcome.kept
            count -= outcome.file_count
        if count:
            raise StorageError(
                str(self._evidence), "read", f"evidence of {count} files is missing; --fresh makes it anew"
            )
        return kept

    def _own_files(self) -> Sequence[FileEvidence]:
        """Return the evidence of files of log directories themselves."""
        if not self._own_files_count:
            return ()
        with failures_of("reading evidence"):
            rows = self._held().where("slice = 0").collect()
        return list(files_of(sorted((row.asDict() for row in rows), key=itemgetter("number"))))

    def _judged(self, work: JudgeWork) -> Iterator[Outcome]:
        """Have workers judge partitions, and yield what comes of them, in order."""
        if self._slices.count == 1:
            return
        folder = self._work / _OUTCOMES
        with failures_of("judging"):
            rows = self._held().where("slice > 0").repartitionById(self._slices.count, "slice")
            judged = rows.sortWithinPartitions("number").mapInArrow(work.__call__, OUTCOME_COLUMNS)
            judged.write.parquet(path_to_write(folder))
        yield from outcomes_in(folder)

    def _held(self) -> "DataFrame":
        """Return the evidence of all files that there are, with their slices and numbers."""
        columns = "slice", "number", "evidence"
        found = self._found().select(*columns)
        if not self._reuses:
            return found
        reused = self._stored().where("is_final").drop("slice", "number").join(self._reused(), "key")
        return found.unionByName(reused.select(*columns))

    def _found(self) -> "DataFrame":
        """Return the evidence that this run has found."""
        return self._stored().where(f"run_id = '{self._run.run_id}'")

    def _reused(self) -> "DataFrame":
        """Return the keys of the evidence of earlier runs that holds in this one, with their slices and numbers."""
        return self._spark.read.schema(PLAN_COLUMNS).parquet(path_to_read(self._work / _PLAN))

    def _stored(self) -> "DataFrame":
        return self._spark.read.schema(EVIDENCE_COLUMNS).parquet(path_to_read(self._evidence))

    def _fold(self) -> None:
        """Write the evidence of files that are still there, once most is of others."""
        folded = self._work / _FOLDED
        with failures_of("sorting out evidence"):
            reused = self._stored().join(self._reused(), "key", "left_semi")
            kept = self._found().unionByName(reused).where("is_final").repartition(self._slots, "key")
            kept.dropDuplicates(["key"]).write.option("compression", "zstd").parquet(path_to_write(folded))
        # Killed between the two, the next run surveys everything: it costs time, and nothing else.
        shutil.rmtree(self._evidence)
        folded.replace(self._evidence)


def _is_relative(source: str) -> bool:
    return not is_remote(source) and not os.path.isabs(source)  # noqa: PTH117


@contextmanager
def _folders(run: AuditRun, *, is_fresh: bool) -> Iterator[None]:
    """Lend the folders of a run: that of the evidence stays, the other one is empty, and goes with the run."""
    evidence, work = run.output.evidence_folder, run.output.work_folder
    try:
        # Of a run that was killed: Spark would take what its tasks have left for that of the next one's.
        for left in (work, evidence / _UNCOMMITTED):
            shutil.rmtree(left, ignore_errors=True)
        if is_fresh:
            shutil.rmtree(evidence, ignore_errors=True)
        work.mkdir()
        evidence.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(str(work), "write", error.strerror or str(error)) from error
    try:
        yield
    finally:
        shutil.rmtree(work, ignore_errors=True)
