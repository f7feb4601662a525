# SPDX-License-Identifier: Apache-2.0
"""A survey that opens no file, and does what a name asks for. Processes start quickly with it: it imports little."""

import os
import signal

from raftlog.errors import InvariantViolation, MissingExtraError
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, Place, SurveyTask
from raftlog.tools.catalogue.findings import Finding

BIG = 32 * 1024 * 1024


def task(name: str, size_bytes: int = BIG) -> SurveyTask:
    """A task; one of this size is given to a process alone."""
    return SurveyTask(Place("d", "orders", 0), name, FileKind.LOG, size_bytes=size_bytes)


def survey(task: SurveyTask) -> FileEvidence:
    """Do what the name asks for."""
    match task.path.partition(" ")[0]:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "bug":
            raise ZeroDivisionError("a bug")
        case "invariant":
            raise InvariantViolation("bytes are missing")
        case "missing":
            raise MissingExtraError("codecs", "lz4")
    extent = LogExtent(0, len(task.path), 0, 0, os.getpid(), 1, 1)
    return FileEvidence(task, (Finding(task.path, "tail-torn", "cut"),), extent=extent)
