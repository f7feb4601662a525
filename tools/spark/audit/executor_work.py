# SPDX-License-Identifier: Apache-2.0
"""The work of an audit's tasks on Spark workers, from Arrow rows to Arrow rows.

Evidence is stored as text when its task is done. Outcomes of judgements are pickled, since they never outlive the run.
A worker's memory holds the evidence of one partition with its replicas, that of all log directories themselves, and
some rows.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

import attrs
import pyarrow as pa

from raftlog.file_paths import directory_of, is_remote
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, in_partitions
from raftlog.tools.auditing.judgement.judgement import Judged, by_path, in_groups, judge_group, kept_of
from raftlog.tools.auditing.object_paths import OutputPath
from raftlog.tools.auditing.run.full_audit import AuditPart, Page
from raftlog.tools.auditing.run.second_look import judge_settled
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.audit.bins import MEBIBYTE
from raftlog.tools.spark.audit.evidence_files import EVIDENCE, evidence_path, keep_evidence, kept_evidence
from raftlog.tools.spark.audit.outcome_files import Outcome, write_outcomes
from raftlog.tools.spark.audit.survey_child import Surveyed, child_of_worker
from raftlog.tools.spark.audit.survey_queue import Bin, read_bin
from raftlog.tools.spark.worker_gc import settle
from raftlog.tools.terminal.standard_error import unicode_text

SLICES: Final = pa.schema([("slice", pa.int32())])
SLICES_COLUMNS: Final = "slice int"

_MOST_ROWS: Final = 256
_MOST_CHARACTERS: Final = 8 * MEBIBYTE
_MOST_VALUES: Final = 4096
"""The most values in an outcome: rows of tables, and partitions that are kept."""


@attrs.frozen
class SurveyWork:
    """Surveys bins of files, stores their evidence, and yields it. Spark pickles it for the workers.

    Spark may repeat a bin, because it lost the result, or run it twice at once: all attempts yield the stored evidence.

    Where the driver's working directory does not exist, a file with a relative path cannot be read, and that is told.

    Attributes:
        bins: the folder of the bins.
        evidence: the folder of stored evidence.
        run_id: of the run.
        survey: surveys a file; pickled.
        directory: the one that relative paths start from; None if all paths are absolute.
    """

    bins: OutputPath
    evidence: OutputPath
    run_id: str
    survey: bytes
    directory: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read rows of ``id``, the number of a bin, and yield rows of ``JUDGED``."""
        for row in _rows(batches):
            path = evidence_path(self.evidence, self.run_id, row["id"])
            if not path.exists():
                keep_evidence(path, self._survey(read_bin(self.bins, row["id"])))
            yield from kept_evidence(path)
        settle("survey")

    def _survey(self, surveys: Bin) -> Iterator[pa.RecordBatch]:
        child = child_of_worker(self.survey, _existing(self.directory))
        rows: list[dict[str, Any]] = []
        size = 0
        for planned in surveys:
            problem = _out_of_reach(planned.task.path, self.directory)
            unread = FileEvidence(planned.task, () if problem is None else (problem,))
            found = child.surveyed(planned.task) if problem is None else Surveyed.of(unread)
            rows.append(
                {
                    "key": planned.key,
                    "run_id": self.run_id,
                    "slice": planned.slice_number,
                    "number": planned.number,
                    "is_final": found.is_final,
                    "path": unicode_text(planned.task.path),
                    "evidence": found.evidence,
                }
            )
            size += len(found.evidence)
            if len(rows) >= _MOST_ROWS or size >= _MOST_CHARACTERS:
                yield pa.RecordBatch.from_pylist(rows, EVIDENCE)
                rows, size = [], 0
        if rows:
            yield pa.RecordBatch.from_pylist(rows, EVIDENCE)


