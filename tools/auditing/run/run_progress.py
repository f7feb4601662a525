# SPDX-License-Identifier: Apache-2.0
"""How far an audit has come, for a terminal."""

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.terminal.progress import Progress


class RunProgress:
    """A bar over the bytes of all files, on a terminal alone. A context manager, as ``Progress`` is.

    Args:
        label: who is at work.
        paths: what is audited: on a terminal it is listed once more, to know how much there is.
    """

    def __init__(self, label: str, paths: Iterable[str]) -> None:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        tasks = find_tasks(paths) if is_terminal else iter(())
        self._progress = Progress(label, sum(task.size_bytes for task in tasks if isinstance(task, SurveyTask)))
        self._position = 0

    @property
    def is_shown(self) -> bool:
        """Whether anybody sees it."""
        return self._progress.is_shown

    def surveyed(self, file: FileEvidence) -> None:
        """Say that a file is done."""
        self.passed(file.task.size_bytes)

    def passed(self, size_bytes: int) -> None:
        """Say the same of files of a size."""
        self._position += size_bytes
        self._progress.reached(self._position)

    def wipe(self) -> None:
        """Take the bar off the terminal until the next file is done: something else is to be written there."""
        self._progress.wipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.wipe()
