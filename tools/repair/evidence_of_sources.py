# SPDX-License-Identifier: Apache-2.0
"""Surveys the sources of a repair: the evidence of their metadata logs, as ``raftlog quorum`` reads it."""

from collections.abc import Iterable, Iterator, Sequence

from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.repair.sources import Source


def evidence_of(sources: Sequence[Source], processes: int) -> list[PartitionEvidence]:
    """Return the evidence of some log directories: their metadata logs, and their ``meta.properties``.

    Args:
        sources: the log directories.
        processes: number of processes that read files.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    directories = {source.directory for source in sources}
    places = group_by_place(survey_all(_tasks(sorted(directories)), processes))
    return [each for each in places if each.place.log_directory in directories]


def _tasks(directories: Iterable[str]) -> Iterator[SurveyTask]:
    for found in find_tasks(directories):
        task = quorum_task(found) if isinstance(found, SurveyTask) else None
        if task is not None and (task.is_raft or not task.place.topic):
            yield task
