# SPDX-License-Identifier: Apache-2.0
"""What two looks at the same files say together: what is told of both, what changed between, and what failed.

The audit and the verbs that read the files of quorums share these rules: what they do with a look differs, not when it
is taken again, and what it can take back.
"""

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from raftlog.file_paths import directory_of, is_remote
from raftlog.records.rules import Severity
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import FileEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import in_order
from raftlog.tools.auditing.survey.tasks import find_again
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

_OWN_FAULT: Final = "audit-failed"
"""A fault of raftlog is told even if it occurred only once."""


class HasSeverity(Protocol):
    """What a look says."""

    @property
    def severity(self) -> Severity:
        """How serious it is."""
        ...


Told = TypeVar("Told", bound=HasSeverity)

SurveyFiles = Callable[[Iterable[SurveyTask]], Iterable[FileEvidence]]
"""Yields the evidence of files, in their order."""


def told_twice(first: Iterable[Finding], second: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of two looks at one thing that are to be told, in order.

    Those above harmless that stand in both, what the second has of harmless ones, and faults of raftlog itself.
    """
    first, second = set(first), set(second)
    own = {finding for finding in first | second if finding.rule == _OWN_FAULT}
    return in_order({*standing(first, second), *own})


def standing(
    first: Iterable[Told], second: Iterable[Told], key: Callable[[Told], object] = lambda each: each
) -> list[Told]:
    """Return what a second look says and the first does too, and what is harmless of the second, in its order.

    Args:
        first: what the first look says.
        second: what the second says.
        key: what must be the same in both.
    """
    before = set(map(key, first))
    return [each for each in second if each.severity is Severity.HARMLESS or key(each) in before]


def newly_unread(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a second look about what it could not read or judge, except those of the first.

    Without these, the second look cannot say that the damage of the first is gone.
    """
    return sorted({finding for finding in second if finding.rule in UNREADABLE_RULES} - set(first), key=str)


def changed_places(before: Iterable[SurveyTask], now: Iterable[SurveyTask]) -> frozenset[Place]:
    """Return the places of files that are new, gone, or not as they were."""
    then, after = ({task.path: task for task in tasks} for tasks in (before, now))
    paths = (path for path in then.keys() | after.keys() if then.get(path) != after.get(path))
    return frozenset((then.get(path) or after[path]).place for path in paths)


def seen_again(
    tasks: Sequence[SurveyTask], before: Mapping[str, FileEvidence], survey: SurveyFiles
) -> list[FileEvidence]:
    """Return the evidence of files, in order; those that have not changed are not surveyed again.

    Args:
        tasks: the files.
        before: evidence of an earlier look, by path.
        survey: surveys the others.
    """
    changed = [task for task in tasks if task.path not in before or before[task.path].task != task]
    now = {file.task.path: file for file in survey(changed)}
    return [now.get(task.path) or before[task.path] for task in tasks]


def is_grave(finding: Finding) -> bool:
    """Whether a finding is above harmless, so that both looks must have it."""
    return finding.severity is not Severity.HARMLESS


def is_read_once(task: SurveyTask) -> bool:
    """Whether a file cannot be read again, or not be listed again at once."""
    if task.path == STANDARD_INPUT or is_remote(task.path) or not task.fingerprint:
        return True
    try:
        return task.was_named and not stat.S_ISREG(os.stat(task.path).st_mode)  # noqa: PTH116
    except OSError:
        return False  # It is gone, as a second look will see.


def listed_again(tasks: Sequence[SurveyTask]) -> list[SurveyTask | Finding]:
    """Return what ``find_again`` does; once more if there is nothing, to see whether the directory is there at all."""
    listed = list(find_again(tasks))
    return listed if any(isinstance(found, SurveyTask) for found in listed) else list(find_again(tasks))


def listing_failures(listed: Iterable[SurveyTask | Finding], before: Sequence[SurveyTask]) -> Iterator[Finding]:
    """Yield what went wrong when the directory of some tasks was listed again.

    A log counts as deleted only if its directory is missing where other things still are, and the user did not name it.
    No node deletes its metadata log.

    Args:
        listed: the result of ``listed_again``.
        before: the tasks of the first look.
    """
    path = directory_of(before[0].path)
    own = {path, *(each for task in before for each in (task.path, *task.indexes.values()))}
    said = [each for each in listed if isinstance(each, Finding) and each.path in own]
    unreadable = [each for each in said if each.rule in UNREADABLE_RULES]
    if unreadable:
        yield from (_failure(each.path, each.reason) for each in unreadable)
    elif not _is_any_left(listed, before) and not _was_deleted(said, path, before[0]):
        yield _failure(path, "none of its files is there")


def unlisted(
    before: Mapping[Place, Sequence[SurveyTask]], now: Container[Place], said: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield a failure for each place that is no longer listed, except those that a node has deleted.

    Args:
        before: the tasks of the first look, by place.
        now: the places of the second.
        said: findings of the second listing; nothing is said twice of a place.
    """
    named = {finding.path for finding in said}
    for place, tasks in before.items():
        paths = {each for task in tasks for each in (task.path, directory_of(task.path), place.log_directory)}
        if tasks and place not in now and named.isdisjoint(paths):
            yield from listing_failures(listed_again(tasks), tasks)


def _is_any_left(listed: Iterable[SurveyTask | Finding], before: Sequence[SurveyTask]) -> bool:
    """Whether there is anything of a directory; of files that were named one by one, whether one of these is there."""
    there = {each.path for each in listed if isinstance(each, SurveyTask)}
    return bool(there & {task.path for task in before} if before[0].was_named else there)


def _was_deleted(said: Iterable[Finding], path: str, task: SurveyTask) -> bool:
    """Whether a node has deleted the directory of a task; it never deletes its metadata log."""
    return not task.is_raft and any(each.rule == "file-gone" and each.path == path for each in said)


def _failure(path: str, reason: str) -> Finding:
    return Finding(path, "file-unreadable", f"{reason}, at the second look at it; it is judged as it was at the first")
