# SPDX-License-Identifier: Apache-2.0
"""What an audit's tasks do on the workers of Spark: rows in, rows out, as Arrow.

Evidence is text in these rows; what was judged is pickled, as it never outlives the run. Memory holds the evidence of
one partition with its replicas, and some rows.
"""

import contextlib
import functools
import itertools
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, in_partitions
from raftlog.tools.auditing.full_audit import AuditPart, Page
from raftlog.tools.auditing.judgement import in_groups, judge_group, kept_of
from raftlog.tools.spark.bin_files import read_bin
from raftlog.tools.spark.bins import MEBIBYTE
from raftlog.tools.spark.settled_worker import settle
from raftlog.tools.spark.survey_child import child_of_worker
from raftlog.tools.standard_error import unicode_text

EVIDENCE: Final = pa.schema(
    [
        ("key", pa.string()),
        ("run_id", pa.string()),
        ("slice", pa.int32()),
        ("number", pa.int64()),
        ("is_final", pa.bool_()),
        ("path", pa.string()),
        ("evidence", pa.string()),
    ]
)
"""What surveys found, as it is kept for the next run: of one file by each key that is final.

``slice`` and ``number`` are those of the run that found it.
"""
EVIDENCE_COLUMNS: Final = (
    "key string, run_id string, slice int, number long, is_final boolean, path string, evidence string"
)
OUTCOMES: Final = pa.schema([("outcome", pa.binary())])
OUTCOME_COLUMNS: Final = "outcome binary"

_MOST_ROWS: Final = 256
_MOST_CHARACTERS: Final = 8 * MEBIBYTE
_MOST_VALUES: Final = 4096
"""In an outcome: rows of tables, and places that are kept."""


@attrs.frozen
class Outcome:
    """What came of some partitions that follow each other.

    Attributes:
        part: for the run.
        kept: for what log directories are compared with.
        file_count: how many files there were.
    """

    part: AuditPart
    kept: tuple[PartitionEvidence, ...]
    file_count: int


@attrs.frozen
class SurveyWork:
    """Surveys bins of files, and yields evidence; what Spark sends to workers. It pickles.

    Attributes:
        bins: the folder that they are in.
        run_id: of the run.
        survey: pickled, what surveys a file.
        directory: where paths start that are not absolute; None if all are.
    """

    bins: Path
    run_id: str
    survey: bytes
    directory: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows of ``id``, the number of a bin, and give ``EVIDENCE``."""
        child = child_of_worker(self.survey, _existing(self.directory))
        rows: list[dict[str, Any]] = []
        size = 0
        bins = (read_bin(self.bins, row["id"]) for row in _rows(batches))
        for planned in itertools.chain.from_iterable(bins):
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
        settle("survey")


@attrs.frozen
class JudgeWork:
    """Judges evidence that comes in the order of ``find_tasks``, whole partitions of it; likewise.

    Attributes:
        directories: all log directories by path.
        page: an empty one.
        directory: where paths start that are not absolute; None if all are.
    """

    directories: Mapping[str, PartitionEvidence]
    page: Page
    directory: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows of ``number`` and ``evidence``, and give ``OUTCOMES``."""
        where = _existing(self.directory)
        with contextlib.chdir(where) if where else contextlib.nullcontext():
            for outcome in self.outcomes(files_of(_rows(batches))):
                yield pa.RecordBatch.from_pylist([{"outcome": pickle.dumps(outcome)}], OUTCOMES)
        settle("judgement")

    def outcomes(self, files: Iterable[FileEvidence]) -> Iterator[Outcome]:
        """Judge partition after partition, and yield what comes of some at a time."""
        part, kept, file_count = AuditPart(self.page.blank()), list[PartitionEvidence](), 0
        for places in in_groups(in_partitions(files)):
            part.add(judge_group(places, self.directories))
            kept += map(kept_of, places)
            file_count += sum(len(place.files) for place in places)
            if len(part.rows) + len(kept) >= _MOST_VALUES:
                yield Outcome(part, tuple(kept), file_count)
                part, kept, file_count = AuditPart(self.page.blank()), [], 0
        if kept:
            yield Outcome(part, tuple(kept), file_count)


def files_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[FileEvidence]:
    """Yield the evidence of rows that are ordered by ``number``; of a number that comes twice, the first."""
    before = None
    for row in rows:
        if row["number"] != before:
            before = row["number"]
            yield FileEvidence.from_json(row["evidence"])


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches, one at a time: no second copy of a whole batch is made."""
    for batch in batches:
        names = batch.schema.names
        for number in range(batch.num_rows):
            yield {name: batch.column(name)[number].as_py() for name in names}


@functools.cache
def _existing(directory: str | None) -> str | None:
    return directory if directory is not None and os.path.isdir(directory) else None  # noqa: PTH112
