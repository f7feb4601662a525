# SPDX-License-Identifier: Apache-2.0
"""Which files have facts about quorums: voters, leaders, and how far a log was durable."""

from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind, FileState
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.survey.small_file_survey import file_name

_WANTED: Final = frozenset({FileKind.LOG, FileKind.SNAPSHOT, FileKind.QUORUM_STATE, FileKind.META_PROPERTIES})


def quorum_task(task: SurveyTask) -> SurveyTask | None:
    """Return the task without indexes if its file has facts about a quorum, else None."""
    is_durable_point = task.is_raft and file_name(task) in {RECOVERY_POINT_NAME, FLUSH_MARK_NAME}
    is_wanted = task.state is FileState.CURRENT and (task.kind in _WANTED or is_durable_point)
    return attrs.evolve(task, indexes={}) if is_wanted else None
