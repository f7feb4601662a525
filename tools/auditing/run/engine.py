# SPDX-License-Identifier: Apache-2.0
"""Surveying many files, in this process or in several, with results in the order of the tasks.

A process that dies, because the system is out of memory or a library crashes, costs the file that it was reading, which
gives a finding, and no other; so does a bug. How much is held in memory does not depend on how many files there are.
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
"""In bytes: a process is given small files many at a time."""


def survey_all(
    tasks: Iterable[SurveyTask], processes: int, survey: Survey = survey_file
) -> Generator[FileEvidence, None, None]:
    """Survey files and yield their evidence in the order of the tasks.

    Args:
        tasks: what to survey; taken as results are asked for.
        processes: how many to use. 1 runs in this process, and so does what is little.
        survey: what to do with a task. It and what it returns pickle.

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
    from raftlog.tools.auditing.run.workers import Workers  # One file needs no processes, which are slow to import.

    with Workers(processes, functools.partial(attempt, survey)) as workers:
        yield from map(_evidence, workers.run(batches))


def attempt(survey: Survey, task: SurveyTask) -> "Outcome":
    """Survey a file; a fault of raftlog's costs it a finding, and a missing extra is returned, to be raised."""
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
