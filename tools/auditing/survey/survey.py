# SPDX-License-Identifier: Apache-2.0
"""Surveys one file, which is opened only for reading; a file that cannot be read is a finding."""

from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import InvariantViolation, StorageError
from raftlog.records.batches.window import ByteSource
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.storage.reading.file_source import open_source, read_file
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.bounded_source import as_listed, is_pipe
from raftlog.tools.auditing.survey.segment_survey import survey_segment
from raftlog.tools.auditing.unread_files import unread
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import INDEX_KINDS, LARGEST_SMALL_FILE_BYTES, RECORD_KINDS
from raftlog.tools.terminal.standard_error import say

_MAX_INDEX_SIZE: Final = 64 * 1024 * 1024
"""Larger indexes are not read; Kafka's limit is 10 MiB."""


def survey(task: SurveyTask) -> FileEvidence:
    """Return the evidence of a file, which may be that it was deleted or cannot be read. Its contents never raise.

    Raises:
        MissingExtraError: a package of an extra is not installed.
        InvariantViolation: some of its bytes were not accounted for.
    """
    if is_pipe(task.path):
        say(f"{task.path} is a pipe: it is read until its writer ends")
    try:
        return _survey(task)
    except StorageError as error:
        return FileEvidence(task, (unread(error),))


def _survey(task: SurveyTask) -> FileEvidence:
    is_current = task.state is FileState.CURRENT
    if is_current and task.kind is FileKind.LOG:
        return _survey_segment(task)
    if is_current and task.kind in INDEX_KINDS:
        return _survey_orphan(task)
    # Readers of other files are imported on first use, so that surveying a single segment starts sooner.
    if is_current and task.kind in RECORD_KINDS:
        from raftlog.tools.auditing.survey.snapshot_survey import survey_snapshot

        return _survey_batches(task, survey_snapshot)
    from raftlog.tools.auditing.survey.small_file_survey import has_contents, survey_small_file

    if not has_contents(task):
        return survey_small_file(task, b"")  # Only its name matters.
    with open_source(task.path) as source:
        return survey_small_file(task, bytes(source.read_at(0, LARGEST_SMALL_FILE_BYTES + 1)))


def _survey_segment(task: SurveyTask) -> FileEvidence:
    indexes: dict[FileKind, bytes] = {}
    problems: list[Finding] = []
    for kind, path in task.indexes.items():
        try:
            indexes[kind] = read_file(path, _MAX_INDEX_SIZE)
        except StorageError as error:
            problems.append(unread(error))
    evidence = _survey_batches(task, lambda task, log: survey_segment(task, log, indexes))
    return attrs.evolve(evidence, findings=(*evidence.findings, *problems))


def _survey_batches(task: SurveyTask, survey: Callable[[SurveyTask, ByteSource], FileEvidence]) -> FileEvidence:
    """Survey a file of batches, and check that each of its bytes is accounted for.

    Raises:
        InvariantViolation: the account has fewer or more bytes than the file.
    """
    with open_source(task.path) as opened:
        source = as_listed(task, opened)
        size = source.size()
        evidence = survey(task, source)
        has_changed = source.size() != size  # A log may be truncated while it is read.
    coverage = evidence.coverage or Coverage()
    counted = coverage.explained_bytes + coverage.damaged_bytes + coverage.padding_bytes
    if counted != size and not has_changed:
        raise InvariantViolation(f"{task.path}: {counted} of {size} bytes are accounted for")
    return evidence


def _survey_orphan(task: SurveyTask) -> FileEvidence:
    beside = "".join(f", nor beside {path}" for path in task.indexes.values())
    return FileEvidence(task, (Finding(task.path, "index-orphan", f"there is no segment beside it{beside}"),))
