# SPDX-License-Identifier: Apache-2.0
"""The work of an audit's tasks on Spark's workers: Arrow rows in, Arrow rows out.

Evidence is text, and is stored as soon as a task is done. Judged results are pickled, as they never outlive the run.
Memory holds the evidence of one partition with its replicas, that of all log directories themselves, and some rows.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, in_partitions
from raftlog.tools.auditing.judgement.judgement import by_path, in_groups, judge_group, kept_of
from raftlog.tools.auditing.run.full_audit import AuditPart, Page
from raftlog.tools.spark.audit.bins import MEBIBYTE
from raftlog.tools.spark.audit.evidence_files import EVIDENCE, evidence_path, keep_evidence, kept_evidence
from raftlog.tools.spark.audit.outcome_files import Outcome, write_outcomes
from raftlog.tools.spark.audit.survey_child import child_of_worker
from raftlog.tools.spark.audit.survey_queue import Bin, read_bin
from raftlog.tools.spark.worker_gc import settle
from raftlog.tools.terminal.standard_error import unicode_text

SLICES: Final = pa.schema([("slice", pa.int32())])
SLICES_COLUMNS: Final = "slice int"

_MOST_ROWS: Final = 256
_MOST_CHARACTERS: Final = 8 * MEBIBYTE
_MOST_VALUES: Final = 4096
"""Limit on the rows of tables, and on the places, in one outcome."""


@attrs.frozen
class SurveyWork:
    """Surveys bins of files, stores the evidence, and yields it. Spark pickles it to send it to the workers.

    Spark may run a bin's task again after losing its output, even twice at the same time: each run yields the stored
        evidence.

    Attributes:
        bins: the folder of the bins.
        evidence: the folder to store evidence in.
        run_id: of the run.
        survey: the function that surveys a file, pickled.
        directory: the base of relative paths; None if all paths are absolute.
    """

    bins: Path
    evidence: Path
    run_id: str
    survey: bytes
    directory: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Survey the bins whose numbers are in rows of ``id``, and yield rows of ``JUDGED``."""
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
            found = child.surveyed(planned.task)
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
    """Judges slices, and stores the outcomes for the driver. Spark pickles it to send it to the workers.

    Attributes:
        own_evidence: paths of this run's evidence of the log directories' own files, and of no others.
        page: an empty report.
        directory: the base of relative paths; None if all paths are absolute.
        outcomes: the folder to store outcomes in.
    """

    own_evidence: tuple[Path, ...]
    page: Page
    directory: str | None
    outcomes: Path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Judge rows of ``JUDGED``, which are ordered as by ``find_tasks`` in each slice, and yield ``SLICES``."""
        rows = _rows(batches)
        for first in itertools.islice(rows, 1):
            where = _existing(self.directory)
            with contextlib.chdir(where) if where else contextlib.nullcontext():
                judged = self._judged(files_of(itertools.chain([first], rows)))
                write_outcomes(self.outcomes, first["slice"], judged)
            yield pa.RecordBatch.from_pylist([{"slice": first["slice"]}], SLICES)
        settle("judgement")

    def _judged(self, files: Iterable[FileEvidence]) -> Iterator[Outcome]:
        """Judge one partition after the other, and yield the outcomes of several at a time."""
        directories = _directories(self.own_evidence)
        part, kept, file_count = AuditPart(self.page.blank()), list[PartitionEvidence](), 0
        for places in in_groups(in_partitions(files)):
            part.add(judge_group(places, directories))
            kept += map(kept_of, places if directories else ())
            file_count += sum(len(place.files) for place in places)
            if len(part.rows) + len(kept) >= _MOST_VALUES:
                yield Outcome(part, tuple(kept), file_count)
                part, kept, file_count = AuditPart(self.page.blank()), [], 0
        if file_count:
            yield Outcome(part, tuple(kept), file_count)


def files_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[FileEvidence]:
    """Yield the evidence of rows that are ordered by ``number``; if a number occurs twice, the first."""
    before = None
    for row in rows:
        if row["number"] != before:
            before = row["number"]
            yield FileEvidence.from_json(row["evidence"])


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches one at a time, without a second copy of a whole batch."""
    for batch in batches:
        names = batch.schema.names
        for number in range(batch.num_rows):
            yield {name: batch.column(name)[number].as_py() for name in names}


@functools.lru_cache(maxsize=1)
def _directories(own_evidence: tuple[Path, ...]) -> Mapping[str, PartitionEvidence]:
    """Return all log directories by path; a worker's Python reads them once."""
    rows = _rows(itertools.chain.from_iterable(map(kept_evidence, own_evidence)))
    return by_path(in_partitions(files_of(sorted(rows, key=itemgetter("number")))))


@functools.cache
def _existing(directory: str | None) -> str | None:
    return directory if directory is not None and os.path.isdir(directory) else None  # noqa: PTH112
