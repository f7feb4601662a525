# SPDX-License-Identifier: Apache-2.0
"""Reads what the offers follow from: the names in all directories, and the evidence of metadata logs.

Segments of topics are not read: what is offered of them follows from names. Nothing is written, not even a temporary
file.
"""

import os
from collections.abc import Iterable, Iterator, Sequence

import attrs

from raftlog.errors import StorageError
from raftlog.file_paths import directory_of, is_remote, name_of
from raftlog.records.files.file_names import DirectoryState, parse_directory_name
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.judgement.judgement import judge_in_groups
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.found_directories import DirectorySearch
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.free.left_overs import PartitionNames
from raftlog.tools.free.raft_logs import JudgedLog
from raftlog.tools.repair.sources import check_not_locked


@attrs.frozen
class SurveyedDirectories:
    """What was found under the paths of a command line.

    Attributes:
        partitions: the directories of partitions that are in use, in order of their paths.
        deleted: the directories of deleted partitions, in the same order.
        raft_logs: the metadata logs, by their directories.
        findings: all findings above or at harmless, about metadata logs, their log directories and the listing.
        log_directories: whose locks tell whether a node runs: those of the paths, and those that partitions are in if
            a symbolic link leads to them.
    """

    partitions: Sequence[PartitionNames]
    deleted: Sequence[str]
    raft_logs: dict[str, JudgedLog]
    findings: Sequence[Finding]
    log_directories: Sequence[str] = ()


def survey_directories(paths: Sequence[str], processes: int) -> SurveyedDirectories:
    """Survey directories.

    Args:
        paths: log directories, directories of these, or directories of partitions; all local.
        processes: number of processes that read metadata logs.

    Raises:
        DirectoryLockedError: a node of one is running.
        StorageError: a path is not a local directory, or cannot be read.
        MissingExtraError: a package of an extra is not installed.
    """
    for path in paths:
        _check_is_directory(path)
    search = DirectorySearch(DirectoryListing())
    search.add(paths)
    found = search.directories()
    named = {each.place.log_directory for each in found}
    links = {os.path.dirname(os.path.realpath(each.path)) for each in found if each.is_partition}  # noqa: PTH120
    log_directories = sorted(named | links)
    check_locks(log_directories)
    partitions = [each.path for each in found if each.is_partition]
    problems = [each for each in search.problems if not _is_deleted(each.path)]
    raft_logs, findings = _judged(paths, processes)
    return SurveyedDirectories(
        [_names(path) for path in sorted(partitions)],
        sorted(each.path for each in search.problems if _is_deleted(each.path)),
        raft_logs,
        list(dict.fromkeys([*problems, *findings])),
        log_directories,
    )


def check_locks(log_directories: Iterable[str]) -> None:
    """Check that no node runs in log directories.

    Raises:
        DirectoryLockedError: one does.
        StorageError: the lock's file cannot be read.
    """
    for directory in log_directories:
        check_not_locked(directory)


def _judged(paths: Iterable[str], processes: int) -> tuple[dict[str, JudgedLog], list[Finding]]:
    """Survey and judge the metadata logs and the files of log directories."""
    problems: list[Finding] = []
    places = group_by_place(survey_all(_tasks(paths, problems), processes))
    logs: dict[str, JudgedLog] = {}
    findings = [each for each in problems if not _is_deleted(each.path)]
    groups = list(judge_in_groups(places))
    for judged in groups:
        findings += judged.findings
    of_each_file = [*problems, *findings, *(each for judged in groups for each in judged.of_each_file)]
    for evidence in (each for judged in groups for each in judged.places):
        if evidence.is_raft and evidence.place.topic:
            logs[_directory(evidence)] = JudgedLog.of(evidence, dict.fromkeys(of_each_file))
    return logs, findings


def _tasks(paths: Iterable[str], problems: list[Finding]) -> Iterator[SurveyTask]:
    for each in find_tasks(paths):
        if isinstance(each, Finding):
            problems.append(each)
        elif each.is_raft:
            yield each


def _names(path: str) -> PartitionNames:
    """Return the names of the files in a directory; symbolic links are among them.

    Raises:
        StorageError: it cannot be listed.
    """
    try:
        with os.scandir(path) as entries:
            return PartitionNames.of(path, [each.name for each in entries if not each.is_dir(follow_symlinks=False)])
    except OSError as error:
        raise StorageError(path, "list", error.strerror or str(error)) from error


def _check_is_directory(path: str) -> None:
    if is_remote(path) or not os.path.isdir(path):  # noqa: PTH112
        cause = "not a local directory" if is_remote(path) or os.path.lexists(path) else "no such directory"
        raise StorageError(path, "read", cause)


def _directory(evidence: PartitionEvidence) -> str:
    return directory_of(evidence.files[0].task.path)


def _is_deleted(path: str) -> bool:
    name = parse_directory_name(name_of(path))
    return name is not None and name.state is DirectoryState.DELETE
