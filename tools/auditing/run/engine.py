# SPDX-License-Identifier: Apache-2.0
"""Surveys many files, in this process or in several, and yields the evidence in the order of the tasks.

If a process dies, because the system is out of memory or a library crashes, only the file that it was reading is lost,
and has a finding; the same holds for a bug. Memory use does not depend on the number of files.
"""

import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from raftlog.errors import MissingExtraError, fresh_copy, without_frames
from raftlog.tools.auditing.crash_isolation import audit_failed
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.survey import survey as survey_file

if TYPE_CHECKING:
    from raftlog.tools.auditing.run.workers import Outcome

Survey = Callable[[SurveyTask], FileEvidence]

_BATCH_COUNT: Final = 256
_BATCH_SIZE: Final = 8 * 1024 * 1024
"""In bytes. A process is given many small files at a time, up to this size."""


def survey_all(
    tasks: Iterable[SurveyTask], processes: int, survey: Survey = survey_file
) -> Generator[FileEvidence, None, None]:
    """Survey files and yield their evidence in the order of the tasks.

    Args:
        tasks: the files to survey; consumed as results are taken.
        processes: number of processes. With 1, or if there is little to do, all work is done in this process.
        survey: the function that surveys a file. It and its result must be picklable.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    batches = _batches(tasks)
    first = list(itertools.islice(batches, 2))
    batches = itertools.chain(first, batches)
    if processes <= 1 or len(first) <= 1:
        for task in itertools.chain.from_iterable(batches):
            yield _evidence(attempt(survey, task))
        return
    from raftlog.tools.auditing.run.workers import Workers  # Slow to import, and not needed for a single file.

    with Workers(processes, functools.partial(attempt, survey)) as workers:
        yield from map(_evidence, workers.run(batches))


def attempt(survey: Survey, task: SurveyTask) -> "Outcome":
    """Survey a file; a bug in raftlog becomes a finding, and a missing extra is returned, to be raised later."""
    try:
        return survey(task)
    except MissingExtraError as error:
        return without_frames(error)
    except Exception as error:
        return FileEvidence(task, (audit_failed(task.path, error),))


def _evidence(outcome: "Outcome") -> FileEvidence:
    if isinstance(outcome, MissingExtraError):
        raise fresh_copy(outcome)
    return outcome


def _batches(tasks: Iterable[SurveyTask]) -> Iterator[list[SurveyTask]]:
    batch: list[SurveyTask] = []
    size = 0
    for task in tasks:
        if batch and (len(batch) == _BATCH_COUNT or size + task.size_bytes > _BATCH_SIZE):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.size_bytes
    if batch:
        yield batch