@attrs.frozen
class JudgeWork:
    """Judges a slice, and writes the outcomes to a file for the driver. Spark pickles it for the workers.

    Attributes:
        own_evidence: paths of the evidence, in this run, of files of log directories themselves; no other evidence.
        page: an empty page.
        survey: surveys a file that changed while it was read; pickled.
        directory: the one that relative paths start from; None if all paths are absolute.
        outcomes: the folder for outcomes.
    """

    own_evidence: tuple[OutputPath, ...]
    page: Page
    survey: bytes
    directory: str | None
    outcomes: OutputPath

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read rows of ``JUDGED``, those of one slice in the order of ``find_tasks``, and yield a row of ``SLICES``."""
        rows = _rows(batches)
        for first in itertools.islice(rows, 1):
            where = _existing(self.directory)
            with contextlib.chdir(where) if where else contextlib.nullcontext():
                judged = self._judged(files_of(itertools.chain([first], rows)))
                write_outcomes(self.outcomes, first["slice"], judged)
            yield pa.RecordBatch.from_pylist([{"slice": first["slice"]}], SLICES)
        settle("judgement")

    def _judged(self, files: Iterable[FileEvidence]) -> Iterator[Outcome]:
        """Judge one partition after the other, and yield an outcome for several at a time."""
        directories = _directories(self.own_evidence)
        part, kept, file_count = AuditPart(self.page.blank()), list[PartitionEvidence](), 0
        for places in in_groups(in_partitions(files)):
            judged = self._settled(places, directories)
            part.add(judged)
            kept += map(kept_of, judged.places)
            file_count += sum(len(place.files) for place in places)
            if len(part.rows) + len(kept) >= _MOST_VALUES:
                yield Outcome(part, tuple(kept), file_count)
                part, kept, file_count = AuditPart(self.page.blank()), [], 0
        if file_count:
            yield Outcome(part, tuple(kept), file_count)

    def _settled(self, places: tuple[PartitionEvidence, ...], directories: Mapping[str, PartitionEvidence]) -> Judged:
        """Judge places, and once more if they changed; but where a second look would see another directory, once."""
        paths = (directory_of(place.files[0].task.path) for place in places)
        problems = [problem for path in paths if (problem := _out_of_reach(path, self.directory)) is not None]
        if problems:
            return judge_group(places, directories).with_findings(problems)
        return judge_settled(places, directories, self._survey)

    def _survey(self, task: SurveyTask) -> FileEvidence:
        child = child_of_worker(self.survey, _existing(self.directory))
        return FileEvidence.from_json(child.surveyed(task).evidence)


def files_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[FileEvidence]:
    """Yield the evidence of rows, which are ordered by ``number``; of rows with the same number, the first."""
    before = None
    for row in rows:
        if row["number"] != before:
            before = row["number"]
            yield FileEvidence.from_json(row["evidence"])


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches one at a time, so that no second copy of a whole batch is made."""
    for batch in batches:
        names = batch.schema.names
        for number in range(batch.num_rows):
            yield {name: batch.column(name)[number].as_py() for name in names}


@functools.lru_cache(maxsize=1)
def _directories(own_evidence: tuple[OutputPath, ...]) -> Mapping[str, PartitionEvidence]:
    """Return all log directories by path; each worker process reads them once."""
    rows = _rows(itertools.chain.from_iterable(map(kept_evidence, own_evidence)))
    return by_path(in_partitions(files_of(sorted(rows, key=itemgetter("number")))))


@functools.cache
def _existing(directory: str | None) -> str | None:
    return directory if directory is not None and os.path.isdir(directory) else None  # noqa: PTH112


def _out_of_reach(path: str, directory: str | None) -> Finding | None:
    """Return a finding if a path starts from a directory of the driver that does not exist on this worker."""
    if directory is None or _existing(directory) is not None or is_remote(path) or os.path.isabs(path):  # noqa: PTH117
        return None
    return Finding(path, "file-unreadable", f"the working directory of the driver is not on a worker: {directory}")
