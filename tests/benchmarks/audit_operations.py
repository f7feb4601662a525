# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog verify`` does, without the start of a process."""

from pathlib import Path

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import SurveyTask, in_partitions
from raftlog.tools.auditing.judgement.judgement import judge
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.tasks import find_tasks


def verify(path: Path) -> int:
    """Find, survey and judge a segment; return how many batches it has."""
    (evidence,) = survey_all(_tasks(path), 1)
    assert [finding for finding in judge(in_partitions([evidence])) if finding.severity is not Severity.HARMLESS] == []
    assert evidence.extent is not None
    return evidence.extent.batch_count


def _tasks(path: Path) -> list[SurveyTask]:
    tasks = [task for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)]
    return [attrs.evolve(task, indexes={}) for task in tasks]
