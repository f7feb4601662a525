# SPDX-License-Identifier: Apache-2.0
"""What the metadata of a cluster say of its topics."""

from collections.abc import Iterator, Sequence

from raftlog.errors import StateNotThereError
from raftlog.tools.auditing.evidence import SurveyTask, group_by_place
from raftlog.tools.auditing.history.quorum_view import quorum_view
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.image.tables import Tables
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import copies, find_state


def read_tables(paths: Sequence[str]) -> Tables | None:
    """Return the newest state of a cluster; None if no directory has metadata from which one can be made.

    Raises:
        StorageError: a path cannot be read.
    """
    evidence = group_by_place(survey_all(_tasks(paths), 1))
    view = quorum_view(evidence)
    if view is None:
        return None
    try:
        return find_state(copies(evidence, view), Position()).image.tables
    except StateNotThereError:
        return None


def _tasks(paths: Sequence[str]) -> Iterator[SurveyTask]:
    for found in find_tasks(paths):
        if isinstance(found, SurveyTask) and (found.is_raft or not found.place.topic):
            task = quorum_task(found)
            if task is not None:
                yield task
