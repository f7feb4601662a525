# SPDX-License-Identifier: Apache-2.0
"""A process that surveys files for a worker of Spark: a file that kills its reader costs that file a finding.

Were it the worker that died, Spark would have the same file kill one after the other, and then give up the job.
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
    """What is known of a file, on its way from process to process.

    Attributes:
        evidence: as text.
        is_final: whether it holds as long as the file does not change; what could not be read is tried again.
    """

    evidence: str
    is_final: bool

    @classmethod
    def of(cls, file: FileEvidence) -> "Surveyed":
        """Make it of evidence."""
        return cls(file.to_json(), not any(finding.rule in UNREAD_RULES for finding in file.findings))


class SurveyChild:
    """Surveys files in a process of its own, which is started when it is needed, and again once it is dead.

    Args:
        survey: pickled, what surveys a file.
        directory: where paths start that are not absolute; None for where this process is.
    """

    def __init__(self, survey: bytes, directory: str | None = None) -> None:
        self._survey = survey
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def surveyed(self, task: SurveyTask) -> Surveyed:
        """Survey a file.

        Raises:
            MissingExtraError: a package of an extra is not installed.
        """
        try:
            outcome = self._ask(task)
        except (EOFError, OSError, pickle.UnpicklingError):
            return Surveyed.of(of_death(task, self.end()))
        except BaseException:
            self.end()  # Its answer would be taken for that to the next question.
            raise
        if isinstance(outcome, MissingExtraError):
            raise fresh_copy(outcome)
        return outcome

    def end(self) -> int | None:
        """End the process, and return the exit code that it had, or the signal as a negative number."""
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
        self._process = subprocess.Popen(  # noqa: S603 - this same Python, and no word from outside
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
    except OSError:  # What was not sent to a dead process.
        return


@functools.lru_cache(maxsize=1)
def child_of_worker(survey: bytes, directory: str | None) -> SurveyChild:
    """Return the child of this process, which one task after the other uses: starting Python takes a while."""
    return SurveyChild(survey, directory)


def _answer(survey: Survey, task: SurveyTask) -> Surveyed | MissingExtraError:
    outcome = attempt(survey, task)
    return outcome if isinstance(outcome, MissingExtraError) else Surveyed.of(outcome)


def main() -> None:
    """Survey what comes in on standard input, until its other end is closed or its process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It is sent to all processes of a terminal; the first one ends us.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints is no answer.
    try:
        survey: Callable[[SurveyTask], FileEvidence] = pickle.load(requests)  # noqa: S301 - of the process that started us
        while True:
            task = pickle.load(requests)  # noqa: S301
            pickle.dump(_answer(survey, task), answers)
            answers.flush()
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    # By its whole name: what is pickled here as of ``__main__`` nobody else could read.
    from raftlog.tools.spark.audit import survey_child

    survey_child.main()
