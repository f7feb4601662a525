# SPDX-License-Identifier: Apache-2.0
"""A child process that surveys files for a Spark worker, so that a file that kills its reader becomes a finding.

If the worker itself died, Spark would retry the same file, lose one worker after the other, and fail the job.
"""

import functools
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Final

import attrs

from raftlog.errors import MissingExtraError, fresh_copy
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.run.engine import Survey, attempt
from raftlog.tools.auditing.run.workers import of_death
from raftlog.tools.catalogue.audit_rules import UNREAD_RULES

_MODULE: Final = "raftlog.tools.spark.audit.survey_child"


@attrs.frozen
class Surveyed:
    """The evidence of a file, as sent from the child to the worker.

    Attributes:
        evidence: as JSON text.
        is_final: whether the evidence is valid until the file changes. False if something could not be
            read, so that the next run tries again.
    """

    evidence: str
    is_final: bool

    @classmethod
    def of(cls, file: FileEvidence) -> "Surveyed":
        """Return the serialized form of evidence."""
        return cls(file.to_json(), not any(finding.rule in UNREAD_RULES for finding in file.findings))


class SurveyChild:
    """Surveys files in a child process, which is started on first use, and again after it died.

    Args:
        survey: surveys a file; pickled.
        directory: the one that relative paths start from; None for the working directory of this process.
    """

    def __init__(self, survey: bytes, directory: str | None = None) -> None:
        self._survey = survey
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def surveyed(self, task: SurveyTask) -> Surveyed:
        """Survey a file. If that kills the child, the evidence has a finding about it.

        Raises:
            MissingExtraError: a package of an extra is not installed.
        """
        try:
            outcome = self._ask(task)
        except (EOFError, OSError, pickle.UnpicklingError):
            return Surveyed.of(of_death(task, self.end()))
        except BaseException:
            self.end()  # Its late answer would be taken for the answer to the next task.
            raise
        if isinstance(outcome, MissingExtraError):
            raise fresh_copy(outcome)
        return outcome

    def end(self) -> int | None:
        """End the process, if any, and return its exit code, or the signal that killed it as a negative number."""
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def __del__(self) -> None:
        self.end()

    def _ask(self, task: SurveyTask) -> Surveyed | MissingExtraError:
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise EOFError
        pickle.dump(task, process.stdin)
        process.stdin.flush()
        answer: Surveyed | MissingExtraError = pickle.load(process.stdout)  # noqa: S301 - of our own process
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, sys.path))
        variables = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - this same Python, with constant arguments
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._directory,
            env=variables,
        )
        if self._process.stdin is not None:
            self._process.stdin.write(self._survey)
        return self._process


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:  # Buffered bytes that a dead process cannot receive.
        return


@functools.lru_cache(maxsize=1)
def child_of_worker(survey: bytes, directory: str | None) -> SurveyChild:
    """Return the child of this process. Successive tasks share it, since starting Python takes long."""
    return SurveyChild(survey, directory)


def _answer(survey: Survey, task: SurveyTask) -> Surveyed | MissingExtraError:
    outcome = attempt(survey, task)
    return outcome if isinstance(outcome, MissingExtraError) else Surveyed.of(outcome)


def main() -> None:
    """Survey the tasks that arrive on standard input, until it is closed or the worker has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to all processes; the worker ends this one.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Output that a library prints must not be taken for an answer.
    try:
        survey: Callable[[SurveyTask], FileEvidence] = pickle.load(requests)  # noqa: S301 - of the process that started us
        while True:
            task = pickle.load(requests)  # noqa: S301
            pickle.dump(_answer(survey, task), answers)
            answers.flush()
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    # Imported by its full name: classes pickled from ``__main__`` cannot be unpickled by the worker.
    from raftlog.tools.spark.audit import survey_child

    survey_child.main()
