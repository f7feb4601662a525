# SPDX-License-Identifier: Apache-2.0
"""Shows an audit's progress on a terminal."""

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.terminal.progress import Progress


class RunProgress:
    """A progress bar over the bytes of all files, shown only on a terminal. A context manager, as ``Progress`` is.

    Args:
        label: the command's name.
        paths: the audited paths; if there is a terminal, they are listed once more to find the total size.
    """

    def __init__(self, label: str, paths: Iterable[str]) -> None:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        tasks = find_tasks(paths) if is_terminal else iter(())
        self._progress = Progress(label, sum(task.size_bytes for task in tasks if isinstance(task, SurveyTask)))
        self._position = 0

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self._progress.is_shown

    def surveyed(self, file: FileEvidence) -> None:
        """Count a file as done."""
        self.passed(file.task.size_bytes)

    def passed(self, size_bytes: int) -> None:
        """Count files of some size as done."""
        self._position += size_bytes
        self._progress.reached(self._position)

    def wipe(self) -> None:
        """Hide the bar until the next file is done, so that something else can be written to the terminal."""
        self._progress.wipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.wipe()
