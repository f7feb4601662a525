# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog verify`` does, without the start of a process."""

import itertools
from pathlib import Path
from typing import Final

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.engine import survey_all
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.judgement import in_partitions, judge
from raftlog.tools.auditing.tasks import find_tasks

_SEGMENTS: Final = 24
"""How many segments many are."""


def verify(path: Path) -> int:
    """Find, survey and judge a segment; return how many batches it has."""
    (evidence,) = survey_all(_tasks(path), 1)
    assert [finding for finding in judge(in_partitions([evidence])) if finding.severity is not Severity.HARMLESS] == []
    return _batch_count(evidence)


def verify_in_one_process(path: Path) -> int:
    """Survey a segment many times."""
    return _survey_many(path, 1)


def verify_in_two_processes(path: Path) -> int:
    """Survey a segment many times, in two processes."""
    return _survey_many(path, 2)


def _survey_many(path: Path, processes: int) -> int:
    # The same one many times: all of them would be in the page cache anyway.
    tasks = list(itertools.islice(itertools.cycle(_tasks(path)), _SEGMENTS))
    return sum(map(_batch_count, survey_all(tasks, processes)))


def _tasks(path: Path) -> list[SurveyTask]:
    tasks = [task for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)]
    return [attrs.evolve(task, indexes={}) for task in tasks]


def _batch_count(evidence: FileEvidence) -> int:
    assert evidence.extent is not None
    return evidence.extent.batch_count
